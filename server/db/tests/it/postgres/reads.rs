//! Reads: one snapshot, statements that live on when the schema changes, limits, and refusals with
//! their place.

use std::time::Duration;

use millpond_db::{Call, Error, Snapshot, Value};

use super::Fixture;
use crate::support::{in_time, int, text, wait};

const SCHEMA: &str = "
create table t (id integer primary key, name text not null);
insert into t values (1, 'one'), (2, 'two');
";

#[test]
fn rows_come_by_named_parameters() {
    let fixture = Fixture::new(SCHEMA);
    let query =
        fixture.prepare("select name, id from t where id = :id or name = :name or id = :id");
    let names: Vec<_> = query.params().iter().map(|p| p.name.clone()).collect();
    assert_eq!(names, ["id", "name"]);
    let columns: Vec<_> = query.columns().iter().map(ToString::to_string).collect();
    assert_eq!(columns, ["name", "id"]);
    assert!(query.is_readonly());
    let read = fixture
        .try_read(&query, vec![int(1), text("none")])
        .unwrap();
    assert_eq!(read.results[0].rows, [[text("one"), int(1)]]);
    assert_eq!(&*read.results[0].columns, &*query.columns());
    assert!(matches!(read.snapshot, Snapshot::Transactions(_)));
    assert!(read.position > 0);
}

#[test]
fn nothing_is_kept_before_there_is_a_feed() {
    let fixture = Fixture::new(SCHEMA);
    let query = fixture.prepare("select name from t where id = :id");
    let read = fixture.try_read(&query, vec![int(1)]).unwrap();
    assert!(read.uncovered.is_some());
}

#[test]
fn all_calls_of_a_read_see_one_state() {
    let fixture = Fixture::new("create table t (n integer not null); insert into t values (0)");
    let slow = fixture.prepare("select n, pg_sleep(0.002) from t");
    let query = fixture.prepare("select n from t");
    let calls: Vec<Call> = [&query, &slow, &query]
        .into_iter()
        .map(|query| Call {
            query: query.clone(),
            params: vec![],
        })
        .collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut foreign = fixture.foreign();
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                foreign.execute("update t set n = n + 1", &[]).unwrap();
            }
        });
        for _ in 0..50 {
            let read = wait(fixture.database.read(calls.clone())).unwrap();
            let seen = |index: usize| read.results[index].rows[0][0].clone();
            assert_eq!(seen(0), seen(1));
            assert_eq!(seen(0), seen(2));
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

#[test]
fn the_first_error_of_a_read_is_told_and_the_connection_lives_on() {
    let fixture = Fixture::with(SCHEMA, |options| options.pool = 1);
    let good = fixture.prepare("select name from t where id = 1");
    let bad = fixture.prepare("select 1 / :n::integer");
    let pid = fixture.value("select pg_backend_pid()", vec![]);
    let call = |query: &millpond_db::Query, params| Call {
        query: query.clone(),
        params,
    };
    let calls = vec![
        call(&good, vec![]),
        call(&bad, vec![int(0)]),
        call(&good, vec![]),
    ];
    match wait(fixture.database.read(calls)) {
        Err(Error::Value {
            message,
            sql,
            names,
        }) => {
            assert_eq!(names, ["n"]);
            assert!(message.contains("zero"), "{message}");
            assert_eq!(&*sql, bad.sql());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.value("select pg_backend_pid()", vec![]), pid);
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(2));
}

#[test]
fn a_read_cannot_change_anything() {
    let fixture = Fixture::new(SCHEMA);
    let query = fixture.prepare("delete from t");
    assert!(!query.is_readonly());
    assert!(matches!(
        fixture.try_read(&query, vec![]),
        Err(Error::Usage { .. })
    ));
    // What the text does not show, the transaction refuses.
    let mut foreign = fixture.foreign();
    foreign
        .batch_execute(
            "create function f() returns integer language sql as 'delete from t returning 1'",
        )
        .unwrap();
    let hidden = fixture.prepare("select f()");
    assert!(fixture.try_read(&hidden, vec![]).is_err());
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(2));
}

#[test]
fn statements_outlive_a_change_of_the_schema() {
    let fixture = Fixture::with(SCHEMA, |options| options.pool = 1);
    let all = fixture.prepare("select * from t order by id");
    assert_eq!(
        fixture.try_read(&all, vec![]).unwrap().results[0].rows[0].len(),
        2
    );
    fixture
        .foreign()
        .batch_execute("alter table t add column extra integer default 7")
        .unwrap();
    let read = fixture.try_read(&all, vec![]).unwrap();
    assert_eq!(read.results[0].rows[0], [int(1), text("one"), int(7)]);
    assert_eq!(read.results[0].columns.len(), 3);
}

#[test]
fn statements_with_casts_outlive_it_too() {
    let fixture = Fixture::with(
        "create table t (a integer, d interval); insert into t values (1, '1 day')",
        |options| options.pool = 1,
    );
    let all = fixture.prepare("select * from t");
    let names = |fixture: &Fixture| {
        let read = fixture.try_read(&all, vec![]).unwrap();
        read.results[0].columns.join(" ")
    };
    assert_eq!(names(&fixture), "a d");
    let mut foreign = fixture.foreign();
    foreign
        .batch_execute("alter table t add column e point")
        .unwrap();
    assert_eq!(names(&fixture), "a d e");
    foreign
        .batch_execute("alter table t rename a to b")
        .unwrap();
    assert_eq!(names(&fixture), "b d e");
}

#[test]
fn refusals_have_their_place_in_the_owners_text() {
    let fixture = Fixture::new(SCHEMA);
    let refused = |sql: &str| fixture.database.prepare(sql).unwrap_err();
    let sql = "select 'é', :name::text, wrong from t";
    let error = refused(sql);
    assert_eq!(error.offset, sql.find("wrong"));
    let sql = "select * from t where id = :id and nam = 'x'";
    let error = refused(sql);
    assert_eq!(error.offset, sql.find("nam"));
    let sql = "selec 1";
    assert_eq!(refused(sql).offset, Some(0));
    assert_eq!(refused("select 1; select 2").offset, Some(10));
    assert!(refused("  -- nothing").hint.is_some());
    assert!(fixture.database.prepare("select 1; -- done").is_ok());
}

#[test]
fn a_value_that_does_not_do_is_told_from_a_fault() {
    let fixture = Fixture::new("create table t (id bigint, name text)");
    let read = |sql: &str, params: Vec<Value>| fixture.try_read(&fixture.prepare(sql), params);
    for (sql, value) in [
        ("select to_tsquery('simple', :q)", text("a b")),
        ("select * from t where name ~ :q", text("(")),
        ("select * from t offset :page::bigint * 20", int(i64::MAX)),
        ("select * from t limit :n", int(-1)),
        ("select 1 / (:n::integer - 1)", int(1)),
        ("select * from t where id = :id::text::bigint", text("x")),
    ] {
        match read(sql, vec![value]) {
            Err(Error::Value { names, .. }) => assert_eq!(names.len(), 1, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    for (sql, params) in [
        ("select 1 / (1 - 1)", vec![]),
        ("select to_tsquery('simple', 'a b')", vec![]),
        ("select 'x'::text::integer", vec![]),
    ] {
        let found = read(sql, params);
        assert!(matches!(found, Err(Error::Sql { .. })), "{sql}: {found:?}");
    }
    assert!(read("select to_tsquery('simple', :q)", vec![text("a")]).is_ok());
}

#[test]
fn values_that_do_not_fit_name_their_parameter() {
    let fixture =
        Fixture::new("create table t (id integer, d date, u uuid, n numeric(4, 2), j jsonb)");
    let named = |sql: &str, value: Value, expected: &str| match fixture
        .try_read(&fixture.prepare(sql), vec![int(1), value])
    {
        Err(Error::Parameter {
            name,
            message,
            reported,
        }) => {
            assert_eq!(name, expected, "{message}");
            assert!(!message.contains("syntax"), "{message}");
            assert!(reported.is_none_or(|text| text != message));
        }
        other => panic!("{sql}: {other:?}"),
    };
    named(
        "select :a::integer, * from t where id = :id",
        int(1 << 40),
        "id",
    );
    named(
        "select :a::integer, * from t where id = :id",
        text("x"),
        "id",
    );
    named(
        "select :a::integer, * from t where d = :day",
        text("some day"),
        "day",
    );
    named(
        "select :a::integer, * from t where d = :day",
        text("2026-02-30"),
        "day",
    );
    named(
        "select :a::integer, * from t where u = :u",
        text("no uuid"),
        "u",
    );
    named("select :a::integer, * from t where j = :j", text("{"), "j");
    assert!(matches!(
        fixture.try_read(&fixture.prepare("select :a::integer"), vec![]),
        Err(Error::Usage { .. })
    ));
}

#[test]
fn a_statement_that_takes_too_long_is_ended() {
    let fixture = Fixture::with(SCHEMA, |options| {
        options.statement_timeout = Duration::from_secs(1);
        options.pool = 1;
    });
    let slow = fixture.prepare("select pg_sleep(60)");
    assert!(matches!(
        fixture.try_read(&slow, vec![]),
        Err(Error::Timeout { .. })
    ));
    let query = fixture.prepare("select count(*) from t");
    let read = in_time(|| fixture.try_read(&query, vec![]));
    assert_eq!(read.results[0].rows, [[int(2)]]);
}

#[test]
fn a_result_is_bounded() {
    let fixture = Fixture::with(SCHEMA, |options| options.pool = 1);
    let large = fixture.prepare("select repeat('x', 1000000) from generate_series(1, 1000)");
    assert!(matches!(
        fixture.try_read(&large, vec![]),
        Err(Error::TooLarge { .. })
    ));
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(2));
}

#[test]
fn equal_names_of_columns_and_types_without_a_form_of_their_own() {
    let fixture = Fixture::new(SCHEMA);
    let rows = fixture.rows(
        "select id as a, interval '1 day' as a, '(1,2)'::point as b from t order by id desc -- done",
        vec![],
    );
    assert_eq!(
        rows,
        [
            [int(2), text("1 day"), text("(1,2)")],
            [int(1), text("1 day"), text("(1,2)")]
        ]
    );
    let columns = fixture
        .prepare("select 1 as a, interval '1 day' as a")
        .columns();
    assert_eq!(
        columns.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        ["a", "a"]
    );
}
