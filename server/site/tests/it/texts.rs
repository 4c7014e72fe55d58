//! Texts of a request: what no text has in it, and the ends of its lines.

use millpond_http::OwnedRequest;

use crate::both::{Housed, Kind, on_both};

on_both!(
    a_text_with_code_zero_reaches_no_database,
    a_line_ends_with_one_character,
);

const FORM: &str = "-- param: title text\n-- param: body text = ''\n-- name: a :exec\n\
                    insert into note (id, title, body) values (9, :title, :body);\n";

fn open(kind: Kind) -> Housed {
    let form = format!("{FORM}-- invalid: /new\n-- redirect: /\n");
    let api = format!("{FORM}-- created: /api/9\n");
    Housed::new(
        kind,
        &[
            (
                "migrations/0002_note.sql",
                "create table note (id integer primary key, title text not null check (length(title) < 40), body text);",
            ),
            (
                "migrations/0003_feed.postgres.sql",
                "alter publication millpond add table note;",
            ),
            (
                "pages/search.sql",
                "-- param: q text = ''\n-- name: a :many\nselect id from note where title = :q;\n",
            ),
            ("pages/search.html", "searched {{ params.q }}"),
            (
                "pages/new.html",
                "{{ errors.title }} {{ errors.title.kind }}|{{ form.title }}",
            ),
            ("pages/new.post.sql", &form),
            ("pages/api/new.post.sql", &api),
        ],
    )
}

/// *Counterexample*: `length()` of SQLite ends at the character, so this title of 5,000 characters
/// passes `check (length(title) < 40)`.
fn a_text_with_code_zero_reaches_no_database(kind: Kind) {
    let site = open(kind);
    let sentence = "must not have a character of code zero in it.";
    for _ in 0..2 {
        let answer = site.get("/search?q=a%00b");
        assert_eq!(answer.status, 400);
        assert!(!answer.body.contains('\0'), "{}", answer.body);
    }
    assert_eq!(site.get("/search?q=ab").body, "searched ab");
    let refused = site.post("/new", &format!("title=a%00{}", "b".repeat(50)));
    assert_eq!(refused.status, 303, "{}", refused.body);
    let cookie = refused.field("set-cookie").split(';').next().unwrap();
    let request = OwnedRequest::new("GET", "/new")
        .field("Host", "site.test")
        .field("Cookie", cookie);
    let shown = format!("Title {sentence} type|a\u{fffd}{}", "b".repeat(50));
    assert_eq!(site.ask(&request).body, shown);
    // What has no room in a cookie is shown by the answer itself.
    let refused = site.post("/new", &format!("title=a%00{}", "b".repeat(5_000)));
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains(sentence), "{}", refused.body);
    assert!(!refused.body.contains('\0'));
    let request = OwnedRequest::new("POST", "/api/new")
        .field("Host", "site.test")
        .field("Content-Type", "application/json")
        .body("{\"title\": \"a\\u0000b\"}");
    let refused = site.ask(&request);
    assert_eq!(refused.status, 400);
    let error = format!(r#""field":"title","detail":"The parameter \"title\" {sentence}""#);
    assert!(refused.body.contains(&error), "{}", refused.body);
    assert_eq!(site.text("select cast(count(*) as text) from note"), "0");
}

/// Browsers send CR LF and count one for it in `maxlength`, and so does `length(…)` in a table.
fn a_line_ends_with_one_character(kind: Kind) {
    let site = open(kind);
    let stored = || site.text("select title || '|' || body from note where id = 9");
    let lines = format!("{}%0D%0A{}", "a".repeat(19), "b".repeat(19));
    let answer = site.post("/new", &format!("title={lines}&body=1%0D2%0A3%0D%0D%0A"));
    assert_eq!(answer.field("location"), "/", "{}", answer.body);
    let expected = format!("{}\n{}|1\n2\n3\n\n", "a".repeat(19), "b".repeat(19));
    assert_eq!(stored(), expected);
    site.run("delete from note where id = 9");
    let request = OwnedRequest::new("POST", "/api/new")
        .field("Host", "site.test")
        .field("Content-Type", "application/json")
        .body("{\"title\": \"a\\r\\nb\", \"body\": \"\\r\"}");
    assert_eq!(site.ask(&request).status, 201);
    assert_eq!(stored(), "a\r\nb|\r");
}
