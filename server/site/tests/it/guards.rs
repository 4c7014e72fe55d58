//! Rules of the settings on who may enter a folder (`[[require]]`), and conditions on claims.

use std::fs;

use millpond_http::OwnedRequest;
use millpond_site::Config;

use crate::{
    sessions::{SITE, get, register, request},
    support::{Answer, TestSite, folder, problems},
};

/// Accounts, and a folder of each kind behind rules.
fn guarded(rules: &str) -> Vec<(&'static str, String)> {
    let mut files: Vec<(&str, String)> = SITE
        .iter()
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect();
    files[0].1 += rules;
    let more = [
        ("pages/editor/index.html", "the desk of editors"),
        (
            "pages/editor/list.sql",
            "-- name: a :many\nselect id from article order by id;\n",
        ),
        ("pages/editor/list.html", "{{ a | length }} articles"),
        ("pages/editor/own.sql", "-- require: claims.tenant = 2\n"),
        ("pages/editor/own.html", "of tenant 2"),
        (
            "pages/editor/api/list.sql",
            "-- name: a :many\nselect id from article order by id;\n",
        ),
        (
            "pages/editor/add.post.sql",
            "-- param: title text\n-- name: add :exec\ninsert into article (title) values (:title);\n-- redirect: /editor/list\n",
        ),
        ("pages/[section]/copy.html", "a copy"),
        ("pages/public.html", "for all"),
        ("static/editor/plan.html", "the plan"),
        ("static/editor/files/a.3f2a9c1b.js", "secret script"),
        ("static/plan.txt", "another plan"),
        ("static/open.txt", "open"),
        ("static/docs/index.html", "the documents"),
    ];
    files.extend(more.map(|(name, text)| (name, text.to_owned())));
    files
}

fn with(rules: &str) -> TestSite {
    let files = guarded(rules);
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    TestSite::new(&files)
}

const RULES: &str = "
[static]
clean_urls = true
listing = true
immutable = true

[[rewrite]]
from = \"/short/:name\"
to = \"/editor/:name\"

[[rewrite]]
from = \"/editor/alias\"
to = \"/public\"

[[redirect]]
from = \"/editor/old\"
to = \"/editor/list\"

[[require]]
path = \"/editor/*\"
claims = \"role in ('editor', 'admin')\"
else = \"/login\"
open = [\"/:section/copy\", \"/public\"]
";

fn told(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.field("location"))
}

/// Sessions of a reader, an editor and an admin: signing in gives the role.
fn staff(site: &TestSite) -> [String; 3] {
    ["reader", "editor", "admin"].map(|role| {
        register(site, role, 1, role);
        let answer = crate::sessions::login(site, role, &format!("pass+of+{role}"));
        crate::sessions::cookie(&answer)
    })
}

#[test]
fn a_rule_holds_for_all_that_is_in_a_folder() {
    let site = with(RULES);
    let [reader, editor, admin] = staff(&site);
    for target in [
        "/editor",
        "/editor/",
        "/editor/list",
        "/editor/list/",
        "/editor/list?a=b",
        "/editor/plan",
        "/editor/plan.html",
        "/editor/files/",
        "/editor/files",
        "/editor/files/a.3f2a9c1b.js",
        "/editor/copy",
        "/editor/nothing",
        "/editor/old",
        "/editor/alias",
        "/editor//list",
        "/editor/./list",
        "/x/../editor/list",
        "/%65ditor/list",
        "/editor/%6cist",
        "/editor/x/%2e%2e/list",
        "/short/list",
        "/short/plan",
        "/short/files/../list",
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, 303, "{target}");
        assert!(
            answer.field("location").starts_with("/login?next="),
            "{target}"
        );
        assert_eq!(answer.field("cache-control"), "no-store", "{target}");
        for method in ["HEAD", "OPTIONS", "POST", "PUT", "DELETE"] {
            let request = OwnedRequest::new(method, target).field("Host", "site.test");
            let status = site.ask(&request).status;
            assert_eq!(status, 303, "{method} {target}");
        }
        assert_eq!(get(&site, target, &reader).status, 403, "{target}");
        for who in [&editor, &admin] {
            // Twice, the second time from memory.
            for _ in 0..2 {
                let answer = get(&site, target, who);
                assert!(
                    matches!(answer.status, 200 | 308 | 404),
                    "{target} {}",
                    answer.status
                );
                let told = answer.field("cache-control");
                assert_eq!(told, "private, no-cache", "{target}");
            }
        }
    }
    // A path without a normal form leads nowhere.
    assert_eq!(site.get("/editor%2flist").status, 400);
    for target in [
        "/Editor/list",
        "//editor/list",
        "/editorlist",
        "/public",
        "/x/copy",
        "/open.txt",
    ] {
        let answer = site.get(target);
        assert!(
            matches!(answer.status, 200 | 404),
            "{target}: {}",
            answer.status
        );
        assert!(!answer.body.contains("articles"), "{target}");
        assert!(
            !answer.field("cache-control").contains("private"),
            "{target}"
        );
    }
}

#[test]
fn a_page_of_a_folder_is_shared_by_those_who_may_enter() {
    let site = with(RULES);
    let [reader, editor, admin] = staff(&site);
    assert_eq!(
        get(&site, "/editor/list", &editor).cache(),
        "fwd=miss; stored"
    );
    assert_eq!(get(&site, "/editor/list", &admin).cache(), "hit");
    assert_eq!(get(&site, "/editor/list", &reader).status, 403);
    assert_eq!(site.get("/editor/list").status, 303);
    // The lines of the page hold as well.
    assert_eq!(get(&site, "/editor/own", &editor).status, 403);
    register(&site, "two", 2, "editor");
    let two = crate::sessions::login(&site, "two", "pass+of+two");
    let two = crate::sessions::cookie(&two);
    assert_eq!(get(&site, "/editor/own", &two).body, "of tenant 2");
    // A write is seen at once.
    let form = OwnedRequest::new("POST", "/editor/add")
        .field("Host", "site.test")
        .field("Cookie", &editor)
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body("title=Three");
    assert_eq!(told(&site.ask(&form)), (303, "/editor/list"));
    assert_eq!(get(&site, "/editor/list", &admin).body, "3 articles");
}

#[test]
fn programs_get_a_401_and_then_a_403() {
    let site = with(RULES);
    let [reader, editor, _] = staff(&site);
    let accept = |target: &str, who: &str| {
        let request = request(target, who).field("Accept", "application/json");
        site.ask(&request)
    };
    for answer in [
        site.get("/editor/api/list"),
        site.get("/api/desk"),
        accept("/editor/list", ""),
        accept("/desk", ""),
        accept("/editor/nothing", ""),
        get(&site, "/editor/api/list", "__Host-session=1.x.y"),
    ] {
        assert_eq!(answer.status, 401, "{}", answer.body);
        let told = answer.field("www-authenticate");
        assert_eq!(told, "Cookie cookie-name=\"__Host-session\"");
        assert_eq!(answer.field("content-type"), "application/problem+json");
        assert_eq!(answer.field("cache-control"), "no-store");
        assert!(answer.body.contains("\"status\":401"), "{}", answer.body);
    }
    for answer in [
        get(&site, "/editor/api/list", &reader),
        get(&site, "/api/desk", &reader),
        accept("/editor/list", &reader),
    ] {
        assert_eq!(answer.status, 403, "{}", answer.body);
        assert_eq!(answer.field("content-type"), "application/problem+json");
        assert_eq!(answer.field("www-authenticate"), "");
    }
    assert_eq!(get(&site, "/editor/api/list", &editor).status, 200);
    // A person is led to sign in, with the address that was wanted.
    assert_eq!(
        told(&site.get("/editor/list?a=b")),
        (303, "/login?next=%2Feditor%2Flist%3Fa%3Db")
    );
}

#[test]
fn a_rule_for_one_address_of_a_file_holds_at_all() {
    let rule = |path: &str| format!("\n[[require]]\npath = \"{path}\"\nclaims = \"user\"\n");
    for (settings, path, addresses) in [
        (
            "clean_urls = true",
            "/editor/plan.html",
            &["/editor/plan", "/editor/plan.html"][..],
        ),
        (
            "clean_urls = true",
            "/editor/plan",
            &["/editor/plan", "/editor/plan.html"],
        ),
        (
            "clean_urls = true",
            "/docs/index.html",
            &["/docs", "/docs/", "/docs/index.html"],
        ),
        (
            "clean_urls = false",
            "/docs/",
            &["/docs/", "/docs/index.html"],
        ),
        (
            "clean_urls = false",
            "/docs",
            &["/docs/", "/docs/index.html"],
        ),
        (
            "clean_urls = false",
            "/plan.txt",
            &["/plan.txt", "/plan.txt.gz"],
        ),
    ] {
        let mut files = guarded(&format!("\n[static]\n{settings}\n{}", rule(path)));
        files.push(("static/plan.txt.gz", "not even a gzip".to_owned()));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        let site = TestSite::new(&files);
        for address in addresses {
            let status = site.get(address).status;
            assert!(matches!(status, 403 | 308), "{path}: {address} is {status}");
            if status == 308 {
                let to = site.get(address);
                assert!(
                    addresses.contains(&to.field("location")),
                    "{path}: {address}"
                );
            }
        }
        assert_eq!(site.get("/open.txt").status, 200);
    }
}

#[test]
fn an_exception_and_methods_leave_the_rest_open() {
    let site = with(
        "\n[[require]]\npath = \"/*\"\nclaims = \"user\"\nelse = \"/login\"\nexcept = [\"/login\", \"/docs/*\"]\n\
         \n[[require]]\npath = \"/docs/*\"\nclaims = \"role = 'editor'\"\nmethods = [\"POST\"]\n",
    );
    for target in ["/login", "/docs/", "/docs/index.html"] {
        assert_eq!(site.get(target).status, 200, "{target}");
    }
    for target in ["/", "/public", "/me", "/nothing", "/open.txt"] {
        assert_eq!(site.get(target).status, 303, "{target}");
    }
    assert_eq!(site.post("/docs/x", "").status, 403);
    assert_eq!(site.post("/register", "name=a").status, 303);
    let login = site.post("/login", "name=nobody&password=x");
    assert_eq!(told(&login), (303, "/login?failed=1"));
}

#[test]
fn a_rule_takes_effect_and_ends_what_was_repeated() {
    let site = with("");
    for _ in 0..3 {
        assert_eq!(site.get("/editor/list").status, 200);
        assert_eq!(site.get("/editor/files/a.3f2a9c1b.js").status, 200);
    }
    let text = SITE[0].1.to_owned() + RULES;
    fs::write(site.dir.path().join("millpond.toml"), text).unwrap();
    site.site.reload().unwrap();
    assert_eq!(site.get("/editor/list").status, 303);
    assert_eq!(site.get("/editor/files/a.3f2a9c1b.js").status, 303);
}

#[test]
fn lines_take_lists_of_values() {
    let lines = "-- require: claims.role in ('editor', 'admin') else /login\n-- require: claims.user != 3\n";
    let files = [
        SITE,
        &[("pages/staff.sql", lines), ("pages/staff.html", "staff")],
    ]
    .concat();
    let site = TestSite::new(&files);
    let [reader, editor, admin] = staff(&site);
    assert_eq!(site.get("/staff").status, 303);
    assert_eq!(get(&site, "/staff", &reader).status, 403);
    assert_eq!(get(&site, "/staff", &editor).body, "staff");
    assert_eq!(get(&site, "/staff", &admin).status, 403, "account 3");
}

#[test]
fn faults_of_rules_are_named() {
    let found = |rules: &str| problems(&[("millpond.toml", rules), ("pages/login.html", "x")]);
    for (rules, expected) in [
        (
            "[[require]]\npath = \"/a/*\"\nclaims = \"role in (editor)\"\n",
            "millpond.toml:3:10: require.claims: `editor` is no value",
        ),
        (
            "[[require]]\npath = \"/a/*\"\n",
            "millpond.toml:1:1: [[require]] without `claims`",
        ),
        (
            "[[require]]\npath = \"/a\"\nclaims = \"user\"\nelse = \"//evil.example\"\n",
            "millpond.toml:4:8: require.else: `//evil.example` is no path of this site",
        ),
        (
            "[[require]]\npath = \"/a\"\nclaims = \"user\"\nmethods = [\"post\"]\n",
            "millpond.toml:4:11: require.methods: `post` is no method; did you mean `POST`?",
        ),
        (
            "[[require]]\npath = \"/a\"\nclaim = \"user\"\n",
            "millpond.toml:3:1: unknown key `claim` in [[require]]\n  hint: did you mean `claims`?",
        ),
        (
            "[[require]]\npath = \"/*\"\nclaims = \"user\"\nelse = \"/login\"\n",
            "millpond.toml:1:1: the rule for `/*` leads to /login, which a [[require]] entry closes as well\n  hint: leave it open: except = [\"/login\"]",
        ),
        (
            "[[requier]]\npath = \"/*\"\n",
            "millpond.toml:1:3: unknown section",
        ),
    ] {
        let said = found(rules);
        assert!(said.starts_with(expected), "{rules}: {said}");
    }
}

#[test]
fn check_says_what_each_rule_reaches() {
    let rules = "
[[require]]
path = \"/editor/*\"
claims = \"role in ('editor', 'admin')\"
else = \"/logn\"
open = [\"/:section/copy\"]

[[require]]
path = \"/editor/lists\"
claims = \"rol\"

[[require]]
path = \"/shop/copy\"
claims = \"user\"
methods = [\"GET\"]
open = [\"/:section/copy\"]
";
    let files = guarded(rules);
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    let dir = folder(&files);
    let report = millpond_site::check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    let reached = report
        .reached
        .iter()
        .map(|rule| (rule.path.as_str(), rule.addresses.join(", "), rule.files));
    assert_eq!(
        reached.collect::<Vec<_>>(),
        [
            (
                "/editor/*",
                "POST /editor/add, /editor/api/list, /editor, /editor/list, /editor/own, /{section}/copy (some)"
                    .to_owned(),
                2
            ),
            ("/editor/lists", String::new(), 0),
            ("/shop/copy", "/{section}/copy (some)".to_owned(), 0),
        ]
    );
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    let notes = notes.join("\n");
    for expected in [
        "the rule for `/editor/lists` reaches nothing\n  hint: did you mean `/editor/list`?",
        "no form gives the claim `rol`, so no visitor may enter\n  hint: did you mean `role`?",
        "leads to /logn, and there is no such page\n  hint: did you mean /login?",
    ] {
        assert!(notes.contains(expected), "{expected} in {notes}");
    }
}

#[test]
fn an_explanation_names_the_rules() {
    let site = with(RULES);
    let explain = |target: &str, claims: &str| {
        let visitor = millpond_site::ExplainedVisitor::Claims(claims);
        site.site.explain(target, visitor).unwrap()["rules"].clone()
    };
    let rules = explain("/editor/list", "role=reader");
    assert_eq!(rules["want"][0], "claims.role in ('editor', 'admin')");
    assert_eq!(
        (&rules["met"], &explain("/short/list", "role=admin")["met"]),
        (&false.into(), &true.into())
    );
    assert!(explain("/public", "role=reader").is_null());
}

#[test]
fn else_of_a_requirement_takes_parts_of_the_path() {
    let pages = [
        (
            "pages/[lang]/account.sql",
            "-- require: claims.user else /:lang/enter?of=:lang\n-- name: n :one\nselect :lang as n;\n",
        ),
        ("pages/[lang]/account.html", "{{ n.n }}"),
        (
            "pages/[lang]/account.post.sql",
            "-- require: claims.user else /:lang/enter\n-- redirect: /:lang/account\n",
        ),
        ("pages/[lang]/enter.html", "enter"),
    ];
    let site = TestSite::new(&[SITE, &pages].concat());
    let led = |target: &str| told_owned(&site.get(target));
    for (target, expected) in [
        ("/de/account", "/de/enter?of=de&next=%2Fde%2Faccount"),
        ("/en/account", "/en/enter?of=en&next=%2Fen%2Faccount"),
        (
            "/a%3Fb/account",
            "/a%3Fb/enter?of=a%3Fb&next=%2Fa%253Fb%2Faccount",
        ),
    ] {
        // Twice: nothing of it is kept.
        for _ in 0..2 {
            assert_eq!(led(target), (303, expected.to_owned()));
        }
    }
    assert_eq!(
        told_owned(&site.post("/fr/account", "")),
        (303, "/fr/enter".to_owned())
    );
    register(&site, "ann", 1, "reader");
    let ann = crate::sessions::cookie(&crate::sessions::login(&site, "ann", "pass+of+ann"));
    assert_eq!(get(&site, "/de/account", &ann).body, "de");

    let unknown = problems(&[
        (
            "pages/[lang]/a.sql",
            "-- require: claims.user else /:lnag/enter\n",
        ),
        ("pages/[lang]/a.html", "a"),
    ]);
    assert!(
        unknown.contains("`:lnag`, which is no part of this file's path"),
        "{unknown}"
    );
    assert!(unknown.contains("did you mean `:lang`?"), "{unknown}");
    assert!(unknown.contains("pages/[lang]/a.sql:1:"), "{unknown}");
}

fn told_owned(answer: &Answer) -> (u16, String) {
    (answer.status, answer.field("location").to_owned())
}
