//! `https://`: against servers that speak TLS, and against some that do it badly or not at all.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use millrace_client::{Plan, Stop, Trust};
use millrace_runs::Run;
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, counted, measure};
use crate::tls_stub::{Authority, TlsStream, fixed, start};

fn secure(server: &StubServer, authority: &Authority, count: u64) -> Plan {
    counted(format!("https://{}/", server.address), 4, count)
        .with(|plan| plan.target.trust = Trust::File(authority.root()))
}

/// Every request ends as `kind`, for the reason that is named.
fn all_end_as(kind: &str, word: &str, plan: &Plan) -> Run {
    let run = measure(plan);
    assert_eq!(
        run.errors.count(kind),
        run.accounting.issued,
        "{:?}",
        run.errors
    );
    assert!(
        run.error_examples[kind].contains(word),
        "{:?}",
        run.error_examples
    );
    assert_eq!((run.accounting.good, run.verdict), (0, Verdict::Invalid));
    run
}

#[test]
fn both_versions_of_tls_are_spoken() {
    let authority = Authority::new();
    for version in rustls::ALL_VERSIONS {
        let config = authority.sign("127.0.0.1", &[version], |_| ());
        let (server, _) = fixed(config, HELLO);
        let run = measure(&secure(&server, &authority, 500));
        assert_eq!(
            (run.accounting.good, run.connections.opened),
            (500, 4),
            "{run:?}"
        );
        assert_eq!(run.bytes, 500 * HELLO.len() as u64);
    }
}

#[test]
fn connections_are_resumed_and_end_with_a_goodbye() {
    let authority = Authority::new();
    let (server, seen) = fixed(authority.usual(), HELLO);
    let plan = secure(&server, &authority, 20).with(|plan| {
        plan.request.per_connection = Some(1);
        plan.load.connections = 1;
    });
    let run = measure(&plan);
    assert_eq!(run.accounting.good, 20, "{run:?}");
    let resumed = seen.resumed.lock().unwrap();
    let count = resumed.iter().filter(|&&resumed| resumed).count();
    assert!(!resumed[0] && count >= 15, "{resumed:?}");
    let goodbyes = seen.goodbyes.lock().unwrap();
    assert!(goodbyes.iter().all(|&goodbye| goodbye), "{goodbyes:?}");
    // The first connection asks the server for its answer, before the run.
    let counted = run.latency_us.resumed_handshake.unwrap().count;
    assert!(counted >= 15, "{counted}, {resumed:?}");
}

#[test]
fn full_handshakes_can_be_asked_for() {
    let authority = Authority::new();
    let (server, seen) = fixed(authority.usual(), HELLO);
    let plan = secure(&server, &authority, 20).with(|plan| {
        plan.request.per_connection = Some(1);
        plan.load.connections = 1;
        plan.target.full_handshakes = true;
    });
    let run = measure(&plan);
    assert_eq!(run.accounting.good, 20, "{run:?}");
    assert!(!seen.resumed.lock().unwrap().contains(&true));
    let latency = run.latency_us;
    assert!(latency.full_handshake.unwrap().count >= 20);
    assert_eq!(latency.resumed_handshake, None);
}

#[test]
fn pipelined_requests_share_records() {
    let authority = Authority::new();
    let (server, _) = fixed(authority.usual(), HELLO);
    let plan = secure(&server, &authority, 2_000).with(|plan| plan.load.depth = 16);
    assert_eq!(measure(&plan).accounting.good, 2_000);
}

#[test]
fn large_requests_and_answers_come_whole() {
    const SIZE: usize = 1 << 20;
    let authority = Authority::new();
    let server = start(authority.usual(), |mut stream: TlsStream| {
        let mut request = vec![0; SIZE];
        let answer = vec![b'x'; SIZE];
        let mut head = Vec::new();
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            head.push(byte[0]);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                stream.read_exact(&mut request).unwrap();
                assert!(request.iter().all(|&byte| byte == b'y'));
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n").unwrap();
                stream.write_all(&answer).unwrap();
            }
        }
    });
    let plan = secure(&server, &authority, 4).with(|plan| {
        plan.request.method = "POST".into();
        plan.request.body = vec![b'y'; SIZE];
        plan.load.connections = 2;
        plan.request.expect_body = Some("^x{1000}".into());
    });
    let run = measure(&plan);
    assert!(
        run.accounting.good == 4 && run.bytes > 4 * SIZE as u64,
        "{run:?}"
    );
}

#[test]
fn certificates_that_are_not_good_are_refused_and_named() {
    let authority = Authority::new();
    let other = Authority::new();
    let wrong_name = authority.sign("127.0.0.2", rustls::ALL_VERSIONS, |_| ());
    let expired = authority.sign("127.0.0.1", rustls::ALL_VERSIONS, |params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    });
    let early = authority.sign("127.0.0.1", rustls::ALL_VERSIONS, |params| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1);
        params.not_after = rcgen::date_time_ymd(4001, 1, 1);
    });
    for (config, word) in [
        (wrong_name, "not valid for this name"),
        (expired, "has expired"),
        (early, "not valid yet"),
        (other.usual(), "no trusted authority"),
    ] {
        let (server, _) = fixed(config, HELLO);
        let plan = secure(&server, &authority, 10);
        let run = all_end_as("tls", word, &plan);
        assert_eq!(run.connections.established, 0);
        let blind = plan.with(|plan| plan.target.trust = Trust::Anyone);
        assert_eq!(measure(&blind).accounting.good, 10, "{word}");
    }
}

#[test]
fn the_url_names_the_server_wherever_connections_go() {
    let authority = Authority::new();
    let config = authority.sign("example.test", rustls::ALL_VERSIONS, |_| ());
    let (server, seen) = fixed(config, HELLO);
    let plan = secure(&server, &authority, 10).with(|plan| {
        plan.target.url = "https://example.test:4433/".into();
        plan.target.connect_to = vec![server.address.to_string()];
    });
    assert_eq!(measure(&plan).accounting.good, 10);
    let names = seen.names.lock().unwrap();
    assert!(
        names
            .iter()
            .all(|name| name.as_deref() == Some("example.test"))
    );
}

#[test]
fn a_server_without_tls_is_distinguished_from_a_bad_certificate() {
    let authority = Authority::new();
    for (answer, word) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "not TLS"),
        (&[0xff; 100], "not TLS"),
        (b"\x16\x03\x03\x40\x00", "closed"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "no parameters in common"),
        (b"", "closed"),
    ] {
        let server = StubServer::start(move |mut stream| {
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello);
            let _ = stream.write_all(answer);
        });
        all_end_as("tls", word, &secure(&server, &authority, 10));
    }
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let authority = Authority::new();
    let server = StubServer::start(|mut stream| {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    });
    let plan = secure(&server, &authority, 4)
        .with(|plan| plan.request.timeout = Duration::from_millis(100));
    all_end_as("timeout", "handshake", &plan);
}

/// Reads a request and writes `answer`; then closes with or without `close_notify`.
fn closing(authority: &Authority, answer: &'static [u8], goodbye: bool) -> StubServer {
    start(authority.usual(), move |mut stream: TlsStream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(answer);
        if goodbye {
            stream.conn.send_close_notify();
        }
        let _ = stream.flush();
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        while stream.sock.read(&mut request).is_ok_and(|count| count > 0) {}
    })
}

#[test]
fn a_body_until_the_end_must_end_with_a_goodbye() {
    const UNTIL: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let authority = Authority::new();
    let server = closing(&authority, UNTIL, true);
    let run = measure(&secure(&server, &authority, 8));
    assert_eq!(run.accounting.good, 8, "{run:?}");
    let server = closing(&authority, UNTIL, false);
    all_end_as(
        "closed_early",
        "close_notify",
        &secure(&server, &authority, 8),
    );
}

#[test]
fn a_close_without_goodbye_after_a_whole_answer_is_no_error() {
    let authority = Authority::new();
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    for goodbye in [true, false] {
        let server = closing(&authority, LAST, goodbye);
        let run = measure(&secure(&server, &authority, 8));
        assert_eq!(run.accounting.good, 8, "{run:?}");
    }
}

#[test]
fn a_close_in_the_middle_of_a_body_is_counted() {
    const CUT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello";
    let authority = Authority::new();
    for goodbye in [true, false] {
        let server = closing(&authority, CUT, goodbye);
        let run = measure(&secure(&server, &authority, 8));
        assert_eq!(run.errors.count("closed_early"), 8, "{run:?}");
    }
}

#[test]
fn a_record_that_was_tampered_with_is_counted() {
    let authority = Authority::new();
    let server = start(authority.usual(), |mut stream: TlsStream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.sock.write_all(b"\x17\x03\x03\x00\x20");
        let _ = stream.sock.write_all(&[7; 32]);
        while stream.sock.read(&mut request).is_ok_and(|count| count > 0) {}
    });
    all_end_as("tls", "decrypt", &secure(&server, &authority, 8));
}

#[test]
fn records_that_come_in_single_bytes_are_put_together() {
    let authority = Authority::new();
    let server = start(authority.usual(), |mut stream: TlsStream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|count| count > 0) {
            let mut sealed = Vec::new();
            stream.conn.writer().write_all(HELLO).unwrap();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut sealed).unwrap();
            }
            for byte in sealed {
                let _ = stream.sock.write_all(&[byte]);
            }
        }
    });
    let run = measure(&secure(&server, &authority, 50));
    assert_eq!(run.accounting.good, 50, "{run:?}");
}

#[test]
fn an_open_loop_runs_over_tls() {
    let authority = Authority::new();
    let (server, _) = fixed(authority.usual(), HELLO);
    let plan = secure(&server, &authority, 1).with(|plan| {
        plan.load.schedule = Some(millrace_client::Schedule::new(
            1_000.0,
            millrace_client::Process::Constant,
        ));
        plan.length.stop = Stop::Duration(Duration::from_millis(300));
    });
    let run = measure(&plan);
    assert_eq!(run.accounting.good, 300, "{run:?}");
}

#[test]
fn an_open_loop_says_why_no_handshake_succeeds() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (server, _) = fixed(other.usual(), HELLO);
    let plan = secure(&server, &authority, 1).with(|plan| {
        plan.load.schedule = Some(millrace_client::Schedule::new(
            200.0,
            millrace_client::Process::Constant,
        ));
        plan.request.timeout = Duration::from_secs(2);
        plan.length.stop = Stop::Duration(Duration::from_millis(200));
    });
    all_end_as("tls", "no trusted authority", &plan);
}

#[test]
fn unreadable_roots_end_the_run_before_it_begins() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let (empty, garbage) = (folder.path().join("empty"), folder.path().join("garbage"));
    std::fs::write(&empty, "no certificate\n").unwrap();
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&garbage, pem).unwrap();
    let (server, _) = fixed(authority.usual(), HELLO);
    for path in [empty, garbage, folder.path().join("missing")] {
        let plan = secure(&server, &authority, 1)
            .with(|plan| plan.target.trust = Trust::File(path.clone()));
        let stop = std::sync::atomic::AtomicBool::new(false);
        let error = millrace_runs::run(&plan, None, &stop).unwrap_err();
        let name = path.display().to_string();
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn a_connection_for_each_request_of_an_open_loop_waits_for_nothing_but_the_handshake() {
    let authority = Authority::new();
    for version in rustls::ALL_VERSIONS {
        let mut config = authority.sign("127.0.0.1", &[version], |_| ());
        // After the handshake the server has nothing to say.
        config.send_tls13_tickets = 0;
        let (server, _) = fixed(config, HELLO);
        let run = measure(&secure(&server, &authority, 1).with(|plan| {
            plan.load.schedule = Some(millrace_client::Schedule::new(
                100.0,
                millrace_client::Process::Constant,
            ));
            plan.request.keep_alive = false;
            plan.length.stop = Stop::Duration(Duration::from_millis(200));
            plan.request.timeout = Duration::from_secs(30);
        }));
        assert_eq!(
            run.accounting.good, 20,
            "{:?} {:?}",
            version.version, run.errors
        );
    }
}

#[test]
fn a_workload_sees_the_goodbye_that_comes_with_the_answer() {
    const UNTIL: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nuntil the end";
    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let authority = Authority::new();
    for answer in [UNTIL, WHOLE] {
        // `close_notify` arrives in one piece with the response, and the socket stays open until
        // the client closes it.
        let server = start(authority.usual(), move |mut stream: TlsStream| {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.conn.writer().write_all(answer);
            stream.conn.send_close_notify();
            let mut sealed = Vec::new();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut sealed).unwrap();
            }
            let _ = stream.sock.write_all(&sealed);
            while stream.sock.read(&mut request).is_ok_and(|count| count > 0) {}
        });
        let plan = secure(&server, &authority, 8)
            .with(|plan| plan.request.timeout = Duration::from_secs(30));
        let text = "[[class]]\nname = \"all\"\n[[class.step]]\ntarget = \"/\"\n";
        let workload =
            millrace_client::Workload::parse(text, std::path::Path::new("plan.toml"), &plan)
                .unwrap();
        let run =
            measure(&plan.with(|plan| plan.request.workload = Some(std::sync::Arc::new(workload))));
        assert_eq!(run.accounting.good, 8, "{:?}", run.errors);
    }
}
