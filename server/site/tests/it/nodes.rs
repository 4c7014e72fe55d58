//! Several nodes on one database: every node shows a visitor the visitor's own writes through other
//! nodes (coherence.md, rule 19).

use lab_pgtest::Database;
use millpond_http::{OwnedRequest, Reply, Service as _};
use millpond_site::SiteOptions;
use rustix::process::{Pid, Signal, kill_process};

use crate::postgres::{client, database, folder};
use crate::sessions::cookie;
use crate::support::{Answer, TestSite, write};

/// The bound is long: what is shown at once is shown by another rule.
pub(crate) fn settings(url: &str) -> String {
    format!(
        "[database]\nurl = \"{url}\"\n[cache]\nmax_staleness = \"10min\"\n[session]\nsecret = \"{}\"\n",
        "k".repeat(32)
    )
}

pub(crate) const PAGES: &[(&str, &str)] = &[
    (
        "pages/a.sql",
        "-- name: who :many\nselect who from comment where article_id = 1 order by id;\n",
    ),
    ("pages/a.html", "{% for c in who %}{{ c.who }},{% endfor %}"),
    (
        "pages/me.sql",
        "-- name: n :one\nselect count(*) as n from comment;\n",
    ),
    (
        "pages/me.html",
        "{{ n.n }} {{ request.headers.cookie or 'no cookie' }}",
    ),
    ("pages/varied.sql", "-- vary: Cookie\n"),
    (
        "pages/varied.html",
        "{{ request.headers.cookie or 'none' }}",
    ),
    (
        "pages/say.post.sql",
        "-- param: who text\n-- name: comment :exec\ninsert into comment (article_id, who) values (1, :who);\n-- redirect: /a\n",
    ),
];

fn node(database: &Database<'_>) -> TestSite {
    let dir = folder(database, PAGES);
    write(dir.path(), &[("millpond.toml", &settings(&database.url()))]);
    TestSite::open(dir, SiteOptions::default())
}

fn on_sqlite(file: &str) -> TestSite {
    let dir = crate::support::folder(PAGES);
    let url = if file.is_empty() {
        "sqlite:site.db".to_owned()
    } else {
        format!("sqlite:{file}")
    };
    write(dir.path(), &[("millpond.toml", &settings(&url))]);
    TestSite::open(dir, SiteOptions::default())
}

pub(crate) fn get(site: &TestSite, target: &str, cookie: &str) -> Answer {
    let request = OwnedRequest::new("GET", target).field("Host", "site.test");
    site.ask(&request.field("Cookie", cookie))
}

/// Says something through a node; gives the cookie.
pub(crate) fn say(site: &TestSite, who: &str) -> String {
    let answer = site.post("/say", &format!("who={who}"));
    assert_eq!(answer.status, 303, "{}", answer.body);
    cookie(&answer)
}

/// The server's sides of the feeds of a database.
fn feeds(database: &Database<'_>) -> Vec<i32> {
    let sql = "select active_pid from pg_replication_slots where database = current_database() and active_pid is not null";
    let rows = client(database).query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A feed that is held up: its server sends nothing.
pub(crate) struct Frozen(Pid);

impl Frozen {
    pub(crate) fn new(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }

    /// It goes on. One that has ended meanwhile is no error.
    pub(crate) fn thaw(&self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
    }
}

/// Two nodes, and the server's side of the feed of the second.
fn two(database: &Database<'_>) -> (TestSite, TestSite, i32) {
    let first = node(database);
    let before = feeds(database);
    let second = node(database);
    let after = feeds(database);
    let pid = after.into_iter().find(|pid| !before.contains(pid));
    (first, second, pid.expect("a feed of its own"))
}

#[test]
fn what_a_visitor_has_written_is_on_the_next_page_of_every_node() {
    let database = database();
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
    let database = database();
    let (first, second, feed) = two(&database);
    second.until("a hit", || second.get("/a").cache() == "hit");
    second.until("private", || {
        get(&second, "/me", "a=1").cache() == "fwd=bypass; detail=private"
    });
    let frozen = Frozen::new(feed);
    let cookie = say(&first, "Ann");
    assert!(cookie.starts_with("__Host-session-seen=w1."), "{cookie}");
    let old = |answer: Answer| assert_eq!((&*answer.body, answer.cache()), ("", "hit"));
    old(second.get("/a"));
    let own = get(&second, "/a", &cookie);
    assert_eq!(
        (&*own.body, own.cache()),
        ("Ann,", "fwd=bypass; detail=own-write")
    );
    // It is the page for every visitor, without a private mark.
    assert_eq!(own.field("cache-control"), "no-cache");
    assert_eq!(own.field("set-cookie"), "");
    let me = get(&second, "/me", &format!("a=1; {cookie}"));
    assert_eq!(
        (&*me.body, me.cache()),
        ("1 a=1", "fwd=bypass; detail=own-write")
    );
    old(second.get("/a"));
    old(get(&second, "/a", &cookie[..cookie.len() - 1]));
    old(get(&second, "/a", "__Host-session-seen=1.x.y"));
    // Where it was written there is nothing to wait for.
    let here = get(&first, "/a", &cookie);
    assert!(!here.cache().contains("own-write"), "{}", here.cache());
    first.until("a hit", || get(&first, "/a", &cookie).cache() == "hit");
    drop(frozen);
    second.until("the feed goes on", || {
        let answer = get(&second, "/a", &cookie);
        assert_eq!(answer.body, "Ann,");
        answer.cache() == "hit"
    });
    assert_eq!(second.get("/a").body, "Ann,");
}

#[test]
fn over_plain_http_browsers_keep_the_write_cookie() {
    let site = on_sqlite("");
    let form = OwnedRequest::new("POST", "/say")
        .field("Host", "site.test")
        .field("Origin", "http://site.test")
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("who=Ann");
    let answer = site.ask(&form);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let field = answer.field("set-cookie");
    assert!(
        field.starts_with("session-seen=w1.") && !field.contains("Secure"),
        "{field}"
    );
    let other = on_sqlite(site.dir.path().join("site.db").to_str().unwrap());
    other.until("a hit", || other.get("/a").cache() == "hit");
    site.ask(&form);
    let cookie = cookie(&site.ask(&form));
    assert_eq!(get(&other, "/a", &cookie).body, "Ann,Ann,Ann,");
    assert_eq!(get(&other, "/me", &cookie).body, "3 no cookie");
}

#[test]
fn an_answer_is_kept_for_a_writer_once_the_feed_has_passed_the_write() {
    let database = database();
    let (first, second, feed) = two(&database);
    second.until("a hit", || second.get("/a").cache() == "hit");
    let frozen = Frozen::new(feed);
    let cookie = say(&first, "Ann");
    let service = second.site.service();
    let is_kept = |cookie: &str| {
        let request = OwnedRequest::new("GET", "/a").field("Host", "site.test");
        let request = request.field("Cookie", cookie).wanting_validity();
        matches!(service.call(&request.as_request()), Reply::Reusable(..))
    };
    assert!(is_kept("a=1"), "the old page, which others may have");
    assert!(!is_kept(&cookie));
    drop(frozen);
    second.until("passed", || get(&second, "/a", &cookie).cache() == "hit");
    assert!(is_kept(&cookie));
}

#[test]
fn a_visitor_who_waits_for_the_feed_sees_the_write_in_time_or_late() {
    let database = database();
    let (first, second, feed) = two(&database);
    second.until("a hit", || second.get("/a").cache() == "hit");
    let frozen = Frozen::new(feed);
    let cookie = say(&first, "Ann");
    std::thread::scope(|scope| {
        scope.spawn(move || drop(frozen));
        assert_eq!(get(&second, "/a", &cookie).body, "Ann,");
    });
}

/// *Counterexample* with positions alone: a visitor whose write has no known position would bypass
/// the cache until the bound is over, and a minute more.
#[test]
fn a_write_without_a_position_bypasses_the_cache_for_a_heartbeat() {
    let database = database();
    let (first, second, feed) = two(&database);
    let mut others = feeds(&database);
    others.retain(|pid| *pid != feed);
    let [own] = others[..] else {
        panic!("the feed of the first: {others:?}")
    };
    second.until("a hit", || second.get("/a").cache() == "hit");
    let frozen = [Frozen::new(own), Frozen::new(feed)];
    // The connection goes while the form waits for its change.
    let cookie = std::thread::scope(|scope| {
        scope.spawn(|| {
            let written = "select count(*) from comment";
            let mut client = client(&database);
            let is_written = |row: postgres::Row| row.get::<_, i64>(0) == 1;
            while !client.query_one(written, &[]).is_ok_and(is_written) {
                std::thread::yield_now();
            }
            let end = "select pg_terminate_backend($1)";
            client.query_one(end, &[&own]).unwrap();
            let [first, _second] = &frozen;
            first.thaw();
        });
        say(&first, "Ann")
    });
    let away = get(&second, "/a", &cookie);
    assert_eq!(
        (&*away.body, away.cache()),
        ("Ann,", "fwd=bypass; detail=own-write")
    );
    assert_eq!(second.get("/a").body, "", "others have the old page");
    drop(frozen);
    for site in [&first, &second] {
        site.until("a heartbeat", || {
            let answer = get(site, "/a", &cookie);
            assert_eq!(answer.body, "Ann,");
            answer.cache() == "hit"
        });
    }
}

#[test]
fn a_position_of_another_server_is_never_passed_and_not_waited_for() {
    let database = database();
    let here = node(&database);
    here.until("a hit", || here.get("/a").cache() == "hit");
    let cookie = say(&on_sqlite(""), "Ann");
    for _ in 0..3 {
        let answer = get(&here, "/a", &cookie);
        assert_eq!(answer.cache(), "fwd=bypass; detail=own-write");
    }
    assert_eq!(here.get("/a").cache(), "hit");
}

#[test]
fn the_write_cookie_is_in_no_key_and_no_template() {
    let site = on_sqlite("");
    let cookie = say(&site, "Ann");
    assert_eq!(get(&site, "/varied", "a=1").body, "a=1");
    assert_eq!(
        get(&site, "/varied", &format!("{cookie}; a=1")).cache(),
        "hit"
    );
    assert_eq!(get(&site, "/varied", &cookie).body, "none");
    assert_eq!(site.get("/varied").cache(), "hit");
    assert_eq!(get(&site, "/me", &cookie).body, "1 no cookie");
}

#[test]
fn two_processes_on_one_file_are_nodes_too() {
    let first = on_sqlite("");
    let file = first.dir.path().join("site.db");
    let second = on_sqlite(file.to_str().unwrap());
    let mut said = String::new();
    for round in 0..20 {
        second.until("a hit", || second.get("/a").cache() == "hit");
        let cookie = say(&first, &format!("v{round}"));
        said += &format!("v{round},");
        assert_eq!(get(&second, "/a", &cookie).body, said);
        second.until("passed", || get(&second, "/a", &cookie).cache() == "hit");
    }
}

#[test]
fn without_a_key_no_write_cookie_is_sent() {
    let site = TestSite::with(PAGES, SiteOptions::default());
    assert_eq!(say(&site, "Ann"), "");
}
