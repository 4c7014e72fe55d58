//! Single flight on real threads.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use millpond_store::{Config, FillOutcome, FlightEnd, Joined, Need, Tag};

use crate::support::{NOW, Stone, TestStore, block_on, fill, lead, store, weighing};

/// All threads ask for one key at once; the leader ends only when every other thread waits. Returns
/// the number of fills.
fn stampede(threads: usize) -> usize {
    let store = store(Config {
        waiters: threads,
        ..Config::default()
    });
    let (fills, barrier) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Barrier::new(threads)),
    );
    let ask = move |store: TestStore, fills: Arc<AtomicUsize>, barrier: Arc<Barrier>| {
        barrier.wait();
        match store.join(b"key", Need::Any) {
            Joined::Lead(mut permit) => {
                fills.fetch_add(1, Ordering::Relaxed);
                block_on(permit.begin());
                while store.stats().waiting < threads - 1 {
                    thread::yield_now();
                }
                assert_eq!(
                    permit.complete(fill(7, vec![Tag::narrow(2)], 0)),
                    FillOutcome::Stored
                );
            }
            Joined::Wait(waiting) => {
                let FlightEnd::Value(value) = block_on(waiting) else {
                    panic!("a stored value is for all")
                };
                assert_eq!(value.number, 7);
            }
            Joined::Refused => panic!("there is room for all"),
        }
    };
    let all: Vec<_> = (0..threads)
        .map(|_| {
            let (store, fills, barrier) = (store.clone(), fills.clone(), barrier.clone());
            thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || ask(store, fills, barrier))
                .expect("a thread")
        })
        .collect();
    for thread in all {
        thread.join().expect("no thread panics");
    }
    let stats = store.stats();
    assert_eq!(
        (stats.flights, stats.waiting, stats.waited),
        (0, 0, threads as u64 - 1)
    );
    fills.load(Ordering::Relaxed)
}

#[test]
fn two_hundred_at_once_are_one_fill() {
    assert_eq!(stampede(200), 1);
}

#[test]
fn a_thousand_at_once_are_one_fill() {
    assert_eq!(stampede(1000), 1);
}

/// The leader dies in the middle; one of the waiting threads takes over.
#[test]
fn a_leader_that_panics_frees_the_others() {
    const THREADS: usize = 50;
    let store = store(Config::default());
    let Joined::Lead(mut doomed) = store.join(b"key", Need::Any) else {
        panic!("nobody else is there")
    };
    block_on(doomed.begin());
    let fills = Arc::new(AtomicUsize::new(0));
    let others: Vec<_> = (0..THREADS)
        .map(|_| {
            let (store, fills) = (store.clone(), fills.clone());
            thread::spawn(move || {
                loop {
                    match store.join(b"key", Need::Any) {
                        Joined::Lead(mut permit) => {
                            fills.fetch_add(1, Ordering::Relaxed);
                            block_on(permit.begin());
                            permit.complete(fill(1, Vec::new(), 0));
                            return;
                        }
                        Joined::Wait(waiting) => match block_on(waiting) {
                            FlightEnd::Value(_) => return,
                            FlightEnd::Retry => {}
                            FlightEnd::Private => panic!("nobody said so"),
                        },
                        Joined::Refused => panic!("there is room for all"),
                    }
                }
            })
        })
        .collect();
    while store.stats().waiting < THREADS {
        thread::yield_now();
    }
    let died = thread::spawn(move || {
        let _permit = doomed;
        std::panic::resume_unwind(Box::new("the fill panics"));
    });
    assert!(died.join().is_err());
    for thread in others {
        thread.join().expect("no other thread panics");
    }
    assert!(fills.load(Ordering::Relaxed) >= 1);
    assert_eq!((store.stats().flights, store.stats().waiting), (0, 0));
}

/// A store of a megabyte that is full of values, each asked for often.
fn full_store() -> TestStore {
    let store = store(Config {
        memory: 1 << 20,
        negative_percent: 0,
        ..Config::default()
    });
    for number in 0..8_u64 {
        let stone = Stone {
            number,
            weight: 120 << 10,
        };
        let key = number.to_le_bytes();
        lead(&store, &key, Need::Any).complete(weighing(stone, Vec::new(), 0));
        (0..20).for_each(|_| assert!(store.get(&key, NOW).is_ok()));
    }
    store
}

/// Fills `key` for a stranger with a value of 100 KiB.
fn fill_unproven(store: &TestStore, key: &[u8]) -> FillOutcome {
    let mut permit = lead(store, key, Need::Any);
    permit.unproven();
    let stone = Stone {
        number: 100,
        weight: 100 << 10,
    };
    permit.complete(weighing(stone, Vec::new(), 0))
}

#[test]
fn a_value_that_only_a_stranger_asked_for_takes_a_place_at_its_second_sight() {
    let store = full_store();
    let entries = store.stats().entries;
    for number in 0..100_u32 {
        let key = number.to_le_bytes();
        assert_eq!(fill_unproven(&store, &key), FillOutcome::Unproven);
    }
    let stats = store.stats();
    assert_eq!((stats.entries, stats.unproven), (entries, 100));
    assert_eq!(
        fill_unproven(&store, &99_u32.to_le_bytes()),
        FillOutcome::Stored
    );
    // Where there is room, it is as any other.
    let roomy = crate::support::store(Config::default());
    assert_eq!(fill_unproven(&roomy, b"key"), FillOutcome::Stored);
}

#[test]
fn all_who_wait_for_an_unproven_value_get_it_and_prove_it() {
    let store = full_store();
    let mut permit = lead(&store, b"key", Need::Any);
    permit.unproven();
    let Joined::Wait(waiting) = store.join(b"key", Need::Any) else {
        panic!("the flight is there")
    };
    let stone = Stone {
        number: 7,
        weight: 100 << 10,
    };
    let outcome = permit.complete(weighing(stone, Vec::new(), 0));
    assert_eq!(outcome, FillOutcome::Stored);
    let FlightEnd::Value(value) = block_on(waiting) else {
        panic!("a stored value is for all")
    };
    assert_eq!(value.number, 7);
}
