//! Reads on replicas: kept where they show all that the feed has brought, and left to the primary
//! where they do not.

mod faults;
mod schema;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base_clock::Boottime;
use lab_pgtest::{Options, Postgres};
use millpond_db::{
    Bind, Call, Database, Expect, PostgresOptions, Query, ReadResult, ReadTerms, Snapshot,
    Transactions, Value, WriteStep,
};

use super::batches::first;
use super::feed::started;
use super::{PATIENCE, options, prepare};
use crate::support::{RecordingSink, int, wait};

/// Terms on which a replica may answer.
fn spread() -> ReadTerms {
    ReadTerms {
        is_spread: true,
        held: None,
    }
}

const SCHEMA: &str = "
create table t (id integer primary key, n integer not null);
alter table t replica identity full;
create table other (n integer not null);
alter table other replica identity full;
create table untold (n integer not null);
insert into t select i, 0 from generate_series(1, 20) i;
insert into other values (100);
insert into untold values (0);
create table late (n integer not null);
alter table late replica identity full;
insert into late values (0);
create sequence s;
create view v as select n from t where id = 1;
create publication millpond for table t, other;
";

/// A primary, its standby, and a database that may read both.
struct Pair {
    database: Database,
    sink: Arc<RecordingSink>,
    standby: Postgres,
    primary: Postgres,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.database.stop();
    }
}

fn client(server: &Postgres) -> postgres::Client {
    postgres::Client::connect(&server.url(), postgres::NoTls).unwrap()
}

fn host(server: &Postgres) -> String {
    format!("127.0.0.1:{}", server.port())
}

/// Does `try` until it gives something.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "gave up waiting for {what}");
    }
}

fn is_replicas(read: &ReadResult) -> bool {
    matches!(read.snapshot, Snapshot::Applied(_))
}

impl Pair {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// With the longest lag that is ever allowed, so that no read is the primary's because the feed
    /// is slow.
    fn with(adjust: impl FnOnce(&mut PostgresOptions)) -> Self {
        let primary = Options::new().logical().start().unwrap();
        client(&primary).batch_execute(SCHEMA).unwrap();
        let standby = primary.standby().unwrap();
        let mut options = options(primary.url());
        options.replicas = vec![host(&standby)];
        options.max_staleness = Duration::from_secs(600);
        adjust(&mut options);
        let (database, sink) = started(options);
        sink.settle();
        Self {
            database,
            sink,
            standby,
            primary,
        }
    }

    fn prepare(&self, sql: &str) -> Query {
        prepare(&self.database, sql)
    }

    /// A query that may be kept, in which a replica does `what` first.
    fn prepare_trap(&self, what: &str) -> Query {
        let trap = format!(
            "create function trap(n integer) returns text language plpgsql stable as \
             $$ begin if pg_is_in_recovery() then {what}; end if; return n; end $$"
        );
        let told = self.sink.calls().len();
        client(&self.primary).batch_execute(&trap).unwrap();
        self.sink.wait_for_epoch(told, "the schema has changed");
        let sql = "select trap(n) from t where id = 1";
        self.database.prepare_depending(sql, Some(&[])).unwrap()
    }

    fn read(&self, query: &Query) -> ReadResult {
        let query = query.clone();
        let params = vec![];
        wait(
            self.database
                .read_with(vec![Call { query, params }], spread()),
        )
        .unwrap()
    }

    /// Returns the result that the replica reads, once it reads.
    fn replicas(&self, query: &Query) -> ReadResult {
        let began = Instant::now();
        loop {
            let read = self.read(query);
            if is_replicas(&read) {
                return read;
            }
            let waited = began.elapsed();
            assert!(
                waited < PATIENCE,
                "no replica reads {query:?}: {:?}, {:?}",
                self.database.health(),
                read.deps
            );
        }
    }

    /// `query` is prepared already: what was just looked at is not read on a replica for a moment.
    fn write(&self, query: &Query, value: i64) {
        let step = WriteStep {
            query: query.clone(),
            bind: vec![Bind::Value(int(value))],
            expect: Expect::Exec,
        };
        wait(self.database.write(vec![step])).unwrap();
    }

    fn pause(&self) {
        let mut standby = client(&self.standby);
        let pause = "select pg_wal_replay_pause()";
        standby.batch_execute(pause).unwrap();
        until("the pause", || {
            let state = "select pg_get_wal_replay_pause_state()";
            let state: String = standby.query_one(state, &[]).unwrap().get(0);
            (state == "paused").then_some(())
        });
    }

    fn resume(&self) {
        let resume = "select pg_wal_replay_resume()";
        client(&self.standby).batch_execute(resume).unwrap();
    }

    /// Everything that a read gives is `value`, and nothing is read on the replica.
    fn is_the_primarys(&self, query: &Query, value: &Value) {
        for _ in 0..20 {
            let read = self.read(query);
            assert!(!is_replicas(&read));
            assert_eq!(&first(&read, 0), value);
        }
    }
}

#[test]
fn what_a_replica_reads_is_kept_until_a_change_ends_it() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    let plain = Call {
        query: query.clone(),
        params: vec![],
    };
    let epoch = pair.sink.epoch();
    let read = pair.replicas(&query);
    assert_eq!(first(&read, 0), int(0));
    assert!(pair.database.health().replica_reads > 0);
    assert!(pair.sink.store("a", epoch, &read));
    // Once the feed has passed all that it saw, it may be combined with others.
    assert!(read.position < u64::MAX);
    // Who asks for the primary gets it.
    assert!(!is_replicas(
        &wait(pair.database.read(vec![plain])).unwrap()
    ));

    let mut foreign = client(&pair.primary);
    let update = |id| format!("update t set n = n + 1 where id = {id}");
    foreign.batch_execute(&update(2)).unwrap();
    pair.sink.settle();
    assert!(pair.sink.cached("a").is_some());
    foreign.batch_execute(&update(1)).unwrap();
    pair.sink.settle();
    assert!(pair.sink.cached("a").is_none());
    assert_eq!(first(&pair.read(&query), 0), int(1));
    let read = pair.replicas(&query);
    assert_eq!(first(&read, 0), int(1));
    assert!(pair.sink.store("a", epoch, &read));
}

#[test]
fn a_replica_that_has_not_replayed_a_change_is_left_to_itself() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    pair.replicas(&query);
    pair.pause();
    let mut foreign = client(&pair.primary);
    for value in 1..4 {
        let update = format!("update t set n = {value} where id = 1");
        foreign.batch_execute(&update).unwrap();
        pair.sink.settle();
        pair.is_the_primarys(&query, &int(value));
    }
    pair.resume();
    assert_eq!(first(&pair.replicas(&query), 0), int(3));
}

#[test]
fn a_replica_that_lags_more_than_the_bound_is_not_read_even_if_nothing_has_changed() {
    const BOUND: Duration = Duration::from_millis(200);
    let pair = Pair::with(|options| options.max_staleness = BOUND);
    let query = pair.prepare("select n from t where id = 1");
    pair.replicas(&query);
    pair.pause();
    let paused = Boottime::now();
    // No change is told: only heartbeats show that the replica is behind.
    let mut late = 0;
    until("reads that the bound holds for", || {
        let asked = Boottime::now();
        let read = pair.read(&query);
        if asked.since(paused) > BOUND {
            assert!(!is_replicas(&read));
            late += 1;
        }
        (late > 100).then_some(())
    });
    pair.resume();
    pair.replicas(&query);
}

/// Counterexample: *Its age on a replica is unknown: an own write may be missing,
/// and a sequence there shows values that never were.*
#[test]
fn what_no_feed_tells_of_is_the_primarys() {
    let pair = Pair::new();
    let told = pair.prepare("select n from t where id = 1");
    let untold = pair.prepare("select n from untold");
    let sequence = pair.prepare("select last_value from s");
    let own = pair.prepare("select pg_is_in_recovery()::integer");
    pair.replicas(&told);
    client(&pair.primary)
        .batch_execute("select nextval('s'); update untold set n = 7")
        .unwrap();
    // Without the wait that there is for what the feed brings.
    pair.is_the_primarys(&untold, &int(7));
    pair.sink.settle();
    pair.replicas(&told);
    pair.is_the_primarys(&untold, &int(7));
    pair.is_the_primarys(&sequence, &int(1));
    pair.is_the_primarys(&own, &int(0));
    // Nor is what comes with it: a page is of one snapshot.
    let both = [&told, &untold].map(|query| Call {
        query: query.clone(),
        params: vec![],
    });
    let read = wait(pair.database.read_with(both.to_vec(), spread())).unwrap();
    assert!(!is_replicas(&read));
    pair.replicas(&told);
}

/// Counterexample: *A standby's snapshot lists none of the primary's open transactions, so one that
/// has not ended counts as seen.*
#[test]
fn a_transaction_that_a_standby_takes_for_ended_keeps_its_fill_out() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    let mut slow = client(&pair.primary);
    let mut open = slow.transaction().unwrap();
    open.batch_execute("update t set n = 1 where id = 1")
        .unwrap();
    let id: String = open
        .query_one("select pg_current_xact_id()::text", &[])
        .unwrap()
        .get(0);
    let id: u64 = id.parse().unwrap();
    let other = "update t set n = 1 where id = 2";
    client(&pair.primary).batch_execute(other).unwrap();
    pair.sink.settle();

    let epoch = pair.sink.epoch();
    let read = pair.replicas(&query);
    assert_eq!(first(&read, 0), int(0));
    let listed: String = client(&pair.standby)
        .query_one("select pg_current_snapshot()::text", &[])
        .unwrap()
        .get(0);
    let listed = Transactions::parse(&listed).unwrap();
    assert!(listed.sees(id), "the counterexample: it is open");

    open.commit().unwrap();
    pair.sink.settle();
    let by_list = ReadResult {
        snapshot: Snapshot::Transactions(Arc::new(listed)),
        ..read.clone()
    };
    assert!(
        pair.sink.store("stale", epoch, &by_list),
        "what the rule is for"
    );
    assert!(!pair.sink.store("a", epoch, &read));
    assert_eq!(first(&pair.read(&query), 0), int(1));
}

#[test]
fn who_has_written_reads_it_whatever_the_replica_has_replayed() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    let update = pair.prepare("update t set n = :n where id = 1");
    pair.replicas(&query);
    for value in 1..20 {
        pair.write(&update, value);
        assert_eq!(first(&pair.read(&query), 0), int(value));
    }
    pair.replicas(&query);
    pair.pause();
    pair.write(&update, 50);
    pair.is_the_primarys(&query, &int(50));
}

#[test]
fn what_another_node_has_written_is_read_once_its_position_is_passed() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    let (other, _) = started(options(pair.primary.url()));
    pair.replicas(&query);
    pair.pause();
    let step = WriteStep {
        query: prepare(&other, "update t set n = 60 where id = 1"),
        bind: vec![],
        expect: Expect::Exec,
    };
    let position = until("a write that the other node's feed brings", || {
        let position = wait(other.write(vec![step.clone()])).unwrap().position;
        (!position.source().is_empty()).then_some(position)
    });
    until("the position", || {
        wait(pair.database.pass(position.clone())).then_some(())
    });
    pair.is_the_primarys(&query, &int(60));
    other.stop();
}

#[test]
fn a_change_of_the_schema_is_waited_for_too() {
    let pair = Pair::new();
    let query = pair.prepare("select n from v");
    assert_eq!(first(&pair.replicas(&query), 0), int(0));
    pair.pause();
    let told = pair.sink.calls().len();
    client(&pair.primary)
        .batch_execute("create or replace view v as select n from other")
        .unwrap();
    pair.sink.wait_for_epoch(told, "the schema has changed");
    pair.is_the_primarys(&query, &int(100));
    pair.sink.settle();
    pair.is_the_primarys(&query, &int(100));
    pair.resume();
    assert_eq!(first(&pair.replicas(&query), 0), int(100));
}

/// Rule 7. Counterexample: *A table is published while a transaction that has changed it is open;
/// the replica shows the table without it, and the stream never tells of it.*
#[test]
fn what_was_under_way_when_its_table_was_published_is_waited_for_too() {
    let pair = Pair::new();
    let query = pair.prepare("select n from late");
    let told = pair.prepare("select n from t where id = 1");
    pair.replicas(&told);
    let mut writer = client(&pair.primary);
    let mut open = writer.transaction().unwrap();
    open.batch_execute("update late set n = 1").unwrap();
    let before = pair.sink.calls().len();
    client(&pair.primary)
        .batch_execute("alter publication millpond add table late")
        .unwrap();
    pair.sink.wait_for_epoch(before, "the schema has changed");
    for _ in 0..20 {
        pair.sink.settle();
        pair.is_the_primarys(&query, &int(0));
    }
    open.commit().unwrap();
    let epoch = pair.sink.epoch();
    let read = pair.replicas(&query);
    assert_eq!(first(&read, 0), int(1));
    assert!(pair.sink.store("late", epoch, &read));
}
