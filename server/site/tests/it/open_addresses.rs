//! Rules of the settings that close some addresses of a page, and parameters that nothing fills.

use std::fs;

use millpond_http::OwnedRequest;
use millpond_site::{Config, check};

use crate::{
    sessions::{SITE, cookie, get, login, register},
    support::{TestSite, folder, problems},
};

const LANGUAGES: &str = "-- param: lang text in (en, de)\n";
const ROWS: &str = "-- name: a :many\nselect title from article order by id;\n";

/// The files of pages with these names: each gives the articles, or takes a form.
fn pages(names: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let text = |name: &str| match name {
        name if name.ends_with("_folder.sql") => LANGUAGES,
        name if name.ends_with("/number/x.sql") => "-- param: id integer in (1, 2)\n",
        name if name.ends_with(".post.sql") => "-- redirect: /\n",
        name if name.ends_with("/member.sql") => {
            "-- require: m\n-- name: m :one\nselect id from article where id = :claims.user;\n"
        }
        name if name.ends_with("/shown.sql") => {
            "-- require: m\n-- name: m :one\nselect id from article where id = 1;\n"
        }
        name if name.ends_with("/own.sql") => "-- require: claims.user else /login\n",
        name if name.ends_with(".sql") => ROWS,
        _ => "text",
    };
    names.iter().map(|name| (*name, text(name))).collect()
}

fn rule(path: &str, more: &str) -> String {
    format!("[[require]]\npath = \"{path}\"\nclaims = \"user\"\n{more}\n")
}

/// Returns the messages of `serve` on a site, which are those of `check`.
fn said(settings: &str, names: &[&'static str]) -> String {
    let mut files = pages(names);
    files.push(("millpond.toml", settings));
    files.push(("pages/index.html", "front"));
    let dir = folder(&files);
    let checked = match Config::read(dir.path()) {
        Ok(config) => check(dir.path(), &config).err().unwrap_or_default(),
        Err(problem) => vec![problem],
    };
    let checked: Vec<String> = checked.iter().map(ToString::to_string).collect();
    let served = problems(&files);
    assert_eq!(checked.join("\n"), served, "{settings}");
    served
}

/// Rules with pages, and what is said: which address they close, and which one is open.
fn partly_closed() -> Vec<(String, Vec<&'static str>, &'static str)> {
    let accounts = || {
        vec![
            "pages/[lang]/_folder.sql",
            "pages/[lang]/admin/accounts.csv.sql",
        ]
    };
    let rewrite = "[[rewrite]]\nfrom = \"/members/:id\"\nto = \"/read?id=:id\"\n";
    let to_file = "[[rewrite]]\nfrom = \"/app/*\"\nto = \"/app.txt\"\n";
    let to_english = "[[redirect]]\nfrom = \"/fr/*\"\nto = \"/en/*\"\n";
    vec![
        (
            rule("/en/admin/*", ""),
            accounts(),
            "closes /en/admin/accounts.csv, and /de/admin/accounts.csv is open",
        ),
        (
            rule("/en/admin/accounts.csv", ""),
            accounts(),
            "and /de/admin/accounts.csv is open",
        ),
        (
            rule("/en/*", "") + to_english,
            accounts(),
            "and /de/admin/accounts.csv is open",
        ),
        (
            rule("/en/admin/*", ""),
            vec!["pages/[lang]/admin/index.html"],
            "closes /en/admin, and /x/admin is open",
        ),
        (
            rule("/en/", ""),
            vec!["pages/[lang]/index.html"],
            "closes /en, and /x is open",
        ),
        (
            rule("/EN/admin/*", ""),
            vec!["pages/[lang]/admin/a.json.sql"],
            "closes /EN/admin/a.json, and /x/admin/a.json is open",
        ),
        (
            rule("/:lang/admin/7", ""),
            vec!["pages/[lang]/admin/[id].html"],
            "closes /x/admin/7, and /x/admin/x is open",
        ),
        (
            rule("/en*", ""),
            vec!["pages/[page].html"],
            "closes /enx, and /x is open",
        ),
        (
            rule("/*.csv", ""),
            vec!["pages/[lang]/[file].html"],
            "closes /x/x.csv, and /x/x is open",
        ),
        (
            rule("/*/admin", ""),
            vec!["pages/[lang]/[page].html"],
            "closes /x/admin, and /x/x is open",
        ),
        (
            rule("/en/a", "methods = [\"POST\"]"),
            vec!["pages/[lang]/a.html", "pages/[lang]/a.post.sql"],
            "closes POST /en/a, and POST /x/a is open",
        ),
        // What closes writing closes no reading.
        (
            rule("/en/a", "") + &rule("/:lang/a", "methods = [\"POST\"]"),
            vec!["pages/[lang]/a.html", "pages/[lang]/a.post.sql"],
            "closes /en/a, and /x/a is open",
        ),
        // An exception of another rule.
        (
            rule("/:lang/*", "except = [\"/de/*\"]") + &rule("/en/admin/*", ""),
            accounts(),
            "the rule for `/en/admin/*` closes /en/admin/accounts.csv, and /de/admin/accounts.csv is open",
        ),
        // 01 is 1 to the page, and another path to the rules.
        (
            rule("/1/number/x", "") + &rule("/2/number/x", ""),
            vec!["pages/[id]/number/x.sql", "pages/[id]/number/x.html"],
            "closes /1/number/x, and /01/number/x is open",
        ),
        (
            rule("/members/*", "") + rewrite,
            vec!["pages/read.html"],
            "closes /members/x, and /read is open",
        ),
        (
            rule("/members/7", "") + rewrite,
            vec!["pages/read.html"],
            "closes /members/7, and /read is open",
        ),
        (
            rule("/app/*", "") + to_file,
            vec!["static/app.txt"],
            "closes /app/x, and /app.txt is open",
        ),
        // A query that asks for no claim lets everybody in.
        (
            rule("/en/*", ""),
            vec!["pages/[lang]/shown.sql", "pages/[lang]/shown.html"],
            "closes /en/shown, and /x/shown is open",
        ),
        // A weaker rule for all paths keeps no visitor out who has signed in.
        (
            rule("/*", "") + &rule("/en/admin/*", "").replace("\"user\"", "\"role = 'admin'\""),
            vec!["pages/[lang]/admin/a.html"],
            "closes /en/admin/a, and /x/admin/a is open",
        ),
        // The page of one language is a file of its own, and the others have one page.
        (
            rule("/en/*", ""),
            vec![
                "pages/en/a.html",
                "pages/[lang]/a.html",
                "pages/[lang]/b.html",
            ],
            "closes /en/b, and /x/b is open",
        ),
    ]
}

#[test]
fn a_rule_that_leaves_a_page_partly_open_is_an_error() {
    for (settings, names, expected) in partly_closed() {
        let said = said(&settings, &names);
        assert!(said.contains(expected), "{settings}{names:?}: {said}");
        assert!(said.contains("millpond.toml:"), "{said}");
    }
}

#[test]
fn both_remedies_of_the_hint_do_what_they_say() {
    for (settings, names, _) in partly_closed() {
        let is_rewrite = settings.contains("[[rewrite]]");
        // Several rules may be at fault.
        let mut remedied = [settings.clone(), settings];
        for (key, settings) in ["open", "path"].iter().zip(&mut remedied) {
            for _ in 0..2 {
                let said = said(settings, &names);
                let Some((_, hint)) = said.split_once(&format!("{key} = ")) else {
                    break;
                };
                let remedy = hint.split([';', '\n']).next().unwrap();
                let (_, rest) = said.split_once("rule for `").unwrap();
                let path = format!("path = \"{}\"", rest.split('`').next().unwrap());
                *settings = match *key {
                    "open" => settings.replace(&path, &format!("{path}\nopen = {remedy}")),
                    // The path that answers there is closed by a rule of its own.
                    _ if is_rewrite => settings.clone() + &rule(remedy.trim_matches('"'), ""),
                    _ => settings.replace(&path, &format!("path = {remedy}")),
                };
            }
            assert_eq!(said(settings, &names), "", "{settings}");
        }
    }
}

#[test]
fn rules_that_cover_whole_pages_are_no_error() {
    let accounts = [
        "pages/[lang]/_folder.sql",
        "pages/[lang]/admin/accounts.csv.sql",
    ];
    let to_english = "[[redirect]]\nfrom = \"/de/*\"\nto = \"/en/*\"\n";
    let other = "[[rewrite]]\nfrom = \"/de/*\"\nto = \"/\"\n";
    for (settings, names) in [
        (rule("/:lang/admin/*", ""), &accounts[..]),
        (rule("/:any/admin/accounts.csv", ""), &accounts),
        (rule("/*", ""), &accounts),
        (rule("/*.csv", ""), &accounts),
        (rule("/en/*", "") + &rule("/de/admin/*", ""), &accounts),
        (
            rule("/en/*", "methods = [\"GET\"]") + &rule("/:lang/admin/*", "methods = [\"GET\"]"),
            &accounts,
        ),
        (rule("/en/*", "open = [\"/:lang/admin/*\"]"), &accounts),
        (rule("/en/*", "open = [\"/de/*\"]"), &accounts),
        (rule("/:lang/*", "except = [\"/de/*\"]"), &accounts),
        (rule("/en/*", "") + to_english, &accounts),
        (rule("/en/*", "") + other, &accounts),
        // What is stricter elsewhere closes as well.
        (
            rule("/en/*", "") + &rule("/:lang/*", "").replace("\"user\"", "\"role = 'admin'\""),
            &accounts,
        ),
        // Braces that are the path's own.
        (
            rule("/%7B3F25%7D/*", ""),
            &["pages/a.html", "static/{3F25}/x.txt"],
        ),
        // A word that the page does not take.
        (rule("/admin/*", ""), &accounts),
        (rule("/fr/admin/*", ""), &accounts),
        (rule("/EN/admin/*", ""), &accounts),
        // Another page answers at the rule's addresses.
        (
            rule("/admin/*", ""),
            &[
                "pages/[page].html",
                "pages/admin/index.html",
                "pages/admin/users.html",
            ],
        ),
        (
            rule("/en/admin/*", ""),
            &["pages/[lang]/admin/a.html", "pages/en/admin/a.html"],
        ),
        // Its own lines let in no stranger.
        (
            rule("/en/*", ""),
            &["pages/[lang]/own.html", "pages/[lang]/own.sql"],
        ),
        // Two pages, each of one address.
        (
            rule("/feed", ""),
            &["pages/feed.html", "pages/feed.xml.html"],
        ),
        (
            rule("/a/", ""),
            &["pages/a.html", "static/a/x.txt", "static/b.txt"],
        ),
        (
            rule("/a", "methods = [\"POST\"]"),
            &["pages/a.html", "pages/a.post.sql"],
        ),
        (rule("/:lang/", ""), &["pages/[lang]/index.html"]),
        // No number, so no address of the page.
        (
            rule("/me/number/*", ""),
            &["pages/[id]/number/x.sql", "pages/me/number/a.html"],
        ),
        // A query of its own that asks for a claim.
        (
            rule("/en/*", ""),
            &["pages/[lang]/member.sql", "pages/[lang]/member.html"],
        ),
        (
            rule("/:lang/admin/:id", ""),
            &["pages/[lang]/admin/[id].html"],
        ),
    ] {
        assert_eq!(said(&settings, names), "", "{settings}{names:?}");
    }
}

#[test]
fn parameters_of_other_programs_are_errors_in_each_setting_and_line() {
    for (settings, place) in [
        (
            rule("/{lang}/admin/*", ""),
            "millpond.toml:2:8: require.path",
        ),
        (
            rule("/[lang]/admin/*", ""),
            "millpond.toml:2:8: require.path",
        ),
        (
            rule("/a", "else = \"/{lang}/login\""),
            "millpond.toml:4:8: require.else",
        ),
        (
            rule("/a", "except = [\"/{lang}/b\"]"),
            "millpond.toml:4:10: require.except",
        ),
        (
            rule("/a", "open = [\"/{lang}/b\"]"),
            "millpond.toml:4:8: require.open",
        ),
        (
            "[[redirect]]\nfrom = \"/{lang}/a\"\nto = \"/b\"\n".to_owned(),
            "millpond.toml:2:8: redirect.from",
        ),
        (
            "[[redirect]]\nfrom = \"/:lang/a\"\nto = \"/{lang}/b\"\n".to_owned(),
            "millpond.toml:3:6: redirect.to",
        ),
        (
            "[[rewrite]]\nfrom = \"/:lang/a\"\nto = \"/b?lang={lang}\"\n".to_owned(),
            "millpond.toml:3:6: rewrite.to",
        ),
        (
            "[[fields]]\npath = \"/{lang}/*\"\nset = { \"X-A\" = \"1\" }\n".to_owned(),
            "millpond.toml:2:8: fields.path",
        ),
        (
            "[static]\nlisting = [\"/{lang}/*\"]\n".to_owned(),
            "millpond.toml:2:11: static.listing",
        ),
    ] {
        let said = problems(&[("millpond.toml", &settings)]);
        assert!(said.starts_with(place), "{settings}: {said}");
        assert!(said.contains("a parameter is written `:lang`"), "{said}");
    }
    let query = "-- name: a :one\nselect 1 as id;\n";
    for (file, line) in [
        (
            "pages/[lang]/a.sql",
            "-- require: claims.user else /{lang}/login",
        ),
        ("pages/[lang]/a.sql", "-- require: a else /{lang}/login"),
        ("pages/[lang]/a.sql", "-- redirect: 301 /{lang}/b"),
        ("pages/[lang]/a.post.sql", "-- redirect: /{lang}/b"),
        (
            "pages/[lang]/a.post.sql",
            "-- redirect: :lang else /{lang}/b",
        ),
        ("pages/[lang]/a.post.sql", "-- created: /{lang}/b"),
        ("pages/[lang]/a.post.sql", "-- invalid: /{lang}/b"),
        (
            "pages/[lang]/a.post.sql",
            "-- verify: a.id = :password else /{lang}/b",
        ),
    ] {
        let said = problems(&[(file, &format!("{query}{line}\n"))]);
        assert!(said.starts_with(&format!("{file}:3:")), "{line}: {said}");
        assert!(
            said.contains("a parameter is written `:lang`"),
            "{line}: {said}"
        );
    }
}

#[test]
fn the_hints_of_check_are_forms_that_work() {
    let notes = |settings: &str| {
        let names = [
            "pages/[lang]/admin/accounts.csv.sql",
            "pages/[lang]/login.html",
        ];
        let mut files = pages(&names);
        files.push(("millpond.toml", settings));
        let dir = folder(&files);
        let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
        let notes = report.notes.iter().map(ToString::to_string);
        notes.collect::<Vec<_>>().join("\n")
    };
    for (wrong, hint, right) in [
        (
            rule("/:lang/amdin/*", ""),
            "did you mean `/:lang/admin/*`?",
            rule("/:lang/admin/*", ""),
        ),
        (
            rule("/:lang/admin/*", "else = \"/:lang/logn\""),
            "leads to /…/logn, and there is no such page\n  hint: did you mean /:lang/login?",
            rule("/:lang/admin/*", "else = \"/:lang/login\""),
        ),
    ] {
        let said = notes(&wrong);
        assert!(said.contains(hint), "{said}");
        let said = notes(&right);
        assert!(!said.contains("did you mean"), "{said}");
    }
}

const FILLED: &str = "
[static]
clean_urls = true

[[rewrite]]
from = \"/kurz/:name\"
to = \"/de/admin/:name\"

[[require]]
path = \"/:lang/admin/*\"
claims = \"role = 'editor'\"
else = \"/:lang/login?from=:lang#top\"

[[require]]
path = \"/:lang/plan.html\"
claims = \"user\"
else = \"/:lang/login\"
";

fn filled() -> TestSite {
    let mut files = SITE.to_vec();
    let settings = SITE[0].1.to_owned() + FILLED;
    files[0].1 = &settings;
    files.extend(pages(&[
        "pages/[lang]/admin/accounts.csv.sql",
        "pages/[lang]/admin/index.html",
        "pages/[lang]/admin/add.post.sql",
        "pages/[lang]/login.html",
        "static/de/plan.html",
        "static/en/admin/notes.txt",
    ]));
    TestSite::new(&files)
}

#[test]
fn else_of_a_rule_is_filled_in() {
    let site = filled();
    let led = |lang: &str| format!("/{lang}/login?from={lang}&next=");
    for (target, begins) in [
        ("/de/admin/accounts.csv", led("de")),
        ("/en/admin", led("en")),
        ("/en/admin/", led("en")),
        ("/en/admin/notes.txt", led("en")),
        ("/en/admin/nothing", led("en")),
        ("/x/../de/admin/add", led("de")),
        ("/%64e/%61dmin/accounts.csv", led("de")),
        // By a rewrite, and by another address of the file.
        ("/kurz/accounts.csv", led("de")),
        ("/de/plan", "/de/login?next=".to_owned()),
        ("/de/plan.html", "/de/login?next=".to_owned()),
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE"] {
            let request = OwnedRequest::new(method, target).field("Host", "site.test");
            let answer = site.ask(&request.field("Accept", "text/html"));
            assert_eq!(answer.status, 303, "{method} {target}");
            let location = answer.field("location");
            let begins = begins.trim_end_matches("&next=").trim_end_matches("?next=");
            assert!(
                location.starts_with(begins),
                "{method} {target}: {location}"
            );
        }
    }
    // A program is told so, and those who may enter are let in.
    let program = OwnedRequest::new("GET", "/de/admin/accounts.csv").field("Host", "site.test");
    let answer = site.ask(&program.field("Accept", "application/json"));
    assert_eq!(answer.status, 401);
    register(&site, "ann", 1, "editor");
    let ann = cookie(&login(&site, "ann", "pass+of+ann"));
    let answer = get(&site, "/de/admin/accounts.csv", &ann);
    assert_eq!(
        (answer.status, &*answer.body),
        (200, "title\r\nOne\r\nTwo\r\n")
    );
}

#[test]
fn a_filled_else_stays_on_this_site() {
    let site = filled();
    for lang in [
        "%5Cevil.example",
        "%5C%5Cevil.example",
        "evil.example%5C",
        "https:",
        "javascript:alert(1)",
        "@evil.example",
        "%252F%252Fevil.example",
        "%252e%252e",
        "...",
        ".%5C",
        "%3Fnext=",
        "%23",
        "%25",
        "a%22b%3Cc%3E",
        "%E2%80%AE%C2%85",
        "d%20e",
    ] {
        for target in [format!("/{lang}/admin"), format!("/{lang}/admin/x")] {
            let answer = site.get(&target);
            assert_eq!(answer.status, 303, "{target}");
            let location = answer.field("location");
            let rest = location.strip_prefix('/').unwrap();
            assert!(!rest.starts_with(['/', '\\']), "{target}: {location}");
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
            assert!(location.bytes().all(is_plain), "{target}: {location}");
            let path = location.split(['?', '#']).next().unwrap();
            assert_eq!(path.matches('/').count(), 2, "{target}: {location}");
            assert!(path.ends_with("/login"), "{target}: {location}");
            assert!(
                !location.contains("/../") && !location.contains("/./"),
                "{location}"
            );
        }
    }
    for target in [
        "//evil.example/admin/x",
        "/evil.example//admin/x",
        "/%2F%2Fevil.example/admin/x",
        "/%0d%0aLocation:x/admin/x",
        "/%00/admin/x",
        "/../../admin/x",
    ] {
        let answer = site.get(target);
        assert!(
            matches!(answer.status, 400 | 404),
            "{target}: {}",
            answer.status
        );
    }
}

#[test]
fn a_name_in_else_that_the_path_does_not_have_is_an_error() {
    for (path, otherwise, expected) in [
        (
            "/:lang/a/*",
            "/:lnag/login",
            "has `:lnag`, which `/:lang/a/*` does not give",
        ),
        (
            "/a",
            "/:lang/login",
            "has `:lang`, which `/a` does not give",
        ),
        ("/a", "/login?next=*", "has `*`, which `/a` does not give"),
        (
            "/:lang/*",
            "/:lang/login",
            "closes as well\n  hint: leave it open: except = [\"/:lang/login\"]",
        ),
    ] {
        let settings = rule(path, &format!("else = \"{otherwise}\""));
        let said = said(
            &settings,
            &["pages/[lang]/login.html", "pages/[lang]/a/b.html"],
        );
        assert!(said.contains(expected), "{settings}: {said}");
    }
}

#[test]
fn a_page_that_a_rule_leaves_partly_open_is_not_taken_up_while_the_site_is_served() {
    let settings = rule("/en/admin/*", "");
    let site = TestSite::new(&[("millpond.toml", &settings), ("pages/en/admin/a.html", "a")]);
    let page = site.dir.path().join("pages/[lang]/admin/a.html");
    fs::create_dir_all(page.parent().unwrap()).unwrap();
    fs::write(page, "for all").unwrap();
    // At /en/admin/a the page of this language answers.
    site.site.reload().unwrap();
    let page = site.dir.path().join("pages/[lang]/admin/b.html");
    fs::write(page, "for all").unwrap();
    let refused = site.site.reload().unwrap_err();
    assert!(
        refused[0].to_string().contains("/x/admin/b is open"),
        "{refused:?}"
    );
    assert_eq!(site.get("/de/admin/b").status, 404);
    assert_eq!(site.get("/en/admin/b").status, 403);
}
