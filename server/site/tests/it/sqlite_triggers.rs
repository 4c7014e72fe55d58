//! A site on SQLite with triggers that record the changes of other programs.

use millpond_db::FeedKind;
use millpond_site::{Config, Site, SiteOptions, check, repair};

use crate::support::{TestSite, folder};

const FILES: [(&str, &str); 4] = [
    (
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\nfeed = \"triggers\"\n[cache]\nrefresh_ahead = 0\n",
    ),
    (
        "migrations/0002_remark.sql",
        "create table remark (id integer primary key, article_id integer, who text);
         insert into remark values (1, 1, 'Ann'), (2, 2, 'Bo');",
    ),
    (
        "pages/a.sql",
        "-- name: who :many\nselect who from remark where article_id = :id order by id;\n",
    ),
    ("pages/a.html", "{% for c in who %}{{ c.who }},{% endfor %}"),
];

#[test]
fn a_commit_of_another_program_ends_the_pages_that_show_its_rows() {
    let dir = folder(&FILES);
    let config = Config::read(dir.path()).unwrap();
    assert_eq!(check(dir.path(), &config).unwrap().requirements, []);
    let mut logical = config.clone();
    logical.feed = FeedKind::Logical;
    Site::open(dir.path(), &logical, SiteOptions::default())
        .unwrap_or_else(|_| panic!("good"))
        .stop();
    let lacking = check(dir.path(), &config).unwrap().requirements;
    assert!(lacking.len() > 1 && lacking.iter().all(|lacking| lacking.may_fix));
    repair(dir.path(), &config, &lacking, |_| {}).unwrap();
    assert_eq!(check(dir.path(), &config).unwrap().requirements, []);

    check_precision(&TestSite::open(dir, SiteOptions::default()));
}

/// *Counterexample*: `check` found nothing to add before the database was there, and `serve` made
/// it without triggers.
#[test]
fn a_new_database_has_the_triggers_and_keeps_them_with_each_migration() {
    let dir = folder(&FILES);
    let config = Config::read(dir.path()).unwrap();
    let open = || {
        let site = Site::open(dir.path(), &config, SiteOptions::default());
        site.unwrap_or_else(|_| panic!("good")).stop();
        assert_eq!(check(dir.path(), &config).unwrap().requirements, []);
    };
    open();
    let later =
        "alter table remark add column at text; create table more (id integer primary key);";
    std::fs::write(dir.path().join("migrations/0003_more.sql"), later).unwrap();
    open();
    let file = rusqlite::Connection::open(dir.path().join("site.db")).unwrap();
    let recorded = "select count(distinct tbl_name) from sqlite_schema where type = 'trigger' and name like '%millpond%' and tbl_name in ('remark', 'more')";
    let tables: i64 = file.query_row(recorded, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 2);
    drop(file);
    check_precision(&TestSite::open(dir, SiteOptions::default()));
}

/// A commit of another program ends the pages that show its rows.
fn check_precision(site: &TestSite) {
    for id in [1, 2] {
        let page = format!("/a?id={id}");
        site.until("a hit", || site.get(&page).cache() == "hit");
    }
    let update = "update remark set who = 'Cy' where id = 1";
    site.foreign().execute_batch(update).unwrap();
    site.until("the change", || site.get("/a?id=1").body == "Cy,");
    assert_eq!(site.get("/a?id=2").cache(), "hit");
    assert_eq!(site.get("/a?id=2").body, "Bo,");
}

#[test]
fn check_says_which_tables_count_as_a_whole() {
    let mut files = FILES.to_vec();
    files[1].1 = "create table remark (id integer primary key, article_id integer, who text);
         create unique index first on remark (article_id) where who = 'Ann';
         create table plain (id integer primary key);";
    files.push((
        "pages/b.sql",
        "-- name: p :many\nselect id from plain where id = :id;\n",
    ));
    let dir = folder(&files);
    let config = Config::read(dir.path()).unwrap();
    let notes = check(dir.path(), &config).unwrap().notes;
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let said = "each change to remark by another program ends all pages that read it, as remark has a unique index that is partial";
    assert!(notes[0].contains(said), "{notes:?}");
}
