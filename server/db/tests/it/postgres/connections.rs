//! Connections that come and go, queues that are full, servers that are away.

use std::time::Duration;

use lab_pgtest::Options;
use millpond_db::{Call, Database, Error, PostgresOptions};

use super::{Fixture, PATIENCE, options, prepare, try_read};
use crate::support::{int, wait};

#[test]
fn an_unreachable_server_is_named_and_its_password_is_not() {
    let url = "postgres://u:secret@127.0.0.1:1/db";
    match Database::connect(PostgresOptions::new(url)) {
        Err(error @ Error::Unavailable { .. }) => {
            let message = error.to_string();
            assert!(message.contains("127.0.0.1:1"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_on_a_connection_that_has_died_is_tried_on_another() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    let query = fixture.prepare("select pg_backend_pid()");
    let pid =
        |fixture: &Fixture| fixture.try_read(&query, vec![]).unwrap().results[0].rows[0].clone();
    let before = pid(&fixture);
    fixture
        .foreign()
        .batch_execute(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'millpond' and datname = current_database()",
        )
        .unwrap();
    assert_ne!(pid(&fixture), before);
}

#[test]
fn a_write_on_a_connection_that_has_died_is_done_once_on_another() {
    let fixture = Fixture::with("create table t (n integer)", |options| options.pool = 1);
    fixture.write("insert into t values (1)", vec![]);
    fixture
        .foreign()
        .batch_execute(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'millpond' and datname = current_database()",
        )
        .unwrap();
    fixture.write("insert into t values (2)", vec![]);
    assert_eq!(fixture.value("select count(*) from t", vec![]), int(2));
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let mut server = Options::new().start().unwrap();
    let database = Database::connect(PostgresOptions {
        pool: 1,
        statement_timeout: PATIENCE,
        ..PostgresOptions::new(server.url())
    })
    .unwrap();
    let query = prepare(&database, "select 1");
    server.stop();
    // While it is away each read is told so, the later ones without an attempt of their own.
    for _ in 0..3 {
        match try_read(&database, &query, vec![]) {
            Err(Error::Unavailable { message }) => {
                assert!(message.contains(&server.port().to_string()), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(database.health().failures > 0);
    server.restart().unwrap();
    while try_read(&database, &query, vec![]).is_err() {
        // The pause between attempts is at most seconds; no event marks its end.
        std::thread::yield_now();
    }
    database.stop();
}

#[test]
fn a_server_that_says_nothing_is_left() {
    let server = Options::new().start().unwrap();
    let database = Database::connect(PostgresOptions {
        pool: 1,
        statement_timeout: Duration::from_secs(1),
        ..PostgresOptions::new(server.url())
    })
    .unwrap();
    let query = prepare(&database, "select 1");
    server.freeze().unwrap();
    assert!(matches!(
        try_read(&database, &query, vec![]),
        Err(Error::Timeout { .. })
    ));
    let refused = database.prepare("select 2").unwrap_err();
    assert!(refused.message.contains("does not answer"), "{refused}");
    server.thaw().unwrap();
    while try_read(&database, &query, vec![]).is_err() {
        std::thread::yield_now();
    }
    database.stop();
}

#[test]
fn a_full_queue_refuses_at_once_and_a_stopped_database_takes_nothing() {
    let fixture = Fixture::with("", |options| {
        options.pool = 1;
        options.workers = 1;
        options.queue = 1;
    });
    let mut foreign = fixture.foreign();
    foreign.batch_execute("select pg_advisory_lock(1)").unwrap();
    let query = fixture.prepare("select pg_advisory_xact_lock_shared(1)::text");
    let calls = || {
        vec![Call {
            query: query.clone(),
            params: vec![],
        }]
    };
    let mut reads: Vec<_> = (0..8)
        .map(|_| Box::pin(fixture.database.read(calls())))
        .collect();
    // Each is asked once: one runs, one or two wait, the others are refused.
    let refused = wait(std::future::poll_fn(|cx| {
        let before = reads.len();
        reads.retain_mut(|read| {
            !matches!(
                read.as_mut().poll(cx),
                std::task::Poll::Ready(Err(Error::Overloaded))
            )
        });
        std::task::Poll::Ready(before - reads.len())
    }));
    assert!(refused >= 5, "{refused}");
    foreign
        .batch_execute("select pg_advisory_unlock(1)")
        .unwrap();
    for read in reads {
        wait(read).unwrap();
    }
    fixture.database.stop();
    assert!(matches!(
        wait(fixture.database.read(calls())),
        Err(Error::Unavailable { .. })
    ));
}

#[test]
fn several_hosts_are_tried_in_turn() {
    let fixture = Fixture::new("");
    let url = fixture
        .url()
        .replace("127.0.0.1:", "127.0.0.1:1,127.0.0.1:");
    let database = Database::connect(options(url)).unwrap();
    let read = try_read(&database, &prepare(&database, "select 1"), vec![]);
    assert_eq!(read.unwrap().results[0].rows, [[int(1)]]);
    database.stop();
}

#[test]
fn sessions_are_set_for_results_that_can_be_compared() {
    let fixture = Fixture::new(
        "create table t (n integer);
         do $$ begin
            execute format('alter database %I set timezone = ''Asia/Tokyo''', current_database());
            execute format('alter database %I set datestyle = ''German''', current_database());
            execute format('alter database %I set default_transaction_read_only = on', current_database());
        end $$",
    );
    let expected = ["UTC", "millpond", "2026-11-21"].map(Into::into);
    let rows = fixture.rows(
        "select current_setting('timezone'), current_setting('application_name'), ('2026-11-21'::date)::text",
        vec![],
    );
    assert_eq!(rows, [expected]);
    // A write asks for a transaction that writes.
    fixture.write("insert into t values (1)", vec![]);
}
