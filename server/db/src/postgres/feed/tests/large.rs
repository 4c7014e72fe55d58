//! Large transactions: streamed before they commit, and bounded.

use super::*;

/// A server that streams every transaction larger than 64 kB.
fn small_memory() -> Postgres {
    server(Options::new().set("logical_decoding_work_mem", "64kB"))
}

const SCHEMA: &str = "create table big (id int primary key, filler text)";

#[test]
fn a_heartbeat_passes_in_the_middle_of_a_large_transaction() {
    let server = small_memory();
    let mut fixture = FeedFixture::new(&server, SCHEMA);
    let id = fixture.watch("big", "id", ValueClass::Integer);
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
        |event| matches!(event, SinkEvent::Apply(_, tags) if tags.contains(&int(id, -1))),
    );
    let amid = fixture.feed.sink.len();
    fixture.run("commit");
    fixture.feed.sink.settle();
    let events = fixture.feed.sink.since(seen);
    let is_large = |event: &&SinkEvent| matches!(event, SinkEvent::Apply(_, tags) if tags.contains(&int(id, 1)));
    assert_eq!(events.iter().filter(is_large).count(), 1);
    assert!(!events[..amid - seen].iter().any(|event| is_large(&event)));
    let large = events.iter().find(is_large);
    let Some(SinkEvent::Apply(_, tags)) = large else {
        panic!("{large:?}");
    };
    assert_eq!(tags.len(), 3_001);
    assert!(tags.contains(&table) && tags.contains(&int(id, 3_000)));
}

#[test]
fn a_large_transactions_rolled_back_changes_are_not_delivered() {
    let server = small_memory();
    let mut fixture = FeedFixture::new(&server, SCHEMA);
    let id = fixture.watch("big", "id", ValueClass::Integer);
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
    let mut fixture = FeedFixture::new(shared(), SCHEMA);
    let id = fixture.watch("big", "id", ValueClass::Integer);
    let table = broad(fixture.oid("big"));
    let touched = fixture.touches("insert into big select n, '' from generate_series(1, 5000) n");
    assert_eq!(touched, HashSet::from([table, id.unknown()]));
}

/// Returns the event that is delivered right after the large transaction.
fn after_the_large_one(meanwhile: impl FnOnce(&mut FeedFixture<'_>, &mut Client)) -> SinkEvent {
    let server = small_memory();
    let mut fixture = FeedFixture::new(&server, SCHEMA);
    let id = fixture.watch("big", "id", ValueClass::Integer);
    let mut other = connect(&fixture.url);
    fixture
        .run("begin; insert into big select n, repeat('x', 100) from generate_series(1, 3000) n");
    wait_until(
        &mut other,
        "coalesce(bool_or(stream_txns > 0), false) from pg_stat_replication_slots",
    );
    // What was sent of it so far has been read.
    fixture.feed.sink.settle();
    meanwhile(&mut fixture, &mut other);
    fixture.feed.sink.settle();
    let seen = fixture.feed.sink.len();
    fixture.run("commit");
    let at = fixture.feed.sink.wait_for(
        "the large one",
        seen,
        |event| matches!(event, SinkEvent::Apply(_, tags) if tags.contains(&int(id, 1))),
    );
    fixture.feed.sink.settle();
    fixture.feed.sink.since(at + 1)[0].clone()
}

#[test]
fn one_that_began_before_a_column_was_watched_begins_an_epoch_with_its_change() {
    let next = after_the_large_one(|fixture, _| {
        let family = fixture.oid("big");
        let watched = WatchedRows::by(family, "filler", ValueClass::Text);
        fixture.feed.link.take_interest([watched]);
    });
    assert!(
        matches!(&next, SinkEvent::NewEpoch(reason) if reason.contains("were not watched")),
        "{next:?}"
    );
}

#[test]
fn one_that_began_before_the_schema_changed_begins_an_epoch_with_its_change() {
    let next = after_the_large_one(|_, other| {
        other
            .batch_execute("create table other (id int primary key)")
            .unwrap();
    });
    assert!(
        matches!(&next, SinkEvent::NewEpoch(reason) if reason.contains("schema has changed")),
        "{next:?}"
    );
}
