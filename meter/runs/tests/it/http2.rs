//! HTTP/2: many streams on a connection, flow control, and servers that go away, reset, or speak
//! another protocol.

use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use h2::Reason;
use millrace_client::{Pace, Plan, Process, Schedule, Stop, Think, Trust};
use millrace_runs::{Protocol, Run};
use millrace_stats::Verdict;

use crate::http2_stub::{END_STREAM, Frames, frames, sizes};
use crate::stub::{HELLO, StubServer, counted, measure};
use crate::tls_stub::{Authority, fixed};

/// Enough streams for every test.
const MANY: u32 = 100;
const DATA: u8 = 0;

fn plan(server: &StubServer, path: &str, depth: usize, count: u64) -> Plan {
    counted(server.url(path), 1, count).with(|plan| {
        plan.target.http2 = true;
        plan.load.depth = depth;
    })
}

fn answer_all(mut frames: Frames) {
    while let Some(stream) = frames.request() {
        frames.answer(stream);
    }
}

/// Waits for `group` requests before it answers them. A client that sends fewer at a time gets no
/// response; more at a time are counted.
fn in_groups(streams: u32, group: usize) -> (StubServer, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let server = frames(streams, move |mut frames| {
        let mut open = Vec::new();
        while let Some(stream) = frames.request() {
            open.push(stream);
            seen.fetch_max(open.len(), Ordering::Relaxed);
            if open.len() == group {
                // The last one first: streams do not wait for each other.
                open.drain(..)
                    .rev()
                    .for_each(|stream| frames.answer(stream));
            }
        }
    });
    (server, most)
}

#[test]
fn streams_share_a_connection() {
    let (server, most) = in_groups(MANY, 8);
    let run = measure(&plan(&server, "/", 8, 80));
    assert_eq!(
        (run.accounting.good, run.connections.opened),
        (80, 1),
        "{run:?}"
    );
    assert_eq!((run.protocol, run.connections.depth), (Protocol::Http2, 8));
    assert_eq!(most.load(Ordering::Relaxed), 8);
    assert!(
        run.bytes >= 80 * 10,
        "frame heads and fields: {}",
        run.bytes
    );
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["protocol"], "HTTP/2");
}

#[test]
fn no_more_streams_are_opened_than_the_server_allows() {
    let (server, most) = in_groups(3, 3);
    let run = measure(&plan(&server, "/", 8, 30));
    assert_eq!(
        (run.accounting.good, run.connections.depth),
        (30, 3),
        "{run:?}"
    );
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert!(
        run.notes.iter().any(|note| note.contains("allows 3")),
        "{:?}",
        run.notes
    );
}

#[test]
fn bodies_larger_than_the_windows_flow_both_ways() {
    const SIZE: usize = 2 << 20;
    let authority = Authority::new();
    let mut config = authority.usual();
    config.alpn_protocols = vec![b"h2".to_vec()];
    for config in [None, Some(config)] {
        let (trust, scheme) = match config {
            Some(_) => (Trust::File(authority.root()), "https"),
            None => (Trust::System, "http"),
        };
        let server = sizes(config);
        let run = measure(&plan(&server, "/", 2, 4).with(|plan| {
            plan.target.url = format!("{scheme}://{}/{SIZE}", server.address);
            plan.target.trust = trust;
            plan.request.method = "POST".into();
            plan.request.body = vec![b'y'; SIZE];
            plan.request.expect_body = Some("^x{1000}".into());
        }));
        assert_eq!(
            (run.accounting.good, run.connections.opened),
            (4, 1),
            "{run:?}"
        );
        assert!(run.bytes > 4 * SIZE as u64);
    }
}

#[test]
fn a_server_that_goes_away_gets_the_unseen_requests_on_another_connection() {
    let accepted = AtomicU64::new(0);
    let server = frames(MANY, move |mut frames| {
        if accepted.fetch_add(1, Ordering::Relaxed) > 0 {
            return answer_all(frames);
        }
        let streams: Vec<_> = (0..4).map_while(|_| frames.request()).collect();
        frames.go_away(streams[0]);
        frames.answer(streams[0]);
        assert_eq!(frames.request(), None);
    });
    let run = measure(&plan(&server, "/", 4, 20));
    assert_eq!(
        (run.accounting.good, run.accounting.resent),
        (20, 3),
        "{run:?}"
    );
    assert_eq!((run.connections.opened, run.errors.total()), (2, 0));
}

#[test]
fn a_reset_ends_one_stream_and_says_why() {
    let server = frames(MANY, |mut frames| {
        for number in 0.. {
            match frames.request() {
                Some(stream) if number % 2 == 0 => frames.reset(stream, Reason::REFUSED_STREAM),
                Some(stream) => frames.answer(stream),
                None => return,
            }
        }
    });
    let run = measure(&plan(&server, "/", 4, 20));
    assert_eq!(
        (run.accounting.good, run.errors.count("reset")),
        (10, 10),
        "{run:?}"
    );
    assert!(
        run.error_examples["reset"].contains("refused"),
        "{:?}",
        run.error_examples
    );
    assert_eq!(run.connections.opened, 1);
}

#[test]
fn data_must_be_as_long_as_announced() {
    for data in [&b"abc"[..], b"abcdefg"] {
        let server = frames(MANY, move |mut frames| {
            while let Some(stream) = frames.request() {
                frames.announce(stream, 5);
                frames.send(DATA, END_STREAM, stream, data);
            }
        });
        let run = measure(&plan(&server, "/", 1, 3));
        assert_eq!(run.errors.count("bad_response"), 3, "{:?}", run.errors);
        let example = &run.error_examples["bad_response"];
        assert!(example.contains("content-length"), "{example}");
    }
}

#[test]
fn a_stream_without_an_answer_is_given_up_alone() {
    let server = frames(MANY, |mut frames| {
        let _ = frames.request();
        answer_all(frames);
    });
    let run = measure(&plan(&server, "/", 2, 1).with(|plan| {
        plan.request.timeout = Duration::from_secs(3);
        plan.length.stop = Stop::Duration(Duration::from_millis(600));
    }));
    assert_eq!(
        (run.errors.count("timeout"), run.errors.total()),
        (1, 1),
        "{run:?}"
    );
    assert!(
        run.accounting.good > 10 && run.connections.opened == 1,
        "{run:?}"
    );
}

#[test]
fn a_connection_that_says_nothing_any_more_is_replaced() {
    let server = frames(MANY, |mut frames| while frames.request().is_some() {});
    let run = measure(
        &plan(&server, "/", 2, 8).with(|plan| plan.request.timeout = Duration::from_millis(100)),
    );
    assert_eq!(run.errors.count("timeout"), 8, "{run:?}");
    // Its settings may arrive during the timeout of the first requests; it is then silent during
    // that of the next.
    assert!(run.connections.opened >= 2, "{run:?}");
}

#[test]
fn a_close_in_the_middle_is_counted() {
    let server = frames(MANY, |mut frames| {
        if let Some(stream) = frames.request() {
            frames.announce(stream, 5);
            frames.send(DATA, 0, stream, b"abc");
        }
    });
    let run = measure(&plan(&server, "/", 1, 3));
    assert_eq!(run.errors.count("closed_early"), 3, "{:?}", run.errors);
}

/// Every request ends as `kind`, and the reason has this word.
fn all_end_as(kind: &str, word: &str, plan: &Plan) -> Run {
    let run = measure(plan);
    assert_eq!(
        run.errors.count(kind),
        run.accounting.issued,
        "{:?}",
        run.errors
    );
    let example = &run.error_examples[kind];
    assert!(example.contains(word), "{example}");
    assert_eq!((run.accounting.good, run.verdict), (0, Verdict::Invalid));
    run
}

#[test]
fn a_server_that_only_speaks_http1_is_named() {
    let server = StubServer::fixed(HELLO);
    all_end_as("bad_response", "HTTP/1.1", &plan(&server, "/", 1, 4));
    let closing = StubServer::start(|mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        // Unread bytes would make a reset of it.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    all_end_as("closed_early", "HTTP/1.1", &plan(&closing, "/", 1, 4));
    let silent = StubServer::start(|mut stream| {
        // Until the client closes.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let plan =
        plan(&silent, "/", 1, 2).with(|plan| plan.request.timeout = Duration::from_millis(100));
    all_end_as("timeout", "SETTINGS", &plan);
}

#[test]
fn over_tls_the_server_must_choose_h2() {
    let authority = Authority::new();
    for protocols in [vec![b"http/1.1".to_vec()], Vec::new()] {
        let mut config = authority.usual();
        config.alpn_protocols = protocols;
        let (server, _) = fixed(config, HELLO);
        let plan = plan(&server, "/", 1, 4).with(|plan| {
            plan.target.url = format!("https://{}/", server.address);
            plan.target.trust = Trust::File(authority.root());
        });
        all_end_as("tls", "ALPN", &plan);
    }
}

#[test]
fn bodies_and_statuses_are_judged() {
    let server = sizes(None);
    let good = plan(&server, "/5", 4, 20);
    let other = good
        .clone()
        .with(|plan| plan.request.expect_body = Some("^x{6}$".into()));
    assert_eq!(measure(&other).errors.count("bad_body"), 20);
    let unexpected = good.with(|plan| plan.request.expect = vec![304]);
    assert_eq!(measure(&unexpected).errors.count("status_other"), 20);
    let head = plan(&server, "/0", 4, 20).with(|plan| plan.request.method = "HEAD".into());
    assert_eq!(measure(&head).accounting.good, 20);
}

#[test]
fn connections_serve_their_number_of_requests() {
    let server = frames(MANY, answer_all);
    let plan = plan(&server, "/", 2, 20);
    let five = measure(
        &plan
            .clone()
            .with(|plan| plan.request.per_connection = Some(5)),
    );
    assert_eq!(
        (five.accounting.good, five.connections.opened),
        (20, 4),
        "{five:?}"
    );
    let one = measure(&plan.with(|plan| {
        plan.request.keep_alive = false;
        plan.load.depth = 1;
    }));
    assert_eq!(
        (one.accounting.good, one.connections.opened),
        (20, 20),
        "{one:?}"
    );
}

#[test]
fn an_open_loop_and_sessions_run_over_http2() {
    let server = frames(MANY, answer_all);
    let open = plan(&server, "/", 4, 200).with(|plan| {
        plan.load.schedule = Some(Schedule {
            rate: 500.0,
            process: Process::Constant,
            deadline: Some(Duration::from_secs(5)),
        });
        plan.load.connections = 2;
    });
    let run = measure(&open);
    assert_eq!(
        (run.accounting.good, run.errors.total()),
        (200, 0),
        "{run:?}"
    );
    let sessions = open.with(|plan| {
        plan.load.session = Some(4);
        plan.load.pace = Pace::Think(Think::Constant(Duration::from_millis(1)));
        plan.load.depth = 1;
    });
    let run = measure(&sessions);
    assert_eq!(run.accounting.good, run.accounting.issued, "{run:?}");
}
