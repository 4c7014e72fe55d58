//! Why a key is answered as it is.

use base_clock::Boottime;
use millpond_store::{Change, Config, Joined, MissReason, Need, Sink, Tag};

use crate::support::{NOW, TestStore, block_on, fill, store};

fn keep(store: &TestStore, key: &[u8], tags: Vec<Tag>) {
    let Joined::Lead(mut permit) = store.join(key, Need::Any) else {
        panic!("nobody else asks");
    };
    block_on(permit.begin());
    permit.complete(fill(7, tags, u64::MAX));
}

fn apply(store: &TestStore, mark: u64, tags: Vec<Tag>) {
    store.apply(Change { mark, tags });
}

#[test]
fn the_change_that_ended_an_entry_is_named() {
    let store = store(Config::default());
    let absent = store.explain(b"key", NOW);
    assert_eq!(absent.state, Err(MissReason::Absent));
    assert!(absent.entry.is_none() && absent.ended_by.is_none() && !absent.is_flying);
    apply(&store, 1, vec![Tag::narrow(2)]);
    keep(&store, b"key", vec![Tag::narrow(2), Tag::broad(5)]);
    let fresh = store.explain(b"key", NOW);
    assert_eq!(fresh.state, Ok(()));
    let stored = fresh.entry.expect("it is stored");
    assert_eq!((stored.value.number, stored.tags), (7, 2));
    assert_eq!(stored.expires, None);
    assert!(stored.at <= Boottime::now());
    // Another thing, then one that it depends on as a whole, then one of its rows.
    for (mark, tag) in [(2, Tag::narrow(4)), (3, Tag::broad(5)), (4, Tag::narrow(2))] {
        apply(&store, mark, vec![tag]);
    }
    let over = store.explain(b"key", NOW);
    assert_eq!(over.state, Err(MissReason::Invalidated));
    let cause = over.ended_by.expect("it is remembered");
    assert_eq!((cause.mark, cause.is_certain), (3, true));
    assert_eq!(
        (&cause.touched[..], over.ended_before),
        (&[Tag::broad(5)][..], None)
    );
    keep(&store, b"key", vec![Tag::narrow(2)]);
    let again = store.explain(b"key", NOW);
    assert_eq!((again.state, again.ended_by), (Ok(()), None));
    assert_eq!(again.ended_before.expect("it is remembered").mark, 4);
}

#[test]
fn what_touched_too_much_is_only_a_suspect_and_what_is_long_ago_is_forgotten() {
    let store = store(Config::default());
    keep(&store, b"key", vec![Tag::narrow(2)]);
    let many = (0..100).map(|n| Tag::narrow(n * 2));
    apply(&store, 1, many.chain([Tag::broad(7)]).collect());
    let cause = store.explain(b"key", NOW).ended_by.expect("a suspect");
    assert_eq!((cause.mark, cause.is_certain), (1, false));
    // What it touched as a whole is remembered all the same.
    assert_eq!(&cause.touched[..], [Tag::broad(7)]);
    (2..2_000).for_each(|mark| apply(&store, mark, vec![Tag::narrow(4)]));
    let over = store.explain(b"key", NOW);
    assert_eq!(
        (over.state, over.ended_by),
        (Err(MissReason::Invalidated), None)
    );
}

#[test]
fn the_feed_reports_its_age_and_why_its_epoch_began() {
    let store = store(Config::default());
    let feed = store.feed(NOW);
    assert_eq!(
        (feed.age, feed.position, feed.epoch),
        (Some(std::time::Duration::ZERO), Some(0), 0)
    );
    keep(&store, b"key", vec![Tag::narrow(2)]);
    store.new_epoch("the schema has changed");
    let over = store.explain(b"key", NOW);
    assert_eq!((over.state, over.ended_by), (Err(MissReason::Epoch), None));
    assert_eq!(over.feed.epoch_reason, "the schema has changed");
    assert_eq!((over.feed.epoch, over.feed.position), (1, None));
}

#[test]
fn an_end_by_the_owner_is_that_of_the_named_keys_alone() {
    let store = store(Config::default());
    for key in [&b"page 1"[..], b"page 1 of one", b"page 2"] {
        keep(&store, key, vec![Tag::narrow(2)]);
    }
    let is_ended = |key: &[u8]| key.starts_with(b"page 1");
    assert_eq!(store.end(is_ended), 2);
    assert_eq!(store.end(is_ended), 0, "they have ended");
    let state = |key: &[u8]| store.explain(key, NOW).state;
    assert_eq!(state(b"page 1"), Err(MissReason::Invalidated));
    assert_eq!(state(b"page 1 of one"), Err(MissReason::Invalidated));
    assert_eq!(state(b"page 2"), Ok(()));
    assert_eq!(store.stats().invalidated, 2);
    // A change of what it depended on, and another value, are as before.
    apply(&store, 1, vec![Tag::narrow(2)]);
    keep(&store, b"page 1", vec![Tag::narrow(2)]);
    assert_eq!(state(b"page 1"), Ok(()));
    assert_eq!(state(b"page 2"), Err(MissReason::Invalidated));
}
