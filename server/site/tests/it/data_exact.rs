//! Files as tables: nothing is lost, cut or mixed up, on both databases.

use std::{fs, io::Write as _, path::PathBuf, sync::Mutex, time::Duration};

use base_clock::Boottime;
use millpond_site::{Config, SiteOptions, missing_tables, write_migrations};

use crate::{
    both::{Housed, Kind, on_both},
    postgres,
    support::TestSite,
};

on_both!(
    equal_rows_of_two_files_are_two_rows,
    a_file_that_is_missing_for_a_moment_keeps_what_refers_to_its_rows,
    a_renamed_file_has_its_rows_once,
    a_change_of_case_is_a_change,
    a_file_that_is_truncated_in_place_is_read_when_its_writer_is_done,
    a_moment_is_the_same_in_a_file_and_in_a_parameter,
    a_large_number_is_not_put_into_a_text,
    a_row_that_the_table_refuses_is_named_by_its_line,
);

fn path(site: &TestSite, name: &str) -> PathBuf {
    site.dir.path().join("data").join(name)
}

/// A site with a table and files, and a page that lists them.
fn site(kind: Kind, table: &str, files: &[(&str, &str)]) -> Housed {
    let mut all = vec![
        ("migrations/0002_data.sql", table),
        (
            "migrations/0003_last.sql",
            "create table z (id integer primary key, _file text not null);",
        ),
        ("data/z.csv", "id\n0\n"),
    ];
    all.extend_from_slice(files);
    Housed::new(kind, &all)
}

fn holds(site: &Housed, sql: &str, value: &str) {
    site.until(&format!("{sql} is {value:?}"), || site.text(sql) == value);
}

/// Waits until the folder was looked at after this was written.
fn was_looked_at(site: &Housed) {
    let next = site.text("select (max(id) + 1) || '' from z");
    fs::write(path(site, "z.csv"), format!("id\n{next}\n")).unwrap();
    holds(site, "select max(id) || '' from z", &next);
}

fn equal_rows_of_two_files_are_two_rows(kind: Kind) {
    let site = site(
        kind,
        "create table line (_key text primary key, what text, n integer, _file text not null);",
        &[
            ("data/line/a.csv", "what,n\nx,1\nx,1\n"),
            ("data/line/b.csv", "what,n\nx,1\n"),
        ],
    );
    assert_eq!(site.text("select count(*) || '' from line"), "3");
    fs::write(path(&site, "line/c.csv"), "what,n\nx,1\ny,1\n").unwrap();
    holds(&site, "select count(*) || '' from line", "5");
    fs::remove_file(path(&site, "line/a.csv")).unwrap();
    holds(&site, "select count(*) || '' from line", "3");
}

const TALK: &str = "create table post (slug text primary key, title text, _file text not null);
    create table note (post text references post (slug) on delete cascade, text text);";

/// A file that is missing for less than this is not gone.
const GONE: Duration = Duration::from_millis(250);

fn a_file_that_is_missing_for_a_moment_keeps_what_refers_to_its_rows(kind: Kind) {
    let site = site(
        kind,
        TALK,
        &[
            ("data/post/a.md", "---\ntitle: A\n---\n"),
            ("data/post/b.md", "---\ntitle: B\n---\n"),
        ],
    );
    site.run("insert into note values ('a', 'of a visitor')");
    let mut longest = Duration::ZERO;
    for number in 0..20 {
        let removed = Boottime::now();
        fs::remove_file(path(&site, "post/a.md")).unwrap();
        std::thread::sleep(Duration::from_millis(number));
        let title = format!("---\ntitle: A{number}\n---\n");
        fs::write(path(&site, "post/a.md"), title).unwrap();
        longest = longest.max(Boottime::now().since(removed));
    }
    holds(&site, "select title from post where slug = 'a'", "A19");
    // On a machine that stood still for longer the file was gone.
    match longest < GONE {
        true => assert_eq!(site.text("select count(*) || '' from note"), "1"),
        false => {
            site.run("delete from note; insert into note values ('a', 'of a visitor')");
        }
    }
    fs::remove_file(path(&site, "post/a.md")).unwrap();
    holds(&site, "select count(*) || '' from note", "0");
    holds(&site, "select count(*) || '' from post", "1");
}

fn a_renamed_file_has_its_rows_once(kind: Kind) {
    let site = site(
        kind,
        "create table rate (id integer primary key, name text, _file text not null);",
        &[("data/rate.csv", "id,name\n1,one\n2,two\n")],
    );
    fs::rename(path(&site, "rate.csv"), path(&site, "rate.tsv")).unwrap();
    fs::write(path(&site, "rate.tsv"), "id\tname\n1\tone\n3\tthree\n").unwrap();
    holds(
        &site,
        "select coalesce(min(_file) || sum(id), '') from rate",
        "rate.tsv4",
    );
    fs::rename(path(&site, "rate.tsv"), site.dir.path().join("away.tsv")).unwrap();
    holds(&site, "select count(*) || '' from rate", "0");
}

fn a_change_of_case_is_a_change(kind: Kind) {
    let folds = match kind {
        Kind::Sqlite => "text collate nocase",
        Kind::Postgres => "text collate folds",
    };
    let table = format!(
        "create table word (w {folds} primary key, means {folds}, own text, _file text not null);"
    );
    let collation = "create collation folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false);";
    let table = match kind {
        Kind::Sqlite => table,
        Kind::Postgres => format!("{collation} {table}"),
    };
    let site = site(
        kind,
        &table,
        &[("data/word.csv", "w,means\nsun,star\nmoon,rock\n")],
    );
    site.run("update word set own = 'kept'");
    fs::write(path(&site, "word.csv"), "w,means\nSun,Star\nmoon,rock\n").unwrap();
    holds(
        &site,
        "select max(w || means || own) from word where w = 'sun'",
        "SunStarkept",
    );
    // Two rows with one key, by the rules of the table.
    fs::write(path(&site, "word.csv"), "w,means\nsun,a\nSUN,b\n").unwrap();
    was_looked_at(&site);
    assert_eq!(
        site.text("select max(means) || count(*) from word"),
        "Star2"
    );
}

fn a_file_that_is_truncated_in_place_is_read_when_its_writer_is_done(kind: Kind) {
    let site = site(
        kind,
        "create table rate (id integer primary key, name text, _file text not null);",
        &[("data/rate.csv", "id,name\n1,one\n2,two\n")],
    );
    let file = fs::OpenOptions::new()
        .write(true)
        .open(path(&site, "rate.csv"))
        .unwrap();
    file.set_len(14).unwrap();
    for _ in 0..30 {
        fs::write(path(&site, "other.txt"), "x").unwrap();
        assert_eq!(site.text("select count(*) || '' from rate"), "2");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(file);
    holds(&site, "select count(*) || '' from rate", "1");
}

fn a_row_that_the_table_refuses_is_named_by_its_line(kind: Kind) {
    static LOG: Mutex<String> = Mutex::new(String::new());
    let options = SiteOptions {
        log: |line| *LOG.lock().unwrap() += &format!("{line}\n"),
        ..SiteOptions::default()
    };
    let table = match kind {
        Kind::Sqlite => "lite",
        Kind::Postgres => "post",
    };
    let sql = format!(
        "create table {table} (id integer primary key, v integer check (v > 0), u text unique, _file text not null);"
    );
    let file = format!("data/{table}.csv");
    let files = [
        ("migrations/0002_data.sql", &*sql),
        (&*file, "id,v,u\n1,1,a\n2,2,b\n3,3,c\n"),
    ];
    let database = matches!(kind, Kind::Postgres).then(postgres::database);
    let site = match &database {
        None => TestSite::with(&files, options),
        Some(database) => TestSite::open(postgres::folder(database, &files), options),
    };
    let said = |text: &str| site.until(text, || LOG.lock().unwrap().contains(text));
    said(&format!("{file}: table {table}, rows: 3 new"));
    for (rows, line) in [("1,1,a\n2,0,b\n3,3,c\n", 3), ("1,1,a\n2,2,b\n3,3,a\n", 4)] {
        fs::write(site.dir.path().join(&file), format!("id,v,u\n{rows}")).unwrap();
        said(&format!("{file}:{line}:1: the rows stay as they were"));
    }
    fs::write(site.dir.path().join(&file), "id,v,u\n1,1,d\n").unwrap();
    said(&format!(
        "{file}: table {table}, rows: 1 changed, 2 removed"
    ));
}

#[test]
fn an_edit_of_case_is_seen_in_a_citext() {
    let site = site(
        Kind::Postgres,
        "create extension citext;
         create table word (w citext primary key, means citext, own text, _file text not null);",
        &[("data/word.csv", "w,means\nsun,star\nmoon,rock\n")],
    );
    site.run("update word set own = 'kept'");
    let words =
        "select string_agg(w::text || means || coalesce(own, ''), ',' order by w) from word";
    fs::write(path(&site, "word.csv"), "w,means\nsun,STAR\nmoon,rock\n").unwrap();
    holds(&site, words, "moonrockkept,sunSTARkept");
    fs::write(path(&site, "word.csv"), "w,means\nSun,STAR\nmoon,rock\n").unwrap();
    holds(&site, words, "moonrockkept,SunSTARkept");
    // Two rows with one key, by the rules of the type.
    fs::write(path(&site, "word.csv"), "w,means\nsun,a\nSUN,b\n").unwrap();
    was_looked_at(&site);
    assert_eq!(site.text(words), "moonrockkept,SunSTARkept");
}

#[test]
fn postgresql_cuts_and_rounds_no_value() {
    let site = site(
        Kind::Postgres,
        "create domain code as varchar(2); create domain small as code check (value <> 'no');
         create table t (id integer primary key, a varchar(3), b char(3), c numeric(5, 2), d bit(3),
             e small, f timestamptz(0), g varchar(2)[], _file text not null);",
        &[("data/t.csv", "id\n")],
    );
    let good = "1,abc,ab,1.50,101,xy,2026-01-31T10:00:00Z,\"{ab}\"";
    for (field, bad) in [
        ("abc", "abcd"),
        ("ab,", "abcd,"),
        ("1.50", "1.505"),
        ("101", "1011"),
        ("xy", "xyz"),
        ("xy", "no"),
        (":00Z", ":00.5Z"),
        ("{ab}", "{abc}"),
    ] {
        let header = "id,a,b,c,d,e,f,g\n";
        let row = good.replacen(field, bad, 1);
        fs::write(path(&site, "t.csv"), format!("{header}{row}\n")).unwrap();
        was_looked_at(&site);
        assert_eq!(site.text("select count(*) || '' from t"), "0", "{row}");
        fs::write(path(&site, "t.csv"), format!("{header}{good}\n")).unwrap();
        holds(&site, "select count(*) || '' from t", "1");
        fs::write(path(&site, "t.csv"), "id\n").unwrap();
        holds(&site, "select count(*) || '' from t", "0");
    }
    // As it is written, also where the type finds both equal.
    fs::write(path(&site, "t.csv"), "id,c\n1,1.5\n").unwrap();
    let number = "select coalesce(max(c::text), '') from t";
    holds(&site, number, "1.50");
    let version = site.text("select xmin::text from t where id = 1");
    fs::write(path(&site, "t.csv"), "id,c\n1,1.5\n2,1\n").unwrap();
    holds(&site, "select count(*) || '' from t", "2");
    let after = site.text("select xmin::text from t where id = 1");
    assert_eq!(version, after, "the row is the same");
}

#[test]
fn a_site_under_development_stops_while_files_change() {
    for number in 0..25 {
        let options = SiteOptions {
            dev: true,
            ..SiteOptions::default()
        };
        let files = [
            (
                "migrations/0002_data.sql",
                "create table t (id integer primary key, _file text not null);",
            ),
            ("data/t.csv", "id\n1\n"),
        ];
        let site = TestSite::with(&files, options);
        fs::write(path(&site, "t.csv"), "id\n2\n").unwrap();
        std::thread::sleep(Duration::from_millis(10 + number));
        let stopping = std::thread::spawn({
            let site = std::sync::Arc::clone(&site.site);
            move || site.stop()
        });
        site.until("it has stopped", || stopping.is_finished());
    }
}

#[test]
fn a_file_that_is_being_written_at_the_start_is_applied_when_its_writer_is_done() {
    let dir = crate::support::folder(&[
        (
            "migrations/0002_data.sql",
            "create table t (id integer primary key, _file text not null);",
        ),
        ("data/t.csv", ""),
    ]);
    let mut file = fs::File::create(dir.path().join("data/t.csv")).unwrap();
    write!(file, "id\n1\n").unwrap();
    let site = TestSite::open(dir, SiteOptions::default());
    let count = |site: &TestSite| -> i64 {
        let read = "select count(*) from t";
        site.foreign()
            .query_row(read, [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(count(&site), 0);
    writeln!(file, "2").unwrap();
    drop(file);
    site.until("both rows are there", || count(&site) == 2);
}

fn a_moment_is_the_same_in_a_file_and_in_a_parameter(kind: Kind) {
    let (column, text) = match kind {
        Kind::Sqlite => ("datetime", "at"),
        Kind::Postgres => (
            "timestamptz",
            "to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
        ),
    };
    let table =
        format!("create table t (id integer primary key, at {column}, _file text not null);");
    let settings = "[database]\nurl = \"sqlite:site.db\"\n[site]\ntimezone = \"Europe/Vienna\"\n";
    let files = [
        ("millpond.toml", settings),
        (
            "data/t.csv",
            "id,at\n1,2026-07-01T12:00:00+02:00\n2,2026-07-01T12:00\n3,2026-07-01 12:00:00\n4,2026-07-01T10:00:00Z\n",
        ),
    ];
    let site = site(kind, &table, &files);
    for (id, expected) in [(1, "10"), (2, "10"), (3, "12"), (4, "10")] {
        let found = site.text(&format!("select {text} from t where id = {id}"));
        assert_eq!(found, format!("2026-07-01 {expected}:00:00"), "{id}");
    }
}

fn a_large_number_is_not_put_into_a_text(kind: Kind) {
    let site = site(
        kind,
        "create table t (id integer primary key, name text, _file text not null);",
        &[("data/t.json", "[{\"id\": 1, \"name\": 1234567890123456}]")],
    );
    holds(&site, "select name from t", "1234567890123456");
    fs::write(
        path(&site, "t.json"),
        "[{\"id\": 1, \"name\": 123456789012345678901}]",
    )
    .unwrap();
    was_looked_at(&site);
    assert_eq!(site.text("select name from t"), "1234567890123456");
}

#[test]
fn a_table_that_is_made_under_development_gets_its_rows() {
    let options = SiteOptions {
        dev: true,
        ..SiteOptions::default()
    };
    let site = TestSite::with(&[("data/t.csv", "id,name\n1,one\n")], options);
    let dir = site.dir.path();
    let config = Config::read(dir).unwrap();
    let missing = missing_tables(dir, &config).unwrap();
    write_migrations(dir, &missing).unwrap();
    let count = || {
        let read = "select count(*) from t";
        let found = site.foreign().query_row(read, [], |row| row.get(0));
        found.unwrap_or(0_i64)
    };
    site.until("the row is there", || count() == 1);
}
