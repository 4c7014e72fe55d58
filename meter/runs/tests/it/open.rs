//! The open loop: requests are sent when they are due, and every due request is accounted for.

use std::time::Duration;

use millrace_client::{Plan, Process, Schedule, Stop};
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, counted, measure, serve};

fn open(url: String, rate: f64, connections: usize, length: Duration) -> Plan {
    counted(url, connections, 1).with(|plan| {
        plan.length.stop = Stop::Duration(length);
        plan.load.schedule = Some(Schedule::constant(rate));
    })
}

fn scheduled(plan: Plan, change: impl FnOnce(&mut Schedule)) -> Plan {
    let mut plan = plan;
    plan.load.schedule.as_mut().map(change);
    plan
}

#[test]
fn as_many_requests_are_due_as_the_schedule_says() {
    let server = StubServer::fixed(HELLO);
    let length = Duration::from_millis(500);
    for threads in [1, 2] {
        let plan =
            open(server.url("/"), 2_000.0, 8, length).with(|plan| plan.load.threads = threads);
        let run = measure(&plan);
        assert_eq!(run.accounting.issued, 1_000, "{run:#?}");
        assert_eq!(run.accounting.good, 1_000);
        assert_eq!(run.offered_rate, Some(2_000.0));
        let times = &run.latency_us;
        let [response, lag] = [times.response.unwrap(), times.send_lag.unwrap()];
        assert_eq!((response.count, lag.count), (1_000, 1_000));
        // Each response time is a send lag and a service time; three digits may round.
        let sum = lag.mean + times.service.unwrap().mean;
        assert!((response.mean / sum - 1.0).abs() < 0.002, "{times:?}");
        let parts = times.waiting.unwrap().mean + times.lateness.unwrap().mean;
        assert!(
            (lag.mean - parts).abs() < 0.002 * lag.mean + 0.01,
            "{times:?}"
        );
    }
    let counted = open(server.url("/"), 5_000.0, 2, length)
        .with(|plan| plan.length.stop = Stop::Requests(77));
    assert_eq!(measure(&counted).accounting.good, 77);
}

#[test]
fn random_arrivals_are_the_same_for_the_same_seed() {
    let server = StubServer::fixed(HELLO);
    let count = |seed| {
        let plan = open(server.url("/"), 3_000.0, 4, Duration::from_millis(300));
        let plan = scheduled(plan, |s| s.process = Process::Poisson(seed));
        measure(&plan).accounting.issued
    };
    let (one, other) = (count(1), count(2));
    assert_eq!(one, count(1));
    // Mean 900, standard deviation 30.
    assert!(one != other && (700..1_100).contains(&one), "{one} {other}");
}

#[test]
fn waiting_for_a_new_connection_is_the_servers_time() {
    let server = StubServer::fixed(HELLO);
    let plan = open(server.url("/"), 500.0, 16, Duration::from_millis(400))
        .with(|plan| plan.request.keep_alive = false);
    let run = measure(&plan);
    assert_eq!((run.accounting.good, run.connections.opened), (200, 200));
    assert_eq!(run.latency_us.connect.unwrap().count, 200);
}

/// A server that takes `pause` for each response.
fn slow(pause: Duration) -> StubServer {
    StubServer::start(move |stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(pause);
            Some(HELLO.to_vec())
        });
    })
}

#[test]
fn waiting_for_a_slow_server_is_response_time_and_not_service_time() {
    // One connection and 20 ms for each: 50 a second, while 200 are scheduled.
    let server = slow(Duration::from_millis(20));
    let run = measure(&open(server.url("/"), 200.0, 1, Duration::from_millis(300)));
    assert_eq!(run.accounting.good, 60, "each is followed to its answer");
    let times = &run.latency_us;
    let [response, service] = [times.response.unwrap(), times.service.unwrap()];
    // The last is scheduled at 295 ms, and the server needs 1.18 s for those before it.
    let (waiting, lateness) = (times.waiting.unwrap(), times.lateness.unwrap());
    assert!(response.max > 880_000.0, "{times:?}");
    assert!(waiting.max > 500_000.0, "{times:?}");
    assert!(waiting.max > 20.0 * lateness.p50.unwrap(), "{times:?}");
    assert!(service.p50.unwrap() < response.max / 2.0, "{times:?}");
    assert_ne!(run.verdict, Verdict::Valid, "{:?}", run.reasons);
}

#[test]
fn requests_past_their_deadline_are_shed_and_counted() {
    let server = slow(Duration::from_millis(20));
    let plan = open(server.url("/"), 200.0, 1, Duration::from_millis(300));
    let plan = scheduled(plan, |s| s.deadline = Some(Duration::from_millis(50)));
    let run = measure(&plan);
    let all = &run.accounting;
    assert!(all.shed > 0 && all.good > 0, "{all:?}");
    assert_eq!(all.issued, 60);
    let lag = run.latency_us.send_lag.unwrap();
    // Nothing was sent that was later, but for the time that the client itself took.
    assert_eq!(lag.count, all.good);
    assert_eq!(run.errors.count("shed"), all.shed);
}

#[test]
fn requests_without_a_connection_time_out() {
    // Answers nothing.
    let server = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(Duration::from_secs(60));
            None
        });
    });
    let plan = open(server.url("/"), 100.0, 2, Duration::from_millis(200)).with(|plan| {
        plan.request.timeout = Duration::from_millis(100);
        plan.load.threads = 1;
    });
    let run = measure(&plan);
    assert_eq!((run.accounting.issued, run.accounting.failed), (20, 20));
    assert_eq!(run.errors.count("timeout"), 20);
    assert_eq!(run.verdict, Verdict::Invalid);
}

#[test]
fn a_server_that_is_not_there_refuses_what_was_due() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    for keep_alive in [true, false] {
        let plan = open(url.clone(), 100.0, 2, Duration::from_millis(100)).with(|plan| {
            plan.request.keep_alive = keep_alive;
            plan.request.timeout = Duration::from_millis(50);
            plan.load.threads = 1;
        });
        let run = measure(&plan);
        assert_eq!(run.errors.count("connect_refused"), 10, "{:?}", run.errors);
        assert_eq!(run.verdict, Verdict::Invalid);
        assert!(
            !run.reasons.join(" ").contains("stationary"),
            "{:?}",
            run.reasons
        );
    }
}

#[test]
fn a_run_does_not_wait_for_requests_that_are_due_after_its_end() {
    let server = StubServer::fixed(HELLO);
    // The second request of the one thread is due an hour after the first.
    let plan = open(server.url("/"), 1.0 / 3600.0, 1, Duration::from_millis(50))
        .with(|plan| plan.load.threads = 1);
    assert_eq!(measure(&plan).accounting.good, 1);
    let counted = plan.with(|plan| plan.length.stop = Stop::Requests(1));
    assert_eq!(measure(&counted).accounting.good, 1);
}

#[test]
fn a_schedule_that_cannot_be_kept_is_refused() {
    for (rate, deadline) in [
        (0.0, None),
        (f64::NAN, None),
        (1e9, None),
        (1.0, Some(Duration::ZERO)),
    ] {
        let plan = open(
            "http://127.0.0.1:1/".into(),
            rate,
            1,
            Duration::from_secs(1),
        );
        let plan = scheduled(plan, |s| s.deadline = deadline);
        let stop = std::sync::atomic::AtomicBool::new(false);
        assert!(millrace_runs::run(&plan, None, &stop).is_err(), "{rate}");
    }
}
