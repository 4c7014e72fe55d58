//! The client's own limits, and what a run reports about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use millrace_client::{NullPlan, NullServer, Plan, Stop};
use millrace_runs::calibrate;
use millrace_stats::Calibration;

use crate::stub::{HELLO, StubServer, counted, measure, serve};

const SHORT: Duration = Duration::from_millis(120);

fn calibrated(plan: &Plan) -> Option<Calibration> {
    calibrate(plan, SHORT, &AtomicBool::new(false)).unwrap()
}

/// The first calibration that `is_good`, and the number of attempts. Each takes twice as long as
/// the one before: a busy machine may have no answer within a short one.
fn calibrated_in_time(plan: &Plan, is_good: impl Fn(&Calibration) -> bool) -> (Calibration, u64) {
    (0..9)
        .find_map(|attempt| {
            let known = calibrate(plan, SHORT * (1 << attempt), &AtomicBool::new(false));
            let known = known.unwrap().filter(&is_good)?;
            Some((known, attempt + 1))
        })
        .expect("no good calibration")
}

#[test]
fn the_client_has_a_ceiling_and_a_floor() {
    let server = StubServer::fixed(HELLO);
    let plan = counted(server.url("/"), 8, 1).with(|plan| plan.load.depth = 4);
    let (known, attempts) = calibrated_in_time(&plan, |known| {
        known.ceiling_per_s > 100.0
            && known.floor_us < 1e5
            // One request at a time cannot be faster than one at a time.
            && known.floor_us * known.ceiling_per_s > 1e6 / 1_000.0
    });
    assert_eq!(known.response_bytes, HELLO.len() as u64);
    assert!(
        known.floor_us > 0.0 && known.cpu_us_per_request > 0.0,
        "{known:?}"
    );
    // The subject was asked once, for the size of its response.
    assert_eq!(server.accepted.load(Ordering::Relaxed), attempts);
}

#[test]
fn every_shape_of_a_plan_can_be_calibrated() {
    let server = StubServer::fixed(HELLO);
    let plan = counted(server.url("/a?b=c"), 3, 1);
    for plan in [
        plan.clone().with(|plan| plan.request.keep_alive = false),
        plan.clone()
            .with(|plan| plan.request.per_connection = Some(7)),
        plan.clone().with(|plan| {
            plan.request.method = "POST".into();
            plan.request.body = vec![b'x'; 5_000];
        }),
        plan.clone()
            .with(|plan| plan.request.urls = vec!["/1".into(), server.url("/2")]),
        plan.clone()
            .with(|plan| plan.request.headers = vec![("Host".into(), "other".into())]),
        plan.with(|plan| plan.load.cores = Some(vec![first_core()])),
    ] {
        calibrated_in_time(&plan, |known| known.ceiling_per_s > 0.0);
    }
}

fn first_core() -> usize {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..).find(|&core| set.is_set(core)).unwrap()
}

#[test]
fn without_an_answer_there_is_nothing_to_calibrate_for() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    assert_eq!(calibrated(&counted(url, 2, 1)), None);
    let server = StubServer::fixed(HELLO);
    let stopped = AtomicBool::new(true);
    let plan = counted(server.url("/"), 2, 1);
    assert_eq!(calibrate(&plan, SHORT, &stopped).unwrap(), None);
    let bad = plan.with(|plan| plan.load.connections = 0);
    assert!(calibrate(&bad, SHORT, &AtomicBool::new(false)).is_err());
}

#[test]
fn a_run_above_the_calibration_is_not_suspect_and_one_near_the_floor_says_so() {
    let server = NullServer::start(&NullPlan::default()).unwrap();
    let run = |known| {
        measure(&counted(server.url(), 2, 1).with(|plan| {
            plan.length.stop = Stop::Duration(Duration::from_millis(200));
            plan.conditions.calibration = Some(known);
        }))
    };
    let known = Calibration {
        ceiling_per_s: 1e9,
        floor_us: 1e-3,
        ..Calibration::default()
    };
    let fine = run(known);
    assert!(
        !fine.reasons.join(" ").contains("itself can do"),
        "{:?}",
        fine.reasons
    );
    assert_eq!(fine.calibration, Some(known));
    let above = run(Calibration {
        ceiling_per_s: 1.0,
        floor_us: 1e6,
        ..known
    });
    assert!(
        !above.reasons.join(" ").contains("itself can do"),
        "{:?}",
        above.reasons
    );
    // What was surpassed is no ceiling.
    assert_eq!(above.calibration.map(|known| known.lower_bound), Some(true));
    let notes = above.notes.join(" ");
    assert!(
        notes.contains("the 1/s of its calibration")
            && notes.contains("a server that does nothing"),
        "{notes}"
    );
    let unknown = run(Calibration {
        ceiling_per_s: 1.0,
        same_core: true,
        lower_bound: true,
        ..known
    });
    assert!(
        !unknown.reasons.join(" ").contains("itself can do"),
        "{:?}",
        unknown.reasons
    );
    assert!(
        unknown
            .notes
            .join(" ")
            .contains("whether it limits this run is unknown"),
        "{:?}",
        unknown.notes
    );
}

#[test]
fn each_url_of_a_list_is_requested_once_and_a_silent_server_only_once() {
    for silent in [false, true] {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let server = StubServer::start(move |stream| {
            serve(&stream, |_, _| {
                count.fetch_add(1, Ordering::Relaxed);
                if silent {
                    std::thread::park_timeout(Duration::from_secs(60));
                }
                Some(HELLO.to_vec())
            });
        });
        let plan = counted(server.url("/"), 2, 1).with(|plan| {
            plan.request.urls = (0..9).map(|n| server.url(&format!("/{n}"))).collect();
            plan.request.timeout = Duration::from_secs(if silent { 1 } else { 60 });
        });
        let expected = if silent {
            assert_eq!(calibrated(&plan), None);
            1
        } else {
            9 * calibrated_in_time(&plan, |_| true).1
        };
        assert_eq!(asked.load(Ordering::Relaxed), expected);
    }
}
