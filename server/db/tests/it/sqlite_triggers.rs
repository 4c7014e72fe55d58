//! Commits of other programs, row by row (coherence.md, "SQLite with triggers").

use std::process::Command;
use std::thread;
use std::time::Duration;

use millpond_db::{FeedKind, Migration, Query, Value};
use rusqlite::Connection;

use crate::support::{SinkCall, SqliteFixture, int, text};

const SCHEMA: &str = "
create table t (id integer primary key, a integer, b text, c text unique, n text collate nocase);
create table w (k text primary key, v text) without rowid;
create table parent (id integer primary key, name text);
create table child (id integer primary key, parent integer references parent on delete cascade on update cascade, x text);
create table log (id integer primary key, what text);
create trigger t_log after delete on t begin insert into log (what) values (old.b); end;
create virtual table f using fts5(body);
create table bare (a integer, b text);
create table g (a integer, b integer as (a + 1));
create table p (id integer primary key, a integer, deleted integer);
create unique index p_a on p (a) where deleted is null;
create table d (id integer primary key, u integer not null default 5 unique, x text);
insert into t values (1, 10, 'one', 'c1', 'N'), (2, 20, 'two', 'c2', 'M'), (3, 10, 'three', 'c3', 'O');
insert into w values ('k1', 'v1'), ('k2', 'v2');
insert into parent values (1, 'p1'), (2, 'p2');
insert into child values (1, 1, 'x1'), (2, 2, 'x2');
insert into f values ('hello world'), ('good bye');
insert into bare values (1, 'one'), (2, 'two');
insert into g (a) values (1);
insert into p values (1, 1, null), (2, 2, null);
insert into d values (1, 5, 'five'), (2, 6, 'six');
";

/// The reasons of the epochs since the first `seen` calls.
fn reasons(fixture: &SqliteFixture, seen: usize) -> Vec<String> {
    let calls = fixture.sink.calls();
    let reason = |call: &SinkCall| match call {
        SinkCall::NewEpoch(reason) => Some(reason.clone()),
        _ => None,
    };
    calls.iter().skip(seen).filter_map(reason).collect()
}

/// Lets another program run `sql`; returns the reasons of the epochs that it began.
fn run(fixture: &SqliteFixture, foreign: &Connection, sql: &str) -> Vec<String> {
    let seen = fixture.sink.calls().len();
    foreign
        .execute_batch(sql)
        .unwrap_or_else(|error| panic!("{error}, in: {sql}"));
    fixture.sink.settle();
    reasons(fixture, seen)
}

pub(crate) fn open(fixture: &SqliteFixture) -> Connection {
    let foreign = fixture.foreign();
    foreign.execute_batch("pragma foreign_keys = on").unwrap();
    foreign
}

/// Each statement of another program, and whether it ends the result. None begins an epoch.
fn check(query: &str, params: &[Value], writes: &[(&str, bool)]) {
    for (write, expected) in writes {
        let fixture = SqliteFixture::recorded(SCHEMA);
        let query = fixture.prepare(query);
        fixture.fill("q", &query, params);
        let epochs = run(&fixture, &open(&fixture), write);
        assert!(epochs.is_empty(), "{write}: {epochs:?}");
        let is_ended = fixture.sink.cached("q").is_none();
        assert_eq!(is_ended, *expected, "{} after {write}", query.sql());
    }
}

fn filled(fixture: &SqliteFixture, sql: &str, params: &[Value]) -> Query {
    let query = fixture.prepare(sql);
    fixture.fill("q", &query, params);
    query
}

#[test]
fn rows_by_key_and_by_value() {
    check(
        "select * from t where id = :id",
        &[int(1)],
        &[
            ("update t set a = 5 where id = 1", true),
            ("update t set a = 5 where id = 2", false),
            ("update t set id = 9 where id = 1", true),
            ("insert into t values (9, 1, 'x', 'x', 'x')", false),
            ("delete from t where id = 1", true),
            ("delete from t where id = 2", false),
            ("delete from t", true),
            (
                "insert into t values (1, 1, 'x', 'x', 'x') on conflict do update set a = 1",
                true,
            ),
            (
                "insert into t values (2, 1, 'x', 'x', 'x') on conflict do update set a = 1",
                false,
            ),
            ("insert into w values ('k9', 'v')", false),
        ],
    );
    check(
        "select * from t where a = :a",
        &[int(10)],
        &[
            ("update t set b = 'x' where id = 3", true),
            ("update t set a = 10 where id = 2", true),
            ("update t set b = 'x' where id = 2", false),
        ],
    );
    check(
        "select * from t where n = :n",
        &[text("n")],
        &[("update t set a = 7 where id = 3", true)],
    );
    check(
        "select * from w where k = :k",
        &[text("k1")],
        &[
            ("update w set v = 'x' where k = 'k1'", true),
            ("update w set v = 'x' where k = 'k2'", false),
            ("update w set k = 'k1b' where k = 'k1'", true),
        ],
    );
    check(
        "select * from bare where rowid = :r",
        &[int(1)],
        &[
            ("update bare set b = 'x' where a = 1", true),
            ("update bare set b = 'x' where a = 2", false),
            ("update bare set rowid = 7 where a = 1", true),
            ("insert into bare values (3, 'x')", false),
        ],
    );
    check(
        "select * from g where a = :a",
        &[int(7)],
        &[("update g set a = 3", true)],
    );
}

#[test]
fn cascades_and_triggers_are_recorded() {
    check(
        "select * from child where parent = :p",
        &[int(1)],
        &[
            ("delete from parent where id = 1", true),
            ("delete from parent where id = 2", false),
            ("update parent set id = 7 where id = 1", true),
        ],
    );
    check(
        "select what from log",
        &[],
        &[
            ("delete from t where id = 2", true),
            ("update t set a = 1", false),
        ],
    );
}

/// Counterexample: no trigger fires for a row that OR REPLACE removes.
#[test]
fn rows_that_or_replace_removes_are_recorded() {
    check(
        "select * from t where a = :a",
        &[int(20)],
        &[
            (
                "insert or replace into t values (2, 1, 'x', 'x', 'x')",
                true,
            ),
            (
                "insert or replace into t values (9, 1, 'x', 'c2', 'x')",
                true,
            ),
            (
                "insert or replace into t values (9, 1, 'x', 'c9', 'x')",
                false,
            ),
            ("update or replace t set c = 'c2' where id = 1", true),
            ("update or replace t set c = 'c9' where id = 1", false),
            ("update or replace t set id = 2 where id = 1", true),
            (
                "insert or ignore into t values (9, 1, 'x', 'c9', 'x')",
                false,
            ),
        ],
    );
    check(
        "select * from bare where a = :a",
        &[int(2)],
        &[
            ("insert or replace into bare (rowid, a) values (2, 9)", true),
            ("update or replace bare set rowid = 2 where a = 1", true),
        ],
    );
    check(
        "select * from w where v = :v",
        &[text("v2")],
        &[
            ("replace into w values ('k2', 'x')", true),
            ("update or replace w set k = 'k2' where k = 'k1'", true),
        ],
    );
    // A partial index, so the table counts as a whole.
    check(
        "select * from p where id = :id",
        &[int(2)],
        &[("insert or replace into p values (9, 2, null)", true)],
    );
    // OR REPLACE stores the default in the place of a null.
    check(
        "select * from d where x = :x",
        &[text("five")],
        &[
            ("insert or replace into d values (9, null, 'x')", true),
            ("update or replace d set u = null where id = 2", true),
        ],
    );
}

/// A row by its key, of a query that reads the column `c` alone. The column has the value `old`.
fn is_ended_by_update(column: &str, old: &str, new: &str) -> bool {
    let schema = format!(
        "create table x (id integer primary key, c {column}, d); insert into x values (1, {old}, 1)"
    );
    let fixture = SqliteFixture::recorded(&schema);
    filled(&fixture, "select c from x where id = :id", &[int(1)]);
    let update = format!("update x set c = {new}, d = 2");
    let epochs = run(&fixture, &open(&fixture), &update);
    assert!(epochs.is_empty(), "{update}: {epochs:?}");
    fixture.sink.cached("q").is_none()
}

/// The same value is the same type and the same bytes (rule 22).
#[test]
fn an_update_ends_what_reads_a_column_with_another_value() {
    let long = |end: &str| format!("printf('%.400c', 'z') || '{end}'");
    for (column, old, new) in [
        ("integer", "1", "2"),
        ("integer", "1", "null"),
        ("integer", "'a'", "'b'"),
        ("integer", "x'00'", "x'01'"),
        (
            "integer",
            "-9223372036854775807 - 1",
            "-9223372036854775808.0",
        ),
        ("text", "'a'", "'A'"),
        ("text", "null", "x'61'"),
        ("text", "x'61'", "null"),
        ("text", "x'00'", "x'01'"),
        ("text", "'a'", "x'61'"),
        ("text", "'a' || char(0) || 'b'", "'a' || char(0) || 'c'"),
        ("text", &long("1"), &long("2")),
        ("text", &long("1"), "null"),
        ("text collate nocase", "'a'", "'A'"),
        ("text collate rtrim", "'a'", "'a '"),
        ("real collate nocase", "'a'", "'A'"),
        ("real", "1.5", "2.5"),
        ("numeric", "1", "'1x'"),
        ("numeric", "9007199254740993", "9007199254740992.5"),
        ("", "1", "1.0"),
        ("", "0.0", "-0.0"),
        ("", "0.0", "1e-400 * -1"),
        ("", "'1'", "1"),
        ("blob", "x'00'", "x'0000'"),
        ("blob", "null", "x''"),
        ("integer", "x''", "'a'"),
    ] {
        assert!(
            is_ended_by_update(column, old, new),
            "{column}: {old}, {new}"
        );
    }
    for (column, value) in [
        ("integer", "1"),
        ("integer", "null"),
        ("text", "'a'"),
        ("text", "null"),
        ("text", "x'01'"),
        ("text", &long("1")),
        ("text collate nocase", "'a'"),
        ("real", "1.5"),
        ("real", "null"),
        ("numeric", "0"),
        ("numeric", "9.99"),
        ("datetime", "'2026-01-01'"),
        ("", "null"),
        ("blob", "zeroblob(9000)"),
    ] {
        assert!(
            !is_ended_by_update(column, value, value),
            "{column}: {value}"
        );
    }
}

/// Counterexample: a comparison in a trigger asks for the collation of a column, which only the
/// owner's program has, and so the updates of other programs fail.
#[test]
fn an_update_needs_no_collation_of_the_columns() {
    let fixture = SqliteFixture::new(
        "create table x (id integer primary key, a integer collate nocase, b text collate nocase, c real collate nocase, d collate nocase);
         insert into x values (1, 1, 'b', 1.5, 1)",
    );
    let rename = "pragma writable_schema = on;
        update sqlite_schema set sql = replace(sql, 'nocase', 'unknown') where name = 'x';
        pragma writable_schema = reset";
    fixture.foreign().execute_batch(rename).unwrap();
    let path = fixture.path();
    for requirement in millpond_db::sqlite_requirements(&path, FeedKind::Triggers).unwrap() {
        millpond_db::repair_sqlite(&path, &requirement).unwrap();
    }
    let update = "update x set a = 2, b = 'c', c = 2.5, d = 2";
    fixture.foreign().execute_batch(update).unwrap();
    fixture.write("update x set a = 3", vec![]);
}

/// Only the columns that were changed count.
#[test]
fn a_recorded_change_to_what_is_not_read_ends_nothing() {
    check(
        "select a, b from t where id = :id",
        &[int(1)],
        &[
            ("update t set c = 'x' where id = 1", false),
            ("update t set n = 'x' where id = 1", false),
            (
                "update t set a = 10, b = 'one', n = 'x' where id = 1",
                false,
            ),
            ("update t set b = 'x' where id = 1", true),
            ("update t set rowid = 9 where id = 1", true),
            (
                "insert or replace into t values (1, 10, 'one', 'c1', 'x')",
                true,
            ),
        ],
    );
    check(
        "select id from t where a = :a",
        &[int(10)],
        &[
            ("update t set b = 'x' where id = 1", false),
            ("update t set a = 11 where id = 2", false),
            ("update t set a = 10 where id = 2", true),
            ("update t set a = 11 where id = 1", true),
        ],
    );
    check(
        "select rowid from bare",
        &[],
        &[
            ("update bare set b = 'x' where a = 1", false),
            ("update bare set _rowid_ = 9 where a = 1", true),
        ],
    );
    check(
        "select k from w",
        &[],
        &[
            ("update w set v = 'x' where k = 'k1'", false),
            ("update w set k = 'k9' where k = 'k1'", true),
        ],
    );
    check(
        "select * from t",
        &[],
        &[
            ("update t set a = a, b = b, c = c, n = n", false),
            ("update t set n = 'n' where id = 1", true),
        ],
    );
    check(
        "select parent from child where id = :id",
        &[int(1)],
        &[
            ("update parent set name = 'x' where id = 1", false),
            ("update parent set id = 7 where id = 1", true),
        ],
    );
}

/// Counterexample: a trigger `before update of id`. These statements set the same column by other
/// names, and replace a row.
#[test]
fn a_key_that_is_set_by_another_name_is_recorded() {
    check(
        "select a from t where id = :id",
        &[int(2)],
        &[
            ("update or replace t set rowid = 2 where id = 1", true),
            ("update or replace t set OID = 2 where id = 1", true),
            ("update or replace t set _rowid_ = 2 where id = 1", true),
            (
                "update or replace t set (b, \"ID\") = ('x', 2) where id = 1",
                true,
            ),
            ("update or replace t set rowid = 9 where id = 1", false),
        ],
    );
    check(
        "select a from bare where a = :a",
        &[int(2)],
        &[("update or replace bare set oid = 2 where a = 1", true)],
    );
}

/// Counterexample: with a unique column in the table of changes, an outer OR IGNORE would drop the
/// record and keep the change.
#[test]
fn an_outer_or_ignore_drops_no_record() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    for id in 10..14 {
        filled(&fixture, "select * from t where id = :id", &[int(id)]);
        let sql = format!("insert or ignore into t values ({id}, 1, 'x', 'new {id}', 'x')");
        assert!(run(&fixture, &foreign, &sql).is_empty());
        assert!(fixture.sink.cached("q").is_none());
        // What is ignored ends at most the row that is there already.
        filled(&fixture, "select * from t where id = :id", &[int(1)]);
        assert!(run(&fixture, &foreign, &sql).is_empty());
        assert!(fixture.sink.cached("q").is_some());
    }
}

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
fn a_foreign_commit_just_before_our_own_is_applied_first() {
    let fixture = SqliteFixture::recorded_with(SCHEMA, |options| {
        options.poll = Duration::from_secs(3_600);
    });
    let foreign = open(&fixture);
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    fixture.fill(
        "other",
        &fixture.prepare("select a from t where id = :id"),
        &[int(2)],
    );
    let seen = fixture.sink.calls().len();
    foreign
        .execute_batch("update t set a = 5 where id = 1")
        .unwrap();
    fixture.write("insert into log (what) values ('own')", vec![]);
    assert!(reasons(&fixture, seen).is_empty());
    assert!(fixture.sink.cached("q").is_none());
    assert!(fixture.sink.cached("other").is_some());
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
fn own_writes_leave_no_records_and_remove_old_ones() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    let rows = || -> i64 {
        let count = "select count(*) from _millpond_change";
        foreign.query_row(count, [], |row| row.get(0)).unwrap()
    };
    run(&fixture, &foreign, "update t set a = a + 1");
    assert_eq!(rows(), 3);
    let epoch = fixture.sink.epoch();
    fixture.write("update t set b = 'own' where id = 1", vec![]);
    assert_eq!(rows(), 0);
    fixture.write("insert into log (id) with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) select i from n", vec![]);
    assert_eq!(rows(), 0, "the triggers recorded what the hook sees");
    assert!(
        fixture
            .try_write("insert into t (id) values (1)", vec![])
            .is_err()
    );
    fixture.sink.settle();
    assert_eq!(
        fixture.sink.epoch(),
        epoch,
        "{:?}",
        fixture.sink.calls().last()
    );
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    assert!(run(&fixture, &foreign, "update t set a = 9 where id = 2").is_empty());
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

#[test]
fn two_servers_on_one_file_miss_nothing_of_each_other() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let other = fixture.neighbour();
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let seen = fixture.sink.calls().len();
    other.write("update t set a = 77 where id = 1", vec![]);
    fixture.sink.settle();
    assert!(fixture.sink.cached("q").is_none());
    assert_eq!(reasons(&fixture, seen).len(), 1);
}

#[test]
fn long_texts_are_any_value_and_wide_tables_have_several_records() {
    let columns: String = (0..40).map(|index| format!(", c{index} integer")).collect();
    let schema = format!(
        "create table wide (id integer primary key, b text{columns}); insert into wide (id, b, c39) values (1, 'x', 5), (2, 'y', 6);"
    );
    let fixture = SqliteFixture::recorded(&schema);
    let foreign = open(&fixture);
    for (write, ended) in [
        ("update wide set c0 = 1 where id = 1", true),
        ("update wide set c0 = 1, c38 = 2 where id = 1", false),
        ("update wide set c0 = 1.5 where id = 1", true),
        ("update wide set c1 = 2, c39 = 5 where id = 1", false),
        ("update wide set id = 3 where id = 1", true),
        ("update wide set c0 = 1 where id = 2", false),
        ("update wide set b = 'short' where id = 2", false),
        ("update wide set c39 = 5 where id = 2", true),
        ("update wide set c39 = 6 where id = 2", true),
    ] {
        filled(&fixture, "select c0 from wide where c39 = :c", &[int(5)]);
        assert!(run(&fixture, &foreign, write).is_empty());
        assert_eq!(fixture.sink.cached("q").is_none(), ended, "{write}");
    }
    filled(
        &fixture,
        "select count(*) from wide where b = :b",
        &[text(&"z".repeat(400))],
    );
    assert!(
        run(
            &fixture,
            &foreign,
            "update wide set b = printf('%.400c', 'z') where id = 2"
        )
        .is_empty()
    );
    assert!(fixture.sink.cached("q").is_none());
    filled(
        &fixture,
        "select count(*) from wide where b = :b",
        &[text("nul\0nul")],
    );
    let zero = "update wide set b = 'nul' || char(0) || 'nul' where id = 3";
    assert!(run(&fixture, &foreign, zero).is_empty());
    assert!(fixture.sink.cached("q").is_none());
}

#[test]
fn statistics_end_nothing_with_and_without_triggers() {
    for fixture in [SqliteFixture::new(SCHEMA), SqliteFixture::recorded(SCHEMA)] {
        let foreign = open(&fixture);
        // The first time makes the table of statistics, which changes the schema.
        run(&fixture, &foreign, "analyze");
        fixture.write("insert into t (id) values (77)", vec![]);
        filled(&fixture, "select a from t where id = :id", &[int(1)]);
        let found = run(
            &fixture,
            &foreign,
            "analyze; pragma wal_checkpoint(restart)",
        );
        assert!(found.is_empty(), "{found:?}");
        assert!(fixture.sink.cached("q").is_some());
    }
}

/// The name of the write-ahead log.
fn salt(fixture: &SqliteFixture) -> Vec<u8> {
    let log = fixture.directory.path().join("site.db-wal");
    std::fs::read(log).unwrap()[16..24].to_vec()
}

/// The log begins again when all of it is in the file; what it had before is still to be seen.
#[test]
fn a_log_that_began_again_loses_no_commit() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    foreign.execute_batch("pragma synchronous = off").unwrap();
    let query = fixture.prepare("select a from t where id = :id");
    let (mut epochs, salt_before) = (0, salt(&fixture));
    for round in 0..600 {
        fixture.fill("q", &query, &[int(1)]);
        fixture.fill("other", &query, &[int(2)]);
        if round % 20 == 0 {
            foreign
                .execute_batch("pragma wal_checkpoint(passive)")
                .unwrap();
        }
        epochs += run(
            &fixture,
            &foreign,
            &format!("update t set a = {round} where id = 1"),
        )
        .len();
        assert!(fixture.sink.cached("q").is_none());
    }
    assert_eq!(epochs, 0);
    assert_ne!(salt(&fixture), salt_before, "it did not begin again");
}

/// With an unrecorded commit in the log before it began again.
#[test]
fn a_log_that_began_again_hides_no_unrecorded_commit() {
    for truncate in ["", "pragma wal_checkpoint(truncate);"] {
        let fixture = SqliteFixture::recorded_with(SCHEMA, |options| {
            options.poll = Duration::from_secs(3_600);
        });
        let foreign = open(&fixture);
        fixture.write("insert into log (what) values ('own')", vec![]);
        filled(&fixture, "select b from bare where rowid = :r", &[int(1)]);
        {
            let mut blob = foreign.blob_open("main", "bare", "b", 1, false).unwrap();
            std::io::Write::write_all(&mut blob, b"O").unwrap();
        }
        let again = format!("pragma wal_checkpoint(restart); {truncate} update t set a = 1");
        foreign.execute_batch(&again).unwrap();
        let seen = fixture.sink.calls().len();
        fixture.write("insert into log (what) values ('own')", vec![]);
        assert_eq!(reasons(&fixture, seen).len(), 1, "{truncate}");
        assert!(fixture.sink.cached("q").is_none());
    }
}

#[test]
fn the_shell_ends_what_shows_its_rows() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let shell = |sql: &str| {
        let path = fixture.path();
        Command::new("sqlite3")
            .args([path.to_str().unwrap(), sql])
            .output()
    };
    let Ok(version) = shell("select sqlite_version()") else {
        println!("sqlite3 is not installed");
        return;
    };
    println!("sqlite3 {}", String::from_utf8_lossy(&version.stdout));
    fixture.fill(
        "other",
        &fixture.prepare("select a from t where id = :id"),
        &[int(2)],
    );
    let query = filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let seen = fixture.sink.calls().len();
    let done = shell("update t set a = 99 where id = 1").unwrap();
    assert!(done.status.success(), "{done:?}");
    fixture.sink.settle();
    assert_eq!(reasons(&fixture, seen), Vec::<String>::new());
    assert!(fixture.sink.cached("q").is_none() && fixture.sink.cached("other").is_some());
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[int(99)]]);
}

/// A shell that is killed at any moment has committed a change with its record, or nothing.
#[test]
fn a_shell_that_is_killed_loses_no_change() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    for round in 0..20 {
        for id in 1..4 {
            fixture.try_fill(&id.to_string(), &query, &[int(id)]);
        }
        let updates: String = (0..2_000)
            .map(|n| {
                format!(
                    "update t set a = {round} * 10000 + {n} where id = {};",
                    n % 3 + 1
                )
            })
            .collect();
        let script = fixture.directory.path().join("updates.sql");
        std::fs::write(&script, updates).unwrap();
        let shell = Command::new("sqlite3")
            .arg(fixture.path())
            .arg(format!(".read {}", script.display()))
            .stderr(std::process::Stdio::null())
            .spawn();
        let Ok(mut shell) = shell else {
            println!("sqlite3 is not installed");
            return;
        };
        // Killed at some moment of its work, another one each time.
        thread::sleep(Duration::from_millis(5 + round));
        shell.kill().unwrap();
        shell.wait().unwrap();
        fixture.sink.settle();
        for id in 1..4 {
            if let Some(entry) = fixture.sink.cached(&id.to_string()) {
                assert_eq!(entry.rows[0].rows, fixture.rows(&query, vec![int(id)]));
            }
        }
    }
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

#[test]
fn the_table_of_changes_is_in_no_result_that_is_kept() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let query = fixture.prepare("select count(*) from _millpond_change");
    let read = fixture.read(&query, vec![]);
    assert!(read.deps[0].uncacheable.is_some());
}

#[test]
fn going_back_removes_everything() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let path = fixture.path();
    let left = millpond_db::sqlite_requirements(&path, FeedKind::Logical).unwrap();
    assert_eq!(left.len(), 1);
    millpond_db::repair_sqlite(&path, &left[0]).unwrap();
    assert_eq!(
        millpond_db::sqlite_requirements(&path, FeedKind::Logical).unwrap(),
        []
    );
    assert!(!fixture.database.requirements(&[]).unwrap().is_empty());
}
