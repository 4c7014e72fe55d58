//! Other programs that use the same file.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond_db::Error;

use crate::support::{SinkCall, SqliteFixture, int, text, wait};

const SCHEMA: &str =
    "create table t (id integer primary key, a text); insert into t values (1, 'one');";

#[test]
fn a_foreign_commit_begins_an_epoch() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    fixture.fill("t", &query, &[int(1)]);
    fixture
        .foreign()
        .execute_batch("update t set a = 'two' where id = 1")
        .unwrap();
    fixture.sink.settle();
    assert!(fixture.sink.cached("t").is_none());
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("two")]]);
}

#[test]
fn own_commits_begin_none() {
    let fixture = SqliteFixture::new(SCHEMA);
    let epoch = fixture.sink.epoch();
    for id in 2..50 {
        fixture.write("insert into t values (:id, 'x')", vec![int(id)]);
    }
    fixture.sink.settle();
    assert_eq!(
        fixture.sink.epoch(),
        epoch,
        "{:?}",
        fixture.sink.calls().last()
    );
}

#[test]
fn a_foreign_commit_just_before_our_own_is_found_in_our_transaction() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.poll = std::time::Duration::from_secs(3_600);
    });
    let query = fixture.prepare("select a from t where id = :id");
    fixture.fill("t", &query, &[int(1)]);
    fixture
        .foreign()
        .execute_batch("update t set a = 'two' where id = 1")
        .unwrap();
    // No poll is due for an hour, so an own write to another table must find the commit.
    fixture.write("insert into t values (9, 'nine')", vec![]);
    assert!(fixture.sink.cached("t").is_none());
    let calls = fixture.sink.calls();
    let epoch = calls
        .iter()
        .rposition(
            |call| matches!(call, SinkCall::NewEpoch(reason) if reason.contains("another program")),
        )
        .unwrap();
    let apply = calls
        .iter()
        .rposition(|call| matches!(call, SinkCall::Apply(..)))
        .unwrap();
    assert!(epoch < apply);
}

#[test]
fn a_foreign_transaction_holds_up_our_writes_but_not_the_heartbeats() {
    let fixture = SqliteFixture::new(SCHEMA);
    let foreign = fixture.foreign();
    foreign
        .execute_batch("begin immediate; update t set a = 'two'")
        .unwrap();
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| fixture.write("update t set a = a || ' and ours'", vec![]));
        // Two heartbeats arrive while the write waits.
        fixture.sink.settle();
        fixture.sink.settle();
        assert!(!ours.is_finished());
        foreign.execute_batch("commit").unwrap();
    });
    assert_eq!(
        fixture.rows(&fixture.prepare("select a from t"), vec![]),
        [[text("two and ours")]]
    );
}

#[test]
fn a_lock_that_is_never_released_is_a_timeout() {
    let fixture = SqliteFixture::with(SCHEMA, |options| {
        options.busy_timeout = std::time::Duration::from_millis(30);
    });
    let foreign = fixture.foreign();
    foreign
        .execute_batch("begin immediate; update t set a = 'two'")
        .unwrap();
    assert!(matches!(
        fixture.try_write("update t set a = 'ours'", vec![]),
        Err(Error::Locked { waited: Some(_) })
    ));
    foreign.execute_batch("rollback").unwrap();
    fixture.write("update t set a = 'ours'", vec![]);
}

/// A database file with one row, prepared by another program.
fn successor(fixture: &SqliteFixture, value: &str) -> std::path::PathBuf {
    let path = fixture.directory.path().join("next.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "create table t (id integer primary key, a text); insert into t values (1, '{value}')"
        ))
        .unwrap();
    path
}

#[test]
fn a_replaced_file_begins_an_epoch_and_is_read_from_then_on() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    fixture.fill("t", &query, &[int(1)]);
    // The old file's log then contains a change that must not reach the new file.
    fixture.write("update t set a = 'old' where id = 1", vec![]);
    let seen = fixture.sink.calls().len();
    fs::rename(successor(&fixture, "new"), fixture.path()).unwrap();
    fixture.sink.wait_for_epoch(seen, "opened again");
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("new")]]);
    fixture.write("update t set a = 'newer' where id = 1", vec![]);
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("newer")]]);
    let check: String = fixture
        .foreign()
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

/// Counterexample: before readers waited for the writer, a reader could open the new file together
/// with the old log. It read the two as one database, and held a lock that permanently excluded the
/// writer.
#[test]
fn a_file_that_is_replaced_under_a_crowd_of_reads_is_one_file_and_can_be_written() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let query = fixture.prepare("select id, a from t order by id");
    let many = "insert into t with recursive n(id) as (select 2 union all select id + 1 from n where id < 500) select id, 'one' from n";
    fixture.write(many, vec![]);
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Reads fail while no file can be read.
                    let read = match fixture.try_read(&query, &[]) {
                        Err(Error::Unavailable { .. }) => continue,
                        read => read.unwrap(),
                    };
                    let rows = &read.results[0].rows;
                    assert!(rows.iter().all(|row| row[1] == rows[0][1]), "mixed");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let ended = catch_unwind(AssertUnwindSafe(|| {
            for round in 0..30 {
                let before = reads.load(Ordering::Relaxed);
                fixture.write(&format!("update t set a = 'in log {round}'"), vec![]);
                fixture.write("update t set id = id + 1000 where id > 1", vec![]);
                let next = successor(&fixture, &format!("new {round}"));
                fs::rename(next, fixture.path()).unwrap();
                // Reads the file of this round at the first attempt.
                fixture.write("update t set a = 'written' where id = 1", vec![]);
                assert_eq!(fixture.rows(&query, vec![]), [[int(1), text("written")]]);
                while reads.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
    });
}

#[test]
fn a_file_that_another_program_keeps_from_being_opened_is_read_all_the_same() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    let next = successor(&fixture, "new");
    // A read transaction in rollback-journal mode prevents the change to WAL mode.
    let mut foreign = rusqlite::Connection::open(&next).unwrap();
    let reading = foreign.transaction().unwrap();
    reading
        .query_row("select count(*) from t", [], |_| Ok(()))
        .unwrap();
    fs::rename(next, fixture.path()).unwrap();
    let read = |id| fixture.try_read(&query, &[int(id)]);
    loop {
        match read(1) {
            Ok(read) if read.results[0].rows == [[text("new")]] => break,
            // The old file is read until the new one is detected; then reads fail for a while.
            Ok(read) => assert_eq!(read.results[0].rows, [[text("one")]]),
            Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
        }
    }
    let error = fixture
        .try_write("update t set a = 'mine'", vec![])
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    drop(reading);
    drop(foreign);
    while fixture
        .try_write("update t set a = 'mine'", vec![])
        .is_err()
    {}
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("mine")]]);
}

#[test]
fn a_read_of_the_old_file_does_not_hold_up_the_new_one() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let (endless, query) = (
        fixture.prepare(endless),
        fixture.prepare("select a from t where id = :id"),
    );
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| fixture.try_read(&endless, &[]));
        // A thread has taken the read, and its caller has dropped the future.
        while fixture.database.health().waiting_reads > 0 {
            std::thread::yield_now();
        }
        fs::rename(successor(&fixture, "new"), fixture.path()).unwrap();
        fixture.write("update t set a = 'mine'", vec![]);
        assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("mine")]]);
        assert!(slow.join().unwrap().is_err());
    });
}

#[test]
fn without_the_file_there_is_no_heartbeat_and_with_it_there_is_again() {
    let fixture = SqliteFixture::on_disk(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    let seen = fixture.sink.calls().len();
    let delete = fixture.prepare("delete from t");
    let away = fixture.directory.path().join("away.db");
    fs::rename(fixture.path(), &away).unwrap();
    fixture.sink.wait_for_epoch(seen, "replaced or removed");
    // The epoch begins first in the poll that detects the removal; from then on no heartbeat is
    // sent.
    assert!(matches!(
        fixture.try_read(&query, &[int(1)]),
        Err(Error::Unavailable { .. })
    ));
    let delete = millpond_db::WriteStep {
        query: delete,
        bind: vec![],
        expect: millpond_db::Expect::Exec,
    };
    assert!(matches!(
        wait(fixture.database.write(vec![delete])),
        Err(Error::Unavailable { .. })
    ));
    let calls = fixture.sink.calls();
    let gone = calls
        .iter()
        .rposition(|call| matches!(call, SinkCall::NewEpoch(_)))
        .unwrap();
    assert!(
        !calls[gone..]
            .iter()
            .any(|call| matches!(call, SinkCall::Heartbeat(..)))
    );
    assert!(fixture.database.health().failures > 0);
    fs::rename(&away, fixture.path()).unwrap();
    fixture.sink.settle();
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[text("one")]]);
}

#[test]
fn a_foreign_change_of_the_schema_is_seen_by_the_next_read() {
    let fixture = SqliteFixture::new(
        "create table t (a text); create table u (a text); insert into t values ('t'); insert into u values ('u'); create view v as select a from t;",
    );
    let query = fixture.prepare("select * from v");
    assert_eq!(query.describe(), ["t: every change"]);
    // Both readers have the old view in memory.
    for _ in 0..4 {
        assert_eq!(fixture.rows(&query, vec![]), [[text("t")]]);
    }
    fixture
        .foreign()
        .execute_batch("drop view v; create view v as select a, 1 as one from u")
        .unwrap();
    for _ in 0..4 {
        let read = fixture.read(&query, vec![]);
        assert_eq!(read.results[0].rows, [[text("u"), int(1)]]);
        assert_eq!(read.results[0].columns.len(), 2);
        assert_eq!(query.describe(), ["u: every change"]);
        // On a connection that has not run a statement since, and has the old schema in memory.
        assert_eq!(
            fixture.prepare("select a from v").describe(),
            ["u: every change"]
        );
    }
    fixture.sink.settle();
    assert!(fixture.evicts(&query, &[], "insert into u values ('more')"));
    assert!(!fixture.evicts(&query, &[], "insert into t values ('more')"));
}

#[test]
fn a_dropped_table_is_an_error_and_not_an_old_answer() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    fixture.fill("t", &query, &[int(1)]);
    fixture.foreign().execute_batch("drop table t").unwrap();
    assert!(matches!(
        fixture.try_read(&query, &[int(1)]),
        Err(Error::Sql { .. })
    ));
    fixture.sink.settle();
    assert!(fixture.sink.cached("t").is_none());
}
