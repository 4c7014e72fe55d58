//! What `check` says about files, and the migrations that it writes.

use std::fs;

use millpond_site::{Config, Problem, Site, SiteOptions, check, missing_tables, write_migrations};

use crate::support::{self, TestSite};

const SQL: &str = "-- name: all :many\nselect * from rates order by id;\n";

fn found(dir: &std::path::Path) -> String {
    let config = Config::read(dir).unwrap();
    let problems = match check(dir, &config) {
        Ok(report) => report.notes,
        Err(problems) => problems,
    };
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn pinned(dir: &std::path::Path) -> Vec<String> {
    let config = Config::read(dir).unwrap();
    let pins = missing_tables(dir, &config).unwrap();
    write_migrations(dir, &pins).unwrap()
}

#[test]
fn a_file_without_a_table_gets_a_migration_of_its_types() {
    let dir = support::folder(&[
        (
            "data/rates.csv",
            "id,Country Name,rate,since,order\n1,A,1.5,2026-01-31,x\n2,B,,2026-02-01,\n",
        ),
        ("data/posts/a.md", "---\ntitle: A\ntags: [x]\n---\nText\n"),
        ("pages/rates.sql", SQL),
        (
            "pages/rates.html",
            "{% for r in all %}{{ r.country_name }} {{ r.rate }} {{ r.order }};{% endfor %}",
        ),
    ]);
    let said = found(dir.path());
    assert!(
        said.contains("data/rates.csv: there is no table rates yet"),
        "{said}"
    );
    assert!(
        said.contains("data/posts/: there is no table posts yet"),
        "{said}"
    );
    assert!(
        said.contains("`millpond check --fix` writes migrations/…_data_rates.sql"),
        "{said}"
    );
    let written = pinned(dir.path());
    assert_eq!(
        written,
        [
            "migrations/0002_data_posts.sql",
            "migrations/0003_data_rates.sql"
        ]
    );
    let rates = fs::read_to_string(dir.path().join(&written[1])).unwrap();
    let table = "create table rates (\n  id integer primary key,\n  country_name text,\n  rate real,\n  since date text,\n  \"order\" text,\n  _file text not null\n);\n";
    assert!(rates.ends_with(table), "{rates}");
    let posts = fs::read_to_string(dir.path().join(&written[0])).unwrap();
    assert!(posts.contains("slug text primary key,\n  title text,\n  tags text,\n  body text,\n  _file text not null"), "{posts}");
    assert!(
        posts.contains("create index posts_by_file on posts (_file);"),
        "{posts}"
    );
    assert_eq!(found(dir.path()), "");
    assert!(pinned(dir.path()).is_empty());
    // A new column.
    support::write(
        dir.path(),
        &[(
            "data/rates.csv",
            "id,country_name,rate,since,order,note\n1,A,1.5,2026-01-31,x,true\n",
        )],
    );
    assert!(found(dir.path()).contains("data/rates.csv: the table rates lacks note"));
    assert_eq!(pinned(dir.path()), ["migrations/0004_data_rates.sql"]);
    let site = TestSite::open(dir, SiteOptions::default());
    assert_eq!(site.get("/rates").body, "A 1.5 x;");
}

#[test]
fn what_cannot_be_a_table_is_said_with_its_remedy() {
    let outside = lab_testkit::fast_dir();
    fs::write(outside.path().join("secret.csv"), "id\n1\n").unwrap();
    let dir = support::folder(&[
        ("data/2026 rates.csv", "id\n1\n"),
        ("data/Rates.csv", "id\n1\n"),
        ("data/_millpond_x.csv", "id\n1\n"),
        ("data/sqlite_master.csv", "id\n1\n"),
        ("data/article.csv", "id,title\n9,stolen\n"),
        ("data/menu.json", "[]"),
        ("data/menu.yaml", "[]"),
        ("data/posts/deep/a.md", ""),
        ("data/broken.json", "[{\"a\": 1},\n {\"a\": }]"),
        ("data/.hidden.csv", ""),
    ]);
    std::os::unix::fs::symlink(
        outside.path().join("secret.csv"),
        dir.path().join("data/secret.csv"),
    )
    .unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("data/folder")).unwrap();
    std::os::unix::fs::symlink("deep", dir.path().join("data/posts/link")).unwrap();
    let said = found(dir.path());
    for expected in [
        "data/2026 rates.csv: a table's name has lower-case letters, digits and _, and begins with a letter\n  hint: rename it to c2026_rates.csv",
        "data/Rates.csv: a table's name",
        "data/_millpond_x.csv: names that begin with _ are the server's\n  hint: rename it to millpond_x.csv",
        "data/sqlite_master.csv: names that begin with sqlite_",
        "data/article.csv: there is a table article that is not made for files: it has no column _file",
        "data/menu.yaml: data/menu.json and data/menu.yaml are all the table menu",
        "data/posts/link: a link to a folder is not followed within the folder of a table",
        "data/broken.json:2:8: a value is expected here",
        "data/secret.csv: the link leads out of the folder of the data",
        "data/folder: the link leads out of the folder of the data",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
    assert!(!said.contains("hidden"), "{said}");
    // The site runs all the same, and the table that is not the files' stays as it is.
    let site = TestSite::open(dir, SiteOptions::default());
    let count: i64 = site
        .foreign()
        .query_row("select count(*) from article", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 2);
}

#[test]
fn values_that_do_not_fit_the_table_are_errors_of_the_check() {
    let dir = support::folder(&[
        (
            "migrations/0002_data_rates.sql",
            "create table rates (id integer primary key, rate real, _file text not null);",
        ),
        ("data/rates.csv", "id,rate\n1,1.5\n2,n/a\n"),
        (
            "migrations/0003_data_posts.sql",
            "create table posts (slug text primary key, draft integer, body text, _file text not null);",
        ),
        ("data/posts/broken.md", "---\ndraft\n---\n"),
        ("data/posts/fit.md", "---\ndraft: yes\n---\n"),
        ("data/posts/unfit.md", "---\nslug: u\ndraft: maybe\n---\n"),
    ]);
    let said = found(dir.path());
    assert!(
        said.contains(
            "data/rates.csv:3:1: rate is \"n/a\", not a number\n  hint: correct the file"
        ),
        "{said}"
    );
    // A broken file does not hide what is wrong with the others.
    assert!(said.contains("data/posts/broken.md:"), "{said}");
    let unfit = "data/posts/unfit.md:3:1: draft is \"maybe\", not an integer";
    assert!(said.contains(unfit), "{said}");
    assert!(!said.contains("data/posts/fit.md"), "{said}");
    let config = Config::read(dir.path()).unwrap();
    let site = Site::open(dir.path(), &config, SiteOptions::default()).unwrap();
    site.stop();
}

/// The files of the manual's blog, each named before its text.
#[test]
fn a_row_that_the_table_refuses_is_an_error_of_the_check() {
    let dir = support::folder(&[
        (
            "migrations/0002_data_rates.sql",
            "create table lands (id text primary key);
            create table rates (id integer primary key, rate real check (rate > 0), code text unique,
                land text references lands, _file text not null);",
        ),
        ("data/rates.csv", "id,rate,code,land\n1,1.5,a,nl\n2,0,b,nl\n3,1,c,nl\n"),
    ]);
    let said = found(dir.path());
    assert!(
        said.contains("data/rates.csv:3:1: the rows stay as they were: "),
        "{said}"
    );
    assert!(said.contains("the table checks that rate > 0"), "{said}");
    fs::write(
        dir.path().join("data/rates.csv"),
        "id,rate,code\n1,1,a\n2,1,b\n3,1,a\n",
    )
    .unwrap();
    let said = found(dir.path());
    assert!(said.contains("data/rates.csv:4:1: "), "{said}");
    // It is not known here whether the land is there.
    fs::write(dir.path().join("data/rates.csv"), "id,rate,land\n1,1,nl\n").unwrap();
    assert!(!found(dir.path()).contains("data/rates.csv"));
}

const POSTS: &str = "create table posts (slug text primary key, title text, date text
    constraint \"the date is a day, such as 2026-01-31\" check (date is null or date(date) is not null and date(substr(date, 1, 10), '+0 days') is substr(date, 1, 10)),
    day date, draft integer, body text, _file text not null);";

#[test]
fn a_field_that_is_misspelt_is_an_error_with_its_line() {
    let dir = support::folder(&[
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/a.md", "---\ntitle: A\ndarft: true\n---\n"),
        ("data/posts/b.md", "---\ntitle: B\nmood: calm\n---\n"),
    ]);
    let said = found(dir.path());
    let expected =
        "data/posts/a.md:3:1: the table posts has no column darft\n  hint: did you mean `draft`?";
    assert!(said.contains(expected), "{said}");
    // Only the other one becomes a column.
    let written = pinned(dir.path());
    let sql = fs::read_to_string(dir.path().join(&written[0])).unwrap();
    assert!(
        sql.contains("add column mood text") && !sql.contains("darft"),
        "{sql}"
    );
    fs::remove_file(dir.path().join(&written[0])).unwrap();
    fs::remove_file(dir.path().join("data/posts/a.md")).unwrap();
    let said = found(dir.path());
    let expected = "data/posts/: the table posts lacks mood, as in data/posts/b.md:3";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_folder_that_is_gone_is_an_error_until_an_empty_one_is_there() {
    let dir = support::folder(&[
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/a.md", "---\ntitle: A\n---\n"),
        ("data/posts/b.md", "---\ntitle: B\n---\n"),
    ]);
    let site = TestSite::open(dir, SiteOptions::default());
    let dir = site.dir.path();
    assert_eq!(found(dir), "");
    fs::rename(dir.join("data/posts"), dir.join("away")).unwrap();
    let expected = "data/posts: the folder is gone, and the rows of the table posts stay\n  hint: restore the folder; \
                    to remove the rows, make an empty folder";
    assert_eq!(found(dir), expected);
    fs::create_dir(dir.join("data/posts")).unwrap();
    assert_eq!(found(dir), "");
}

#[test]
fn two_files_of_one_key_are_an_error_that_names_both() {
    let dir = support::folder(&[
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/a.md", "A"),
        ("data/posts/b.md", "B"),
        ("data/posts/c.md", "---\ntitle: C\nslug: b\n---\n"),
        ("data/posts/old/a.md", "Old"),
    ]);
    let said = found(dir.path());
    for expected in [
        "data/posts/c.md:3:1: the rows stay as they were: data/posts/b.md is a row with the same slug\n  hint: give one of both another slug",
        "data/posts/old/a.md:1:1: the rows stay as they were: data/posts/a.md is a row with the same slug",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_a_table_refuses_is_said_in_the_words_of_the_file() {
    for (field, expected) in [
        (
            "date: next week",
            "a.md:3:1: the rows stay as they were: the table checks that the date is a day, such as 2026-01-31",
        ),
        (
            "date: 2026-02-30",
            "a.md:3:1: the rows stay as they were: the table checks that the date is a day",
        ),
        ("date: 2026-2-3", "the table checks that the date is a day"),
        (
            "day: next week",
            "a.md:3:1: day is \"next week\", not a day like 2026-11-26",
        ),
        ("day: 2026-2-3", "not a day like"),
        ("day: 26.11.2026", "not a day like"),
        ("day: 2026-02-30", "not a day like"),
        ("day: 2026", "not a day like"),
    ] {
        let text = format!("---\ntitle: A\n{field}\n---\n");
        let dir = support::folder(&[
            ("migrations/0002_data_posts.sql", POSTS),
            ("data/posts/a.md", &text),
        ]);
        let said = found(dir.path());
        assert!(said.contains(expected), "{field}: {said}");
    }
}

#[test]
fn a_file_without_rows_is_a_note_and_other_endings_are_read() {
    let dir = support::folder(&[
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/cup.jpg", "picture"),
        ("data/posts/README", "words"),
        ("data/posts/a.MD", "---\ntitle: A\n---\n"),
        (
            "data/posts/b.markdown",
            "\n \n---\ntitle: B\ndraft: Off\nday: 2026-02-28 10:00\n---\n",
        ),
        (
            "pages/posts.sql",
            "-- name: posts :many\nselect slug, title, draft from posts order by slug;\n",
        ),
        (
            "pages/posts.html",
            "{% for p in posts %}{{ p.slug }} {{ p.title }} {{ p.draft }};{% endfor %}",
        ),
    ]);
    let config = Config::read(dir.path()).unwrap();
    let report = check(dir.path(), &config).unwrap();
    let notes: Vec<String> = report.notes.iter().map(Problem::to_string).collect();
    let notes = notes.join("\n");
    assert!(
        notes.contains("data/posts/cup.jpg: this kind of file has no rows"),
        "{notes}"
    );
    assert!(
        notes.contains("data/posts/README: this kind") && notes.contains("static/"),
        "{notes}"
    );
    let site = TestSite::open(dir, SiteOptions::default());
    assert_eq!(site.get("/posts").body, "a A ;b B 0;");
}

fn blog() -> Vec<(&'static str, &'static str)> {
    const MANUAL: &str = include_str!("../../../../docs/reference/data.md");
    let (_, blog) = MANUAL.split_once("## A blog of Markdown files").unwrap();
    let mut files = Vec::new();
    for piece in blog.split("`:\n\n```").collect::<Vec<_>>().windows(2) {
        let name = piece[0].rsplit('`').next().unwrap();
        let (_, text) = piece[1].split_once('\n').unwrap();
        let (text, _) = text.split_once("```").unwrap();
        files.push((name, text));
    }
    files
}

#[test]
fn the_blog_of_the_manual_works() {
    let files = blog();
    assert_eq!(files.len(), 7, "{files:?}");
    let dir = support::folder(&files);
    assert_eq!(pinned(dir.path()), ["migrations/0002_data_posts.sql"]);
    let site = TestSite::open(dir, SiteOptions::default());
    assert!(
        site.get("/")
            .body
            .contains("<a href=\"/posts/hello\">Hello</a> 2026-01-31")
    );
    assert!(
        site.get("/posts/hello")
            .body
            .contains("<p>The <strong>body</strong> of a post.")
    );
    assert!(site.get("/tags/first").body.contains("/posts/hello"));
    let beside = site.dir.path().join("data/posts/next.md");
    fs::write(beside, "---\ntitle: Next\ntags: [first, new]\n---\nText\n").unwrap();
    site.until("the new post is there", || {
        site.get("/tags/new").body.contains("Next")
    });
}
