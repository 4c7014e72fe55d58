//! The client's send times, compared with the null server's record of when the requests arrived.

use std::time::Duration;

use millrace_client::{NullAnswer, NullPlan, NullServer, Schedule, Stop};

use crate::stub::{counted, measure};

const RATE: f64 = 2_000.0;

#[test]
fn the_reported_lateness_agrees_with_the_log_of_the_server() {
    let server = NullServer::start(&NullPlan {
        log: 10_000,
        ..NullPlan::default()
    })
    .unwrap();
    let run = measure(&counted(server.url(), 8, 1).with(|plan| {
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(Duration::from_millis(600));
        plan.load.schedule = Some(Schedule::constant(RATE));
    }));
    let answers = server.stop().unwrap().answers;
    assert_eq!(answers.len() as u64, run.accounting.issued);
    let start = run.client.started_ns;
    // The kernel begins to stamp packets some moments after the request for it.
    let unstamped = answers.iter().filter(|answer| answer.received_ns.is_none());
    assert!(unstamped.count() < answers.len() / 2);
    // Requests are sent in the order in which they are due, so the nth to arrive is the nth that
    // was due.
    let mean = |stamp: fn(&NullAnswer) -> u64| {
        let mut stamps: Vec<u64> = answers.iter().map(stamp).collect();
        stamps.sort_unstable();
        let late = |(n, stamp): (usize, &u64)| {
            let due = start as f64 + n as f64 * 1e9 / RATE;
            (*stamp as f64 - due) / 1_000.0
        };
        let late: Vec<f64> = stamps.iter().enumerate().map(late).collect();
        // Nothing arrives before it is due; a nanosecond is lost in rounding.
        assert!(late.iter().all(|&late| late > -0.01), "{late:?}");
        late.iter().sum::<f64>() / late.len() as f64
    };
    let (received, arrived) = (
        mean(|answer| answer.received_ns.unwrap_or(answer.arrived_ns)),
        mean(|answer| answer.arrived_ns),
    );
    let inside = run.latency_us.send_lag.unwrap().mean;
    let service = run.latency_us.service.unwrap().mean;
    // The kernel has a request after it was sent, and the server reads it before its response
    // arrives; three digits may round.
    let bound = (inside + service) * 1.001;
    assert!(
        inside * 0.999 <= received && received <= arrived && arrived <= bound,
        "{inside} {received} {arrived} {bound}"
    );
}
