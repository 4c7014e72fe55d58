//! Reported times, compared with servers that record their delays.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millrace_client::Stop;

use crate::stub::{HELLO, StubServer, counted, measure, once, serve};

/// Delays that a server made, in nanoseconds, from reading the request to just before writing the
/// response.
type Delays = Arc<Mutex<Vec<u64>>>;

/// A server whose responses take from 0 to `most` microseconds, uniformly, and that records its
/// delays.
fn delaying(most: u64) -> (StubServer, Delays) {
    let delays = Delays::default();
    let log = Arc::clone(&delays);
    let server = StubServer::start(move |stream| {
        serve(&stream, |number, _| {
            let begin = Instant::now();
            let delay = Duration::from_micros((number * 7919) % most);
            // Waits by the clock, so that the delay equals the recorded one and has no error of a
            // timer.
            while begin.elapsed() < delay {
                std::thread::yield_now();
            }
            log.lock().unwrap().push(begin.elapsed().as_nanos() as u64);
            Some(HELLO.to_vec())
        });
    });
    (server, delays)
}

#[test]
fn no_latency_is_shorter_than_what_the_server_did() {
    let (server, delays) = delaying(2000);
    let run = measure(&counted(server.url("/"), 1, 1000).with(|plan| plan.load.threads = 1));
    let mut delays = delays.lock().unwrap().clone();
    delays.sort_unstable();
    let service = run.latency_us.service.unwrap();
    let at = |share: f64| delays[(share * delays.len() as f64).ceil() as usize - 1] as f64 / 1000.0;
    // Each latency is the server's delay plus the way there and back, so each percentile is at
    // least that of the delays. Three digits may round it down.
    for (name, share, found) in [
        ("p50", 0.5, service.p50),
        ("p90", 0.9, service.p90),
        ("p99", 0.99, service.p99),
    ] {
        let (found, least) = (found.unwrap(), at(share) * 0.999);
        assert!(found >= least, "{name}: {found} is less than {least}");
    }
    assert!(service.max >= at(1.0) * 0.999);
    let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64 / 1000.0;
    assert!(service.mean >= mean * 0.999);
    // And one connection was never idle for long: all latencies together fit into the run.
    assert!(service.mean * 1000.0 <= run.duration_s * 1e6 * 1.001);
}

#[test]
fn littles_law_holds_for_a_steady_server() {
    assert!(once(|_| littles_law_holds()));
}

fn littles_law_holds() -> bool {
    let (server, _) = delaying(500);
    // Long enough that a thread that has to wait for a core at the end is a small part of the run.
    let run = measure(&counted(server.url("/"), 4, 12_000));
    let law = run
        .little
        .expect("a run of hundreds of cycles can be checked");
    (law.found - law.expected).abs() <= law.tolerance
}

#[test]
fn requests_in_flight_at_the_end_are_followed_to_their_answers() {
    // Each response takes longer than the run: without following, there would be none.
    let slow = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(Duration::from_millis(150));
            Some(HELLO.to_vec())
        });
    });
    let length = Duration::from_millis(50);
    let run = measure(
        &counted(slow.url("/"), 3, 1).with(|plan| plan.length.stop = Stop::Duration(length)),
    );
    assert_eq!((run.accounting.good, run.accounting.in_flight), (3, 0));
    assert!(
        run.achieved_rate.abs() < f64::EPSILON,
        "nothing was answered within the time itself"
    );
}
