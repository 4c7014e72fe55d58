//! The folder: faults with their places, and changes while the site is served.

use crate::support::{TestSite, problems, write};

#[test]
fn faults_are_named_with_place_and_hint() {
    for (files, expected) in [
        (
            &[(
                "pages/a.sql",
                "-- name: a :one\nselect titel from article;\n",
            )][..],
            "pages/a.sql:2:8: query `a`: ",
        ),
        (
            &[
                ("pages/a.html", "{% extends \"layot.html\" %}"),
                ("templates/layout.html", ""),
            ],
            "pages/a.html:1:13: there is no template `layot.html`\n  hint: did you mean `layout.html`?",
        ),
        (
            &[
                ("pages/a.html", "\n{{ artcle.title }}"),
                ("pages/a.sql", "-- name: article :one\nselect 1 as title;\n"),
            ],
            "pages/a.html:2:4: nothing gives the template `artcle`\n  hint: did you mean `article`?",
        ),
        (&[("pages/a.html", "{% if %}")], "pages/a.html:1:"),
        (
            &[("pages/a.sql", "-- name: a :exec\ndelete from article;\n")],
            "pages/a.sql:1:1: query `a` writes\n  hint: what writes belongs into pages/a.post.sql",
        ),
        (
            &[(
                "pages/a.post.sql",
                "-- name: a :exec\ndelete from article where id = :id;\n",
            )],
            "pages/a.post.sql: the form says not where to go",
        ),
        (
            &[(
                "pages/a.post.sql",
                "-- name: a :exec\ndelete from article where id = :id;\n-- redirect: /:ide\n",
            )],
            "pages/a.post.sql:3:1: the redirect names `:ide`",
        ),
        (
            &[("pages/a.sql", "-- name: a :one\nselect :x + 1 as y;\n")],
            "pages/a.sql:2:8: the database does not tell the type of parameter `x`",
        ),
        (&[("pages/a.txt", "")], "pages/a.txt: neither a template"),
        (
            &[("pages/a/[x].html", ""), ("pages/a/[y].html", "")],
            "pages/a/[y].html: another file answers /a/{x} already",
        ),
        (
            &[(
                "migrations/0002_bad.sql",
                "create table t (a);\n\ncreate tabel u;",
            )],
            "migrations/0002_bad.sql:3:",
        ),
        (
            &[("migrations/more.sql", "")],
            "migrations/more.sql: this is no migration",
        ),
        (
            &[("millpond.toml", "[cache]\nmemroy = \"1MB\"\n")],
            "millpond.toml:2:1: ",
        ),
        (
            &[("pages/404.html", "{{ request.path }}")],
            "pages/404.html: ",
        ),
    ] {
        let found = problems(files);
        assert!(
            found.starts_with(expected),
            "expected {expected:?}, found {found:?}"
        );
    }
}

#[test]
fn a_changed_file_takes_effect_by_itself_and_a_broken_one_does_not() {
    let site = TestSite::new(&[("pages/p.html", "one"), ("static/s.txt", "one")]);
    assert_eq!(site.get("/p").body, "one");
    write(
        site.dir.path(),
        &[
            ("pages/p.html", "two"),
            ("static/s.txt", "two"),
            ("static/new/t.txt", "t"),
        ],
    );
    site.until("the page is new", || site.get("/p").body == "two");
    site.until("the file is new", || {
        site.get("/s.txt").body == "two" && site.get("/new/t.txt").body == "t"
    });
    // Renamed into place: a reading in the middle of a write would find an empty page, which is
    // valid.
    let pages = site.dir.path().join("pages");
    write(&pages, &[(".p.new", "{% broken")]);
    std::fs::rename(pages.join(".p.new"), pages.join("p.html")).unwrap();
    assert!(site.site.reload().is_err());
    assert_eq!(site.get("/p").body, "two");
    write(site.dir.path(), &[("pages/p.html", "three")]);
    site.until("the page is new", || site.get("/p").body == "three");
}

#[test]
fn files_come_and_go_while_a_page_is_broken() {
    let settings =
        "[database]\nurl = \"sqlite:site.db\"\n[[redirect]]\nfrom = \"/x\"\nto = \"/p\"\n";
    let site = TestSite::new(&[
        ("millpond.toml", settings),
        ("pages/p.html", "{% include \"part.html\" %}"),
        ("templates/part.html", "whole"),
        ("static/secret.txt", "published by mistake"),
        ("static/docs/index.html", "docs"),
    ]);
    assert_eq!(site.get("/p").body, "whole");
    let templates = site.dir.path().join("templates");
    write(&templates, &[(".part.new", "{% broken")]);
    std::fs::rename(templates.join(".part.new"), templates.join("part.html")).unwrap();
    assert!(site.site.reload().is_err());
    std::fs::remove_file(site.dir.path().join("static/secret.txt")).unwrap();
    write(site.dir.path(), &[("static/new/index.html", "new")]);
    site.until("the file is gone", || site.get("/secret.txt").status == 404);
    site.until("another is there", || site.get("/new/").body == "new");
    assert_eq!(site.get("/new").status, 308, "its address too");
    let problems = site.site.reload().unwrap_err();
    assert_eq!(problems[0].file.to_str(), Some("templates/part.html"));
    // Everything else is as it was, and still stored.
    assert_eq!(
        (&*site.get("/p").body, site.get("/p").cache()),
        ("whole", "hit")
    );
    assert_eq!(site.get("/x").status, 308);
    write(&templates, &[("part.html", "mended")]);
    site.until("the page is new", || site.get("/p").body == "mended");
}

#[test]
fn a_static_change_leaves_the_pages_stored() {
    let site = TestSite::new(&[("pages/p.html", "one")]);
    site.get("/p");
    write(site.dir.path(), &[("static/s.txt", "two")]);
    site.until("the file is there", || site.get("/s.txt").status == 200);
    assert_eq!(site.get("/p").cache(), "hit");
}

#[test]
fn check_finds_what_serve_would_find_and_leaves_the_database_alone() {
    let dir = crate::support::folder(&[(
        "pages/a.sql",
        "-- name: a :one\nselect title from article where id = :id;\n",
    )]);
    let config = millpond_site::Config::read(dir.path()).unwrap();
    let queries = millpond_site::check(dir.path(), &config).unwrap().queries;
    assert_eq!((queries.len(), &*queries[0].name), (1, "a"));
    assert!(!queries[0].dependencies.is_empty());
    assert!(!dir.path().join("site.db").exists());
    write(
        dir.path(),
        &[("pages/b.sql", "-- name: b :one\nselect 1 from nothing;\n")],
    );
    assert!(
        millpond_site::check(dir.path(), &config).unwrap_err()[0]
            .to_string()
            .starts_with("pages/b.sql:2:")
    );
}

#[test]
fn a_pending_migration_is_tried_with_the_rows() {
    let site = TestSite::new(&[]);
    let path = site.dir.path().join("site.db");
    let seen = |sql: &str| {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let version = seen("pragma schema_version");
    let check = |sql: &str| {
        write(site.dir.path(), &[("migrations/0002_b.sql", sql)]);
        let config = millpond_site::Config::read(site.dir.path()).unwrap();
        millpond_site::check(site.dir.path(), &config).map_err(|problems| problems[0].to_string())
    };
    for sql in [
        "alter table article add column y text not null;",
        "select 1;\ncreate unique index u on article (length(title));",
        "update article set title = 'same';",
    ] {
        let refused = check(sql).unwrap_err();
        assert!(refused.starts_with("migrations/0002_b.sql:"), "{refused}");
    }
    let fine =
        check("update article set title = title || id; alter table article add column z text;");
    assert!(fine.unwrap().notes.is_empty());
    assert_eq!(seen("pragma schema_version"), version);
    assert_eq!(
        seen("select count(*) from article where title like '%' || id"),
        0
    );
}
