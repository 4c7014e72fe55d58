//! The console of a running server: its pages, its history, and what the settings say of it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use base_clock::Deadline;
use lab_testkit::{Browser, fast_dir, has_no_browser};
use rusqlite::Connection as Sqlite;

use crate::support::{Connection, PATIENCE, admin, serve, site_with, write};

const SETTINGS: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

fn connect(address: &str) -> Connection {
    Connection::open(address.parse::<SocketAddr>().unwrap())
}

#[test]
fn a_server_shows_itself_to_its_owner() {
    let site = site_with(SETTINGS);
    let server = serve(site.path());
    let owner = admin(&server);
    server.wait_for_line("the console shows what the server does", 1);
    for (target, shown) in [
        ("/", "Overview"),
        ("/routes", "No page was asked for"),
        ("/why", "Why is an address"),
        ("/now", "Feed of the database"),
    ] {
        let page = connect(&owner).get(target);
        assert_eq!(page.status, 200, "{target}: {}", page.text());
        assert!(page.text().contains(shown), "{target}: {}", page.text());
    }
    let asked = connect(&owner).post("/ask", "target=/");
    let why = asked.field("location").unwrap().to_owned();
    let why = connect(&owner).get(&why).text();
    assert!(why.contains("A page of <code>"), "{why}");
    for target in ["/nothing", "/style.css", "/%2e%2e%2f", "/?page=x"] {
        let target = target.replace('%', "%25").replace('?', "%3F");
        let asked = connect(&owner).post("/ask", &format!("target={target}"));
        let why = connect(&owner).get(asked.field("location").unwrap());
        assert_eq!(why.status, 200, "{target}: {}", why.text());
    }
    // Programs are answered as before.
    let counters = connect(&owner).get("/counters");
    assert_eq!(counters.field("content-type"), Some("application/json"));
    assert_eq!(connect(&owner).post("/counters", "").status, 405);
    assert!(site.path().join("site.history.db").exists());
    let (status, said) = server.stop();
    assert!(status.success(), "{said}");
    assert!(!said.contains("damaged"), "{said}");
}

#[test]
fn a_change_of_the_history_is_no_change_of_the_site() {
    let site = site_with(SETTINGS);
    let server = serve(site.path());
    let owner = admin(&server);
    connect(&owner).post("/ask", "target=/");
    assert!(server.get("/").text().contains("</html>"));
    let explained = connect(&owner).get("/explain?target=/").text();
    assert!(
        explained.contains("\"epoch_because\": \"the feed starts\""),
        "{explained}"
    );
}

#[test]
fn without_a_history_there_is_no_console() {
    let site = site_with(&format!("{SETTINGS}history = false\n"));
    let server = serve(site.path());
    let page = connect(&admin(&server)).get("/");
    assert_eq!(page.status, 404);
    assert!(page.text().contains("/counters"), "{}", page.text());
    assert!(!site.path().join("site.history.db").exists());
}

#[test]
fn a_history_that_cannot_be_kept_costs_the_console_alone() {
    let site = site_with(&format!("{SETTINGS}history = \"no/such/folder/h.db\"\n"));
    let server = serve(site.path());
    server.wait_for_line("there is no console", 1);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(connect(&admin(&server)).get("/live").status, 200);
    drop(server);
    // A damaged one is set aside, and the next one is begun.
    write(site.path(), "millpond.toml", SETTINGS);
    write(site.path(), "site.history.db", "this is no database");
    let server = serve(site.path());
    server.wait_for_line("site.history.damaged.db", 1);
    assert_eq!(connect(&admin(&server)).get("/").status, 200);
}

#[test]
fn the_memory_is_emptied_by_the_owner_alone() {
    let site = site_with(SETTINGS);
    let server = serve(site.path());
    let owner = admin(&server);
    server.get("/");
    let mut foreign = connect(&owner);
    foreign.send(
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(foreign.receive().status, 403);
    let emptied = connect(&owner).post("/purge", "");
    assert_eq!(emptied.field("location"), Some("/purge?done=1"));
    let explained = connect(&owner).get("/explain?target=/").text();
    assert!(
        explained.contains("the owner has emptied the memory"),
        "{explained}"
    );
}

#[test]
fn figures_move_by_themselves_while_a_server_is_under_load() {
    if has_no_browser() {
        return;
    }
    let site = site_with(SETTINGS);
    let server = serve(site.path());
    let (is_over, patience) = (AtomicBool::new(false), Deadline::after(PATIENCE * 3));
    let home = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(home.path());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = Connection::open(server.address());
            while !is_over.load(Ordering::Relaxed) && !patience.is_past() {
                assert_eq!(connection.get("/").status, 200);
            }
        });
        let window = browser.window(&format!("http://{}/", admin(&server)));
        let is_there = "document.readyState === 'complete' && location.pathname === '/'";
        browser.until(&window, &format!("{is_there} && (window.stays = true)"));
        // Two samples after the first one, each by itself.
        let figures = "(document.querySelector('.figures')?.textContent ?? '')";
        let mut before = serde_json::json!("");
        for _ in 0..3 {
            browser.until(&window, &format!("window.stays && {figures} !== {before}"));
            before = browser.value(&window, figures);
        }
        assert!(
            before.as_str().unwrap().contains("Requests a minute"),
            "{before}"
        );
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(browser.said().is_empty(), "{:?}", browser.said());
}

#[test]
fn the_last_requests_are_shown_to_the_owner_who_looks() {
    let site = site_with(&format!("{SETTINGS}[log]\ncut_addresses = true\n"));
    let server = serve(site.path());
    let owner = admin(&server);
    server.get("/?before");
    let history = site.path().join("site.history.db");
    let rows = |sql: &str| -> Vec<String> {
        let history = Sqlite::open(&history).unwrap();
        let mut rows = history.prepare(sql).unwrap();
        let found = rows.query_map([], |row| row.get(0)).unwrap();
        found.map(Result::unwrap).collect()
    };
    connect(&owner).get("/requests");
    // It is held from the next tick on: the last of these appears, and its kind is known.
    let all = "select target || ' ' || status || ' ' || client || ' ' || outcome from seen";
    let mut connection = Connection::open(server.address());
    let seen = loop {
        connection.get("/");
        connection.get("/nothing?of=it");
        let seen = rows(all);
        let has = |target: &str| seen.iter().any(|line| line.starts_with(target));
        if has("/ 200 127.0.0.0 hit") && has("/nothing") {
            break seen;
        }
    };
    assert!(seen.contains(&"/ 200 127.0.0.0 hit".to_owned()), "{seen:?}");
    let missing = "/nothing?of=it 404 127.0.0.0 error".to_owned();
    assert!(seen.contains(&missing), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("before")), "{seen:?}");
    let routes = rows("select distinct coalesce(route, '-') from seen order by 1");
    assert_eq!(routes, ["-", "/"]);
    let mut broken = Connection::open(server.address());
    broken.send("GET / HTTP/9.9\r\n\r\n");
    assert_eq!(broken.receive().status, 505);
    let unread = "select client from seen where method = '' and status = 505";
    while rows(unread).is_empty() {
        thread::yield_now();
    }
    let page = connect(&owner).get("/requests?path=nothing").text();
    let page = page.replace("&#x2f;", "/");
    assert!(page.contains("/nothing?of=it"), "{page}");
    // They end with the server.
    server.stop();
    assert!(rows(all).is_empty());
}

#[test]
fn one_address_is_ended_and_the_others_stay() {
    let dir = fast_dir();
    for (name, text) in [
        ("millpond.toml", SETTINGS),
        (
            "migrations/0001_start.sql",
            "create table article (id integer primary key, title text not null);\n\
             insert into article values (1, 'One'), (2, 'Two');\n",
        ),
        (
            "pages/a.sql",
            "-- param: id integer\n-- language: lang in (en, de)\n\
             -- name: article :one\nselect title from article where id = :id;\n",
        ),
        ("pages/a.html", "{{ article.title }} {{ params.lang }}"),
    ] {
        write(dir.path(), name, text);
    }
    let server = serve(dir.path());
    let owner = admin(&server);
    let status = |id: u8, language: &str| {
        let language = format!("Accept-Language: {language}");
        let mut connection = Connection::open(server.address());
        let page = connection.get_with(&format!("/a?id={id}"), &[&language]);
        let status = page.field("cache-status").unwrap().to_owned();
        status.contains("hit")
    };
    let each = || {
        [
            status(1, "en"),
            status(1, "de"),
            status(2, "en"),
            status(3, "en"),
        ]
    };
    each();
    assert_eq!(each(), [true; 4]);
    let end = |target: &str| {
        let ended = connect(&owner).post("/purge", &format!("target={target}"));
        ended.field("location").unwrap().to_owned()
    };
    // Its page in both languages, and the result that they share.
    assert_eq!(end("/a%3Fid=1"), "/purge?ended=3");
    assert_eq!(end("/a%3Fid=1"), "/purge?ended=0");
    assert_eq!(each(), [false, false, true, true]);
    assert_eq!(each(), [true; 4]);
    // One that does not exist is in memory too.
    assert_ne!(end("/a%3Fid=3"), "/purge?ended=0");
    assert_eq!(each(), [true, true, true, false]);
    for target in ["/nothing", "/a%3Fid=x", "/%2e%2e/"] {
        assert_eq!(end(target), "/purge?wrong=1", "{target}");
    }
}

#[test]
fn an_alert_is_posted_to_its_webhook() {
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", hook.local_addr().unwrap());
    let site = site_with(&format!(
        "{SETTINGS}[[alert]]\nof = \"hit_rate\"\nlimit = \"99%\"\nfor = \"0s\"\nwebhook = \"{url}\"\n"
    ));
    let server = serve(site.path());
    for id in 0..10 {
        server.get(&format!("/?nothing={id}"));
    }
    // Within the first sample's ten seconds.
    let (mut posted, _) = hook.accept().unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut part = [0; 1_000];
        let count = posted.read(&mut part).unwrap();
        assert_ne!(count, 0);
        request.extend_from_slice(&part[..count]);
    }
    posted.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let request = String::from_utf8(request).unwrap();
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    let begun = "\"text\":\"alert begun: hit_rate below 99% (pages from memory, now 90.00 %)\"";
    assert!(request.contains(begun), "{request}");
    server.wait_for("alert begun: hit_rate below 99%");
    let now = connect(&admin(&server)).get("/now").text();
    assert!(
        now.contains("<strong class=\"bad\">alert</strong>"),
        "{now}"
    );
}

#[test]
fn rules_without_a_console_are_told_of_and_a_served_history_is_none() {
    let rule = "[[alert]]\nof = \"errors\"\nlimit = \"1%\"\n";
    let site = site_with(rule);
    let server = serve(site.path());
    server.wait_for("no [[alert]] is looked at");
    drop(server);
    let dir = fast_dir();
    for (name, text) in [
        (
            "millpond.toml",
            "[admin]\nlisten = \"127.0.0.1:0\"\nhistory = \"a/static/h.db\"\n[[host]]\nnames = [\"*\"]\nsite = \"a\"\n",
        ),
        ("a/millpond.toml", ""),
        ("a/pages/index.html", "front"),
        ("a/static/a.css", "a {}"),
    ] {
        write(dir.path(), name, text);
    }
    let server = serve(dir.path());
    server.wait_for("admin.history would be served");
    assert!(!dir.path().join("a/static/h.db").exists());
}
