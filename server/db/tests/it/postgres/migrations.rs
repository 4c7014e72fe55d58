//! Migrations: once each, all or nothing, and with the place of what is wrong.

use millpond_db::{Database, Error, Migration};

use super::{Fixture, options};
use crate::support::int;

fn migration(name: &str, sql: &str) -> Migration {
    Migration {
        name: name.to_owned(),
        sql: sql.to_owned(),
    }
}

#[test]
fn each_is_applied_once_and_an_edit_is_noticed() {
    let fixture = Fixture::new("");
    let first = migration(
        "0001",
        "create table t (id integer);\ninsert into t values (1);",
    );
    let second = migration("0002", "insert into t values (2)");
    let both = [first.clone(), second];
    assert_eq!(fixture.database.migrate(&both[..1]).unwrap(), ["0001"]);
    assert_eq!(fixture.database.migrate(&both).unwrap(), ["0002"]);
    assert!(fixture.database.migrate(&both).unwrap().is_empty());
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(2));
    let line_ends = migration("0001", &first.sql.replace('\n', "\r\n"));
    assert!(fixture.database.migrate(&[line_ends]).unwrap().is_empty());
    let edited = migration("0001", "create table other (id integer)");
    match fixture.database.migrate(&[edited]) {
        Err(Error::MigrationChanged { name }) => assert_eq!(name, "0001"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_has_its_place_and_nothing_of_it_stays() {
    let fixture = Fixture::new("");
    let place = |sql: &str| match fixture.database.migrate(&[migration("m", sql)]) {
        Err(Error::Migration {
            name, line, column, ..
        }) => {
            assert_eq!(name, "m");
            (line, column)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(place("create table t (id integer);\n\n  selec 1;"), (3, 3));
    assert_eq!(
        place("create table t (id integer);\nselect 'é', wrong from t;"),
        (2, 13)
    );
    // PostgreSQL names no place within a statement that fails while it runs.
    assert_eq!(
        place("create table t (id integer);\n/* x */ select 1 / 0;"),
        (2, 9)
    );
    assert_eq!(place("create table t (id integer);\ncommit;"), (2, 1));
    // A constraint that the commit checks.
    place(
        "create table a (id integer primary key); create table b (a integer references a deferrable initially deferred);\
         insert into b values (1);",
    );
    assert!(fixture.database.prepare("select * from t").is_err());
    assert!(fixture.database.prepare("select * from b").is_err());
    let good = migration("m", "create table t (id integer)");
    assert_eq!(fixture.database.migrate(&[good]).unwrap(), ["m"]);
}

#[test]
fn what_cannot_run_in_a_transaction_says_so() {
    let fixture = Fixture::new("create table t (id integer)");
    let index = "create index concurrently t_id on t (id);";
    assert!(matches!(
        fixture.database.migrate(&[migration("in", index)]),
        Err(Error::Migration { .. })
    ));
    let alone = format!("-- millpond: no transaction\n{index}\ninsert into t values (1);");
    assert_eq!(
        fixture
            .database
            .migrate(&[migration("out", &alone)])
            .unwrap(),
        ["out"]
    );
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(1));
}

#[test]
fn several_nodes_that_start_together_apply_each_once() {
    let fixture = Fixture::new("create table log (n integer)");
    let migrations: Vec<Migration> = (0..10)
        .map(|n| match n {
            7 => migration(
                "m7",
                "-- millpond: no transaction\ncreate index concurrently log_n on log (n); insert into log values (7);",
            ),
            _ => migration(&format!("m{n}"), &format!("insert into log values ({n})")),
        })
        .collect();
    let applied: usize = std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let node = Database::connect(options(fixture.url())).unwrap();
                    let applied = node.migrate(&migrations).unwrap().len();
                    node.stop();
                    applied
                })
            })
            .collect();
        nodes.into_iter().map(|node| node.join().unwrap()).sum()
    });
    assert_eq!(applied, 10);
    assert_eq!(fixture.value("select count(*) from log", vec![]), int(10));
}
