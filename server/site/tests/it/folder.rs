//! The folder: faults with their places, and changes while the site is served.

use millpond_site::{Config, Problem, check};

use crate::support::{TestSite, folder, problems, write};

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
            "pages/404.html:1:4: nothing gives the template `request`",
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
    let dir = folder(&[(
        "pages/a.sql",
        "-- name: a :one\nselect title from article where id = :id;\n",
    )]);
    let config = Config::read(dir.path()).unwrap();
    let queries = check(dir.path(), &config).unwrap().queries;
    assert_eq!((queries.len(), &*queries[0].name), (1, "a"));
    assert!(!queries[0].dependencies.is_empty());
    assert!(!dir.path().join("site.db").exists());
    write(
        dir.path(),
        &[("pages/b.sql", "-- name: b :one\nselect 1 from nothing;\n")],
    );
    assert!(
        check(dir.path(), &config).unwrap_err()[0]
            .to_string()
            .starts_with("pages/b.sql:2:")
    );
}

#[test]
fn what_is_probably_not_meant_is_a_note() {
    let dir = folder(&[
        (
            "pages/two.sql",
            "-- require: claims.usr else /nologin\n-- name: two :many\nselect a.id, c.id from article a join comment c on c.article_id = a.id;\n",
        ),
        (
            "pages/two.html",
            "{{ request.claims.nme }}{{ request.claims.user }}",
        ),
        (
            "pages/sign.post.sql",
            "-- param: name text\n-- name: a :one\nselect id from article where title = :name;\n\
             -- claims: user = a.id, name = :name\n-- redirect: /nowhere?x=:name\n",
        ),
        (
            "pages/go.post.sql",
            "-- param: id integer\n-- name: a :exec\ndelete from comment where id = :id;\n-- redirect: /sign\n",
        ),
        (
            "pages/well.post.sql",
            "-- param: id integer\n-- name: a :exec\ndelete from comment where id = :id;\n-- redirect: /two?id=:id#x\n",
        ),
        (
            "pages/unknown.post.sql",
            "-- param: id integer\n-- name: a :exec\ndelete from comment where id = :id;\n-- redirect: /of/:id/some\n",
        ),
        (
            "pages/known.post.sql",
            "-- param: kind text\n-- name: a :exec\ndelete from comment where who = :kind;\n-- redirect: /:kind\n",
        ),
        ("pages/login.html", "sign in"),
    ]);
    let config = Config::read(dir.path()).unwrap();
    let report = check(dir.path(), &config).unwrap();
    assert_eq!((report.pages, report.forms), (3, 5));
    let notes: Vec<String> = report.notes.iter().map(Problem::to_string).collect();
    assert_eq!(
        notes,
        [
            "pages/two.html:1:19: no form gives the claim `nme`\n  hint: did you mean `name`?",
            "pages/two.sql:1:20: no form gives the claim `usr`\n  hint: did you mean `user`?",
            "pages/two.sql:2:1: two columns of `two` are called `id`\n  hint: only one of them can be read; give the other a name: select … as …",
            "pages/go.post.sql: leads to /sign, which answers POST only\n  hint: what leads there asks with GET",
            "pages/sign.post.sql: leads to /nowhere, and there is no such page\n  hint: no page, file or rule has this address",
            "pages/two.sql: leads to /nologin, and there is no such page\n  hint: did you mean /login?",
            "pages/unknown.post.sql: leads to /of/…/some, and there is no such page\n  hint: no page, file or rule has this address",
        ]
    );
}

#[test]
fn a_query_does_not_take_the_name_of_something_else() {
    let found = problems(&[("pages/a.sql", "-- name: params :one\nselect 1 as x;\n")]);
    assert_eq!(
        found,
        "pages/a.sql:1:1: templates see something else as `params`\n  hint: give the query another name"
    );
    let found = problems(&[(
        "pages/a.sql",
        "-- name: a :many\nselect id from article order by :sort;\n",
    )]);
    assert!(
        found.contains("hint: if it chooses an order: -- order: sort: title ="),
        "{found}"
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
    let checked = |sql: &str| {
        write(site.dir.path(), &[("migrations/0002_b.sql", sql)]);
        let config = Config::read(site.dir.path()).unwrap();
        check(site.dir.path(), &config).map_err(|problems| problems[0].to_string())
    };
    for sql in [
        "alter table article add column y text not null;",
        "select 1;\ncreate unique index u on article (length(title));",
        "update article set title = 'same';",
    ] {
        let refused = checked(sql).unwrap_err();
        assert!(refused.starts_with("migrations/0002_b.sql:"), "{refused}");
    }
    let fine =
        checked("update article set title = title || id; alter table article add column z text;");
    assert!(fine.unwrap().notes.is_empty());
    assert_eq!(seen("pragma schema_version"), version);
    assert_eq!(
        seen("select count(*) from article where title like '%' || id"),
        0
    );
}

/// *Counterexample*: without the environment of all templates each filter seemed to be unknown, and
/// each parameter unused.
#[test]
fn one_broken_template_makes_no_faults_elsewhere() {
    let well = [
        (
            "pages/well.html",
            "{{ params.q | urlencode }}{{ a.title | markdown }}",
        ),
        (
            "pages/well.sql",
            "-- param: q text = ''\n-- name: a :one\nselect title from article where id = 1;\n",
        ),
        ("pages/own.sql", "-- param: q text = ''\n"),
    ];
    let found = |own: &str| problems(&[&well[..], &[("pages/own.html", own)]].concat());
    assert_eq!(
        found("{{ params.q }}{% include 'welll.html' %}"),
        "pages/own.html:1:27: there is no template `welll.html`\n  hint: create templates/welll.html"
    );
    let broken = found("{% if params.q %}");
    assert!(
        broken.starts_with("pages/own.html:1:") && broken.matches("pages/").count() == 1,
        "{broken}"
    );
}

#[test]
fn a_misspelt_field_of_a_form_is_a_note() {
    let dir = folder(&[
        (
            "pages/albums/[id].html",
            "<form method='post' action='/albums/{{ params.id }}/save'>\n<input name='titel'><input name=\"title\">\
             <input name=tags[] type=checkbox><textarea name='{{ params.id }}'></textarea><input name=unlike></form>\
             <form action=/albums/1/save><input name=titel></form><input name=titel>",
        ),
        (
            "pages/say.html",
            "<form method=POST><input name=bdy></form>",
        ),
        (
            "pages/say.post.sql",
            "-- param: body text\n-- name: a :exec\nupdate article set body = :body;\n-- redirect: /\n",
        ),
        (
            "pages/albums/[id]/save.post.sql",
            "-- param: id integer\n-- param: title text\n-- param: tags text[]\n-- name: a :exec\n\
             update article set title = :title, body = (select max(value) from json_each(:tags)) where id = :id;\n-- redirect: /\n",
        ),
    ]);
    let config = Config::read(dir.path()).unwrap();
    let notes = check(dir.path(), &config).unwrap().notes;
    let notes: Vec<String> = notes.iter().map(Problem::to_string).collect();
    assert_eq!(
        notes,
        [
            "pages/albums/[id].html:2:14: POST /albums/{id}/save has no parameter `titel`\n  hint: did you mean `title`?",
            "pages/albums/[id].html:2:53: POST /albums/{id}/save has no parameter `tags[]`\n  hint: did you mean `tags`?",
            "pages/say.html:1:31: POST /say has no parameter `bdy`\n  hint: did you mean `body`?",
            "pages/albums/[id].html:2:144: this form is sent with GET, and /albums/{id}/save answers POST only\n  hint: write <form method=\"post\" …>",
        ]
    );
}

#[test]
fn a_migration_that_waits_for_a_restart_is_named_with_what_lacks_it() {
    let site = TestSite::new(&[(
        "pages/a.sql",
        "-- name: a :many\nselect title from article;\n",
    )]);
    write(
        site.dir.path(),
        &[
            (
                "migrations/0002_year.sql",
                "alter table article add column year integer;\n",
            ),
            (
                "pages/a.sql",
                "-- name: a :many\nselect title, year from article;\n",
            ),
        ],
    );
    let problems = site.site.reload().unwrap_err();
    let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert!(said[0].contains("no such column: year"), "{said:?}");
    assert_eq!(
        said[1],
        "migrations/0002_year.sql: is new, and is applied at the next start of the server"
    );
}

/// *Counterexample*: `check` and `serve` waited for ever for what a pipe would give, and read a
/// device that has no end.
#[test]
fn what_is_no_file_is_named_and_not_read() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    for name in [
        "pages/a.html",
        "pages/b.sql",
        "templates/c.html",
        "migrations/0002_d.sql",
    ] {
        for is_pipe in [true, false] {
            let dir = folder(&[("templates/t.html", "")]);
            let path = dir.path().join(name);
            match is_pipe {
                true => mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
                false => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            }
            let config = Config::read(dir.path()).unwrap();
            let found = check(dir.path(), &config).unwrap_err();
            let found: Vec<String> = found.iter().map(Problem::to_string).collect();
            let said = format!("{name}: this is neither a file nor a folder");
            assert!(found[0].starts_with(&said), "{found:?}");
        }
    }
}
