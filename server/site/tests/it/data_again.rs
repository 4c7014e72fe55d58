//! The same files give the same table, with any rows that were there before; on both databases.

use std::{fs, path::PathBuf};

use crate::{
    both::{Housed, Kind, on_both},
    support::TestSite,
};

on_both!(
    what_a_file_says_no_more_is_as_in_a_new_row,
    what_refers_to_a_row_stays_when_its_file_gets_another_name,
    rows_stay_where_the_folder_of_their_table_is_gone,
);

const POSTS: &str = "create table post (slug text primary key, title text, draft integer not null default 0, day text,
    visits integer not null default 0, body text, _file text not null);";

const FULL: &str = "---\ntitle: A\ndraft: true\nday: 2026-01-31\n---\nText\n";

fn path(site: &TestSite, name: &str) -> PathBuf {
    site.dir.path().join("data").join(name)
}

fn row(site: &Housed) -> String {
    site.text(
        "select coalesce((select slug || ' ' || coalesce(title, '-') || ' ' || draft || ' ' || coalesce(day, '-') || ' '
         || visits || ' ' || body from post where slug = 'a'), 'none')",
    )
}

fn becomes(site: &Housed, expected: &str) {
    site.until(&format!("the row is {expected:?}"), || {
        row(site).trim() == expected
    });
}

fn what_a_file_says_no_more_is_as_in_a_new_row(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            ("migrations/0002_data_post.sql", POSTS),
            ("data/post/a.md", FULL),
        ],
    );
    assert_eq!(row(&site).trim(), "a A 1 2026-01-31 0 Text");
    // A column that no file fills is the site's own.
    site.run("update post set visits = 7");
    fs::write(path(&site, "post/a.md"), "---\ntitle: A\n---\nText\n").unwrap();
    becomes(&site, "a A 0 - 7 Text");
    fs::write(path(&site, "post/a.md"), FULL).unwrap();
    becomes(&site, "a A 1 2026-01-31 7 Text");
    fs::write(path(&site, "post/a.md"), "").unwrap();
    becomes(&site, "a - 0 - 7");
    // What is reset is the owner's from then on.
    site.run("update post set draft = 5");
    fs::write(path(&site, "post/a.md"), "---\ntitle: B\n---\nText\n").unwrap();
    becomes(&site, "a B 5 - 7 Text");
}

fn rows_stay_where_the_folder_of_their_table_is_gone(kind: Kind) {
    let site = Housed::new(
        kind,
        &[
            ("migrations/0002_data_post.sql", POSTS),
            (
                "migrations/0003_data_rate.sql",
                "create table rate (id integer primary key, _file text not null);",
            ),
            ("data/post/a.md", FULL),
            ("data/rate.csv", "id\n1\n"),
        ],
    );
    let away = site.dir.path().join("away");
    fs::rename(path(&site, "post"), &away).unwrap();
    // What comes later is applied later, after longer than a file may be away. That nothing goes
    // is no event to wait for.
    for last in ["2", "3"] {
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::write(path(&site, "rate.csv"), format!("id\n{last}\n")).unwrap();
        site.until("the other file is applied", || {
            site.text("select max(id) || '' from rate") == last
        });
    }
    assert_eq!(row(&site).trim(), "a A 1 2026-01-31 0 Text");
    // An empty folder has no rows.
    fs::create_dir(path(&site, "post")).unwrap();
    site.until("the rows are gone", || {
        site.text("select count(*) || '' from post") == "0"
    });
    fs::remove_dir(path(&site, "post")).unwrap();
    fs::rename(&away, path(&site, "post")).unwrap();
    becomes(&site, "a A 1 2026-01-31 0 Text");
}

fn what_refers_to_a_row_stays_when_its_file_gets_another_name(kind: Kind) {
    let comments = "create table said (id integer primary key, slug text not null references post (slug) on delete cascade);";
    let site = Housed::new(
        kind,
        &[
            ("migrations/0002_data_post.sql", POSTS),
            ("migrations/0003_said.sql", comments),
            ("data/post/a.md", FULL),
            ("data/post/b.md", "---\nslug: own\n---\nOld"),
        ],
    );
    site.run("insert into said (id, slug) values (1, 'a'), (2, 'own')");
    site.run("update post set visits = 3");
    fs::create_dir(path(&site, "post/2026")).unwrap();
    fs::rename(path(&site, "post/a.md"), path(&site, "post/2026/a.md")).unwrap();
    fs::remove_file(path(&site, "post/b.md")).unwrap();
    fs::write(path(&site, "post/c.md"), "---\nslug: own\n---\nNew").unwrap();
    let files = |site: &Housed| {
        let of = |slug: &str| {
            site.text(&format!(
                "select coalesce((select _file || ' ' || visits || ' ' || body from post where slug = '{slug}'), 'none')"
            ))
        };
        format!("{}, {}", of("a").trim(), of("own").trim())
    };
    site.until("both are of new files", || {
        files(&site) == "post/2026/a.md 3 Text, post/c.md 3 New"
    });
    assert_eq!(site.text("select count(*) || '' from said"), "2");
    // What is gone without another name is gone with what refers to it.
    fs::remove_file(path(&site, "post/c.md")).unwrap();
    site.until("one is left", || {
        site.text("select count(*) || '' from said") == "1"
    });
}
