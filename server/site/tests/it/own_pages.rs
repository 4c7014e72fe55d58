//! Pages of Millpond's own: errors for browsers, under the policy of the site.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use millpond_http::OwnedRequest;

use crate::support::{Answer, TestSite};

const FILES: &[(&str, &str)] = &[
    (
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n[static]\nlisting = [\"/files\"]\n\
         [[fields]]\npath = \"/*\"\nset = { \"Content-Security-Policy\" = \"default-src 'none'; style-src 'self'\", \"X-Own\" = \"1\" }\n",
    ),
    ("pages/index.html", "front"),
    (
        "pages/members.sql",
        "-- require: claims.user\n-- name: a :one\nselect 1 as x;\n",
    ),
    ("pages/members.html", "{{ a.x }}"),
    (
        "pages/login.post.sql",
        "-- name: account :one?\nselect title as hash from article where title = :name;\n-- verify: account.hash = :password\n-- redirect: /\n",
    ),
    (
        "pages/read.sql",
        "-- param: id integer\n-- name: a :one\nselect :id as id;\n",
    ),
    ("pages/read.html", "{{ a.id }}"),
    (
        "pages/broken.sql",
        "-- param: id integer = 1\n-- name: a :one?\nselect :id as id where :id = 2;\n",
    ),
    ("pages/broken.html", "{{ a.id + 1 }}"),
    ("static/files/a.txt", "a"),
];

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn ask(site: &TestSite, method: &str, target: &str, accept: &str) -> Answer {
    let request = OwnedRequest::new(method, target).field("Host", "site.test");
    let request = match method {
        "POST" => request
            .field("Content-Type", "application/x-www-form-urlencoded")
            .body("name=x&password=y".to_owned()),
        _ => request,
    };
    match accept {
        "" => site.ask(&request),
        accept => site.ask(&request.field("Accept", accept)),
    }
}

/// True if the policy of an answer lets the style in its body be applied.
fn shows_its_style(answer: &Answer) -> bool {
    let (_, style) = answer.body.split_once("<style>").unwrap();
    let (style, _) = style.split_once("</style>").unwrap();
    let hash = STANDARD.encode(digest(&SHA256, style.as_bytes()));
    let policy = answer.field("content-security-policy");
    policy.contains(&format!("style-src 'self' 'sha256-{hash}'"))
}

#[test]
fn an_error_is_a_page_for_browsers_and_a_sentence_for_others() {
    let site = TestSite::new(FILES);
    let many = || {
        let mut tries = (0..30).map(|_| ask(&site, "POST", "/login", BROWSER));
        tries.find(|answer| answer.status == 429).unwrap()
    };
    for (answer, status, title) in [
        (ask(&site, "GET", "/members", BROWSER), 403, "Forbidden"),
        (
            ask(&site, "DELETE", "/read?id=1", BROWSER),
            405,
            "Method Not Allowed",
        ),
        (
            ask(&site, "GET", "/read?id=%3Cb%3E", BROWSER),
            400,
            "Bad Request",
        ),
        (ask(&site, "GET", "/nothing", BROWSER), 404, "Not found"),
        (
            ask(&site, "GET", "/broken", BROWSER),
            500,
            "Something went wrong",
        ),
        (many(), 429, "Too Many Requests"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.field("content-type"), "text/html; charset=utf-8");
        let heading = format!("<h1>{title}</h1>");
        assert!(answer.body.contains(&heading), "{}", answer.body);
        assert!(
            shows_its_style(&answer),
            "{status}: {}",
            answer.field("content-security-policy")
        );
        assert_eq!(answer.field("x-own"), "1");
    }
    let refused = ask(&site, "DELETE", "/read?id=1", BROWSER);
    assert_eq!(refused.field("allow"), "GET, HEAD, OPTIONS");
    let plain = ask(&site, "DELETE", "/read?id=1", "*/*");
    assert_eq!(plain.field("content-type"), "text/plain; charset=utf-8");
    assert_eq!(
        plain.field("content-security-policy"),
        "default-src 'none'; style-src 'self'"
    );
    let program = ask(&site, "DELETE", "/read?id=1", "application/json");
    assert_eq!(program.field("content-type"), "application/problem+json");
}

#[test]
fn the_policy_of_the_site_is_that_of_its_pages() {
    let site = TestSite::new(FILES);
    for target in ["/", "/read?id=1", "/files/a.txt"] {
        let answer = ask(&site, "GET", target, BROWSER);
        let policy = answer.field("content-security-policy");
        assert_eq!(policy, "default-src 'none'; style-src 'self'", "{target}");
    }
    let list = ask(&site, "GET", "/files/", BROWSER);
    assert_eq!(list.status, 200, "{}", list.body);
    assert!(
        shows_its_style(&list),
        "{}",
        list.field("content-security-policy")
    );
}
