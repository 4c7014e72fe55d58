//! TRUNCATE and what writes a table anew, which obey no snapshot.

use std::io::Write as _;
use std::thread;

use millpond_db::{Call, Query, ReadResult};
use postgres::Transaction;

use super::feed::Fed;
use crate::support::{int, wait};

/// The table has as many rows as `size` says, in every state.
const SCHEMA: &str = "
create table size (n bigint not null);
insert into size values (2);
create table t (id integer primary key, spare integer);
insert into t values (1), (2);
create table parted (id integer, part integer) partition by list (part);
create table part_1 partition of parted for values in (1);
create table part_2 partition of parted for values in (2);
insert into parted values (1, 1), (2, 2);
create materialized view m as select id from t;
create view v as select id from t;
create view behind as select id from m;
create function told() returns bigint language plpgsql stable as 'begin return (select count(*) from t); end';
create table many (id integer, part integer) partition by list (part);
do 'begin for part in 1..20 loop execute format($$create table many_%s partition of many for values in (%s)$$, part, part); end loop; end';
insert into many values (1, 1), (2, 2);
alter table size replica identity full;
create publication millpond for all tables;
";

/// One row more in the size, and what makes it so in a table.
type Change = fn(&mut Transaction<'_>) -> Result<(), postgres::Error>;

const TRUNCATED: Change = |change| {
    change
        .batch_execute("truncate t; insert into t select generate_series(1, (select n from size))")
};
const ALTERED: Change = |change| {
    change.batch_execute("alter table t alter spare type bigint; insert into t select n from size")
};
const WITH_A_COLUMN: Change = |change| {
    change.batch_execute(
        "alter table t add extra double precision default random(); insert into t select n from size",
    )
};
const CLUSTERED: Change =
    |change| change.batch_execute("cluster t using t_pkey; insert into t select n from size");
/// Rows that are frozen are shown to snapshots from before them.
const FROZEN: Change = |change| {
    let rows: i64 = change.query_one("select n from size", &[])?.get(0);
    change.batch_execute("truncate t")?;
    let mut copy = change.copy_in("copy t (id) from stdin (freeze)")?;
    for row in 1..=rows {
        writeln!(copy, "{row}").unwrap();
    }
    copy.finish().map(drop)
};
const ONE_PARTITION: Change = |change| {
    change.batch_execute(
        "truncate part_1; insert into parted select generate_series(1, n - 1), 1 from size",
    )
};
const ONE_OF_MANY: Change = |change| {
    change.batch_execute(
        "truncate many_1; insert into many select generate_series(1, n - 1), 1 from size",
    )
};
const REFRESHED: Change =
    |change| change.batch_execute("insert into t select n from size; refresh materialized view m");

/// How many rows there are, and how many there should be.
struct Counted {
    fed: Fed,
    queries: [Query; 2],
}

impl Counted {
    fn new(rows: &str) -> Self {
        let fed = Fed::with(SCHEMA, |options| options.pool = 1);
        let queries = ["select n from size", rows].map(|sql| fed.prepare(sql));
        Self { fed, queries }
    }

    fn read(&self) -> ReadResult {
        let calls = self.queries.iter().map(|query| Call {
            query: query.clone(),
            params: vec![],
        });
        wait(self.fed.database.read(calls.collect())).unwrap()
    }

    /// Reads with a snapshot from before the change, and waits for the table until the change is
    /// committed.
    fn read_during(&self, change: Change) -> ReadResult {
        let mut foreign = self.fed.foreign();
        let mut writing = foreign.transaction().unwrap();
        writing.batch_execute("update size set n = n + 1").unwrap();
        change(&mut writing).unwrap();
        thread::scope(|scope| {
            let reading = scope.spawn(|| self.read());
            let mut looking = self.fed.foreign();
            let waits = "select count(*) from pg_locks where not granted and database = \
                         (select oid from pg_database where datname = current_database())";
            while looking.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
                thread::yield_now();
            }
            writing.commit().unwrap();
            reading.join().unwrap()
        })
    }

    fn holds_together(&self, change: Change) {
        for size in 3..6 {
            let read = self.read_during(change);
            for rows in &read.results {
                assert_eq!(rows.rows, [[int(size)]]);
            }
        }
    }
}

const ROWS: &str = "select count(*) from t";

#[test]
fn a_table_that_is_emptied_while_it_is_read_is_read_again() {
    Counted::new(ROWS).holds_together(TRUNCATED);
    Counted::new("select count(*) from v").holds_together(TRUNCATED);
}

#[test]
fn a_table_that_is_written_anew_while_it_is_read_is_read_again() {
    // Each changes the table for good, so that it is done once.
    for change in [ALTERED, WITH_A_COLUMN] {
        let counted = Counted::new(ROWS);
        counted.read();
        let read = counted.read_during(change);
        assert_eq!(read.results[0].rows, read.results[1].rows);
    }
    Counted::new(ROWS).holds_together(CLUSTERED);
}

#[test]
fn rows_that_are_frozen_from_the_start_are_not_shown_beside_what_was_before() {
    Counted::new(ROWS).holds_together(FROZEN);
}

#[test]
fn a_partition_that_is_emptied_and_a_view_that_is_made_anew_are_read_again() {
    Counted::new("select count(*) from parted").holds_together(ONE_PARTITION);
    Counted::new("select count(*) from m").holds_together(REFRESHED);
    Counted::new("select count(*) from behind").holds_together(REFRESHED);
}

#[test]
fn where_the_tables_are_many_or_not_known_their_locks_say_it() {
    let counted = Counted::new("select count(*) from many");
    (0..3).for_each(|_| assert_eq!(counted.read().results[1].rows, [[int(2)]]));
    counted.holds_together(ONE_OF_MANY);
    assert!(
        counted
            .read()
            .deps
            .iter()
            .all(|deps| deps.uncacheable.is_none())
    );
    Counted::new("select told()").holds_together(TRUNCATED);
}

#[test]
fn what_stands_in_the_place_of_a_table_is_read_and_kept_once_it_is_known() {
    let counted = Counted::new(ROWS);
    counted.read();
    let mut foreign = counted.fed.foreign();
    foreign
        .batch_execute(
            "drop table t cascade; create table t (id integer); insert into t select n from size",
        )
        .unwrap();
    // Nothing that is given here is kept before the catalog has been looked at.
    while counted.read().deps[1].uncacheable.is_some() {
        thread::yield_now();
    }
    assert_eq!(counted.read().results[1].rows, [[int(1)]]);
}

#[test]
fn what_was_read_again_is_kept() {
    let counted = Counted::new(ROWS);
    counted.read();
    let epoch = counted.fed.sink.epoch();
    let read = counted.read_during(TRUNCATED);
    counted.fed.sink.settle();
    assert!(counted.fed.sink.store("count", epoch, &read));
    assert_eq!(
        counted.fed.sink.epoch(),
        epoch,
        "{:?}",
        counted.fed.sink.calls().last()
    );
    // Another connection's memory is of no use here, and the next read needs no second attempt.
    assert_eq!(counted.read().results[1].rows, [[int(3)]]);
}
