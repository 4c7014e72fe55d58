//! The database where logical replication cannot be had: what is kept, and what makes it go,
//! through the triggers.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lab_pgtest::Postgres;
use millpond_db::{Database, FeedKind, PostgresOptions, Query, Requirement};

use super::feed::{Fed, keeps_the_promise};
use super::{model, options, prepare, try_read};
use crate::support::{SinkCall, int};

/// A server as managed ones often are: `wal_level` is replica.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| Postgres::start().expect("PostgreSQL starts"));

const SCHEMA: &str = "
create table t (id integer primary key, n integer not null default 0, word text);
insert into t select i, 0, 'w' || i from generate_series(1, 20) i;
";

/// A database of a role without the right to replicate.
fn scratch(schema: &str) -> (lab_pgtest::Database<'static>, PostgresOptions) {
    let scratch = SERVER.database().unwrap();
    let role = "do $$ begin create role site login; exception when duplicate_object or unique_violation then null; end $$; \
                grant create on schema public to site; set role site";
    foreign(&scratch)
        .batch_execute(&format!("{role}; {schema}"))
        .unwrap();
    let options = PostgresOptions {
        feed: FeedKind::Triggers,
        ..options(scratch.url().replace("postgres@", "site@"))
    };
    (scratch, options)
}

fn foreign(scratch: &lab_pgtest::Database<'_>) -> postgres::Client {
    postgres::Client::connect(&scratch.url(), postgres::NoTls).unwrap()
}

fn missing(database: &Database, queries: &[&str]) -> Vec<Requirement> {
    let queries: Vec<Query> = queries.iter().map(|sql| prepare(database, sql)).collect();
    database.requirements(&queries).unwrap()
}

/// As `millpond check --fix` does it.
fn repair(options: &PostgresOptions, queries: &[&str]) {
    let database = Database::connect(options.clone()).unwrap();
    for lacking in missing(&database, queries) {
        assert!(lacking.may_fix, "{lacking:?}");
        database.repair(&lacking).unwrap();
    }
    assert_eq!(missing(&database, queries), []);
    database.stop();
}

pub(super) fn fed(
    schema: &str,
    queries: &[&str],
    adjust: impl FnOnce(&mut PostgresOptions),
) -> Fed {
    let (scratch, mut options) = scratch(schema);
    adjust(&mut options);
    repair(&options, queries);
    Fed::of(scratch, options)
}

#[test]
fn a_result_is_kept_until_somebody_changes_it() {
    let fed = fed(SCHEMA, &["select * from t"], |_| {});
    let query = fed.prepare("select n from t where id = :id");
    fed.fill("one", &query, &[int(1)]);
    fed.fill("two", &query, &[int(2)]);
    let epoch = fed.sink.epoch();
    let mut foreign = fed.foreign();
    foreign
        .batch_execute("update t set n = 5 where id = 1")
        .unwrap();
    fed.sink.settle();
    assert!(fed.sink.cached("one").is_none());
    assert!(fed.sink.cached("two").is_some());
    for n in 1..=20 {
        fed.fill("one", &query, &[int(1)]);
        fed.write("update t set n = :n where id = 1", vec![int(n)]);
        assert!(fed.sink.cached("one").is_none());
        let read = try_read(&fed.database, &query, vec![int(1)]).unwrap();
        assert_eq!(read.results[0].rows, [[int(n)]]);
    }
    // A write that changes nothing has nothing to wait for.
    fed.write("update t set n = 0 where id = 77", vec![]);
    assert_eq!(fed.sink.epoch(), epoch, "{:?}", fed.sink.calls().last());
}

/// The position of the feed.
fn position(fed: &Fed) -> u64 {
    let told = fed.sink.calls();
    let last = told.iter().rev().find_map(|told| match told {
        SinkCall::Heartbeat(_, position) => Some(*position),
        _ => None,
    });
    last.expect("it has come somewhere")
}

#[test]
fn a_read_lies_where_the_feed_has_seen_all_that_it_saw() {
    let fed = fed(SCHEMA, &["select * from t"], |_| {});
    let query = fed.prepare("select n from t where id = :id");
    let mut open = fed.foreign();
    open.batch_execute("begin; update t set n = 1 where id = 1")
        .unwrap();
    fed.write("update t set n = 1 where id = 2", vec![]);
    let read = try_read(&fed.database, &query, vec![int(2)]).unwrap();
    // The feed has seen the write, but not all transactions below the read's upper bound, of which
    // one is open.
    fed.sink.settle();
    assert!(position(&fed) < read.position);
    open.batch_execute("commit").unwrap();
    fed.sink.settle();
    // Transactions of other tests count too, and are over soon.
    while position(&fed) < read.position {
        fed.sink.settle();
    }
    assert_eq!(
        fed.database.show_position(read.position),
        read.position.to_string()
    );
}

/// Rules 1, 2 and 19 together: nothing that was acknowledged is missing from what is kept.
#[test]
fn no_answer_is_older_than_promised() {
    keeps_the_promise(&fed(SCHEMA, &["select * from t"], |options| {
        options.pool = 4;
    }));
}

#[test]
fn a_cached_answer_equals_a_fresh_one() {
    for seed in [1, 2, 3] {
        let fed = fed(model::SCHEMA, model::QUERIES, |options| {
            options.max_staleness = Duration::from_millis(200);
        });
        model::compare(&fed, seed);
    }
}

#[test]
fn a_table_whose_triggers_are_not_all_there_is_read_and_not_kept() {
    let fed = fed(SCHEMA, &["select * from t"], |_| {});
    let query = fed.prepare("select n from t where id = 1");
    let mut owner = fed.foreign();
    for (harm, cure) in [
        (
            "alter table t disable trigger _millpond_update",
            "alter table t enable always trigger _millpond_update",
        ),
        // It would not fire in a session that plays the replica.
        (
            "alter table t enable trigger _millpond_update",
            "alter table t enable always trigger _millpond_update",
        ),
        (
            "create table late (extra int) inherits (t)",
            "drop table late",
        ),
        (
            "create subscription s connection 'host=nowhere' publication p with (connect = false); \
             insert into pg_subscription_rel select oid, 't'::regclass, 'r', null from pg_subscription where subname = 's'",
            "delete from pg_subscription_rel; alter subscription s set (slot_name = none); drop subscription s",
        ),
        (
            "alter function _millpond_record() security invoker",
            "alter function _millpond_record() security definer",
        ),
    ] {
        fed.fill("one", &query, &[]);
        let before = fed.sink.calls().len();
        owner
            .batch_execute("set allow_system_table_mods = on")
            .unwrap();
        for statement in harm.split("; ") {
            owner.batch_execute(statement).unwrap();
        }
        fed.sink.wait_for_epoch(before, "the schema has changed");
        let read = try_read(&fed.database, &query, vec![]).unwrap();
        let why = read.deps[0].uncacheable.as_deref().unwrap_or_default();
        assert!(why.contains("triggers"), "{harm}: {why:?}");
        let before = fed.sink.calls().len();
        for statement in cure.split("; ") {
            owner.batch_execute(statement).unwrap();
        }
        fed.sink.wait_for_epoch(before, "the schema has changed");
    }
    fed.fill("one", &query, &[]);
}

#[test]
fn what_is_missing_is_said_and_mended_and_taken_away_again() {
    let schema = "create table a (id int primary key, price numeric); create table p (id int) partition by range (id); \
                  create table p1 partition of p for values from (0) to (9); create unlogged table noise (id int)";
    let queries = ["select * from a", "select * from p1", "select * from noise"];
    let (_scratch, options) = scratch(schema);
    let said = |options: &PostgresOptions| -> Vec<String> {
        let database = Database::connect(options.clone()).unwrap();
        let all = missing(&database, &queries);
        database.stop();
        all.into_iter().map(|lacking| lacking.missing).collect()
    };
    let tables =
        ["a", "p", "p1"].map(|table| format!("{table} lacks triggers that record its changes"));
    let before = said(&options);
    assert!(before[0].starts_with("_millpond_change"), "{before:?}");
    assert_eq!(before[1..], tables);
    repair(&options, &queries);
    assert_eq!(said(&options), [""; 0]);
    // Of logical replication much is missing, and what it has no use for is offered to be removed.
    let logical = PostgresOptions {
        feed: FeedKind::Logical,
        ..options.clone()
    };
    let database = Database::connect(logical.clone()).unwrap();
    let all = missing(&database, &queries);
    let left = all
        .iter()
        .find(|lacking| lacking.missing.contains("other feed"));
    let left = left.unwrap();
    assert!(left.may_fix);
    database.repair(left).unwrap();
    database.stop();
    assert!(
        !said(&logical)
            .iter()
            .any(|missing| missing.contains("other feed"))
    );
    assert_eq!(said(&options), before);
}

#[test]
fn who_does_not_own_a_table_is_told_whom_to_ask() {
    let (scratch, options) = scratch("create table mine (id int)");
    foreign(&scratch)
        .batch_execute("create table theirs (id int); grant select on theirs to site")
        .unwrap();
    let database = Database::connect(options).unwrap();
    let all = missing(&database, &["select * from mine", "select * from theirs"]);
    let may_fix: Vec<bool> = all.iter().map(|lacking| lacking.may_fix).collect();
    assert_eq!(may_fix, [true, true, false], "{all:?}");
    assert!(all[2].reason.contains("owner"), "{all:?}");
    database.stop();
}

#[test]
fn a_function_that_is_not_as_it_was_made_is_made_again() {
    let queries = ["select * from t"];
    let (scratch, options) = scratch(SCHEMA);
    repair(&options, &queries);
    for harm in [
        "grant execute on function _millpond_record() to public",
        "alter function _millpond_record() security invoker",
        "alter function _millpond_record() set search_path = public",
        "create or replace function _millpond_record() returns trigger language plpgsql as 'begin return null; end'",
    ] {
        foreign(&scratch).batch_execute(harm).unwrap();
        let database = Database::connect(options.clone()).unwrap();
        let all = missing(&database, &queries);
        let is_function = |lacking: &Requirement| lacking.missing.starts_with("_millpond_change");
        assert!(all.iter().any(is_function), "{harm}: {all:?}");
        database.stop();
        repair(&options, &queries);
    }
}

#[test]
fn who_may_not_execute_the_function_is_told_whom_to_ask() {
    let queries = ["select * from t"];
    let (scratch, options) = scratch(SCHEMA);
    let mut owner = foreign(&scratch);
    // Everything is another role's but the table.
    let of_owner = PostgresOptions {
        url: scratch.url(),
        ..options.clone()
    };
    repair(&of_owner, &[]);
    let database = Database::connect(options.clone()).unwrap();
    let all = missing(&database, &queries);
    database.stop();
    let said: Vec<(&str, bool)> = all
        .iter()
        .map(|lacking| (lacking.missing.as_str(), lacking.may_fix))
        .collect();
    assert_eq!(
        said,
        [
            ("the role site lacks rights on _millpond_change", false),
            ("the role site may not execute _millpond_record", false),
            ("t lacks triggers that record its changes", false),
        ]
    );
    for lacking in &all[..2] {
        owner
            .batch_execute(lacking.statement.as_deref().unwrap())
            .unwrap();
    }
    repair(&options, &queries);
}

/// Measures the cost of a row update with the triggers and without: run with `--ignored
/// --nocapture`, when nothing else runs.
#[test]
#[ignore = "it measures"]
fn what_a_write_costs() {
    const ROUNDS: u32 = 2_000;
    let server = lab_pgtest::Options::new().durable().start().unwrap();
    let mut owner = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    owner.batch_execute(SCHEMA).unwrap();
    let options = PostgresOptions {
        feed: FeedKind::Triggers,
        ..options(server.url())
    };
    let measure = |what: &str, clients: u32, lasting: bool| {
        let began = Instant::now();
        std::thread::scope(|scope| {
            for client in 1..=clients {
                let url = server.url();
                scope.spawn(move || {
                    let mut client_of = postgres::Client::connect(&url, postgres::NoTls).unwrap();
                    let commit = if lasting { "on" } else { "off" };
                    client_of
                        .batch_execute(&format!("set synchronous_commit = {commit}"))
                        .unwrap();
                    let update = client_of
                        .prepare("update t set n = n + 1 where id = $1")
                        .unwrap();
                    let id = i32::try_from(client).unwrap();
                    for _ in 0..ROUNDS / clients {
                        client_of.execute(&update, &[&id]).unwrap();
                    }
                });
            }
        });
        let each = began.elapsed() / ROUNDS;
        println!(
            "{what}, {clients} clients, synchronous_commit {lasting}: {each:?} for each update"
        );
    };
    let all = |what: &str| {
        for clients in [1, 8] {
            for lasting in [false, true] {
                measure(what, clients, lasting);
            }
        }
    };
    all("without triggers");
    repair(&options, &["select * from t"]);
    let (database, sink) = super::feed::started(options);
    sink.settle();
    all("with triggers");
    database.stop();
}
