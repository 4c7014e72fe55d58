//! Files of one table with the same key: their names alone decide which of them has the row, on
//! both databases.

use std::{
    fs,
    sync::{Mutex, PoisonError},
};

use millpond_site::{Config, Problem, SiteOptions, check};

use crate::{
    both::{Housed, Kind, on_both},
    postgres,
    support::{self, TestSite},
};

on_both!(
    the_first_by_name_has_the_row_in_any_order_of_time,
    a_file_that_is_refused_for_another_cause_takes_no_row,
);

const POSTS: &str = "create table post (slug text primary key, title text, word text unique,
    visits integer not null default 0, body text, _file text not null);
    create table said (slug text not null references post (slug) on delete cascade);";

fn write(site: &TestSite, name: &str, text: &str) {
    fs::write(site.dir.path().join("data/post").join(name), text).unwrap();
}

fn remove(site: &TestSite, name: &str) {
    fs::remove_file(site.dir.path().join("data/post").join(name)).unwrap();
}

/// All rows.
fn rows(site: &Housed) -> String {
    let list = "select coalesce((select string_agg(line, ', ') from (select _file || ' ' || slug || ' ' || coalesce(title, '-')
        || ' ' || visits as line from post order by slug) as r), '')";
    site.text(list)
}

fn becomes(site: &Housed, expected: &str) {
    site.until(&format!("the rows are {expected:?}"), || {
        rows(site) == expected
    });
}

fn post(slug: &str, title: &str) -> String {
    format!("---\nslug: {slug}\ntitle: {title}\n---\n")
}

fn the_first_by_name_has_the_row_in_any_order_of_time(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            ("migrations/0002_data_post.sql", POSTS),
            ("data/post/c.md", &post("x", "C")),
            ("data/post/d.md", &post("y", "D")),
        ],
    );
    site.run("update post set visits = 7; insert into said values ('x')");
    assert_eq!(rows(&site), "post/c.md x C 7, post/d.md y D 7");
    // What comes later by name waits, what comes before takes the row, with what refers to it.
    write(&site, "e.md", &post("x", "E"));
    write(&site, "d.md", &post("y", "D2"));
    becomes(&site, "post/c.md x C 7, post/d.md y D2 7");
    write(&site, "b.md", &post("x", "B"));
    becomes(&site, "post/b.md x B 7, post/d.md y D2 7");
    write(&site, "a.md", &post("x", "A"));
    becomes(&site, "post/a.md x A 7, post/d.md y D2 7");
    assert_eq!(site.text("select count(*) || '' from said"), "1");
    // A file that waits does not come in by a change of its own.
    write(&site, "b.md", &post("x", "B2"));
    write(&site, "d.md", &post("y", "D3"));
    becomes(&site, "post/a.md x A 7, post/d.md y D3 7");
    // It does once the first has another key, or is gone.
    write(&site, "a.md", &post("z", "A"));
    becomes(&site, "post/b.md x B2 0, post/d.md y D3 7, post/a.md z A 0");
    remove(&site, "b.md");
    becomes(&site, "post/c.md x C 0, post/d.md y D3 7, post/a.md z A 0");
}

fn a_file_that_is_refused_for_another_cause_takes_no_row(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            ("migrations/0002_data_post.sql", POSTS),
            ("data/post/b.md", "---\nslug: x\ntitle: B\n---\n"),
            ("data/post/c.md", "---\nslug: y\nword: w\ntitle: C\n---\n"),
        ],
    );
    // It has the slug of a file behind it, and a word of another that does not give way.
    site.run("insert into post (slug, word, _file) values ('own', 'v', 'none')");
    write(&site, "a.md", "---\nslug: x\nword: v\ntitle: A\n---\n");
    write(&site, "c.md", "---\nslug: y\nword: w\ntitle: C2\n---\n");
    becomes(&site, "none own - 0, post/b.md x B 0, post/c.md y C2 0");
    write(&site, "b.md", "---\nslug: x\ntitle: B2\n---\n");
    becomes(&site, "none own - 0, post/b.md x B2 0, post/c.md y C2 0");
    // Of each row that it needs, the file that has it comes behind.
    write(&site, "a.md", "---\nslug: x\nword: w\ntitle: A\n---\n");
    becomes(&site, "none own - 0, post/a.md x A 0");
}

static LOG: Mutex<String> = Mutex::new(String::new());

fn log() -> String {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[test]
fn serve_and_check_name_the_same_file_also_after_a_restart() {
    let options = || SiteOptions {
        log: |line| *LOG.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n"),
        ..SiteOptions::default()
    };
    let dir = support::folder(&[
        ("migrations/0002_data_post.sql", POSTS),
        ("data/post/b.md", &post("x", "B")),
    ]);
    let site = TestSite::open(dir, options());
    write(&site, "a.md", &post("x", "A"));
    let fault = "data/post/b.md:2:1: data/post/a.md has the same slug, \"x\", and comes first by name, so its row counts\n  \
                 hint: give one of both another slug";
    site.until("the later one is named", || log().contains(fault));
    assert_eq!(log().matches(fault).count(), 1, "{}", log());
    let checked = |site: &TestSite| {
        let config = Config::read(site.dir.path()).unwrap();
        let problems = check(site.dir.path(), &config).unwrap_err();
        let problems = problems.iter().map(Problem::to_string);
        problems.collect::<Vec<String>>()
    };
    assert_eq!(checked(&site), [fault]);
    let site = site.restart(&[]);
    assert_eq!(checked(&site), [fault]);
    let row = "select _file || ' ' || title from post";
    let row: String = site.foreign().query_row(row, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "post/a.md A");
    // The file that has waited comes in while the site runs.
    remove(&site, "a.md");
    let row = "select coalesce(max(_file || ' ' || title), '') from post";
    site.until("the other one has the row", || {
        let row: String = site.foreign().query_row(row, [], |row| row.get(0)).unwrap();
        row == "post/b.md B"
    });
}

#[test]
fn nodes_of_one_folder_agree_on_the_file_that_has_the_row() {
    let database = postgres::database();
    let text = |title: &str| post("x", title);
    let files = [
        ("migrations/0002_data_post.sql", POSTS),
        ("data/post/c.md", &*text("C")),
    ];
    let first = TestSite::open(postgres::folder(&database, &files), SiteOptions::default());
    let second = TestSite::open(postgres::folder(&database, &files), SiteOptions::default());
    let row = || -> String {
        let sql = "select coalesce(string_agg(_file || ' ' || title, ', '), '') from post";
        postgres::client(&database)
            .query_one(sql, &[])
            .unwrap()
            .get(0)
    };
    assert_eq!(row(), "post/c.md C");
    for node in [&second, &first] {
        write(node, "a.md", &text("A"));
    }
    first.until("the first by name has it", || row() == "post/a.md A");
    let second = second.restart(&[]);
    assert_eq!(row(), "post/a.md A");
    for node in [&first, &second] {
        write(node, "b.md", &text("B"));
        remove(node, "a.md");
    }
    first.until("the next by name has it", || row() == "post/b.md B");
}
