//! Well-behaved servers: all that was requested happens, and nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millrace_client::{Error, Order, Plan, Stop};
use millrace_runs::run;
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, check, counted, measure, serve};

#[test]
fn a_counted_run_counts_exactly() {
    let server = StubServer::fixed(HELLO);
    let run = measure(&counted(server.url("/"), 4, 1000));
    assert_eq!(
        (run.requests, run.accounting.good, run.errors.total()),
        (1000, 1000, 0)
    );
    assert_eq!(run.bytes, 1000 * HELLO.len() as u64);
    assert_eq!(
        (
            run.connections.asked,
            run.connections.established,
            run.connections.opened
        ),
        (4, 4, 4)
    );
    assert_eq!(server.accepted.load(Ordering::Relaxed), 4);
    assert_eq!((run.offered_rate, run.latency_us.response), (None, None));
    let service = run.latency_us.service.unwrap();
    assert!(service.p50.is_some() && service.p99.is_some() && service.p999.is_none());
    assert!(run.achieved_rate > 0.0 && run.client.cpu_us_per_request.unwrap() > 0.0);
    assert_ne!(run.verdict, Verdict::Invalid);
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let server = StubServer::fixed(HELLO);
    let run =
        measure(&counted(server.url("/"), 3, 100).with(|plan| plan.request.keep_alive = false));
    assert_eq!((run.requests, run.errors.total()), (100, 0));
    assert_eq!(
        (
            run.connections.opened,
            server.accepted.load(Ordering::Relaxed)
        ),
        (100, 100)
    );
}

#[test]
fn more_connections_than_requests_is_fine() {
    let server = StubServer::fixed(HELLO);
    for keep_alive in [true, false] {
        let run = measure(
            &counted(server.url("/"), 20, 5).with(|plan| plan.request.keep_alive = keep_alive),
        );
        assert_eq!((run.requests, run.errors.total()), (5, 0));
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    // Each response is as long as its path says: a mix-up would break the framing.
    let server = StubServer::start(|stream| {
        serve(&stream, |_, head| {
            let length: usize = head["GET /".len()..]
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            let mut answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
            answer.resize(answer.len() + length, b'x');
            Some(answer)
        });
    });
    let urls = vec!["/1".to_owned(), "/10".to_owned(), "/100000".to_owned()];
    let run = measure(&counted(server.url("/"), 2, 300).with(|plan| {
        plan.load.depth = 8;
        plan.request.urls = urls;
    }));
    assert_eq!((run.requests, run.errors.total()), (300, 0));
    assert_eq!(run.bytes, 100 * (39 + 49 + 100_043));
}

#[test]
fn a_server_may_close_after_any_answer_and_pipelined_requests_are_sent_again() {
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| match number {
            0..4 => Some(HELLO.to_vec()),
            4 => {
                Some(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec())
            }
            _ => None,
        });
    });
    let run = measure(&counted(server.url("/"), 2, 100).with(|plan| plan.load.depth = 4));
    assert_eq!((run.requests, run.errors.total()), (100, 0));
    assert!(
        run.accounting.resent > 0 && run.connections.opened >= 20,
        "{run:?}"
    );
}

#[test]
fn urls_are_taken_in_order_or_at_random() {
    let seen = Arc::new(Mutex::new(BTreeMap::<String, u64>::new()));
    let log = Arc::clone(&seen);
    let server = StubServer::start(move |stream| {
        serve(&stream, |_, head| {
            let target = head.split(' ').nth(1).unwrap().to_owned();
            *log.lock().unwrap().entry(target).or_default() += 1;
            Some(HELLO.to_vec())
        });
    });
    let urls: Vec<String> = (0..10).map(|n| format!("/{n}")).collect();
    measure(&counted(server.url("/"), 3, 100).with(|plan| plan.request.urls = urls.clone()));
    let counts = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [10; 10]);
    let random = counted(server.url("/"), 3, 100).with(|plan| {
        plan.request.urls = urls;
        plan.request.order = Order::Random(1);
    });
    measure(&random);
    let counts = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(counts.values().sum::<u64>(), 100);
    measure(&random.with(|plan| plan.load.connections = 1));
    assert_eq!(
        *seen.lock().unwrap(),
        counts,
        "a seed chooses the same targets for any number of threads"
    );
}

#[test]
fn bodies_of_every_framing_are_read() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nyou\r\n0\r\nT: v\r\n\r\n"[..],
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let server = StubServer::fixed(answer);
        let run = measure(&counted(server.url("/"), 2, 50));
        assert_eq!((run.requests, run.errors.total(), run.bytes), (50, 0, 50 * answer.len() as u64));
        assert_eq!(run.connections.opened, 2);
    }
    let until_close: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nall there is";
    let server = StubServer::start(move |stream| {
        serve(&stream, |number, _| {
            (number == 0).then(|| until_close.to_vec())
        });
    });
    let run =
        measure(&counted(server.url("/"), 2, 50).with(|plan| plan.request.keep_alive = false));
    assert_eq!(
        (run.requests, run.errors.total(), run.bytes),
        (50, 0, 50 * until_close.len() as u64)
    );
}

#[test]
fn head_and_post_are_sent_and_understood() {
    let server = StubServer::fixed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let run =
        measure(&counted(server.url("/"), 1, 20).with(|plan| plan.request.method = "HEAD".into()));
    assert_eq!((run.requests, run.errors.total()), (20, 0));
    let server = StubServer::fixed(HELLO);
    // More than the buffers between client and server hold: the body goes out in pieces.
    let body = vec![b'x'; 8_000_000];
    let run = measure(&counted(server.url("/"), 2, 6).with(|plan| {
        plan.request.method = "POST".into();
        plan.request.body = body;
    }));
    assert_eq!((run.requests, run.errors.total()), (6, 0));
}

#[test]
fn statuses_are_errors_unless_expected() {
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| {
            let status = [200, 404, 500, 302][number as usize % 4];
            Some(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").into_bytes())
        });
    });
    let plan = counted(server.url("/"), 1, 40);
    let run = measure(&plan);
    assert_eq!((run.requests, run.accounting.good), (40, 20));
    assert_eq!(
        (
            run.errors.count("status_4xx"),
            run.errors.count("status_5xx"),
            run.errors.total()
        ),
        (10, 10, 20)
    );
    assert_eq!(run.verdict, Verdict::Suspect);
    let run = measure(&plan.with(|plan| plan.request.expect = vec![404]));
    assert_eq!(
        (
            run.accounting.good,
            run.errors.count("status_other"),
            run.errors.count("status_5xx")
        ),
        (10, 20, 10)
    );
}

#[test]
fn a_timed_run_has_its_length_and_a_warm_up_of_its_own() {
    let server = StubServer::fixed(HELLO);
    let (warmup, length) = (Duration::from_millis(50), Duration::from_millis(300));
    let run = measure(&counted(server.url("/"), 2, 1).with(|plan| {
        plan.length.stop = Stop::Duration(length);
        plan.length.warmup = warmup;
    }));
    assert!((run.duration_s - 0.3).abs() < 1e-9 && (run.warmup_s - 0.05).abs() < 1e-9);
    assert!(run.requests > 0 && run.accounting.in_flight == 0, "{run:?}");
    assert!(run.series.points.len() >= 2);
}

#[test]
fn ipv6_works() {
    // Where the machine has no IPv6 there is nothing to test.
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let server = StubServer::bind("[::1]:0", |stream| {
        serve(&stream, |_, _| Some(HELLO.to_vec()));
    });
    assert!(server.url("/").contains("[::1]"));
    assert_eq!(
        measure(&counted(server.url("/"), 2, 10)).accounting.good,
        10
    );
}

#[test]
fn a_stop_ends_a_run_and_keeps_what_there_is() {
    let server = StubServer::fixed(HELLO);
    let stop = AtomicBool::new(false);
    let mut calls = 0;
    let mut progress = |progress: &millrace_client::Progress| {
        calls += 1;
        if progress.finished > 0 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let plan = counted(server.url("/"), 2, 1)
        .with(|plan| plan.length.stop = Stop::Duration(Duration::from_secs(3600)));
    let run = run(&plan, Some(&mut progress), &stop).unwrap();
    check(&run);
    assert!(calls > 0 && run.requests > 0 && run.duration_s < 3600.0);
    assert_eq!(run.verdict, Verdict::Suspect);
    assert!(
        run.reasons[0].contains("stopped before its end"),
        "{:?}",
        run.reasons
    );
}

#[test]
fn a_bad_plan_is_refused_before_anything_is_sent() {
    let plan = counted("http://127.0.0.1:1/".into(), 1, 1);
    let refused = |plan: &Plan| run(plan, None, &AtomicBool::new(false)).unwrap_err();
    let error = refused(
        &plan
            .clone()
            .with(|plan| plan.target.url = "ftp://localhost/".into()),
    );
    assert!(
        matches!(&error, Error::Plan(why) if why.contains("scheme")),
        "{error}"
    );
    let error = refused(&plan.clone().with(|plan| plan.load.connections = 999_999));
    assert!(
        matches!(error, Error::Descriptors { .. }) && error.to_string().contains("ulimit"),
        "{error}"
    );
    let error = refused(
        &plan
            .clone()
            .with(|plan| plan.target.url = "http://no-such-name.invalid/".into()),
    );
    assert!(matches!(error, Error::Resolve { .. }), "{error}");
    let error = refused(&plan.with(|plan| {
        plan.load.cores = Some(vec![0, 1023]);
        plan.load.connections = 2;
        plan.load.threads = 2;
    }));
    assert!(error.to_string().contains("core 1023"), "{error}");
}

#[test]
fn a_thread_can_be_pinned() {
    let server = StubServer::fixed(HELLO);
    let core = (0..1024)
        .find(|&core| {
            rustix::thread::sched_getaffinity(None)
                .unwrap()
                .is_set(core)
        })
        .unwrap();
    let run = measure(&counted(server.url("/"), 2, 10).with(|plan| {
        plan.load.cores = Some(vec![core]);
        plan.load.threads = 0;
    }));
    assert_eq!((run.client.threads, run.requests), (1, 10));
}

#[test]
fn a_connection_is_replaced_when_it_has_served_its_number() {
    for depth in [1, 4] {
        let server = StubServer::fixed(HELLO);
        let plan = counted(server.url("/"), 1, 100).with(|plan| {
            plan.request.per_connection = Some(10);
            plan.load.depth = depth;
            plan.load.threads = 1;
        });
        let run = measure(&plan);
        assert_eq!((run.accounting.good, run.accounting.resent), (100, 0));
        assert_eq!(server.accepted.load(Ordering::Relaxed), 10, "{depth}");
    }
}
