//! The store's races under a model checker: shuttle runs each test under many schedules, at random
//! and by PCT.
//!
//! Built only with `--cfg shuttle`, which replaces the primitives of [`sync`](crate::sync). `cargo
//! xtask soak` runs more schedules.

#![cfg(shuttle)]

mod ahead;

use std::time::Duration;

use shuttle::{future::block_on, thread};

use crate::{
    Change, Class, Config, Feed, Fill, FillOutcome, FlightEnd, Hit, Joined, Need, Permit, Sink,
    Store, Tag, Value,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use base_clock::Boottime;

/// Commits have numbers; a snapshot sees all up to one of them.
struct Numbered;

impl Feed for Numbered {
    type Mark = u64;
    type Snapshot = u64;
    type Position = u64;

    fn sees(snapshot: &u64, mark: u64) -> bool {
        mark <= *snapshot
    }

    fn snapshot_at(position: u64) -> u64 {
        position
    }
}

struct Number(u64);

impl Value for Number {
    fn weight(&self) -> usize {
        8
    }
}

type TestStore = Arc<Store<Number, Numbered>>;
type TestHit = Option<Hit<Number, Numbered>>;

const NOW: Boottime = Boottime::from_nanos(1);
const KEY: &[u8] = b"key";
const TAGS: [Tag; 2] = [Tag::narrow(2), Tag::broad(4)];

fn store() -> TestStore {
    let store = Store::new(Config {
        max_staleness: Duration::from_secs(3600),
        ahead: 4,
        ..Config::default()
    });
    store.heartbeat(NOW, 0);
    store
}

fn fill(number: u64, tag: Tag) -> Fill<Number, Numbered> {
    Fill {
        value: Arc::new(Number(number)),
        tags: vec![tag],
        snapshot: number,
        position: number,
        expires: None,
        class: Class::Normal,
        cost: Duration::from_millis(1),
    }
}

/// Runs `test` under random schedules and under schedules with few thread switches.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let iterations = std::env::var("MILLPOND_SHUTTLE_ITERATIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2000);
    let test = Arc::new(test);
    let again = test.clone();
    shuttle::check_random(move || test(), iterations);
    shuttle::check_pct(move || again(), iterations, 3);
}

/// A database with one row, whose value is the number of the last visible commit.
#[derive(Default)]
struct SimulatedRow {
    visible: AtomicU64,
    /// The last commit that was acknowledged to its writer.
    acknowledged: AtomicU64,
}

/// How a commit reaches readers and the feed.
#[derive(Clone, Copy)]
enum Order {
    VisibleFirst,
    /// The feed runs ahead of visibility.
    AppliedFirst,
}

fn write(store: &TestStore, row: &SimulatedRow, commits: u64, order: Order) {
    for commit in 1..=commits {
        let apply = || {
            store.apply(Change {
                mark: commit,
                tags: TAGS.to_vec(),
            })
        };
        let show = || row.visible.store(commit, Ordering::SeqCst);
        match order {
            Order::VisibleFirst => {
                show();
                apply();
            }
            Order::AppliedFirst => {
                apply();
                show();
            }
        }
        row.acknowledged.store(commit, Ordering::SeqCst);
        store.visible(&commit);
        store.heartbeat(NOW, commit);
    }
}

/// Makes the value as the leader; the request came before the read.
fn make(mut permit: Permit<Number, Numbered>, row: &SimulatedRow, tag: Tag) -> u64 {
    block_on(permit.begin());
    // No yield here: PCT would run all other threads first, and the next line is a switching point
    // anyway.
    let number = row.visible.load(Ordering::SeqCst);
    permit.complete(fill(number, tag));
    number
}

/// Asks once and returns the answer, as a request does.
fn ask(store: &TestStore, row: &SimulatedRow, tag: Tag, hit: &mut TestHit) -> u64 {
    // A repeated request.
    if let Some(hit) = hit.as_ref().filter(|hit| hit.is_valid(NOW)) {
        return hit.0;
    }
    loop {
        if let Ok(found) = store.get(KEY, NOW) {
            return hit.insert(found).0;
        }
        match store.join(KEY, Need::Any) {
            Joined::Lead(permit) => return make(permit, row, tag),
            Joined::Wait(waiting) => match block_on(waiting) {
                FlightEnd::Value(value) => return value.0,
                FlightEnd::Retry => {}
                FlightEnd::Private => panic!("nobody said so"),
            },
            Joined::Refused => panic!("there is room for all"),
        }
    }
}

/// Asks a few times; each answer has every commit that was acknowledged before.
fn read(store: &TestStore, row: &SimulatedRow, tag: Tag) {
    let mut hit = None;
    for _ in 0..3 {
        let owed = row.acknowledged.load(Ordering::SeqCst);
        let given = ask(store, row, tag, &mut hit);
        assert!(given >= owed, "given {given}, written {owed}");
    }
}

/// Readers that fill and wait find every commit that was acknowledged before they asked.
fn check_own_writes(order: Order, tag: Tag, end_epochs: bool) {
    check_beside(read, order, tag, end_epochs);
}

/// Checks one reader while `other` uses the store too.
fn check_beside(
    other: fn(&TestStore, &SimulatedRow, Tag),
    order: Order,
    tag: Tag,
    end_epochs: bool,
) {
    explore(move || {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let mut threads = Vec::new();
        for act in [other, read] {
            let (store, row) = (store.clone(), row.clone());
            threads.push(thread::spawn(move || act(&store, &row, tag)));
        }
        if end_epochs {
            let store = store.clone();
            threads.push(thread::spawn(move || store.new_epoch("test")));
        }
        write(&store, &row, 2, order);
        for thread in threads {
            thread.join().expect("nobody fails");
        }
        // The state at rest is right for every request.
        assert_eq!(ask(&store, &row, tag, &mut None), 2);
        let stats = store.stats();
        assert_eq!((stats.flights, stats.waiting, stats.logged), (0, 0, 0));
        assert!(stats.made_unused <= stats.made_ahead);
    });
}

#[test]
fn own_writes_are_read() {
    check_own_writes(Order::VisibleFirst, TAGS[0], false);
}

#[test]
fn own_writes_are_read_by_generation() {
    check_own_writes(Order::VisibleFirst, TAGS[1], false);
}

#[test]
fn own_writes_are_read_when_the_feed_runs_ahead() {
    check_own_writes(Order::AppliedFirst, TAGS[0], false);
}

#[test]
fn own_writes_are_read_over_the_end_of_an_epoch() {
    check_own_writes(Order::AppliedFirst, TAGS[1], true);
}

/// Storing the value and removing the flight from the board are one step. Otherwise a commit could
/// be applied and acknowledged between the two, and a later request would join the flight that had
/// read before the commit.
#[test]
fn a_request_after_a_change_does_not_get_a_read_from_before_it() {
    explore(|| {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let filler = {
            let (store, row) = (store.clone(), row.clone());
            thread::spawn(move || ask(&store, &row, TAGS[1], &mut None))
        };
        store.apply(Change {
            mark: 1,
            tags: TAGS.to_vec(),
        });
        row.visible.store(1, Ordering::SeqCst);
        assert_eq!(ask(&store, &row, TAGS[1], &mut None), 1);
        filler.join().expect("the filler does not fail");
    });
}

#[test]
fn concurrent_requests_are_one_fill() {
    explore(|| {
        let (store, row, fills) = (
            store(),
            Arc::new(SimulatedRow::default()),
            Arc::new(AtomicUsize::new(0)),
        );
        let all: Vec<_> = (0..4)
            .map(|_| {
                let (store, row, fills) = (store.clone(), row.clone(), fills.clone());
                thread::spawn(move || match store.join(KEY, Need::Any) {
                    Joined::Lead(permit) => {
                        fills.fetch_add(1, Ordering::SeqCst);
                        make(permit, &row, TAGS[0]);
                    }
                    Joined::Wait(waiting) => {
                        assert!(matches!(block_on(waiting), FlightEnd::Value(_)))
                    }
                    Joined::Refused => panic!("there is room for all"),
                })
            })
            .collect();
        for thread in all {
            thread.join().expect("nobody fails");
        }
        // Requests after the end of a fill made another.
        let waited = store.stats().waited as usize;
        assert_eq!(fills.load(Ordering::SeqCst) + waited, 4);
        assert!(store.get(KEY, NOW).is_ok());
        assert_eq!((store.stats().flights, store.stats().waiting), (0, 0));
    });
}

/// A fill is cancelled before it begins, while it waits for its turn, or after it has read; no
/// request waits for ever.
#[test]
fn a_dropped_permit_frees_waiting_requests() {
    explore(|| {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let all: Vec<_> = (0..3)
            .map(|n| {
                let (store, row) = (store.clone(), row.clone());
                thread::spawn(move || {
                    let need = if n == 2 { Need::Unbegun } else { Need::Any };
                    match store.join(KEY, need) {
                        Joined::Lead(mut permit) => {
                            if n > 0 {
                                block_on(permit.begin());
                            }
                            drop(permit);
                        }
                        Joined::Wait(waiting) => {
                            if matches!(block_on(waiting), FlightEnd::Retry) {
                                ask(&store, &row, TAGS[0], &mut None);
                            }
                        }
                        Joined::Refused => panic!("there is room for all"),
                    }
                })
            })
            .collect();
        for thread in all {
            thread.join().expect("nobody fails");
        }
        assert_eq!((store.stats().flights, store.stats().waiting), (0, 0));
    });
}

/// A fill that unwinds drops its permit. Under the checker a panic would end the test, so the test
/// unwinds by hand.
#[test]
fn a_fill_that_panics_frees_waiting_requests() {
    explore(|| {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let (dying, others) = (store.clone(), (store.clone(), row.clone()));
        let doomed = thread::spawn(move || {
            if let Joined::Lead(mut permit) = dying.join(KEY, Need::Any) {
                let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                    block_on(permit.begin());
                    std::panic::resume_unwind(Box::new("the fill dies"));
                }));
                assert!(unwound.is_err());
            }
        });
        let other = thread::spawn(move || ask(&others.0, &others.1, TAGS[0], &mut None));
        ask(&store, &row, TAGS[0], &mut None);
        doomed.join().expect("it caught its own end");
        other.join().expect("it was freed");
        assert_eq!((store.stats().flights, store.stats().waiting), (0, 0));
    });
}

/// An epoch that ends during a fill ends the fill: the fill may lack a change that the feed has
/// missed.
#[test]
fn a_fill_does_not_outlive_its_epoch() {
    explore(|| {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let feed = {
            let (store, row) = (store.clone(), row.clone());
            thread::spawn(move || {
                // No feed brings this commit.
                row.visible.store(1, Ordering::SeqCst);
                store.new_epoch("the feed was lost");
                row.acknowledged.store(1, Ordering::SeqCst);
            })
        };
        let mut hit = None;
        for _ in 0..2 {
            let owed = row.acknowledged.load(Ordering::SeqCst);
            assert!(ask(&store, &row, TAGS[0], &mut hit) >= owed);
        }
        feed.join().expect("the feed is well");
        assert_eq!(ask(&store, &row, TAGS[0], &mut None), 1);
    });
}

/// Two objects that change together are never combined from two states.
#[test]
fn what_is_combined_is_one_state() {
    explore(|| {
        let (store, row) = (store(), Arc::new(SimulatedRow::default()));
        let last = Arc::new(Mutex::new(0));
        let fillers: Vec<_> = [b"a", b"b"]
            .into_iter()
            .map(|key| {
                let (store, row, last) = (store.clone(), row.clone(), last.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let Joined::Lead(mut permit) = store.join(key, Need::Any) else {
                            panic!("each has its own")
                        };
                        block_on(permit.begin());
                        let number = row.visible.load(Ordering::SeqCst);
                        if permit.complete(fill(number, TAGS[1])) == FillOutcome::Stored {
                            *last.lock() += 1;
                        }
                    }
                })
            })
            .collect();
        let feed = {
            let (store, row) = (store.clone(), row.clone());
            thread::spawn(move || write(&store, &row, 2, Order::VisibleFirst))
        };
        for _ in 0..3 {
            if let Some(combined) = store.combine(&[b"a", b"b"], NOW) {
                assert_eq!(combined.values[0].0, combined.values[1].0);
                assert!(combined.position >= combined.values[0].0);
            }
            thread::yield_now();
        }
        for thread in fillers {
            thread.join().expect("no filler fails");
        }
        feed.join().expect("the feed is well");
        assert_eq!(store.stats().stored, *last.lock());
    });
}
