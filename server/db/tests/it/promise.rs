//! The guarantee under concurrency: own writes are visible at once, and so is every commit of
//! another program that was acknowledged before the newest heartbeat was sent.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use base_clock::Boottime;
use millpond_db::{Call, ResultRows, Value};
use parking_lot::Mutex;

use crate::support::{SinkCall, SqliteFixture, int, wait};

const ROWS: i64 = 6;
const OWN_WRITES: i64 = 150;

struct Acknowledged {
    own: Vec<AtomicI64>,
    /// Time, row id and value of each write.
    foreign: Mutex<Vec<(Boottime, i64, i64)>>,
}

impl Acknowledged {
    fn foreign_before(&self, sent: Boottime, id: i64) -> i64 {
        self.foreign
            .lock()
            .iter()
            .filter(|(at, row, _)| *at < sent && *row == id)
            .map(|(.., value)| *value)
            .max()
            .unwrap_or(0)
    }
}

fn counters(rows: &ResultRows) -> (i64, i64) {
    match rows.rows[0][..] {
        [Value::Integer(own), Value::Integer(foreign)] => (own, foreign),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn no_answer_is_older_than_promised() {
    run(&SqliteFixture::new(SCHEMA));
}

#[test]
fn no_answer_is_older_than_promised_with_triggers() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let seen = fixture.sink.calls().len();
    run(&fixture);
    let calls = fixture.sink.calls();
    let by_others = |call: &&SinkCall| matches!(call, SinkCall::NewEpoch(reason) if reason.contains("another program"));
    assert_eq!(calls.iter().skip(seen).find(by_others), None);
}

const SCHEMA: &str =
    "create table t (id integer primary key, own integer not null, other integer not null)";

fn run(fixture: &SqliteFixture) {
    for id in 0..ROWS {
        fixture.write("insert into t values (:id, 0, 0)", vec![int(id)]);
    }
    let query = fixture.prepare("select own, other from t where id = :id");
    let acknowledged = Acknowledged {
        own: (0..ROWS).map(|_| AtomicI64::new(0)).collect(),
        foreign: Mutex::default(),
    };
    let (done, hits) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 1..=OWN_WRITES {
                let id = n % ROWS;
                fixture.write(
                    "update t set own = :n where id = :id",
                    vec![int(n), int(id)],
                );
                acknowledged.own[usize::try_from(id).unwrap()].store(n, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            let foreign = fixture.foreign();
            let mut n = 0;
            while !done.load(Ordering::SeqCst) {
                n += 1;
                let id = n % ROWS;
                foreign
                    .execute("update t set other = ?1 where id = ?2", [n, id])
                    .unwrap();
                acknowledged.foreign.lock().push((Boottime::now(), id, n));
                // Leaves the readers some time without new epochs.
                fixture.sink.settle();
                fixture.sink.settle();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    for id in 0..ROWS {
                        if check(fixture, &query, &acknowledged, id) {
                            hits.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        writer.join().unwrap();
        done.store(true, Ordering::SeqCst);
    });
    assert!(hits.into_inner() > 0);
}

/// Reads once, from the cache if it has the result; true if it had.
fn check(
    fixture: &SqliteFixture,
    query: &millpond_db::Query,
    acknowledged: &Acknowledged,
    id: i64,
) -> bool {
    let key = id.to_string();
    let own = acknowledged.own[usize::try_from(id).unwrap()].load(Ordering::SeqCst);
    let (rows, sent, hit) = match fixture.sink.answer(&key) {
        Some((entry, sent)) => (entry.rows, sent, true),
        None => {
            let asked = Boottime::now();
            let epoch = fixture.sink.epoch();
            let read = wait(fixture.database.read(vec![Call {
                query: query.clone(),
                params: vec![int(id)],
            }]))
            .unwrap();
            fixture.sink.store(&key, epoch, &read);
            (read.results, asked, false)
        }
    };
    let (got_own, got_foreign) = counters(&rows[0]);
    assert!(
        got_own >= own,
        "row {id}: {got_own} after {own} was acknowledged (from the cache: {hit})"
    );
    let foreign = acknowledged.foreign_before(sent, id);
    assert!(
        got_foreign >= foreign,
        "row {id}: {got_foreign} after {foreign} of another program (from the cache: {hit})"
    );
    hit
}
