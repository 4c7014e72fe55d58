//! More requests than can be answered.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use base_clock::Boottime;
use millpond_http::{OwnedRequest, Reply, Response, Service};
use millpond_site::SiteOptions;

use crate::support::TestSite;

type Answering = Pin<Box<dyn Future<Output = Response>>>;

/// One reader and one worker: two fills at once.
fn site(deadline: &str) -> TestSite {
    let settings = format!(
        "[cache]\nrefresh_ahead = 0\n[database]\nstatement_timeout = \"2s\"\n[limits]\ndeadline = \"{deadline}\"\n"
    );
    let files = [
        ("millpond.toml", &*settings),
        (
            "pages/article/[id].sql",
            "-- param: id integer\n-- name: article :one\nselect title from article where id = :id;\n",
        ),
        (
            "pages/search.sql",
            "-- param: q text\n-- crawl: no\n-- name: found :many\nselect id from article where title = :q;\n",
        ),
        (
            "pages/tag/[tag]/all.sql",
            "-- param: tag text\n-- crawl: no\n-- name: found :many\nselect id from article where title = :tag;\n",
        ),
        (
            "pages/endless.sql",
            "-- name: counted :one\nwith recursive n(i) as (select 1 union all select i + 1 from n) select max(i) as last from n;\n",
        ),
        (
            "pages/add.post.sql",
            "-- param: title text\n-- name: added :exec\ninsert into article (title) values (:title);\n-- redirect: /\n",
        ),
    ];
    let options = SiteOptions {
        readers: Some(1),
        workers: 1,
        ..SiteOptions::default()
    };
    TestSite::with(&files, options)
}

/// A request whose answer needs a fill.
fn asks(site: &TestSite, target: &str) -> Answering {
    let peer = ([127, 0, 0, 1], 1).into();
    let request = OwnedRequest::new("GET", target).field("Host", "site.test");
    let request = request.from_peer(peer, Boottime::now());
    match site.site.service().call(&request.as_request()) {
        Reply::Later(answering) => answering,
        Reply::Ready(_) | Reply::Reusable(_) => panic!("{target} needs no fill"),
    }
}

/// Two fills that take all turns, and do not go on until they are polled again.
fn busy(site: &TestSite) -> Vec<(String, Answering)> {
    let targets = (0..).map(|n| format!("/search?q={n}"));
    let fills = targets.map(|target| {
        let mut answering = asks(site, &target);
        // A fast reader may answer within the first poll.
        let is_pending = poll(&mut answering).is_none();
        is_pending.then_some((target, answering))
    });
    fills.flatten().take(2).collect()
}

fn poll(answering: &mut Answering) -> Option<Response> {
    let mut context = Context::from_waker(Waker::noop());
    match answering.as_mut().poll(&mut context) {
        Poll::Ready(response) => Some(response),
        Poll::Pending => None,
    }
}

#[test]
fn a_fill_that_waits_too_long_is_refused_and_hits_and_those_who_join_are_answered() {
    let site = site("10ms");
    assert_eq!(site.get("/article/1").status, 200);
    let mut running = busy(&site);
    let mut waiting = asks(&site, "/article/2");
    let mut refused = None;
    site.until("the wait to be over", || {
        refused = poll(&mut waiting);
        refused.is_some()
    });
    let refused = refused.unwrap();
    assert_eq!(refused.status(), 503);
    let seconds: u32 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=5).contains(&seconds));
    assert_eq!(site.get("/article/1").cache(), "hit");
    assert_eq!(site.post("/add", "title=Three").status, 303);
    let mut joined = asks(&site, &running[0].0);
    assert!(poll(&mut joined).is_none());
    let running = running.iter_mut().map(|(_, answering)| answering);
    for answering in running.chain([&mut joined]) {
        let mut response = None;
        site.until("an answer", || {
            response = poll(answering);
            response.is_some()
        });
        assert_eq!(response.unwrap().status(), 200);
    }
    assert_eq!(site.get("/article/2").status, 200);
}

#[test]
fn who_goes_away_leaves_the_queue_and_its_page_is_not_made() {
    let site = site("1h");
    let running = busy(&site);
    let mut gone = asks(&site, "/article/2");
    assert!(poll(&mut gone).is_none());
    assert_eq!(site.site.stats().admission.waiting, 1);
    drop(gone);
    assert_eq!(site.site.stats().admission.waiting, 0);
    drop(running);
    site.until("their reads to end", || {
        site.site.stats().admission.running == 0
    });
    assert_eq!(site.get("/article/2").cache(), "fwd=miss; stored");
}

#[test]
fn a_read_that_runs_on_when_its_request_has_gone_keeps_its_slot() {
    let site = site("1h");
    site.until("a read without a request", || {
        let mut gone = asks(&site, "/endless");
        assert!(poll(&mut gone).is_none());
        drop(gone);
        site.site.stats().admission.running == 1
    });
    site.until("the statement's time to be over", || {
        site.site.stats().admission.running == 0
    });
}

#[test]
fn crawlers_are_asked_to_stay_away_where_the_site_does_not_say_it_itself() {
    let site = site("1s");
    let robots = site.get("/robots.txt");
    assert_eq!(robots.status, 200);
    assert_eq!(robots.field("content-type"), "text/plain; charset=utf-8");
    assert_eq!(
        robots.body,
        "User-agent: *\nDisallow: /search$\nDisallow: /search?\n\
         Disallow: /tag/*/all$\nDisallow: /tag/*/all?\n"
    );
    let own = TestSite::new(&[("static/robots.txt", "User-agent: *\n")]);
    assert_eq!(own.get("/robots.txt").body, "User-agent: *\n");
    assert_eq!(TestSite::new(&[]).get("/robots.txt").status, 404);
    let refused = crate::support::problems(&[(
        "pages/add.post.sql",
        "-- crawl: no\n-- name: added :exec\ninsert into article (title) values ('x');\n-- redirect: /\n",
    )]);
    assert!(refused.contains("crawlers send no forms"), "{refused}");
}
