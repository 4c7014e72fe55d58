//! The example: readers with accounts, whose comments are signed.

use std::{fs, path::Path};

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    sessions::cookie,
    support::{Answer, TestSite},
};

on_both!(
    comments_are_signed_and_found_again_by_their_author_alone,
    all_sessions_of_an_account_end_at_once
);

/// The texts of the example's folder, but for its settings.
fn files(dir: &Path, below: &str, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            self::files(&entry.path(), &format!("{name}/"), files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push((name, text));
        }
    }
}

fn site(kind: Kind) -> Housed {
    let mut found = Vec::new();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/articles");
    for part in ["pages", "templates", "migrations"] {
        files(&dir.join(part), &format!("{part}/"), &mut found);
    }
    found.push((
        "millpond.toml".to_owned(),
        fs::read_to_string(dir.join("millpond.toml")).unwrap(),
    ));
    // The support's own table has the same name.
    for own in [
        "migrations/0001_start.sql",
        "migrations/0001_start.postgres.sql",
    ] {
        found.push((own.to_owned(), "select 1;".to_owned()));
    }
    let files: Vec<_> = found
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let site = Housed::new(kind, &files);
    let article = "insert into article (id, slug, title, published_at, words, body_html, body_text) values (1, 'a', 'First', '2026-01-01T00:00:00Z', 1, 'x', 'x')";
    site.run(article);
    site.until("the article is there", || {
        site.get("/read?id=1").status == 200
    });
    site
}

fn ask(site: &TestSite, method: &str, target: &str, cookie: &str, body: &str) -> Answer {
    let request = OwnedRequest::new(method, target)
        .field("Host", "site.test")
        .field("Cookie", cookie)
        .field("Content-Type", "application/x-www-form-urlencoded");
    site.ask(&request.body(body.to_owned()))
}

fn register(site: &TestSite, name: &str) -> String {
    let answer = site.post("/register", &format!("name={name}&password=correct+horse"));
    assert_eq!((answer.status, answer.field("location")), (303, "/account"));
    cookie(&answer)
}

fn comments_are_signed_and_found_again_by_their_author_alone(kind: Kind) {
    let site = site(kind);
    let (ann, bob) = (register(&site, "Ann"), register(&site, "Bob"));
    for (cookie, body) in [
        (&*ann, "id=1&who=Bob&body=from+Ann"),
        (&bob, "id=1&body=from+Bob"),
        ("", "id=1&who=Ann&body=from+nobody"),
    ] {
        assert_eq!(ask(&site, "POST", "/comment", cookie, body).status, 303);
    }
    assert_eq!(
        ask(&site, "POST", "/comment", "", "id=1&body=x").status,
        422
    );
    let article = site.get("/read?id=1");
    assert_eq!(
        article.body.matches(">signed<").count(),
        2,
        "{}",
        article.body
    );
    assert_eq!(article.field("cache-control"), "no-cache", "shared as ever");
    for (cookie, own, others) in [
        (&ann, "from Ann", "from Bob"),
        (&bob, "from Bob", "from Ann"),
    ] {
        let account = ask(&site, "GET", "/account", cookie, "");
        assert!(account.body.contains(own), "{}", account.body);
        assert!(!account.body.contains(others) && !account.body.contains("nobody"));
        assert_eq!(account.field("cache-control"), "private, no-cache");
    }
    let nobody = site.get("/account");
    assert_eq!(nobody.field("location"), "/login?next=%2Faccount");
}

fn all_sessions_of_an_account_end_at_once(kind: Kind) {
    let site = site(kind);
    let here = register(&site, "Ann");
    let body = "name=Ann&password=correct+horse&next=%2Fread%3Fid%3D1";
    let login = site.post("/login", body);
    assert_eq!((login.status, login.field("location")), (303, "/read?id=1"));
    let there = cookie(&login);
    let bob = register(&site, "Bob");
    assert_eq!(ask(&site, "GET", "/account", &there, "").status, 200);
    assert_eq!(ask(&site, "POST", "/everywhere", &here, "").status, 303);
    for ended in [&here, &there] {
        assert_eq!(ask(&site, "GET", "/account", ended, "").status, 404);
        let comment = ask(&site, "POST", "/comment", ended, "id=1&who=&body=late");
        assert_eq!(comment.status, 422, "no name and no account");
    }
    assert_eq!(ask(&site, "GET", "/account", &bob, "").status, 200);
    let again = cookie(&site.post("/login", body));
    assert_eq!(ask(&site, "GET", "/account", &again, "").status, 200);
}
