//! Pages that lead elsewhere: kept as pages are, and ended by the rows that were read.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::{Answer, TestSite, problems},
};

const FILES: &[(&str, &str)] = &[
    (
        "pages/old/[title].sql",
        "-- name: moved :one\nselect '/articles/' || id as present from article where title = :title;\n\
         -- redirect: 301 :present\n",
    ),
    (
        "pages/articles/[id].sql",
        "-- name: article :one\nselect title from article where id = :id;\n",
    ),
    ("pages/articles/[id].html", "{{ article.title }}"),
    (
        "pages/plays/[id]/[slug].sql",
        "-- name: article :one\nselect title from article where id = :id;\n\
         -- name: other :one?\nselect title as right_slug from article where id = :id and title <> :slug;\n\
         -- redirect: 308 /plays/:id/:right_slug?from=:slug\n",
    ),
    (
        "pages/plays/[id]/[slug].html",
        "{{ article.title }} at {{ request.path }}",
    ),
    (
        "pages/go.sql",
        "-- param: to text = ''\n-- redirect: :to else /articles/1\n",
    ),
    (
        "pages/maybe.sql",
        "-- param: id integer = null\n-- redirect: /articles/:id\n",
    ),
    ("pages/empty.html", ""),
    (
        "pages/mine.sql",
        "-- require: claims.user else /go\n-- redirect: /articles/1\n",
    ),
];

fn led(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.field("location"))
}

fn a_redirect_is_kept_and_ends_with_its_row(kind: Kind) {
    let site = Housed::new(kind, FILES);
    let first = site.get("/old/One");
    assert_eq!(led(&first), (301, "/articles/1"));
    assert_eq!(
        (first.cache(), first.field("cache-control"), &*first.body),
        ("fwd=miss; stored", "no-cache", "")
    );
    let again = site.get("/old/One?x=1");
    assert_eq!((led(&again), again.cache()), ((301, "/articles/1"), "hit"));
    let head = OwnedRequest::new("HEAD", "/old/One").field("Host", "site.test");
    let conditional = head.clone().field("If-None-Match", "*");
    for request in [head, conditional] {
        assert_eq!(led(&site.ask(&request)), (301, "/articles/1"));
    }
    assert_ne!(first.field("etag"), site.get("/empty").field("etag"));
    let absent = site.get("/old/Uno");
    assert_eq!((absent.status, absent.cache()), (404, "fwd=miss; stored"));
    site.run("update article set title = 'Uno' where id = 1");
    site.until("the old address is gone", || {
        site.get("/old/One").status == 404
    });
    assert_eq!(led(&site.get("/old/Uno")), (301, "/articles/1"));
}

fn without_a_row_the_page_is_shown(kind: Kind) {
    let site = Housed::new(kind, FILES);
    for _ in 0..2 {
        assert_eq!(
            site.get("/plays/1/One").body,
            "One at &#x2f;plays&#x2f;1&#x2f;One"
        );
        let other = site.get("/plays/1/a%2Bb");
        assert_eq!(led(&other), (308, "/plays/1/One?from=a%2Bb"));
        assert_eq!(site.get("/plays/9/One").status, 404);
        assert_eq!(site.get("/maybe").status, 404);
        assert_eq!(led(&site.get("/maybe?id=07")), (302, "/articles/7"));
    }
    site.run("update article set title = 'zwei ü/?' where id = 1");
    site.until("the address has moved", || {
        led(&site.get("/plays/1/One")) == (308, "/plays/1/zwei%20%C3%BC%2F%3F?from=One")
    });
}

on_both!(
    a_redirect_is_kept_and_ends_with_its_row,
    without_a_row_the_page_is_shown,
);

#[test]
fn a_value_leads_to_paths_of_this_site_only() {
    let site = TestSite::new(FILES);
    for (to, expected) in [
        ("/a/b?c=d#e", "/a/b?c=d#e"),
        ("/f%C3%BCr%20alle", "/f%C3%BCr%20alle"),
        ("/a%0D%0ASet-Cookie:%20x=y", "/a%0D%0ASet-Cookie:%20x=y"),
        ("", "/articles/1"),
        ("x", "/articles/1"),
        ("//evil.example", "/articles/1"),
        ("/%5Cevil.example", "/articles/1"),
        ("https://evil.example", "/articles/1"),
        ("javascript:alert(1)", "/articles/1"),
    ] {
        let target = format!("/go?to={}", to.replace('#', "%23"));
        for _ in 0..2 {
            assert_eq!(led(&site.get(&target)), (302, expected), "{to}");
        }
    }
}

#[test]
fn a_redirect_is_for_people() {
    let site = TestSite::new(FILES);
    let mine = site.get("/mine");
    assert_eq!(led(&mine), (303, "/go?next=%2Fmine"));
    let missing = site.get("/old/nothing");
    assert!(missing.field("content-type").starts_with("text/html"));
}

/// Keeps the typed text of a visitor although the page with the form leads elsewhere now.
#[test]
fn a_refused_form_is_shown_before_its_page_leads_elsewhere() {
    let site = TestSite::new(&[
        (
            "pages/closed.sql",
            "-- name: a :one\nselect '/' as away;\n-- redirect: :away\n",
        ),
        ("pages/closed.html", "the form: {{ errors.title }}"),
        (
            "pages/add.post.sql",
            "-- param: title text\n-- name: a :exec\ninsert into article (title) values (:title);\n\
             -- invalid: /closed\n-- redirect: /\n",
        ),
    ]);
    let long = "x".repeat(50);
    let refused = site.post("/add", &format!("title={long}"));
    assert_eq!(led(&refused), (303, "/closed"));
    let cookie = refused.field("set-cookie").split(';').next().unwrap();
    let back = OwnedRequest::new("GET", "/closed")
        .field("Host", "site.test")
        .field("Cookie", cookie);
    let back = site.ask(&back);
    assert!(back.body.starts_with("the form: "), "{}", back.body);
    assert_eq!(back.field("cache-control"), "private, no-store");
    assert_eq!(led(&site.get("/closed")), (302, "/"));
    // What has no room in a cookie is shown by the answer itself.
    let refused = site.post("/add", &format!("title={}", "x".repeat(5000)));
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("the form"), "{}", refused.body);
}

/// A title gives its own address: no column has it.
#[test]
fn a_slug_is_made_in_the_line() {
    let site = TestSite::new(&[
        (
            "pages/films/[id]/[slug].sql",
            "-- name: film :one\nselect id, title || ' & für' as title from article where id = :id;\n\
             -- redirect: 301 /films/:id/:slug(title)\n",
        ),
        ("pages/films/[id]/[slug].html", "{{ film.title }}"),
        (
            "pages/add.post.sql",
            "-- param: title text\n-- name: made :one\ninsert into article (title) values (:title) returning id as made_id;\n\
             -- redirect: /films/:made_id/:slug(title)\n",
        ),
    ]);
    for _ in 0..2 {
        for wrong in ["/films/1/x", "/films/01/One", "/films/1/one-fuer-"] {
            let led = site.get(wrong);
            let to = (led.status, led.field("location"));
            assert_eq!(to, (301, "/films/1/one-fuer"), "{wrong}");
        }
        assert_eq!(site.get("/films/1/one-fuer").body, "One &amp; für");
    }
    assert_eq!(site.get("/films/9/x").status, 404);
    let made = site.post("/add", "title=Caf%C3%A9/bar");
    assert_eq!(made.field("location"), "/films/3/cafe-bar");
    let unknown = problems(&[(
        "pages/a/[slug].sql",
        "-- name: a :one\nselect 1 as x;\n-- redirect: /b/:slug(titel)\n",
    )]);
    assert!(unknown.contains("`:titel`"), "{unknown}");
}

#[test]
fn faults_of_redirects_are_named() {
    for (file, text, expected) in [
        (
            "pages/a.sql",
            "-- redirect: 304 /\n",
            "pages/a.sql:1:1: `304` is no status of a redirect\n  hint: one of 301",
        ),
        (
            "pages/a.sql",
            "-- param: name text\n-- redirect: /x/:nmae\n",
            "pages/a.sql:1:1: nothing uses the parameter `name`",
        ),
        (
            "pages/a/[name].sql",
            "-- redirect: /x/:nmae\n",
            "pages/a/[name].sql:1:1: the redirect names `:nmae`, which is neither a parameter nor a column of a `:one` or `:one?` query\n  hint: did you mean `:name`?",
        ),
        (
            "pages/a.sql",
            "-- name: all :many\nselect title from article;\n-- redirect: :title\n",
            "pages/a.sql:3:1: the redirect names `:title`",
        ),
        (
            "pages/a/[x]/index.sql",
            "-- redirect: 301 /a/:x/?y=1\n",
            "pages/a/[x]/index.sql:1:1: the redirect leads to the page itself",
        ),
        (
            "pages/a/[title].sql",
            "-- name: a :one\nselect title from article where id = 1;\n-- redirect: /articles/:title\n",
            "pages/a/[title].sql:3:1: `:title` is a parameter here, and query `a` has a column of this name",
        ),
        (
            "pages/a.sql",
            "-- name: a :one\nselect 1 as x;\n-- redirect: /b\n-- json: a\n",
            "pages/a.sql:4:1: `-- json:` beside `-- redirect:`",
        ),
        (
            "pages/a.csv.sql",
            "-- name: a :many\nselect 1 as x;\n-- redirect: /b\n",
            "pages/a.csv.sql:3:1: a page of CSV leads nowhere",
        ),
        (
            "pages/a.sql",
            "-- redirect: /b\n-- redirect: :x\n",
            "pages/a.sql:2:1: a second redirect",
        ),
        (
            "pages/a.sql",
            "-- redirect: https://example.org/\n",
            "pages/a.sql:1:1: a redirect goes to a path of this site",
        ),
        (
            "pages/a.post.sql",
            "-- name: a :exec\ndelete from comment;\n-- redirect: 301 /\n",
            "pages/a.post.sql:3:1: a form is answered with 303",
        ),
        (
            "pages/a.post.sql",
            "-- param: next text\n-- name: a :exec\ndelete from comment;\n-- redirect: :next\n",
            "pages/a.post.sql:4:1: a redirect to a parameter says where to go",
        ),
    ] {
        let found = problems(&[(file, text)]);
        assert!(found.starts_with(expected), "{file}: {found}");
    }
    let partial = ("templates/menu.sql", "-- redirect: /x\n");
    let found = problems(&[("templates/menu.html", ""), partial]);
    let expected = "templates/menu.sql:1:1: only a page or a form redirects";
    assert!(found.starts_with(expected), "{found}");
}
