//! Large transactions: streamed before they commit, and bounded.

use super::*;

/// A server that streams whatever is larger than 64 kB.
fn small_memory() -> Postgres {
    server(Options::new().set("logical_decoding_work_mem", "64kB"))
}

const SCHEMA: &str = "create table big (id int primary key, filler text)";

#[test]
fn a_heartbeat_passes_in_the_middle_of_a_large_transaction() {
    let server = small_memory();
    let mut fixture = Fixture::new(&server, SCHEMA);
    let id = fixture.watch("big", "id", Class::Integer);
    let table = broad(fixture.oid("big"));
    let mut other = connect(&fixture.url);
    fixture.feed.sink.settle();
    let seen = fixture.feed.sink.len();
    fixture
        .run("begin; insert into big select n, repeat('x', 100) from generate_series(1, 3000) n");
    wait_until(
        &mut other,
        "coalesce(bool_or(stream_txns > 0), false) from pg_stat_replication_slots",
    );
    // It is half there, and nothing is held up by it.
    fixture.feed.sink.settle();
    other
        .batch_execute("insert into big values (-1, '')")
        .unwrap();
    fixture.feed.sink.wait_for(
        "the small one",
        seen,
        |told| matches!(told, Told::Apply(_, tags) if tags.contains(&int(id, -1))),
    );
    let amid = fixture.feed.sink.len();
    fixture.run("commit");
    fixture.feed.sink.settle();
    let told = fixture.feed.sink.since(seen);
    let is_large =
        |told: &&Told| matches!(told, Told::Apply(_, tags) if tags.contains(&int(id, 1)));
    assert_eq!(told.iter().filter(is_large).count(), 1);
    assert!(!told[..amid - seen].iter().any(|told| is_large(&told)));
    let large = told.iter().find(is_large);
    let Some(Told::Apply(_, tags)) = large else {
        panic!("{large:?}");
    };
    assert_eq!(tags.len(), 3_001);
    assert!(tags.contains(&table) && tags.contains(&int(id, 3_000)));
}

#[test]
fn what_a_large_transaction_rolls_back_is_not_told() {
    let server = small_memory();
    let mut fixture = Fixture::new(&server, SCHEMA);
    let id = fixture.watch("big", "id", Class::Integer);
    let many = "insert into big select n, repeat('x', 100) from generate_series";
    let aborted = format!("begin; {many}(1, 3000) n; rollback");
    assert_eq!(fixture.touches(&aborted), HashSet::new());
    let partly = format!(
        "begin; insert into big values (0, ''); savepoint s; {many}(1, 3000) n; rollback to s; insert into big values (-1, ''); commit"
    );
    let touched = fixture.touches(&partly);
    assert!(touched.contains(&int(id, 0)) && touched.contains(&int(id, -1)));
}

#[test]
fn many_values_are_all_rows() {
    let mut fixture = Fixture::new(shared(), SCHEMA);
    let id = fixture.watch("big", "id", Class::Integer);
    let table = broad(fixture.oid("big"));
    let touched = fixture.touches("insert into big select n, '' from generate_series(1, 5000) n");
    assert_eq!(touched, HashSet::from([table, id.unknown()]));
}
