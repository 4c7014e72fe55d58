//! Replicas that are none any more, that are away, or that may not be read.

use lab_pgtest::Options;
use millpond_db::{Call, Database, Error, FeedKind};

use super::super::options;
use super::{Pair, client, host, is_replicas, spread, until};
use crate::support::{int, text, wait};

#[test]
fn a_standby_that_was_promoted_is_no_replica_any_more() {
    let pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    pair.replicas(&query);
    let mut promoted = client(&pair.standby);
    promoted.batch_execute("select pg_promote()").unwrap();
    promoted.batch_execute("update t set n = 9").unwrap();
    pair.is_the_primarys(&query, &int(0));
    let failure = until("what is wrong", || {
        pair.is_the_primarys(&query, &int(0));
        let failure = pair.database.health().last_failure?;
        failure.contains("no standby").then_some(failure)
    });
    assert!(failure.contains(&host(&pair.standby)), "{failure}");
    // It is tried again and again, and that is said once.
    let failures = pair.database.health().failures;
    let mut sessions = || -> i64 {
        let sessions = "select sessions from pg_stat_database where datname = current_database()";
        promoted.query_one(sessions, &[]).unwrap().get(0)
    };
    let before = sessions();
    until("more attempts", || {
        pair.is_the_primarys(&query, &int(0));
        (sessions() > before + 2).then_some(())
    });
    assert_eq!(pair.database.health().failures, failures);
}

#[test]
fn a_replica_that_goes_costs_no_read_and_helps_again_when_it_is_back() {
    let mut pair = Pair::new();
    let query = pair.prepare("select n from t where id = 1");
    pair.replicas(&query);
    pair.standby.kill_hard();
    pair.is_the_primarys(&query, &int(0));
    pair.standby.restart().unwrap();
    pair.replicas(&query);
}

#[test]
fn what_fails_on_a_replica_is_read_on_the_primary() {
    let pair = Pair::new();
    let query = pair.prepare_trap("perform 1 / 0");
    let good = pair.prepare("select n from t where id = 1");
    pair.replicas(&good);
    let failures = pair.database.health().failures;
    pair.is_the_primarys(&query, &text("0"));
    // The error was the read's, and no fault of the replica.
    pair.replicas(&good);
    assert_eq!(pair.database.health().failures, failures);
}

/// Counterexample: *Taken for a fault of the replica, it closes all connections there and leaves it
/// alone, for all reads.*
#[test]
fn a_result_that_is_too_large_on_a_replica_is_no_fault_of_it() {
    let pair = Pair::new();
    let query = pair.prepare_trap("return repeat('x', 70000000)");
    let good = pair.prepare("select n from t where id = 1");
    pair.replicas(&good);
    let failures = pair.database.health().failures;
    pair.is_the_primarys(&query, &text("0"));
    pair.replicas(&good);
    assert_eq!(pair.database.health().failures, failures);
}

/// Counterexample: *One slow statement closes all connections and makes the replica unavailable to
/// all reads; and all of its page is blamed, so that what else it reads is the primary's on every
/// other page too.*
#[test]
fn one_slow_statement_takes_a_replica_from_nobody() {
    let pair = Pair::new();
    let slow = pair.prepare_trap("perform pg_sleep(600)");
    let good = pair.prepare("select n from t where id = 1");
    pair.replicas(&good);
    let failures = pair.database.health().failures;
    let page = [&good, &slow].map(|query| Call {
        query: query.clone(),
        params: vec![],
    });
    let read = wait(pair.database.read_with(page.to_vec(), spread())).unwrap();
    assert!(!is_replicas(&read));
    pair.replicas(&good);
    pair.is_the_primarys(&slow, &text("0"));
    assert_eq!(pair.database.health().failures, failures);
}

#[test]
fn a_replica_that_is_slow_is_not_waited_for_and_then_left_alone() {
    let pair = Pair::new();
    let slow = pair.prepare_trap("perform pg_sleep(600)");
    let other = "select trap(n) from t where id = 2";
    let other = pair.database.prepare_depending(other, Some(&[])).unwrap();
    let good = pair.prepare("select n from t where id = 1");
    pair.replicas(&good);
    for query in [&slow, &other] {
        pair.is_the_primarys(query, &text("0"));
    }
    let failure = pair.database.health().last_failure.unwrap();
    assert!(failure.contains("takes longer"), "{failure}");
    pair.replicas(&good);
}

/// Counterexample: *A read on a replica keeps its turn at the primary, and writes queue for a
/// server that has nothing to do.*
#[test]
fn who_writes_does_not_wait_for_a_replica() {
    let pair = Pair::with(|options| options.pool = 1);
    let query = pair.prepare_trap("perform pg_sleep(600)");
    let good = pair.prepare("select n from t where id = 1");
    let update = pair.prepare("update t set n = :n where id = 2");
    pair.replicas(&good);
    let mut standby = client(&pair.standby);
    let mut sleeper = || -> Option<i32> {
        let sleeps = "select pid from pg_stat_activity where wait_event = 'PgSleep'";
        let rows = standby.query(sleeps, &[]).unwrap();
        rows.first().map(|row| row.get(0))
    };
    until("a write while the replica is read", || {
        let (pair, query) = (&pair, &query);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| pair.read(query));
            let pid = loop {
                match sleeper() {
                    None if reader.is_finished() => return None,
                    None => {}
                    pid => break pid,
                }
            };
            pair.write(&update, 1);
            (sleeper() == pid).then_some(())
        })
    });
}

#[test]
fn what_keeps_a_replica_from_being_read_is_said() {
    let pair = Pair::new();
    client(&pair.primary)
        .batch_execute(
            "create role site login; grant select on all tables in schema public to site",
        )
        .unwrap();
    let lacks = |user: &str, host: String| -> Vec<(String, Option<String>)> {
        let mut options = options(pair.primary.url().replace("postgres@", &format!("{user}@")));
        options.replicas = vec![host];
        let database = Database::connect(options).unwrap();
        let lacking = database.requirements(&[]).unwrap().into_iter();
        let lacking = lacking
            .filter(|one| one.reason.contains("the replica"))
            .map(|one| (one.missing, one.statement))
            .collect();
        database.stop();
        lacking
    };
    // The role is there as soon as it is replayed.
    let position: String = client(&pair.primary)
        .query_one("select pg_current_wal_lsn()::text", &[])
        .unwrap()
        .get(0);
    let behind = format!("select pg_last_wal_replay_lsn() < '{position}'::pg_lsn");
    let mut standby = client(&pair.standby);
    until("the role", || {
        let is_behind: bool = standby.query_one(&behind, &[]).unwrap().get(0);
        (!is_behind).then_some(())
    });
    assert_eq!(lacks("postgres", host(&pair.standby)), []);
    let primary = lacks("postgres", host(&pair.primary));
    assert!(primary[0].0.contains("no standby"), "{primary:?}");
    let hidden = lacks("site", host(&pair.standby));
    let grant = "grant pg_read_all_stats to \"site\"";
    assert_eq!(hidden[0].1.as_deref(), Some(grant), "{hidden:?}");
    let stranger = Options::new().start().unwrap();
    let stranger = lacks("postgres", host(&stranger));
    assert!(stranger[0].0.contains("no copy"), "{stranger:?}");
    let nobody = lacks("postgres", "127.0.0.1:1".to_owned());
    assert!(nobody[0].0.contains("cannot connect"), "{nobody:?}");
}

#[test]
fn without_places_in_the_log_there_are_no_replicas() {
    let mut options = options("postgres://postgres@127.0.0.1:1/postgres");
    options.replicas = vec!["127.0.0.1:2".to_owned()];
    options.feed = FeedKind::Triggers;
    match Database::connect(options) {
        Err(Error::Usage { message }) => assert!(message.contains("logical"), "{message}"),
        other => panic!("{other:?}"),
    }
}
