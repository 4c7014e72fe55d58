//! Standbys in the primary's place: nothing of them is given, however old it is, until they are
//! promoted.

use lab_pgtest::{Options, Postgres};
use millpond_db::{Database, Error};

use super::{options, prepare, try_read};
use crate::support::int;

fn client(server: &Postgres) -> postgres::Client {
    postgres::Client::connect(&server.url(), postgres::NoTls).unwrap()
}

/// Refused as a server that is away is, and why.
fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Unavailable { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_standby_in_the_primarys_place_is_not_read() {
    let mut server = Options::new().start().unwrap();
    server.stop();
    std::fs::write(server.data_folder().join("standby.signal"), "").unwrap();
    server.restart().unwrap();
    for kind in ["", "?target_session_attrs=read-only"] {
        let url = server.url() + kind;
        let why = refused(Database::connect(options(url)));
        assert!(why.contains("it is a standby"), "{why}");
        assert!(why.contains("database.replicas"), "{why}");
    }
}

#[test]
fn without_the_primary_a_standby_that_is_behind_answers_nothing_until_it_is_promoted() {
    let mut primary = Options::new().logical().start().unwrap();
    client(&primary)
        .batch_execute("create table t (n integer)")
        .unwrap();
    let standby = primary.standby().unwrap();
    // It is tried first, and left each time.
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", standby.port(), primary.port());
    let database =
        Database::connect(options(format!("postgres://postgres@{hosts}/postgres"))).unwrap();
    let query = prepare(&database, "select count(*) from t");
    let count =
        || try_read(&database, &query, vec![]).map(|read| read.results[0].rows[0][0].clone());
    assert_eq!(count().unwrap(), int(0));

    let mut on_standby = client(&standby);
    on_standby
        .batch_execute("select pg_wal_replay_pause()")
        .unwrap();
    client(&primary)
        .batch_execute("insert into t values (1)")
        .unwrap();
    assert_eq!(count().unwrap(), int(1));
    primary.stop();
    // It shows the table without its row, and gives no sign that it is behind.
    let shown = on_standby.query_one("select count(*) from t", &[]).unwrap();
    assert_eq!(shown.get::<_, i64>(0), 0);
    for _ in 0..20 {
        let why = refused(count());
        assert!(why.contains("it is a standby"), "{why}");
    }
    on_standby.batch_execute("select pg_promote()").unwrap();
    // The pause between attempts is at most seconds; no event marks its end.
    let found = loop {
        if let Ok(found) = count() {
            break found;
        }
        std::thread::yield_now();
    };
    assert_eq!(found, int(1));
    database.stop();
}
