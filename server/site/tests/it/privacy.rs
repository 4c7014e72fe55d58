//! A page that looks at its visitor is given to no other visitor.

use millpond_http::OwnedRequest;

use crate::support::TestSite;

fn get(site: &TestSite, target: &str, name: &str, value: &str) -> crate::support::Answer {
    site.ask(
        &OwnedRequest::new("GET", target)
            .field("Host", "site.test")
            .field(name, value),
    )
}

#[test]
fn touching_the_request_makes_a_page_private_and_keeps_its_objects() {
    let site = TestSite::new(&[
        (
            "pages/me.sql",
            "-- name: articles :many\nselect title from article order by id;\n",
        ),
        (
            "pages/me.html",
            "{{ request.headers.cookie }}{% for a in articles %} {{ a.title }}{% endfor %}",
        ),
    ]);
    let ann = get(&site, "/me", "Cookie", "ann");
    assert_eq!(
        (&*ann.body, ann.field("cache-control")),
        ("ann One Two", "private, no-cache")
    );
    let bob = get(&site, "/me", "Cookie", "bob");
    assert_eq!(
        (&*bob.body, bob.field("cache-control")),
        ("bob One Two", "private, no-cache")
    );
    assert_eq!(bob.cache(), "fwd=bypass; detail=private");
    site.foreign()
        .execute("update article set title = 'Uno' where id = 1", [])
        .unwrap();
    site.until("the change shows", || {
        get(&site, "/me", "Cookie", "x").body == "x Uno Two"
    });
}

#[test]
fn a_page_that_looks_only_sometimes_gives_nothing_away() {
    let site = TestSite::new(&[
        ("pages/p.sql", "-- param: who integer = 0\n"),
        (
            "pages/p.html",
            "{% if params.who == 1 %}{{ request.headers['cookie'] }}{% else %}all{% endif %}",
        ),
    ]);
    assert_eq!(get(&site, "/p", "Cookie", "ann").body, "all");
    assert_eq!(get(&site, "/p?who=1", "Cookie", "ann").body, "ann");
    assert_eq!(get(&site, "/p?who=1", "Cookie", "bob").body, "bob");
    assert_eq!(get(&site, "/p", "Cookie", "bob").body, "all");
}

#[test]
fn declared_fields_are_part_of_the_key() {
    let site = TestSite::new(&[
        ("pages/p.sql", "-- vary: Accept-Language\n"),
        ("pages/p.html", "{{ request.headers['accept-language'] }}"),
    ]);
    let de = get(&site, "/p", "Accept-Language", "de");
    assert_eq!(
        (&*de.body, de.cache(), de.field("cache-control")),
        ("de", "fwd=miss; stored", "no-cache")
    );
    assert!(de.field("vary").contains("accept-language"));
    assert_eq!(get(&site, "/p", "Accept-Language", "de").cache(), "hit");
    assert_eq!(get(&site, "/p", "Accept-Language", "fr").body, "fr");
    assert_eq!(get(&site, "/p", "X", "y").body, "");
}

#[test]
fn what_fails_for_one_visitor_is_not_given_to_another() {
    let site = TestSite::new(&[("pages/p.html", "{{ request.query.q }}")]);
    assert_eq!(site.get("/p").status, 500);
    assert_eq!(site.get("/p?q=x").body, "x");
    assert_eq!(
        site.get("/p?q=x").field("cache-control"),
        "private, no-cache"
    );
}

/// `debug()` and `pprint` look at all that the template sees.
#[test]
fn a_page_that_prints_its_context_is_private() {
    let site = TestSite::new(&[
        ("pages/all.html", "{{ debug() }}"),
        ("pages/one.html", "{{ debug(request) }}"),
        ("pages/pretty.html", "{{ [request.headers] | pprint }}"),
    ]);
    for target in ["/all", "/one", "/pretty"] {
        let ann = get(&site, target, "Cookie", "ann-was-here");
        assert!(ann.body.contains("ann-was-here"), "{}", ann.body);
        let bob = get(&site, target, "Cookie", "bob");
        assert_eq!(bob.cache(), "fwd=bypass; detail=private");
        assert!(!bob.body.contains("ann-was-here"), "{}", bob.body);
    }
}
