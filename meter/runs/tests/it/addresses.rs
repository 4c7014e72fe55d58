//! Addresses of a server other than a name and TCP over IPv4.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use millrace_client::{Error, Plan};
use millrace_runs::run;

use crate::stub::{HELLO, StubServer, counted, measure, serve};

/// A server behind a Unix socket, for as long as it lives.
struct UnixServer {
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl UnixServer {
    fn start(handle: impl Fn(UnixStream) + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let handle = Arc::new(handle);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handle = Arc::clone(&handle);
                std::thread::spawn(move || handle(stream));
            }
        });
        Self { path, folder }
    }

    fn plan(&self, count: u64) -> Plan {
        through(&self.path, count)
    }
}

fn through(path: &Path, count: u64) -> Plan {
    counted("http://example.test/x".into(), 4, count)
        .with(|plan| plan.target.unix_socket = Some(path.to_owned()))
}

#[test]
fn a_unix_socket_carries_requests_for_any_host() {
    let heads = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&heads);
    let server = UnixServer::start(move |mut stream| {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            *seen.lock().unwrap() = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if stream.write_all(HELLO).is_err() {
                return;
            }
        }
    });
    for keep_alive in [true, false] {
        let run = measure(
            &server
                .plan(100)
                .with(|plan| plan.request.keep_alive = keep_alive),
        );
        assert_eq!(run.accounting.good, 100, "{run:?}");
    }
    let head = heads.lock().unwrap();
    assert!(
        head.starts_with("GET /x HTTP/1.1\r\nHost: example.test\r\n"),
        "{head}"
    );
    drop(server.folder);
}

#[test]
fn a_unix_socket_with_a_full_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let mut held = Vec::new();
    // Non-blocking connects until the queue is full: the next one would wait.
    let address = socket2::SockAddr::unix(&path).unwrap();
    loop {
        let socket = socket2::Socket::new(
            socket2::Domain::UNIX,
            socket2::Type::STREAM.nonblocking(),
            None,
        )
        .unwrap();
        if socket.connect(&address).is_err() {
            break;
        }
        held.push(socket);
        assert!(held.len() < 100_000, "the queue has no end");
    }
    let run = measure(&through(&path, 10));
    assert_eq!(run.errors.count("connect_refused"), 10, "{run:?}");
    assert!(run.error_examples["connect_refused"].contains("full"));
}

#[test]
fn a_path_that_is_no_socket_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [
        file,
        folder.path().join("missing"),
        folder.path().join("x".repeat(200)),
    ] {
        let error = run(&through(&path, 1), None, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, Error::Plan(_)) && text.contains(&path.display().to_string()),
            "{text}"
        );
    }
    let stale = folder.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let run = measure(&through(&stale, 5));
    assert_eq!(run.errors.count("connect_refused"), 5, "{run:?}");
}

#[test]
fn an_ipv6_literal_is_a_host() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        // A machine without IPv6 has nothing to test.
        return;
    }
    let server = StubServer::bind("[::1]:0", |stream| {
        serve(&stream, |_, head| {
            head.contains("Host: [::1]:").then(|| HELLO.to_vec())
        });
    });
    assert_eq!(
        measure(&counted(server.url("/"), 2, 50)).accounting.good,
        50
    );
}

#[test]
fn connections_go_elsewhere_and_the_host_stays() {
    let server = StubServer::start(|stream| {
        serve(&stream, |_, head| {
            head.contains("Host: example.test:99\r\n")
                .then(|| HELLO.to_vec())
        });
    });
    let plan = counted("http://example.test:99/".into(), 2, 50)
        .with(|plan| plan.target.connect_to = vec![server.address.to_string()]);
    assert_eq!(measure(&plan).accounting.good, 50);
}

#[test]
fn new_connections_go_to_several_addresses_in_turn() {
    let [first, second] = [0, 1].map(|_| StubServer::fixed(HELLO));
    let to = |connections, keep_alive, last: String| {
        counted("http://example.test/".into(), connections, 40).with(|plan| {
            plan.request.keep_alive = keep_alive;
            plan.target.connect_to = vec![first.address.to_string(), last];
        })
    };
    let accepted = |server: &StubServer| server.accepted.swap(0, Ordering::Relaxed);
    let run = measure(&to(8, true, second.address.to_string()));
    assert_eq!(run.accounting.good, 40);
    assert_eq!([accepted(&first), accepted(&second)], [4, 4]);
    // A connection for each request: more than are open at a time.
    let run = measure(&to(3, false, second.address.to_string()));
    assert_eq!(run.accounting.good, 40);
    assert_eq!([accepted(&first), accepted(&second)], [20, 20]);
    // A name goes on naming a server that is gone.
    let run = measure(&to(3, false, "127.0.0.1:1".to_owned()));
    let counts = (run.accounting.good, run.errors.count("connect_refused"));
    assert_eq!(counts, (20, 20), "{run:?}");
}

#[test]
fn more_connections_than_source_ports_are_refused_before_the_run() {
    let plan = counted("http://127.0.0.1:1/".into(), 70_000, 1);
    let error = run(&plan, None, &AtomicBool::new(false)).unwrap_err();
    // Which of the two is short first depends on the machine.
    assert!(
        matches!(error, Error::SourcePorts { .. } | Error::Descriptors { .. }),
        "{error}"
    );
}
