//! What `millpond serve` says of its database: once when something changes, with the time, and with
//! the words that help.

use std::path::Path;

use lab_pgtest::{Options, Postgres};
use lab_testkit::fast_dir;
use postgres::{Client, NoTls};
use tempfile::TempDir;

use crate::support::{Connection, Response, fail, serve, write};

const SCHEMA: &str = "create table article (id bigint primary key, title text not null);\n\
    insert into article values (1, 'One');\n";

fn site(settings: &str, schema: &str, files: &[(&str, &str)]) -> TempDir {
    let dir = fast_dir();
    write(dir.path(), "millpond.toml", settings);
    write(dir.path(), "migrations/0001_start.sql", schema);
    write(dir.path(), "pages/index.html", "front");
    write(
        dir.path(),
        "pages/a.sql",
        "-- name: a :one\nselect title from article where id = :id;\n",
    );
    for (name, text) in files {
        write(dir.path(), name, text);
    }
    dir
}

fn on(server: &Postgres, schema: &str) -> TempDir {
    let settings = format!(
        "[database]\nurl = \"{}\"\n[cache]\nrefresh_ahead = 0\n",
        server.url()
    );
    site(&settings, schema, &[])
}

/// The lines of the log with these words.
fn lines<'a>(notes: &'a str, words: &str) -> Vec<&'a str> {
    notes.lines().filter(|line| line.contains(words)).collect()
}

#[test]
fn an_outage_is_two_lines_and_a_count() {
    let mut postgres = Options::new().logical().start().unwrap();
    let schema = format!("{SCHEMA}create publication millpond for table article;");
    let site = on(&postgres, &schema);
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.get("/a?id=1").status, 200);
    postgres.stop();
    let refused = loop {
        let answer = connection.get("/a?id=2");
        if answer.status == 503 {
            break answer;
        }
    };
    assert!(refused.text().contains("cannot reach its data"));
    for id in 0..500 {
        assert_eq!(connection.get(&format!("/a?id={}", id + 2)).status, 503);
    }
    server.wait_for("the database is away: ");
    postgres.restart().unwrap();
    server.wait_for("the database is back after ");
    assert_eq!(connection.get("/a?id=1").status, 200);
    let (_, notes) = server.stop();
    let said = lines(&notes, "the database is ");
    assert_eq!(said.len(), 2, "{notes}");
    for line in &said {
        let time = line.split(' ').next().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{line}");
    }
    assert!(
        said[0].contains("given for 1s (cache.max_staleness)"),
        "{notes}"
    );
    assert!(said[1].contains("could not answer: 501"), "{notes}");
    assert!(lines(&notes, "/a").is_empty(), "{notes}");
}

#[test]
fn a_server_that_reports_no_changes_is_said_with_the_remedy() {
    let postgres = Postgres::start().unwrap();
    let site = on(&postgres, SCHEMA);
    let server = serve(site.path());
    let notes = server.wait_for("nothing is kept in memory: ");
    assert!(notes.contains("wal_level"), "{notes}");
    assert!(notes.contains("`millpond check`"), "{notes}");
    let mut connection = Connection::open(server.address());
    for _ in 0..100 {
        assert_eq!(connection.get("/a?id=1").status, 200);
    }
    let (_, notes) = server.stop();
    assert_eq!(lines(&notes, "in memory").len(), 1, "{notes}");
}

#[test]
fn a_table_that_is_not_published_is_said_and_also_that_it_is_now() {
    let postgres = Options::new().logical().start().unwrap();
    let schema = format!("{SCHEMA}create publication millpond;");
    let site = on(&postgres, &schema);
    let server = serve(site.path());
    let notes = server.wait_for("some pages may not be kept in memory: ");
    assert!(notes.contains("article"), "{notes}");
    let mut owner = Client::connect(&postgres.url(), NoTls).unwrap();
    owner
        .batch_execute("alter publication millpond add table article")
        .unwrap();
    server.wait_for("pages are kept in memory again");
}

#[test]
fn a_login_that_is_refused_ends_the_start_at_once() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.url().replace("postgres@", "stranger@");
    let site = site(&format!("[database]\nurl = \"{url}\"\n"), SCHEMA, &[]);
    let (status, notes) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(status, 1, "{notes}");
    assert!(
        notes.contains("stranger") && !notes.contains("trying for"),
        "{notes}"
    );
}

#[test]
fn a_role_that_may_not_create_tables_is_told_the_statement() {
    let postgres = Postgres::start().unwrap();
    let mut owner = Client::connect(&postgres.url(), NoTls).unwrap();
    owner
        .batch_execute("create role weak login; revoke create on schema public from public")
        .unwrap();
    let url = postgres.url().replace("postgres@", "weak@");
    let site = site(&format!("[database]\nurl = \"{url}\"\n"), SCHEMA, &[]);
    let (_, notes) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let remedy = "grant create on schema public to \"weak\"";
    assert!(notes.contains(remedy), "{notes}");
}

#[test]
fn a_variable_that_is_not_set_is_named_in_the_hint() {
    let site = site(
        "[database]\nurl = \"env:MILLPOND_TEST_UNSET\"\n",
        SCHEMA,
        &[],
    );
    let (_, notes) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(notes.contains("export MILLPOND_TEST_UNSET="), "{notes}");
}

#[test]
fn a_slow_query_and_a_locked_file_are_two_messages() {
    let site = site(
        "[database]\nurl = \"sqlite:site.db\"\nstatement_timeout = \"100ms\"\n",
        "create table article (id integer primary key, title text not null) strict;",
        &[
            (
                "pages/slow.sql",
                "-- A comment.\n\n-- name: n :one\nwith recursive n (x) as (select 1 union all select x + 1 from n) \
                 select x from n where x < 0;\n",
            ),
            (
                "pages/new.post.sql",
                "-- name: new :exec\ninsert into article (title) values ('x');\n-- redirect: /\n",
            ),
        ],
    );
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    let refused = |answer: Response, why: &str| {
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains(why), "{}", answer.text());
    };
    for _ in 0..3 {
        refused(connection.get("/slow"), "takes too long");
    }
    let notes = server.wait_for("pages/slow.sql:3: ");
    assert!(
        notes.contains("took longer than 100ms (database.statement_timeout)"),
        "{notes}"
    );
    let other = locked(site.path());
    refused(connection.post("/new", ""), "too busy");
    drop(other);
    server.wait_for("the database is locked: another program has held the lock for writing");
    let (_, notes) = server.stop();
    assert_eq!(lines(&notes, "pages/slow.sql").len(), 1, "{notes}");
}

/// Another program with a transaction that writes.
fn locked(site: &Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(site.join("site.db")).unwrap();
    other.execute_batch("begin immediate").unwrap();
    other
}
