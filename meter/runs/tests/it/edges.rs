//! The edges of the measured part: what is in flight when it begins and when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millrace_client::{Pace, Schedule, Stop, Think};

use crate::stub::{HELLO, StubServer, counted, measure, once, serve};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_rate_counts_what_was_in_flight_when_the_measured_part_began() {
    assert!(once(|_| (16.0..24.0).contains(&connections_by_rate())));
}

/// The rate times the mean of the service times, of a run with 20 connections.
fn connections_by_rate() -> f64 {
    let server = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(ms(200));
            Some(HELLO.to_vec())
        });
    });
    // Half a cycle of each connection lies on either edge; the ramp keeps them from coming in step.
    let run = measure(&counted(server.url("/"), 20, 1).with(|plan| {
        plan.length.ramp_up = ms(200);
        plan.length.warmup = ms(200);
        plan.length.stop = Stop::Duration(ms(400));
    }));
    let mean = run.latency_us.service.unwrap().mean / 1e6;
    assert!(run.good_rate <= run.achieved_rate * 1.000_001);
    run.achieved_rate * mean
}

#[test]
fn a_thread_that_only_waits_for_a_last_answer_was_as_busy_as_before() {
    assert!(once(|_| share_of_the_measured_part() > 0.7));
}

/// The CPU time of the measured part within that of the whole run, which waits for a last answer.
fn share_of_the_measured_part() -> f64 {
    let accepted = AtomicU64::new(0);
    let stuck = StubServer::start(move |stream| {
        let is_first = accepted.fetch_add(1, Ordering::Relaxed) == 0;
        serve(&stream, |_, _| {
            if is_first {
                std::thread::park_timeout(Duration::from_secs(60));
            }
            Some(HELLO.to_vec())
        });
    });
    let run = measure(&counted(stuck.url("/"), 4, 1).with(|plan| {
        plan.load.threads = 1;
        plan.request.timeout = ms(1_000);
        plan.length.stop = Stop::Duration(ms(200));
    }));
    assert_eq!(run.errors.count("timeout"), 1, "{:?}", run.errors);
    let finished = (run.accounting.answered + run.accounting.failed) as f64;
    let cpu = run.client.cpu_us_per_request.unwrap() * finished / 1e6;
    run.client.busiest_thread * run.duration_s / cpu
}

/// A server that takes `pause` for each response, and how many requests it has seen.
fn counting(pause: Duration) -> (StubServer, Arc<AtomicU64>) {
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let server = StubServer::start(move |stream| {
        serve(&stream, |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::park_timeout(pause);
            Some(HELLO.to_vec())
        });
    });
    (server, seen)
}

#[test]
fn the_load_goes_on_after_the_measured_part_and_is_counted_by_itself() {
    // Requests due in the last 100 ms are answered in the ramp-down.
    let (server, seen) = counting(ms(100));
    let run = measure(&counted(server.url("/"), 100, 1).with(|plan| {
        plan.length.warmup = ms(100);
        plan.length.stop = Stop::Duration(ms(300));
        plan.length.ramp_down = ms(200);
        plan.load.schedule = Some(Schedule::constant(500.0));
    }));
    let after = run.ramp_down.unwrap();
    assert_eq!((run.accounting.issued, run.accounting.good), (150, 150));
    assert_eq!((after.requests, after.length_s), (100, 0.2));
    assert_eq!(seen.load(Ordering::Relaxed), 50 + 150 + 100);
    assert!((run.duration_s - 0.3).abs() < 1e-6, "{}", run.duration_s);
    assert_eq!(run.bytes, 150 * HELLO.len() as u64);
}

#[test]
fn a_closed_loop_goes_on_as_well_with_and_without_pauses() {
    for pace in [Pace::AtOnce, Pace::Think(Think::Constant(ms(1)))] {
        let (server, seen) = counting(ms(1));
        let run = measure(&counted(server.url("/"), 4, 1).with(|plan| {
            plan.load.pace = pace;
            plan.length.stop = Stop::Duration(ms(200));
            plan.length.ramp_down = ms(200);
        }));
        let after = run.ramp_down.unwrap().requests;
        assert!(after > 0 && run.accounting.good > 0, "{run:#?}");
        assert_eq!(seen.load(Ordering::Relaxed), run.accounting.issued + after);
        assert!((run.duration_s - 0.2).abs() < 1e-6, "{}", run.duration_s);
    }
}
