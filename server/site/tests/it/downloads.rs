//! Pages that people save and programs read: CSV, and the bytes of a column. A browser that a link
//! has led there is answered as a person.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::Answer,
};

const LINES: &str = "-- require: claims.user else /login\n";

on_both!(a_browser_is_led_on_and_a_program_is_told,);

fn a_browser_is_led_on_and_a_program_is_told(kind: Kind) {
    let csv =
        format!("{LINES}-- name: articles :many\nselect id, title from article order by id;\n");
    let bytes = "-- bytes: article.title\n-- name: article :one\nselect title from article where id = :id;\n";
    let private = format!("{LINES}{bytes}");
    let site = Housed::new(
        kind,
        &[
            (
                "millpond.toml",
                "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n\
                 [[require]]\npath = \"/desk/*\"\nclaims = \"user\"\nelse = \"/login\"\n",
            ),
            ("pages/login.html", "sign in"),
            ("pages/404.html", "nothing here"),
            ("pages/articles.csv.sql", &csv),
            ("pages/files/[id].sql", &private),
            ("pages/open/[id].sql", bytes),
            ("pages/desk/[id].sql", bytes),
            ("pages/api/articles.sql", &csv),
        ],
    );
    let ask = |target: &str, accept: &str| -> Answer {
        let request = OwnedRequest::new("GET", target).field("Host", "site.test");
        site.ask(&request.field("Accept", accept))
    };
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
    for (target, led) in [
        ("/articles.csv", "/login?next=%2Farticles.csv"),
        ("/files/1", "/login?next=%2Ffiles%2F1"),
        ("/files/9", "/login?next=%2Ffiles%2F9"),
        ("/desk/1", "/login?next=%2Fdesk%2F1"),
    ] {
        for _ in 0..2 {
            let answer = ask(target, browser);
            let found = (answer.status, answer.field("location"));
            assert_eq!(found, (303, led), "{target}");
            // Programs, and a picture within a page.
            for accept in [
                "*/*",
                "text/csv",
                "application/json",
                "image/avif,image/webp,*/*;q=0.8",
                "",
            ] {
                let answer = ask(target, accept);
                assert_eq!(answer.status, 401, "{target} {accept}");
                assert_eq!(answer.field("content-type"), "application/problem+json");
            }
        }
    }
    assert_eq!(ask("/api/articles", browser).status, 401, "an API");
    for _ in 0..2 {
        let missing = ask("/open/9", browser);
        assert_eq!((missing.status, &*missing.body), (404, "nothing here"));
        let missing = ask("/open/9", "*/*");
        assert_eq!(missing.field("content-type"), "application/problem+json");
        assert_eq!(ask("/open/x", browser).body, "nothing here");
        assert_eq!(ask("/open/1", browser).status, 200);
    }
}
