//! Users who pause between requests, sessions that arrive at a rate, recorded arrivals, ramps.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millrace_client::{Pace, Plan, Schedule, Stop, Think};
use millrace_runs::{Run, run};
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, check, counted, measure, once, serve};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn timed(url: String, connections: usize, length: Duration) -> Plan {
    counted(url, connections, 1).with(|plan| plan.length.stop = Stop::Duration(length))
}

fn at(rate: f64) -> Option<Schedule> {
    Some(Schedule::constant(rate))
}

/// Checks a run of sessions of which `before` began in the warm-up, because those may end in the
/// measured part.
fn check_sessions(run: &Run, length: u64, before: u64) {
    let sessions = run.sessions.unwrap();
    let all = &run.accounting;
    assert!(
        sessions.completed + sessions.broken_off <= sessions.started + before,
        "{sessions:?}"
    );
    let most = sessions.started * length + before * (length - 1);
    assert!(all.issued <= most, "{all:?}");
}

#[test]
fn with_think_time_littles_law_counts_it() {
    let server = StubServer::fixed(HELLO);
    // The law reveals a client that is late because it has no core.
    assert!(once(|_| {
        let run = measure(
            &timed(server.url("/"), 20, ms(1_500))
                .with(|plan| plan.load.pace = Pace::Think(Think::Exponential(ms(5)))),
        );
        let law = run
            .little
            .expect("a run of hundreds of cycles can be checked");
        assert!((law.expected - 20.0).abs() < f64::EPSILON);
        let pauses = run.pauses.unwrap();
        let is_as_asked = (4_000.0..6_000.0).contains(&pauses.mean_us);
        // Twenty users with cycles of more than 5 ms.
        assert!(run.achieved_rate < 4_000.0 * 1.1, "{}", run.achieved_rate);
        assert_eq!(pauses.missed_cycles, 0);
        is_as_asked && (law.found - law.expected).abs() <= law.tolerance
    }));
}

#[test]
fn users_do_not_align() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let server = StubServer::start(move |stream| {
        serve(&stream, |number, _| {
            if number == 0 {
                log.lock().unwrap().push(Instant::now());
            }
            Some(HELLO.to_vec())
        });
    });
    measure(&timed(server.url("/"), 40, ms(250)).with(|plan| {
        plan.load.pace = Pace::Think(Think::Constant(ms(200)));
        plan.load.threads = 1;
    }));
    let mut times = times.lock().unwrap().clone();
    times.sort_unstable();
    let spread = *times.last().unwrap() - times[0];
    assert!(spread > ms(100), "{spread:?}");
}

#[test]
fn a_cycle_counts_from_the_send_and_what_is_late_is_missed() {
    let fast = StubServer::fixed(HELLO);
    let cycles = || {
        let plan = timed(fast.url("/"), 4, ms(600)).with(|plan| {
            plan.load.pace = Pace::Cycle(ms(20));
            plan.load.threads = 1;
        });
        measure(&plan).accounting.good
    };
    // Thirty each, less what the beginning takes, and never more.
    assert!(once(|_| {
        let good = cycles();
        assert!(good <= 124, "{good}");
        good >= 60
    }));
    let slow = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(ms(30));
            Some(HELLO.to_vec())
        });
    });
    let run =
        measure(&counted(slow.url("/"), 2, 20).with(|plan| plan.load.pace = Pace::Cycle(ms(20))));
    assert_eq!(run.accounting.good, 20);
    assert_eq!(run.pauses.unwrap().missed_cycles, 20);
}

#[test]
fn many_users_make_exactly_the_planned_requests() {
    let server = StubServer::fixed(HELLO);
    let run = measure(
        &counted(server.url("/"), 300, 1_000)
            .with(|plan| plan.load.pace = Pace::Think(Think::Uniform(ms(100), ms(300)))),
    );
    assert_eq!((run.accounting.good, run.errors.total()), (1_000, 0));
}

#[test]
fn each_session_makes_its_requests() {
    let server = StubServer::fixed(HELLO);
    for keep_alive in [true, false] {
        let plan = timed(server.url("/"), 32, ms(500)).with(|plan| {
            plan.load.schedule = at(100.0);
            plan.load.session = Some(4);
            plan.load.pace = Pace::Think(Think::Constant(ms(5)));
            plan.request.keep_alive = keep_alive;
            plan.length.warmup = ms(100);
        });
        let run = measure(&plan);
        let before = 10;
        check_sessions(&run, 4, before);
        let (sessions, all) = (run.sessions.unwrap(), run.accounting);
        assert_eq!(
            (sessions.offered_rate, run.offered_rate),
            (Some(100.0), Some(400.0))
        );
        assert_eq!((sessions.started, sessions.broken_off), (50, 0));
        // Requests due after the end are not made; requests of sessions from the warm-up are. Ended
        // sessions, except the earlier ones, made all their requests here; each other session made
        // at least one.
        let (whole, started) = (sessions.completed.saturating_sub(before), sessions.started);
        assert!(
            whole > 0 && all.good >= 4 * whole + (started - whole.min(started)),
            "{run:#?}"
        );
        assert_eq!((all.issued, all.abandoned), (all.good, 0));
    }
}

#[test]
fn a_session_ends_with_the_request_that_fails() {
    // Every second answer of a connection is bad.
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| {
            Some(if number % 2 == 0 {
                HELLO.to_vec()
            } else {
                b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec()
            })
        });
    });
    let plan = timed(server.url("/"), 8, ms(200)).with(|plan| {
        plan.load.schedule = at(200.0);
        plan.load.session = Some(5);
    });
    let run = measure(&plan);
    check_sessions(&run, 5, 0);
    let (sessions, all) = (run.sessions.unwrap(), run.accounting);
    assert_eq!(sessions.started, 40);
    let bad = run.errors.count("status_5xx");
    assert_eq!((sessions.broken_off, sessions.completed), (bad, 0));
    // A good request, a bad one, and three that were not made; a session whose second was due after
    // the end has only the first.
    assert!(bad > 0 && all.abandoned >= 3 * bad, "{all:?}");
    assert_eq!(all.issued, 5 * bad + (40 - bad), "{all:?}");
    assert_eq!(all.answered, all.good + bad);
    assert_ne!(run.verdict, Verdict::Valid);
}

#[test]
fn a_server_that_closes_or_freezes_loses_no_request() {
    let closing = StubServer::start(|stream| {
        serve(&stream, |number, _| (number == 0).then(|| HELLO.to_vec()));
    });
    let frozen = StubServer::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        std::thread::park_timeout(Duration::from_secs(60));
    });
    for (server, good) in [(&closing, true), (&frozen, false)] {
        for keep_alive in [true, false] {
            let run = measure(&timed(server.url("/"), 4, ms(300)).with(|plan| {
                plan.load.schedule = at(100.0);
                plan.load.session = Some(3);
                plan.request.timeout = ms(100);
                plan.request.keep_alive = keep_alive;
                plan.load.pace = Pace::Think(Think::Constant(ms(2)));
            }));
            check_sessions(&run, 3, 0);
            let all = run.accounting;
            assert_eq!(all.good > 0, good, "{all:?}");
            assert_eq!(all.in_flight, 0);
            if !good {
                assert_eq!(all.abandoned, 2 * all.failed, "{all:?}");
                assert_eq!((all.issued, run.sessions.unwrap().started), (90, 30));
                assert_eq!(run.verdict, Verdict::Invalid);
            }
        }
    }
}

#[test]
fn sessions_past_their_deadline_are_shed_whole() {
    let slow = StubServer::start(|stream| {
        serve(&stream, |_, _| {
            std::thread::park_timeout(ms(20));
            Some(HELLO.to_vec())
        });
    });
    let run = measure(&timed(slow.url("/"), 1, ms(300)).with(|plan| {
        plan.load.schedule = at(200.0).map(|schedule| Schedule {
            deadline: Some(ms(50)),
            ..schedule
        });
        plan.load.session = Some(2);
    }));
    let all = run.accounting;
    assert!(all.shed > 0 && all.good > 0, "{all:?}");
    assert_eq!(
        all.abandoned, all.shed,
        "one more request for each that was shed"
    );
    assert_eq!(run.sessions.unwrap().started, 60);
}

#[test]
fn users_without_a_connection_are_counted() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    for schedule in [None, at(100.0)] {
        let session = schedule.as_ref().map(|_| 2);
        let run = measure(&timed(url.clone(), 2, ms(200)).with(|plan| {
            plan.load.pace = Pace::Think(Think::Constant(ms(1)));
            plan.load.schedule = schedule;
            plan.load.session = session;
            plan.request.timeout = ms(50);
        }));
        assert!(run.errors.count("connect_refused") > 0, "{:?}", run.errors);
        assert_eq!((run.accounting.good, run.verdict), (0, Verdict::Invalid));
    }
}

#[test]
fn ctrl_c_during_a_long_pause_ends_the_run_at_once() {
    let server = StubServer::fixed(HELLO);
    let plan = timed(server.url("/"), 3, Duration::from_secs(3_600))
        .with(|plan| plan.load.pace = Pace::Think(Think::Constant(Duration::from_secs(3_600))));
    let stop = AtomicBool::new(true);
    let run = run(&plan, None, &stop).unwrap();
    check(&run);
    assert_eq!(run.accounting.in_flight, 0);
}

#[test]
fn recorded_arrivals_are_replayed_at_their_times_and_end_with_the_file() {
    let server = StubServer::fixed(HELLO);
    let text: String = (0..200)
        .map(|n| format!("{}.{:03}\n", n / 100, n % 100 * 10))
        .collect();
    let times = Schedule::times_from(&text).unwrap();
    for (speed, threads) in [(5.0, 1), (10.0, 2)] {
        let run = measure(&timed(server.url("/"), 4, Duration::MAX).with(|plan| {
            plan.load.schedule = Some(Schedule::recorded(&times, speed).unwrap());
            plan.load.threads = threads;
        }));
        assert_eq!((run.accounting.issued, run.accounting.good), (200, 200));
        let offered = run.offered_rate.unwrap();
        assert!((offered / (100.0 * speed) - 1.0).abs() < 0.02, "{offered}");
        assert!(
            (run.duration_s * speed / 2.0 - 1.0).abs() < 0.02,
            "{}",
            run.duration_s
        );
    }
    // Or with the duration, if that is shorter.
    let run = measure(
        &timed(server.url("/"), 4, ms(305))
            .with(|plan| plan.load.schedule = Some(Schedule::recorded(&times, 1.0).unwrap())),
    );
    assert_eq!(run.accounting.issued, 31);
    // A count that the recording does not reach ends with the recording too.
    let run = measure(
        &counted(server.url("/"), 4, 1_000)
            .with(|plan| plan.load.schedule = Some(Schedule::recorded(&times, 20.0).unwrap())),
    );
    assert_eq!(run.accounting.issued, 200);
}

#[test]
fn a_ramp_opens_connections_one_after_the_other_and_raises_the_rate() {
    let server = StubServer::fixed(HELLO);
    let first = AtomicU64::new(u64::MAX);
    for pace in [Pace::AtOnce, Pace::Think(Think::Constant(ms(2)))] {
        let plan = timed(server.url("/"), 8, ms(200)).with(|plan| {
            plan.length.ramp_up = ms(400);
            plan.load.pace = pace;
        });
        let before = server.accepted.load(Ordering::Relaxed);
        let seen = |_: &millrace_client::Progress| {
            let open = server.accepted.load(Ordering::Relaxed) - before;
            first.fetch_min(open, Ordering::Relaxed);
        };
        let mut seen = seen;
        let run = run(&plan, Some(&mut seen), &AtomicBool::new(false)).unwrap();
        check(&run);
        assert_eq!(run.connections.opened, 8);
        assert!((run.warmup_s - 0.4).abs() < 1e-9);
        assert!(
            first.load(Ordering::Relaxed) < 8,
            "after a fifth of a second some were missing"
        );
    }
    let run = measure(&timed(server.url("/"), 8, ms(300)).with(|plan| {
        plan.load.schedule = at(1_000.0);
        plan.length.ramp_up = ms(300);
    }));
    assert_eq!(run.accounting.issued, 300, "the ramp is not measured");
}
