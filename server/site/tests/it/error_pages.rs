//! Error pages of the site's own, for each status.

use millpond_http::OwnedRequest;
use millpond_site::{Config, Problem, check};

use crate::{
    both::{Housed, Kind, on_both},
    support::{Answer, TestSite, folder, problems, write},
};

const PAGE: &str = "{% extends 'layout.html' %}{% block main %}{{ status }} {{ title }}: {{ message }}{% endblock %}";
const FILES: &[(&str, &str)] = &[
    (
        "templates/layout.html",
        "<h1>{% block main %}{% endblock %}</h1>",
    ),
    ("pages/400.html", PAGE),
    ("pages/4xx.html", "kind {{ status }} {{ title }}"),
    ("pages/422.html", PAGE),
    ("pages/429.html", "wait: {{ message }}"),
    (
        "pages/read.sql",
        "-- name: a :one\nselect title from article where id = :id;\n",
    ),
    ("pages/read.html", "{{ a.title }}"),
    ("pages/size.html", "{{ a.s }}"),
    (
        "pages/size.sql",
        "-- param: s text in ('<b>', m)\n-- name: a :one\nselect :s as s;\n",
    ),
    (
        "pages/add.post.sql",
        "-- name: a :exec\ninsert into article (title) values (:title);\n-- redirect: /\n",
    ),
    ("pages/members.html", "for members"),
    (
        "pages/members.sql",
        "-- require: claims.user\n-- name: a :one\nselect 1 as x;\n",
    ),
    (
        "pages/login.post.sql",
        "-- name: account :one?\nselect title as hash from article where title = :name;\n-- verify: account.hash = :password\n-- redirect: /\n",
    ),
];

#[test]
fn each_status_has_the_page_of_its_name_or_of_its_kind() {
    let site = TestSite::new(FILES);
    for (target, status, body) in [
        (
            "/read",
            400,
            "<h1>400 Bad Request: The parameter &quot;id&quot; is missing.</h1>",
        ),
        (
            "/size?s=x",
            400,
            "<h1>400 Bad Request: The parameter &quot;s&quot; must be one of &lt;b&gt;, m.</h1>",
        ),
        (
            "/%00",
            400,
            "<h1>400 Bad Request: The path cannot be read.</h1>",
        ),
        ("/nothing", 404, "kind 404 Not Found"),
        ("/400", 404, "kind 404 Not Found"),
        ("/4xx", 404, "kind 404 Not Found"),
        ("/members", 403, "kind 403 Forbidden"),
    ] {
        for _ in 0..3 {
            let answer = site.get(target);
            assert_eq!((answer.status, &*answer.body), (status, body), "{target}");
            assert_eq!(answer.field("content-type"), "text/html; charset=utf-8");
        }
    }
    let refused = site.post("/add", "title=");
    assert_eq!(site.post("/add", "title=One").body, "kind 409 Conflict");
    assert_eq!(refused.status, 303, "{}", refused.body);
    let long = site.post("/add", &format!("title={}", "x".repeat(50)));
    assert_eq!(
        (long.status, &*long.body, long.field("cache-control")),
        (
            422,
            "<h1>422 Unprocessable Content: A field is too short, too long or not allowed.</h1>",
            "no-store"
        )
    );
}

#[test]
fn an_error_page_keeps_the_fields_of_its_answer() {
    let site = TestSite::new(FILES);
    let delete = OwnedRequest::new("DELETE", "/read?id=1").field("Host", "site.test");
    let refused = site.ask(&delete);
    assert_eq!(
        (refused.status, &*refused.body),
        (405, "kind 405 Method Not Allowed")
    );
    assert_eq!(refused.field("allow"), "GET, HEAD, OPTIONS");
    let unknown = site.ask(&OwnedRequest::new("BREW", "/").field("Host", "site.test"));
    assert_eq!(
        (unknown.status, &*unknown.body),
        (501, "This server does not know that method.\n")
    );
    let tries = (0..20).map(|_| site.post("/login", "name=x&password=y"));
    let refused = tries
        .into_iter()
        .find(|answer| answer.status == 429)
        .unwrap();
    assert!(
        refused.body.starts_with("wait: Too many attempts."),
        "{}",
        refused.body
    );
    assert!(refused.field("retry-after").parse::<u64>().unwrap() > 0);
}

#[test]
fn an_absent_row_is_kept_and_shown_with_the_error_page() {
    let site = TestSite::new(FILES);
    let first = site.get("/read?id=9");
    assert_eq!((first.status, first.cache()), (404, "fwd=miss; stored"));
    let again = site.get("/read?id=9");
    assert_eq!(
        (again.status, again.cache(), &*again.body),
        (404, "hit", "kind 404 Not Found")
    );
    assert_eq!(site.get("/read?id=1").status, 200);
}

#[test]
fn an_error_page_follows_its_file() {
    let site = TestSite::new(FILES);
    assert!(site.get("/read").body.starts_with("<h1>"));
    write(site.dir.path(), &[("pages/400.html", "new {{ status }}")]);
    site.until("the page is read", || site.get("/read").body == "new 400");
}

#[test]
fn what_cannot_be_an_error_page_is_a_fault() {
    for (file, text, expected) in [
        (
            "pages/422.sql",
            "-- name: a :one\nselect 1 as x;\n",
            "pages/422.sql: `422` is the error page of a status, which has no queries",
        ),
        (
            "pages/419.html",
            "",
            "pages/419.html: there is no status 419, so this error page is never shown\n  hint: did you mean `pages/4",
        ),
        (
            "pages/400.html",
            "{{ mesage }}",
            "pages/400.html:1:4: nothing gives the template `mesage`\n  hint: did you mean `message`?",
        ),
        (
            "pages/5xx.html",
            "{{ request.path }}",
            "pages/5xx.html:1:4: nothing gives the template `request`\n  hint: an error page sees `status`, `title` and `message`",
        ),
    ] {
        let found = problems(&[(file, text)]);
        assert!(found.starts_with(expected), "{file}: {found}");
    }
    assert_eq!(
        problems(&[("pages/399.html", "a page"), ("pages/2024.html", "a year")]),
        ""
    );
}

const SPOKEN: &str = "{% extends 'spoken.html' %}{% block main %}\
                      {{ {'en': 'Nothing here', 'de': 'Hier ist nichts'}[params.lang] }}{% endblock %}";
const IN_FOLDERS: &[(&str, &str)] = &[
    (
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n\
         [[require]]\npath = \"/en/office/*\"\nopen = [\"/:lang/office\"]\nclaims = \"user\"\n",
    ),
    (
        "templates/spoken.html",
        "{{ params.lang }}: {% block main %}{% endblock %}",
    ),
    ("pages/404.html", "everywhere {{ status }}"),
    ("pages/[lang]/404.html", SPOKEN),
    (
        "pages/[lang]/4xx.html",
        "{{ params.lang }} {{ status }} {{ message }}",
    ),
    ("pages/users/[name]/404.html", "not {{ params.name }}'s"),
    ("pages/users/[name]/index.html", "{{ params.name }}"),
    (
        "pages/[lang]/plays/[id].sql",
        "-- param: lang text in (en, de)\n-- param: size integer = 1\n-- name: play :one\n\
         select title from article where id = :id and :size > 0;\n",
    ),
    ("pages/[lang]/plays/[id].html", "{{ play.title }}"),
    (
        "pages/[lang]/office/index.sql",
        "-- param: lang text in (en, de)\n",
    ),
    ("pages/[lang]/office/index.html", "the office"),
];

fn told(answer: &Answer) -> (u16, &str) {
    (answer.status, &answer.body)
}

fn the_nearest_folder_answers_and_knows_its_part_of_the_path(kind: Kind) {
    let site = Housed::new(kind, IN_FOLDERS);
    for _ in 0..3 {
        for (target, expected) in [
            ("/de/plays/9", (404, "de: Hier ist nichts")),
            ("/en/plays/9", (404, "en: Nothing here")),
            ("/de/plays/x", (404, "de: Hier ist nichts")),
            ("/de/nothing/at/all/", (404, "de: Hier ist nichts")),
            ("/%64e/nothing", (404, "de: Hier ist nichts")),
            ("/de", (404, "de: Hier ist nichts")),
            ("/fr/plays/1", (404, "everywhere 404")),
            ("/robots.txt", (404, "everywhere 404")),
            ("/nothing", (404, "everywhere 404")),
            (
                "/de/plays/1?size=x",
                (
                    400,
                    "de 400 The parameter &quot;size&quot; must be a whole number.",
                ),
            ),
            (
                "/en/office",
                (403, "en 403 You have no access to this page."),
            ),
            ("/users/ann/x", (404, "not ann's")),
            ("/users/%3Cb%3E/x", (404, "not &lt;b&gt;'s")),
            ("/en/plays/1", (200, "One")),
        ] {
            assert_eq!(told(&site.get(target)), expected, "{target}");
        }
    }
    let missing = site.get("/de/plays/9");
    assert_eq!(missing.cache(), "hit");
    assert_eq!(missing.field("vary"), "Accept");
    let delete = OwnedRequest::new("DELETE", "/de/plays/1").field("Host", "site.test");
    let refused = site.ask(&delete);
    let sentence = "de 405 This address does not take that method.";
    assert_eq!(told(&refused), (405, sentence));
    assert_eq!(refused.field("allow"), "GET, HEAD, OPTIONS");
    let program = OwnedRequest::new("GET", "/de/plays/9").field("Accept", "application/json");
    let document = site.ask(&program);
    assert_eq!(document.field("content-type"), "application/problem+json");
}

on_both!(the_nearest_folder_answers_and_knows_its_part_of_the_path);

/// Values that visitors think of take no room from the pages that are prepared.
#[test]
fn any_number_of_values_in_a_path_is_answered() {
    let site = TestSite::new(IN_FOLDERS);
    for number in 0..500 {
        let answer = site.get(&format!("/users/u{number}/x"));
        let expected = format!("not u{number}'s");
        assert_eq!(told(&answer), (404, &*expected));
    }
    assert_eq!(site.get("/de/x").body, "de: Hier ist nichts");
}

#[test]
fn faults_of_error_pages_in_folders_are_named() {
    let with = |file, text| problems(&[&[(file, text)], &IN_FOLDERS[7..]].concat());
    for (file, text, expected) in [
        (
            "pages/[lang]/404.html",
            "{{ params.lnag }}",
            "pages/[lang]/404.html:1:11: the page has no parameter `lnag`\n  hint: did you mean `lang`?",
        ),
        (
            "pages/[lang]/plays/404.sql",
            "-- name: a :one\nselect 1 as x;\n",
            "pages/[lang]/plays/404.sql: `[lang]/plays/404` is the error page of a status, which has no queries",
        ),
        (
            "pages/[lang]/404.html",
            "{{ {'en': {'x': 1}}[params.lang].x }}",
            "pages/[lang]/404.html:1:21: this map has no `de` where `lang` is `de`",
        ),
        (
            "pages/404.html",
            "{{ params.lang }}",
            "pages/404.html:1:4: nothing gives the template `params`",
        ),
    ] {
        let found = with(file, text);
        assert!(found.starts_with(expected), "{file}: {found}");
    }
}

/// *Counterexample*: a page with the same words got a note.
#[test]
fn a_word_that_a_language_may_lack_is_a_note_as_on_a_page() {
    let words = "{{ {'en': {'x': 1}}[params.lang].x }}";
    let dir = folder(&[
        ("pages/[lang]/404.html", words),
        ("pages/[lang]/read.html", words),
        ("pages/[lang]/list.html", "{{ params.lang }}"),
    ]);
    let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    let notes: Vec<String> = report.notes.iter().map(Problem::to_string).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    for note in &notes {
        assert!(
            note.contains("is undefined where `params.lang` names no member"),
            "{note}"
        );
    }
    let known = problems(&[
        (
            "pages/[lang]/_folder.sql",
            "-- param: lang text in (en, de)\n",
        ),
        ("pages/[lang]/404.html", words),
        ("pages/[lang]/read.html", words),
    ]);
    let faults = known
        .lines()
        .filter(|line| line.contains("this map has no `de` where"));
    assert_eq!(faults.count(), 2, "{known}");
}
