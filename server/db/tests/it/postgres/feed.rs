//! From a query to a change and back: what is kept, and what makes it go, through the real feed.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use lab_pgtest::Options;
use millpond_db::{
    Bind, Call, Database, DatabaseFeed, Expect, Migration, Position, PostgresOptions, Query,
    ResultRows, Value, WriteStep,
};
use millpond_store::Sink;

use super::{options, prepare, server, try_read};
use crate::support::{RecordingSink, int, text, wait};

const SCHEMA: &str = "
create table t (id integer primary key, n integer not null default 0, word text);
alter table t replica identity full;
create table other (id integer primary key);
insert into t select i, 0, 'w' || i from generate_series(1, 20) i;
create publication millpond for all tables;
";

/// A database with a feed that runs, and a small cache that it tells.
pub(super) struct Fed {
    pub(super) database: Database,
    pub(super) sink: Arc<RecordingSink>,
    scratch: lab_pgtest::Database<'static>,
}

impl Drop for Fed {
    fn drop(&mut self) {
        // The slot goes with the feed; a database with a slot cannot be dropped.
        self.database.stop();
    }
}

pub(super) fn started(options: PostgresOptions) -> (Database, Arc<RecordingSink>) {
    let database = Database::connect(options).unwrap();
    let sink = Arc::new(RecordingSink::default());
    database.start(Arc::clone(&sink) as Arc<dyn Sink<DatabaseFeed>>);
    (database, sink)
}

impl Fed {
    fn new(adjust: impl FnOnce(&mut PostgresOptions)) -> Self {
        Self::with(SCHEMA, adjust)
    }

    /// The schema includes the publication.
    pub(super) fn with(schema: &str, adjust: impl FnOnce(&mut PostgresOptions)) -> Self {
        let scratch = server().database().unwrap();
        let mut client = postgres::Client::connect(&scratch.url(), postgres::NoTls).unwrap();
        client.batch_execute(schema).unwrap();
        let mut options = options(scratch.url());
        adjust(&mut options);
        Self::of(scratch, options)
    }

    /// On a database that has everything.
    pub(super) fn of(scratch: lab_pgtest::Database<'static>, options: PostgresOptions) -> Self {
        let (database, sink) = started(options);
        sink.settle();
        Self {
            database,
            sink,
            scratch,
        }
    }

    pub(super) fn foreign(&self) -> postgres::Client {
        postgres::Client::connect(&self.scratch.url(), postgres::NoTls).unwrap()
    }

    pub(super) fn prepare(&self, sql: &str) -> Query {
        prepare(&self.database, sql)
    }

    /// Reads and keeps the result, if the rules allow it.
    pub(super) fn try_fill(&self, key: &str, query: &Query, params: &[Value]) -> bool {
        let epoch = self.sink.epoch();
        let read = try_read(&self.database, query, params.to_vec()).unwrap();
        self.sink.store(key, epoch, &read)
    }

    /// Reads until the result is kept. An old transaction of another test may hold that up, but not
    /// for ever.
    pub(super) fn fill(&self, key: &str, query: &Query, params: &[Value]) {
        for _ in 0..1_000 {
            if self.try_fill(key, query, params) {
                return;
            }
            self.sink.settle();
        }
        let read = try_read(&self.database, query, params.to_vec()).unwrap();
        panic!("{} is never kept: {:?}", query.sql(), read.deps);
    }

    pub(super) fn write(&self, sql: &str, params: Vec<Value>) -> Position {
        let step = WriteStep {
            query: self.prepare(sql),
            bind: params.into_iter().map(Bind::Value).collect(),
            expect: Expect::Exec,
        };
        wait(self.database.write(vec![step])).unwrap().position
    }
}

#[test]
fn a_result_is_kept_until_another_program_changes_it() {
    let fed = Fed::new(|_| {});
    let query = fed.prepare("select word from t where id = :id");
    fed.fill("one", &query, &[int(1)]);
    fed.fill("two", &query, &[int(2)]);
    let epoch = fed.sink.epoch();
    let mut foreign = fed.foreign();
    foreign
        .batch_execute("update t set word = 'new' where id = 1; insert into other values (1)")
        .unwrap();
    fed.sink.settle();
    assert!(fed.sink.cached("one").is_none());
    assert!(fed.sink.cached("two").is_some());
    assert_eq!(fed.sink.epoch(), epoch, "{:?}", fed.sink.calls().last());
}

#[test]
fn an_empty_result_is_kept_until_a_row_comes() {
    let fed = Fed::new(|_| {});
    let query = fed.prepare("select word from t where id = :id");
    fed.fill("none", &query, &[int(77)]);
    fed.write("insert into t values (78, 0, 'other')", vec![]);
    assert!(fed.sink.cached("none").is_some());
    fed.write("insert into t values (77, 0, 'here')", vec![]);
    assert!(fed.sink.cached("none").is_none());
}

#[test]
fn what_was_taken_is_finished_before_the_end() {
    let fed = Fed::new(|_| {});
    let slow = "update t set n = 5 where id = 1 and pg_sleep(0.3) is not null";
    std::thread::scope(|scope| {
        // It panics if it fails.
        scope.spawn(|| fed.write(slow, vec![]));
        let mut foreign = fed.foreign();
        // Asleep in the statement: preparing it shows the same text.
        let running = "select count(*) from pg_stat_activity \
                       where datname = current_database() and wait_event = 'PgSleep' and query like 'update t set n = 5%'";
        while foreign.query_one(running, &[]).unwrap().get::<_, i64>(0) == 0 {
            std::thread::yield_now();
        }
        fed.database.stop();
    });
    let row = fed.foreign().query_one("select n from t where id = 1", &[]);
    assert_eq!(row.unwrap().get::<_, i32>(0), 5);
}

#[test]
fn an_own_write_has_been_applied_when_it_is_answered() {
    let fed = Fed::new(|_| {});
    let query = fed.prepare("select n from t where id = :id");
    for n in 1..=20 {
        fed.fill("row", &query, &[int(1)]);
        let epoch = fed.sink.epoch();
        fed.write("update t set n = :n where id = 1", vec![int(n)]);
        assert!(fed.sink.cached("row").is_none());
        assert_eq!(fed.sink.epoch(), epoch, "{:?}", fed.sink.calls().last());
        let read = try_read(&fed.database, &query, vec![int(1)]).unwrap();
        assert_eq!(read.results[0].rows, [[int(n)]]);
    }
}

/// A heartbeat that was sent later has returned, and was taken note of everywhere: the one before
/// the last.
fn settled(sink: &RecordingSink) {
    sink.settle();
    sink.settle();
}

#[test]
fn a_write_has_a_position_that_each_node_passes_with_its_own_feed() {
    let fed = Fed::new(|_| {});
    let (other, sink) = started(options(fed.scratch.url()));
    sink.settle();
    let position = fed.write("update t set n = 1 where id = 1", vec![]);
    assert!(fed.database.has_passed(&position), "{position:?}");
    sink.settle();
    assert!(other.has_passed(&position), "{position:?}");
    assert!(wait(other.pass(position.clone())));
    let far = Position::new(position.source(), u64::MAX);
    let elsewhere = Position::new("7, timeline 1", 0);
    for never in [Position::new("", 0), elsewhere.clone(), far] {
        assert!(!other.has_passed(&never), "{never:?}");
        assert!(!wait(other.pass(never)));
    }
    // Of another history, but an answer that some node has numbered.
    let met = elsewhere.with_write_number("a", 7);
    assert!(!other.has_passed(&met) && !wait(other.pass(met.clone())));
    settled(&sink);
    assert!(other.has_passed(&met));
    other.stop();
    assert!(!wait(
        other.pass(Position::new(position.source(), u64::MAX))
    ));
}

#[test]
fn a_write_that_is_rolled_back_touches_nothing_and_nobody_waits_for_it() {
    let fed = Fed::new(|_| {});
    let query = fed.prepare("select count(*) from t");
    fed.fill("count", &query, &[]);
    let steps = ["delete from t", "insert into t (id) values (1), (1)"].map(|sql| WriteStep {
        query: fed.prepare(sql),
        bind: vec![],
        expect: Expect::Exec,
    });
    assert!(wait(fed.database.write(steps.to_vec())).is_err());
    fed.sink.settle();
    assert!(fed.sink.cached("count").is_some());
}

#[test]
fn a_write_that_the_feed_does_not_bring_in_time_ends_what_is_kept() {
    let fed = Fed::new(|options| options.statement_timeout = Duration::from_secs(2));
    let query = fed.prepare("select count(*) from t");
    fed.fill("count", &query, &[]);
    let mut foreign = fed.foreign();
    let pid: i32 = foreign
        .query_one(
            "select active_pid from pg_replication_slots where database = current_database()",
            &[],
        )
        .unwrap()
        .get(0);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let before = fed.sink.calls().len();
    let position = fed.write("delete from t where id = 1", vec![]);
    let cached = fed.sink.cached("count");
    signal("-CONT");
    assert!(cached.is_none());
    assert_eq!(position.source(), "");
    fed.sink
        .wait_for_epoch(before, "has not come through the feed");
    // Here and at other nodes it takes a heartbeat.
    let (other, sink) = started(options(fed.scratch.url()));
    for (database, sink) in [(&fed.database, &fed.sink), (&other, &sink)] {
        settled(sink);
        assert!(!database.has_passed(&position));
        settled(sink);
        assert!(database.has_passed(&position));
    }
}

#[test]
fn a_statement_is_looked_at_again_when_the_schema_has_changed() {
    let fed = Fed::new(|_| {});
    let mut foreign = fed.foreign();
    foreign
        .batch_execute("create view v as select word from t where id = 1")
        .unwrap();
    fed.sink.settle();
    let query = fed.prepare("select * from v");
    fed.fill("view", &query, &[]);
    let before = fed.sink.calls().len();
    foreign
        .batch_execute("create or replace view v as select id::text as word from other")
        .unwrap();
    fed.sink.wait_for_epoch(before, "");
    fed.fill("view", &query, &[]);
    foreign
        .batch_execute("insert into other values (7)")
        .unwrap();
    fed.sink.settle();
    assert!(fed.sink.cached("view").is_none());
    let read = try_read(&fed.database, &query, vec![]).unwrap();
    assert_eq!(read.results[0].rows, [[text("7")]]);
}

#[test]
fn a_migration_begins_an_epoch() {
    let fed = Fed::new(|_| {});
    let query = fed.prepare("select count(*) from t");
    fed.fill("count", &query, &[]);
    let migration = Migration {
        name: "0001".into(),
        sql: "create table late (id integer primary key)".into(),
    };
    fed.database.migrate(&[migration]).unwrap();
    assert!(fed.sink.cached("count").is_none());
    let late = fed.prepare("select count(*) from late");
    fed.fill("late", &late, &[]);
    fed.write("insert into late values (1)", vec![]);
    assert!(fed.sink.cached("late").is_none());
}

#[test]
fn without_logical_replication_nothing_is_kept_and_the_owner_is_told() {
    let server = Options::new().start().unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client.batch_execute(SCHEMA).unwrap();
    let (database, sink) = started(options(server.url()));
    let query = prepare(&database, "select count(*) from t");
    while database.health().failures == 0 {
        std::thread::yield_now();
    }
    let message = database.health().last_failure.unwrap();
    assert!(message.contains("wal_level"), "{message}");
    let read = try_read(&database, &query, vec![]).unwrap();
    assert_eq!(read.results[0].rows, [[int(20)]]);
    assert!(!sink.store("count", sink.epoch(), &read));
    // Nothing was kept, so there is nothing to wait for either.
    let step = WriteStep {
        query: prepare(&database, "delete from t where id = 1"),
        bind: vec![],
        expect: Expect::Exec,
    };
    wait(database.write(vec![step])).unwrap();
    database.stop();
}

/// Rules 1, 2 and 19 together: nothing that was acknowledged is missing from what is kept.
#[test]
fn no_answer_is_older_than_promised() {
    keeps_the_promise(&Fed::new(|options| options.pool = 4));
}

/// Four rows of `t` are written, read and kept at once.
pub(super) fn keeps_the_promise(fed: &Fed) {
    const ROWS: i64 = 4;
    let query = fed.prepare("select n from t where id = :id");
    let update = fed.prepare("update t set n = n + 1 where id = :id returning n");
    let n = |value: &Value| match value {
        Value::Integer(n) => *n,
        other => panic!("{other:?}"),
    };
    std::thread::scope(|scope| {
        for id in 1..=ROWS {
            let (query, update) = (&query, &update);
            scope.spawn(move || {
                let key = id.to_string();
                for round in 1..=40 {
                    let step = WriteStep {
                        query: update.clone(),
                        bind: vec![Bind::Value(int(id))],
                        expect: Expect::One,
                    };
                    let written = wait(fed.database.write(vec![step])).unwrap();
                    assert_eq!(n(&written.results[0].rows[0][0]), round);
                    // Either it is gone, or it was read after the write.
                    if let Some(entry) = fed.sink.cached(&key) {
                        assert_eq!(n(&entry.rows[0].rows[0][0]), round);
                    }
                }
            });
            scope.spawn(move || {
                let key = id.to_string();
                for _ in 0..200 {
                    let epoch = fed.sink.epoch();
                    let call = Call {
                        query: query.clone(),
                        params: vec![int(id)],
                    };
                    let read = wait(fed.database.read(vec![call])).unwrap();
                    fed.sink.store(&key, epoch, &read);
                }
            });
        }
    });
    // What another program commits is gone with the next heartbeat.
    let mut foreign = fed.foreign();
    for round in 0..20 {
        fed.fill("1", &query, &[int(1)]);
        foreign
            .execute("update t set n = $1 where id = 1", &[&(1_000 + round)])
            .unwrap();
        let acknowledged = Boottime::now();
        fed.sink.settle_since(acknowledged);
        if let Some(entry) = fed.sink.cached("1") {
            assert_eq!(n(&entry.rows[0].rows[0][0]), i64::from(1_000 + round));
        }
    }
}

/// Rule 7 for what begins to be told while the feed runs: the stream decides by the catalog as it
/// was at each change.
#[test]
fn what_was_under_way_when_its_table_was_published_is_not_missed() {
    let schema = "create table late (id integer primary key, n integer); insert into late values (1, 0); \
                  create table t (id integer primary key); create publication millpond for table t;";
    let fed = Fed::with(schema, |_| {});
    let late = fed.prepare("select n from late where id = 1");
    let read = || try_read(&fed.database, &late, vec![]).unwrap();
    let reason = || read().deps[0].uncacheable.clone();
    assert!(reason().is_some(), "the table is not published");
    let (mut owner, mut writer) = (fed.foreign(), fed.foreign());
    let mut open = writer.transaction().unwrap();
    open.execute("update late set n = 1 where id = 1", &[])
        .unwrap();
    owner
        .batch_execute("alter publication millpond add table late")
        .unwrap();
    // Once the feed has seen that it is published now, what was read is still not to be kept.
    while reason().is_some() {
        fed.sink.settle();
    }
    let now = read()
        .uncovered
        .expect("the transaction under way will never be told");
    assert!(now.contains("does not cover"), "{now}");
    assert!(!fed.try_fill("late", &late, &[]));
    open.commit().unwrap();
    fed.fill("late", &late, &[]);
    assert_eq!(read().results[0].rows, [[int(1)]]);
}

/// A statement with casts runs on as it was prepared, under any present names of its columns; each
/// connection has to be told.
#[test]
fn columns_that_swap_their_names_are_read_anew_on_every_connection() {
    let schema = "create table w (price integer, net integer, term interval); insert into w values (100, 80, '1 day'); \
                  create table busy (id integer primary key); create publication millpond for all tables;";
    let fed = Fed::with(schema, |options| {
        options.pool = 2;
        options.workers = 1;
    });
    let query = fed.prepare("select w.*, pg_sleep(0.2)::text as pause from w");
    // Both connections at once, since each is busy for a while.
    let both = || -> Vec<ResultRows> {
        std::thread::scope(|scope| {
            let reads = [(); 2].map(|()| scope.spawn(|| try_read(&fed.database, &query, vec![])));
            let reads = reads.into_iter().map(|read| read.join().unwrap().unwrap());
            reads.map(|mut read| read.results.remove(0)).collect()
        })
    };
    let price = |rows: &ResultRows| {
        let at = rows.columns.iter().position(|name| &**name == "price");
        rows.rows[0][at.unwrap()].clone()
    };
    assert!(both().iter().all(|rows| price(rows) == int(100)));
    let epoch = fed.sink.epoch();
    fed.foreign()
        .batch_execute(
            "begin; alter table w rename price to gross; alter table w rename net to price; commit",
        )
        .unwrap();
    while fed.sink.epoch() == epoch {
        fed.sink.settle();
    }
    // One of them finds out what the statement is now; then the other is used too.
    try_read(&fed.database, &query, vec![]).unwrap();
    for rows in both() {
        assert_eq!(price(&rows), int(80), "{rows:?}");
    }
}
