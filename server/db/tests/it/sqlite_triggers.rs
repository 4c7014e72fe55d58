//! Commits of other programs, row by row (coherence.md, "SQLite with triggers").

use std::process::Command;
use std::thread;
use std::time::Duration;

use millpond_db::{FeedKind, Migration, Query, Value};
use rusqlite::Connection;

use crate::support::{SinkCall, SqliteFixture, int, text};

mod epochs;
mod programs;

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
        &[
            ("update t set a = 7 where id = 3", false),
            ("update t set a = 7 where id = 1", true),
            ("update t set n = 'n' where id = 3", true),
        ],
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

/// Compares values by type and bytes (rule 22).
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
