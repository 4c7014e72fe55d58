//! The budget of system calls of a hit: one that receives, one that sends, and one wait for the
//! next.
//!
//! strace counts the calls on the thread that serves, between two requests that mark the beginning
//! and the end. The names of the calls are left open (`recv` or `read`, `sendmsg` or `writev`), so
//! that the test does not depend on one way to drive a socket.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use lab_testkit::http2::{Http2Connection, head_of};
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Server, site_with, text, write};

const HITS: usize = 200;
/// A wait is one call. With `server.spin` it may be many, on an idle core.
const ASLEEP: &str = "server.spin = false\n";
/// Requests that are sent at once.
const DEPTH: usize = 16;
const BATCHES: usize = 200;
/// Files that `sendfile` sends, held together…
const CORKED_KIB: [usize; 2] = [100, 128];
/// …and not: of one round, of many, and of many with a rest that would be held together alone.
const UNCORKED_KIB: [usize; 3] = [64, 256, 2048 + 100];

/// Calls that take bytes from a socket.
const RECEIVE: [&str; 5] = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that give bytes to a socket.
const SEND: [&str; 6] = [
    "write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile",
];
/// Calls that wait for an event, and what lets others go first meanwhile.
const WAIT: [&str; 7] = [
    "sched_yield",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "io_uring_enter",
];
/// Not part of the budget: on nearly every machine the clock is read without the kernel, and then
/// this is no system call.
const CLOCK: &str = "clock_gettime";

/// Calls of the kernel by a thread.
#[derive(Debug, Default)]
struct Calls {
    receive: usize,
    send: usize,
    wait: usize,
    other: BTreeMap<String, usize>,
}

impl Calls {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut calls = Self::default();
        for line in lines {
            // Lines about signals and exits begin otherwise.
            let Some((name, _)) = line.split_once('(') else {
                continue;
            };
            match name {
                name if RECEIVE.contains(&name) => calls.receive += 1,
                name if SEND.contains(&name) => calls.send += 1,
                name if WAIT.contains(&name) => calls.wait += 1,
                CLOCK => {}
                name => *calls.other.entry(name.to_owned()).or_default() += 1,
            }
        }
        calls
    }

    /// Compares the calls with `turns` turns of the loop. The request that marks the beginning is
    /// answered within them.
    fn assert_within(&self, turns: usize) {
        assert_eq!(self.receive, turns, "{self:?}");
        assert_eq!(self.send, turns + 1, "{self:?}");
        assert!((1..=turns + 2).contains(&self.wait), "{self:?}");
        // The allocator may grow once; that is none of a hit's.
        assert!(self.other.values().sum::<usize>() <= turns / 10, "{self:?}");
    }
}

/// A server of one worker under strace.
struct Traced {
    server: Server,
    site: TempDir,
    /// Not within the site, which watches its folder.
    traces: TempDir,
}

impl Traced {
    /// None, and a word about it, where there is no strace or where it may not trace.
    fn start(settings: &str) -> Option<Self> {
        let tried = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "true"])
            .stdin(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!(
                    "skipped: strace cannot trace here: {}",
                    text(&output.stderr)
                );
                return None;
            }
            Err(error) => {
                eprintln!("skipped: strace does not start (apt-get install strace): {error}");
                return None;
            }
        }
        let site = site_with(settings);
        write(site.path(), "static/small.txt", &"x".repeat(67));
        write(site.path(), "static/file.txt", &"x".repeat(8 << 10));
        for kib in CORKED_KIB.iter().chain(&UNCORKED_KIB) {
            write(
                site.path(),
                &format!("static/{kib}.txt"),
                &"x".repeat(kib << 10),
            );
        }
        let traces = tempfile::tempdir().unwrap();
        // -D: the server is our own child, and strace is the one that goes when it ends.
        let mut command = Command::new("strace");
        command
            .args(["-D", "-ff", "-qq", "-o"])
            .arg(traces.path().join("thread"))
            .arg(env!("CARGO_BIN_EXE_millpond"))
            .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
            .arg(site.path());
        Some(Self {
            server: Server::spawn(command),
            site,
            traces,
        })
    }

    /// Counts the calls of the kernel by the worker while `work` is done on one connection.
    fn calls(&self, work: impl FnOnce(&mut Connection)) -> Calls {
        Calls::of(self.trace(work).lines())
    }

    /// Lists the calls of the kernel by the worker while `work` is done on one connection, a line
    /// each.
    fn trace(&self, work: impl FnOnce(&mut Connection)) -> String {
        let mut connection = Connection::open(self.server.address());
        connection.get("/begin");
        work(&mut connection);
        connection.get("/end");
        let trace = trace_with(self.traces.path(), "GET /begin");
        let (_, last) = trace.rsplit_once("GET /begin").unwrap();
        let lines = last.lines().skip(1);
        let lines: Vec<_> = lines
            .take_while(|line| !line.contains("GET /end"))
            .collect();
        lines.join("\n")
    }
}

/// The trace of the thread that received these bytes. Each line is written before the thread goes
/// on.
fn trace_with(folder: &Path, bytes: &str) -> String {
    let files = fs::read_dir(folder).unwrap();
    let mut traces = files.map(|file| text(&fs::read(file.unwrap().path()).unwrap()));
    traces
        .find(|trace| trace.contains(bytes))
        .expect("no thread has received the request")
}

/// `HITS` requests, each after the answer to the one before.
fn hits(connection: &mut Connection, target: &str) {
    for _ in 0..HITS {
        assert_eq!(connection.get(target).status, 200);
    }
}

#[test]
fn a_static_hit_receives_once_and_sends_once() {
    let Some(traced) = Traced::start(ASLEEP) else {
        return;
    };
    traced
        .calls(|connection| hits(connection, "/file.txt"))
        .assert_within(HITS);
}

#[test]
fn a_page_from_memory_receives_once_and_sends_once() {
    let Some(traced) = Traced::start(&format!("{ASLEEP}[cache]\nmax_staleness = \"1min\"\n"))
    else {
        return;
    };
    traced.server.get("/");
    let calls = traced.calls(|connection| {
        hits(connection, "/");
        let last = connection.get("/");
        assert_eq!(last.field("cache-status"), Some("millpond; hit"));
    });
    calls.assert_within(HITS + 1);
}

#[test]
fn a_pipeline_is_received_and_sent_as_one() {
    let Some(traced) = Traced::start(ASLEEP) else {
        return;
    };
    let batch = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(DEPTH);
    let calls = traced.calls(|connection| {
        for _ in 0..BATCHES {
            connection.send(&batch);
            for _ in 0..DEPTH {
                assert_eq!(connection.receive().status, 200);
            }
        }
    });
    calls.assert_within(BATCHES);
}

/// Requests for a file on connections of HTTP/2 in clear text (RFC 9113 section 3.3): `BATCHES`
/// times `depth` requests in one write, and then the wait for all responses.
#[track_caller]
fn check_streams(traced: &Traced, target: &str, depth: usize) {
    let socket = TcpStream::connect(traced.server.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    let mut client = Http2Connection::open(socket).unwrap();
    let batch = vec![head_of("http", "GET", target); depth];
    let mut exchange = || {
        let responses = client.send(&batch).unwrap();
        assert!(responses.iter().all(|response| response.status == 200));
    };
    // The first batch comes with settings, and the second acknowledges those of the server.
    (0..2).for_each(|_| exchange());
    let calls = traced.calls(|_| (0..BATCHES).for_each(|_| exchange()));
    calls.assert_within(BATCHES);
}

#[test]
fn an_http2_hit_receives_once_and_sends_once() {
    let Some(traced) = Traced::start(&format!("{ASLEEP}[cache]\nmax_staleness = \"1min\"\n"))
    else {
        return;
    };
    traced.server.get("/");
    check_streams(&traced, "/file.txt", 1);
    check_streams(&traced, "/", 1);
}

#[test]
fn streams_that_are_ready_in_a_turn_are_received_and_sent_as_one() {
    let Some(traced) = Traced::start(ASLEEP) else {
        return;
    };
    check_streams(&traced, "/small.txt", DEPTH);
}

#[test]
fn the_access_log_adds_no_call_to_a_hit() {
    let Some(traced) = Traced::start(&format!("{ASLEEP}[log]\naccess = \"access.log\"\n")) else {
        return;
    };
    traced
        .calls(|connection| hits(connection, "/file.txt"))
        .assert_within(HITS);
    let site = traced.site;
    assert!(traced.server.stop().0.success());
    let log = fs::read_to_string(site.path().join("access.log")).unwrap();
    assert_eq!(log.lines().count(), HITS + 2);
}

/// Spinning must end: a server without requests sleeps.
#[test]
fn a_pause_is_slept_through() {
    let Some(traced) = Traced::start("") else {
        return;
    };
    let calls = traced.calls(|connection| {
        hits(connection, "/file.txt");
        std::thread::sleep(std::time::Duration::from_millis(500));
    });
    assert_eq!((calls.receive, calls.send), (HITS, HITS + 1), "{calls:?}");
    // The worker polls for at most 50 µs after each answer, which is a few calls under strace; half
    // a second of polling would be tens of thousands.
    assert!(calls.wait <= 20 * HITS, "{calls:?}");
    assert!(
        calls.other.values().sum::<usize>() <= HITS / 10,
        "{calls:?}"
    );
}

#[test]
fn calls_are_classified_by_what_they_do() {
    let lines = "recvfrom(9, \"GET /(a) HTTP/1.1\\r\\n\", 16384, 0, NULL, NULL) = 62
sendmsg(9, {msg_name=NULL}, MSG_NOSIGNAL) = 300
sched_yield() = 0
epoll_wait(5, [], 1024, 0)              = 0
epoll_wait(5, [{events=EPOLLIN}], 1024, -1) = 1
futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 1
clock_gettime(CLOCK_BOOTTIME, {tv_sec=1}) = 0
--- SIGTERM {si_signo=SIGTERM} ---
+++ exited with 0 +++";
    let calls = Calls::of(lines.lines());
    assert_eq!((calls.receive, calls.send, calls.wait), (1, 1, 3));
    assert_eq!(
        calls.other.into_iter().collect::<Vec<_>>(),
        [("futex".to_owned(), 1)]
    );
}

/// So that it leaves in full segments; the next answer would wait otherwise.
#[test]
fn a_file_of_two_rounds_is_held_together_and_let_go() {
    let Some(traced) = Traced::start(ASLEEP) else {
        return;
    };
    for (sizes, is_corked) in [(&CORKED_KIB[..], true), (&UNCORKED_KIB[..], false)] {
        for kib in sizes {
            let trace = traced.trace(|connection| {
                (0..10).for_each(|_| drop(connection.get(&format!("/{kib}.txt"))));
            });
            let mut is_held = false;
            let mut files = 0;
            for line in trace.lines() {
                if line.contains("TCP_CORK") {
                    assert_ne!(is_held, line.contains("[1]"), "{kib} KiB: {trace}");
                    is_held = line.contains("[1]");
                } else if line.starts_with("sendfile(") {
                    assert_eq!(is_held, is_corked, "{kib} KiB: {trace}");
                    files += 1;
                } else if line.starts_with("recvfrom(") {
                    assert!(!is_held, "{kib} KiB: {trace}");
                }
            }
            assert!(files >= 10 && !is_held, "{kib} KiB: {trace}");
        }
    }
}
