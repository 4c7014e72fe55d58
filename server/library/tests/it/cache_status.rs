//! What responses say of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab_testkit::Connection;
use millpond::{Failure, Page, Response, Routes, Store, StoreSettings, stored};

use crate::support::{Gate, connect, serve};

fn routes(store: &Store) -> Routes {
    let mut routes = Routes::new();
    let page = |page: &mut Page, how: String| {
        page.depends_on_all("x");
        match &*how {
            "missing" => return Err(Failure::not_found()),
            "broken" => return Err(Failure::new(502, "the source is away")),
            "unkept" => _ = page.do_not_keep(),
            "cookie" => return Ok(Response::text("a").with_field("Set-Cookie", "a=b")),
            _ => {}
        }
        Ok(Response::text("a"))
    };
    routes.get("/{how}", stored(store, page));
    routes
}

#[track_caller]
fn check(client: &mut Connection, target: &str, expected: Option<&str>) {
    let response = client.get(target);
    assert_eq!(response.field("cache-status"), expected, "{target}");
}

#[test]
fn a_response_says_where_its_page_came_from() {
    let store = Store::new();
    let server = serve(routes(&store));
    let mut client = connect(&server);
    for (target, kept) in [("/page", true), ("/missing", true), ("/unkept", false)] {
        let made = store.stats().made;
        let first = match kept {
            true => "millpond; fwd=miss; stored",
            false => "millpond; fwd=miss",
        };
        check(&mut client, target, Some(first));
        let again = if kept { "millpond; hit" } else { first };
        // The third may be a repeated answer.
        for _ in 0..3 {
            check(&mut client, target, Some(again));
        }
        let (before, changed) = (if kept { 1 } else { 4 }, store.stats().made);
        assert_eq!(changed, made + before);
        store.changed("x", 1);
        if kept {
            check(&mut client, target, Some("millpond; fwd=stale; stored"));
            check(&mut client, target, Some("millpond; hit"));
        }
    }
    for target in ["/broken", "/cookie", "/broken"] {
        check(&mut client, target, Some("millpond; fwd=miss"));
    }
    // Also where nothing is sent.
    let etag = client.get("/page").field("etag").unwrap().to_owned();
    let response = client.get_with("/page", &[&format!("If-None-Match: {etag}")]);
    assert_eq!(response.status, 304);
    assert_eq!(response.field("cache-status"), Some("millpond; hit"));
}

#[test]
fn a_request_that_waited_says_so() {
    let (store, gate) = (Store::new(), Gate::default());
    let made = Arc::new(AtomicUsize::new(0));
    let mut routes = Routes::new();
    let (passed, counted) = (gate.clone(), Arc::clone(&made));
    let page = move |page: &mut Page| {
        page.depends_on_all("x");
        counted.fetch_add(1, Ordering::SeqCst);
        passed.pass();
        "a"
    };
    routes.get("/", stored(&store, page));
    let server = serve(routes);
    let (mut first, mut second) = (connect(&server), connect(&server));
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait_for(1);
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    while store.stats().waited == 0 {
        std::thread::yield_now();
    }
    gate.open(1);
    let status = first.receive().field("cache-status").map(str::to_owned);
    assert_eq!(status.as_deref(), Some("millpond; fwd=miss; stored"));
    let status = second.receive().field("cache-status").map(str::to_owned);
    assert_eq!(status.as_deref(), Some("millpond; fwd=miss; collapsed"));
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn a_program_may_leave_it_out() {
    let store = Store::with(&StoreSettings {
        cache_status: false,
        ..StoreSettings::default()
    });
    let server = serve(routes(&store));
    let mut client = connect(&server);
    for target in ["/page", "/page", "/page", "/missing", "/missing", "/cookie"] {
        check(&mut client, target, None);
    }
}
