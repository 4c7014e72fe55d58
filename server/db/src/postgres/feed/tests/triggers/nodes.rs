//! Several nodes, and what becomes of what they have seen.

use super::*;

const SCHEMA: &str = "create table article (id int primary key, title text)";

const NOTHING_LEFT: &str = "not exists (select from _millpond_change)";

fn node(url: &str, name: &str) -> Feed {
    let mut settings = settings(url, name);
    by_triggers(&mut settings);
    let feed = Feed::start(settings);
    feed.sink.settle();
    feed
}

/// A node that has registered and reads no more: what it says it needs, and for how long it has
/// been silent.
fn silent(oldest: &str, silence: &str) -> String {
    format!(
        "insert into _millpond_node values ('silent', 1, {oldest}, now() - interval '{silence}')"
    )
}

#[test]
fn what_all_nodes_have_seen_is_removed() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    let other = node(&fixture.url, "00000000000000ab");
    let seen = [fixture.feed.sink.len(), other.sink.len()];
    fixture.run("insert into article values (1, 'a')");
    fixture.feed.sink.wait_for("the change", seen[0], is_apply);
    other.sink.wait_for("the change", seen[1], is_apply);
    wait_until(&mut fixture.client, NOTHING_LEFT);
    // A node that has left is not waited for.
    other.handle.stop();
    wait_until(&mut fixture.client, "count(*) = 1 from _millpond_node");
    fixture.run("update article set title = 'b'");
    wait_until(&mut fixture.client, NOTHING_LEFT);
}

#[test]
fn what_a_node_has_not_seen_stays_until_it_was_silent_for_a_minute() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    fixture.run(&silent(
        "pg_snapshot_xmin(pg_current_snapshot())",
        "30 seconds",
    ));
    fixture.run("insert into article values (1, 'a')");
    // The node has tidied since.
    let tidied = |fixture: &mut FeedFixture<'_>| {
        fixture.run("create table if not exists mark as select now() as at; update mark set at = clock_timestamp()");
        let later = "(select max(seen_at) from _millpond_node where node <> 'silent') > (select at + interval '1 second' from mark)";
        wait_until(&mut fixture.client, later);
    };
    tidied(&mut fixture);
    assert_eq!(fixture.count("_millpond_change"), 1);
    fixture.run(
        "update _millpond_node set seen_at = now() - interval '61 seconds' where node = 'silent'",
    );
    wait_until(
        &mut fixture.client,
        "not exists (select from _millpond_node where node = 'silent')",
    );
    wait_until(&mut fixture.client, NOTHING_LEFT);
}

#[test]
fn a_node_that_was_struck_off_begins_anew() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    let seen = fixture.feed.sink.len();
    fixture.run("begin; delete from _millpond_node; insert into article values (1, 'a'); delete from _millpond_change; commit");
    let ended = fixture.feed.sink.wait_for_epoch(seen, "silent for so long");
    // No heartbeat has counted that had missed the change.
    let events = fixture.feed.sink.since(seen);
    assert!(!events.iter().any(is_apply));
    fixture.feed.sink.wait_for_epoch(ended, "the feed starts");
    fixture.feed.sink.settle();
    let before = fixture.feed.sink.len();
    fixture.run("update article set title = 'b'");
    fixture.feed.sink.wait_for("a change", before, is_apply);
}

#[test]
fn a_table_of_changes_that_is_too_large_loses_them_and_that_is_noticed() {
    let mut fixture = recorded(plain(), SCHEMA, &["article"]);
    let other = node(&fixture.url, "00000000000000ab");
    fixture.run(
        "alter table _millpond_change alter column content set storage plain; \
         insert into _millpond_change select '3', 0, to_jsonb(repeat('x', 7500)) from generate_series(1, 33000)",
    );
    let large = "select pg_relation_size('_millpond_change')";
    let size: i64 = fixture.client.query_one(large, &[]).unwrap().get(0);
    assert!(u64::try_from(size).unwrap() > objects::MAX_BYTES);
    let seen = [fixture.feed.sink.len(), other.sink.len()];
    // It is not recorded, and never comes; a node that does not see it keeps nothing.
    fixture.run("begin; insert into article values (1, 'a')");
    for (feed, seen) in [(&fixture.feed, seen[0]), (&other, seen[1])] {
        let ended = feed.sink.wait_for_epoch(seen, "too large");
        feed.sink.wait_for_epoch(ended, "the feed starts");
        feed.sink.settle();
        let row = connect(&fixture.url)
            .query_one("select pg_current_snapshot()::text", &[])
            .unwrap();
        let open = Transactions::parse(row.get(0)).unwrap();
        assert!(!feed.link.may_keep(&open));
    }
    fixture.run("commit");
    // It is emptied once no lock is in the way, by a node or by a vacuum, and changes are recorded
    // again.
    wait_until(
        &mut fixture.client,
        &format!(
            "pg_relation_size('_millpond_change') < {}",
            objects::MAX_BYTES
        ),
    );
    loop {
        fixture.feed.sink.settle();
        let before = fixture.feed.sink.len();
        fixture.run("update article set title = title || 'b'");
        // Emptying it ends the lives of all nodes.
        let events = fixture.feed.sink.wait_for("a change", before, |event| {
            matches!(event, SinkEvent::Apply(..) | SinkEvent::NewEpoch(_))
        });
        if is_apply(&fixture.feed.sink.since(events)[0]) {
            break;
        }
    }
}
