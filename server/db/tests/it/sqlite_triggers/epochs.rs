//! What no trigger records, and so begins an epoch.

use super::*;

/// A change that no trigger records, and its description.
type Harm<'a> = (&'a str, &'a dyn Fn(&Connection));

#[test]
fn what_no_trigger_records_begins_an_epoch() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    let harms: [Harm<'_>; 3] = [
        ("a blob that is written in place", &|foreign| {
            let mut blob = foreign.blob_open("main", "bare", "b", 1, false).unwrap();
            std::io::Write::write_all(&mut blob, b"O").unwrap();
        }),
        ("a connection without triggers", &|foreign| {
            use rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
            foreign
                .set_db_config(SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
                .unwrap();
            foreign.execute_batch("update bare set b = 'x'").unwrap();
            foreign
                .set_db_config(SQLITE_DBCONFIG_ENABLE_TRIGGER, true)
                .unwrap();
        }),
        ("a full-text table alone", &|foreign| {
            foreign
                .execute_batch("insert into f values ('more')")
                .unwrap();
        }),
    ];
    for (what, harm) in harms {
        filled(&fixture, "select b from bare where rowid = :r", &[int(1)]);
        let seen = fixture.sink.calls().len();
        harm(&foreign);
        fixture.sink.settle();
        let found = reasons(&fixture, seen);
        assert!(
            found.len() == 1 && found[0].contains("no trigger has recorded"),
            "{what}: {found:?}"
        );
        assert!(fixture.sink.cached("q").is_none());
        // Afterwards changes are known row by row again.
        filled(&fixture, "select b from bare where rowid = :r", &[int(1)]);
        assert!(
            run(&fixture, &foreign, "update t set a = 1").is_empty(),
            "{what}"
        );
        assert!(fixture.sink.cached("q").is_some());
    }
}

/// Counterexample: of two commits between two looks only the second is recorded.
#[test]
fn each_of_several_commits_must_be_recorded() {
    let fixture = SqliteFixture::recorded_with(SCHEMA, |options| {
        options.poll = Duration::from_secs(3_600);
    });
    let foreign = open(&fixture);
    filled(&fixture, "select b from bare where rowid = :r", &[int(1)]);
    let seen = fixture.sink.calls().len();
    {
        let mut blob = foreign.blob_open("main", "bare", "b", 1, false).unwrap();
        std::io::Write::write_all(&mut blob, b"O").unwrap();
    }
    foreign.execute_batch("update t set a = 1").unwrap();
    fixture.write("insert into log (what) values ('own')", vec![]);
    let found = reasons(&fixture, seen);
    assert!(
        found.len() == 1 && found[0].contains("no trigger has recorded"),
        "{found:?}"
    );
    assert!(fixture.sink.cached("q").is_none());
}

#[test]
fn virtual_tables_end_at_every_foreign_commit() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    filled(&fixture, "select body from f where f match 'hello'", &[]);
    assert!(
        run(
            &fixture,
            &foreign,
            "begin; insert into f values ('hello'); update t set a = 1; commit"
        )
        .is_empty()
    );
    assert!(fixture.sink.cached("q").is_none());
}

/// Counterexample: VACUUM numbers implicit rowids anew. A restored copy looks the same.
#[test]
fn vacuum_and_a_restored_copy_begin_an_epoch() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    let copy = fixture.directory.path().join("copy.db");
    foreign
        .execute("vacuum into ?1", [copy.to_str().unwrap()])
        .unwrap();
    run(&fixture, &foreign, "delete from bare where a = 1");
    let query = filled(&fixture, "select a from bare where rowid = :r", &[int(2)]);
    assert_eq!(run(&fixture, &foreign, "vacuum").len(), 1);
    assert!(fixture.sink.cached("q").is_none());
    fixture.fill("q", &query, &[int(1)]);
    let mut restored = open(&fixture);
    restored
        .restore("main", &copy, None::<fn(rusqlite::backup::Progress)>)
        .unwrap();
    fixture.sink.settle();
    assert!(fixture.sink.cached("q").is_none());
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[int(1)]]);
}

#[test]
fn a_changed_schema_is_compared_with_the_triggers() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    // A trigger names the column.
    assert!(
        foreign
            .execute_batch("alter table w drop column v")
            .is_err()
    );
    for harm in [
        "drop trigger _millpond_au_t",
        "alter table w rename to w2",
        "create table more (id integer primary key, a text)",
        "create unique index more_a on more (a)",
        "create trigger hides after update on t begin select raise(ignore); end",
    ] {
        filled(&fixture, "select a from t where id = :id", &[int(2)]);
        assert_eq!(run(&fixture, &foreign, harm).len(), 1, "{harm}");
        filled(&fixture, "select a from t where id = :id", &[int(2)]);
        let found = run(&fixture, &foreign, "update t set a = a + 1 where id = 1");
        assert!(
            found.len() == 1 && found[0].contains("missing or changed"),
            "{harm}: {found:?}"
        );
        assert!(
            fixture
                .database
                .health()
                .last_failure
                .unwrap()
                .contains("check --fix")
        );
        assert!(
            !fixture.database.requirements(&[]).unwrap().is_empty(),
            "{harm}"
        );
        fixture.add_triggers();
        filled(&fixture, "select a from t where id = :id", &[int(2)]);
        let found = run(
            &fixture,
            &foreign,
            "update parent set name = 'x' where id = 1",
        );
        assert!(found.is_empty(), "{harm}: {found:?}");
        assert!(fixture.sink.cached("q").is_some(), "{harm}");
    }
}

/// Counterexample: `raise(ignore)` keeps the change and skips the triggers that follow.
#[test]
fn a_trigger_that_ignores_hides_no_change() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    // A trigger that is made later fires first.
    fixture
        .foreign()
        .execute_batch("create trigger hides after update on bare begin select raise(ignore); end")
        .unwrap();
    fixture.sink.settle();
    fixture.add_triggers();
    let query = filled(&fixture, "select b from bare where a = :a", &[int(1)]);
    assert!(
        run(
            &fixture,
            &open(&fixture),
            "update bare set b = 'new' where a = 1"
        )
        .is_empty()
    );
    assert!(fixture.sink.cached("q").is_none());
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("new")]]);
}

#[test]
fn an_own_migration_makes_the_triggers_anew() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let migration = Migration {
        name: "0002".into(),
        sql: "alter table w drop column v; create table more (id integer primary key, a integer); insert into more values (1, 1)".into(),
    };
    fixture.database.migrate(&[migration]).unwrap();
    assert_eq!(fixture.database.requirements(&[]).unwrap(), []);
    let foreign = open(&fixture);
    for (write, ended) in [
        ("insert into w values ('k9')", false),
        ("update more set a = 2", true),
    ] {
        filled(&fixture, "select a from more where id = :id", &[int(1)]);
        assert!(run(&fixture, &foreign, write).is_empty());
        assert_eq!(fixture.sink.cached("q").is_none(), ended, "{write}");
    }
}

#[test]
fn too_many_unread_changes_are_counted_and_begin_an_epoch() {
    const MANY: &str = "with recursive n(i) as (select 100 union all select i + 1 from n where i < 9100) insert into child (id) select i from n";
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let found = run(&fixture, &foreign, MANY);
    assert!(
        found.len() == 1 && found[0].contains("full or emptied"),
        "{found:?}"
    );
    let rows = || -> i64 {
        let count = "select count(*) from _millpond_change";
        foreign.query_row(count, [], |row| row.get(0)).unwrap()
    };
    assert!(rows() <= 8_192);
    // It is emptied in small steps, and then changes are known row by row again.
    while rows() > 2_048 {
        fixture.sink.settle();
    }
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    assert!(run(&fixture, &foreign, "update child set x = 'x' where id = 2").is_empty());
    assert!(fixture.sink.cached("q").is_some());
}

#[test]
fn another_history_of_the_count_begins_an_epoch() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    for (harm, reason) in [
        ("update _millpond_feed set nonce = 7", "another history"),
        ("update _millpond_feed set n = n - 1", "another history"),
        ("update _millpond_feed set n = n + 1", "full or emptied"),
        (
            "insert into _millpond_feed values (1, 1, 1, null)",
            "another history",
        ),
    ] {
        run(&fixture, &foreign, "update t set a = a + 1");
        filled(&fixture, "select a from t where id = :id", &[int(1)]);
        let found = run(&fixture, &foreign, harm);
        assert!(
            found.len() == 1 && found[0].contains(reason),
            "{harm}: {found:?}"
        );
    }
    // Deleted records are missed by their numbers.
    let fixture = SqliteFixture::recorded(SCHEMA);
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let found = run(
        &fixture,
        &open(&fixture),
        "begin; update t set a = 1; delete from _millpond_change where n = 2; commit",
    );
    assert!(
        found.len() == 1 && found[0].contains("full or emptied"),
        "{found:?}"
    );
}

/// Counterexample: one transaction changes a table with triggers and one without.
#[test]
fn a_table_without_triggers_ends_at_every_foreign_commit() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    filled(
        &fixture,
        "select hash from _millpond_migrations where name = :n",
        &[text("0001")],
    );
    let both = "begin; update _millpond_migrations set hash = 'x' where name = '0001'; update t set a = 1; commit";
    assert!(run(&fixture, &foreign, both).is_empty());
    assert!(fixture.sink.cached("q").is_none());
}

#[test]
fn a_mark_that_was_left_behind_begins_epochs_until_it_is_repaired() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    for write in [
        "update _millpond_feed set own = 1",
        "update t set a = 5 where id = 1",
    ] {
        filled(&fixture, "select a from t where id = :id", &[int(1)]);
        assert_eq!(run(&fixture, &foreign, write).len(), 1, "{write}");
        assert!(fixture.sink.cached("q").is_none());
    }
    fixture.add_triggers();
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    assert!(run(&fixture, &foreign, "update t set a = 6 where id = 2").is_empty());
    assert!(fixture.sink.cached("q").is_some());
}

/// Fires temporary triggers of another program before all others. In a transaction that records
/// something else as well they are not noticed, which coherence.md says.
#[test]
fn what_a_temp_trigger_hides_is_noticed_where_nothing_else_is_recorded() {
    for write in [
        "update bare set b = 'new' where a = 1",
        "insert into bare values (1, 'more')",
        "delete from bare where a = 1",
        "insert into t values (9, 1, 'nine', 'c9', 'P')",
        "update t set b = 'new' where id = 1",
        "update t set id = 8 where id = 1",
        "delete from w where k = 'k1'",
    ] {
        let fixture = SqliteFixture::recorded(SCHEMA);
        let foreign = open(&fixture);
        for table in ["bare", "t", "w"] {
            for event in ["insert", "update", "delete"] {
                foreign
                    .execute_batch(&format!(
                        "create temp trigger {table}_{event} after {event} on main.{table} begin select raise(ignore); end"
                    ))
                    .unwrap();
            }
        }
        for sql in [
            "select count(*), group_concat(b) from bare",
            "select count(*), group_concat(b) from t",
            "select count(*) from w",
        ] {
            fixture.fill(sql, &fixture.prepare(sql), &[]);
        }
        let found = run(&fixture, &foreign, write);
        let is_noticed = |reason: &String| reason.contains("no trigger has recorded");
        assert!(found.iter().any(is_noticed), "{write}: {found:?}");
    }
}
