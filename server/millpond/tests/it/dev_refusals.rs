//! `serve --dev`: why a request is refused, where the site has no fault.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    dev::{DevServer, PAGE, ask, ask_as_developer, dev, page, shown},
    support::{Connection, Response, new_site, write},
};

/// A site that refuses requests in each way; with an error page of its own, or without.
fn refusing(own: Option<&str>) -> TempDir {
    let site = new_site();
    for (file, text) in [
        (
            "migrations/0009_play.sql",
            "create table play (id integer primary key, slug text not null unique, picture blob);\n\
             insert into play values (1, 'hamlet', null);\n",
        ),
        (
            "pages/plays/[slug].sql",
            "-- param: slug text\n-- param: size text in (s, m) = s\n\
             -- name: play :one\nselect id, slug from play where slug = :slug;\n",
        ),
        (
            "pages/plays/[slug].html",
            "{{ play.slug }} {{ params.size }}",
        ),
        (
            "pages/api/plays/[id].sql",
            "-- name: play :one\nselect id, slug from play where id = :id;\n",
        ),
        (
            "pages/pictures/[id].sql",
            "-- bytes: play.picture\n-- name: play :one?\nselect picture from play where id = :id;\n",
        ),
        (
            "pages/plays/[slug].post.sql",
            "-- param: title text\n\n-- name: old :one\nselect id from play where slug = :slug;\n\n\
             -- name: play :exec\nupdate play set slug = :title where id = :id;\n-- redirect: /\n",
        ),
        (
            "pages/items/[id].post.sql",
            "-- name: item :one else 409\nupdate play set slug = slug where id = :id returning slug;\n-- redirect: /\n",
        ),
        ("pages/desk.sql", "-- require: claims.role = 'editor'\n"),
        ("pages/desk.html", "the desk"),
        ("pages/staff/index.html", "the staff"),
    ] {
        write(site.path(), file, text);
    }
    let settings = site.path().join("millpond.toml");
    let text = fs::read_to_string(&settings).unwrap();
    let rule = "\n[[require]]\npath = \"/staff/*\"\nclaims = \"user\"\n";
    fs::write(&settings, text + rule).unwrap();
    if let Some(own) = own {
        write(site.path(), own, "<h1>Own {{ status }}</h1>{{ title }}");
    }
    site
}

fn send(server: &DevServer, target: &str, body: &str) -> Response {
    let mut connection = Connection::open(server.address());
    connection.send(format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\n{}\r\n{PAGE}\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        server.address(),
        server.cookie,
        body.len()
    ));
    connection.receive()
}

fn of_program(server: &DevServer, target: &str) -> Value {
    let answer = ask_as_developer(server, target, &["Accept: application/json"]);
    let told = answer.field("content-type");
    assert_eq!(told, Some("application/problem+json"), "{target}");
    assert_eq!(answer.field("millpond-report"), None, "{target}");
    serde_json::from_slice(&answer.body).unwrap()
}

/// Request, its status, and texts of the page.
const REFUSED: [(&str, u16, [&str; 2]); 7] = [
    (
        "/plays/macbeth",
        404,
        [
            "<h1>The query `play` gave no row with slug = &#x27;macbeth&#x27;</h1>",
            "pages/plays/[slug].sql:3",
        ],
    ),
    (
        "/plays/hamlet?size=xl",
        400,
        [
            "<h1>The parameter &quot;size&quot; must be one of s, m</h1>",
            "pages/plays/[slug].sql:2",
        ],
    ),
    (
        "/api/plays/x",
        404,
        [
            "<h1>The parameter &quot;id&quot; must be a whole number</h1>",
            "<dt>id</dt><dd class=\"text\">x</dd>",
        ],
    ),
    (
        "/pictures/1",
        404,
        ["gave no bytes with id = 1", "`picture` is null there"],
    ),
    (
        "/desk",
        403,
        [
            "<h1>`claims.role = &#x27;editor&#x27;` is required, and the visitor has no session</h1>",
            "pages/desk.sql:1",
        ],
    ),
    (
        "/staff/list",
        403,
        ["<h1>`claims.user` is required", "millpond.toml"],
    ),
    (
        "/deks",
        404,
        [
            "No page and no file has the address /deks",
            "did you mean /desk?",
        ],
    ),
];

#[test]
fn the_cause_of_a_refusal_is_shown() {
    for own in [None, Some("pages/4xx.html"), Some("pages/404.html")] {
        let site = refusing(own);
        let server = dev(site.path());
        for (target, status, texts) in REFUSED {
            // Twice, the second time from memory.
            for _ in 0..2 {
                let answer = page(&server, target);
                let text = shown(&answer);
                assert_eq!(answer.status, status, "{target} {text}");
                for there in texts {
                    assert!(text.contains(there), "{target}: {there}: {text}");
                }
                let shows_own = text.contains(&format!("&lt;h1&gt;Own {status}&lt;/h1&gt;"));
                let has_own = own.is_some_and(|own| {
                    let is_api = target.starts_with("/api");
                    !is_api && (own.contains("4xx") || status == 404)
                });
                assert_eq!(shows_own, has_own, "{target} {own:?}: {text}");
                assert_eq!(answer.field("millpond-report"), None);
            }
        }
        let gone = send(&server, "/plays/macbeth", "title=x");
        let text = shown(&gone);
        assert_eq!(gone.status, 404, "{text}");
        assert!(
            text.contains("The step `old` gave no row with slug"),
            "{text}"
        );
        let changed = send(&server, "/items/7", "");
        let text = shown(&changed);
        assert_eq!(changed.status, 409, "{text}");
        assert!(
            text.contains("The step `item` gave no row with id = 7"),
            "{text}"
        );
        let bad = send(&server, "/plays/hamlet", "titel=x");
        let text = shown(&bad);
        assert_eq!(bad.status, 400, "{text}");
        let there = "<h1>The parameter &quot;title&quot; is missing</h1>";
        assert!(text.contains(there), "{text}");
        assert!(text.contains("pages/plays/[slug].post.sql:1"), "{text}");
    }
}

#[test]
fn a_program_is_told_the_cause_of_a_refusal() {
    let site = refusing(Some("pages/4xx.html"));
    let server = dev(site.path());
    for _ in 0..2 {
        let missing = of_program(&server, "/api/plays/7");
        assert_eq!(missing["status"], 404);
        assert_eq!(missing["cause"], "The query `play` gave no row with id = 7");
        assert_eq!(missing["place"]["file"], "pages/api/plays/[id].sql");
    }
    let refused = of_program(&server, "/plays/hamlet?size=xl");
    assert_eq!(refused["place"]["line"], 2);
    assert_eq!(refused["errors"][0]["field"], "size");
    let closed = ask_as_developer(&server, "/desk", &["Accept: application/json"]);
    assert_eq!(closed.status, 401);
    assert!(closed.field("www-authenticate").is_some());
    assert!(closed.text().contains("the visitor has no session"));
    let nowhere = of_program(&server, "/deks");
    assert_eq!(nowhere["hint"], "did you mean /desk?");
}

/// Others get what they get without `--dev`, and so does `curl` that asks for no page.
#[test]
fn visitors_are_not_told_the_cause() {
    let site = refusing(Some("pages/4xx.html"));
    let with = dev(site.path());
    let plain = crate::support::serve(site.path());
    for (target, status, _) in REFUSED {
        for fields in [&[PAGE][..], &["Via: visitor", &*with.cookie], &[]] {
            let [with, plain] = [&*with, &plain].map(|server| ask(server, target, fields));
            assert_eq!((with.status, plain.status), (status, status), "{target}");
            assert_eq!(with.body, plain.body, "{target}");
            assert_eq!(with.field("millpond-report"), None, "{target}");
        }
    }
}
