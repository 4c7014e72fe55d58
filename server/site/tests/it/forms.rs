//! Forms: one transaction, constraints, and which clients may send them.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::TestSite,
};

const FORMS: &[(&str, &str)] = &[
    (
        "pages/new.post.sql",
        "-- param: title text\n-- param: who text\n-- name: article :one\ninsert into article (title) values (:title) returning id as article_id;\n-- name: note :exec\ninsert into comment (article_id, who) values (:article_id, :who);\n-- redirect: /a/:article_id?t=:title\n",
    ),
    (
        "pages/note.post.sql",
        "-- param: id integer\n-- param: who text\n-- name: article :one\nselect id from article where id = :id;\n-- name: note :exec\ninsert into comment (article_id, who) values (:id, :who);\n-- redirect: /\n",
    ),
    (
        "pages/raw.post.sql",
        "-- name: note :exec\ninsert into comment (article_id, who) values (:id, :who);\n-- redirect: /\n",
    ),
    (
        "pages/count.sql",
        "-- name: c :one\nselect (select count(*) from article) as articles, (select count(*) from comment) as comments;\n",
    ),
];

fn counts(site: &TestSite) -> String {
    site.get("/count").body
}

#[test]
fn later_steps_use_what_earlier_ones_gave() {
    let site = TestSite::new(FORMS);
    let answer = site.post("/new", "title=Caf%C3%A9+%26+%2F%0D%0ASet-Cookie:x&who=Ann");
    assert_eq!(
        (answer.status, answer.field("location")),
        (303, "/a/3?t=Caf%C3%A9%20%26%20%2F%0ASet-Cookie%3Ax")
    );
    assert_eq!(answer.field("set-cookie"), "");
    assert_eq!(counts(&site), r#"{"c":{"articles":3,"comments":1}}"#);
}

const FOUND_OR_MADE: &[(&str, &str)] = &[
    (
        "pages/find.post.sql",
        "-- param: who text\n-- name: old :one?\nselect id as old_id from comment where who = :who;\n\
         -- name: new :one?\ninsert into comment (article_id, who) select 1, :who where cast(:old_id as integer) is null returning id as new_id;\n\
         -- name: both :one\nselect coalesce(cast(:old_id as integer), cast(:new_id as integer)) as id;\n\
         -- redirect: /?id=:id&old=:old_id&new=:new_id\n",
    ),
    FORMS[3],
];

fn an_optional_step_gives_null_where_it_has_no_row(kind: Kind) {
    let site = Housed::new(kind, FOUND_OR_MADE);
    let lead = |form: &str| site.post("/find", form).field("location").to_owned();
    let made = lead("who=Ann");
    let id = made.rsplit('=').next().unwrap();
    assert_eq!(made, format!("/?id={id}&old=&new={id}"));
    // The value is the step's, not the visitor's.
    let found = lead("who=Ann&old_id=99&new_id=98");
    assert_eq!(found, format!("/?id={id}&old={id}&new="));
    assert_eq!(lead("who=Ann&old_id=99"), found);
    assert_ne!(lead("who=Bo&old_id=99"), found);
}

on_both!(an_optional_step_gives_null_where_it_has_no_row);

#[test]
fn a_violated_constraint_changes_nothing_and_says_nothing_of_the_schema() {
    let site = TestSite::new(FORMS);
    let before = counts(&site);
    let long = "x".repeat(50);
    for (target, body, status) in [
        ("/new", "title=One&who=a".to_owned(), 409),
        ("/new", format!("title={long}&who=a"), 422),
        ("/raw", "id=99&who=a".to_owned(), 409),
        ("/note", "id=99&who=a".to_owned(), 404),
        ("/new", "title=x".to_owned(), 400),
        ("/new", "title=x&title=y&who=a".to_owned(), 400),
        ("/note", "id=1e3&who=a".to_owned(), 400),
    ] {
        let answer = site.post(target, &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(
            !answer.body.contains("article.") && !answer.body.to_lowercase().contains("constraint"),
            "{}",
            answer.body
        );
    }
    assert_eq!(counts(&site), before);
}

#[test]
fn another_sites_form_is_refused() {
    let site = TestSite::new(FORMS);
    let post = |name: &str, value: &str| {
        let request = OwnedRequest::new("POST", "/note")
            .field("Host", "site.test")
            .field("Content-Type", "application/x-www-form-urlencoded")
            .field(name, value);
        site.ask(&request.body("id=1&who=a")).status
    };
    assert_eq!(post("Origin", "http://evil.test"), 403);
    assert_eq!(post("Sec-Fetch-Site", "cross-site"), 403);
    assert_eq!(post("Origin", "http://site.test"), 303);
    assert_eq!(
        site.ask(
            &OwnedRequest::new("POST", "/note")
                .field("Content-Type", "text/plain")
                .body("id=1&who=a")
        )
        .status,
        415
    );
}

#[test]
fn multipart_forms_work() {
    let site = TestSite::new(FORMS);
    let body = "--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=\"who\"\r\n\r\nAnn\r\n--b--\r\n";
    let request = OwnedRequest::new("POST", "/note")
        .field("Content-Type", "multipart/form-data; boundary=b")
        .body(body);
    assert_eq!(site.ask(&request).status, 303);
    assert_eq!(counts(&site), r#"{"c":{"articles":2,"comments":1}}"#);
}

#[test]
fn methods_are_listed() {
    let site = TestSite::new(FORMS);
    let ask = |method: &str, target: &str| site.ask(&OwnedRequest::new(method, target));
    assert_eq!(
        (
            ask("GET", "/note").status,
            ask("GET", "/note").field("allow")
        ),
        (405, "OPTIONS, POST")
    );
    assert_eq!(
        (
            ask("POST", "/count").status,
            ask("POST", "/count").field("allow")
        ),
        (405, "GET, HEAD, OPTIONS")
    );
    assert_eq!(
        (
            ask("DELETE", "/count").status,
            ask("OPTIONS", "/count").status
        ),
        (405, 204)
    );
    let conditional = OwnedRequest::new("POST", "/note").field("If-Match", "*");
    assert_eq!(site.ask(&conditional).status, 412);
    assert_eq!(ask("BREW", "/count").status, 501);
    assert_eq!(ask("get", "/count").status, 501, "methods have a case");
    assert_eq!(ask("TRACE", "/count").status, 405);
    assert_eq!(ask("TRACE", "/count").field("allow"), "GET, HEAD, OPTIONS");
    assert_eq!(
        (ask("HEAD", "/count").status, ask("OPTIONS", "*").status),
        (200, 204)
    );
}

#[test]
fn files_list_their_methods() {
    let site = TestSite::new(&[("static/a.txt", "a")]);
    for (method, status, allow) in [
        ("GET", 200, ""),
        ("HEAD", 200, ""),
        ("OPTIONS", 204, "GET, HEAD, OPTIONS"),
        ("POST", 405, "GET, HEAD, OPTIONS"),
        ("PUT", 405, "GET, HEAD, OPTIONS"),
        ("TRACE", 405, "GET, HEAD, OPTIONS"),
        ("MKCOL", 501, ""),
    ] {
        let answer = site.ask(&OwnedRequest::new(method, "/a.txt"));
        assert_eq!(
            (answer.status, answer.field("allow")),
            (status, allow),
            "{method}"
        );
    }
}

#[test]
fn a_redirect_stays_on_this_site() {
    let site = TestSite::new(&[(
        "pages/go.post.sql",
        "-- param: a text\n-- param: b text\n-- name: x :one\nselect 1 as one;\n-- redirect: /:a/:b\n",
    )]);
    let answer = site.post("/go", "a=&b=evil.example");
    assert_eq!(
        (answer.status, answer.field("location")),
        (303, "/evil.example")
    );
}

/// On either feed: what a form did not change is where it was.
#[test]
fn a_form_that_changes_no_row_ends_no_page() {
    let form = |sql: &str| format!("-- name: w :exec\n{sql};\n-- redirect: /\n");
    let statements = [
        "update article set title = title where id = -1",
        "update article set title = title",
        "delete from article where id = -1",
        "insert into article (id, title) values (1, 'One') on conflict do nothing",
        "insert or ignore into article (id, title) values (1, 'One')",
        "insert into article (title) select title from article where id = -1",
        "update article set title = 'x' from comment where comment.id = -1",
    ];
    for feed in ["logical", "triggers"] {
        let mut files = vec![
            (
                "millpond.toml".to_owned(),
                format!(
                    "[database]\nurl = \"sqlite:site.db\"\nfeed = \"{feed}\"\n[cache]\nrefresh_ahead = 0\n"
                ),
            ),
            (
                "pages/all.sql".to_owned(),
                "-- name: a :many\nselect * from article;\n".to_owned(),
            ),
            (
                "pages/gone.post.sql".to_owned(),
                form("delete from article where id = 2"),
            ),
        ];
        files.extend(
            statements
                .iter()
                .enumerate()
                .map(|(at, sql)| (format!("pages/w{at}.post.sql"), form(sql))),
        );
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let site = TestSite::new(&files);
        site.until("a hit", || site.get("/all").cache() == "hit");
        for (at, sql) in statements.iter().enumerate() {
            assert_eq!(site.post(&format!("/w{at}"), "").status, 303, "{sql}");
            assert_eq!(site.get("/all").cache(), "hit", "{feed}: {sql}");
        }
        assert_eq!(site.post("/gone", "").status, 303);
        assert_eq!(site.get("/all").cache(), "fwd=stale; stored", "{feed}");
    }
}

#[test]
fn a_row_that_others_refer_to_and_one_that_refers_to_nothing_are_told_apart() {
    let site = TestSite::new(&[
        (
            "pages/delete.post.sql",
            "-- name: d :exec\ndelete from article where id = :id;\n-- redirect: /\n",
        ),
        (
            "pages/add.post.sql",
            "-- name: a :exec\ninsert into comment (article_id, who) values (:id, 'x');\n-- redirect: /\n",
        ),
    ]);
    assert_eq!(site.post("/add", "id=1").status, 303);
    let used = site.post("/delete", "id=1");
    assert_eq!(
        (used.status, &*used.body),
        (409, "This is still in use: something else refers to it.\n")
    );
    let missing = site.post("/add", "id=99");
    assert_eq!(
        (missing.status, &*missing.body),
        (409, "This refers to something that does not exist.\n")
    );
}
