//! TRUNCATE, which obeys no snapshot.

use std::thread;

use millpond_db::Call;

use super::feed::Fed;
use crate::support::{int, wait};

const SCHEMA: &str = "
create table t (id integer primary key);
create table other (id integer primary key);
insert into t values (1), (2);
insert into other values (1);
create publication millpond for all tables;
";

#[test]
fn what_was_found_empty_by_a_truncation_is_neither_given_nor_kept_once_the_feed_has_brought_it() {
    let fed = Fed::with(SCHEMA, |options| options.pool = 1);
    let queries = ["select count(*) from other", "select count(*) from t"];
    let queries = queries.map(|sql| fed.prepare(sql));
    let read = || {
        let calls = queries.iter().map(|query| Call {
            query: query.clone(),
            params: vec![],
        });
        wait(fed.database.read(calls.collect())).unwrap()
    };
    // What is prepared already asks for its locks after the snapshot.
    read();
    let epoch = fed.sink.epoch();
    let mut foreign = fed.foreign();
    foreign
        .batch_execute("begin; truncate t; insert into t values (3), (4), (5)")
        .unwrap();
    let found = thread::scope(|scope| {
        let reading = scope.spawn(read);
        let mut looking = fed.foreign();
        let waits = "select count(*) from pg_locks where not granted and database = \
                     (select oid from pg_database where datname = current_database())";
        while looking.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
            thread::yield_now();
        }
        foreign.batch_execute("commit").unwrap();
        reading.join().unwrap()
    });
    // Neither what was before nor what came after: PostgreSQL's word.
    assert_eq!(found.results[1].rows, [[int(0)]]);
    fed.sink.store("early", epoch, &found);
    fed.sink.settle();
    assert!(fed.sink.cached("early").is_none());
    assert!(!fed.sink.store("late", epoch, &found));
    assert_eq!(fed.sink.epoch(), epoch, "{:?}", fed.sink.told().last());
}
