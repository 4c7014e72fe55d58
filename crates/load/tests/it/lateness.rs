//! The client's own account of when it sent, against the null server's of when the requests arrived.

use std::time::Duration;

use millpond_load::{NullPlan, NullServer, Plan, Process, Schedule, Stop};

use crate::stub::{counted, measure};

const RATE: f64 = 2_000.0;

#[test]
fn what_the_client_says_of_its_lateness_is_seen_from_outside() {
    let server = NullServer::start(&NullPlan {
        log: 10_000,
        ..NullPlan::default()
    })
    .unwrap();
    let run = measure(&Plan {
        threads: 1,
        stop: Stop::Duration(Duration::from_millis(600)),
        schedule: Some(Schedule {
            rate: RATE,
            process: Process::Constant,
            deadline: None,
        }),
        ..counted(server.url(), 8, 1)
    });
    let answers = server.stop().unwrap().answers;
    assert_eq!(answers.len() as u64, run.accounting.issued);
    let start = run.client.started_ns;
    // The requests are sent in the order in which they are due, so the nth to arrive is taken for the nth that was due. Where two
    // arrived in another order the largest differences are a little smaller for it, and their sum is the same.
    let late: Vec<f64> = answers
        .iter()
        .enumerate()
        .map(|(n, answer)| {
            let due = start as f64 + n as f64 * 1e9 / RATE;
            (answer.arrived_ns as f64 - due) / 1_000.0
        })
        .collect();
    // Nothing arrives before it is due; a nanosecond is lost in rounding.
    assert!(late.iter().all(|&late| late > -0.01), "{late:?}");
    let outside = late.iter().sum::<f64>() / late.len() as f64;
    let inside = run.latency_us.send_lag.unwrap().mean;
    let service = run.latency_us.service.unwrap().mean;
    // A request arrives after it was sent and before its answer does; three digits may round.
    assert!(outside >= inside * 0.999, "{outside} {inside}");
    assert!(
        outside <= (inside + service) * 1.001,
        "{outside} {inside} {service}"
    );
}
