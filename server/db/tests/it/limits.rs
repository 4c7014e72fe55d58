//! Queues, timeouts, cancellation and stopping.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use millpond_db::{Call, Error, Query, ReadTerms, Value};

use crate::support::{SqliteFixture, in_time, int, text, wait};

const SCHEMA: &str =
    "create table t (id integer primary key, a text); insert into t values (1, 'one');";

/// A query that runs until it is interrupted.
const ENDLESS: &str =
    "with recursive n (x) as (select 1 union all select x + 1 from n) select count(*) from n, t";

fn call(query: &Query) -> Vec<Call> {
    vec![Call {
        query: query.clone(),
        params: vec![],
    }]
}

#[test]
fn a_value_that_does_not_do_is_told_from_a_fault() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, a text); insert into t values (1, 'one');
         create virtual table f using fts5(body);",
    );
    let read = |sql: &str, params: &[Value]| fixture.try_read(&fixture.prepare(sql), params);
    for (sql, params) in [
        ("select * from f where f match :q", [text("AC/DC")]),
        ("select * from t limit 1 offset :page * 20", [int(i64::MAX)]),
        ("select * from t, json_each(:q)", [text("[")]),
        ("select * from t where a like 'x' escape :q", [text("xy")]),
    ] {
        match read(sql, &params) {
            Err(Error::Value { names, .. }) => assert_eq!(names.len(), 1, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    // Without a value of the caller, or with one that cannot be its cause, it is a fault.
    for (sql, params) in [
        ("select abs(-9223372036854775808)", vec![]),
        (
            "select abs(-9223372036854775808) where 1 = :id",
            vec![int(1)],
        ),
        ("select * from f where f match 'AC/DC'", vec![]),
        (
            "select * from t limit 1 offset 9223372036854775807 + :n",
            vec![Value::Null],
        ),
    ] {
        let found = read(sql, &params);
        assert!(matches!(found, Err(Error::Sql { .. })), "{sql}: {found:?}");
    }
    let written = fixture.try_write("insert into t (id) values (:id)", vec![text("x")]);
    assert!(matches!(written, Err(Error::Value { .. })), "{written:?}");
    assert!(read("select * from f where f match :q", &[text("one")]).is_ok());
}

#[test]
fn a_statement_that_runs_too_long_is_interrupted_and_the_reader_goes_on() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.statement_timeout = Duration::from_millis(20);
        options.readers = 1;
    });
    let query = fixture.prepare(ENDLESS);
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::Timeout { .. })
    ));
    let query = fixture.prepare("select count(*) from t");
    assert_eq!(fixture.rows_in_time(&query), [[int(1)]]);
}

#[test]
fn what_a_read_holds_is_dropped_when_it_ends_and_not_when_its_caller_goes() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.statement_timeout = Duration::from_secs(2);
        options.readers = 1;
    });
    let query = fixture.prepare(ENDLESS);
    let held = Arc::new(());
    let terms = ReadTerms {
        held: Some(held.clone()),
        ..ReadTerms::default()
    };
    let mut read = Box::pin(fixture.database.read_with(call(&query), terms));
    let mut context = Context::from_waker(Waker::noop());
    assert!(read.as_mut().poll(&mut context).is_pending());
    while fixture.database.health().waiting_reads > 0 {
        std::thread::yield_now();
    }
    drop(read);
    assert_eq!(Arc::strong_count(&held), 2);
    // The one reader takes this when the other read is over.
    let query = fixture.prepare("select count(*) from t");
    assert_eq!(fixture.rows_in_time(&query), [[int(1)]]);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_write_that_runs_too_long_changes_nothing() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.statement_timeout = Duration::from_millis(20);
    });
    let endless = "insert into t (a) with recursive n (x) as (select 1 union all select x + 1 from n) select x from n where x < 0";
    assert!(matches!(
        fixture.try_write(endless, vec![]),
        Err(Error::Timeout { .. })
    ));
    in_time(|| fixture.try_write("insert into t (a) values ('two')", vec![]));
    assert_eq!(
        fixture.rows_in_time(&fixture.prepare("select count(*) from t")),
        [[int(2)]]
    );
}

#[test]
fn a_full_queue_refuses_at_once_and_a_dropped_future_frees_nothing_but_itself() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.readers = 1;
        options.queue = 1;
        options.statement_timeout = Duration::from_secs(1);
    });
    let endless = fixture.prepare(ENDLESS);
    let quick = fixture.prepare("select count(*) from t");
    wait(async {
        let database = &fixture.database;
        let mut busy = Box::pin(database.read(call(&endless)));
        let mut waiting = Box::pin(database.read(call(&quick)));
        let mut outcomes = Vec::new();
        // Whether or not the thread has taken the first job yet, at least one of three more finds
        // the queue full.
        let mut third = Box::pin(database.read(call(&quick)));
        let mut fourth = Box::pin(database.read(call(&quick)));
        std::future::poll_fn(|context| {
            for future in [&mut busy, &mut waiting, &mut third, &mut fourth] {
                if let std::task::Poll::Ready(outcome) = future.as_mut().poll(context) {
                    outcomes.push(outcome);
                }
            }
            std::task::Poll::Ready(())
        })
        .await;
        assert!(
            !outcomes.is_empty()
                && outcomes
                    .iter()
                    .all(|outcome| matches!(outcome, Err(Error::Overloaded))),
            "{outcomes:?}"
        );
    });
    // All futures were dropped. The thread is free once the first statement is interrupted.
    loop {
        match wait(fixture.database.read(call(&quick))) {
            Ok(read) => break assert_eq!(read.results[0].rows, [[int(1)]]),
            Err(Error::Overloaded | Error::Timeout { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_result_that_is_too_large_is_refused() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("with recursive n (x) as (select 1 union all select x + 1 from n where x < 70) select zeroblob(1 << 20) from n");
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::TooLarge { .. })
    ));
    let query = fixture.prepare("select zeroblob(1 << 29)");
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::TooLarge { .. })
    ));
    assert_eq!(
        fixture.rows(&fixture.prepare("select count(*) from t"), vec![]),
        [[int(1)]]
    );
}

#[test]
fn a_read_cannot_write_and_wants_all_its_parameters() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("delete from t returning id");
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::Usage { .. })
    ));
    let query = fixture.prepare("select * from t where id = :id");
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::Usage { .. })
    ));
}

#[test]
fn all_calls_of_a_read_see_one_state() {
    let fixture = SqliteFixture::new("create table t (n integer); insert into t values (0);");
    let query = fixture.prepare("select n from t");
    let update = fixture.prepare("update t set n = n + 1");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..100 {
                let step = millpond_db::WriteStep {
                    query: update.clone(),
                    bind: vec![],
                    expect: millpond_db::Expect::Exec,
                };
                wait(fixture.database.write(vec![step])).unwrap();
            }
        });
        while !writer.is_finished() {
            let calls = (0..5)
                .map(|_| Call {
                    query: query.clone(),
                    params: vec![],
                })
                .collect();
            let read = wait(fixture.database.read(calls)).unwrap();
            assert!(
                read.results.windows(2).all(|pair| pair[0] == pair[1]),
                "{:?}",
                read.results
            );
        }
    });
}

#[test]
fn after_the_stop_everything_is_refused() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select * from t");
    fixture.database.stop();
    assert!(matches!(
        wait(fixture.database.read(call(&query))),
        Err(Error::Unavailable { .. })
    ));
    assert!(matches!(
        wait(fixture.database.write(vec![])),
        Err(Error::Unavailable { .. })
    ));
    fixture.database.stop();
    // The log was played back: the last connection closed the database properly.
    assert!(!fixture.directory.path().join("site.db-wal").exists());
}
