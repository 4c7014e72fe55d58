//! The promise, one rule at a time; from simple to strange, so that the first failure says most.

use std::{sync::Arc, task::Poll};

use millpond_store::{
    Change, Class, Config, Fill, FillOutcome, FlightEnd, Joined, MissReason, Need, Sink, Tag,
};

use crate::support::{NOW, Stone, TestStore, fill, lead, poll_once, store, weighing};

const ROW: Tag = Tag::narrow(2);
const TABLE: Tag = Tag::broad(4);

fn put(store: &TestStore, key: &[u8], tags: &[Tag]) -> FillOutcome {
    lead(store, key, Need::Any).complete(fill(1, tags.to_vec(), 0))
}

fn change(store: &TestStore, mark: u64, tag: Tag) {
    store.apply(Change {
        mark,
        tags: vec![tag],
    });
}

fn get(store: &TestStore, key: &[u8]) -> Result<u64, MissReason> {
    store.get(key, NOW).map(|value| value.number)
}

#[test]
fn what_was_stored_is_given_until_its_tag_is_touched() {
    for tag in [ROW, TABLE] {
        let store = store(Config::default());
        assert_eq!(get(&store, b"key"), Err(MissReason::Absent));
        assert_eq!(put(&store, b"key", &[tag]), FillOutcome::Stored);
        change(&store, 1, Tag::narrow(100));
        assert_eq!(get(&store, b"key"), Ok(1));
        change(&store, 2, tag);
        assert_eq!(get(&store, b"key"), Err(MissReason::Invalidated));
    }
}

#[test]
fn a_row_with_more_dependents_than_are_listed_reaches_all_of_them() {
    let store = store(Config::default());
    for key in 0..200u64 {
        put(&store, &key.to_le_bytes(), &[ROW]);
    }
    change(&store, 1, ROW);
    for key in 0..200u64 {
        assert_eq!(
            get(&store, &key.to_le_bytes()),
            Err(MissReason::Invalidated)
        );
    }
    // Dependents without a place in the list leave the table as clean as listed ones.
    store.visible(&1);
    for key in 0..200u64 {
        lead(&store, &key.to_le_bytes(), Need::Any).complete(fill(2, Vec::new(), 1));
    }
    assert_eq!(store.stats().tags, 0);
}

#[test]
fn an_old_feed_gives_nothing() {
    let store = store(Config::default());
    put(&store, b"key", &[]);
    let last = NOW.plus(std::time::Duration::from_secs(3600));
    assert!(store.get(b"key", last).is_ok());
    assert_eq!(
        store
            .get(b"key", last.plus(std::time::Duration::from_nanos(1)))
            .err(),
        Some(MissReason::FeedOld)
    );
}

#[test]
fn a_stale_value_is_given_only_when_it_is_asked_for_and_its_age_is_told() {
    let store = store(Config::default());
    put(&store, b"key", &[ROW]);
    let seconds = std::time::Duration::from_secs;
    let (hour, allowance) = (seconds(3600), seconds(60));
    let last = NOW.plus(hour);
    let stale = store.get_stale(b"key", last.plus(allowance), allowance);
    let stale = stale.expect("it is allowed");
    assert_eq!((stale.age, stale.overdue), (hour + allowance, allowance));
    let late = last.plus(allowance + seconds(1));
    assert!(store.get_stale(b"key", late, allowance).is_none());
    assert!(store.get_stale(b"other", last, allowance).is_none());
    // What has ended is not stale, but wrong.
    change(&store, 1, ROW);
    assert!(store.get_stale(b"key", last, allowance).is_none());
    put(&store, b"key", &[]);
    store.new_epoch("a test");
    assert!(store.get_stale(b"key", last, allowance).is_none());
}

#[test]
fn a_change_during_a_fill_keeps_it_out() {
    let store = store(Config::default());
    let permit = lead(&store, b"key", Need::Any);
    change(&store, 1, ROW);
    store.visible(&1);
    assert_eq!(permit.complete(fill(1, vec![ROW], 0)), FillOutcome::Fenced);
    assert_eq!(get(&store, b"key"), Err(MissReason::Absent));
    assert_eq!(store.stats().logged, 0);
}

#[test]
fn a_change_before_a_fill_keeps_it_out_while_the_fill_cannot_see_it() {
    let store = store(Config::default());
    change(&store, 1, ROW);
    assert_eq!(put(&store, b"key", &[ROW]), FillOutcome::Fenced);
    store.visible(&1);
    assert_eq!(
        lead(&store, b"key", Need::Any).complete(fill(1, vec![ROW], 1)),
        FillOutcome::Stored
    );
}

#[test]
fn a_new_epoch_does_not_forget_what_cannot_be_seen_yet() {
    let store = store(Config::default());
    change(&store, 1, ROW);
    store.new_epoch("a view was replaced");
    assert_eq!(
        put(&store, b"key", &[ROW]),
        FillOutcome::Fenced,
        "nobody would ever tell it of change 1 again"
    );
    store.visible(&1);
    assert_eq!(store.stats().logged, 0);
    assert_eq!(
        lead(&store, b"key", Need::Any).complete(fill(1, vec![ROW], 1)),
        FillOutcome::Stored
    );
}

#[test]
fn a_full_log_does_not_forget_what_cannot_be_seen_yet() {
    let store = store(Config {
        logged_changes: 3,
        ..Config::default()
    });
    for mark in 1..=4 {
        change(&store, mark, Tag::narrow(mark << 1));
    }
    assert_eq!(store.stats().epoch, 1);
    assert_eq!(put(&store, b"key", &[Tag::narrow(2)]), FillOutcome::Fenced);
    // The marks that stay do not fill the log: the next epoch comes after four more changes.
    for mark in 5..=7 {
        change(&store, mark, ROW);
    }
    assert_eq!(store.stats().epoch, 1);
    change(&store, 8, ROW);
    assert_eq!(store.stats().epoch, 2);
    store.visible(&8);
    assert_eq!((store.stats().logged, store.stats().logged_tags), (0, 0));
}

#[test]
fn a_transaction_larger_than_the_log_begins_an_epoch() {
    let store = store(Config {
        logged_tags: 10,
        ..Config::default()
    });
    put(&store, b"key", &[]);
    store.apply(Change {
        mark: 1,
        tags: (0..11).map(|tag| Tag::narrow(tag << 1)).collect(),
    });
    assert_eq!(get(&store, b"key"), Err(MissReason::Epoch));
}

#[test]
fn a_fill_ends_with_its_epoch() {
    let store = store(Config::default());
    let permit = lead(&store, b"key", Need::Any);
    store.new_epoch("test");
    assert_eq!(
        permit.complete(fill(1, Vec::new(), 0)),
        FillOutcome::Outlived
    );
}

#[test]
fn a_fenced_result_is_only_for_requests_from_before_the_read() {
    let store = store(Config::default());
    let Joined::Lead(mut permit) = store.join(b"key", Need::Any) else {
        panic!("nobody else is there")
    };
    let Joined::Wait(mut early) = store.join(b"key", Need::Unbegun) else {
        panic!("there is a flight")
    };
    assert!(poll_once(permit.begin()).is_ready());
    let Joined::Wait(mut late) = store.join(b"key", Need::Any) else {
        panic!("there is a flight")
    };
    change(&store, 1, ROW);
    permit.complete(fill(1, vec![ROW], 0));
    assert!(matches!(
        poll_once(&mut early),
        Poll::Ready(FlightEnd::Value(_))
    ));
    assert!(matches!(
        poll_once(&mut late),
        Poll::Ready(FlightEnd::Retry)
    ));
}

#[test]
fn a_request_that_needs_an_unbegun_flight_never_gets_one_that_has_begun() {
    let store = store(Config::default());
    let first = lead(&store, b"key", Need::Any);
    let Joined::Lead(mut second) = store.join(b"key", Need::Unbegun) else {
        panic!("the first has begun")
    };
    assert!(
        poll_once(second.begin()).is_pending(),
        "the first still runs"
    );
    // A cancelled call must not make the next one forget the flight that it waits for.
    assert!(
        poll_once(second.begin()).is_pending(),
        "the first still runs"
    );
    let Joined::Wait(mut waiting) = store.join(b"key", Need::Unbegun) else {
        panic!("the second has not begun")
    };
    first.complete(fill(1, Vec::new(), 0));
    assert!(poll_once(&mut waiting).is_pending());
    assert!(poll_once(second.begin()).is_ready());
    second.complete(fill(2, Vec::new(), 0));
    let Poll::Ready(FlightEnd::Value(value)) = poll_once(&mut waiting) else {
        panic!("it has landed")
    };
    assert_eq!(value.number, 2);
}

#[test]
fn a_flight_that_begins_twice_is_one_fill() {
    let store = store(Config::default());
    let mut permit = lead(&store, b"key", Need::Any);
    assert!(poll_once(permit.begin()).is_ready());
    drop(permit);
    change(&store, 1, ROW);
    store.visible(&1);
    assert_eq!(
        store.stats().logged,
        0,
        "no fill is thought to run for ever"
    );
}

#[test]
fn a_dropped_permit_frees_waiting_requests_and_the_next_flight() {
    let store = store(Config::default());
    let first = lead(&store, b"key", Need::Any);
    let Joined::Wait(mut waiting) = store.join(b"key", Need::Any) else {
        panic!("there is a flight")
    };
    let Joined::Lead(mut second) = store.join(b"key", Need::Unbegun) else {
        panic!("the first has begun")
    };
    drop(first);
    assert!(matches!(
        poll_once(&mut waiting),
        Poll::Ready(FlightEnd::Retry)
    ));
    assert!(poll_once(second.begin()).is_ready());
    drop((second, waiting));
    assert_eq!((store.stats().flights, store.stats().waiting), (0, 0));
}

#[test]
fn limits_refuse_and_recover() {
    let store = store(Config {
        flights: 1,
        waiters: 1,
        ..Config::default()
    });
    let permit = lead(&store, b"key", Need::Any);
    assert!(matches!(store.join(b"other", Need::Any), Joined::Refused));
    assert!(matches!(store.join(b"key", Need::Unbegun), Joined::Refused));
    let waiting = store.join(b"key", Need::Any);
    assert!(matches!(waiting, Joined::Wait(_)));
    assert!(matches!(store.join(b"key", Need::Any), Joined::Refused));
    drop(waiting);
    assert!(matches!(store.join(b"key", Need::Any), Joined::Wait(_)));
    drop(permit);
    assert!(matches!(store.join(b"other", Need::Any), Joined::Lead(_)));
    assert_eq!(store.stats().refused, 3);
}

#[test]
fn values_are_combined_only_when_the_feed_has_passed_what_they_saw() {
    let store = store(Config::default());
    put(&store, b"a", &[ROW]);
    // Read after change 1, which the feed has not brought yet: with `a` it would make a page that
    // never existed.
    lead(&store, b"b", Need::Any).complete(fill(2, vec![TABLE], 1));
    assert!(store.combine(&[b"a", b"b"], NOW).is_none());
    store.apply(Change {
        mark: 1,
        tags: vec![ROW, TABLE],
    });
    store.visible(&1);
    store.heartbeat(NOW, 1);
    assert!(store.combine(&[b"a"], NOW).is_none());
    for key in [b"a", b"b"] {
        lead(&store, key, Need::Any).complete(fill(3, vec![ROW], 1));
    }
    let combined = store
        .combine(&[b"a", b"b"], NOW)
        .expect("both are of change 1");
    assert_eq!(combined.position, 1);
}

#[test]
fn positions_of_an_epoch_that_is_over_say_nothing() {
    let store = store(Config::default());
    store.heartbeat(NOW, 9);
    store.new_epoch("the source counts from the start again");
    put(&store, b"key", &[ROW]);
    assert!(store.combine(&[b"key"], NOW).is_none());
    store.heartbeat(NOW, 0);
    assert!(store.combine(&[b"key"], NOW).is_some());
}

#[test]
fn what_does_not_exist_evicts_nothing_that_does() {
    let store = store(Config {
        memory: 100_000,
        negative_percent: 10,
        ..Config::default()
    });
    put(&store, b"key", &[]);
    for n in 0..1000u64 {
        let fill = Fill {
            class: Class::Negative,
            ..fill(n, vec![TABLE], 0)
        };
        lead(&store, &n.to_le_bytes(), Need::Any).complete(fill);
    }
    assert_eq!(get(&store, b"key"), Ok(1));
    assert!(store.stats().bytes < 11_000);
}

#[test]
fn a_value_that_says_it_weighs_everything_harms_nothing() {
    for weight in [usize::MAX, 1 << 32, (1 << 32) - 1] {
        let store = store(Config {
            memory: 1 << 40,
            ..Config::default()
        });
        put(&store, b"key", &[ROW]);
        lead(&store, b"huge", Need::Any).complete(weighing(
            Stone { number: 2, weight },
            vec![ROW],
            0,
        ));
        assert_eq!(
            (get(&store, b"key"), get(&store, b"huge")),
            (Ok(1), Err(MissReason::Absent))
        );
        let value = store.get(b"key", NOW).expect("it is there");
        store.grow(b"key", value.value(), weight);
        let stats = store.stats();
        assert_eq!((stats.entries, stats.bytes, stats.tags), (0, 0, 0));
    }
}

#[test]
fn a_value_that_grows_is_counted_once_and_only_while_it_is_stored() {
    let store = store(Config {
        memory: 10_000,
        negative_percent: 0,
        ..Config::default()
    });
    put(&store, b"key", &[]);
    let (before, old) = (
        store.stats().bytes,
        store.get(b"key", NOW).expect("it is there").value().clone(),
    );
    store.grow(b"key", &old, 1000);
    assert_eq!(store.stats().bytes, before + 1000);
    put(&store, b"key", &[]);
    store.grow(b"key", &old, 1000);
    assert_eq!(store.stats().bytes, before);
    assert_eq!(
        Arc::strong_count(&old),
        1,
        "the store has let the old one go"
    );
}
