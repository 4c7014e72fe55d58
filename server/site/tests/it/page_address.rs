//! What a page knows of its own address: the key has it, so the page stays everyone's.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::Answer,
};

const FILES: &[(&str, &str)] = &[
    (
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n\
         [[rewrite]]\nfrom = \"/old/:id\"\nto = \"/en/plays/:id\"\n",
    ),
    (
        "templates/layout.html",
        "{% for item in ['/en/plays/1', '/en/plays/2'] %}\
         <a href=\"{{ item }}\"{% if item == request.path %} aria-current=\"page\"{% endif %}>{{ loop.index }}</a>\
         {% endfor %}<a href=\"/de{{ request.path[3:] }}\">Deutsch</a>",
    ),
    (
        "pages/[lang]/plays/[id].sql",
        "-- param: lang text in (en, de)\n-- name: play :one\nselect title from article where id = :id;\n",
    ),
    (
        "pages/[lang]/plays/[id].html",
        "{% extends \"layout.html\" %}",
    ),
    ("pages/names/[name].html", "{{ request.path }}"),
    ("pages/index.html", "{{ request.path }}"),
];

fn by(site: &Housed, target: &str, cookie: &str) -> Answer {
    let request = OwnedRequest::new("GET", target);
    site.ask(&request.field("Host", "site.test").field("Cookie", cookie))
}

fn a_layout_marks_the_present_page_and_the_page_is_shared(kind: Kind) {
    let site = Housed::new(kind, FILES);
    let one = by(&site, "/en/plays/1", "visitor=ann");
    assert_eq!(
        one.body,
        "<a href=\"&#x2f;en&#x2f;plays&#x2f;1\" aria-current=\"page\">1</a>\
         <a href=\"&#x2f;en&#x2f;plays&#x2f;2\">2</a><a href=\"/de&#x2f;plays&#x2f;1\">Deutsch</a>"
    );
    assert_eq!(
        (one.cache(), one.field("cache-control")),
        ("fwd=miss; stored", "no-cache")
    );
    let again = by(&site, "/en/plays/1", "visitor=bob");
    assert_eq!((again.cache(), &*again.body), ("hit", &*one.body));
    let two = by(&site, "/en/plays/2", "visitor=bob");
    assert_eq!(two.cache(), "fwd=miss; stored");
    assert!(
        two.body.contains("2\" aria-current=\"page\">2"),
        "{}",
        two.body
    );
}

/// One entry of the store has one address, whichever way it was asked for.
fn equal_keys_show_equal_addresses(kind: Kind) {
    for targets in [
        ["/en/plays/007", "/en/plays/7"],
        ["/old/07?x=1", "/en/%70lays/7?x=2"],
    ] {
        let is_one_entry = || {
            let site = Housed::new(kind, FILES);
            site.run("insert into article (id, title) values (7, 'Seven')");
            site.until("a hit", || site.get(targets[0]).cache() == "hit");
            let found = targets.map(|target| site.get(target));
            for found in &found {
                let link = "<a href=\"/de&#x2f;plays&#x2f;7\">Deutsch</a>";
                assert!(found.body.ends_with(link), "{targets:?}: {}", found.body);
            }
            found[1].cache() == "hit"
        };
        // On a busy machine the feed may find the row between two requests.
        assert!((0..5).any(|_| is_one_entry()), "{targets:?}");
    }
    let site = Housed::new(kind, FILES);
    assert_eq!(site.get("/?utm_source=x").body, "&#x2f;");
    let odd = site.get("/names/%3Cb%3E%22%20%C3%BC%5C%25");
    assert_eq!(odd.body, "&#x2f;names&#x2f;%3Cb%3E%22%20ü%5C%25");
}

on_both!(
    a_layout_marks_the_present_page_and_the_page_is_shared,
    equal_keys_show_equal_addresses,
);
