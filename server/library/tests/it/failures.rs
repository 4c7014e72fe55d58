//! What failures look like, to each client.

use millpond::{
    BodyReader, Failure, IntoResponse, Page, Request, Response, Routes, Store, Stream, blocking,
    reading, stored,
};

use crate::routes::routes;
use crate::support::{connect, get, serve};

/// Routes whose failures are JSON or HTML, as the client prefers.
fn preferring_routes(store: &Store) -> Routes {
    let mut routes = routes();
    let page = |page: &mut Page, name: String| {
        page.depends_on("page", &name);
        let absent = Failure::not_found().with_field("Retry-After", "9");
        Err::<String, _>(absent.with_field("Link", "</a>").with_field("Link", "</b>"))
    };
    routes
        .get("/pages/{name}", stored(store, page))
        .get(
            "/block",
            blocking(|_: &Request| -> Response { panic!("asked for") }),
        )
        .post("/read", reading(10, |_: &Request, _: BodyReader| ()))
        .failures(|request: &Request, failure| {
            assert!(request.body().is_empty());
            let status = failure.status();
            match request.prefers_json() {
                true => Response::json(status.to_string()),
                false => Response::html(status.to_string())
                    .with_field("Vary", "Cookie, ACCEPT, Authorization"),
            }
        });
    routes
}

#[test]
fn a_failure_is_written_for_each_client() {
    let store = Store::new();
    let server = serve(preferring_routes(&store));
    let mut client = connect(&server);
    let long = "Content-Length: 1048577";
    for (head, status) in [
        ("GET /odd", 409),
        ("GET /albums/x?sort=a", 404),
        ("GET /flag?on=x", 400),
        ("GET /x", 404),
        ("GET /%ff", 400),
        ("PUT /odd", 405),
        ("GET /block", 500),
        ("GET /pages/a", 404),
        ("GET /pages/a", 404),
    ] {
        for (accept, media_type, vary) in [
            (
                "application/json",
                "application/json",
                "Accept, Authorization",
            ),
            (
                "text/html",
                "text/html; charset=utf-8",
                "Cookie, ACCEPT, Authorization",
            ),
            (
                "application/json",
                "application/json",
                "Accept, Authorization",
            ),
        ] {
            client.send(format!(
                "{head} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"
            ));
            let response = client.receive();
            assert_eq!(response.status, status, "{head}");
            assert_eq!(response.field("content-type"), Some(media_type), "{head}");
            assert_eq!(response.field("vary"), Some(vary), "{head}");
            assert_eq!(response.text(), status.to_string(), "{head}");
            if head.contains("/pages/") {
                assert_eq!(response.field("retry-after"), Some("9"));
                assert_eq!(response.field("cache-control"), Some("no-cache"));
                let links = response
                    .fields
                    .iter()
                    .filter(|(name, _)| name.eq_ignore_ascii_case("link"));
                assert_eq!(links.count(), 2);
            }
        }
    }
    // It is kept all the same.
    assert_eq!(store.stats().pages, 1);
    for head in ["POST /albums/1", "POST /read"] {
        let mut client = connect(&server);
        client.send(format!(
            "{head} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n{long}\r\n\r\n"
        ));
        let response = client.receive();
        assert_eq!(response.status, 413, "{head}");
        assert_eq!(response.field("content-type"), Some("application/json"));
    }
}

#[test]
fn what_shows_failures_may_fail_itself() {
    for how in 0..3 {
        let mut routes = Routes::new();
        routes.failures(move |_, failure| match how {
            0 => panic!("asked for"),
            1 => failure.clone().into_response(),
            _ => {
                let pieces = [Err::<&str, _>(Failure::not_found())];
                Response::stream("text/plain", Stream::quick(pieces))
            }
        });
        let server = serve(routes);
        let response = get(&server, "/x");
        assert_eq!(response.status, 404, "{how}");
    }
}
