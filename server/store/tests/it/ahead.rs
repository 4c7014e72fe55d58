//! What the store offers to be made ahead, and what becomes of it.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry::Vacant},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Poll, Wake, Waker},
    time::Duration,
};

use proptest::prelude::*;

use base_clock::Boottime;
use millpond_store::{
    Change, Config, Fill, FillOutcome, FlightEnd, Joined, MadeAhead, MissReason, Need, Sink, Tag,
};

use crate::support::{NOW, TestStore, fill, lead, poll_once, store};

const ROW: Tag = Tag::narrow(2);
const TABLE: Tag = Tag::broad(4);

fn watched(limit: usize) -> TestStore {
    store(Config {
        ahead: limit,
        ..Config::default()
    })
}

/// Stores a value that can be made again, and asks for it `hits` times.
fn keep(store: &TestStore, key: &[u8], tag: Tag, hits: usize) {
    costing(store, key, tag, hits, Duration::from_millis(1));
}

fn costing(store: &TestStore, key: &[u8], tag: Tag, hits: usize, cost: Duration) {
    let mut permit = lead(store, key, Need::Any);
    permit.renewable();
    let fill = Fill {
        cost,
        ..fill(1, vec![tag], u64::MAX)
    };
    assert_eq!(permit.complete(fill), FillOutcome::Stored);
    for _ in 0..hits {
        assert!(store.get(key, NOW).is_ok());
    }
}

fn change(store: &TestStore, mark: u64, tag: Tag) {
    store.apply(Change {
        mark,
        tags: vec![tag],
    });
}

/// All that is offered, in order.
fn offered(store: &TestStore) -> Vec<Vec<u8>> {
    let now = Boottime::now();
    std::iter::from_fn(|| store.next_ahead(now))
        .map(|(key, _)| Vec::from(key))
        .collect()
}

fn make(store: &TestStore, key: &[u8], tag: Tag, snapshot: u64) -> FillOutcome {
    let mut permit = store.lead_ahead(key, NOW).expect("nobody else makes it");
    permit.renewable();
    assert!(poll_once(permit.begin()).is_ready());
    permit.complete(fill(2, vec![tag], snapshot))
}

#[test]
fn what_is_hot_is_offered_when_it_is_marked_and_what_is_not_is_not() {
    let store = watched(8);
    keep(&store, b"hot", ROW, 5);
    keep(&store, b"cold", ROW, 1);
    keep(&store, b"valid", Tag::narrow(6), 5);
    lead(&store, b"once", Need::Any).complete(fill(1, vec![ROW], u64::MAX));
    (0..5).for_each(|_| drop(store.get(b"once", NOW)));
    assert!(!store.has_work_ahead());
    change(&store, 1, ROW);
    assert!(store.has_work_ahead() && !store.sweep(Boottime::now()));
    assert_eq!(offered(&store), [b"hot"]);
    // Offered once: it is offered again when it has been made and has ended again.
    change(&store, 2, ROW);
    assert!(offered(&store).is_empty() && !store.has_work_ahead());
}

#[test]
fn what_ends_without_being_touched_is_found_by_a_sweep() {
    let store = watched(8);
    for n in 0..1000_u32 {
        keep(&store, &n.to_le_bytes(), TABLE, usize::from(n == 700) * 5);
    }
    change(&store, 1, TABLE);
    assert!(store.has_work_ahead() && offered(&store).is_empty());
    assert!(store.sweep(Boottime::now()) && !store.sweep(Boottime::now()));
    assert_eq!(offered(&store), [700_u32.to_le_bytes()]);
    // Of a thousand it has looked at the one that is hot, and the next sweep looks at none.
    assert_eq!(store.stats().swept, 1);
    change(&store, 2, TABLE);
    assert!(store.sweep(Boottime::now()));
    assert_eq!(store.stats().swept, 1);
    // A table on which nothing depends makes no work.
    change(&store, 3, Tag::broad(8));
    assert!(!store.has_work_ahead());
}

#[test]
fn a_sweep_finds_what_a_fold_has_left_hot_and_what_has_inherited_its_heat() {
    let store = watched(8);
    keep(&store, b"folded", TABLE, 12);
    keep(&store, b"cooled", TABLE, 2);
    keep(&store, b"inherited", ROW, 12);
    keep(&store, b"meanwhile", TABLE, 1);
    store.fold_heat();
    change(&store, 1, ROW);
    assert_eq!(offered(&store), [b"inherited"]);
    assert_eq!(
        make(&store, b"inherited", TABLE, u64::MAX),
        FillOutcome::Stored
    );
    (0..3).for_each(|_| drop(store.get(b"meanwhile", NOW)));
    // What is valid is looked at again by the next.
    store.apply(Change {
        mark: 2,
        tags: vec![Tag::broad(8)],
    });
    lead(&store, b"other", Need::Any).complete(fill(1, vec![Tag::broad(8)], u64::MAX));
    change(&store, 3, Tag::broad(8));
    assert!(store.sweep(Boottime::now()) && offered(&store).is_empty());
    change(&store, 4, TABLE);
    assert!(store.sweep(Boottime::now()));
    let mut found = offered(&store);
    found.sort();
    assert_eq!(found, [&b"folded"[..], b"inherited", b"meanwhile"]);
}

#[derive(Clone, Debug)]
enum Step {
    Make(u8, bool),
    MakeAhead(u8, bool),
    Get(u8),
    Fold,
    Change(bool),
    Epoch,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..6_u8, any::<bool>()).prop_map(|(key, table)| Step::Make(key, table)),
        1 => (0..6_u8, any::<bool>()).prop_map(|(key, table)| Step::MakeAhead(key, table)),
        12 => (0..6_u8).prop_map(Step::Get),
        1 => Just(Step::Fold),
        2 => any::<bool>().prop_map(Step::Change),
        1 => Just(Step::Epoch),
    ]
}

proptest! {
    /// A sweep looks at few and finds the same as if it looked at all.
    #[test]
    fn a_sweep_finds_all_that_was_hot(steps in prop::collection::vec(step(), 1..200)) {
        let tables = [TABLE, Tag::broad(8)];
        let store = watched(64);
        // The table of each valid key.
        let mut valid = BTreeMap::new();
        for (mark, step) in (1..).zip(steps) {
            match step {
                Step::Make(key, table) => {
                    keep(&store, &[key], tables[usize::from(table)], 0);
                    valid.insert(key, table);
                }
                Step::MakeAhead(key, table) => {
                    if let Vacant(place) = valid.entry(key) {
                        let made = make(&store, &[key], tables[usize::from(table)], u64::MAX);
                        prop_assert_eq!(made, FillOutcome::Stored);
                        place.insert(table);
                    }
                }
                Step::Get(key) => prop_assert_eq!(store.get(&[key], NOW).is_ok(), valid.contains_key(&key)),
                Step::Fold => store.fold_heat(),
                Step::Change(_) | Step::Epoch => {
                    let hot: Vec<_> = store.hottest(64).into_iter().map(|key| key[0]).collect();
                    let table = if let Step::Change(table) = step { Some(table) } else { None };
                    let ends = |of: bool| table.is_none_or(|table| of == table);
                    let is_expected = |key: &u8| valid.get(key).is_some_and(|of| ends(*of));
                    let expected: BTreeSet<u8> = hot.into_iter().filter(is_expected).collect();
                    match table {
                        Some(table) => change(&store, mark, tables[usize::from(table)]),
                        None => store.new_epoch("so says the test"),
                    }
                    store.sweep(Boottime::now());
                    let found = offered(&store).into_iter().map(|key| key[0]).collect::<BTreeSet<u8>>();
                    prop_assert_eq!(found, expected);
                    valid.retain(|_, of| !ends(*of));
                }
            }
        }
    }
}

#[test]
fn after_an_epoch_the_hottest_come_first_by_heat_and_cost() {
    let store = watched(8);
    // The first sets the mean.
    costing(&store, b"mean", ROW, 3, Duration::from_millis(10));
    costing(&store, b"warm", ROW, 5, Duration::from_millis(10));
    costing(&store, b"hot", ROW, 12, Duration::from_millis(10));
    costing(&store, b"dear", ROW, 5, Duration::from_millis(100));
    costing(&store, b"cold", ROW, 1, Duration::from_millis(100));
    store.new_epoch("the feed was lost");
    assert!(store.sweep(Boottime::now()));
    assert_eq!(offered(&store), [&b"dear"[..], b"hot", b"warm", b"mean"]);
    assert_eq!(
        store.hottest(2),
        [Box::from(&b"dear"[..]), Box::from(&b"hot"[..])]
    );
}

#[test]
fn heat_is_handed_on_to_another_key() {
    let store = watched(8);
    keep(&store, b"old", ROW, 12);
    keep(&store, b"new", TABLE, 0);
    store.new_epoch("the folder has changed");
    assert!(store.sweep(Boottime::now()));
    let (key, degree) = store.next_ahead(Boottime::now()).unwrap();
    assert_eq!(&*key, b"old");
    assert_eq!(store.next_ahead(Boottime::now()), None, "the new is cold");
    store.inherit_heat(b"none", degree);
    assert_eq!(make(&store, b"new", TABLE, u64::MAX), FillOutcome::Stored);
    let hottest = || store.hottest(8).into_iter().map(Vec::from);
    assert!(hottest().eq([b"old".to_vec()]));
    store.inherit_heat(b"new", degree);
    assert!(hottest().eq([b"old".to_vec(), b"new".to_vec()]));
    // No request has asked for it, but it is hot.
    store.new_epoch("the folder has changed again");
    assert!(store.sweep(Boottime::now()));
    assert_eq!(offered(&store), [b"new"]);
}

#[test]
fn the_hottest_are_chosen_from_more_than_are_looked_at_in_one_go() {
    let store = watched(8);
    for n in 0..700_u16 {
        let hits = if n % 100 == 50 { 12 } else { 3 };
        keep(&store, &n.to_be_bytes(), ROW, hits);
    }
    let mut hottest = store.hottest(7);
    hottest.sort();
    let expected = (0..7_u16).map(|n| Box::from(&(100 * n + 50).to_be_bytes()[..]));
    assert_eq!(hottest, expected.collect::<Vec<Box<[u8]>>>());
    assert!(store.hottest(0).is_empty());
}

#[test]
fn a_change_that_ends_many_leaves_the_hottest_in_a_short_queue() {
    let store = watched(3);
    for n in 0..60_u8 {
        let hits = if n % 20 == 7 { 14 } else { 3 };
        keep(&store, &[n], ROW, hits);
    }
    change(&store, 1, ROW);
    let stats = store.stats();
    assert_eq!(
        (stats.invalidated, stats.ahead, stats.ahead_dropped),
        (60, 3, 57)
    );
    let mut kept = offered(&store);
    kept.sort();
    assert_eq!(kept, [[7], [27], [47]]);
}

#[test]
fn with_no_queue_nothing_is_noticed() {
    let store = watched(0);
    keep(&store, b"hot", ROW, 9);
    keep(&store, b"wide", TABLE, 9);
    change(&store, 1, ROW);
    change(&store, 2, TABLE);
    store.new_epoch("the feed was lost");
    assert!(!store.has_work_ahead() && !store.sweep(Boottime::now()) && offered(&store).is_empty());
}

#[test]
fn what_is_offered_late_is_dropped() {
    let store = watched(8);
    keep(&store, b"hot", ROW, 5);
    change(&store, 1, ROW);
    let later = Boottime::now().plus(Duration::from_secs(3600));
    assert_eq!(store.next_ahead(later), None);
    assert_eq!((store.stats().ahead, store.stats().ahead_dropped), (0, 1));
}

#[test]
fn the_first_request_takes_a_key_off_the_queue() {
    let store = watched(8);
    keep(&store, b"hot", ROW, 5);
    change(&store, 1, ROW);
    keep(&store, b"hot", ROW, 0);
    assert!(offered(&store).is_empty());
    assert!(store.lead_ahead(b"hot", NOW).is_none(), "it is valid");
    change(&store, 2, ROW);
    let flight = lead(&store, b"hot", Need::Any);
    assert!(store.lead_ahead(b"hot", NOW).is_none(), "somebody makes it");
    drop(flight);
    assert!(store.lead_ahead(b"hot", NOW).is_some());
}

#[test]
fn the_fence_checks_what_is_made_ahead_and_requests_meanwhile_wait_for_it() {
    let store = watched(8);
    keep(&store, b"hot", ROW, 5);
    change(&store, 1, ROW);
    let mut permit = store.lead_ahead(b"hot", NOW).expect("nobody makes it");
    let Joined::Wait(early) = store.join(b"hot", Need::Any) else {
        panic!("it is being made");
    };
    assert!(poll_once(permit.begin()).is_ready());
    let Joined::Wait(late) = store.join(b"hot", Need::Any) else {
        panic!("it is being made");
    };
    change(&store, 2, ROW);
    assert_eq!(permit.complete(fill(2, vec![ROW], 1)), FillOutcome::Fenced);
    // It saw the first change and not the second.
    assert!(matches!(poll_once(early), Poll::Ready(FlightEnd::Value(_))));
    assert!(matches!(poll_once(late), Poll::Ready(FlightEnd::Retry)));
    assert_eq!(store.get(b"hot", NOW).err(), Some(MissReason::Invalidated));
    assert_eq!(make(&store, b"hot", ROW, 2), FillOutcome::Stored);
    assert_eq!(store.get(b"hot", NOW).map(|stone| stone.number), Ok(2));
    let mut outlived = store.lead_ahead(b"other", NOW).expect("nobody makes it");
    assert!(poll_once(outlived.begin()).is_ready());
    store.new_epoch("the feed was lost");
    let outcome = outlived.complete(fill(2, vec![ROW], u64::MAX));
    assert_eq!(outcome, FillOutcome::Outlived);
}

#[test]
fn unused_values_are_counted_and_soon_left_alone() {
    let store = watched(8);
    keep(&store, b"hot", ROW, 100);
    let mut made = 0;
    for mark in 1..20 {
        change(&store, mark, ROW);
        if offered(&store).is_empty() {
            break;
        }
        assert_eq!(make(&store, b"hot", ROW, mark), FillOutcome::Stored);
        made += 1;
    }
    assert_eq!(made, 3);
    let tally = MadeAhead {
        times: 3,
        unused: 3,
    };
    assert_eq!(store.explain(b"hot", NOW).ahead, tally);
    // A request for it makes it hot again.
    keep(&store, b"hot", ROW, 5);
    change(&store, 30, ROW);
    assert_eq!(offered(&store), [b"hot"]);
    assert_eq!(make(&store, b"hot", ROW, 30), FillOutcome::Stored);
    assert!(store.get(b"hot", NOW).is_ok());
    change(&store, 31, ROW);
    let stats = store.stats();
    assert_eq!((stats.made_ahead, stats.made_unused), (4, 3));
}

#[test]
fn a_value_with_a_waiting_request_is_not_unused() {
    let store = watched(8);
    let permit = store.lead_ahead(b"key", NOW).expect("nobody makes it");
    let Joined::Wait(waiting) = store.join(b"key", Need::Any) else {
        panic!("it is being made");
    };
    let mut permit = permit;
    permit.renewable();
    assert!(poll_once(permit.begin()).is_ready());
    permit.complete(fill(1, vec![ROW], u64::MAX));
    assert!(matches!(
        poll_once(waiting),
        Poll::Ready(FlightEnd::Value(_))
    ));
    change(&store, 1, ROW);
    assert_eq!(store.stats().made_unused, 0);
}

#[test]
fn what_was_hot_long_ago_is_not_hot() {
    let store = watched(8);
    keep(&store, b"then", ROW, 100);
    (0..3).for_each(|_| store.fold_heat());
    keep(&store, b"now", ROW, 5);
    change(&store, 1, ROW);
    assert_eq!(offered(&store), [b"now"]);
}

#[test]
fn the_attendant_is_woken_once_until_nothing_is_left() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let told = || count.0.load(Ordering::Relaxed);
    let store = watched(8);
    store.set_attendant(Waker::from(count.clone()));
    keep(&store, b"hot", ROW, 5);
    keep(&store, b"wide", TABLE, 5);
    change(&store, 1, Tag::narrow(99));
    assert_eq!(told(), 0);
    change(&store, 2, ROW);
    change(&store, 3, TABLE);
    assert_eq!(told(), 1);
    assert!(store.has_work_ahead() && store.sweep(Boottime::now()));
    assert_eq!(offered(&store).len(), 2);
    assert!(!store.has_work_ahead());
    store.new_epoch("the feed was lost");
    assert_eq!(told(), 2);
}
