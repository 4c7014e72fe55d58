//! The cache in unusual conditions: a crowd, another database under the same name, clients that
//! vanish.

use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::fast_dir;
use rusqlite::Connection as Database;
use rustix::net::sockopt::set_socket_linger;
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Response, Server, serve, write};

const CROWD: usize = 200;
const MAX_STALENESS: Duration = Duration::from_secs(1);

/// Some hundred milliseconds of work for the database, so that a crowd gathers before the page of
/// an article is made.
const READ_SQL: &str = "-- param: id integer

-- name: article :one
select title from article where id = :id;

-- name: work :one
select count(*) as steps from step a join step b join step c where a.i + b.i + c.i >= 0;
";

const EDIT_SQL: &str = "-- param: id integer
-- param: title text

-- name: article :exec
update article set title = :title where id = :id;

-- redirect: /read?id=:id
";

fn site() -> TempDir {
    site_in(fast_dir())
}

fn site_in(dir: TempDir) -> TempDir {
    for (name, contents) in [
        (
            "millpond.toml",
            "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmax_staleness = \"1s\"\n",
        ),
        (
            "migrations/0001_start.sql",
            "create table article (id integer primary key, title text not null) strict;\n\
             insert into article values (1, 'first'), (2, 'second'), (3, 'third');\n\
             create table step (i integer primary key) strict;\n\
             insert into step with n (i) as (select 1 union all select i + 1 from n where i < 100) select i from n;\n",
        ),
        ("pages/read.sql", READ_SQL),
        ("pages/read.html", "{{ article.title }} {{ work.steps }}"),
        (
            "pages/title.sql",
            "-- param: id integer\n-- name: article :one\nselect title from article where id = :id;\n",
        ),
        ("pages/title.html", "{{ article.title }}"),
        ("pages/edit.post.sql", EDIT_SQL),
    ] {
        write(dir.path(), name, contents);
    }
    dir
}

/// A server that stores what it answers: until the feed is heard of, nothing would be.
fn warm(site: &Path) -> Server {
    let server = serve(site);
    let started = Boottime::now();
    while cache_status(&server.get("/title?id=3")) != "millpond; hit" {
        assert!(Boottime::now().since(started) < PATIENCE, "never a hit");
    }
    server
}

fn cache_status(response: &Response) -> &str {
    response.field("cache-status").unwrap_or_default()
}

#[test]
fn a_crowd_at_a_cold_page_is_one_fill() {
    let site = site();
    let server = warm(site.path());
    let mut crowd: Vec<_> = (0..CROWD)
        .map(|_| Connection::open(server.address()))
        .collect();
    for connection in &mut crowd {
        connection.send("GET /read?id=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let (mut filled, mut waited) = (0, 0);
    for connection in &mut crowd {
        let response = connection.receive();
        assert_eq!(response.status, 200);
        assert_eq!(response.text(), "first 1000000");
        match cache_status(&response) {
            "millpond; fwd=miss; stored" => filled += 1,
            "millpond; fwd=miss; collapsed" => waited += 1,
            // It came when the page was there.
            "millpond; hit" => {}
            other => panic!("{other}"),
        }
    }
    println!("{filled} filled, {waited} waited");
    assert_eq!(filled, 1);
    assert!(server.stop().0.success());
}

#[test]
fn a_replaced_database_is_shown_within_the_bound() {
    // A restored dump is usually in rollback-journal mode.
    for mode in ["wal", "delete"] {
        replace_the_database_by_one_in(mode);
    }
}

fn replace_the_database_by_one_in(mode: &str) {
    // On disk, because the file is replaced.
    let site = site_in(tempfile::tempdir().unwrap());
    let server = warm(site.path());
    // The old file's log has something in it that must not get into the new file.
    let posted = Connection::open(server.address()).post("/edit", "id=1&title=posted");
    assert_eq!(posted.status, 303);
    assert_eq!(server.get("/title?id=1").text(), "posted");

    let (file, next) = (site.path().join("site.db"), site.path().join("next.db"));
    let old = Database::open(&file).unwrap();
    old.execute("vacuum into ?1", [next.to_str().unwrap()])
        .unwrap();
    drop(old);
    let new = Database::open(&next).unwrap();
    new.execute_batch(&format!(
        "pragma journal_mode = {mode}; update article set title = 'replaced'"
    ))
    .unwrap();
    new.close().unwrap();
    fs::rename(&next, &file).unwrap();
    let replaced = Boottime::now();

    let mut connection = Connection::open(server.address());
    loop {
        let sent = Boottime::now();
        let response = connection.get("/title?id=1");
        if response.status == 200 && response.text() == "replaced" {
            break;
        }
        let late = sent.since(replaced);
        // A refusal keeps the promise. A slow disk only makes it last.
        let is_refusal = response.status == 503 && response.field("retry-after").is_some();
        let allowed = if is_refusal { PATIENCE } else { MAX_STALENESS };
        assert!(late <= allowed, "{late:?}: {response:?}");
    }
    // From now on there is only the new one, on every page, and it is written to.
    for id in 1..=3 {
        assert_eq!(
            connection.get(&format!("/title?id={id}")).text(),
            "replaced"
        );
    }
    let again = connection.post("/edit", "id=1&title=again");
    assert_eq!(again.status, 303, "{mode}: {again:?}");
    assert_eq!(connection.get("/title?id=1").text(), "again");
    assert_eq!(connection.get("/title?id=2").text(), "replaced");
    assert!(server.stop().0.success());
    let file = Database::open(&file).unwrap();
    let sound: String = file
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

/// How a client goes away.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its process ended.
    Closed,
    /// It ended with something unread, or its machine is gone: the server gets a reset.
    Reset,
    /// It says that it sends no more, and then is gone without reading.
    HalfClosed,
}

fn vanish(address: SocketAddr, sent: &str, end: End) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    match end {
        End::Closed => {}
        End::Reset => set_socket_linger(&stream, Some(Duration::ZERO)).unwrap(),
        End::HalfClosed => stream.shutdown(Shutdown::Write).unwrap(),
    }
}

#[test]
fn a_client_that_vanishes_mid_request_harms_no_other() {
    let site = site();
    let server = warm(site.path());
    let form =
        "POST /edit HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let requests = [
        "G".to_owned(),
        "GET /read?id=2 HTTP/1.1\r\nHo".to_owned(),
        format!("{form}Content-Length: 100\r\n\r\nid=2&title=half"),
        format!("{form}Transfer-Encoding: chunked\r\n\r\n20\r\nid=2&title=half"),
        "GET /read?id=2 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50),
    ];
    for request in &requests {
        for end in [End::Closed, End::Reset, End::HalfClosed] {
            vanish(server.address(), request, end);
            let title = server.get("/title?id=2");
            assert_eq!(
                (title.status, title.text()),
                (200, "second".to_owned()),
                "{end:?}"
            );
        }
    }
    assert!(server.stop().0.success());
}

#[test]
fn waiting_requests_are_answered_when_the_first_client_is_gone() {
    let site = site();
    let server = warm(site.path());
    for (id, end) in [(1, End::Closed), (2, End::Reset), (3, End::HalfClosed)] {
        let request = format!("GET /read?id={id} HTTP/1.1\r\nHost: a\r\n\r\n");
        vanish(server.address(), &request, end);
        let mut others: Vec<_> = (0..20)
            .map(|_| Connection::open(server.address()))
            .collect();
        for connection in &mut others {
            connection.send(&request);
        }
        for connection in &mut others {
            let response = connection.receive();
            assert_eq!(response.status, 200, "{end:?}: {response:?}");
            assert!(response.text().ends_with(" 1000000"), "{response:?}");
        }
        let after = server.get(&format!("/read?id={id}"));
        assert_eq!(cache_status(&after), "millpond; hit", "{end:?}");
    }
    assert!(server.stop().0.success());
}
