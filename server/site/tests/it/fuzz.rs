//! A whole site under hostile requests: it reveals nothing, runs no visitor's markup, and redirects
//! no visitor to another site.

use std::os::unix::fs::symlink;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use lab_torture::{
    Choices,
    http::{Corpus, words},
};
use millpond_http::OwnedRequest;

use crate::support::{Answer, TestSite};

/// Part of every text that no visitor may see.
const SECRET: &str = "SECRET-OF-THE-HOUSE";

fn site() -> TestSite {
    let site = TestSite::new(&[
        ("static/small.txt", "small"),
        ("static/docs/index.html", "docs"),
        ("static/.env", SECRET),
        ("static/.git/config", SECRET),
        ("outside.txt", SECRET),
        (
            "templates/base.html",
            "{# SECRET-OF-THE-HOUSE #}{% block body %}{% endblock %}",
        ),
        (
            "pages/echo.sql",
            "-- SECRET-OF-THE-HOUSE\n-- param: q text = 'none'\n-- name: found :many\nselect title from article where title = :q;\n",
        ),
        (
            "pages/echo.html",
            "{% extends \"base.html\" %}{% block body %}<p title=\"{{ params.q }}\">{{ params.q }}|{{ request.query.q | default(\"\") }}|{{ request.path }}</p>{% endblock %}",
        ),
        (
            "pages/[slug].sql",
            "-- name: article :one\nselect title from article where title = :slug;\n",
        ),
        ("pages/[slug].html", "<h1>{{ article.title }}</h1>"),
    ]);
    let outside = site.dir.path().join("outside.txt");
    symlink(outside, site.dir.path().join("static/link.txt")).unwrap();
    site
}

#[test]
fn whole_sites() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/__fuzz__/whole_sites/corpus");
    let corpus = Corpus::read(&seeds, &words::PATHS).unwrap();
    // What fails is said by a panic; the site is not used after it.
    let site = AssertUnwindSafe(site());
    for seed in corpus.seeds() {
        let target = target(seed);
        check(&target, &site.get(&target));
    }
    bolero::check!(name = "whole_sites")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let target = target(&corpus.mutated(&mut choices));
            let answer = site.get(&target);
            check(&target, &answer);
            let method = if choices.chance(50) { "HEAD" } else { "POST" };
            let request = OwnedRequest::new(method, &target)
                .field("Host", "site.test")
                .field("Content-Type", "application/x-www-form-urlencoded")
                .body(choices.bytes(40));
            check(&target, &site.ask(&request));
        });
}

/// Makes a text that can be a target once a request line is parsed: visible ASCII that begins with
/// a slash.
fn target(bytes: &[u8]) -> String {
    let visible = bytes.iter().filter(|b| b.is_ascii_graphic() && **b != b'#');
    let text: String = visible.map(|&b| char::from(b)).collect();
    format!("/{}", text.strip_prefix('/').unwrap_or(&text))
}

fn check(target: &str, answer: &Answer) {
    let Answer { status, body, .. } = answer;
    assert!(
        matches!(status, 200 | 308 | 400 | 403 | 404 | 405),
        "{status} for {target}"
    );
    assert!(!body.contains(SECRET), "{target} shows {body}");
    if body.starts_with("<p title=") {
        let markup = |byte| body.matches(byte).count();
        let counts = (markup('<'), markup('>'), markup('"'));
        assert_eq!(counts, (2, 2, 2), "{target} became {body}");
    }
    let location = answer.field("location");
    if *status == 308 {
        // Browsers read a backslash as a slash: two of them would begin the name of another host.
        let elsewhere = !location.starts_with('/') || location[1..].starts_with(['/', '\\']);
        assert!(!elsewhere, "{target} leads to {location}");
    }
}
