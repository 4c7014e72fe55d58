//! Content that was written for other programs, taken as it is: dates, drafts, names of files.

use std::{
    fmt::Write as _,
    fs,
    sync::{Mutex, PoisonError},
};

use millpond_site::{Config, Problem, SiteOptions, check, missing_tables, write_migrations};

use crate::{
    both::{Housed, Kind, on_both},
    support::{self, TestSite},
};

on_both!(
    a_date_in_each_form_is_one_instant,
    declared_types_are_held,
    an_hour_that_clocks_leave_out_is_the_same_everywhere,
);

fn found(files: &[(&str, &str)]) -> String {
    let dir = support::folder(files);
    let config = Config::read(dir.path()).unwrap();
    let problems = match check(dir.path(), &config) {
        Ok(report) => report.notes,
        Err(problems) => problems,
    };
    let lines = problems.iter().map(Problem::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

const UTC: &str = "to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')";

fn a_date_in_each_form_is_one_instant(kind: Kind) {
    let (column, day, text) = match kind {
        Kind::Sqlite => ("datetime", "date text", "at"),
        Kind::Postgres => ("timestamptz", "date", UTC),
    };
    let table = format!(
        "create table t (id integer primary key, at {column}, day {day}, _file text not null);"
    );
    let texts = [
        (
            "2013-05-06 02:12:52 +0200",
            "2013-05-06 00:12:52",
            "2013-05-06",
        ),
        (
            "2013-05-06 00:12:52 UTC",
            "2013-05-06 00:12:52",
            "2013-05-06",
        ),
        ("2013-05-06 00:12:52", "2013-05-06 00:12:52", "2013-05-06"),
        (
            "2013-05-06T02:12:52+02:00",
            "2013-05-06 00:12:52",
            "2013-05-06",
        ),
        ("2013-05-06t02:12:52", "2013-05-06 00:12:52", "2013-05-06"),
        ("2013-5-6 2:12:52 +2", "2013-05-06 00:12:52", "2013-05-06"),
        (
            "2013-05-05 23:12:52 -0100 CVT",
            "2013-05-06 00:12:52",
            "2013-05-05",
        ),
        ("2013-05-06", "2013-05-05 22:00:00", "2013-05-06"),
    ];
    let mut csv = "id,at,day\n".to_owned();
    let mut yaml = String::new();
    for (id, (given, ..)) in texts.iter().enumerate() {
        let _ = writeln!(csv, "{id},{given},{given}");
        let _ = writeln!(yaml, "- id: {}\n  at: {given}\n  day: {given}", id + 100);
    }
    let settings = "[database]\nurl = \"sqlite:site.db\"\n[site]\ntimezone = \"Europe/Vienna\"\n";
    let files = [
        ("millpond.toml", settings),
        ("migrations/0002_t.sql", &*table),
        ("data/t/a.csv", &*csv),
        ("data/t/b.yaml", &*yaml),
    ];
    let site = Housed::new(kind, &files);
    for (id, (given, at, day)) in texts.iter().enumerate() {
        for id in [id, id + 100] {
            let row = format!("select {text} || ' ' || day from t where id = {id}");
            assert_eq!(site.text(&row), format!("{at} {day}"), "{given}");
        }
    }
}

fn declared_types_are_held(kind: Kind) {
    let table = "create table t (id integer primary key, at timestamp, day date, clock time, code varchar(3),
        price numeric(5, 2), little smallint, _file text not null);";
    for (column, value, told) in [
        (
            "at",
            "2019-13-40",
            "at is \"2019-13-40\", not a date and a time",
        ),
        ("at", "now", "at is \"now\", not"),
        ("at", "\"Jan 5, 2026\"", "at is \"Jan 5, 2026\", not"),
        ("at", "1700000000", "at is \"1700000000\", not"),
        ("day", "2019-13-40", "day is \"2019-13-40\", not a day like"),
        ("day", "yesterday", "day is \"yesterday\", not a day like"),
        ("clock", "25:00", "clock"),
        ("code", "abcd", "code"),
        ("price", "1.005", "price"),
        ("price", "1000", "price"),
        ("price", "dear", "price"),
        ("little", "32768", "little"),
        ("little", "some", "little is \"some\", not an integer"),
    ] {
        let csv = format!("id,{column}\n1,\n2,{value}\n");
        let files = [("migrations/0002_t.sql", table), ("data/t.csv", &*csv)];
        let site = Housed::new(kind, &files);
        assert_eq!(
            site.text("select count(*) || '' from t"),
            "0",
            "{column} {value}"
        );
        if matches!(kind, Kind::Sqlite) {
            let said = found(&files);
            assert!(said.contains(&format!("data/t.csv:3:1: {told}")), "{said}");
        }
    }
    let csv =
        "id,at,day,clock,code,price,little\n1,2026-01-31 10:00,2026-01-31,14:05,ab,999.99,-32768\n";
    let site = Housed::new(
        kind,
        &[("migrations/0002_t.sql", table), ("data/t.csv", csv)],
    );
    let row = "select day || ' ' || code || ' ' || price || ' ' || little from t";
    assert_eq!(site.text(row), "2026-01-31 ab 999.99 -32768");
}

fn an_hour_that_clocks_leave_out_is_the_same_everywhere(kind: Kind) {
    let column = match kind {
        Kind::Sqlite => "datetime",
        Kind::Postgres => "timestamptz",
    };
    let table =
        format!("create table t (id integer primary key, at {column}, _file text not null);");
    let settings = "[database]\nurl = \"sqlite:site.db\"\n[site]\ntimezone = \"Europe/Vienna\"\n";
    let page = "{{ row.at | date('%F %R') }} {{ params.at | date('%F %R') }} {{ '2026-03-29T02:30' | date('%F %R') }}";
    let site = Housed::new(
        kind,
        &[
            ("millpond.toml", settings),
            ("migrations/0002_t.sql", &table),
            ("data/t.csv", "id,at\n1,2026-03-29T02:30\n"),
            (
                "pages/at.sql",
                "-- param: at datetime\n-- name: row :one\nselect at from t where at = :at;\n",
            ),
            ("pages/at.html", page),
        ],
    );
    let time = "2026-03-29 03:30";
    let said = site.get("/at?at=2026-03-29T02:30").body;
    assert_eq!(said, format!("{time} {time} {time}"));
}

const POSTS: &str = "create table posts (slug text primary key, title text, date date text, draft integer, body text, _file text not null);";

/// A page that lists the posts.
const LIST: [(&str, &str); 2] = [
    (
        "pages/posts.sql",
        "-- name: posts :many\nselect slug, date from posts where draft is not true order by slug;\n",
    ),
    (
        "pages/posts.html",
        "{% for p in posts %}{{ p.slug }} {{ p.date }};{% endfor %}",
    ),
];

#[test]
fn what_hides_a_post_elsewhere_hides_it() {
    let hidden = [
        "draft: true",
        "draft: \"true\"",
        "Draft: yes",
        "published: false",
        "published: \"false\"",
        "isDraft: true",
        "status: draft",
        "status: Private",
        "published: false\ndraft: false",
    ];
    let shown = [
        "draft: false",
        "published: true",
        "status: publish",
        "isDraft: false",
        "published: null",
    ];
    let mut files = vec![(
        "migrations/0002_data_posts.sql".to_owned(),
        POSTS.to_owned(),
    )];
    for (kind, list) in [("hidden", &hidden[..]), ("shown", &shown[..])] {
        for (number, field) in list.iter().enumerate() {
            let text = format!("---\ntitle: A\n{field}\n---\n");
            files.push((format!("data/posts/{kind}{number}.md"), text));
        }
    }
    let mut given: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    given.extend(LIST);
    assert_eq!(found(&given), "");
    let site = TestSite::with(&given, SiteOptions::default());
    let all = "shown0 ;shown1 ;shown2 ;shown3 ;shown4 ;";
    assert_eq!(site.get("/posts").body, all);
    for (field, told) in [
        (
            "published: soon",
            "a.md:3:1: published is \"soon\", not true or false",
        ),
        (
            "publishDate: 2999-01-01",
            "a.md:3:1: publishdate would not be heeded: the table posts has no column publishdate",
        ),
        (
            "expiryDate: 2020-01-01",
            "a.md:3:1: expirydate would not be heeded",
        ),
        ("pubDate: 2999-01-01", "no column publishdate"),
    ] {
        let text = format!("---\ntitle: A\n{field}\n---\n");
        let said = found(&[given[0], ("data/posts/a.md", &text)]);
        assert!(said.contains(told), "{said}");
    }
    // A column of the field's own name has its own meaning.
    let own = POSTS.replace(
        "title text",
        "title text, status text, publishdate datetime",
    );
    let text = "---\nstatus: draft\npubdate: 2026-01-01\n---\n";
    let site = TestSite::with(
        &[
            ("migrations/0002_data_posts.sql", &own),
            ("data/posts/a.md", text),
            LIST[0],
            LIST[1],
        ],
        SiteOptions::default(),
    );
    assert_eq!(site.get("/posts").body, "a ;");
    let read = "select publishdate from posts";
    let moment: String = site
        .foreign()
        .query_row(read, [], |row| row.get(0))
        .unwrap();
    assert_eq!(moment, "2026-01-01 00:00:00");
}

#[test]
fn date_and_slug_come_from_the_name_where_the_settings_say_so() {
    let mut files = vec![
        (
            "millpond.toml",
            "[[data]]\ntable = \"posts\"\nnames = [\"date\", \"folder\"]\n",
        ),
        ("migrations/0002_data_posts.sql", POSTS),
        ("data/posts/2014-05-06-hello.md", "# Hello"),
        (
            "data/posts/2014-05-07-own.md",
            "---\nDate: 2015-01-01\nSlug: other\n---\n",
        ),
        ("data/posts/tea/index.md", "# Tea"),
        ("data/posts/2014/2014-05-08-deep/index.md", "# Deep"),
    ];
    files.extend(LIST);
    let site = TestSite::with(&files, SiteOptions::default());
    let all = "deep 2014-05-08;hello 2014-05-06;other 2015-01-01;tea ;";
    assert_eq!(site.get("/posts").body, all);
    // A file that changes is followed, though the folder is named in the settings.
    fs::write(
        site.dir.path().join("data/posts/tea/index.md"),
        "---\ndate: 2016-01-01\n---\n",
    )
    .unwrap();
    site.until("the tea has a date", || {
        site.get("/posts").body.contains("tea 2016-01-01")
    });
}

static LOG: Mutex<String> = Mutex::new(String::new());

#[test]
fn the_log_of_a_start_with_a_thousand_files_is_one_screen() {
    let dir = support::folder(&[("migrations/0002_data_posts.sql", POSTS)]);
    let posts = dir.path().join("data/posts");
    fs::create_dir_all(&posts).unwrap();
    for number in 0..1_000 {
        let more = if number % 2 == 0 {
            "mood: good\n"
        } else {
            "mood: bad\nplace: here\n"
        };
        let date = if number < 100 {
            format!("never {number}")
        } else {
            "2026-01-31".to_owned()
        };
        let text = format!("---\ntitle: A\n{more}date: {date}\n---\n");
        fs::write(posts.join(format!("p{number:04}.md")), text).unwrap();
        fs::write(posts.join(format!("p{number:04}.jpg")), "picture").unwrap();
    }
    let options = SiteOptions {
        log: |line| *LOG.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n"),
        ..SiteOptions::default()
    };
    let site = TestSite::open(dir, options);
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(log.lines().count() <= 50, "{log}");
    for expected in [
        "files, table posts, rows: 256 new",
        "data/posts/p0000.md:4:1: date is \"never 0\", not a day like",
        "has no column mood, so that is left out (also in 449 more files of data/posts/)",
        "has no columns mood, place, so that is left out (also in 449 more files of data/posts/)",
        "so it is not read (also in 999 more files of data/posts/)",
        "more remarks on its files",
    ] {
        assert!(log.contains(expected), "{expected} is not in {log}");
    }
    drop(site);
}

#[test]
fn a_faulty_file_keeps_no_table_from_being_made() {
    let dir = support::folder(&[
        ("data/posts/a.md", "---\ntitle: A\n---\n"),
        ("data/posts/b.md", "---\ntitle: [\n---\n"),
        ("data/posts/c.md", "---\ntitle: C\n---\n"),
        ("data/rates.csv", "id;rate\n1;2,5\n"),
    ]);
    let config = Config::read(dir.path()).unwrap();
    let missing = missing_tables(dir.path(), &config).unwrap();
    let said: Vec<&str> = missing.iter().map(|pin| &*pin.missing).collect();
    let rates = "there is no table rates yet; its fields are divided by semicolons, and the first line names them";
    assert_eq!(said, ["there is no table posts yet", rates]);
    write_migrations(dir.path(), &missing).unwrap();
    let problems = check(dir.path(), &config).unwrap_err();
    let files: Vec<String> = problems
        .iter()
        .map(|it| it.file.display().to_string())
        .collect();
    assert_eq!(files, ["data/posts/b.md"]);
}

#[test]
fn every_text_may_begin_with_a_byte_order_mark() {
    let marked = |text: &str| format!("\u{feff}{text}");
    let sql = marked(
        "/* The posts,\n-- name: none\nas a list. */\n-- name: posts :many\nselect slug, title from posts;\n",
    );
    let (settings, table) = (
        marked("[database]\nurl = \"sqlite:site.db\"\n"),
        marked(POSTS),
    );
    let html = marked("{% include \"list.html\" %}");
    let list = marked("{% for p in posts %}{{ p.slug }} {{ p.title }};{% endfor %}");
    let post = marked("---\ntitle: A\n---\n");
    let site = TestSite::with(
        &[
            ("millpond.toml", &settings),
            ("migrations/0002_data_posts.sql", &table),
            ("data/posts/a.md", &post),
            ("pages/posts.sql", &sql),
            ("pages/posts.html", &html),
            ("templates/list.html", &list),
        ],
        SiteOptions::default(),
    );
    assert_eq!(site.get("/posts").body, "a A;");
    let said = found(&[
        ("pages/x.sql", "/* a\nb */ select 1;\n"),
        ("pages/x.html", "x"),
    ]);
    assert!(
        said.contains("pages/x.sql:2:1: SQL before the first `-- name:`"),
        "{said}"
    );
}

const DOCS: &str = "create table docs (folder text not null, slug text not null, title text, body text, _file text not null unique, primary key (folder, slug));";

#[test]
fn documents_in_any_depth_have_one_page() {
    let files = [
        ("migrations/0002_docs.sql", DOCS),
        ("data/docs/start.md", "# Start"),
        ("data/docs/a/b/c/deep one.md", "# Deep"),
        (
            "pages/docs/[...path].sql",
            "-- param: path text\n-- name: doc :one\nselect title from docs where _file = 'docs/' || :path || '.md';\n",
        ),
        (
            "pages/docs/[...path].html",
            "{{ doc.title }} {{ params.path }} {{ request.path }}",
        ),
        ("pages/docs/new.html", "new"),
    ];
    let site = TestSite::with(&files, SiteOptions::default());
    assert_eq!(
        site.get("/docs/start").body,
        "Start start &#x2f;docs&#x2f;start"
    );
    let deep = site.get("/docs/a/b/c/deep%20one").body;
    assert!(
        deep.starts_with("Deep a&#x2f;b&#x2f;c&#x2f;deep one"),
        "{deep}"
    );
    assert_eq!(site.get("/docs/new").body, "new");
    assert_eq!(site.get("/docs/none/x").status, 404);
    assert_eq!(site.get("/docs").status, 404);
    let rule = |path: &str| {
        let settings = format!(
            "[database]\nurl = \"sqlite:site.db\"\n[[require]]\npath = \"{path}\"\nclaims = \"user\"\n"
        );
        let mut files = files.to_vec();
        files.push(("millpond.toml", &settings));
        found(&files)
    };
    let open = rule("/docs/:name");
    assert!(
        open.contains("/docs/") && open.contains("/docs/*"),
        "{open}"
    );
    assert!(!rule("/docs/*").contains("open"), "{}", rule("/docs/*"));
}

#[test]
fn endings_and_elements_are_those_that_the_settings_name() {
    let table =
        "create table posts (slug text primary key, title text, body text, _file text not null);
        create table stops (stop_id text primary key, name text, _file text not null);
        create table feed (id text primary key, title text, _file text not null);";
    let settings = "[database]\nurl = \"sqlite:site.db\"\n[[data]]\ntable = \"posts\"\nendings = [\"mdx\", \"html\"]\n\
        [[data]]\ntable = \"stops\"\nendings = [\"txt\"]\n[[data]]\ntable = \"feed\"\nelement = \"entry\"\n";
    let site = TestSite::with(
        &[
            ("millpond.toml", settings),
            ("migrations/0002_data.sql", table),
            ("data/posts/a.mdx", "---\ntitle: A\n---\n"),
            ("data/posts/b.html", "---\ntitle: B\n---\n<p>x</p>"),
            ("data/posts/c.md", "not looked at"),
            ("data/stops/stops.txt", "stop_id,name\n1,Here\n"),
            (
                "data/feed.xml",
                "<feed><title>x</title><entry><id>1</id><title>One</title></entry></feed>",
            ),
        ],
        SiteOptions::default(),
    );
    let read = "select group_concat(slug || title) from posts";
    let text =
        |sql: &str| -> String { site.foreign().query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(text(read), "aA,bB");
    assert_eq!(text("select stop_id || name from stops"), "1Here");
    assert_eq!(text("select id || title from feed"), "1One");
}
