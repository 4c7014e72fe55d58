//! Pages of the store: what ends them, what keeps them out, and who waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lab_testkit::{Connection, PATIENCE};
use millpond::{
    Failure, Page, Request, Response, Routes, Store, StoreSettings, WebServer, blocking, stored,
};

use crate::support::{Gate, connect, get, serve, settings};

/// Addresses, the store, and how often a page was made.
#[derive(Clone, Default)]
struct Book {
    addresses: Arc<Mutex<BTreeMap<u32, String>>>,
    store: Store,
    made: Arc<AtomicUsize>,
    /// Passed between reading and returning.
    gate: Gate,
}

impl Book {
    fn set(&self, id: u32, text: &str) {
        self.addresses.lock().unwrap().insert(id, text.to_owned());
        self.store.changed("address", id);
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    fn routes(&self) -> Routes {
        let mut routes = Routes::new();
        let book = self.clone();
        let one = move |page: &mut Page, id: u32| {
            page.depends_on("address", id);
            book.made.fetch_add(1, Ordering::SeqCst);
            book.addresses.lock().unwrap().get(&id).cloned()
        };
        let book = self.clone();
        let list = move |page: &mut Page| {
            page.depends_on_all("address");
            book.made.fetch_add(1, Ordering::SeqCst);
            book.addresses.lock().unwrap().len().to_string()
        };
        let book = self.clone();
        let gated = move |page: &mut Page, id: u32| {
            page.depends_on("address", id);
            book.made.fetch_add(1, Ordering::SeqCst);
            let read = book.addresses.lock().unwrap().get(&id).cloned();
            book.gate.pass();
            read
        };
        routes
            .get("/addresses/{id}", stored(&self.store, one))
            .get("/addresses", stored(&self.store, list))
            .get("/gated/{id}", stored(&self.store, gated));
        routes
    }
}

#[track_caller]
fn check(server: &WebServer, target: &str, status: u16, text: &str) {
    // Twice on one connection, as the second may be a repeated answer.
    let mut client = connect(server);
    for _ in 0..3 {
        let response = client.get(target);
        assert_eq!(
            (response.status, &*response.text()),
            (status, text),
            "{target}"
        );
    }
}

#[test]
fn a_page_is_kept_until_what_it_depends_on_changes() {
    let book = Book::default();
    book.set(1, "one");
    book.set(2, "two");
    let server = serve(book.routes());
    for _ in 0..2 {
        check(&server, "/addresses/1", 200, "one");
        check(&server, "/addresses/2", 200, "two");
        check(&server, "/addresses/3", 404, "not found\n");
        check(&server, "/addresses", 200, "2");
    }
    assert_eq!(book.made(), 4);
    book.set(1, "uno");
    check(&server, "/addresses/1", 200, "uno");
    check(&server, "/addresses/2", 200, "two");
    check(&server, "/addresses", 200, "2");
    assert_eq!(book.made(), 6);
    book.set(3, "three");
    check(&server, "/addresses/3", 200, "three");
    check(&server, "/addresses", 200, "3");
    assert_eq!(book.made(), 8);
    book.addresses.lock().unwrap().clear();
    book.store.changed_all("address");
    check(&server, "/addresses/2", 404, "not found\n");
    check(&server, "/addresses", 200, "0");
    book.store.changed("person", 2);
    check(&server, "/addresses/2", 404, "not found\n");
    assert_eq!(book.made(), 10);
    book.store.changed_everything();
    check(&server, "/addresses/2", 404, "not found\n");
    assert_eq!(book.made(), 11);
    // What is no id makes nothing.
    check(
        &server,
        "/addresses/x",
        404,
        "id: \"x\" is not a whole number from 0 to 4294967295\n",
    );
    assert_eq!(book.made(), 11);
    let mut client = connect(&server);
    let etag = client.get("/addresses").field("etag").unwrap().to_owned();
    let response = client.get_with("/addresses", &[&format!("If-None-Match: {etag}")]);
    assert_eq!(response.status, 304);
    book.set(9, "nine");
    let response = client.get_with("/addresses", &[&format!("If-None-Match: {etag}")]);
    assert_eq!((response.status, &*response.text()), (200, "1"));
}

#[test]
fn what_was_read_before_a_change_is_not_kept() {
    let book = Book::default();
    book.set(1, "before");
    let server = serve(book.routes());
    let mut early = connect(&server);
    early.send("GET /gated/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    book.gate.wait_for(1);
    book.set(1, "after");
    // It comes after the change, so what is being made is too old for it.
    let mut late = connect(&server);
    late.send("GET /gated/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    while book.store.stats().waited == 0 {
        std::thread::yield_now();
    }
    book.gate.open(2);
    // It asked before the change.
    assert_eq!(early.receive().text(), "before");
    assert_eq!(late.receive().text(), "after");
    check(&server, "/gated/1", 200, "after");
    assert_eq!(book.made(), 2);
    assert_eq!(book.store.stats().fenced, 1);
}

#[test]
fn many_wait_for_one_page_even_if_its_first_client_goes() {
    let book = Book::default();
    book.set(1, "one");
    let server = serve(book.routes());
    let mut first = connect(&server);
    first.send("GET /gated/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    book.gate.wait_for(1);
    let mut clients: Vec<_> = (0..200).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.send("GET /gated/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    while book.store.stats().waited < 200 {
        std::thread::yield_now();
    }
    drop(first);
    book.gate.open(1);
    for client in &mut clients {
        assert_eq!(client.receive().text(), "one");
    }
    assert_eq!(book.made(), 1);
}

#[test]
fn a_page_that_fails_is_not_kept_and_frees_those_who_wait() {
    let store = Store::new();
    let (gate, calls) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let mut routes = Routes::new();
    let (passed, counted) = (gate.clone(), Arc::clone(&calls));
    let function = move |page: &mut Page, how: String| {
        page.depends_on_all("x");
        let call = counted.fetch_add(1, Ordering::SeqCst);
        passed.pass();
        match &*how {
            "panic" if call == 0 => panic!("asked for"),
            "fail" if call == 0 => Err(Failure::new(502, "the source is away")),
            _ => Ok("well"),
        }
    };
    routes.get("/{how}", stored(&store, function));
    let server = serve(routes);
    for (how, status) in [("panic", 500), ("fail", 502)] {
        calls.store(0, Ordering::SeqCst);
        let before = store.stats().waited;
        let mut clients: Vec<_> = (0..20).map(|_| connect(&server)).collect();
        for client in &mut clients {
            client.send(format!("GET /{how} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        while store.stats().waited < before + 19 {
            std::thread::yield_now();
        }
        gate.open(1);
        for client in &mut clients {
            assert_eq!(client.receive().status, status);
        }
        gate.open(1);
        check(&server, &format!("/{how}"), 200, "well");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn only_what_something_ends_is_kept_and_cookies_are_given_to_one() {
    let store = Store::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let mut routes = Routes::new();
    let counted = Arc::clone(&calls);
    let function = move |page: &mut Page, how: String| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        match &*how {
            "age" => {
                page.max_age(Duration::from_millis(200));
            }
            "constant" => {
                page.never_changes();
            }
            "unwanted" => {
                page.depends_on_all("x").do_not_keep();
            }
            "cookie" => {
                page.depends_on_all("x");
            }
            _ => {}
        }
        let response = Response::text(format!("{how} {call}"));
        match &*how {
            "cookie" => response.with_field("Set-Cookie", format!("id={call}")),
            _ => response,
        }
    };
    routes.get("/{how}", stored(&store, function));
    let server = serve(routes);
    for (how, is_kept) in [
        ("nothing", false),
        ("constant", true),
        ("unwanted", false),
        ("cookie", false),
        ("age", true),
    ] {
        let path = format!("/{how}");
        let first = get(&server, &path).text();
        assert_eq!(get(&server, &path).text() == first, is_kept, "{how}");
    }
    let first = get(&server, "/age").text();
    let begun = Instant::now();
    while get(&server, "/age").text() == first {
        assert!(begun.elapsed() < PATIENCE, "its age does not end it");
    }
}

#[test]
fn a_source_that_is_looked_at_vouches_for_a_bounded_time() {
    let settings = StoreSettings {
        max_staleness: Some(Duration::from_secs(3600)),
        ..StoreSettings::default()
    };
    let store = Store::with(&settings);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut routes = Routes::new();
    let function = move |page: &mut Page| {
        page.depends_on_all("file");
        counted.fetch_add(1, Ordering::SeqCst).to_string()
    };
    routes.get("/", stored(&store, function));
    let server = serve(routes);
    // Nothing vouches for a page yet.
    assert_eq!(get(&server, "/").text(), "0");
    assert_eq!(get(&server, "/").text(), "1");
    store.look().done();
    let text = get(&server, "/").text();
    check(&server, "/", 200, &text);
    // A look whose bound is over at once.
    let settings = StoreSettings {
        max_staleness: Some(Duration::from_nanos(1)),
        ..settings
    };
    let store = Store::with(&settings);
    let mut routes = Routes::new();
    let counted = Arc::clone(&calls);
    let function = move |page: &mut Page| {
        page.depends_on_all("file");
        counted.fetch_add(1, Ordering::SeqCst).to_string()
    };
    routes.get("/", stored(&store, function));
    let server = serve(routes);
    store.look().done();
    assert_ne!(get(&server, "/").text(), get(&server, "/").text());
}

/// Writers change a number and read its page at once, on several connections: what comes back is
/// never older than what was written.
#[test]
fn a_writer_reads_what_was_written_while_others_write() {
    let book = Book::default();
    let server = settings().workers(2).serve(book.routes()).unwrap();
    std::thread::scope(|scope| {
        for id in 0..4 {
            let (book, server) = (&book, &server);
            scope.spawn(move || {
                let mut client = connect(server);
                for n in 0..300 {
                    book.set(id, &n.to_string());
                    for _ in 0..2 {
                        let read = client.get(&format!("/addresses/{id}")).text();
                        assert_eq!(read, n.to_string());
                    }
                }
            });
        }
    });
}

#[test]
fn a_stored_page_is_compressed_once_and_has_many_dependencies() {
    let store = Store::new();
    let mut routes = Routes::new();
    let function = |page: &mut Page| {
        for id in 0..5000 {
            page.depends_on("row", id);
        }
        Response::html("<p>text</p>".repeat(1000))
    };
    routes.get("/", stored(&store, function));
    let server = serve(routes);
    let mut client = connect(&server);
    let begun = Instant::now();
    loop {
        let response = client.get_with("/", &["Accept-Encoding: br"]);
        if response.field("content-encoding") == Some("br") {
            assert!(response.body.len() < 1000);
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "it is not compressed");
    }
    assert_eq!(client.get("/").body.len(), 11_000);
    assert_eq!(store.stats().pages, 1);
    // Too many for a list: it depends on the kind.
    store.changed("row", 9999);
    client.get("/");
    assert_eq!(client.get("/").status, 200);
}

/// The pool has one thread, which is held, and one place in its queue.
#[test]
fn a_coding_takes_no_thread_from_handlers() {
    let (gate, store) = (Gate::default(), Store::new());
    let mut routes = Routes::new();
    let page = |page: &mut Page| {
        page.never_changes();
        "again and again ".repeat(2000)
    };
    let held = gate.clone();
    let wait = move |_: &Request| {
        held.pass();
        "passed"
    };
    routes
        .get("/page", stored(&store, page))
        .get("/wait", blocking(wait));
    let settings = settings().blocking_threads(1).blocking_queue(1);
    let server = settings.serve(routes).unwrap();
    assert_eq!(get(&server, "/page").status, 200);
    let wait = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";
    let (mut first, mut second) = (connect(&server), connect(&server));
    first.send(wait);
    gate.wait_for(1);
    let mut client = connect(&server);
    let hit = |client: &mut Connection| {
        client.send("GET /page HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
        client.receive().field("content-encoding") == Some("gzip")
    };
    let begun = Instant::now();
    while !hit(&mut client) {
        assert!(begun.elapsed() < PATIENCE, "it is not compressed");
    }
    second.send(wait);
    // It is answered after the second request was received, so that one has its place.
    assert!(hit(&mut client));
    gate.open(2);
    assert_eq!(
        (first.receive().status, second.receive().status),
        (200, 200)
    );
}
