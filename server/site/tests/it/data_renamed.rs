//! Files that get another name: their rows stay, with what refers to them and what is the owner's,
//! and have nothing of the former content; on both databases.

use std::{fs, path::PathBuf};

use millpond_site::SiteOptions;

use crate::{
    both::{Housed, Kind, on_both},
    postgres,
    support::TestSite,
};

on_both!(
    what_a_renamed_file_says_no_more_is_as_in_a_new_row,
    of_merged_files_each_row_keeps_what_its_file_did_not_fill,
    the_row_stays_for_a_renamed_file_that_has_a_fault,
    a_file_that_waits_for_a_key_takes_the_row_over,
    a_file_that_replaces_another_keeps_its_own_columns,
    files_that_exchange_their_names_exchange_their_rows,
    the_rest_of_a_file_goes_once_another_has_taken_its_part,
    a_file_comes_back_whole_after_a_part_of_it_was_taken,
);

const POSTS: &str = "create table post (slug text primary key, title text check (title <> 'X'), draft integer not null default 0,
    day text, visits integer not null default 0, body text, _file text not null);
    create table said (slug text not null references post (slug) on delete cascade);";

const FULL: &str = "---\nslug: a\ntitle: A\ndraft: true\nday: 2026-01-31\n---\nText";
const SHORT: &str = "---\nslug: a\n---\nMoved";

fn path(site: &TestSite, name: &str) -> PathBuf {
    site.dir.path().join("data").join(name)
}

fn write(site: &TestSite, name: &str, text: &str) {
    fs::write(path(site, name), text).unwrap();
}

fn remove(site: &TestSite, name: &str) {
    fs::remove_file(path(site, name)).unwrap();
}

fn posts(kind: Kind, files: &[(&str, &str)]) -> Housed {
    let migration = ("migrations/0002_data_post.sql", POSTS);
    let site = Housed::new(kind, &[&[migration], files].concat());
    site.run("insert into said (slug) values ('a'); update post set visits = 7 where slug = 'a'");
    site
}

/// The row with the slug `a`, and how many remarks there are.
fn becomes(site: &Housed, expected: &str) {
    let row = "select coalesce((select _file || ' ' || coalesce(title, '-') || ' ' || draft || ' ' || coalesce(day, '-') || ' '
        || visits || ' ' || body from post where slug = 'a'), 'none') || ', ' || (select count(*) from said)";
    site.until(&format!("the row is {expected:?}"), || {
        site.text(row) == expected
    });
}

fn what_a_renamed_file_says_no_more_is_as_in_a_new_row(kind: Kind) {
    let files = [
        ("data/post/a.md", FULL),
        ("data/post/z.md", "---\nvisits: 9\n---\n"),
    ];
    let site = posts(kind, &files);
    becomes(&site, "post/a.md A 1 2026-01-31 7 Text, 1");
    // Both are gone at once; what the one has filled is the owner's in the row of the other.
    remove(&site, "post/z.md");
    remove(&site, "post/a.md");
    write(&site, "post/b.md", SHORT);
    becomes(&site, "post/b.md - 0 - 7 Moved, 1");
    // While the site is down, too.
    let site = site.restart_after(|dir| {
        fs::remove_file(dir.join("data/post/b.md")).unwrap();
        fs::write(dir.join("data/post/c.md"), FULL).unwrap();
    });
    becomes(&site, "post/c.md A 1 2026-01-31 7 Text, 1");
    let site = site.restart_after(|dir| {
        fs::remove_file(dir.join("data/post/c.md")).unwrap();
        fs::write(dir.join("data/post/d.md"), SHORT).unwrap();
    });
    becomes(&site, "post/d.md - 0 - 7 Moved, 1");
}

fn of_merged_files_each_row_keeps_what_its_file_did_not_fill(kind: Kind) {
    let table = "create table rate (id integer primary key, rate integer, visits integer default 0, _file text not null);";
    let files = [
        ("migrations/0002_data_rate.sql", table),
        ("data/rate/x.csv", "id,rate\n1,5\n"),
        ("data/rate/y.csv", "id,rate,visits\n2,5,3\n"),
    ];
    let site = Housed::new(kind, &files);
    site.run("update rate set visits = 7 where id = 1");
    remove(&site, "rate/x.csv");
    remove(&site, "rate/y.csv");
    write(&site, "rate/z.csv", "id,rate\n1,6\n2,6\n3,6\n");
    let rows = "select coalesce(string_agg(line, ', '), '') from
        (select id || ' ' || rate || ' ' || visits as line from rate where _file = 'rate/z.csv' order by id) as r";
    site.until("they are merged", || {
        site.text(rows) == "1 6 7, 2 6 0, 3 6 0"
    });
}

fn the_row_stays_for_a_renamed_file_that_has_a_fault(kind: Kind) {
    let site = posts(
        kind,
        &[("data/post/a.md", FULL), ("data/post/other.md", "")],
    );
    // A slip of a key, what the table refuses, and what is no YAML: the name says the slug then.
    let faults = [
        ("b.md", "---\nslug: a\ntitel: B\n---\n"),
        ("c.md", "---\nslug: a\ntitle: X\n---\n"),
        ("d/a.md", "---\ntitle: [\n---\n"),
    ];
    fs::create_dir(path(&site, "post/d")).unwrap();
    let mut former = "a.md";
    for (at, (file, fault)) in faults.into_iter().enumerate() {
        write(&site, &format!("post/{file}"), fault);
        remove(&site, &format!("post/{former}"));
        former = file;
        // A file that comes and goes says that the others were looked at.
        write(&site, "post/other.md", &format!("---\nslug: z{at}\n---\n"));
        let other = format!("select count(*) || '' from post where slug = 'z{at}'");
        site.until("the other one is applied", || site.text(&other) == "1");
        // Where a new file cannot be read, no row of its table goes.
        if at < 2 {
            remove(&site, "post/other.md");
            site.until("the other one is gone", || site.text(&other) == "0");
        }
        becomes(&site, "post/a.md A 1 2026-01-31 7 Text, 1");
    }
    write(&site, "post/d/a.md", "Moved");
    becomes(&site, "post/d/a.md - 0 - 7 Moved, 1");
    remove(&site, "post/d/a.md");
    becomes(&site, "none, 0");
}

fn a_file_that_waits_for_a_key_takes_the_row_over(kind: Kind) {
    let site = posts(kind, &[("data/post/a.md", FULL), ("data/post/b.md", SHORT)]);
    becomes(&site, "post/a.md A 1 2026-01-31 7 Text, 1");
    remove(&site, "post/a.md");
    becomes(&site, "post/b.md - 0 - 7 Moved, 1");
}

fn page(slug: &str, title: &str) -> String {
    format!("---\nslug: {slug}\ntitle: {title}\n---\nText")
}

fn rename(site: &TestSite, from: &str, to: &str) {
    fs::rename(path(site, from), path(site, to)).unwrap();
}

/// All rows of a table, until they are these.
fn rows_become(site: &Housed, row: &str, table: &str, expected: &str) {
    let rows = format!(
        "select coalesce((select string_agg(line, ', ') from (select {row} as line from {table} order by 1) as r), '')"
    );
    site.until(&format!("the rows are {expected:?}"), || {
        site.text(&rows) == expected
    });
}

const POST: &str = "slug || ' ' || _file || ' ' || title || ' ' || visits || ' ' || (select count(*) from said where said.slug = post.slug)";

fn a_file_that_replaces_another_keeps_its_own_columns(kind: Kind) {
    let other = "---\nslug: b\ntitle: B\nvisits: 3\n---\n";
    let files = [
        ("data/post/a.md", &*page("a", "A")),
        ("data/post/b.md", other),
    ];
    let site = posts(kind, &files);
    rename(&site, "post/a.md", "post/b.md");
    rows_become(&site, POST, "post", "a post/b.md A 7 1");
    // Also if it has a fault at first.
    write(&site, "post/c.md", &page("c", "C"));
    rows_become(&site, POST, "post", "a post/b.md A 7 1, c post/c.md C 0 0");
    write(&site, "post/c.md", &page("a", "X"));
    remove(&site, "post/b.md");
    write(&site, "post/o.md", &page("o", "O"));
    let still = "a post/b.md A 7 1, c post/c.md C 0 0, o post/o.md O 0 0";
    rows_become(&site, POST, "post", still);
    write(&site, "post/c.md", &page("a", "Z"));
    rows_become(&site, POST, "post", "a post/c.md Z 7 1, o post/o.md O 0 0");
}

fn files_that_exchange_their_names_exchange_their_rows(kind: Kind) {
    let files = [
        ("data/post/a.md", &*page("a", "A")),
        ("data/post/b.md", &*page("b", "B")),
    ];
    let site = posts(kind, &files);
    site.run("update post set visits = 7; insert into said (slug) values ('b')");
    rename(&site, "post/b.md", "post/.c");
    rename(&site, "post/a.md", "post/b.md");
    rename(&site, "post/.c", "post/a.md");
    rows_become(&site, POST, "post", "a post/b.md A 7 1, b post/a.md B 7 1");
    // One name moves on after the other.
    rename(&site, "post/b.md", "post/c.md");
    rename(&site, "post/a.md", "post/b.md");
    rows_become(&site, POST, "post", "a post/c.md A 7 1, b post/b.md B 7 1");
}

const RATES: &str = "create table rate (id integer primary key, code text unique check (code <> 'X'), visits integer not null default 0,
    _file text not null);";
const RATE: &str = "id || ' ' || _file || ' ' || code || ' ' || visits";

fn the_rest_of_a_file_goes_once_another_has_taken_its_part(kind: Kind) {
    let files = [
        ("migrations/0002_data_rate.sql", RATES),
        ("data/rate/a.csv", "id,code\n1,p\n5,q\n"),
        ("data/rate/z.csv", "id,code\n9,x\n"),
    ];
    let site = Housed::new(kind, &files);
    site.run("update rate set visits = 7");
    remove(&site, "rate/a.csv");
    remove(&site, "rate/z.csv");
    // Its code is that of a row which is still there when it is first applied.
    write(&site, "rate/c.csv", "id,code\n1,x\n");
    rows_become(&site, RATE, "rate", "1 rate/c.csv x 7");
}

fn a_file_comes_back_whole_after_a_part_of_it_was_taken(kind: Kind) {
    let text = "id,code\n1,p\n2,q\n";
    let files = [
        ("migrations/0002_data_rate.sql", RATES),
        ("data/rate/x.csv", text),
    ];
    let site = Housed::new(kind, &files);
    site.run("update rate set visits = 7");
    rename(&site, "rate/x.csv", "rate/.x");
    write(&site, "rate/y.csv", "id,code\n1,p\n");
    write(&site, "rate/z.csv", "id,code\n2,X\n");
    rows_become(&site, RATE, "rate", "1 rate/y.csv p 7, 2 rate/x.csv q 7");
    rename(&site, "rate/.x", "rate/x.csv");
    remove(&site, "rate/y.csv");
    remove(&site, "rate/z.csv");
    rows_become(&site, RATE, "rate", "1 rate/x.csv p 7, 2 rate/x.csv q 7");
}

#[test]
fn a_node_removes_only_what_it_had() {
    let database = postgres::database();
    let node = |files: &[(&str, &str)]| {
        let migration = ("migrations/0002_data_post.sql", POSTS);
        let dir = postgres::folder(&database, &[&[migration], files].concat());
        TestSite::open(dir, SiteOptions::default())
    };
    let z = page("z", "Z");
    let old = node(&[("data/post/a.md", &page("a", "A")), ("data/post/z.md", &z)]);
    let new = node(&[
        ("data/post/b.md", &page("a", "B")),
        ("data/post/n.md", &page("n", "N")),
        ("data/post/z.md", &z),
    ]);
    let mut client = postgres::client(&database);
    let mut rows = || -> String {
        let sql =
            "select string_agg(slug || ' ' || _file || ' ' || title, ', ' order by slug) from post";
        client.query_one(sql, &[]).unwrap().get(0)
    };
    let after = "a post/b.md B, n post/n.md N, z post/z.md";
    new.until("the new ones are applied", || {
        rows() == format!("{after} Z")
    });
    // The other files are missing in its folder, which is older than they are.
    for title in ["Z2", "Z3"] {
        write(&old, "post/z.md", &page("z", title));
        old.until("the old one is applied", || {
            rows() == format!("{after} {title}")
        });
    }
}

#[test]
fn two_nodes_that_see_many_files_renamed_agree() {
    const FILES: usize = 60;
    let database = postgres::database();
    let folder = lab_testkit::fast_dir();
    let path = |name: String| folder.path().join(name);
    for file in 0..FILES {
        fs::write(path(format!("a{file}.md")), FULL.replace("slug: a\n", "")).unwrap();
    }
    let node = || {
        let dir = postgres::folder(&database, &[("migrations/0002_data_post.sql", POSTS)]);
        let settings = dir.path().join("millpond.toml");
        let mut text = fs::read_to_string(&settings).unwrap();
        let elsewhere = folder.path().display();
        text += &format!("\n[[data]]\ntable = \"post\"\nfolder = \"{elsewhere}\"\n");
        fs::write(settings, text).unwrap();
        TestSite::open(dir, SiteOptions::default())
    };
    let nodes = [node(), node()];
    let mut client = postgres::client(&database);
    let mut count = |condition: &str| -> i64 {
        let sql = format!("select count(*) from post where {condition}");
        client.query_one(&sql, &[]).unwrap().get(0)
    };
    let all = i64::try_from(FILES).unwrap();
    assert_eq!(count("title = 'A' and draft = 1"), all);
    for file in 0..FILES {
        fs::remove_file(path(format!("a{file}.md"))).unwrap();
        let text = format!("---\nslug: a{file}\n---\nMoved");
        fs::write(path(format!("b{file}.md")), text).unwrap();
    }
    let is_applied = "body = 'Moved' and _file like 'post/b%'";
    nodes[0].until("all are applied", || count(is_applied) == all);
    // Each node has looked at all of them once it has applied what came later.
    for (at, node) in nodes.iter().enumerate() {
        fs::write(path(format!("last{at}.md")), "").unwrap();
        let last = format!("_file = 'post/last{at}.md'");
        node.until("the last one is applied", || count(&last) == 1);
    }
    assert_eq!(
        count("title is null and draft = 0 and day is null"),
        all + 2
    );
}
