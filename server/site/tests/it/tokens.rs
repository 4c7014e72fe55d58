//! Tokens of programs: the session's value in `Authorization: Bearer`.

use millpond_http::OwnedRequest;
use millpond_site::Config;

use crate::{
    sessions::{SITE, cookie, get, register},
    support::{Answer, TestSite, folder},
};

fn site(more: &[(&str, &str)]) -> TestSite {
    site_with("bearer = true\n", more)
}

fn site_with(setting: &str, more: &[(&str, &str)]) -> TestSite {
    let settings = SITE[0].1.to_owned() + setting;
    let token = (
        "pages/api/token.post.sql",
        "-- param: name text\n-- name: account :one?\nselect id, role, tenant, password_hash from account where name = :name;\n-- verify: account.password_hash = :password\n-- claims: user = account.id, role = account.role, tenant = account.tenant\n",
    );
    let add = (
        "pages/api/note.post.sql",
        "-- param: body text\n-- require: claims.tenant\n-- name: note :one\ninsert into note (tenant, body) values (:claims.tenant, :body) returning id, tenant, body;\n-- json: note\n",
    );
    let settings = [
        ("millpond.toml", &*settings),
        token,
        add,
        ("static/open.txt", "open"),
    ];
    TestSite::new(&[SITE, &settings, more].concat())
}

fn ask(site: &TestSite, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Answer {
    let request = OwnedRequest::new(method, target)
        .field("Host", "site.test")
        .field("Content-Type", "application/json")
        .body(body.to_owned());
    let fields = fields.iter();
    site.ask(&fields.fold(request, |request, (name, value)| request.field(name, value)))
}

fn with(site: &TestSite, target: &str, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    ask(site, "GET", target, &[("Authorization", &bearer)], "")
}

/// Signs in as a program does.
fn sign_in(site: &TestSite, name: &str) -> serde_json::Value {
    let body = format!("{{\"name\":\"{name}\",\"password\":\"pass of {name}\"}}");
    let answer = ask(site, "POST", "/api/token", &[], &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.field("cache-control"), "no-store");
    serde_json::from_str(&answer.body).unwrap()
}

fn token(site: &TestSite, name: &str, tenant: usize) -> String {
    register(site, name, tenant, "editor");
    sign_in(site, name)["access_token"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_sign_in_gives_a_token_that_is_the_session() {
    let site = site(&[]);
    register(&site, "Ann", 1, "editor");
    let told = sign_in(&site, "Ann");
    assert_eq!(told["token_type"], "Bearer");
    assert_eq!(told["expires_in"], 3600);
    assert!(
        told.get("account").is_none(),
        "the hash is not shown: {told}"
    );
    let token = told["access_token"].as_str().unwrap();
    let desk = with(&site, "/api/desk", token);
    assert_eq!((desk.status, &*desk.body), (200, "{\"n\":{\"n\":2}}"));
    assert_eq!(
        get(&site, "/api/desk", &format!("__Host-session={token}")).status,
        200
    );
    // People are led on and get no token.
    let person = crate::sessions::login(&site, "Ann", "pass+of+Ann");
    assert_eq!((person.status, &*person.body), (303, ""));
}

#[test]
fn what_was_read_for_one_token_is_not_given_to_another() {
    let site = site(&[]);
    let (ann, bob) = (token(&site, "Ann", 1), token(&site, "Bob", 2));
    for (token, body) in [(&ann, "of one"), (&bob, "of two")] {
        let bearer = format!("Bearer {token}");
        let body = format!("{{\"body\":\"{body}\"}}");
        let made = ask(
            &site,
            "POST",
            "/api/note",
            &[("Authorization", &bearer)],
            &body,
        );
        assert_eq!(made.status, 200, "{}", made.body);
    }
    for _ in 0..3 {
        let (one, two) = (
            with(&site, "/api/notes", &ann),
            with(&site, "/api/notes", &bob),
        );
        assert_eq!(one.body, "{\"notes\":[{\"body\":\"of one\"}]}");
        assert_eq!(two.body, "{\"notes\":[{\"body\":\"of two\"}]}");
        assert_eq!(site.get("/api/notes").body, "{\"notes\":[]}");
        assert_eq!(one.field("cache-control"), "private, no-cache");
        let head = format!("{one:?}", one = one.field("vary"));
        assert!(head.contains("Authorization"), "{head}");
    }
    // The visitor of a token and of a cookie with the same claims share what is kept.
    assert_eq!(with(&site, "/api/notes", &ann).cache(), "hit");
    let again = get(&site, "/api/notes", &format!("__Host-session={ann}"));
    assert_eq!(again.cache(), "hit");
}

#[test]
fn a_bad_token_is_refused_everywhere() {
    let site = site(&[]);
    let ann = token(&site, "Ann", 1);
    let cut = &ann[..ann.len() - 2];
    for target in [
        "/",
        "/api/desk",
        "/me",
        "/open.txt",
        "/nothing",
        "/login",
        "/greet",
    ] {
        for bad in [cut, "", "x", "1.e30.AAAA"] {
            let refused = with(&site, target, bad);
            assert_eq!(refused.status, 401, "{target} {bad}");
            let told = refused.field("www-authenticate");
            assert_eq!(told, "Bearer error=\"invalid_token\"", "{target}");
            assert_eq!(refused.field("content-type"), "application/problem+json");
            assert_eq!(refused.field("cache-control"), "no-store");
        }
        let good = with(&site, target, &ann);
        assert!(matches!(good.status, 200 | 404), "{target}");
        assert!(
            good.field("cache-control").starts_with("private"),
            "{target}"
        );
    }
    let without = site.get("/api/desk");
    assert_eq!(
        (without.status, without.field("www-authenticate")),
        (401, "Bearer")
    );
    for method in ["HEAD", "OPTIONS", "POST", "PUT", "DELETE"] {
        let bearer = [("Authorization", "Bearer x")];
        assert_eq!(
            ask(&site, method, "/api/note", &bearer, "").status,
            401,
            "{method}"
        );
    }
}

#[test]
fn a_token_and_another_cookie_are_two_readings() {
    let site = site(&[]);
    let (ann, bob) = (token(&site, "Ann", 1), token(&site, "Bob", 2));
    let both = |token: &str, cookie: &str| {
        let (bearer, cookie) = (
            format!("Bearer {token}"),
            format!("__Host-session={cookie}"),
        );
        let fields = [("Authorization", &*bearer), ("Cookie", &*cookie)];
        ask(&site, "GET", "/api/notes", &fields, "")
    };
    assert_eq!(both(&ann, &ann).status, 200);
    assert_eq!(both(&ann, "").status, 200);
    for (one, other) in [(&*ann, &*bob), (&bob, &ann), (&ann, "x")] {
        let refused = both(one, other);
        assert_eq!(refused.status, 400);
        assert!(
            refused
                .field("www-authenticate")
                .contains("invalid_request")
        );
    }
}

#[test]
fn only_a_token_alone_writes_from_another_origin() {
    let site = site(&[]);
    let ann = token(&site, "Ann", 1);
    let bearer = format!("Bearer {ann}");
    let cookie = format!("__Host-session={ann}");
    let from = |fields: &[(&str, &str)]| {
        let evil = [
            ("Origin", "https://evil.test"),
            ("Sec-Fetch-Site", "cross-site"),
        ];
        let fields = [fields, &evil].concat();
        ask(&site, "POST", "/api/note", &fields, "{\"body\":\"x\"}").status
    };
    assert_eq!(from(&[("Authorization", &bearer)]), 200);
    assert_eq!(from(&[("Cookie", &cookie)]), 403);
    assert_eq!(
        from(&[("Authorization", &bearer), ("Cookie", &cookie)]),
        403
    );
    assert_eq!(from(&[]), 403);
    assert_eq!(from(&[("Authorization", "Bearer x")]), 401);
    assert_eq!(from(&[("Authorization", "Basic YTpi")]), 403);
}

#[test]
fn without_the_setting_a_token_is_nothing() {
    let site = site_with("", &[]);
    register(&site, "Ann", 1, "editor");
    let body = "{\"name\":\"Ann\",\"password\":\"pass of Ann\"}";
    let answer = ask(&site, "POST", "/api/token", &[], body);
    assert_eq!((answer.status, &*answer.body), (204, ""));
    let value = cookie(&answer);
    let value = value.split_once('=').unwrap().1;
    assert_eq!(with(&site, "/api/desk", value).status, 401);
    assert_eq!(with(&site, "/", value).field("cache-control"), "no-cache");
}

/// RFC 9110 section 12.5.5: `Authorization` need not stand in `Vary`, because its own definition
/// restricts who may be given the answer again. So the 404 of a client with a token, where tokens
/// are not taken, says `Accept` alone. An HTML answer is not reused for the client either: both are
/// asked for each time (`no-cache`), and a 404 has no conditional answer.
#[test]
fn a_missing_page_varies_by_accept_alone() {
    let site = site_with("", &[]);
    let fields = [("Authorization", "Bearer x")];
    let document = ask(&site, "GET", "/nowhere", &fields, "");
    let page = site.get("/nowhere");
    for (answer, media_type) in [
        (&document, "application/problem+json"),
        (&page, "text/html; charset=utf-8"),
    ] {
        assert_eq!(
            (answer.status, answer.field("content-type")),
            (404, media_type)
        );
        assert_eq!(answer.field("vary"), "Accept");
        assert_eq!(answer.field("cache-control"), "no-cache");
    }
    let (etag, other) = (page.field("etag"), document.field("etag"));
    assert_ne!(etag, other);
    let again = [fields[0], ("If-None-Match", etag)];
    let again = ask(&site, "GET", "/nowhere", &again, "");
    assert_eq!((again.status, again.body), (404, document.body));
}

#[test]
fn attempts_of_programs_are_few_too() {
    let site = site(&[]);
    let ann = token(&site, "Ann", 1);
    let bearer = format!("Bearer {ann}");
    let guess = |fields: &[(&str, &str)]| {
        let body = "{\"name\":\"Ann\",\"password\":\"guess\"}";
        ask(&site, "POST", "/api/token", fields, body).status
    };
    let statuses: Vec<u16> = (0..12)
        .map(|_| guess(&[("Authorization", &bearer)]))
        .collect();
    assert_eq!(statuses[..10], [422; 10]);
    assert_eq!(statuses[10..], [429; 2]);
    assert_eq!(guess(&[]), 429);
}

#[test]
fn a_token_ends_with_its_account_where_a_query_looks() {
    let looks = (
        "pages/api/me.sql",
        "-- require: claims.user\n-- json: me\n-- name: me :one\nselect name from account where id = :claims.user and role = :claims.role;\n",
    );
    let site = site(&[looks]);
    let ann = token(&site, "Ann", 1);
    for _ in 0..3 {
        assert_eq!(with(&site, "/api/me", &ann).body, "{\"name\":\"Ann\"}");
    }
    site.foreign()
        .execute("update account set role = 'ended'", [])
        .unwrap();
    site.until("the session has ended", || {
        with(&site, "/api/me", &ann).status == 404
    });
}

#[test]
fn check_names_sign_ins_that_give_no_token() {
    let notes = |form: &str| {
        let settings = "[database]\nurl = \"sqlite:site.db\"\n[session]\nbearer = true\n";
        let dir = folder(&[("millpond.toml", settings), ("pages/in.post.sql", form)]);
        let config = Config::read(dir.path()).unwrap();
        let report = millpond_site::check(dir.path(), &config).unwrap();
        let notes = report.notes.iter().map(ToString::to_string);
        notes.collect::<Vec<_>>().join("\n")
    };
    let query = "-- param: id integer\n-- name: account :one\nselect id, title as token_type from article where id = :id;\n";
    let claims = format!("{query}-- claims: user = account.id\n");
    for (lines, said) in [
        ("-- redirect: /\n", "no form gives a token"),
        (
            "-- json: all\n-- name: all :many\nselect id from article;\n",
            "the answer is a list",
        ),
        ("-- json: account\n", "the column `token_type` is not shown"),
        (
            "-- name: expires_in :one\nselect 1 as x;\n",
            "the query `expires_in` is not shown",
        ),
    ] {
        let notes = notes(&format!("{claims}{lines}"));
        assert!(notes.contains(said), "{lines}: {notes}");
    }
    assert_eq!(notes(&claims), "");
}

/// *Counterexample*: a program that mistypes an address got the page that people see.
#[test]
fn errors_for_a_program_are_documents_at_every_address() {
    let site = site(&[
        ("pages/404.html", "own page"),
        ("pages/4xx.html", "own page"),
        ("pages/wide/[id].sql", "-- param: id integer\n"),
        ("pages/wide/[id].html", "{{ params.id }}"),
    ]);
    let token = token(&site, "ann", 1);
    let bearer = format!("Bearer {token}");
    for (method, target, status) in [
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("GET", "/wide/x", 404),
        ("GET", "/wide/x", 404),
        ("POST", "/open.txt", 405),
        ("POST", "/greet", 405),
        ("GET", "/login?failed=x", 400),
    ] {
        for (name, value) in [("Authorization", &*bearer), ("Accept", "application/json")] {
            let answer = ask(&site, method, target, &[(name, value)], "");
            assert_eq!(answer.status, status, "{target}: {}", answer.body);
            let told = answer.field("content-type");
            assert_eq!(told, "application/problem+json", "{target} {name}");
        }
        let fields = [("Authorization", &*bearer), ("Accept", "text/html")];
        let page = ask(&site, method, target, &fields, "");
        assert_eq!((page.status, &*page.body), (status, "own page"), "{target}");
    }
}
