//! From `millpond new` to a page.

use std::fs;

use crate::support::{Connection, Server, millpond, new_site, serve, serve_with, site_with};

#[test]
fn a_new_site_is_served_from_memory_and_shows_what_is_posted() {
    let site = new_site();
    let server = serve(site.path());
    let first = server.get("/");
    assert_eq!(first.status, 200);
    assert!(
        first.field("cache-status").unwrap().contains("fwd=miss"),
        "{first:?}"
    );
    assert_eq!(first.field("server-timing"), None);
    let second = server.get("/?utm_source=x");
    assert_eq!(second.field("cache-status"), Some("millpond; hit"));
    assert_eq!(first.body, second.body);

    let posted = Connection::open(server.address()).post("/note", "title=Posted&body=A+note");
    assert_eq!(posted.status, 303, "{posted:?}");
    assert!(server.get("/").text().contains("Posted"));
    assert_eq!(server.get("/no-such-page").status, 404);

    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(notes.contains("millpond served 5 requests: "), "{notes}");
}

#[test]
fn standard_output_has_one_line() {
    let site = new_site();
    let mut command = millpond(&["serve", ".", "--listen", "127.0.0.1:0", "--no-cache"]);
    command.current_dir(site.path());
    let server = Server::spawn(command);
    assert!(server.wait_for("the cache is off").contains("note: "));
    assert!(
        server
            .get("/")
            .field("cache-status")
            .unwrap()
            .contains("bypass")
    );
    assert!(
        server
            .get("/")
            .field("cache-status")
            .unwrap()
            .contains("bypass")
    );
    assert!(server.stop().0.success());
}

#[test]
fn requests_and_refusals_are_logged() {
    let site = site_with("log.access = \"access.log\"\n");
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    let client = "X-Forwarded-For: 192.0.2.1, 203.0.113.9";
    connection.get_with("/", &["User-Agent: tester", "Referer: /from", client]);
    connection.send("GET / HTTP/1.1\r\nHost : x\r\n\r\n");
    assert_eq!(connection.receive().status, 400);
    assert!(server.stop().0.success());
    let log = fs::read_to_string(site.path().join("access.log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].starts_with("203.0.113.9 - - ["), "{log}");
    assert!(lines[1].starts_with("127.0.0.1 - - ["), "{log}");
    assert!(
        lines[0].contains("\"GET / HTTP/1.1\" 200 ") && lines[0].ends_with(" \"/from\" \"tester\""),
        "{log}"
    );
    assert!(lines[1].contains("\"-\" 400 "), "{log}");
}

#[test]
fn times_are_told_as_the_setting_says_and_a_hit_has_no_times_of_the_fill() {
    for (setting, flags, is_told) in [
        ("\"on\"", &[][..], true),
        ("\"off\"", &["--dev"], false),
        ("\"dev\"", &["--dev"], true),
        ("\"dev\"", &[], false),
    ] {
        let site = site_with(&format!("[server]\ntiming = {setting}\n"));
        let server = serve_with(site.path(), flags);
        let mut connection = Connection::open(server.address());
        let told = |connection: &mut Connection| {
            let page = connection.get("/");
            let status = page.field("cache-status").unwrap().to_owned();
            (status, page.field("server-timing").map(str::to_owned))
        };
        let (status, times) = told(&mut connection);
        assert_eq!(times.is_some(), is_told, "{setting} {flags:?}: {status}");
        // The first look-up, one whose response is kept, and repetitions of it.
        for _ in 0..4 {
            let hit = (
                "millpond; hit".to_owned(),
                is_told.then(|| "cache;desc=hit".to_owned()),
            );
            assert_eq!(told(&mut connection), hit, "{setting} {flags:?}");
        }
    }
}
