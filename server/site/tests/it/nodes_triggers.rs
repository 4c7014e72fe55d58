//! Several nodes with feeds of triggers: their positions are transaction ids (coherence.md, rule
//! 19).

use std::sync::LazyLock;

use lab_pgtest::{Database, Postgres};
use millpond_site::SiteOptions;

use crate::nodes::{Frozen, PAGES, get, say, settings};
use crate::postgres::{client, folder, install_triggers};
use crate::sessions::cookie;
use crate::support::{TestSite, write};

/// A server without logical replication.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().unwrap());

/// A form that changes nothing.
const IDLE: (&str, &str) = (
    "pages/idle.post.sql",
    "-- name: nobody :exec\nupdate comment set who = 'nobody' where id < 0;\n-- redirect: /a\n",
);

const BYPASS: &str = "fwd=bypass; detail=own-write";

fn node(database: &Database<'_>) -> TestSite {
    let dir = folder(database, PAGES);
    let logical = settings(&database.url());
    let by_triggers = logical.replace("[cache]", "feed = \"triggers\"\n[cache]");
    write(dir.path(), &[("millpond.toml", &by_triggers), IDLE]);
    install_triggers(dir.path());
    let site = TestSite::open(dir, SiteOptions::default());
    site.until("a hit", || site.get("/a").cache() == "hit");
    site
}

fn feeds(database: &Database<'_>) -> Vec<i32> {
    let sql = "select pid from pg_stat_activity where datname = current_database() and application_name = 'millpond_feed'";
    let rows = client(database).query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Two nodes, and the server's side of the feed of the second.
fn two(database: &Database<'_>) -> (TestSite, TestSite, i32) {
    let first = node(database);
    let mut own = Vec::new();
    // Those of the checks are ending.
    first.until("one feed", || {
        own = feeds(database);
        own.len() == 1
    });
    let second = node(database);
    let mut pid = 0;
    second.until("one feed more", || {
        let others: Vec<i32> = feeds(database)
            .into_iter()
            .filter(|pid| !own.contains(pid))
            .collect();
        pid = others.first().copied().unwrap_or_default();
        others.len() == 1
    });
    (first, second, pid)
}

/// Stops the server's side of a feed between two queries: stopped within a query, its locks would
/// block every session.
fn freeze(site: &TestSite, database: &Database<'_>, pid: i32) -> Frozen {
    let mut frozen = None;
    site.until("it is idle", || {
        drop(frozen.take());
        frozen = Some(Frozen::new(pid));
        let sql = "select state = 'idle' from pg_stat_activity where pid = $1";
        client(database).query_one(sql, &[&pid]).unwrap().get(0)
    });
    frozen.unwrap()
}

#[test]
fn what_a_visitor_has_written_is_on_the_next_page_of_every_node() {
    let database = SERVER.database().unwrap();
    let (first, second, _) = two(&database);
    let mut said = String::new();
    for round in 0..20 {
        second.until("a hit", || second.get("/a").cache() == "hit");
        let cookie = say(&first, &format!("v{round}"));
        said += &format!("v{round},");
        assert_eq!(get(&second, "/a", &cookie).body, said);
        assert_eq!(get(&first, "/a", &cookie).body, said);
    }
}

#[test]
fn while_a_feed_is_held_up_a_writer_sees_the_write_and_others_may_not() {
    let database = SERVER.database().unwrap();
    let (first, second, feed) = two(&database);
    let frozen = freeze(&second, &database, feed);
    let written = say(&first, "Ann");
    let old = second.get("/a");
    assert_eq!((&*old.body, old.cache()), ("", "hit"));
    let own = get(&second, "/a", &written);
    assert_eq!((&*own.body, own.cache()), ("Ann,", BYPASS));
    // A later form that changes nothing does not lose the position in the visitor's cookie.
    let answer = second.post("/idle", "");
    assert_eq!(answer.status, 303, "{}", answer.body);
    let own = get(&second, "/a", &cookie(&answer));
    assert_eq!((&*own.body, own.cache()), ("Ann,", BYPASS));
    first.until("a hit", || get(&first, "/a", &written).cache() == "hit");
    drop(frozen);
    second.until("the feed goes on", || {
        let answer = get(&second, "/a", &written);
        assert_eq!(answer.body, "Ann,");
        answer.cache() == "hit"
    });
    assert_eq!(second.get("/a").body, "Ann,");
}

/// The position lies beyond the oldest open one, so it does not say whether the other node has
/// applied it. But a poll that is sent after the visitor's request has seen the write.
#[test]
fn while_an_older_transaction_is_open_a_writer_waits_for_a_poll_and_not_for_its_end() {
    let database = SERVER.database().unwrap();
    let (first, second, _) = two(&database);
    let mut open = client(&database);
    open.batch_execute("begin; insert into comment (article_id, who) values (2, 'Bob')")
        .unwrap();
    let written = say(&first, "Ann");
    for site in [&first, &second] {
        let own = get(site, "/a", &written);
        assert_eq!((&*own.body, own.cache()), ("Ann,", BYPASS));
        site.until("a look", || {
            let own = get(site, "/a", &written);
            assert_eq!(own.body, "Ann,");
            own.cache() == "hit"
        });
    }
    open.batch_execute("commit").unwrap();
}
