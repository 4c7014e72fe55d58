//! What a visitor sees when something is wrong: enough to go on, nothing of the inside.

use millpond_http::OwnedRequest;

use crate::support::TestSite;

#[test]
fn bad_parameters_are_named() {
    let site = TestSite::new(&[
        (
            "pages/read.sql",
            "-- name: a :one\nselect title from article where id = :id;\n",
        ),
        ("pages/read.html", "{{ a.title }}"),
    ]);
    for (target, sentence) in [
        ("/read", "The parameter \"id\" is missing.\n"),
        (
            "/read?id=x",
            "The parameter \"id\" must be a whole number.\n",
        ),
        ("/read?id=1&id=2", "The parameter \"id\" is given twice.\n"),
    ] {
        let answer = site.get(target);
        assert_eq!((answer.status, &*answer.body), (400, sentence));
    }
    assert_eq!(site.get("/%00").status, 400);
    assert_eq!(site.get("/..%2f..%2fetc/passwd").status, 400);
}

#[test]
fn a_failing_page_gives_500_and_not_a_word_of_why() {
    let site = TestSite::new(&[
        ("pages/broken.sql", "-- name: a :one\nselect 1 as x;\n"),
        ("pages/broken.html", "{% include [a.x] %}"),
        (
            "pages/overflow.sql",
            "-- name: a :one\nselect abs(-9223372036854775808) as x;\n",
        ),
        ("pages/overflow.html", "{{ a.x }}"),
        (
            "pages/endless.html",
            "{% for i in range(100000) %}{% for j in range(100000) %}{% for k in range(1000) %}x{% endfor %}{% endfor %}{% endfor %}",
        ),
    ]);
    for target in ["/broken", "/overflow"] {
        let answer = site.get(target);
        assert_eq!(answer.status, 500, "{target}");
        assert!(
            answer.body.contains("Something went wrong")
                && !answer.body.contains("select")
                && !answer.body.contains("pages/")
        );
        assert_eq!(site.get(target).status, 500);
    }
    assert_eq!(site.get("/endless").status, 500);
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn a_site_has_its_own_error_pages() {
    let site = TestSite::new(
        &[
            ("pages/404.html", "{% extends \"layout.html\" %}"),
            ("pages/500.html", "own 500"),
            ("templates/layout.html", "own 404"),
            (
                "pages/read.sql",
                "-- name: a :one\nselect title from article where id = :id;\n",
            ),
            ("pages/read.html", "{{ a.title }}"),
            ("pages/broken.html", "{{ 1 / 0 }}{{ undefined_function() }}"),
        ]
        .iter()
        .filter(|(name, _)| *name != "pages/broken.html")
        .copied()
        .collect::<Vec<_>>(),
    );
    assert_eq!(
        (site.get("/nothing").status, &*site.get("/nothing").body),
        (404, "own 404")
    );
    assert_eq!(
        (site.get("/read?id=9").status, &*site.get("/read?id=9").body),
        (404, "own 404")
    );
    assert_eq!(site.get("/404").status, 404);
}

#[test]
fn one_address_for_one_page() {
    let site = TestSite::new(&[("pages/read.html", "x"), ("static/a.txt", "file")]);
    let answer = site.get("/read/?a=1");
    assert_eq!(
        (answer.status, answer.field("location")),
        (308, "/read?a=1")
    );
    // Browsers take a backslash for a slash, and two of them for the beginning of another host.
    let any = TestSite::new(&[("pages/[any].html", "x")]);
    for target in ["/\\evil.example/", "/%5cevil.example/"] {
        let answer = any.get(target);
        assert_eq!(
            (answer.status, answer.field("location")),
            (308, "/%5Cevil.example")
        );
    }
    assert_eq!(site.get("/a.txt").body, "file");
    assert_eq!(site.ask(&OwnedRequest::new("POST", "/a.txt")).status, 405);
    assert_eq!(site.get("/a.txt/").status, 404);
}
