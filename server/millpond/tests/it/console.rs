//! The console of a running server: its pages, its history, and what the settings say of it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use base_clock::Deadline;
use lab_testkit::{Browser, has_no_browser};

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
    let asked = connect(&owner).get("/ask?target=/");
    let why = asked.field("location").unwrap().to_owned();
    let why = connect(&owner).get(&why).text();
    assert!(why.contains("A page of <code>"), "{why}");
    for target in ["/nothing", "/style.css", "/%2e%2e%2f", "/?page=x"] {
        let target = target.replace('%', "%25").replace('?', "%3F");
        let asked = connect(&owner).get(&format!("/ask?target={target}"));
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
    connect(&owner).get("/ask?target=/");
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
