//! SIGTERM, SIGINT and SIGHUP.

use std::fs;

use rustix::process::Signal;

use crate::support::{
    Connection, Response, Server, admin, new_site, new_site_in, serve, site_with, write,
};

/// A form without its last bytes: a request in flight.
fn half_a_form(server: &Server) -> (Connection, &'static str) {
    let (start, end) = ("title=Half&bo", "dy=whole");
    let mut connection = Connection::open(server.address());
    connection.send(format!(
        "POST /note HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {1}\r\nExpect: 100-continue\r\n\r\n",
        server.address(),
        start.len() + end.len()
    ));
    // The server has the head when it asks for the body.
    assert_eq!(connection.receive().status, 100);
    connection.send(start);
    (connection, end)
}

#[test]
fn a_request_in_flight_is_finished() {
    for signal in [Signal::TERM, Signal::INT] {
        let site = new_site();
        let server = serve(site.path());
        let (mut connection, rest) = half_a_form(&server);
        server.signal(signal);
        server.wait_until_closed();
        connection.send(rest);
        let answer = connection.receive();
        assert_eq!(answer.status, 303, "{answer:?}");
        assert_eq!(answer.field("connection"), Some("close"));
        let (status, notes) = server.wait();
        assert!(status.success(), "{notes}");
        assert!(notes.contains("millpond served 1 request:"), "{notes}");
    }
}

#[test]
fn a_request_that_does_not_finish_is_cut_off() {
    let site = site_with("limits.drain_timeout = \"50ms\"\n");
    let server = serve(site.path());
    let (mut connection, _) = half_a_form(&server);
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(connection.is_closed());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let site = site_with("limits.drain_timeout = \"1d\"\n");
    let server = serve(site.path());
    let _in_flight = half_a_form(&server);
    server.signal(Signal::TERM);
    server.wait_until_closed();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(1));
}

/// Returns what the owner is answered at `path`.
fn ask(admin: &str, path: &str) -> Response {
    Connection::open(admin.parse().unwrap()).get(path)
}

#[test]
fn a_server_that_is_ending_is_not_ready_and_still_serves_for_a_while() {
    let site = site_with("[server]\ndrain_delay = \"10min\"\n[admin]\nlisten = \"127.0.0.1:0\"\n");
    let server = serve(site.path());
    let admin = admin(&server);
    assert_eq!(ask(&admin, "/ready").text(), "ready\n");
    assert_eq!(ask(&admin, "/live").status, 200);
    server.signal(Signal::TERM);
    while ask(&admin, "/ready").status == 200 {}
    let state = ask(&admin, "/ready");
    assert_eq!((state.status, &*state.text()), (503, "draining\n"));
    assert_eq!(ask(&admin, "/live").status, 200);
    let page = server.get("/");
    assert_eq!((page.status, page.field("connection")), (200, None));
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(1));
}

#[test]
fn the_owner_is_answered_until_the_last_request_is() {
    let site = site_with("[server]\ndrain_delay = \"50ms\"\n[admin]\nlisten = \"127.0.0.1:0\"\n");
    let server = serve(site.path());
    let admin = admin(&server);
    let (mut connection, rest) = half_a_form(&server);
    server.signal(Signal::TERM);
    server.wait_until_closed();
    let state = ask(&admin, "/ready");
    assert_eq!((state.status, &*state.text()), (503, "draining\n"));
    connection.send(rest);
    assert_eq!(connection.receive().status, 303);
    assert!(server.wait().0.success());
}

#[test]
fn a_server_whose_feed_is_too_old_is_not_ready_if_that_is_asked_for() {
    let site = site_with("[admin]\nlisten = \"127.0.0.1:0\"\nmax_feed_age = \"1ms\"\n");
    let server = serve(site.path());
    let admin = admin(&server);
    // Signs of life come further apart.
    let state = loop {
        let state = ask(&admin, "/ready");
        if state.status == 503 {
            break state;
        }
    };
    assert!(state.text().starts_with("the feed was heard "), "{state:?}");
}

#[test]
fn hangup_reopens_the_log() {
    // On disk, because the log is renamed.
    let site = new_site_in(tempfile::tempdir().unwrap());
    write(
        site.path(),
        "millpond.toml",
        "log.access = \"access.log\"\n",
    );
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    connection.get("/?first");
    // An answer may be read before its line is recorded; the next one on the connection cannot.
    connection.get("/?fence");
    let (log, old) = (
        site.path().join("access.log"),
        site.path().join("access.log.1"),
    );
    fs::rename(&log, &old).unwrap();
    server.signal(Signal::HUP);
    server.wait_for("the site was read again");
    server.get("/?second");
    assert!(server.stop().0.success());
    let read = |path| fs::read_to_string(path).unwrap();
    assert!(read(&old).contains("/?first") && !read(&old).contains("/?second"));
    assert!(read(&log).contains("/?second") && !read(&log).contains("/?first"));
}

#[test]
fn hangup_applies_a_new_log_and_names_what_needs_a_restart() {
    let site = new_site();
    let server = serve(site.path());
    server.wait_for("applied migrations: 0001_");
    write(
        site.path(),
        "millpond.toml",
        "log.access = \"new.log\"\ncache.memory = \"1GB\"\nlimits.body = 0\n",
    );
    let notes = server.wait_for("a restart applies it");
    let change = "changed, but not applied by saving the file: ";
    let names = "cache.memory, limits.body;";
    assert!(notes.contains(&format!("{change}{names}")), "{notes}");
    server.signal(Signal::HUP);
    let notes = server.wait_for("the site was read again");
    assert!(
        notes.contains("only a restart applies it: cache.memory, limits.body"),
        "{notes}"
    );
    server.get("/?logged");
    assert!(server.stop().0.success());
    let log = fs::read_to_string(site.path().join("new.log")).unwrap();
    assert!(log.contains("/?logged"), "{log}");
}

#[test]
fn hangup_keeps_a_good_configuration_when_the_new_one_is_wrong() {
    let site = site_with("log.access = \"access.log\"\n");
    let server = serve(site.path());
    write(site.path(), "millpond.toml", "[server]\nlisten = 5\n");
    server.signal(Signal::HUP);
    let notes = server.wait_for("the configuration in use stays");
    assert!(notes.contains("error: millpond.toml:2:10: "), "{notes}");
    server.wait_for("the site was read again");
    assert_eq!(server.get("/?still").status, 200);
    assert!(server.stop().0.success());
    let log = fs::read_to_string(site.path().join("access.log")).unwrap();
    assert!(log.contains("/?still"), "{log}");
}

#[test]
fn hangup_keeps_a_good_site_when_the_new_one_is_wrong() {
    let site = new_site();
    let server = serve(site.path());
    let before = server.get("/");
    write(
        site.path(),
        "pages/index.sql",
        "-- name: notes :many\nselect nonsense;\n",
    );
    server.signal(Signal::HUP);
    let notes = server.wait_for("the site as it was stays");
    assert!(notes.contains("pages/index.sql:2:"), "{notes}");
    assert_eq!(server.get("/").body, before.body);
    assert!(server.stop().0.success());
}
