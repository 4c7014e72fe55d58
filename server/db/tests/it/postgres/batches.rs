//! Reads as one batch: one snapshot, statements that are met late, and sessions whose settings are
//! changed.

use std::sync::Arc;

use lab_pgtest::Options;
use millpond_db::{Call, Database, Error, Query, ReadResult, Value};

use super::{Fixture, options, prepare, try_read};
use crate::support::{int, text, wait};

fn call(query: &Query, params: Vec<Value>) -> Call {
    Call {
        query: query.clone(),
        params,
    }
}

pub(super) fn first(read: &ReadResult, index: usize) -> Value {
    read.results[index].rows[0][0].clone()
}

/// Waits until a session waits for the advisory lock 1.
fn until_blocked(foreign: &mut postgres::Client) {
    let waiting = "select exists (select from pg_locks where locktype = 'advisory' and not granted \
        and database = (select oid from pg_database where datname = current_database()))";
    while !foreign.query_one(waiting, &[]).unwrap().get::<_, bool>(0) {
        std::thread::yield_now();
    }
}

/// Runs `meanwhile` while a read waits for the advisory lock 1 in its middle, and gives what was
/// read.
fn amid<T: Send>(
    fixture: &Fixture,
    read: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(&mut postgres::Client),
) -> T {
    let mut foreign = fixture.foreign();
    foreign.batch_execute("select pg_advisory_lock(1)").unwrap();
    std::thread::scope(|scope| {
        let reading = scope.spawn(read);
        until_blocked(&mut foreign);
        meanwhile(&mut foreign);
        foreign
            .batch_execute("select pg_advisory_unlock(1)")
            .unwrap();
        reading.join().unwrap()
    })
}

const BLOCKED: &str = "select pg_advisory_xact_lock_shared(1)::text";

#[test]
fn a_commit_between_two_statements_of_a_batch_is_not_seen() {
    let fixture = Fixture::new("create table t (n integer not null); insert into t values (1)");
    let query = fixture.prepare("select n from t");
    let blocked = fixture.prepare(BLOCKED);
    // Once with statements that are parsed in the batch, once with statements that are known.
    for n in 1..=2 {
        let calls = [&query, &blocked, &query].map(|query| call(query, vec![]));
        let read = amid(
            &fixture,
            || wait(fixture.database.read(calls.to_vec())).unwrap(),
            |foreign| foreign.batch_execute("update t set n = n + 1").unwrap(),
        );
        assert_eq!((first(&read, 0), first(&read, 2)), (int(n), int(n)));
    }
    let read = fixture.try_read(&query, vec![]).unwrap();
    assert_eq!(first(&read, 0), int(3));
}

#[test]
fn what_controls_transactions_is_no_query() {
    let fixture = Fixture::new("create procedure p() language plpgsql as 'begin commit; end'");
    for sql in [
        "begin",
        "start transaction",
        "commit",
        "end",
        "rollback",
        "abort",
        "savepoint a",
        "set transaction isolation level read committed",
        "call p()",
        "do 'begin commit; end'",
        "prepare transaction 'a'",
        "vacuum",
        "discard all",
        "deallocate all",
        "copy pg_class to stdout",
    ] {
        if let Ok(query) = fixture.database.prepare(sql) {
            assert!(!query.is_readonly(), "{sql}");
        }
    }
    // None of them has left anything in a session.
    let query = fixture.prepare("select 1");
    assert!(
        !query
            .describe()
            .iter()
            .any(|line| line.contains("not cacheable"))
    );
}

#[test]
fn where_statements_are_not_looked_into_their_end_says_what_they_were() {
    let server = Options::new().start().unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "create procedure p() language plpgsql as 'begin commit; end';
             create role site login; revoke temporary on database postgres from public",
        )
        .unwrap();
    let url = format!("postgres://site@127.0.0.1:{}/postgres", server.port());
    let mut options = options(url);
    options.pool = 1;
    let database = Database::connect(options).unwrap();
    let query = prepare(&database, "select 1");
    for sql in ["call p()", "do 'begin commit; end'"] {
        let ending = prepare(&database, sql);
        let calls = [&query, &ending, &query].map(|query| call(query, vec![]));
        match wait(database.read(calls.to_vec())) {
            Err(Error::Usage { message }) => assert!(message.contains(sql), "{message}"),
            // Since PostgreSQL 18 the server itself lets no batch be ended within.
            Err(Error::Sql { message, .. }) => {
                assert_eq!(message, "invalid transaction termination");
            }
            other => panic!("{sql}: {other:?}"),
        }
        assert_eq!(
            first(&try_read(&database, &query, vec![]).unwrap(), 0),
            int(1)
        );
    }
    database.stop();
}

#[test]
fn a_session_in_which_a_function_has_set_another_isolation_is_left() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    let pid = fixture.prepare("select pg_backend_pid()");
    let change = fixture
        .prepare("select set_config('default_transaction_isolation', 'read committed', false)");
    let before = first(&fixture.try_read(&pid, vec![]).unwrap(), 0);
    fixture.try_read(&change, vec![]).unwrap();
    let after = first(&fixture.try_read(&pid, vec![]).unwrap(), 0);
    assert_ne!(before, after);
    let isolation = fixture.value("select current_setting('transaction_isolation')", vec![]);
    assert_eq!(isolation, text("repeatable read"));
}

#[test]
fn statements_that_the_server_has_lost_are_parsed_anew() {
    let fixture = Fixture::with(
        "create function lose() returns integer language plpgsql as
         $$ begin execute 'deallocate all'; return 1; end $$",
        |options| options.pool = 1,
    );
    let query = fixture.prepare("select 7");
    let lose = fixture.prepare("select lose()");
    for _ in 0..2 {
        fixture.try_read(&lose, vec![]).unwrap();
        let read = fixture.try_read(&query, vec![]).unwrap();
        assert_eq!(first(&read, 0), int(7));
    }
}

#[test]
fn a_connection_that_meets_a_statement_late_sees_what_it_is_now() {
    let fixture = Fixture::with(
        "create table t (n integer not null); insert into t values (1)",
        |options| options.workers = 1,
    );
    let query = fixture.prepare("select n from t");
    let filtered = fixture.prepare("select n from t where n = :n");
    let blocked = fixture.prepare(BLOCKED);
    assert_eq!(first(&fixture.try_read(&query, vec![]).unwrap(), 0), int(1));
    fixture
        .foreign()
        .batch_execute("alter table t alter n type text")
        .unwrap();
    // The other connection is busy, so another is opened.
    let busy = call(&blocked, vec![]);
    let database = &fixture.database;
    amid(
        &fixture,
        || wait(database.read(vec![busy])).unwrap(),
        |_| {
            let read = fixture.try_read(&query, vec![]).unwrap();
            assert_eq!(first(&read, 0), text("1"));
            // Its parameter was an integer.
            let read = fixture.try_read(&filtered, vec![int(1)]).unwrap();
            assert_eq!(first(&read, 0), text("1"));
        },
    );
}

#[test]
fn statements_beyond_the_limit_are_forgotten_in_the_server_too() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    for n in 0..1_030 {
        let query = fixture.prepare(&format!("select {n}"));
        let read = fixture.try_read(&query, vec![]).unwrap();
        assert_eq!(first(&read, 0), int(n));
    }
    let kept = fixture.value("select count(*) from pg_prepared_statements", vec![]);
    match kept {
        Value::Integer(kept) => assert!(kept < 200, "{kept}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_answers_while_it_is_asked_is_listened_to() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    let query = fixture.prepare("select :p::text, length(:p::text)");
    let large = "ä".repeat(4 << 20);
    let calls = vec![call(&query, vec![text(&large)]); 4];
    let read = wait(fixture.database.read(calls)).unwrap();
    for result in &read.results {
        assert_eq!(result.rows, [[text(&large), int(4 << 20)]]);
    }
}

#[test]
fn the_kind_of_server_that_the_url_asks_for_is_found() {
    let fixture = Fixture::new("");
    let with = |attribute: &str| format!("{}?target_session_attrs={attribute}", fixture.url());
    let database = Database::connect(options(with("read-write"))).unwrap();
    database.stop();
    match Database::connect(options(with("read-only"))) {
        Err(Error::Unavailable { message }) => {
            assert!(message.contains("target_session_attrs"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn passwords_of_each_kind_and_sockets_that_are_files_let_reads_in() {
    let mut server = Options::new().start().unwrap();
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "set password_encryption = 'md5'; create role of_md5 login password 'secret';
             set password_encryption = 'scram-sha-256'; create role of_scram login password 'secret';
             create role of_clear login password 'secret'",
        )
        .unwrap();
    drop(client);
    server.stop();
    let access = "host all postgres 127.0.0.1/32 trust\nlocal all all trust\n\
        host all of_md5 127.0.0.1/32 md5\nhost all of_scram 127.0.0.1/32 scram-sha-256\n\
        host all of_clear 127.0.0.1/32 password\n";
    std::fs::write(server.data_folder().join("pg_hba.conf"), access).unwrap();
    server.restart().unwrap();
    let user_at = |url: String| -> Result<Value, Error> {
        let database = Database::connect(options(url))?;
        let query = prepare(&database, "select current_user::text");
        let read = try_read(&database, &query, vec![]);
        database.stop();
        read.map(|read| first(&read, 0))
    };
    for user in ["of_md5", "of_scram", "of_clear"] {
        let url = |password: &str| {
            let port = server.port();
            format!("postgres://{user}:{password}@127.0.0.1:{port}/postgres")
        };
        assert_eq!(user_at(url("secret")).unwrap(), text(user));
        let refused = user_at(url("wrong")).unwrap_err().to_string();
        assert!(refused.contains("password"), "{refused}");
        assert!(user_at(url("secret") + "?channel_binding=require").is_err());
    }
    assert_eq!(user_at(server.socket_url()).unwrap(), text("postgres"));
}

#[test]
fn what_is_given_up_is_ended_in_the_server() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    let large = fixture.prepare("select repeat('x', 1000000) from generate_series(1, 100)");
    let long = fixture.prepare("select pg_sleep(60)");
    let calls = vec![call(&large, vec![]), call(&long, vec![])];
    match wait(fixture.database.read(calls)) {
        Err(Error::TooLarge { .. }) => {}
        other => panic!("{other:?}"),
    }
    let active = "select count(*) from pg_stat_activity where application_name = 'millpond' \
        and datname = current_database() and state = 'active'";
    let mut foreign = fixture.foreign();
    while foreign.query_one(active, &[]).unwrap().get::<_, i64>(0) > 0 {
        std::thread::yield_now();
    }
}

/// Many threads on few connections: each thread gets its own results.
#[test]
fn reads_of_many_threads_get_their_own_answers() {
    let fixture = Arc::new(Fixture::new("create table t (n integer)"));
    let query =
        fixture.prepare("select :n::integer, repeat(chr(65 + :n::integer % 26), :n::integer)");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fixture, query) = (Arc::clone(&fixture), &query);
            scope.spawn(move || {
                for n in (0..400).map(|n| 4 * n + thread) {
                    if n % 50 == 0 {
                        fixture.write("insert into t values (:n)", vec![int(n)]);
                    }
                    let read = fixture.try_read(query, vec![int(n)]).unwrap();
                    assert_eq!(first(&read, 0), int(n));
                }
            });
        }
    });
}
