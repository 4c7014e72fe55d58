//! Several results on one page, what a probe adds, and rows for a spreadsheet.

use millrace_report::{
    StoredResult, collection_report, collection_table, run_csv, run_report, summary_csv,
};
use millrace_runs::{Probed, Run};
use millrace_stats::Verdict;

use crate::{HOSTILE, run};

fn found(name: &str, change: impl FnOnce(&mut Run)) -> (String, StoredResult) {
    let mut run = run();
    change(&mut run);
    (name.to_owned(), StoredResult::Run(Box::new(run)))
}

/// A probe that saw two cores for ten seconds.
fn probed() -> Probed {
    let mut probed = Probed::default();
    let summary = probed.summary.insert(Default::default());
    summary.span_s = 10.0;
    summary.cores = vec![Default::default(); 2];
    for core in &mut summary.cores {
        (core.user, core.softirq, core.idle) = (0.5, 0.1, 0.4);
    }
    let server = summary.server.insert(Default::default());
    (server.cpu_s, server.user_s, server.system_s) = (8.0, 5.0, 3.0);
    probed
}

#[test]
fn results_stand_beside_each_other_and_then_each_by_itself() {
    let all = [
        found("first", |_| ()),
        found(HOSTILE, |run| run.verdict = Verdict::Invalid),
    ];
    let page = collection_report(&all).to_html();
    for part in [
        "Throughput of each run",
        "Time by percentile",
        "<h2>first</h2>",
        "&lt;script&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"));
    let rows = collection_table(&all).rows;
    assert_eq!(
        (rows[0][1].as_str(), rows[1][1].as_str()),
        ("SUSPECT", "INVALID")
    );
    let one = collection_report(&all[..1]).to_html();
    assert_eq!(
        one,
        run_report(&run()).to_html(),
        "one alone is its own report"
    );
}

#[test]
fn open_loops_at_different_rates_are_drawn_against_them() {
    let at = |rate: f64| {
        found("run", move |run| {
            run.kind = millrace_runs::Loop::Open;
            run.offered_rate = Some(rate);
            run.latency_us.response = run.latency_us.service;
        })
    };
    let page = collection_report(&[at(500.0), at(1000.0), at(1000.0)]).to_html();
    assert!(page.contains("Throughput against demanded rate"));
    assert!(page.contains("Response time against demanded rate"));
}

#[test]
fn a_probe_shows_what_a_request_costs() {
    let mut run = run();
    (run.achieved_rate, run.client.cpu_us_per_request) = (1000.0, Some(100.0));
    assert!(!run_report(&run).to_html().contains("CPU time of a request"));
    run.probe = Some(probed());
    let page = run_report(&run).to_html();
    // 8 s of the server and 2 s of interrupts over 10,000 requests, and the client's own.
    for part in [
        "500\u{a0}µs",
        "300\u{a0}µs",
        "200\u{a0}µs",
        "100\u{a0}µs",
        "1.10\u{a0}ms",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let files = run_report(&run).to_svg_files();
    assert!(
        files
            .iter()
            .any(|file| file.name == "cpu-time-of-a-request-by-where-it-is-spent.svg")
    );
}

#[test]
fn rows_have_as_many_cells_as_columns() {
    let all = [
        found("a,b", |_| ()),
        found("c \"d\"", |run| run.offered_rate = Some(1.5)),
    ];
    let rows = summary_csv(&all);
    let mut lines = rows.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert_eq!(
        lines.next().unwrap().split(',').count(),
        columns + 1,
        "the quoted comma"
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("\"c \"\"d\"\"\",run,,http")
    );
    let points = run_csv(&run());
    assert_eq!(points.lines().count(), 1 + run().series.points.len());
}

#[test]
fn impossible_figures_cause_no_panic() {
    let odd = |value: f64| {
        found("odd", move |run| {
            run.duration_s = value;
            run.achieved_rate = value;
            run.offered_rate = Some(value);
            run.series.interval_s = value;
            run.little = None;
            let mut probe = probed();
            if let Some(summary) = &mut probe.summary {
                summary.span_s = value;
            }
            run.probe = Some(probe);
            for point in &mut run.series.points {
                (point.at_s, point.p50_us, point.requests) = (value, Some(value), u64::MAX);
            }
            for point in &mut run.percentiles {
                (point.q, point.us) = (value, value);
            }
        })
    };
    for value in [
        0.0,
        -1.0,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        1e-300,
    ] {
        let all = [odd(value), odd(value), odd(1.0)];
        let report = collection_report(&all);
        assert!(report.to_html().len() < 1_000_000);
        report.to_svg_files();
        summary_csv(&all);
    }
}
