//! Pages from memory while PostgreSQL is away, and once it is back (coherence.md, rule 6).

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use base_clock::Boottime;
use lab_pgtest::{Options, Postgres};
use millpond_site::SiteOptions;
use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};

use crate::nodes::{get, say, settings};
use crate::postgres::{client, database, folder};
use crate::sessions::cookie;
use crate::support::{TestSite, write};

/// How a server ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// `pg_ctl stop -m fast`.
    Fast,
    /// `pg_ctl stop -m immediate`.
    Immediate,
    /// `kill -9`.
    Killed,
}

const ALL: [Ending; 3] = [Ending::Fast, Ending::Immediate, Ending::Killed];

fn end(server: &mut Postgres, how: Ending) {
    match how {
        Ending::Fast => server.stop(),
        Ending::Immediate => {
            let pid = Pid::from_raw(server.pid().unwrap().cast_signed()).unwrap();
            kill_process(pid, Signal::QUIT).unwrap();
            // Waits until it has ended.
            server.stop();
        }
        Ending::Killed => server.kill_hard(),
    }
}

const TITLES: [(&str, &str); 9] = [
    (
        "pages/a.sql",
        "-- name: a :one\nselect title from article where id = :id;\n",
    ),
    ("pages/a.html", "{{ a.title }}"),
    // Closed where the settings say so.
    (
        "pages/closed.sql",
        "-- name: a :one\nselect title from article where id = 1;\n",
    ),
    ("pages/closed.html", "{{ a.title }}"),
    (
        "pages/enter.post.sql",
        "-- param: user integer\n-- claims: user = :user\n",
    ),
    (
        "pages/varied.sql",
        "-- vary: Cookie\n-- name: a :one\nselect title from article where id = 1;\n",
    ),
    ("pages/varied.html", "{{ a.title }}"),
    (
        "pages/private.sql",
        "-- name: a :one\nselect title from article where id = 1;\n",
    ),
    (
        "pages/private.html",
        "{{ a.title }}{{ request.headers.cookie or '' }}",
    ),
];

const SCHEMA: &str = "create table article (id bigint primary key, title text not null);
    create publication millpond for table article;
    insert into article values (1, 'One'), (2, 'Two');";

/// A server, and a site on it with this in its section `[cache]`.
fn served(cache: &str) -> (Postgres, TestSite) {
    let server = Options::new().logical().start().unwrap();
    let dir = lab_testkit::fast_dir();
    let settings = format!(
        "[database]\nurl = \"{}\"\n[cache]\nrefresh_ahead = 0\n{cache}\n",
        server.url()
    );
    write(
        dir.path(),
        &[
            ("millpond.toml", &settings),
            ("migrations/0001_start.postgres.sql", SCHEMA),
            ("pages/index.html", "front"),
        ],
    );
    write(dir.path(), &TITLES);
    let site = TestSite::open(dir, SiteOptions::default());
    site.until("a hit", || site.get("/a?id=1").cache() == "hit");
    (server, site)
}

#[test]
fn pages_are_given_from_memory_until_the_bound_is_over_and_then_with_what_was_missed() {
    for how in ALL {
        let (mut server, site) = served("max_staleness = \"10min\"");
        end(&mut server, how);
        site.until("what is not in memory is refused", || {
            site.get("/a?id=2").status == 503
        });
        let kept = site.get("/a?id=1");
        assert_eq!((kept.cache(), &*kept.body), ("hit", "One"), "{how:?}");
        server.restart().unwrap();
        let mut other = Client::connect(&server.url(), NoTls).unwrap();
        other
            .batch_execute("update article set title = 'Uno' where id = 1")
            .unwrap();
        // Long before the bound.
        site.until("what was missed shows", || {
            site.get("/a?id=1").body == "Uno"
        });
        site.until("a hit", || site.get("/a?id=1").cache() == "hit");
        assert_eq!(site.get("/a?id=1").body, "Uno", "{how:?}");
    }
}

#[test]
fn no_page_is_given_from_memory_once_the_bound_is_over() {
    for how in ALL {
        let (mut server, site) = served("max_staleness = \"1s\"");
        end(&mut server, how);
        // No heartbeat was sent after this.
        let gone = Boottime::now();
        loop {
            let asked = Boottime::now();
            let answer = site.get("/a?id=1");
            if answer.status == 503 {
                break;
            }
            let waited = asked.since(gone);
            assert!(waited <= Duration::from_secs(1), "{how:?}: {waited:?}");
            assert_eq!(answer.body, "One");
        }
        assert_eq!(site.get("/a?id=1").status, 503, "{how:?}");
        server.restart().unwrap();
        site.until("it is back", || site.get("/a?id=1").status == 200);
    }
}

#[test]
fn beyond_the_bound_a_page_is_given_where_the_owner_says_so_and_says_that_it_is_stale() {
    let rule = "[[require]]\npath = \"/closed\"\nclaims = \"user\"";
    let cache = "max_staleness = \"100ms\"\nstale_if_error = \"1h\"";
    let (mut server, site) = served(&format!("{cache}\n{rule}"));
    let cookie = cookie(&site.post("/enter", "user=1"));
    let closed = || crate::sessions::get(&site, "/closed", &cookie);
    assert_eq!(closed().body, "One");
    for target in ["/varied", "/private"] {
        assert_eq!(site.get(target).body, "One", "{target}");
    }
    end(&mut server, Ending::Fast);
    site.until("the bound is over", || site.get("/a?id=1").cache() != "hit");
    let stale = site.get("/a?id=1");
    assert_eq!((stale.status, &*stale.body), (200, "One"));
    let (status, age) = (stale.cache(), stale.field("age"));
    let overdue = status.strip_prefix("fwd=stale; ttl=-").unwrap();
    let overdue = overdue.strip_suffix("; detail=stale-if-error").unwrap();
    let (overdue, age): (u64, u64) = (overdue.parse().unwrap(), age.parse().unwrap());
    assert!(overdue >= 1 && age <= overdue + 1, "{status} {age}");
    // What is not in memory, and what may be another visitor's tomorrow.
    for target in ["/a?id=2", "/varied", "/private"] {
        assert_eq!(site.get(target).status, 503, "{target}");
    }
    assert_eq!(closed().status, 503, "a role may have been taken away");
    server.restart().unwrap();
    let mut other = Client::connect(&server.url(), NoTls).unwrap();
    other
        .batch_execute("update article set title = 'Uno' where id = 1")
        .unwrap();
    site.until("it is back", || site.get("/a?id=1").body == "Uno");
    assert!(!site.get("/a?id=1").cache().contains("stale-if-error"));
}

/// Passes connections on to a server, until it is closed: then those that are open go on.
struct Door {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
}

impl Door {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_closed = Arc::<AtomicBool>::default();
        let closed = Arc::clone(&is_closed);
        thread::spawn(move || {
            for inside in listener.incoming() {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                let (inside, outside) = (
                    inside.unwrap(),
                    TcpStream::connect(("127.0.0.1", port)).unwrap(),
                );
                let copies = [
                    (inside.try_clone().unwrap(), outside.try_clone().unwrap()),
                    (outside, inside),
                ];
                for (mut from, mut to) in copies {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, is_closed }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // The thread wakes up, and drops the listener.
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }
}

/// Connections that are open live on, and the feed gets no other.
#[test]
fn a_write_without_a_feed_is_on_the_next_page() {
    let database = database();
    let port = database
        .url()
        .rsplit_once('/')
        .unwrap()
        .0
        .rsplit_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap();
    let door = Door::to(port);
    let url = database
        .url()
        .replace(&format!(":{port}/"), &format!(":{}/", door.address.port()));
    let dir = folder(&database, crate::nodes::PAGES);
    write(dir.path(), &[("millpond.toml", &settings(&url))]);
    let site = TestSite::open(dir, SiteOptions::default());
    let before = say(&site, "Ann");
    site.until("a hit", || site.get("/a").cache() == "hit");
    door.close();
    let end = "select pg_terminate_backend(active_pid) from pg_replication_slots \
        where database = current_database() and active_pid is not null";
    client(&database).batch_execute(end).unwrap();
    site.until("the feed is lost", || {
        let slots = "select count(*) from pg_replication_slots where database = current_database()";
        client(&database)
            .query_one(slots, &[])
            .unwrap()
            .get::<_, i64>(0)
            == 0
    });
    for cookie in ["", &before] {
        let kept = get(&site, "/a", cookie);
        assert_eq!((kept.cache(), &*kept.body), ("hit", "Ann,"), "{cookie}");
    }
    let written = site.post("/say", "who=Bob");
    assert_eq!(written.status, 303);
    for cookie in ["", &before, &cookie(&written)] {
        assert_eq!(get(&site, "/a", cookie).body, "Ann,Bob,", "{cookie}");
    }
}

/// A long bound is no time for which pages are old: what can be read is read.
#[test]
fn once_the_server_can_be_reached_nothing_old_is_given_even_without_a_feed() {
    let database = database();
    let dir = folder(&database, crate::nodes::PAGES);
    write(dir.path(), &[("millpond.toml", &settings(&database.url()))]);
    let site = TestSite::open(dir, SiteOptions::default());
    site.until("a hit", || site.get("/a").cache() == "hit");
    client(&database)
        .batch_execute(
            "begin; drop publication millpond; select pg_terminate_backend(active_pid) \
             from pg_replication_slots where database = current_database() and active_pid is not null; commit",
        )
        .unwrap();
    client(&database)
        .batch_execute("insert into comment (article_id, who) values (1, 'Eve')")
        .unwrap();
    site.until("it shows", || site.get("/a").body == "Eve,");
    client(&database)
        .batch_execute("create publication millpond for table article, comment")
        .unwrap();
    site.until("a hit again", || site.get("/a").cache() == "hit");
    assert_eq!(site.get("/a").body, "Eve,");
}
