//! A run that watches the PostgreSQL server behind the one it measures.

use std::sync::Mutex;
use std::time::Duration;

use lab_pgtest::Postgres;
use millrace_client::{Error, Plan, Stop};
use millrace_runs::run;
use millrace_stats::Verdict;
use postgres::{Client, NoTls};

use crate::stub::{HELLO, StubServer, measure, serve};

#[test]
fn a_request_that_costs_the_database_something_is_charged_for_it() {
    let database = Postgres::start().unwrap();
    let mut client = Client::connect(&database.url(), NoTls).unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    drop(client);
    let url = database.url();
    let server = StubServer::start(move |stream| {
        let mut client = Client::connect(&url, NoTls).unwrap();
        serve(&stream, |_, _| {
            let statement = "insert into t select n from generate_series(1, 100) n";
            client.batch_execute(statement).ok()?;
            Some(HELLO.to_vec())
        });
    });
    let run = measure(&Plan::new(server.url("/")).with(|plan| {
        plan.load.connections = 2;
        plan.length.stop = Stop::Duration(Duration::from_millis(1_300));
        plan.conditions.postgres = Some(database.url());
    }));
    let seen = run.postgres.as_ref().unwrap();
    assert!(seen.probe.unavailable.is_empty() && seen.probe.gaps.is_empty());
    // All requests, from the sample before the first to the one after the last.
    let (summary, all) = (&seen.summary, run.requests as f64);
    assert!(
        (summary.requests - all).abs() <= 0.02 * all + 2.0,
        "{summary:#?}"
    );
    let each = summary.per_request.unwrap();
    // A hundred rows of at least 28 bytes each go into the WAL, and not a hundred times as much.
    let wal = each.wal_bytes.unwrap();
    assert!((2_800.0..280_000.0).contains(&wal), "{wal}");
    // More than nothing, and no more than all cores have.
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    let cpu_s = each.cpu_us.unwrap() * summary.requests / 1e6;
    assert!(
        cpu_s > 0.001 && cpu_s < 2.0 * cores * run.duration_s,
        "{cpu_s}"
    );
    assert_eq!(summary.connections.unwrap().max, 2);
    assert!(summary.samples >= 1 && summary.waits.iter().all(|wait| !wait.event.is_empty()));
}

#[test]
fn a_database_that_is_killed_spoils_its_own_figures_and_not_the_run() {
    let database = Postgres::start().unwrap();
    let url = database.url();
    let database = Mutex::new(Some(database));
    let server = StubServer::start(move |stream| {
        serve(&stream, |number, _| {
            if number == 50
                && let Some(mut database) = database.lock().unwrap().take()
            {
                database.kill_hard();
            }
            Some(HELLO.to_vec())
        });
    });
    let run = measure(&Plan::new(server.url("/")).with(|plan| {
        plan.length.stop = Stop::Requests(200);
        plan.conditions.postgres = Some(url);
    }));
    assert_eq!((run.requests, run.errors.total()), (200, 0));
    assert_ne!(run.verdict, Verdict::Invalid);
    let seen = run.postgres.unwrap();
    assert_eq!(seen.probe.gaps.len(), 1, "{:?}", seen.probe);
    assert_eq!(seen.summary.per_request, None);
}

#[test]
fn a_database_that_cannot_be_watched_is_said_before_the_first_request() {
    let server = StubServer::fixed(HELLO);
    for (url, word) in [
        ("http://127.0.0.1/", "postgres://user@host"),
        ("postgres://postgres@127.0.0.1:1/postgres", "refused"),
    ] {
        let plan =
            Plan::new(server.url("/")).with(|plan| plan.conditions.postgres = Some(url.to_owned()));
        let error = run(&plan, None, &std::sync::atomic::AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, Error::Postgres(_)) && error.to_string().contains(word));
    }
    assert_eq!(
        server.accepted.load(std::sync::atomic::Ordering::Relaxed),
        0
    );
}
