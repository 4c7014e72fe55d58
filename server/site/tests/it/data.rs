//! Files as tables, on both databases.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    both::{Housed, Kind, on_both},
    support::TestSite,
};

on_both!(
    a_changed_row_ends_only_the_pages_that_show_it,
    each_kind_of_change_of_a_file_is_on_the_page,
    a_file_is_never_half_in_its_table,
    a_broken_file_keeps_its_rows_until_it_is_mended,
    a_folder_is_a_table_of_all_its_files,
    the_folders_in_a_folder_are_of_its_table,
    a_folder_elsewhere_is_a_table,
    rows_without_a_key_keep_their_identity,
    a_file_that_is_replaced_a_thousand_times_ends_as_the_last,
    files_that_refer_to_each_other_come_in_the_right_order,
    what_changed_while_the_site_was_away_is_applied_at_its_start,
);

const RATES: &str = "create table rate (id integer primary key, name text not null, value double precision, _file text not null);";
/// The table of applied files is there already: to make it is a change of the schema, which begins
/// an epoch at some later heartbeat.
const PUBLISH: &str = "alter publication millpond add table rate; alter table rate replica identity full;
    create table _millpond_data (\"file\" text primary key, \"table\" text not null, hash text not null,
    version bigint not null, applied_at timestamptz not null default now());";
const RATE_SQL: &str =
    "-- param: id integer\n-- name: rate :one?\nselect name, value from rate where id = :id;\n";
const RATE_HTML: &str = "{% if rate %}{{ rate.name }} {{ rate.value }}{% else %}none{% endif %}";

/// A site with a table for `data/rate.csv`.
fn rates(kind: Kind, csv: &str) -> Housed {
    Housed::new(
        kind,
        &[
            ("migrations/0002_data_rate.sql", RATES),
            ("migrations/0003_publish.postgres.sql", PUBLISH),
            ("migrations/0003_publish.sqlite.sql", "select 1;"),
            ("data/rate.csv", csv),
            ("pages/rates/[id].sql", RATE_SQL),
            ("pages/rates/[id].html", RATE_HTML),
            SETTINGS,
            MARKS[0],
            MARKS[1],
        ],
    )
}

fn path(site: &TestSite, name: &str) -> PathBuf {
    site.dir.path().join("data").join(name)
}

/// Writes a file beside, and renames it into its place.
fn replace(site: &TestSite, name: &str, text: &str) {
    let beside = path(site, ".beside");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path(site, name)).unwrap();
}

/// Waits until the first rows are there, which the feed brings before the others.
fn first_rows_have_passed(site: &Housed) {
    site.until("the marks are kept", || {
        let marks = site.get("/marks");
        (marks.cache(), &*marks.body) == ("hit", "0")
    });
    site.run("insert into comment (id, article_id, who) values (77, 1, 'Ann')");
    shows(site, "/marks", "1");
}

/// However slow the machine is, the feed is heard of in time.
const SETTINGS: (&str, &str) = (
    "millpond.toml",
    "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\nmax_staleness = \"10min\"\n",
);
const MARKS: [(&str, &str); 2] = [
    (
        "pages/marks.sql",
        "-- name: marks :one\nselect count(*) as n from comment;\n",
    ),
    ("pages/marks.html", "{{ marks.n }}"),
];

fn shows(site: &TestSite, target: &str, body: &str) {
    site.until(&format!("{target} is {body:?}"), || {
        site.get(target).body == body
    });
}

fn a_changed_row_ends_only_the_pages_that_show_it(kind: Kind) {
    let many = |changed: &str| {
        let mut csv = "id,name,value\n".to_owned();
        for id in 1..=100_000 {
            let name = if id == 70_000 { changed } else { "same" };
            let _ = writeln!(csv, "{id},{name},{id}.5");
        }
        csv
    };
    let site = rates(kind, &many("before"));
    assert_eq!(site.get("/rates/70000").body, "before 70000.5");
    assert_eq!(site.get("/rates/7").body, "same 7.5");
    first_rows_have_passed(&site);
    site.until("both are kept", || {
        site.get("/rates/70000").cache() == "hit" && site.get("/rates/7").cache() == "hit"
    });
    fs::write(path(&site, "rate.csv"), many("after")).unwrap();
    site.until("the change is there", || {
        let other = site.get("/rates/7");
        assert_eq!((other.cache(), &*other.body), ("hit", "same 7.5"));
        site.get("/rates/70000").body == "after 70000.5"
    });
    assert_eq!(site.get("/rates/7").cache(), "hit");
}

fn each_kind_of_change_of_a_file_is_on_the_page(kind: Kind) {
    let site = rates(kind, "id,name,value\n1,one,1\n2,two,\n");
    assert_eq!(site.get("/rates/1").body, "one 1.0");
    assert_eq!(site.get("/rates/2").body, "two ");
    fs::write(
        path(&site, "rate.csv"),
        "id,value,name\r\n3,3,three\r\n1,1,one\r\n",
    )
    .unwrap();
    shows(&site, "/rates/3", "three 3.0");
    assert_eq!(site.get("/rates/2").body, "none");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(path(&site, "rate.csv"))
        .unwrap();
    write!(file, "4,4,four\r\n").unwrap();
    drop(file);
    shows(&site, "/rates/4", "four 4.0");
    replace(&site, "rate.csv", "id,name,value\n1,ONE,1\n");
    shows(&site, "/rates/1", "ONE 1.0");
    assert_eq!(site.get("/rates/4").body, "none");
    // Another format of the same table.
    fs::remove_file(path(&site, "rate.csv")).unwrap();
    shows(&site, "/rates/1", "none");
    fs::write(
        path(&site, "rate.json"),
        "[{\"id\": 1, \"name\": \"json\", \"value\": 0.5}]",
    )
    .unwrap();
    shows(&site, "/rates/1", "json 0.5");
    fs::rename(path(&site, "rate.json"), path(&site, ".away")).unwrap();
    shows(&site, "/rates/1", "none");
    // Without the folder nothing is known.
    replace(&site, "rate.yaml", "- {id: 1, name: yaml}\n");
    shows(&site, "/rates/1", "yaml ");
    fs::rename(site.dir.path().join("data"), site.dir.path().join("moved")).unwrap();
    fs::rename(site.dir.path().join("moved"), site.dir.path().join("data")).unwrap();
    replace(&site, "rate.yaml", "- {id: 1, name: again}\n");
    shows(&site, "/rates/1", "again ");
}

fn a_file_is_never_half_in_its_table(kind: Kind) {
    let site = rates(kind, "id,name,value\n1,one,1\n2,two,2\n");
    assert_eq!(site.get("/rates/2").body, "two 2.0");
    let mut file = fs::File::create(path(&site, "rate.csv")).unwrap();
    writeln!(file, "id,name,value\n1,ONE,1").unwrap();
    file.sync_all().unwrap();
    // Another file's change makes the site look at the folder.
    fs::write(path(&site, "other.txt"), "x").unwrap();
    site.until("it was looked at", || {
        let text = site.text("select count(*) || '' from rate where name = 'ONE'");
        assert_eq!(text, "0", "half of a file was applied");
        fs::write(path(&site, "other.txt"), "y").unwrap();
        fs::metadata(path(&site, "other.txt")).is_ok()
    });
    for _ in 0..20 {
        fs::write(path(&site, "other.txt"), "z").unwrap();
        assert_eq!(site.get("/rates/2").body, "two 2.0");
        assert_eq!(site.get("/rates/1").body, "one 1.0");
    }
    writeln!(file, "2,TWO,2").unwrap();
    drop(file);
    shows(&site, "/rates/2", "TWO 2.0");
    assert_eq!(site.get("/rates/1").body, "ONE 1.0");
}

fn a_broken_file_keeps_its_rows_until_it_is_mended(kind: Kind) {
    let site = rates(kind, "id,name,value\n1,one,1\n");
    assert_eq!(site.get("/rates/1").body, "one 1.0");
    for broken in [
        &b"id,name,value\n1,ONE,1\n2,two\n"[..],
        b"id,name,value\n1,ONE,1\n2,\"two,2\n",
        b"id,name,value\n1,ONE,1\n2,\xff,2\n",
        b"id,name,value\n1,ONE,1\nx,two,2\n",
        b"id,name,value\n1,ONE,1\n1,two,2\n",
        b"name,value\nONE,1\n",
        b"id,name,value\n1,ONE,many\n",
    ] {
        fs::write(path(&site, "rate.csv"), broken).unwrap();
        // A file that comes later is applied later.
        fs::write(path(&site, "mark.txt"), "").unwrap();
        for _ in 0..5 {
            assert_eq!(site.get("/rates/1").body, "one 1.0", "{broken:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    fs::write(path(&site, "rate.csv"), "id,name,value\n1,mended,1\n").unwrap();
    shows(&site, "/rates/1", "mended 1.0");
}

const POSTS: &str = "create table post (slug text primary key, title text, day text, tags text, body text, _file text not null);
create index post_by_file on post (_file);";

const POSTS_PUBLISH: &str = "alter publication millpond add table post; alter table post replica identity full;
    create table _millpond_data (\"file\" text primary key, \"table\" text not null, hash text not null,
    version bigint not null, applied_at timestamptz not null default now());";

fn posts(kind: Kind) -> Housed {
    Housed::new(
        kind,
        &[
            SETTINGS,
            MARKS[0],
            MARKS[1],
            ("migrations/0002_data_post.sql", POSTS),
            ("migrations/0003_publish.postgres.sql", POSTS_PUBLISH),
            ("migrations/0003_publish.sqlite.sql", "select 1;"),
            (
                "data/post/a.md",
                "---\ntitle: A\nday: 2026-01-01\ntags: [x, y]\n---\nText of *a*\n",
            ),
            ("data/post/b.md", "+++\ntitle = \"B\"\n+++\nText of b\n"),
            ("data/post/more.csv", "slug,title\nc,C\nd,D\n"),
            (
                "pages/posts/[slug].sql",
                "-- param: slug text\n-- name: post :one?\nselect * from post where slug = :slug;\n",
            ),
            (
                "pages/posts/[slug].html",
                "{% if post %}{{ post.title }} {{ post.body | default('') | markdown }}{% else %}none{% endif %}",
            ),
        ],
    )
}

fn a_folder_is_a_table_of_all_its_files(kind: Kind) {
    let site = posts(kind);
    assert!(
        site.get("/posts/a")
            .body
            .contains("A <p>Text of <em>a</em></p>")
    );
    assert_eq!(
        site.text("select day || ' ' || tags from post where slug = 'a'"),
        "2026-01-01 [\"x\",\"y\"]"
    );
    let found = "select count(*) || '' from post where slug in ('a', 'b', 'c', 'd')";
    assert_eq!(site.text(found), "4");
    first_rows_have_passed(&site);
    site.until("they are kept", || {
        site.get("/posts/a").cache() == "hit" && site.get("/posts/d").cache() == "hit"
    });
    fs::write(path(&site, "post/b.md"), "---\ntitle: Bee\n---\nNew\n").unwrap();
    site.until("b is new", || site.get("/posts/b").body.contains("Bee"));
    assert_eq!(site.get("/posts/a").cache(), "hit");
    assert_eq!(site.get("/posts/d").cache(), "hit");
    fs::write(path(&site, "post/more.csv"), "slug,title\nc,C\n").unwrap();
    shows(&site, "/posts/d", "none");
    assert_eq!(site.get("/posts/a").cache(), "hit");
    // A row of another file is not taken over.
    fs::write(path(&site, "post/thief.csv"), "slug,title\na,stolen\nf,F\n").unwrap();
    fs::write(path(&site, "post/last.md"), "---\ntitle: Last\n---\n").unwrap();
    site.until("the last is there", || {
        site.get("/posts/last").body.contains("Last")
    });
    assert!(site.get("/posts/a").body.starts_with("A "));
    assert_eq!(site.get("/posts/f").body, "none");
    // It is free once the other is gone.
    fs::remove_file(path(&site, "post/a.md")).unwrap();
    site.until("it is the thief's", || {
        site.get("/posts/a").body.starts_with("stolen")
    });
    for name in ["last.md", "b.md", "more.csv", "thief.csv"] {
        fs::remove_file(path(&site, "post").join(name)).unwrap();
    }
    site.until("all are gone", || {
        site.text("select count(*) || '' from post") == "0"
    });
}

const DOCS: &str = "create table post (folder text not null, slug text not null, title text, body text, _file text not null, primary key (folder, slug));
create index post_by_file on post (_file);";

/// A site with documents in folders, which are in `folder` if one is given, else in `data/`.
fn docs(kind: Kind, folder: Option<&Path>) -> Housed {
    let elsewhere = folder.map_or_else(String::new, |folder| {
        let folder = folder.display();
        format!("[[data]]\ntable = \"post\"\nfolder = \"{folder}\"\nendings = [\"md\"]\n")
    });
    let settings = format!("{}{elsewhere}", SETTINGS.1);
    let mut files = vec![
        (SETTINGS.0, &*settings),
        MARKS[0],
        MARKS[1],
        ("migrations/0002_data_post.sql", DOCS),
        ("migrations/0003_publish.postgres.sql", POSTS_PUBLISH),
        ("migrations/0003_publish.sqlite.sql", "select 1;"),
        (
            "pages/docs/[folder]/[slug].sql",
            "-- name: doc :one?\nselect title, body from post where slug = :slug and folder = :folder;\n",
        ),
        (
            "pages/docs/[folder]/[slug].html",
            "{% if doc %}{{ doc.title }}: {{ doc.body }}{% else %}none{% endif %}",
        ),
        (
            "pages/top.sql",
            "-- name: docs :many\nselect slug from post where folder = '' order by slug;\n",
        ),
        (
            "pages/top.html",
            "{% for doc in docs %}{{ doc.slug }};{% endfor %}",
        ),
    ];
    if folder.is_none() {
        files.extend([
            ("data/post/top.md", "x"),
            ("data/post/a/one.md", "# One\n\nText"),
            ("data/post/a/two.md", "# Two\n\nText"),
            ("data/post/b/one.md", "# Other\n\nText"),
        ]);
    }
    Housed::new(kind, &files)
}

fn the_folders_in_a_folder_are_of_its_table(kind: Kind) {
    let site = docs(kind, None);
    assert_eq!(site.get("/top").body, "top;");
    assert_eq!(site.get("/docs/a/one").body, "One: Text");
    assert_eq!(site.get("/docs/b/one").body, "Other: Text");
    first_rows_have_passed(&site);
    site.until("they are kept", || {
        let is_hit = |target| site.get(target).cache() == "hit";
        is_hit("/docs/a/two") && is_hit("/docs/b/one")
    });
    fs::write(path(&site, "post/b/one.md"), "# Another\n\nText").unwrap();
    site.until("one is another", || {
        assert_eq!(site.get("/docs/a/two").cache(), "hit");
        site.get("/docs/b/one").body == "Another: Text"
    });
    // A new folder is followed, and what is in it when it comes is there.
    fs::create_dir(path(&site, ".c")).unwrap();
    fs::write(path(&site, ".c/one.md"), "# Third\n\nText").unwrap();
    fs::rename(path(&site, ".c"), path(&site, "post/c")).unwrap();
    shows(&site, "/docs/c/one", "Third: Text");
    fs::write(path(&site, "post/c/two.md"), "# Fourth\n\nText").unwrap();
    shows(&site, "/docs/c/two", "Fourth: Text");
    // What takes the place of a folder is a link, which is not followed: the rows stay.
    fs::rename(path(&site, "post/c"), path(&site, ".c")).unwrap();
    shows(&site, "/docs/c/two", "none");
    fs::rename(path(&site, "post/b"), path(&site, ".b")).unwrap();
    std::os::unix::fs::symlink("a", path(&site, "post/b")).unwrap();
    fs::write(path(&site, "post/a/one.md"), "# New\n\nText").unwrap();
    shows(&site, "/docs/a/one", "New: Text");
    assert_eq!(site.get("/docs/b/one").body, "Another: Text");
}

fn a_folder_elsewhere_is_a_table(kind: Kind) {
    let elsewhere = lab_testkit::fast_dir();
    let folder = elsewhere.path().join("docs");
    fs::create_dir_all(folder.join("a")).unwrap();
    fs::write(folder.join("a/one.md"), "# One\n\nText").unwrap();
    fs::write(folder.join("top.md"), "Top").unwrap();
    fs::write(folder.join("picture.png"), "no table").unwrap();
    let site = docs(kind, Some(&folder));
    assert_eq!(site.get("/docs/a/one").body, "One: Text");
    assert_eq!(site.get("/top").body, "top;");
    first_rows_have_passed(&site);
    site.until("it is kept", || site.get("/docs/a/one").cache() == "hit");
    fs::write(folder.join("a/two.md"), "# Two\n\nText").unwrap();
    site.until("another is there", || {
        assert_eq!(site.get("/docs/a/one").cache(), "hit");
        site.get("/docs/a/two").body == "Two: Text"
    });
    fs::create_dir(folder.join("b")).unwrap();
    fs::write(folder.join("b/three.md"), "# Three\n\nText").unwrap();
    shows(&site, "/docs/b/three", "Three: Text");
    fs::remove_file(folder.join("a/two.md")).unwrap();
    shows(&site, "/docs/a/two", "none");
    // Without the folder its rows stay, and another one in its place is followed.
    fs::rename(&folder, elsewhere.path().join("away")).unwrap();
    fs::create_dir_all(elsewhere.path().join("new/a")).unwrap();
    let new = elsewhere.path().join("new/a/one.md");
    fs::write(&new, "# Next\n\nText").unwrap();
    assert_eq!(site.get("/docs/a/one").body, "One: Text");
    fs::rename(elsewhere.path().join("new"), &folder).unwrap();
    shows(&site, "/docs/a/one", "Next: Text");
    shows(&site, "/docs/b/three", "none");
    fs::write(folder.join("a/one.md"), "# Last\n\nText").unwrap();
    shows(&site, "/docs/a/one", "Last: Text");
}

fn rows_without_a_key_keep_their_identity(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "migrations/0002_data_line.sql",
                "create table line (_key text primary key, what text, amount integer, _file text not null);
                 create table seen (what text, n integer);",
            ),
            ("data/line.csv", "what,amount\na,1\nb,2\na,1\na,1\n"),
        ],
    );
    let keys = |site: &Housed| {
        site.text(
            "select min(_key) || ' ' || max(_key) || ' ' || count(*) from line where what = 'a'",
        )
    };
    let before = keys(&site);
    assert!(before.ends_with(" 3"), "{before}");
    fs::write(
        path(&site, "line.csv"),
        "what,amount\nnew,0\na,1\na,1\nb,2\na,1\n",
    )
    .unwrap();
    site.until("the new row is there", || {
        site.text("select count(*) || '' from line") == "5"
    });
    assert_eq!(keys(&site), before);
    fs::write(path(&site, "line.csv"), "what,amount\nb,2\na,1\n").unwrap();
    site.until("two are there", || {
        site.text("select count(*) || '' from line") == "2"
    });
    assert!(before.starts_with(&keys(&site)[..32]));
}

fn a_file_that_is_replaced_a_thousand_times_ends_as_the_last(kind: Kind) {
    let site = rates(kind, "id,name,value\n1,0,0\n");
    for number in 1..=1_000 {
        replace(&site, "rate.csv", &format!("id,name,value\n1,{number},0\n"));
    }
    shows(&site, "/rates/1", "1000 0.0");
    assert_eq!(site.text("select count(*) || '' from rate"), "1");
    assert_eq!(site.text("select count(*) || '' from _millpond_data"), "1");
}

fn files_that_refer_to_each_other_come_in_the_right_order(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            (
                "migrations/0002_data.sql",
                "create table writer (id integer primary key, name text, _file text not null);
                 create table book (id integer primary key, writer_id integer references writer (id), _file text not null);",
            ),
            ("data/book.csv", "id,writer_id\n1,1\n"),
            ("data/writer.csv", "id,name\n1,W\n"),
        ],
    );
    assert_eq!(site.text("select count(*) || '' from book"), "1");
    // A writer who is needed stays, until the book is gone.
    fs::write(path(&site, "writer.csv"), "id,name\n2,X\n").unwrap();
    fs::write(path(&site, "writer.json"), "[]").unwrap();
    fs::remove_file(path(&site, "writer.json")).unwrap();
    assert_eq!(site.text("select max(name) from writer"), "W");
    fs::write(path(&site, "book.csv"), "id,writer_id\n").unwrap();
    site.until("both are new", || {
        site.text("select max(name) || count(*) from writer") == "X1"
    });
    assert_eq!(site.text("select count(*) || '' from book"), "0");
}

fn what_changed_while_the_site_was_away_is_applied_at_its_start(kind: Kind) {
    if matches!(kind, Kind::Postgres) {
        // The order of files of several nodes is another test.
        return;
    }
    let site = TestSite::new(&[
        ("migrations/0002_data_rate.sql", RATES),
        ("data/rate.csv", "id,name,value\n1,one,1\n"),
        ("pages/rates/[id].sql", RATE_SQL),
        ("pages/rates/[id].html", RATE_HTML),
    ]);
    assert_eq!(site.get("/rates/1").body, "one 1.0");
    let applied = |site: &TestSite| -> String {
        let read = "select hash || version from _millpond_data";
        site.foreign()
            .query_row(read, [], |row| row.get(0))
            .unwrap()
    };
    let before = applied(&site);
    let site = site.restart(&[]);
    assert_eq!(applied(&site), before, "it was applied once more");
    let site = site.restart(&[("data/rate.csv", "id,name,value\n1,uno,1\n")]);
    assert_eq!(site.get("/rates/1").body, "uno 1.0");
    fs::remove_file(path(&site, "rate.csv")).unwrap();
    shows(&site, "/rates/1", "none");
    let site = site.restart(&[("data/rate.json", "{\"id\": 1, \"name\": \"one\"}")]);
    assert_eq!(site.get("/rates/1").body, "one ");
}
