//! Routes, parameters, methods, failures.

use millpond::{Failure, Request, Response, Routes, quick};

use crate::support::{ask, connect, get, serve};

pub(crate) fn routes() -> Routes {
    let mut routes = Routes::new();
    routes
        .get(
            "/albums/{id}?{page}&{sort}",
            quick(|_: &Request, id: u8, page: Option<u16>, sort: String| {
                format!("{id} {page:?} {sort}")
            }),
        )
        .post(
            "/albums/{id}",
            quick(|request: &Request, id: i64| format!("{id} {}", request.text().unwrap_or("?"))),
        )
        .get("/files/{path...}", quick(|_: &Request, path: String| path))
        .get(
            "/none/{n}",
            quick(|_: &Request, n: u8| (n > 1).then_some("more")),
        )
        .get(
            "/odd",
            quick(|_: &Request| Err::<(), _>(Failure::new(409, "odd <things>"))),
        )
        .get("/flag?{on}", quick(|_: &Request, on: bool| on.to_string()))
        .delete("/albums/{id}", quick(|_: &Request, _: u8| ()))
        .post(
            "/small",
            quick(|request: &Request| request.body().len().to_string()).body_limit(10),
        );
    routes
}

#[test]
fn parameters_have_types_and_a_wrong_value_says_what_is_expected() {
    let server = serve(routes());
    for (target, status, text) in [
        ("/albums/7?sort=a&page=2", 200, "7 Some(2) a"),
        ("/albums/7?sort=a%20%2B+b&other=1", 200, "7 None a + b"),
        ("/albums/%37?sort=", 200, "7 None "),
        ("/albums/7?sort=a&page=", 200, "7 None a"),
        (
            "/albums/256?sort=a",
            404,
            "id: \"256\" is not a whole number from 0 to 255\n",
        ),
        (
            "/albums/7?sort=a&page=x",
            400,
            "page: \"x\" is not a whole number from 0 to 65535\n",
        ),
        ("/albums/7", 400, "sort is missing (a text)\n"),
        ("/albums/7?sort=a&sort=b", 400, "sort is given twice\n"),
        ("/albums/7?sort=%C3", 400, "sort is not UTF-8\n"),
        ("/albums/7?sort=%EF%BF%BD&other=%ff", 200, "7 None \u{fffd}"),
        ("/albums/", 404, "not found\n"),
        ("/albums/7/", 404, "not found\n"),
        ("/files/a/b%20c", 200, "a/b c"),
        ("/files/", 200, ""),
        ("/files", 404, "not found\n"),
        ("/files/a/../../albums/7?sort=x", 200, "7 None x"),
        ("/files/%2f", 400, "the path contains an encoded slash\n"),
        ("/none/1", 404, "not found\n"),
        ("/none/2", 200, "more"),
        ("/odd", 409, "odd <things>\n"),
        ("/flag", 200, "false"),
        ("/flag?on", 200, "true"),
    ] {
        let response = get(&server, target);
        assert_eq!(
            (response.status, &*response.text()),
            (status, text),
            "{target}"
        );
    }
}

#[test]
fn methods_are_answered_or_listed() {
    let server = serve(routes());
    let response = ask(&server, "PUT", "/albums/7");
    assert_eq!(response.status, 405);
    let all = "DELETE, GET, HEAD, OPTIONS, POST";
    assert_eq!(response.field("allow"), Some(all));
    let response = ask(&server, "OPTIONS", "/albums/7");
    assert_eq!((response.status, response.field("allow")), (204, Some(all)));
    assert_eq!(ask(&server, "OPTIONS", "*").status, 204);
    let response = ask(&server, "HEAD", "/albums/7?sort=abc");
    assert_eq!(
        (response.status, response.field("content-length")),
        (200, Some("10"))
    );
    assert_eq!(ask(&server, "DELETE", "/albums/7").status, 204);
    let mut client = connect(&server);
    assert_eq!(client.post("/albums/-3", "body").text(), "-3 body");
    assert_eq!(client.post("/small", "0123456789").text(), "10");
    let response = client.post("/small", "0123456789a");
    assert_eq!(
        (response.status, &*response.text()),
        (413, "the body is longer than 10 bytes\n")
    );
    let mut client = connect(&server);
    client.send(
        "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n",
    );
    assert_eq!(client.receive().status, 413);
}

#[test]
fn a_redirect_has_a_status_and_an_address() {
    let mut routes = Routes::new();
    let to = |_: &Request, status: u16| Response::redirect(status, "/a\r\nX: 1");
    routes.get("/{status}", quick(to));
    let server = serve(routes);
    for (status, answered) in [(301, 301), (302, 302), (303, 303), (307, 307), (308, 308)] {
        let response = get(&server, &format!("/{status}"));
        assert_eq!(response.status, answered);
        assert_eq!(response.field("location"), Some("/a  X: 1"));
    }
    assert_eq!(get(&server, "/200").status, 500);
}

#[test]
fn failures_look_as_the_program_says() {
    let mut routes = routes();
    routes
        .failures(|_, failure| {
            let status = failure.status();
            Response::xml(format!("<error status=\"{status}\"/>")).with_status(200)
        })
        .get(
            "/panic",
            quick(|_: &Request| -> Response { panic!("asked for") }),
        );
    let server = serve(routes);
    for (target, status) in [
        ("/odd", 409),
        ("/albums/x?sort=a", 404),
        ("/flag?on=x", 400),
        ("/x", 404),
        ("/panic", 500),
    ] {
        let response = get(&server, target);
        assert_eq!(response.status, status, "{target}");
        assert_eq!(response.field("content-type"), Some("application/xml"));
        assert_eq!(response.text(), format!("<error status=\"{status}\"/>"));
    }
    let response = ask(&server, "PUT", "/odd");
    assert_eq!(response.field("allow"), Some("GET, HEAD, OPTIONS"));
    let mut client = connect(&server);
    client.send("POST /albums/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n");
    let response = client.receive();
    assert_eq!(
        (response.status, &*response.text()),
        (413, "<error status=\"413\"/>")
    );
    // A panic costs not even its connection.
    let mut client = connect(&server);
    assert_eq!(client.get("/panic").status, 500);
    assert_eq!(client.get("/flag").status, 200);
}

#[test]
fn a_value_of_the_client_begins_no_line_of_a_head() {
    let mut routes = Routes::new();
    routes.get(
        "/to?{place}",
        quick(|_: &Request, place: String| {
            Response::see_other(place)
                .with_field("Content-Length", "3")
                .with_field("X", "y")
        }),
    );
    let server = serve(routes);
    let response = get(&server, "/to?place=/a%0d%0aSet-Cookie:%20x");
    assert_eq!(response.field("location"), Some("/a  Set-Cookie: x"));
    assert_eq!(response.field("set-cookie"), None);
    assert_eq!(response.field("content-length"), Some("0"));
    assert_eq!(response.field("x"), Some("y"));
}
