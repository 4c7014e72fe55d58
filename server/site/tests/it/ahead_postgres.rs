//! Hot pages made again before they are asked for, on a real PostgreSQL.

use std::task::{Context, Poll, Waker};

use lab_pgtest::Database;
use millpond_http::{OwnedRequest, Reply, Service};

use crate::{
    postgres::{client, database, site},
    support::TestSite,
};

const WHO: (&str, &str) = (
    "pages/who.sql",
    "-- name: who :many\nselect who from comment where article_id = :id order by id;\n",
);
const WHO_HTML: (&str, &str) = (
    "pages/who.html",
    "{% for c in who %}{{ c.who }},{% endfor %}",
);
const TITLE: (&str, &str) = (
    "pages/title.sql",
    "-- name: a :one\nselect title from article where id = :id;\n",
);

/// A site with one connection, which makes ahead what it may.
fn eager(database: &Database<'_>) -> TestSite {
    let settings = format!(
        "[database]\nurl = \"{}\"\npool = 1\n[cache]\nrefresh_ahead = 100\n",
        database.url()
    );
    let toml = ("millpond.toml", &*settings);
    let site = site(database, &[toml, WHO, WHO_HTML, TITLE]);
    let filled = "insert into comment (article_id, who) values (1, 'Ann'), (2, 'Bob')";
    client(database).batch_execute(filled).unwrap();
    site.until("the comments show", || site.get("/who?id=1").body == "Ann,");
    site.until("a hit", || site.get("/who?id=1").cache() == "hit");
    for _ in 0..20 {
        site.get("/who?id=1");
    }
    site
}

fn made(site: &TestSite) -> u64 {
    site.site.stats().ahead
}

#[test]
fn a_hot_page_is_a_hit_again_after_another_program_has_changed_it() {
    let database = database();
    let site = eager(&database);
    let before = made(&site);
    let rename = "update comment set who = 'Eve' where article_id = 1";
    client(&database).batch_execute(rename).unwrap();
    site.until("it is made", || made(&site) > before);
    let hot = site.get("/who?id=1");
    assert_eq!((hot.cache(), &*hot.body), ("hit", "Eve,"));
}

/// The only connection is busy with one visitor's read, and another's waits for it.
#[test]
fn nothing_is_begun_while_a_visitors_read_waits() {
    let database = database();
    let site = eager(&database);
    let before = made(&site);
    let mut locker = client(&database);
    let mut lock = locker.transaction().unwrap();
    lock.batch_execute("lock table article in access exclusive mode")
        .unwrap();
    let service = site.site.service();
    let mut context = Context::from_waker(Waker::noop());
    let mut visitors: Vec<_> = ["/title?id=1", "/title?id=2"]
        .into_iter()
        .map(|target| {
            let request = OwnedRequest::new("GET", target).field("Host", "site.test");
            let Reply::Later(future) = service.call(&request.as_request()) else {
                panic!("nobody has asked for it yet");
            };
            future
        })
        .collect();
    for visitor in &mut visitors {
        assert!(visitor.as_mut().poll(&mut context).is_pending());
    }
    let store = || site.site.stats().store;
    let mut writer = client(&database);
    // Each of the further changes is a moment in which it could be begun.
    for n in 0..10 {
        let changes = store().changes;
        let id = if n == 0 { 1 } else { 2 };
        let rename = format!("update comment set who = 'Eve {n}' where article_id = {id}");
        writer.batch_execute(&rename).unwrap();
        site.until("it is noticed", || store().changes > changes);
    }
    assert_eq!(
        (store().ahead, store().flights, made(&site)),
        (1, 2, before)
    );
    lock.commit().unwrap();
    for visitor in &mut visitors {
        site.until("it is answered", || {
            matches!(visitor.as_mut().poll(&mut context), Poll::Ready(answer) if answer.status() == 200)
        });
    }
    site.until("it is made", || made(&site) > before);
    assert_eq!(site.get("/who?id=1").body, "Eve 0,");
}
