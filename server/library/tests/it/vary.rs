//! What depends on `Accept` says so.

use millpond::{BodyReader, Failure, Request, Response, Routes, blocking, quick, reading};

use crate::support::{connect, serve};

/// JSON or a text, or a failure, as the client prefers.
fn preferred(request: &Request<'_>, vary: Option<&str>) -> Result<Response, Failure> {
    let is_json = request.prefers_json();
    match vary {
        Some("failed") => Err(Failure::new(406, is_json.to_string()).with_field("Vary", "Cookie")),
        Some(vary) => Ok(Response::text(is_json.to_string()).with_field("Vary", vary)),
        None => Ok(Response::text(is_json.to_string())),
    }
}

fn routes() -> Routes {
    let mut routes = Routes::new();
    let vary = |request: &Request<'_>, vary: Option<String>| preferred(request, vary.as_deref());
    let read = |request: &Request<'_>, _: BodyReader| preferred(request, None);
    routes
        .get("/quick?{vary}", quick(vary))
        .get("/blocking?{vary}", blocking(vary))
        .post("/reading", reading(99, read))
        .get(
            "/field",
            quick(|request: &Request| request.field("ACCEPT").unwrap_or("none").to_owned()),
        )
        .get(
            "/all",
            quick(|request: &Request| request.fields().count().to_string()),
        )
        .get(
            "/clone",
            quick(|request: &Request| request.clone().prefers_json().to_string()),
        )
        .get(
            "/other",
            quick(|request: &Request| request.path().to_owned()),
        );
    routes
}

#[test]
fn an_answer_that_depends_on_accept_has_vary() {
    let shows = |request: &Request<'_>, failure: &Failure| {
        assert!(request.field("host").is_some());
        Response::text(failure.message().to_owned()).with_field("Vary", "Origin")
    };
    let plain = serve(routes());
    let mut shown = routes();
    shown.failures(shows);
    let shown = serve(shown);
    for (head, plainly, by_function) in [
        ("GET /quick", Some("Accept, Authorization"), None),
        ("GET /blocking", Some("Accept, Authorization"), None),
        ("POST /reading", Some("Accept, Authorization"), None),
        ("GET /field", Some("Accept, Authorization"), None),
        ("GET /all", Some("Accept, Authorization"), None),
        ("GET /clone", Some("Accept, Authorization"), None),
        ("HEAD /quick", Some("Accept, Authorization"), None),
        ("GET /other", None, None),
        (
            "GET /quick?vary=Cookie",
            Some("Cookie, Accept, Authorization"),
            None,
        ),
        ("GET /quick?vary=", Some("Accept, Authorization"), None),
        ("GET /quick?vary=%20", Some("Accept, Authorization"), None),
        ("GET /quick?vary=*", Some("*"), None),
        (
            "GET /blocking?vary=Cookie,%20accept",
            Some("Cookie, accept, Authorization"),
            None,
        ),
        (
            "GET /quick?vary=failed",
            Some("Cookie, Accept, Authorization"),
            Some("Origin, Accept, Authorization"),
        ),
        (
            "GET /blocking?vary=failed",
            Some("Cookie, Accept, Authorization"),
            Some("Origin, Accept, Authorization"),
        ),
        ("GET /absent", None, Some("Origin")),
    ] {
        for (server, expected) in [(&plain, plainly), (&shown, by_function.or(plainly))] {
            let mut client = connect(server);
            client.send(format!(
                "{head} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n"
            ));
            let response = match head.starts_with("HEAD") {
                true => client.receive_head(),
                false => client.receive(),
            };
            let is_vary = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("vary");
            let found: Vec<_> = response.fields.iter().filter(is_vary).collect();
            assert_eq!(found.len(), usize::from(expected.is_some()), "{head}");
            assert_eq!(response.field("vary"), expected, "{head}");
        }
    }
}

/// Threads that a handler lends its request to are heard too.
#[test]
fn a_thread_of_the_handler_may_read_accept() {
    let mut routes = Routes::new();
    let lend = |request: &Request<'_>| {
        let read = || request.prefers_json().to_string();
        std::thread::scope(|scope| scope.spawn(read).join().unwrap())
    };
    routes.get("/", blocking(lend));
    let response = connect(&serve(routes)).get("/");
    assert_eq!(response.field("vary"), Some("Accept, Authorization"));
}
