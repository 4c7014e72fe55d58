//! Addresses of static files: indexes, short addresses, listings, the site's 404 page, and how long
//! files may be kept.

use crate::support::{TestSite, write};

fn with(settings: &str, files: &[(&str, &str)]) -> TestSite {
    let mut all = vec![("millpond.toml", settings)];
    all.extend_from_slice(files);
    TestSite::new(&all)
}

/// Status, and where it leads or what it has.
fn at(site: &TestSite, target: &str) -> (u16, String) {
    let answer = site.get(target);
    let location = answer.field("location").to_owned();
    let shown = match answer.status {
        308 => location,
        200 => answer.body,
        _ => String::new(),
    };
    (answer.status, shown)
}

#[test]
fn a_folder_answers_with_a_slash_and_leads_there_without() {
    let site = with(
        "[static]\nindex = [\"home.html\", \"index.htm\"]\n",
        &[
            ("static/docs/index.htm", "second"),
            ("static/docs/home.html", "first"),
            ("static/more/a b/index.htm", "only"),
            ("static/none/index.html", "none"),
            ("pages/docs.html", "a page"),
        ],
    );
    for (target, expected) in [
        ("/docs/", (200, "first")),
        ("/docs", (200, "a page")),
        ("/more/a%20b/", (200, "only")),
        ("/more/a%20b?x=1", (308, "/more/a%20b/?x=1")),
        ("/none/", (404, "")),
        ("/none", (404, "")),
        ("/none/index.html", (200, "none")),
        ("/more/", (404, "")),
    ] {
        assert_eq!(
            at(&site, target),
            (expected.0, expected.1.to_owned()),
            "{target}"
        );
    }
    write(
        site.dir.path(),
        &[("millpond.toml", "[static]\nindex = []\n")],
    );
    site.until("no index any more", || site.get("/docs/").status == 308);
    assert_eq!(at(&site, "/docs/").1, "/docs");
}

#[test]
fn short_addresses() {
    let files = [
        ("static/about.html", "about"),
        ("static/docs/index.html", "docs"),
        ("static/docs.html", "beside"),
        ("static/taken.html", "whole name"),
        ("static/both.html", "whole name"),
        ("static/both", "short name"),
        ("static/a.txt", "text"),
        ("pages/taken.html", "a page"),
    ];
    let site = with("static.clean_urls = true\n", &files);
    for (target, expected) in [
        ("/about", (200, "about")),
        ("/about.html?x", (308, "/about?x")),
        ("/about/", (308, "/about")),
        ("/docs/", (200, "docs")),
        ("/docs/index.html", (308, "/docs/")),
        ("/docs/index", (404, "")),
        ("/docs", (200, "beside")),
        ("/docs.html", (308, "/docs")),
        ("/taken", (200, "a page")),
        ("/taken.html", (200, "whole name")),
        ("/both", (200, "short name")),
        ("/both.html", (200, "whole name")),
        ("/a.txt", (200, "text")),
        ("/a", (404, "")),
        ("/nothing.html", (404, "")),
    ] {
        assert_eq!(
            at(&site, target),
            (expected.0, expected.1.to_owned()),
            "{target}"
        );
    }
    write(site.dir.path(), &[("static/new.html", "new")]);
    site.until("the new file is there", || at(&site, "/new").1 == "new");
    let plain = with("", &files);
    assert_eq!(at(&plain, "/about").0, 404);
    assert_eq!(at(&plain, "/about.html").1, "about");
    assert_eq!(at(&plain, "/docs").1, "/docs/");
}

#[test]
fn folders_are_listed_where_the_site_says_so() {
    let site = with(
        "[static]\nlisting = [\"/files/*\"]\n",
        &[
            ("static/files/b & c.txt", "12345"),
            ("static/files/.hidden", ""),
            ("static/files/deep/er/x.txt", ""),
            ("static/files/own/index.html", "own"),
            ("static/other/x.txt", ""),
        ],
    );
    let listing = site.get("/files/");
    assert_eq!(listing.status, 200);
    assert_eq!(listing.field("content-type"), "text/html; charset=utf-8");
    assert_eq!(listing.field("cache-control"), "no-cache");
    for shown in ["b &amp; c.txt", "5 B", "deep", "own"] {
        assert!(listing.body.contains(shown), "{shown} in {}", listing.body);
    }
    for hidden in [".hidden", "x.txt", "other"] {
        assert!(
            !listing.body.contains(hidden),
            "{hidden} in {}",
            listing.body
        );
    }
    assert_eq!(at(&site, "/files"), (308, "/files/".to_owned()));
    assert_eq!(at(&site, "/files/own/").1, "own");
    assert!(site.get("/files/deep/er/").body.contains("../"));
    assert_eq!(at(&site, "/other/").0, 404);
    assert_eq!(site.post("/files/", "").status, 405);
    // Prepared like a file: unchanged it is not sent again, and a change makes another.
    let again = millpond_http::OwnedRequest::new("GET", "/files/")
        .field("If-None-Match", listing.field("etag"));
    assert_eq!(site.ask(&again).status, 304);
    write(site.dir.path(), &[("static/files/new.txt", "new")]);
    site.until("it shows the new file", || {
        site.get("/files/").body.contains("new.txt")
    });
    assert_eq!(site.ask(&again).status, 200);
}

#[test]
fn a_folder_to_list_may_be_named_without_its_slash() {
    let site = with(
        "[static]\nlisting = [\"/downloads\"]\n",
        &[
            ("static/downloads/a.txt", "a"),
            ("static/downloads/old/b.txt", "b"),
        ],
    );
    assert!(site.get("/downloads/").body.contains("a.txt"));
    assert_eq!(at(&site, "/downloads"), (308, "/downloads/".to_owned()));
    assert_eq!(at(&site, "/downloads/old/").0, 404);
}

#[test]
fn files_with_a_hash_in_their_name_may_be_kept() {
    let site = with(
        "static.immutable = true\n",
        &[("static/app.3f2a9c1b.js", "1"), ("static/app.js", "2")],
    );
    let kept = "public, max-age=31536000, immutable";
    assert_eq!(site.get("/app.3f2a9c1b.js").field("cache-control"), kept);
    assert_eq!(site.get("/app.js").field("cache-control"), "no-cache");
    write(
        site.dir.path(),
        &[("millpond.toml", "static.immutable = [\"/*.js\"]\n")],
    );
    site.until("the setting applies", || {
        site.get("/app.js").field("cache-control") == kept
    });
}

#[test]
fn the_404_page_may_be_a_file() {
    let site = with("", &[("static/404.html", "gone fishing")]);
    let answer = site.get("/nothing");
    assert_eq!((answer.status, &*answer.body), (404, "gone fishing"));
    write(site.dir.path(), &[("static/404.html", "back soon")]);
    site.until("the page is new", || {
        site.get("/nothing").body == "back soon"
    });
    write(site.dir.path(), &[("pages/404.html", "from a template")]);
    site.until("the template counts", || {
        site.get("/nothing").body == "from a template"
    });
}

#[test]
fn the_404_page_may_be_sent_from_a_file() {
    // Copied into the kernel, and left on disk.
    for settings in ["sendfile_from = 0", "in_memory = 0"] {
        let settings = format!("[static]\n{settings}\n");
        let site = with(&settings, &[("static/404.html", "gone fishing")]);
        let answer = site.get("/nothing");
        assert_eq!((answer.status, &*answer.body), (404, "gone fishing"));
        write(site.dir.path(), &[("static/404.html", "back soon")]);
        site.until("the page is new", || {
            site.get("/nothing").body == "back soon"
        });
    }
}
