//! Redirects, rewrites and fields, from `millpond.toml` to the answer.

use millpond_http::OwnedRequest;

use crate::support::{TestSite, problems, write};

const RULES: &str = r#"
[[redirect]]
from = "/old"
to = "/read?id=1"

[[redirect]]
from = "/blog/:year/:slug"
to = "/notes/:slug#:year"
status = 301

[[redirect]]
from = "/shop/*"
to = "https://shop.example/*"
status = 302

[[rewrite]]
from = "/articles/:id"
to = "/read?id=:id"

[[rewrite]]
from = "/app/*"
to = "/app.html"

[[fields]]
path = "/*"
set = { "X-Frame-Options" = "DENY" }

[[fields]]
path = "/read"
set = { "X-One" = "1", "X-Two" = "2" }
"#;

fn site() -> TestSite {
    TestSite::new(&[
        ("millpond.toml", RULES),
        ("pages/read.html", "{{ article.title }}"),
        (
            "pages/read.sql",
            "-- name: article :one\nselect title from article where id = :id;\n",
        ),
        (
            "pages/add.post.sql",
            "-- name: add :exec\ninsert into article (title) values (:title);\n-- redirect: /read?id=3\n",
        ),
        (
            "pages/seen.html",
            "{{ request.path }} {{ request.query.q }}",
        ),
        ("static/app.html", "the app"),
        ("static/old", "hidden"),
    ])
}

#[test]
fn redirects_lead_with_status_and_query() {
    let site = site();
    for (target, status, location) in [
        ("/old", 308, "/read?id=1"),
        ("/old?a=b", 308, "/read?id=1&a=b"),
        ("/blog/2026/tide", 301, "/notes/tide#2026"),
        ("/blog/2026/a%20b%23?q", 301, "/notes/a%20b%23?q#2026"),
        ("/shop/", 302, "https://shop.example/"),
        ("/shop/a/b?c=d", 302, "https://shop.example/a/b?c=d"),
        // Compared after decoding, as pages are.
        ("/%6fld", 308, "/read?id=1"),
        ("/x/../old", 308, "/read?id=1"),
    ] {
        let answer = site.get(target);
        assert_eq!(
            (answer.status, answer.field("location")),
            (status, location),
            "{target}"
        );
        assert_eq!(answer.field("cache-control"), "no-cache");
        assert_eq!(answer.field("x-content-type-options"), "nosniff");
    }
    assert_eq!(site.post("/old", "").status, 308);
    for target in ["/blog/2026", "/blog/2026/a/b", "/sho"] {
        assert_eq!(site.get(target).status, 404, "{target}");
    }
}

#[test]
fn a_redirect_is_for_its_path_with_and_without_a_slash_at_the_end() {
    let rules = r#"
[[redirect]]
from = "/:year/:slug/"
to = "/notes/:slug"

[[redirect]]
from = "/single"
to = "/notes/one"

[[redirect]]
from = "/away/*"
to = "https://away.example/*"

[[redirect]]
from = "/slashed"
to = "/slashed/?a=b"

[[redirect]]
from = "/swap/:a/:b/"
to = "/swap/:b/:a"

[[redirect]]
from = "/old/files/:page/"
to = "/old/files/:page.html"

[[redirect]]
from = "/on/"
to = "/single"

[[rewrite]]
from = "/app/*"
to = "/photos/snow.jpg"
"#;
    let site = TestSite::new(&[
        ("millpond.toml", rules),
        ("pages/notes/[slug].html", "{{ params.slug }}"),
        ("static/photos/snow.jpg", "snow"),
        ("static/docs/index.html", "docs"),
    ]);
    for (target, location) in [
        ("/2019/tea/", "/notes/tea"),
        ("/2019/tea", "/2019/tea/"),
        ("/2019/t%c3%a9?a=b", "/2019/t%C3%A9/?a=b"),
        ("/single", "/notes/one"),
        ("/single/?a", "/single?a"),
        ("/slashed", "/slashed/?a=b"),
        // What is there has its own address.
        ("/notes/one/", "/notes/one"),
        ("/docs", "/docs/"),
    ] {
        let answer = site.get(target);
        assert_eq!(
            (answer.status, answer.field("location")),
            (308, location),
            "{target}"
        );
    }
    for (target, status) in [
        ("/photos/snow.jpg", 200),
        ("/notes/one", 200),
        ("/app/x", 200),
        // It would lead back.
        ("/slashed/", 404),
        ("/2019/a/b", 404),
        ("/nothing", 404),
        ("/nothing/", 404),
        // It would lead to another site, to nothing, or on to another redirect.
        ("/away", 404),
        ("/swap/1/2", 404),
        ("/old/files/none.html", 404),
        ("/on", 404),
    ] {
        assert_eq!(site.get(target).status, status, "{target}");
    }
}

#[test]
fn rewrites_are_answered_as_the_other_address_is() {
    let site = site();
    let first = site.get("/articles/1");
    assert_eq!((first.status, &*first.body), (200, "One"));
    assert!(first.cache().starts_with("fwd=miss"), "{}", first.cache());
    // One page is one entry of the cache, under every address.
    assert_eq!(site.get("/read?id=1").cache(), "hit");
    assert_eq!(site.get("/articles/1").cache(), "hit");
    assert_eq!(site.get("/articles/9").status, 404);
    // A value stays a value.
    assert_eq!(site.get("/articles/1%26id=2").status, 400);
    assert_eq!(site.get("/articles/1?id=2").status, 400);
    for target in ["/app/", "/app/a/b?c"] {
        assert_eq!(site.get(target).body, "the app");
    }
    assert_eq!(
        site.ask(&OwnedRequest::new("DELETE", "/articles/1"))
            .field("allow"),
        "GET, HEAD, OPTIONS"
    );
}

#[test]
fn what_a_page_sees_of_a_rewritten_request() {
    let site = TestSite::new(&[
        (
            "millpond.toml",
            "[[rewrite]]\nfrom = \"/s/:q\"\nto = \"/seen?q=:q\"\n",
        ),
        (
            "pages/seen.html",
            "{{ request.path }} {{ request.query.q }} {{ request.query.r }}",
        ),
    ]);
    assert_eq!(site.get("/s/a%20b?r=1").body, "&#x2f;seen a b 1");
}

#[test]
fn what_is_rewritten_is_answered_and_leads_nowhere() {
    let files = [
        ("static/index.html", "the app"),
        ("static/about.html", "about"),
        ("static/docs/index.html", "docs"),
        ("static/list/a.txt", "a"),
        ("pages/page.html", "{{ request.path }}"),
    ];
    let settings = "static.clean_urls = true\nstatic.listing = [\"/list/*\"]\n";
    for (to, expected) in [
        ("/index.html", "the app"),
        ("/", "front"),
        ("/about.html", "about"),
        ("/about", "about"),
        ("/about/", "about"),
        ("/docs/index.html", "docs"),
        ("/docs/", "docs"),
        ("/docs", "docs"),
        ("/page", "&#x2f;page"),
        ("/page/", "&#x2f;page"),
    ] {
        let rule = format!("{settings}[[rewrite]]\nfrom = \"/*\"\nto = \"{to}\"\n");
        let mut all = vec![("millpond.toml", &*rule)];
        all.extend_from_slice(&files);
        let site = TestSite::new(&all);
        // For every address, those of the target and of other files included.
        for target in ["/", "/index.html", "/deep/link", "/about.html", "/docs", to] {
            let answer = site.get(target);
            assert_eq!(
                (answer.status, &*answer.body),
                (200, expected),
                "{target} rewritten to {to}"
            );
        }
    }
    let rule = format!(
        "{settings}[[rewrite]]\nfrom = \"/l\"\nto = \"/list\"\n[[rewrite]]\nfrom = \"/n\"\nto = \"/no/\"\n"
    );
    let mut all = vec![("millpond.toml", &*rule)];
    all.extend_from_slice(&files);
    let site = TestSite::new(&all);
    assert!(site.get("/l").body.contains("a.txt"));
    assert_eq!(site.get("/n").status, 404);
    assert_eq!(site.get("/about.html").field("location"), "/about");
}

#[test]
fn fields_are_added_to_every_answer() {
    let site = site();
    let page = site.get("/read?id=2");
    assert_eq!(page.field("x-frame-options"), "DENY");
    assert_eq!((page.field("x-one"), page.field("x-two")), ("1", "2"));
    let hit = site.get("/read?id=2");
    assert_eq!((hit.cache(), hit.field("x-two")), ("hit", "2"));
    assert_eq!(hit.field("x-frame-options"), "DENY");
    let hit = site.get("/articles/2");
    assert_eq!((hit.cache(), hit.field("x-frame-options")), ("hit", "DENY"));
    assert_eq!(
        hit.field("x-one"),
        "",
        "the address is the one that was asked for"
    );
    for target in ["/app.html", "/nothing", "/old", "/read?id=x", "/a%0ab"] {
        assert_eq!(
            site.get(target).field("x-frame-options"),
            "DENY",
            "{target}"
        );
    }
    assert_eq!(
        site.post("/add", "title=T").field("x-frame-options"),
        "DENY"
    );
}

#[test]
fn a_changed_rule_takes_effect_by_itself_and_a_wrong_one_does_not() {
    let site = TestSite::new(&[("static/a.txt", "a")]);
    assert_eq!(site.get("/x").status, 404);
    let rule = "[[redirect]]\nfrom = \"/x\"\nto = \"/a.txt\"\n";
    write(site.dir.path(), &[("millpond.toml", rule)]);
    site.until("the rule applies", || site.get("/x").status == 308);
    let circle = "[[redirect]]\nfrom = \"/x\"\nto = \"/x\"\n";
    write(site.dir.path(), &[("millpond.toml", circle)]);
    assert!(site.site.reload().is_err());
    assert_eq!(site.get("/x").field("location"), "/a.txt");
    // An unreadable configuration leaves the settings as they are; the rest of the folder is read.
    // Renamed into place: a reading in the middle of a write would find an empty file, which is
    // valid.
    let dir = site.dir.path();
    write(dir, &[(".millpond.toml.new", "[[redirect]]\nform = 1\n")]);
    std::fs::rename(dir.join(".millpond.toml.new"), dir.join("millpond.toml")).unwrap();
    write(dir, &[("static/a.txt", "b")]);
    site.until("the file is new", || site.get("/a.txt").body == "b");
    site.site.reload().unwrap();
    assert_eq!(site.get("/x").field("location"), "/a.txt");
    write(site.dir.path(), &[("millpond.toml", "")]);
    site.until("the rule is gone", || site.get("/x").status == 404);
}

#[test]
fn circles_are_refused_with_the_way_round() {
    for (rules, pages, expected) in [
        (
            "[[redirect]]\nfrom = \"/a\"\nto = \"/b\"\n[[redirect]]\nfrom = \"/b\"\nto = \"/a\"\n",
            &[][..],
            "millpond.toml:1:1: the redirect from `/a` leads in a circle: /a → /b → /a\n  hint: ",
        ),
        (
            "[[redirect]]\nfrom = \"/a/*\"\nto = \"/a/b/*\"\n",
            &[],
            "millpond.toml:1:1: the redirect from `/a/*` leads in a circle: /a/… → /a/b/… → /a/b/b/…",
        ),
        (
            "[[redirect]]\nfrom = \"/p\"\nto = \"/p/?x#y\"\n",
            &[("pages/q.html", "")],
            "",
        ),
        (
            "[[redirect]]\nfrom = \"/p\"\nto = \"/p/?x#y\"\n",
            &[("pages/p.html", "")],
            "millpond.toml:1:1: the redirect from `/p` leads in a circle: /p → /p/ → /p\n",
        ),
        (
            "static.clean_urls = true\n[[redirect]]\nfrom = \"/p\"\nto = \"/p.html\"\n",
            &[("static/p.html", "")],
            "millpond.toml:2:1: the redirect from `/p` leads in a circle: /p → /p.html → /p\n",
        ),
        (
            "[[redirect]]\nfrom = \"/a\"\nto = \"/b/\"\n[[redirect]]\nfrom = \"/b\"\nto = \"/a/\"\n",
            &[("pages/q.html", "")],
            "",
        ),
        (
            "[[redirect]]\nfrom = \"/a\"\nto = \"/b/\"\n[[redirect]]\nfrom = \"/b\"\nto = \"/a/\"\n",
            &[("static/b/index.html", "")],
            "",
        ),
        // Where a rewrite answers, the way ends.
        (
            "static.clean_urls = true\n[[redirect]]\nfrom = \"/p\"\nto = \"/q\"\n[[rewrite]]\nfrom = \"/q\"\nto = \"/p.html\"\n",
            &[("static/p.html", "")],
            "",
        ),
    ] {
        let mut files = vec![("millpond.toml", rules)];
        files.extend_from_slice(pages);
        let found = problems(&files);
        assert!(
            found.starts_with(expected) && found.is_empty() == expected.is_empty(),
            "expected {expected:?}, found {found:?}"
        );
    }
}

#[test]
fn check_names_what_never_answers() {
    let dir = crate::support::folder(&[
        (
            "millpond.toml",
            "[[redirect]]\nfrom = \"/a/*\"\nto = \"/b/*\"\n[[redirect]]\nfrom = \"/a/:x\"\nto = \"/c\"\n\
             [[rewrite]]\nfrom = \"/a/r\"\nto = \"/c\"\n[[redirect]]\nfrom = \"/style.css\"\nto = \"/c\"\n\
             [[redirect]]\nfrom = \"/style.css\"\nto = \"/d\"\n",
        ),
        ("pages/a/page.html", ""),
        ("pages/[any].html", ""),
        ("pages/404.html", ""),
        ("static/a/file", ""),
        ("static/top.txt", ""),
        ("static/style.css", ""),
        ("static/404.html", ""),
        ("static/index.html", ""),
        ("static/fine/file", ""),
    ]);
    let config = millpond_site::Config::read(dir.path()).unwrap();
    let report = millpond_site::check(dir.path(), &config).unwrap();
    let notes: Vec<_> = report.notes.iter().map(ToString::to_string).collect();
    for expected in [
        "millpond.toml:4:1: the redirect from `/a/:x` never applies: the redirect in line 1 comes first",
        "millpond.toml:13:1: the redirect from `/style.css` never applies: the redirect in line 10 comes first",
        "millpond.toml:7:1: the rewrite from `/a/r` never applies: the redirect in line 1 comes first",
        "pages: /a/page never answers: the redirect in line 1",
        "static/a/file: does not answer at /a/file: the redirect in line 1",
        "static/top.txt: does not answer at /top.txt: the page /{any} does",
        "static/style.css: does not answer at /style.css: the redirect in line 10",
        "static/404.html: ",
        "static/index.html: ",
    ] {
        assert!(
            notes.iter().any(|note| note.starts_with(expected)),
            "no {expected:?} in {notes:#?}"
        );
    }
    assert_eq!(notes.len(), 9, "{notes:#?}");
}
