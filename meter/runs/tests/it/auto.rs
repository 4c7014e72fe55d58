//! Runs whose length the statistics decide.

use std::time::{Duration, Instant};

use millrace_client::{Auto, Plan, Schedule, Stop};
use millrace_runs::Run;
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, counted, measure, once, serve};

fn auto(url: String, precision: f64, max: Duration) -> Plan {
    counted(url, 8, 1).with(|plan| {
        plan.length.stop = Stop::Duration(max);
        plan.length.auto = Some(Auto { precision, max });
        plan.load.schedule = Some(Schedule::constant(500.0));
    })
}

#[test]
fn a_steady_server_is_known_before_the_time_is_over() {
    let server = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(Duration::from_millis(5));
            Some(HELLO.to_vec())
        });
    });
    // On a busy machine it takes longer until the times are steady.
    let max = Duration::from_secs(30);
    assert!(once(|_| {
        let run = measure(&auto(server.url("/"), 0.25, max));
        check_steady(&run);
        run.auto.unwrap().converged
    }));
}

/// Checks decisions and measurements of a run of `auto` with a precision of a quarter.
fn check_steady(run: &Run) {
    let figures = run.auto.unwrap();
    assert!((run.warmup_s - figures.warmup_s).abs() < 1e-9);
    // The measured requests are those due in the measured part.
    let due = figures.measured_s * 500.0;
    assert!(
        (run.accounting.issued as f64 - due).abs() <= 2.0,
        "{run:#?}"
    );
    let reasons = run.reasons.join("; ");
    let says_no = reasons.contains("% were asked for") || reasons.contains("never became steady");
    assert_eq!(says_no, !figures.converged, "{reasons}");
    if figures.converged {
        assert!(figures.steady && figures.half_width_response.unwrap() <= 0.25);
        assert!(figures.half_width_rate.unwrap() <= 0.25);
        assert!(figures.warmup_s + figures.measured_s < 30.5, "{figures:?}");
    }
}

#[test]
fn a_server_that_drifts_never_is_steady_and_the_run_says_so() {
    let began = Instant::now();
    let server = StubServer::start(move |stream| {
        serve(&stream, |_, _| {
            // A millisecond more every fifth of a second.
            std::thread::park_timeout(began.elapsed() / 200);
            Some(HELLO.to_vec())
        });
    });
    let run = measure(&auto(server.url("/"), 0.02, Duration::from_secs(3)));
    let figures = run.auto.unwrap();
    assert!(!figures.converged, "{figures:?}");
    assert_ne!(run.verdict, Verdict::Valid);
    let reasons = run.reasons.join("; ");
    assert!(
        reasons.contains("steady") || reasons.contains("asked for"),
        "{reasons}"
    );
    // It still ends.
    assert!(
        (2.9..60.0).contains(&(figures.warmup_s + figures.measured_s)),
        "{figures:?}"
    );
}
