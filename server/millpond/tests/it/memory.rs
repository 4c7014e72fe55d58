//! Memory that clients can make the program take, measured from outside.

use std::fs;
use std::io::Write as _;
use std::thread;

use lab_testkit::{Client, fast_dir};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Server, millpond, new_site, write};

const MIB: u64 = 1 << 20;

/// A figure of `/proc/PID/status` in bytes.
pub(crate) fn memory(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.unwrap().trim_start_matches(':').trim();
    kib.trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The largest resident set so far, from now on.
pub(crate) fn forget_peak(server: &Server) {
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
}

fn serve_one_worker(site: &TempDir) -> Server {
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    command.arg(site.path());
    Server::spawn(command)
}

/// The number of connections that this process may open, at most `wanted`.
pub(crate) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current;
    wanted.min(allowed.map_or(wanted, |allowed| allowed as usize - 200))
}

/// How much more memory the server takes while `count` connections have each sent `len` bytes of a
/// head that does not end. New visitors are served meanwhile.
fn growth_by_heads(count: usize, len: usize) -> u64 {
    let site = new_site();
    let server = serve_one_worker(&site);
    assert_eq!(server.get("/").status, 200);
    let before = memory(&server, "VmRSS");
    let start = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
    let head = format!("{start}{}", "a".repeat(len - start.len()));
    let held: Vec<Client> = (0..count)
        .map(|at| {
            let mut client = Client::open(server.address(), PATIENCE).unwrap();
            // A server that ends a head early does not take all of it.
            let _ = client.send(&head);
            if at % 200 == 0 {
                assert_eq!(server.get("/").status, 200);
            }
            client
        })
        .collect();
    assert_eq!(server.get("/").status, 200);
    let growth = memory(&server, "VmHWM").saturating_sub(before);
    eprintln!("{count} heads of {len} bytes: {} KiB more", growth >> 10);
    drop(held);
    growth
}

#[test]
fn heads_that_do_not_end_take_bounded_memory() {
    let large = growth_by_heads(connections(2_000), 63_000);
    assert!(large < 64 * MIB, "{large}");
    let small = growth_by_heads(connections(2_000), 100);
    assert!(small < 12 * MIB, "{small}");
}

#[test]
#[ignore = "opens ten thousand connections"]
fn ten_thousand_heads_that_do_not_end_take_less_than_a_hundred_megabytes() {
    let large = growth_by_heads(connections(9_900), 63_000);
    assert!(large < 100_000_000, "{large}");
    let small = growth_by_heads(connections(9_900), 100);
    assert!(small < 40 * MIB, "{small}");
}

/// A site where visitors sign in, and where a form takes a long text.
fn site_with_forms() -> TempDir {
    let site = fast_dir();
    let files = [
        (
            "millpond.toml",
            "[session]\nsecret = \"0123456789abcdef0123456789abcdef\"\n[limits]\nbody = \"300MiB\"\n",
        ),
        (
            "migrations/0001_first.sql",
            "create table account (id integer primary key, name text not null unique, password_hash text not null) strict;\n\
             create table note (id integer primary key, body text not null) strict;\n",
        ),
        ("pages/index.html", "Hello."),
        (
            "pages/login.post.sql",
            "-- name: account :one?\nselect id, name as known_as, password_hash from account where name = :name;\n\n\
             -- verify: account.password_hash = :password else /login?failed=1\n-- claims: user = account.id\n-- redirect: /\n",
        ),
        (
            "pages/note.post.sql",
            "-- param: body text\n-- name: note :exec\ninsert into note (body) values (:body);\n-- redirect: /\n",
        ),
    ];
    for (name, content) in files {
        write(site.path(), name, content);
    }
    site
}

#[test]
fn four_hundred_failed_sign_ins_leave_no_memory_behind() {
    let site = site_with_forms();
    let server = serve_one_worker(&site);
    assert_eq!(server.get("/").status, 200);
    let before = memory(&server, "VmRSS");
    let address = server.address();
    let sign_in = |visitor: u32| {
        let form = format!("name=visitor{visitor}&password=wrong+password");
        let mut client = Client::open(address, PATIENCE).unwrap();
        // Each is another visitor behind a proxy on this machine.
        let request = format!(
            "POST /login HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.{}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            visitor % 250,
            form.len()
        );
        client.send(request).unwrap();
        assert_eq!(client.receive().unwrap().status, 303);
    };
    thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || (0..50).for_each(|number| sign_in(part * 50 + number)));
        }
    });
    let growth = memory(&server, "VmRSS").saturating_sub(before);
    eprintln!("400 failed sign-ins: {} KiB more", growth >> 10);
    assert!(growth < 40 * MIB, "{growth}");
}

/// Sends a form with a field of `len` bytes and one of `other` that its page does not use; the
/// status, and how much more memory it took.
fn large_form(server: &Server, len: usize, other: usize) -> (u16, u64) {
    forget_peak(server);
    let before = memory(server, "VmRSS");
    let mut connection = Connection::open(server.address());
    let whole = "body=&other=".len() + len + other;
    connection.send(format!(
        "POST /note HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {whole}\r\n\r\n"
    ));
    for (name, len) in [("body=", len), ("&other=", other)] {
        connection.send(name);
        for sent in (0..len).step_by(1 << 20) {
            let piece = vec![b'x'; (len - sent).min(1 << 20)];
            connection.stream().write_all(&piece).unwrap();
        }
    }
    let status = connection.receive().status;
    let growth = memory(server, "VmHWM").saturating_sub(before);
    eprintln!("a form of {whole} bytes: {} KiB more at most", growth >> 10);
    (status, growth)
}

#[test]
fn a_form_of_up_to_the_limit_is_taken_by_an_idle_server() {
    let site = site_with_forms();
    let server = serve_one_worker(&site);
    assert_eq!(server.get("/").status, 200);
    let (status, growth) = large_form(&server, 63 << 20, 0);
    assert_eq!(status, 303);
    // The value, SQLite's copy of it, and the row that SQLite makes of that.
    assert!(growth < 63 * MIB * 7 / 2, "{growth}");
    // Longer than all bodies in memory together may be.
    assert_eq!(large_form(&server, 1 << 20, 70 << 20).0, 303);
    // One value of SQLite has at most 64 MiB.
    assert_eq!(large_form(&server, 65 << 20, 0).0, 413);
    assert_eq!(server.get("/").status, 200);
}

#[test]
#[ignore = "writes 200 MiB"]
fn a_form_of_two_hundred_mebibytes_is_taken() {
    let site = site_with_forms();
    let server = serve_one_worker(&site);
    assert_eq!(large_form(&server, 60 << 20, 140 << 20).0, 303);
}
