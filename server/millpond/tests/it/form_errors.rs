//! A form that was refused, on the wire: the connections repeat what everybody may have, and never
//! what one visitor typed.

use lab_testkit::fast_dir;
use tempfile::TempDir;

use crate::{
    https::{curl, has_curl, serve as serve_tls},
    support::{Connection, Response, serve, write},
};

const FORM: &str = "-- param: title text
-- name: a :exec
insert into album (title) values (:title);
-- param: note text = ''
-- name: noted :many
select :note as note;
-- invalid: /new
-- redirect: /new
";

fn site(settings: &str) -> TempDir {
    let dir = fast_dir();
    for (name, text) in [
        ("millpond.toml", settings),
        (
            "migrations/0001_start.sql",
            "create table album (title text not null unique) strict; insert into album values ('One');",
        ),
        (
            "pages/new.html",
            "{% for a in albums %}{{ a.title }};{% endfor %} [{{ form.note }}] {{ errors.title }}",
        ),
        (
            "pages/new.sql",
            "-- name: albums :many\nselect title from album order by title;\n",
        ),
        ("pages/new.post.sql", FORM),
    ] {
        write(dir.path(), name, text);
    }
    dir
}

/// The flash of a refused form, as a field of a request.
fn refused(connection: &mut Connection, note: &str) -> String {
    let answer = connection.post("/new", &format!("title=One&note={note}"));
    assert_eq!(
        (answer.status, answer.field("location")),
        (303, Some("/new"))
    );
    let cookie = answer.field("set-cookie").unwrap();
    format!("Cookie: {}", cookie.split(';').next().unwrap())
}

fn is_kept(page: &Response) -> bool {
    page.text() == "One; [] "
        && page.field("cache-control") == Some("no-cache")
        && page.field("set-cookie").is_none()
}

fn is_alone(page: &Response, note: &str) -> bool {
    page.text() == format!("One; [{note}] Title exists already.")
        && page.field("cache-control") == Some("private, no-store")
        && page.field("cache-status") == Some("millpond; fwd=bypass; detail=form")
        && page
            .field("set-cookie")
            .is_some_and(|cookie| cookie.contains("=; Path=/; Max-Age=0;"))
}

#[test]
fn what_was_typed_is_given_to_its_visitor_alone() {
    let dir = site("");
    let server = serve(dir.path());
    let mut ann = Connection::open(server.address());
    let mut bob = Connection::open(server.address());
    let of_ann = refused(&mut ann, "of+ann");
    let of_bob = refused(&mut bob, "of+bob");
    // The same bytes again and again, on both connections, which two workers may have.
    for _ in 0..6 {
        for connection in [&mut ann, &mut bob] {
            let page = connection.get("/new");
            assert!(is_kept(&page), "{page:?}");
            let page = connection.get_with("/new", &[of_ann.as_str()]);
            assert!(is_alone(&page, "of ann"), "{page:?}");
            let page = connection.get_with("/new", &[of_bob.as_str()]);
            assert!(is_alone(&page, "of bob"), "{page:?}");
            let forged = of_ann.replace("f1.e", "f1.f");
            let page = connection.get_with("/new", &[forged.as_str()]);
            assert!(is_kept(&page), "{page:?}");
        }
    }
    // All in one piece: none waits for another's page.
    let ask = |fields: &str| format!("GET /new HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n");
    let cookies = [
        format!("{of_ann}\r\n"),
        String::new(),
        format!("{of_bob}\r\n"),
    ];
    let pipeline: String = (0..4)
        .flat_map(|_| &cookies)
        .map(|cookie| ask(cookie))
        .collect();
    ann.send(pipeline);
    for _ in 0..4 {
        assert!(is_alone(&ann.receive(), "of ann"));
        assert!(is_kept(&ann.receive()));
        assert!(is_alone(&ann.receive(), "of bob"));
    }
    let tag = bob.get("/new").field("etag").unwrap().to_owned();
    let conditional = [of_bob.as_str(), &format!("If-None-Match: {tag}")];
    assert!(is_alone(&bob.get_with("/new", &conditional), "of bob"));
    assert_eq!(bob.get("/new").field("cache-status"), Some("millpond; hit"));
    assert!(server.stop().0.success());
}

#[test]
fn over_http2_what_was_typed_is_given_to_its_visitor_alone() {
    if !has_curl() {
        return;
    }
    let dir = site("");
    let (server, _) = serve_tls(dir.path(), &["--domain", "localhost"]);
    let authority = dir.path().join("tls/localhost/authority.pem");
    let url = format!("https://localhost:{}/new", server.address().port());
    let cookie = |note: &str| {
        let form = format!("title=One&note={note}");
        let said = curl(&authority, &["--http2", "-i", "-d", &form, &url]);
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        line.unwrap().split(';').next().unwrap().to_owned()
    };
    let (of_ann, of_bob) = (cookie("of ann"), cookie("of bob"));
    let shown = "\n%{http_version} ";
    let mut args = Vec::new();
    for _ in 0..5 {
        for cookie in [of_ann.as_str(), "a=b", of_bob.as_str(), "a=b"] {
            // On one connection.
            args.extend(["--next", "--http2", "--silent", "--cacert"]);
            args.push(authority.to_str().unwrap());
            args.extend(["-w", shown, "-b", cookie, &url]);
        }
    }
    let said = curl(&authority, &args[1..]);
    let once = [
        "of ann] Title exists already.",
        "] ",
        "of bob] Title exists already.",
        "] ",
    ];
    let expected: String = (0..5)
        .flat_map(|_| once)
        .map(|page| format!("One; [{page}\n2 "))
        .collect();
    assert_eq!(said, expected);
    assert!(server.stop().0.success());
}
