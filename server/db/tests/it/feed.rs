//! The calls of the sink, and their order.

use std::sync::Arc;

use millpond_db::{Bind, Database, Expect, Migration, WriteStep};
use millpond_store::Sink;

use crate::support::{RecordingSink, SinkCall, SqliteFixture, int, low, options, text, wait};

const SCHEMA: &str = "create table t (id integer primary key, a integer); create table u (id integer primary key, deferred integer references t deferrable initially deferred);";

/// The calls since call number `seen`, without polls.
fn since(fixture: &SqliteFixture, seen: usize) -> Vec<SinkCall> {
    let calls = fixture.sink.calls();
    let mut calls = calls[seen..].to_vec();
    let applied = calls
        .iter()
        .position(|call| matches!(call, SinkCall::Apply(..)));
    calls.drain(..applied.unwrap_or(0));
    calls
}

#[test]
fn a_commit_is_applied_then_visible_then_passed_by_a_heartbeat() {
    let fixture = SqliteFixture::new(SCHEMA);
    let seen = fixture.sink.calls().len();
    fixture.write("insert into t values (1, 2)", vec![]);
    let calls = since(&fixture, seen);
    let [
        SinkCall::Apply(mark, tags),
        SinkCall::Visible(low),
        SinkCall::Heartbeat(_, position),
        ..,
    ] = calls.as_slice()
    else {
        panic!("{calls:?}")
    };
    assert_eq!((mark, mark), (low, position));
    assert!(tags[0].is_broad());
}

#[test]
fn marks_and_positions_ascend() {
    let fixture = SqliteFixture::new(SCHEMA);
    for id in 0..20 {
        fixture.write("insert into t values (:id, 2)", vec![int(id)]);
    }
    let (mut last_mark, mut last_position, mut last_sent) = (0, 0, None);
    for call in fixture.sink.calls() {
        match call {
            SinkCall::Apply(mark, _) => {
                assert!(mark > last_mark && mark > last_position);
                last_mark = mark;
            }
            SinkCall::Heartbeat(sent, position) => {
                assert!(
                    position > last_position && position >= last_mark && Some(sent) >= last_sent
                );
                (last_position, last_sent) = (position, Some(sent));
            }
            SinkCall::Visible(low) => assert!(low >= last_mark),
            SinkCall::NewEpoch(_) => {}
        }
    }
    assert!(last_mark > 0);
}

#[test]
fn a_read_sees_what_was_written_before_and_is_placed_after_it() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select count(*) from t");
    fixture.write("insert into t values (1, 2)", vec![]);
    let mark = fixture
        .sink
        .calls()
        .iter()
        .rev()
        .find_map(|call| {
            if let SinkCall::Apply(mark, _) = call {
                Some(*mark)
            } else {
                None
            }
        })
        .unwrap();
    let read = fixture.read(&query, vec![]);
    assert!(low(&read.snapshot) >= mark);
    assert!(read.position > low(&read.snapshot));
    assert_eq!(read.results[0].rows, [[int(1)]]);
}

#[test]
fn a_rolled_back_write_is_not_delivered() {
    let fixture = SqliteFixture::new(SCHEMA);
    let step = |sql, expect| WriteStep {
        query: fixture.prepare(sql),
        bind: vec![],
        expect,
    };
    let count = |calls: Vec<SinkCall>| {
        calls
            .iter()
            .filter(|call| matches!(call, SinkCall::Apply(..)))
            .count()
    };
    let before = count(fixture.sink.calls());
    wait(fixture.database.write(vec![
        step("insert into t values (1, 1)", Expect::Exec),
        step("select * from t where id = 9", Expect::One),
    ]))
    .unwrap_err();
    // COMMIT detects the violation.
    wait(
        fixture
            .database
            .write(vec![step("insert into u values (1, 77)", Expect::Exec)]),
    )
    .unwrap_err();
    assert_eq!(count(fixture.sink.calls()), before);
    fixture.write("insert into t values (1, 1)", vec![]);
    assert_eq!(count(fixture.sink.calls()), before + 1);
    assert_eq!(
        fixture.rows(&fixture.prepare("select count(*) from u"), vec![]),
        [[int(0)]]
    );
}

#[test]
fn nothing_is_delivered_before_the_start() {
    let directory = lab_testkit::fast_dir();
    let database = Database::open(options(directory.path().join("x.db"))).unwrap();
    database
        .migrate(&[Migration {
            name: "1".into(),
            sql: SCHEMA.into(),
        }])
        .unwrap();
    let sink = Arc::new(RecordingSink::default());
    database.start(Arc::clone(&sink) as Arc<dyn Sink<_>>);
    sink.settle();
    let calls = sink.calls();
    assert_eq!(calls[0], SinkCall::NewEpoch("the feed starts".into()));
    assert!(
        calls
            .iter()
            .all(|call| !matches!(call, SinkCall::Apply(..)))
    );
}

#[test]
fn a_large_change_is_one_to_all_rows() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select * from t where a = :a");
    fixture.fill("other", &query, &[int(-1)]);
    let fill = "with recursive n (x) as (select 1 union all select x + 1 from n where x < :n) insert into t (a) select x from n";
    fixture.write(fill, vec![int(100)]);
    assert!(fixture.sink.cached("other").is_some());
    fixture.write(fill, vec![int(5_000)]);
    assert!(fixture.sink.cached("other").is_none());
    let Some(SinkCall::Apply(_, tags)) = fixture
        .sink
        .calls()
        .into_iter()
        .rfind(|call| matches!(call, SinkCall::Apply(..)))
    else {
        panic!()
    };
    assert_eq!(tags.len(), 2);
}

#[test]
fn an_interest_that_is_new_begins_an_epoch_and_an_old_one_does_not() {
    let fixture = SqliteFixture::new(SCHEMA);
    let first = fixture.prepare("select * from t where a = 1");
    let epoch = fixture.sink.epoch();
    fixture.fill("first", &first, &[]);
    fixture.prepare("select id from t where a = :x");
    assert_eq!(fixture.sink.epoch(), epoch);
    fixture.prepare("select id from t where id = :x");
    assert_eq!(fixture.sink.epoch(), epoch + 1);
    assert_eq!(fixture.sink.cached_len(), 0);
}

#[test]
fn an_own_change_of_the_schema_begins_an_epoch() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select * from t");
    fixture.fill("t", &query, &[]);
    let seen = fixture.sink.calls().len();
    fixture.write("alter table t add column b text default 'x'", vec![]);
    fixture.sink.wait_for_epoch(seen, "schema");
    let read = fixture.read(&query, vec![]);
    assert_eq!(read.results[0].columns.len(), 3);
    fixture.write("insert into t values (1, 2, 'y')", vec![]);
    assert_eq!(fixture.rows(&query, vec![]), [[int(1), int(2), text("y")]]);
}

#[test]
fn a_sink_that_panics_gets_an_epoch_and_the_writer_lives_on() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select count(*) from t");
    fixture.fill("count", &query, &[]);
    let seen = fixture.sink.calls().len();
    fixture.sink.set_trap();
    fixture
        .try_write("insert into t values (1, 1)", vec![])
        .unwrap_err();
    fixture.sink.wait_for_epoch(seen, "not delivered");
    assert_eq!(fixture.sink.cached_len(), 0);
    fixture.write("insert into t values (2, 2)", vec![]);
    assert_eq!(fixture.rows(&query, vec![]), [[int(2)]]);
    assert!(fixture.database.health().failures > 0);
}

#[test]
fn a_step_can_bind_what_an_earlier_one_gave() {
    let fixture = SqliteFixture::new(SCHEMA);
    let steps = vec![
        WriteStep {
            query: fixture.prepare("insert into t (a) values (:a) returning id, a * 2 as twice"),
            bind: vec![Bind::Value(int(21))],
            expect: Expect::One,
        },
        WriteStep {
            query: fixture.prepare("insert into u values (:x, :id)"),
            bind: vec![
                Bind::Column {
                    step: 0,
                    column: "TWICE".into(),
                },
                Bind::Column {
                    step: 0,
                    column: "id".into(),
                },
            ],
            expect: Expect::Exec,
        },
    ];
    let written = wait(fixture.database.write(steps)).unwrap();
    assert_eq!(written.results[0].rows, [[int(1), int(42)]]);
    assert_eq!(
        fixture.rows(&fixture.prepare("select * from u"), vec![]),
        [[int(42), int(1)]]
    );
}
