//! Signing in and out: what a session opens, and for whom.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use millpond_http::{OwnedRequest, Service as _};
use millpond_site::Config;
use millpond_store::clock::Boottime;

use crate::support::{Answer, TestSite, folder, problems};

/// Accounts with a tenant each, and notes of tenants.
pub(crate) const SITE: &[(&str, &str)] = &[
    (
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmax_staleness = \"1d\"\n[session]\nsecret = \"0123456789abcdef0123456789abcdef\"\nlifetime = \"1h\"\n",
    ),
    (
        "migrations/0002_accounts.sql",
        "create table account (id integer primary key, name text not null unique, role text not null default 'reader', tenant integer, password_hash text not null) strict;\ncreate table note (id integer primary key, tenant integer not null, body text not null) strict;\n",
    ),
    (
        "pages/register.post.sql",
        "-- param: name text\n-- param: tenant integer\n-- param: role text = 'reader'\n-- hash: password_hash = :password\n\n-- name: account :one\ninsert into account (name, role, tenant, password_hash) values (:name, :role, :tenant, :password_hash) returning id, name as known_as;\n\n-- claims: user = account.id, name = account.known_as, tenant = :tenant\n-- redirect: /me\n",
    ),
    (
        "pages/login.post.sql",
        "-- name: account :one?\nselect id, name as known_as, role, tenant, password_hash from account where name = :name;\n\n-- verify: account.password_hash = :password else /login?failed=1\n-- claims: user = account.id, name = account.known_as, role = account.role, tenant = account.tenant\n-- redirect: :next else /me\n",
    ),
    (
        "pages/login.sql",
        "-- param: failed integer = 0\n-- param: next text = ''\n",
    ),
    (
        "pages/login.html",
        "{% if params.failed %}wrong{% else %}sign in{% endif %} {{ params.next }}",
    ),
    ("pages/logout.post.sql", "-- logout\n-- redirect: /\n"),
    ("pages/me.html", "I am {{ request.claims.name }}."),
    (
        "pages/notes.sql",
        "-- param: page integer = 0\n-- name: notes :many\nselect body from note where tenant = :claims.tenant and id % 3 = :page order by id;\n",
    ),
    (
        "pages/notes.html",
        "{% for n in notes %}{{ n.body }} {% endfor %}",
    ),
    (
        "pages/api/notes.sql",
        "-- name: notes :many\nselect body from note where tenant = :claims.tenant order by id;\n",
    ),
    (
        "pages/note.post.sql",
        "-- param: body text\n-- require: claims.tenant else /login\n-- name: note :exec\ninsert into note (tenant, body) values (:claims.tenant, :body);\n-- redirect: /notes\n",
    ),
    (
        "pages/members.sql",
        "-- require: claims.user else /login\n-- name: n :one\nselect count(*) as n from article;\n",
    ),
    ("pages/members.html", "{{ n.n }} for members"),
    (
        "pages/desk.sql",
        "-- require: claims.role = 'editor' else /login\n",
    ),
    ("pages/desk.html", "the desk"),
    (
        "pages/api/desk.sql",
        "-- require: claims.role = 'editor' else /login\n-- name: n :one\nselect count(*) as n from article;\n",
    ),
    ("pages/greet.sql", "-- vary: claims.name\n"),
    ("pages/greet.html", "Hello {{ request.claims.name }}"),
];

/// The `name=value` that an answer sets.
pub(crate) fn cookie(answer: &Answer) -> String {
    let field = answer.field("set-cookie");
    field.split(';').next().unwrap_or_default().to_owned()
}

pub(crate) fn register(site: &TestSite, name: &str, tenant: usize, role: &str) -> String {
    let body = format!("name={name}&password=pass+of+{name}&tenant={tenant}&role={role}");
    let answer = site.post("/register", &body);
    assert_eq!(answer.status, 303, "{}", answer.body);
    cookie(&answer)
}

fn request(target: &str, cookie: &str) -> OwnedRequest {
    OwnedRequest::new("GET", target)
        .field("Host", "site.test")
        .field("Cookie", cookie)
}

fn get(site: &TestSite, target: &str, cookie: &str) -> Answer {
    site.ask(&request(target, cookie))
}

fn login(site: &TestSite, name: &str, password: &str) -> Answer {
    site.post("/login", &format!("name={name}&password={password}"))
}

#[test]
fn who_registers_is_signed_in_until_they_sign_out() {
    let site = TestSite::new(SITE);
    assert_eq!(site.get("/me").body, "I am .");
    let ann = register(&site, "Ann", 1, "reader");
    assert!(ann.starts_with("__Host-session=1."), "{ann}");
    let me = get(&site, "/me", &ann);
    assert_eq!(
        (&*me.body, me.field("cache-control")),
        ("I am Ann.", "private, no-cache")
    );
    let again = login(&site, "Ann", "pass+of+Ann");
    assert_eq!((again.status, again.field("location")), (303, "/me"));
    assert_eq!(again.field("cache-control"), "no-store");
    assert!(
        again
            .field("set-cookie")
            .ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"),
        "{}",
        again.field("set-cookie")
    );
    assert_eq!(get(&site, "/me", &cookie(&again)).body, "I am Ann.");
    let out = site.post("/logout", "");
    assert_eq!((out.status, &*cookie(&out)), (303, "__Host-session="));
    assert!(out.field("set-cookie").contains("Max-Age=0"));
    let stored: String = site
        .foreign()
        .query_row("select password_hash from account", [], |row| row.get(0))
        .unwrap();
    assert!(stored.starts_with("$argon2id$"), "{stored}");
}

/// ✗ *Whoever is told of an error after the commit has written all the same, and has to see it on every node.*
#[test]
fn a_form_that_has_written_and_cannot_sign_in_tells_what_was_written() {
    let site = TestSite::new(SITE);
    let long = "x".repeat(4_000);
    let answer = site.post(
        "/register",
        &format!("name={long}&password=long+enough&tenant=1"),
    );
    assert_eq!(answer.status, 500, "{}", answer.body);
    let told = answer.field("set-cookie");
    assert!(told.starts_with("__Host-session-seen=w1."), "{told}");
    let count = "select count(*) from account";
    let accounts: i64 = site
        .foreign()
        .query_row(count, [], |row| row.get(0))
        .unwrap();
    assert_eq!(accounts, 1, "it was written");
}

#[test]
fn a_wrong_password_and_an_unknown_account_are_one_answer() {
    let site = TestSite::new(SITE);
    register(&site, "Ann", 1, "reader");
    let wrong = login(&site, "Ann", "pass+of+Bob");
    let unknown = login(&site, "Nobody", "pass+of+Bob");
    let long = login(&site, "Ann", &"x".repeat(5_000));
    for answer in [&wrong, &unknown, &long] {
        assert_eq!(
            (answer.status, answer.field("location")),
            (303, "/login?failed=1")
        );
        assert_eq!(answer.field("set-cookie"), "");
    }
    assert_eq!(site.get("/login?failed=1").body, "wrong ");
    let short = site.post("/register", "name=Bob&password=short&tenant=1");
    assert_eq!((short.status, short.field("set-cookie")), (422, ""));
    let twice = site.post("/register", "name=Ann&password=long+enough&tenant=1");
    assert_eq!((twice.status, twice.field("set-cookie")), (409, ""));
}

#[test]
fn attempts_are_few() {
    let site = TestSite::new(SITE);
    register(&site, "Ann", 1, "reader");
    let tried = |name: &str| {
        let answers = (0..15).map(|_| login(&site, name, "guess"));
        answers.filter(|answer| answer.status == 303).count()
    };
    assert_eq!((tried("Ann"), tried("NOBODY")), (10, 10));
    let refused = login(&site, "Ann", "pass+of+Ann");
    assert_eq!(refused.status, 429, "the right one too");
    let wait: u64 = refused.field("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(
        login(&site, "nobody", "guess").status,
        429,
        "however written"
    );
    assert_eq!(login(&site, "Bob", "guess").status, 303);
}

#[test]
fn a_cookie_that_is_not_ours_is_none() {
    let site = TestSite::new(SITE);
    let ann = register(&site, "Ann", 1, "reader");
    let other = TestSite::new(
        &[
            SITE,
            &[("millpond.toml", "[database]\nurl = \"sqlite:site.db\"\n")],
        ]
        .concat(),
    );
    let foreign = register(&other, "Ann", 1, "reader");
    for bad in [
        ann[..ann.len() - 2].to_owned(),
        format!("{ann}x"),
        ann.replace("=1.", "=2."),
        ann.replace("__Host-", ""),
        format!("{ann}{}", "x".repeat(8_000)),
        foreign,
        "__Host-session=".to_owned(),
        "__Host-session=1.e30.AAAA".to_owned(),
    ] {
        let answer = get(&site, "/me", &bad);
        assert_eq!((answer.status, &*answer.body), (200, "I am ."), "{bad}");
        assert_eq!(get(&site, "/members", &bad).status, 303, "{bad}");
    }
}

#[test]
fn what_is_required_is_asked_each_time() {
    let site = TestSite::new(SITE);
    let ann = register(&site, "Ann", 1, "reader");
    let nobody = site.get("/members?a=1");
    assert_eq!(
        (nobody.status, nobody.field("location")),
        (303, "/login?next=%2Fmembers%3Fa%3D1")
    );
    let member = get(&site, "/members", &ann);
    assert_eq!(
        (&*member.body, member.field("cache-control")),
        ("2 for members", "private, no-cache")
    );
    assert_eq!(get(&site, "/members", &ann).cache(), "hit");
    assert_eq!(
        site.get("/members").status,
        303,
        "kept, and not for everybody"
    );
    let editor = register(&site, "Eve", 1, "editor");
    assert_eq!(get(&site, "/desk", &ann).status, 303);
    let reader = cookie(&login(&site, "Ann", "pass+of+Ann"));
    assert_eq!(get(&site, "/desk", &reader).status, 403);
    assert_eq!(
        get(&site, "/desk", &editor).status,
        303,
        "registered without the claim"
    );
    let editor = cookie(&login(&site, "Eve", "pass+of+Eve"));
    assert_eq!(get(&site, "/desk", &editor).body, "the desk");
    assert_eq!(get(&site, "/api/desk", &editor).status, 200);
    assert_eq!(
        site.get("/api/desk").status,
        403,
        "a program follows nobody to a form"
    );
    let note = site.post("/note", "body=x");
    assert_eq!((note.status, note.field("location")), (303, "/login"));
}

#[test]
fn after_signing_in_only_paths_of_this_site_are_followed() {
    let site = TestSite::new(SITE);
    register(&site, "Ann", 1, "reader");
    for (next, location) in [
        ("", "/me"),
        ("%2Fmembers%3Fa%3D1", "/members?a=1"),
        ("%2F%2Fevil.example", "/me"),
        ("%2F%5Cevil.example", "/me"),
        ("https%3A%2F%2Fevil.example", "/me"),
        ("%2F%09%2Fevil.example", "/me"),
        ("%2Fa%0D%0ASet-Cookie%3Ax", "/me"),
    ] {
        let body = format!("name=Ann&password=pass+of+Ann&next={next}");
        let answer = site.post("/login", &body);
        assert_eq!(answer.field("location"), location, "{next}");
    }
}

#[test]
fn another_sites_form_signs_nobody_in_or_out() {
    let site = TestSite::new(SITE);
    register(&site, "Ann", 1, "reader");
    for (target, body) in [
        ("/login", "name=Ann&password=pass+of+Ann"),
        ("/logout", ""),
        ("/register", "name=Bob&password=long+enough&tenant=1"),
    ] {
        for (name, value) in [
            ("Origin", "https://evil.test"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            let request = OwnedRequest::new("POST", target)
                .field("Host", "site.test")
                .field("Content-Type", "application/x-www-form-urlencoded")
                .field(name, value)
                .body(body);
            let answer = site.ask(&request);
            assert_eq!(
                (answer.status, answer.field("set-cookie")),
                (403, ""),
                "{target} {name}"
            );
        }
    }
}

#[test]
fn an_answer_that_was_kept_ends_with_its_session() {
    let site = TestSite::new(SITE);
    let ann = register(&site, "Ann", 7, "reader");
    let note = OwnedRequest::new("POST", "/note")
        .field("Cookie", &ann)
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("body=secret");
    assert_eq!(site.ask(&note).status, 303);
    let service = site.site.service();
    for target in ["/api/notes", "/members"] {
        assert_ne!(get(&site, target, &ann).status, 303, "filled");
        let now = Boottime::now();
        let at = |received| request(target, &ann).from_peer(([127, 0, 0, 1], 1).into(), received);
        let (_, standing) = service.call_again(&at(now).as_request());
        let standing = standing.expect("a hit can be repeated");
        assert!(standing.stands(now), "{target}");
        let later = now.plus(Duration::from_secs(2 * 3600));
        assert!(!standing.stands(later), "{target}: the session is over");
        let (_, standing) = service.call_again(&at(later).as_request());
        assert!(standing.is_none_or(|standing| standing.stands(later)));
    }
    // To a request of that time it is an answer for nobody.
    let later = Boottime::now().plus(Duration::from_secs(2 * 3600));
    let late = request("/members", &ann).from_peer(([127, 0, 0, 1], 1).into(), later);
    match service.call(&late.as_request()) {
        millpond_http::Reply::Ready(response) => assert_eq!(response.status(), 303),
        millpond_http::Reply::Later(_) => panic!("nothing is looked up for a session that is over"),
    }
}

#[test]
fn keys_are_rotated() {
    let site = TestSite::new(SITE);
    let ann = register(&site, "Ann", 1, "reader");
    let old = "0123456789abcdef0123456789abcdef";
    let new = "fedcba9876543210fedcba9876543210";
    let with = |secret: &str| {
        let text = SITE[0].1.replace(old, secret);
        fs::write(site.dir.path().join("millpond.toml"), text).unwrap();
        site.site.reload().unwrap();
    };
    with(&format!("{new} {old}"));
    assert_eq!(get(&site, "/me", &ann).body, "I am Ann.");
    let fresh = cookie(&login(&site, "Ann", "pass+of+Ann"));
    with(new);
    assert_eq!(get(&site, "/me", &ann).body, "I am .");
    assert_eq!(get(&site, "/me", &fresh).body, "I am Ann.");
}

#[test]
fn the_key_is_made_where_somebody_can_sign_in_and_nowhere_else() {
    let without = [(
        "millpond.toml",
        "[database]\nurl = \"sqlite:data/site.db\"\n[session]\nsecure = false\n",
    )];
    let dir = folder(&[SITE, &without].concat());
    fs::create_dir(dir.path().join("data")).unwrap();
    let key = dir.path().join("data/session.key");
    millpond_site::check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    assert!(!key.exists(), "a check makes nothing");
    drop(dir);
    let site = TestSite::new(&[SITE, &[("millpond.toml", "[session]\nsecure = false\n")]].concat());
    let key = site.dir.path().join("session.key");
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let ann = register(&site, "Ann", 1, "reader");
    assert!(ann.starts_with("session=1."), "{ann}");
    assert_eq!(get(&site, "/me", &ann).body, "I am Ann.");
    assert_eq!(site.get("/session.key").status, 404);
    let plain = TestSite::new(&[]);
    assert!(!plain.dir.path().join("session.key").exists());
}

#[test]
fn faults_have_their_place() {
    let form = |lines: &str| {
        let account =
            "-- name: account :one?\nselect id, title as hash from article where id = :id;\n";
        let text = format!("{account}{lines}\n-- redirect: /\n");
        problems(&[("pages/f.post.sql", &*text)])
    };
    for (lines, expected) in [
        (
            "-- verify: acount.hash = :password",
            "pages/f.post.sql:3:12: there is no query `acount` here\n  hint: did you mean `account`?",
        ),
        (
            "-- verify: account.hsh = :password",
            "pages/f.post.sql:3:20: query `account` has no column `hsh`",
        ),
        (
            "-- verify: account.hash = password",
            "pages/f.post.sql:3:27: `password` is no parameter",
        ),
        (
            "-- verify: account.hash = :id",
            "pages/f.post.sql:1:1: query `account` is given the password",
        ),
        (
            "-- verify: account.hash = :p else http://x",
            "pages/f.post.sql:3:35: `http://x` is no path of this site",
        ),
        (
            "-- hash: h = :p",
            "pages/f.post.sql:3:10: no query uses the hash `:h`",
        ),
        (
            "-- claims: user = account.nr",
            "pages/f.post.sql:3:27: query `account` has no column `nr`",
        ),
        (
            "-- claims: user = :it",
            "pages/f.post.sql:3:20: the form has no parameter `:it`",
        ),
        (
            "-- claims: user",
            "pages/f.post.sql:3:12: `user` has no `=`",
        ),
        (
            "-- claims: user = account.id\n-- logout",
            "pages/f.post.sql:4:1: the form both begins a session and ends it",
        ),
        (
            "-- require: user",
            "pages/f.post.sql:3:13: `user` is no claim",
        ),
        (
            "-- param: claims_user integer",
            "pages/f.post.sql:3:1: names that begin with `claims_`",
        ),
        (
            "-- name: x :one?\nselect :claims_user;",
            "pages/f.post.sql:4:8: names that begin with `claims_`",
        ),
    ] {
        let found = form(lines);
        assert!(found.starts_with(expected), "{lines}: {found}");
    }
    let early = "-- name: c :exec\ndelete from comment;\n-- name: a :one?\nselect title from article;\n-- verify: a.title = :p\n-- redirect: /\n";
    let found = problems(&[("pages/f.post.sql", early)]);
    assert!(
        found.starts_with("pages/f.post.sql:1:1: query `c` writes before"),
        "{found}"
    );
    let page = problems(&[("pages/p.sql", "-- logout\n"), ("pages/p.html", "")]);
    assert!(
        page.starts_with("pages/p.sql:1:1: only a form signs in or out"),
        "{page}"
    );
    let weak = problems(&[("millpond.toml", "[session]\nsecret = \"short\"\n")]);
    assert!(
        weak.contains("millpond.toml:2:10: session.secret: a key has at least 32"),
        "{weak}"
    );
    assert!(!weak.contains("short"), "{weak}");
}
