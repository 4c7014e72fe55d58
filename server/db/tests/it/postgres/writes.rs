//! Writes: constraints, expectations, values from earlier steps, conflicts.

use std::sync::Barrier;
use std::time::Duration;

use millpond_db::{Bind, ConstraintKind, Error, Expect, Value};

use super::Fixture;
use crate::support::{in_time, int, text, wait};

const SCHEMA: &str = "
create table t (id serial primary key, u text unique, n text not null default 'n', c integer check (c > 0));
create table child (t integer references t deferrable initially deferred);
create table span (during int4range, exclude using gist (during with &&));
insert into t values (1, 'one', 'n', 1);
insert into span values ('[1,3)');
create function no() returns integer language plpgsql as $$ begin raise exception 'no'; end $$;
";

#[test]
fn violated_constraints_say_which() {
    let fixture = Fixture::new(SCHEMA);
    let check = |sql: &str, expected: ConstraintKind| match fixture.try_write(sql, vec![]) {
        Err(Error::Constraint { kind, message, .. }) => {
            assert_eq!(kind, expected, "{message}");
            // The row that was refused may hold what no log should.
            assert!(
                !message.contains("Failing row") && !message.contains("(u)=("),
                "{message}"
            );
        }
        other => panic!("{sql}: {other:?}"),
    };
    check(
        "insert into t (id, u) values (7, 'one')",
        ConstraintKind::Unique,
    );
    check(
        "insert into t (id, n) values (8, null)",
        ConstraintKind::NotNull,
    );
    check("insert into t (id, c) values (9, 0)", ConstraintKind::Check);
    // Deferred: it is the commit that fails.
    check("insert into child values (9)", ConstraintKind::ForeignKey);
    check("insert into span values ('[2,4)')", ConstraintKind::Other);
    check("select no()", ConstraintKind::Other);
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(1));
    assert_eq!(fixture.value("select count(*) from child", vec![]), int(0));
    fixture.write("insert into child values (1)", vec![]);
    check("delete from t", ConstraintKind::StillReferenced);
    check("update t set id = 2", ConstraintKind::StillReferenced);
    check("update child set t = 9", ConstraintKind::ForeignKey);
}

#[test]
fn expectations() {
    let fixture = Fixture::new(SCHEMA);
    let run = |sql, expect| {
        wait(
            fixture
                .database
                .write(vec![fixture.step(sql, vec![], expect)]),
        )
    };
    assert!(matches!(
        run("select * from t where id = 9", Expect::One),
        Err(Error::NoRow { step: 0 })
    ));
    let none = run("select * from t where id = 9", Expect::Optional).unwrap();
    assert!(none.results[0].rows.is_empty());
    let one = run(
        "insert into t (id, u) values (2, 'a'), (3, 'b') returning u",
        Expect::One,
    );
    assert_eq!(one.unwrap().results[0].rows, [[text("a")]]);
    let exec = run("delete from t where id > 1 returning u", Expect::Exec).unwrap();
    assert!(exec.results[0].rows.is_empty());
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(1));
}

#[test]
fn a_step_takes_values_from_an_earlier_one_and_all_or_nothing_stays() {
    let fixture = Fixture::new(SCHEMA);
    let column = |step, column: &str| Bind::Column {
        step,
        column: column.to_owned(),
    };
    let steps = |last: &str| {
        vec![
            fixture.step(
                "insert into t (id, u) values (:id, :u) returning id, u",
                vec![Bind::Value(int(5)), Bind::Value(text("five"))],
                Expect::One,
            ),
            fixture.step(last, vec![column(0, "ID")], Expect::One),
        ]
    };
    let failed = wait(
        fixture
            .database
            .write(steps("select 1 where :id::integer = 6")),
    );
    assert!(matches!(failed, Err(Error::NoRow { step: 1 })));
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(1));
    let done = wait(
        fixture
            .database
            .write(steps("insert into child values (:id) returning t")),
    );
    assert_eq!(done.unwrap().results[1].rows, [[int(5)]]);
}

#[test]
fn columns_that_are_cast_come_back_from_what_was_written_too() {
    let fixture = Fixture::new("create table t (id integer, d interval)");
    let rows = fixture.write(
        "insert into t values (:id, :d) returning d, id",
        vec![int(1), text("90 minutes")],
    );
    assert_eq!(rows.rows, [[text("01:30:00"), int(1)]]);
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(1));
}

#[test]
fn without_a_feed_nobody_knows_where_a_write_is() {
    let fixture = Fixture::new(SCHEMA);
    let written = fixture.try_write("insert into t (id) values (7)", vec![]);
    assert_eq!(written.unwrap().position.source(), "");
}

#[test]
fn transactions_in_each_others_way_are_run_again() {
    let fixture = Fixture::with(
        "create table t (id integer primary key, n integer not null); insert into t values (1, 0), (2, 0);
         do $$ begin execute format('alter database %I set deadlock_timeout = 10', current_database()); end $$",
        |options| options.pool = 4,
    );
    let steps = |first: i64, second: i64| {
        [first, second].map(|id| {
            fixture.step(
                // The pause lets both take their first lock, so that a deadlock is likely.
                "update t set n = n + 1 where id = :id and pg_sleep(0.01) is not null",
                vec![Bind::Value(int(id))],
                Expect::Exec,
            )
        })
    };
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for (first, second) in [(1, 2), (2, 1)] {
            let steps = steps(first, second).to_vec();
            let (fixture, barrier) = (&fixture, &barrier);
            scope.spawn(move || {
                for _ in 0..5 {
                    barrier.wait();
                    wait(fixture.database.write(steps.clone())).unwrap();
                }
            });
        }
    });
    assert_eq!(fixture.value("select sum(n) from t", vec![]), int(20));
}

#[test]
fn values_are_bound_by_their_type() {
    let fixture = Fixture::new("create table t (b boolean, j jsonb, a integer[])");
    let params = vec![
        text("true"),
        Value::Json(std::sync::Arc::new(serde_json::json!({"a": 1}))),
        text("{1,2}"),
    ];
    fixture.write("insert into t values (:b, :j, :a)", params);
    assert_eq!(
        fixture.value("select b and j->>'a' = '1' and a[2] = 2 from t", vec![]),
        Value::Boolean(true)
    );
}

#[test]
fn a_statement_that_waits_too_long_for_a_lock_is_too_late_also_while_it_is_prepared() {
    let fixture = Fixture::with(SCHEMA, |options| {
        options.statement_timeout = Duration::from_millis(200);
        options.pool = 1;
    });
    let mut foreign = fixture.foreign();
    let insert = |id: i64| {
        let values = vec![Bind::Value(int(id))];
        fixture.step("insert into t (id) values (:id)", values, Expect::Exec)
    };
    let (known, unknown) = (insert(10), insert(11));
    for (step, is_known) in [(known, true), (unknown, false)] {
        if !is_known {
            // The next connection has prepared nothing.
            let others = "select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()";
            foreign.batch_execute(others).unwrap();
        }
        let mut transaction = foreign.transaction().unwrap();
        transaction.batch_execute("lock table t").unwrap();
        match wait(fixture.database.write(vec![step.clone()])) {
            Err(Error::Timeout { sql: Some(sql) }) => assert!(sql.starts_with("insert"), "{sql}"),
            other => panic!("{is_known}: {other:?}"),
        }
        transaction.rollback().unwrap();
        in_time(|| wait(fixture.database.write(vec![step.clone()])));
    }
}
