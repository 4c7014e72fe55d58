//! Migrations run once, in order, each as a whole.

use millpond_db::{Database, Error, Migration};

use crate::support::{SqliteFixture, options};

fn migration(name: &str, sql: &str) -> Migration {
    Migration {
        name: name.into(),
        sql: sql.into(),
    }
}

fn empty() -> (tempfile::TempDir, Database) {
    let directory = lab_testkit::fast_dir();
    let database = Database::open(options(directory.path().join("x.db"))).unwrap();
    (directory, database)
}

#[test]
fn each_is_applied_once() {
    let (_directory, database) = empty();
    let first = migration("1", "create table t (a); insert into t values (';');");
    let second = migration("2", "insert into t values (2)");
    assert_eq!(
        database.migrate(std::slice::from_ref(&first)).unwrap(),
        ["1"]
    );
    assert_eq!(
        database.migrate(&[first.clone(), second.clone()]).unwrap(),
        ["2"]
    );
    assert_eq!(
        database.migrate(&[first, second]).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn an_edited_one_is_refused_by_name() {
    let (_directory, database) = empty();
    database
        .migrate(&[migration("1", "create table t (a)")])
        .unwrap();
    let error = database
        .migrate(&[migration("1", "create table t (a, b)")])
        .unwrap_err();
    assert!(
        matches!(&error, Error::MigrationChanged { name } if name == "1"),
        "{error}"
    );
}

#[test]
fn a_failure_names_its_place_and_leaves_nothing() {
    let (_directory, database) = empty();
    let check = |sql: &str, expected: &str| {
        let error = database
            .migrate(&[migration("0001_x.sql", sql)])
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
        database.prepare("select * from t").unwrap_err();
    };
    check(
        "create table t (a);\n\n-- next\n  create tabel u (a);",
        "0001_x.sql:4:10: near \"tabel\": syntax error",
    );
    check(
        "create table t (a not null);\ninsert into t\n  values (null);",
        "0001_x.sql:2:1: NOT NULL constraint failed: t.a",
    );
    check(
        "create table t (a); select * from missing;",
        "0001_x.sql:1:35: no such table: missing",
    );
    check(
        "create table t (a); commit;",
        "0001_x.sql:1:21: not authorized",
    );
}

#[test]
fn one_while_the_feed_runs_begins_an_epoch() {
    let fixture = SqliteFixture::new("create table t (a text)");
    let query = fixture.prepare("select * from t");
    fixture.fill("t", &query, &[]);
    let seen = fixture.sink.calls().len();
    fixture
        .database
        .migrate(&[migration("2", "insert into t values ('x')")])
        .unwrap();
    fixture.sink.wait_for_epoch(seen, "migration");
    assert_eq!(fixture.rows(&query, vec![]).len(), 1);
}
