//! The report of a comparison.

use millrace_report::{compare_report, compare_table, text_table};
use millrace_runs::{Comparison, Host};
use millrace_stats::{
    Block, Decision, Detect, Effect, Metric, PATTERN, Ratio, Sample, Side, Subject, Trial, Verdict,
};

fn comparison() -> Comparison {
    let block = |n: usize, change: f64| Block {
        trials: PATTERN
            .map(|side| Trial {
                side,
                sample: Sample {
                    cpu_us: Some(
                        20.0 + n as f64 * 0.1 + if side == Side::B { change } else { 0.0 },
                    ),
                    ..Sample::default()
                },
                verdict: Verdict::Valid,
                reasons: Vec::new(),
                client_at_fault: false,
            })
            .to_vec(),
    };
    let ratio = |ratio: f64| Ratio {
        ratio,
        low: ratio - 0.009,
        high: ratio + 0.009,
        bootstrap: Some((ratio - 0.01, ratio + 0.01)),
        spread: 0.012,
        blocks: 10,
    };
    let subject = |name: &str, pid| Subject {
        name: name.to_owned(),
        url: "http://127.0.0.1:8080/<b>".to_owned(),
        pids: vec![pid],
    };
    Comparison {
        verdict: Verdict::Valid,
        reasons: Vec::new(),
        notes: Vec::new(),
        answer: "new costs 3.1 % (2.2 to 4.0) more CPU per request".to_owned(),
        decision: Decision::Worse,
        limit: None,
        within_limit: None,
        complete: true,
        metric: Metric::Cpu,
        a: subject("old", 4711),
        b: subject("new", 4712),
        effects: vec![
            Effect {
                metric: Metric::Cpu,
                a: Some(20.4),
                b: Some(21.0),
                baseline: Some(ratio(1.001)),
                ratio: Some(ratio(1.031)),
                detectable: Some(0.0116),
            },
            Effect {
                metric: Metric::P99,
                a: None,
                b: None,
                baseline: None,
                ratio: None,
                detectable: None,
            },
        ],
        blocks_asked: 10,
        detect: None,
        connections: 8,
        offered_rate: None,
        sessions: false,
        duration_s: 2.0,
        warmup_s: 0.5,
        baseline: (0..10).map(|n| block(n, 0.02)).collect(),
        blocks: (0..10).map(|n| block(n, 0.6)).collect(),
        aside: Vec::new(),
        host: Host::default(),
        command: "millrace compare 'old=http://127.0.0.1:8080/<b>'".to_owned(),
    }
}

#[test]
fn a_comparison_has_its_answer_its_noise_floor_and_its_blocks() {
    let html = compare_report(&comparison()).to_html();
    for word in [
        "new beside old",
        "more CPU per request",
        "old against itself",
        "new against old",
        "process 4712",
        "bootstrap",
    ] {
        assert!(html.contains(word), "{word}");
    }
    assert!(!html.contains("<b>") && !html.contains("NaN"));
    // A metric without figures has no graph.
    assert!(!html.contains("Change of the 99th percentile"));
}

#[test]
fn a_comparison_by_effect_names_the_effect() {
    let detect = Some(Detect {
        share: 0.02,
        most_blocks: 600,
    });
    let html = compare_report(&Comparison {
        detect,
        ..comparison()
    })
    .to_html();
    for words in [
        "10 to 600 blocks of four runs",
        "10 of 10 to 600 against itself",
        "a difference of 2.00\u{a0}%, four times out of five",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn a_comparison_fits_a_terminal() {
    let text = text_table(&compare_table(&comparison()));
    expect_test::expect![[r#"
        What was found
                                      A/A, 95 %      old      new    B/A      B/A, 95 %  detectable
        ────────────────────────  ─────────────  ───────  ───────  ─────  ─────────────  ──────────
        → server CPU per request  0.992 – 1.010  20.4 µs  21.0 µs  1.031  1.022 – 1.040    ± 1.16 %
        99th percentile                       –        –        –      –              –           –
        A/A: old against itself. B/A: new against old. → decides. Detectable: found four times out of five.
    "#]].assert_eq(&text);
}
