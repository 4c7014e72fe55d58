//! What triggers cost a program that writes, and whether a flood of its commits is followed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use millpond_db::Value;

use crate::sqlite_triggers::open;
use crate::support::{SinkCall, SqliteFixture, int};

/// The steps of SQLite's virtual machine that a statement takes, without triggers and with them: a
/// cost that is the same on each machine.
#[test]
fn what_recording_costs_in_steps() {
    const ROW: &str = "create table t (id integer primary key, a integer, slug text unique, title text, price real, at datetime, body text);
        insert into t values (1, 1, 's', 't', 1.5, '2026-01-01', 'b'), (2, 1, 's2', 't', 1.5, '2026-01-01', 'b')";
    let fixtures = [SqliteFixture::new(ROW), SqliteFixture::recorded(ROW)];
    let mut lines = String::new();
    for sql in [
        "update t set a = a + 1 where id = 1",
        "update t set a = a + 1, slug = slug, title = title, price = price, at = at, body = body where id = 1",
        "update t set slug = 'other' where id = 1",
        "insert into t values (3, 1, 's3', 't', 1.5, '2026-01-01', 'b')",
        "insert or replace into t values (2, 1, 's3', 't', 1.5, '2026-01-01', 'b')",
        "delete from t where id = 2",
    ] {
        let steps = fixtures.each_ref().map(|fixture| {
            let foreign = open(fixture);
            let mut statement = foreign.prepare(sql).unwrap();
            statement.execute([]).unwrap();
            statement.get_status(rusqlite::StatementStatus::VmStep)
        });
        writeln!(lines, "{} -> {}: {sql}", steps[0], steps[1]).unwrap();
    }
    expect![[r#"
        24 -> 204: update t set a = a + 1 where id = 1
        36 -> 227: update t set a = a + 1, slug = slug, title = title, price = price, at = at, body = body where id = 1
        32 -> 306: update t set slug = 'other' where id = 1
        25 -> 227: insert into t values (3, 1, 's3', 't', 1.5, '2026-01-01', 'b')
        33 -> 437: insert or replace into t values (2, 1, 's3', 't', 1.5, '2026-01-01', 'b')
        14 -> 146: delete from t where id = 2
    "#]].assert_eq(&lines);
}

/// Measures the cost of an update by another program. Run alone: `cargo test --release -p
/// millpond-db --test it what_a_commit_of_another_program_costs -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn what_a_commit_of_another_program_costs() {
    const ROUNDS: u32 = 4_000;
    const ROWS: &str = "create table t (id integer primary key, a integer, slug text unique, title text, body text);
        insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
        select i, i % 7, 'slug ' || i, 'title ' || i, 'body ' || i from n;";
    let measure = |what: &str, fixture: &SqliteFixture| {
        let foreign = open(fixture);
        for synchronous in ["off", "full"] {
            foreign
                .pragma_update(None, "synchronous", synchronous)
                .unwrap();
            for sql in [
                "update t set a = a + 1 where id = ?1",
                "insert or replace into t select id, a + 1, slug, title, body from t where id = ?1",
            ] {
                let mut statement = foreign.prepare(sql).unwrap();
                let began = Instant::now();
                for round in 0..ROUNDS {
                    statement.execute([round * 23 % 100_000 + 1]).unwrap();
                }
                let each = began.elapsed() / ROUNDS;
                println!("{what}, synchronous = {synchronous}: {each:?} for: {sql}");
            }
        }
    };
    measure("without triggers", &SqliteFixture::on_disk(ROWS));
    let fixture = SqliteFixture::recorded_on_disk(ROWS);
    measure("with triggers", &fixture);
}

/// Prints how many commits a second another program makes, how long the feed is behind, and which
/// epochs it begins; no answer may be old. It measures, so it is run by hand.
#[test]
#[ignore = "it measures"]
fn a_flood_of_commits_by_another_program_is_followed() {
    const ROWS: i64 = 64;
    let fixture = SqliteFixture::recorded_on_disk(
        "create table t (id integer primary key, version integer, body text);
         insert into t with recursive n(i) as (select 0 union all select i + 1 from n where i < 63) select i, 0, 'b' from n;",
    );
    let query = fixture.prepare("select version from t where id = :id");
    let committed: Vec<AtomicI64> = (0..ROWS).map(|_| AtomicI64::new(0)).collect();
    let until = Instant::now() + Duration::from_secs(20);
    let (mut checked, mut hits, mut longest) = (0_u64, 0_u64, Duration::ZERO);
    thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let foreign = open(&fixture);
            foreign.pragma_update(None, "synchronous", "off").unwrap();
            let sql = "update t set version = version + 1 where id = ?1";
            let mut statement = foreign.prepare(sql).unwrap();
            let mut count = 0_i64;
            while Instant::now() < until {
                let id = count * 7 % ROWS;
                statement.execute([id]).unwrap();
                committed[usize::try_from(id).unwrap()].fetch_add(1, Ordering::SeqCst);
                count += 1;
            }
            count
        });
        while Instant::now() < until {
            for id in 0..ROWS {
                let before = committed[usize::try_from(id).unwrap()].load(Ordering::SeqCst);
                let key = id.to_string();
                let began = Instant::now();
                fixture.sink.settle();
                longest = longest.max(began.elapsed());
                match fixture.sink.cached(&key) {
                    Some(kept) => {
                        let Value::Integer(version) = kept.rows[0].rows[0][0] else {
                            panic!("{:?}", kept.rows);
                        };
                        assert!(version >= before, "{id}: {version} instead of {before}");
                        hits += 1;
                    }
                    None => {
                        let epoch = fixture.sink.epoch();
                        let read = fixture.try_read(&query, &[int(id)]).unwrap();
                        fixture.sink.store(&key, epoch, &read);
                    }
                }
                checked += 1;
            }
        }
        let count = flood.join().unwrap();
        println!("{} commits a second", count / 20);
    });
    let mut epochs = BTreeMap::new();
    for call in fixture.sink.calls() {
        if let SinkCall::NewEpoch(reason) = call {
            *epochs.entry(reason).or_insert(0) += 1;
        }
    }
    println!("{checked} looks, {hits} hits, behind for at most {longest:?}, epochs {epochs:?}");
}
