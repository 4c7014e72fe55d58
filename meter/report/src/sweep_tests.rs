//! A sweep made up beforehand, as it is shown.

use millrace_runs::{
    Attained, Crossing, Edge, Hysteresis, Judged, LevelPower, LevelRange, Power, TopRate,
};
use millrace_stats::{Accounting, Latencies, Observation};

use super::*;
use crate::{sweep_csv, sweep_curve, sweep_limits_text, text_table};

fn run(rate: f64, p50: f64) -> Run {
    let latency = Latency {
        count: 1000,
        mean: p50,
        p50: Some(p50),
        p90: Some(p50 * 2.0),
        p95: Some(p50 * 3.0),
        p99: Some(p50 * 4.0),
        p999: None,
        max: p50 * 9.0,
    };
    Run {
        verdict: Verdict::Valid,
        url: "http://h/".into(),
        duration_s: 1.0,
        requests: 1000,
        accounting: Accounting {
            issued: 1000,
            answered: 1000,
            good: 998,
            ..Accounting::default()
        },
        achieved_rate: rate,
        good_rate: rate,
        latency_us: Latencies {
            service: Some(latency),
            ..Latencies::default()
        },
        ..Run::default()
    }
}

fn step(level: f64, direction: Direction, rate: f64) -> SweepStep {
    SweepStep {
        level,
        direction,
        repeat: 1,
        complete: true,
        objective: Some(Met::Yes),
        run: run(rate, 1e6 * level / rate),
    }
}

/// Eight levels of a server with σ = 0.1 and κ = 0.01, and one step down.
fn sweep() -> Sweep {
    let law = |n: f64| 1000.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.01 * n * (n - 1.0));
    // A scatter of a percent, so that the interval can be seen.
    let scatter = [1.0, 1.01, 0.99, 1.01, 0.99, 1.0, 1.01, 0.99];
    let levels = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0];
    let rates: Vec<(f64, f64)> = levels
        .into_iter()
        .zip(scatter)
        .map(|(n, s)| (n, law(n) * s))
        .collect();
    let observations: Vec<Observation> = rates
        .iter()
        .map(|&(load, throughput)| Observation {
            load,
            throughput,
            error_share: 0.0,
        })
        .collect();
    let mut steps: Vec<SweepStep> = rates
        .iter()
        .map(|&(n, rate)| step(n, Direction::Up, rate))
        .collect();
    steps.push(step(1.0, Direction::Down, 900.0));
    Sweep {
        verdict: Verdict::Suspect,
        reasons: vec!["at 24, SUSPECT: <b>why</b>".into()],
        by: By::Connections,
        url: "http://h/".into(),
        ladder: "1..24".into(),
        planned: 9,
        steps,
        top: Some(TopRate {
            level: 8.0,
            rate: 3500.0,
        }),
        power: Some(Power {
            level: 4.0,
            value: 2.5e6,
            rate: 2500.0,
            mean_us: 1000.0,
            edge: None,
            climbs: 3,
            range: Some(LevelRange {
                low: 2.0,
                high: 6.0,
            }),
            levels: [(2.0, 2.4e6), (4.0, 2.5e6)]
                .map(|(level, value)| LevelPower { level, value })
                .to_vec(),
        }),
        hysteresis: Some(Hysteresis {
            level: 1.0,
            up: 1000.0,
            down: 900.0,
        }),
        usl: Usl::fit(&observations, 1).ok(),
        usl_refused: String::new(),
        objective: Some(Attained {
            objective: "99% < 5ms".parse().unwrap(),
            levels: vec![Judged {
                level: 1.0,
                met: Met::Undecided,
            }],
            highest: Some(24.0),
            crossing: Some(Crossing {
                level: 27.5,
                from: 24.0,
                from_us: 4000.0,
                to: 32.0,
                to_us: 9000.0,
            }),
            crossing_refused: String::new(),
        }),
        command: "millrace sweep http://h/ -c 1..24".into(),
        sessions: false,
        bottleneck: None,
        demands: None,
        remarks: Vec::new(),
    }
}

#[test]
fn the_findings_are_sentences() {
    let plain = |text: String| text.replace(['\u{202f}', '\u{a0}'], " ");
    let findings: Vec<String> = sweep_findings(&sweep()).into_iter().map(plain).collect();
    assert_eq!(
        findings[0],
        "Maximum throughput: 3.50 k/s, at 8 connections"
    );
    assert_eq!(
        findings[1],
        "Best balance of throughput and response time: at 4 connections, with 2.50 k/s and a mean response time of 1.00 ms; \
         levels from 2 to 6 cannot be told apart (95 %)"
    );
    assert_eq!(
        findings[2],
        "Up and down differ most at 1 connection: 1.00 k/s up, 900 /s down"
    );
    assert!(
        findings[3].starts_with("Universal Scalability Law: σ 0.0999 ("),
        "{}",
        findings[3]
    );
    assert!(findings[4].contains("N* 9."), "{}", findings[4]);
    assert_eq!(
        findings[5..],
        [
            "Objective 99% < 5ms: met up to 24 connections, but not at every level below",
            "It ceases to hold at about 27.5 connections: between 24 with 4.00 ms and 32 with 9.00 ms, by the logarithm of \
             the time"
        ]
    );
    let without = Sweep {
        usl: None,
        usl_refused: "too few".into(),
        top: None,
        power: None,
        hysteresis: None,
        objective: None,
        ..sweep()
    };
    assert_eq!(
        sweep_findings(&without),
        ["No Universal Scalability Law: too few"]
    );
}

#[test]
fn the_throughput_of_each_level_is_a_bar_beside_proportion() {
    let step = |level: f64, rate: f64| step(level, Direction::Up, rate);
    let mut sweep = Sweep {
        steps: vec![step(1.0, 100.0), step(2.0, 248.0), step(8.0, 400.0)],
        ..sweep()
    };
    let text = |sweep: &Sweep| text_table(&sweep_curve(sweep).unwrap());
    expect_test::expect![[r#"
        Throughput at each level
        connections  good answers a second  of proportion
        ───────────  ─────────────────────  ─────────────  ────────────────────────────────────────
                  1                 100 /s          100 %  ██████████
                  2                 248 /s          124 %  ████████████████████████▊
                  8                 400 /s         50.0 %  ████████████████████████████████████████
        Of proportion: 100 % if the throughput rises as the connections do, from the lowest level on.
    "#]]
    .assert_eq(&text(&sweep));
    // Where the law has no fit, the page has the table too.
    sweep.usl = None;
    assert!(sweep_report(&sweep).to_html().contains("of proportion"));
    sweep.by = By::Rate;
    assert!(text(&sweep).contains("of demanded") && !text(&sweep).contains("Of proportion"));
    sweep.sessions = true;
    assert!(!text(&sweep).contains("of demanded"));
    let many = (1..=1000).map(|n| step(f64::from(n), 100.0));
    sweep.steps = many.collect();
    let rows = sweep_curve(&sweep).unwrap().rows;
    assert!(rows.len() <= 41 && rows[0][0] == "1" && rows[rows.len() - 1][0] == "1\u{202f}000");
    sweep.steps.truncate(1);
    assert!(sweep_curve(&sweep).is_none());
}

#[test]
fn an_uncertain_optimum_is_named() {
    let mut sweep = sweep();
    let Some(power) = &mut sweep.power else {
        panic!("there is one");
    };
    power.edge = Some(Edge::Highest);
    power.range = None;
    let line = sweep_findings(&sweep).swap_remove(1);
    assert!(
        line.ends_with("fewer than three climbs give no interval; at the edge of the ladder, higher levels may have more"),
        "{line}"
    );
    let Some(attained) = &mut sweep.objective else {
        panic!("there is one");
    };
    attained.crossing = None;
    attained.crossing_refused = "no level above misses it".into();
    let last = sweep_findings(&sweep).pop().unwrap();
    assert_eq!(
        last,
        "Where it ceases to hold is not known: no level above misses it"
    );
}

#[test]
fn every_part_is_in_the_report_and_nothing_gets_through_unescaped() {
    let sweep = sweep();
    let html = sweep_report(&sweep).to_html();
    for part in [
        "Throughput",
        "Universal Scalability Law",
        "its lower end",
        "Response time",
        "median, down",
        "best balance",
        "Throughput over mean response time against connections",
        "ceases to hold at about",
        "Errors",
        "σ, contention",
        "N*, load",
        "Steps",
        "&lt;b&gt;why",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<b>why"));
}

#[test]
fn rows_have_the_columns_that_are_named() {
    let sweep = sweep();
    for by in [By::Rate, By::Connections] {
        assert_eq!(
            sweep_columns(by).len(),
            sweep_row(by, &sweep.steps[0]).len()
        );
    }
    let table = text_table(&sweep_table(&sweep));
    assert!(
        table.contains("VALID, objective met") && table.contains("900 /s"),
        "{table}"
    );
    let csv = sweep_csv(&sweep);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [20; 10]);
    assert!(
        csv.contains("\n1,down,1,true,VALID,,900.000,900.000,1000,1000,998,2,"),
        "{csv}"
    );
}

/// Returns the sweep of a probed server that takes half of one of two cores.
fn probed() -> Sweep {
    let mut sweep = sweep();
    for step in &mut sweep.steps {
        let mut probed = millrace_runs::Probed::default();
        let summary = probed.summary.insert(Default::default());
        summary.span_s = 1.0;
        summary.cores = vec![Default::default(); 2];
        let server = summary.server.insert(Default::default());
        (server.cpu_s, server.user_s, server.system_s) = (0.5, 0.3, 0.2);
        step.run.probe = Some(probed);
        step.run.bottleneck = Some(Vec::new());
    }
    sweep
}

#[test]
fn the_limit_follows_the_steps() {
    assert!(sweep_limits_text(&sweep()).is_none());
    let mut sweep = probed();
    sweep.find_limits();
    let text = sweep_limits_text(&sweep).unwrap();
    // The throughput stays from 6 connections on, and the server is idle most of the time.
    assert!(text.starts_with("limited by: serialisation"), "{text}");
    assert!(text.contains("server CPU, system"), "{text}");
    sweep.bottleneck = Some(Vec::new());
    let text = sweep_limits_text(&sweep).unwrap();
    assert!(text.starts_with("limited by: nothing that shows"), "{text}");
    sweep.remarks = vec!["<b>odd".into()];
    sweep.bottleneck = Some(vec![millrace_stats::Finding {
        name: millrace_stats::Limit::Serialised,
        weight: 1.0,
        evidence: vec!["it <b>stays".into()],
        bound_per_s: Some(3500.0),
    }]);
    let html = sweep_report(&sweep).to_html();
    for part in [
        "What limits the server",
        "a lock or a pool",
        "it &lt;b&gt;stays",
        "&lt;b&gt;odd",
        "CPU idle against connections",
        "CPU time of a request by where it is spent",
        "The host probe",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<b>stays") && !html.contains("<b>odd"));
}

#[test]
fn a_sweep_says_under_which_conditions_its_steps_were() {
    let mut sweep = sweep();
    // Ctrl-C ended the last one.
    sweep.steps.last_mut().unwrap().run.duration_s /= 4.0;
    let length = sweep.steps[0].run.duration_s;
    let html = sweep_report(&sweep).to_html();
    assert!(html.contains("Conditions") && html.contains("a step"));
    assert!(
        html.contains(&crate::Unit::Seconds.format(length)),
        "{length}"
    );
    assert!(html.contains("cores for the client"));
}

#[test]
fn rates_of_sessions_are_labelled() {
    let sweep = Sweep {
        by: By::Rate,
        sessions: true,
        ..sweep()
    };
    let text = sweep_findings(&sweep).join("\n");
    assert!(text.contains("at 8 sessions a second"), "{text}");
    let html = sweep_report(&sweep).to_html();
    assert!(html.contains("demanded sessions per second"));
}

#[test]
fn a_sweep_without_a_whole_step_is_a_report_too() {
    let empty = Sweep {
        steps: Vec::new(),
        top: None,
        usl: None,
        ..sweep()
    };
    assert!(sweep_report(&empty).to_html().contains("0"));
}
