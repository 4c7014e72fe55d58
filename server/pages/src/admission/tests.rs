//! Admission against a clock of the test.

use std::{
    cell::Cell,
    task::{Context, Poll, Waker},
};

use super::*;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1_000_000_000_000) };
}

fn now() -> Boottime {
    Boottime::from_nanos(NOW.get())
}

fn pass(time: Duration) {
    NOW.set(NOW.get() + time.as_nanos() as u64);
}

const MILLISECOND: Duration = Duration::from_millis(1);

fn admission(slots: usize) -> Arc<Admission> {
    let capacity = Capacity {
        readers: slots,
        writers: 1,
        workers: 0,
    };
    Admission::with_clock(capacity, Duration::from_secs(1), now)
}

fn arrival(priority: Priority) -> Arrival {
    Arrival {
        priority,
        client: ClientNetwork::V4(1),
        is_exempt: true,
        at: now(),
        cost: MILLISECOND,
    }
}

type Waits = Pin<Box<dyn Future<Output = Result<Turn, Refused>>>>;

/// A fill that asks for its turn.
fn asks(admission: &Arc<Admission>, key: &'static str, arrival: Arrival) -> Waits {
    let admission = admission.clone();
    let mut waits: Waits =
        Box::pin(async move { admission.turn(Some(key.as_bytes()), arrival).await });
    assert!(poll(&mut waits).is_none(), "{key} need not wait");
    waits
}

fn poll(waits: &mut Waits) -> Option<Result<Turn, Refused>> {
    match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

/// The turn of the one slot, taken.
fn busy(admission: &Arc<Admission>) -> Turn {
    let mut waits: Waits = {
        let (admission, arrival) = (admission.clone(), arrival(Priority::Document));
        Box::pin(async move { admission.turn(None, arrival).await })
    };
    poll(&mut waits).expect("a free slot").expect("a turn")
}

/// Ends turns until nothing waits; the names of those that came, in order.
fn order(turn: Turn, mut waiting: Vec<(&'static str, Waits)>) -> Vec<&'static str> {
    let mut came = Vec::new();
    let mut turn = Some(turn);
    while turn.take().is_some() {
        waiting.retain_mut(|(name, waits)| match poll(waits) {
            Some(Ok(next)) => {
                came.push(*name);
                assert!(turn.replace(next).is_none(), "two at once");
                false
            }
            Some(Err(_)) => false,
            None => true,
        });
    }
    came
}

#[test]
fn priority_comes_before_waiters_and_waiters_before_age() {
    let admission = admission(1);
    let turn = busy(&admission);
    let document = arrival(Priority::Document);
    let costly = Arrival {
        cost: 50 * MILLISECOND,
        ..document
    };
    let waiting = vec![
        ("bot", asks(&admission, "bot", arrival(Priority::Bot))),
        ("costly", asks(&admission, "costly", costly)),
        ("first", asks(&admission, "first", document)),
        ("second", asks(&admission, "second", document)),
        ("crowded", asks(&admission, "crowded", document)),
        (
            "raised",
            asks(&admission, "raised", arrival(Priority::Prefetch)),
        ),
        (
            "image",
            asks(&admission, "image", arrival(Priority::Resource)),
        ),
    ];
    (0..500).for_each(|_| admission.joined(b"crowded", &document));
    admission.joined(b"raised", &document);
    assert_eq!(
        order(turn, waiting),
        [
            "crowded", "raised", "first", "second", "costly", "image", "bot"
        ]
    );
}

#[test]
fn the_newest_comes_first_while_the_queue_stands() {
    let admission = admission(1);
    let document = || arrival(Priority::Document);
    // A fill takes 200 ms.
    let turn = busy(&admission);
    pass(2 * STANDING);
    drop(turn);
    let turn = busy(&admission);
    let mut waiting = vec![("a", asks(&admission, "a", document()))];
    pass(STANDING + MILLISECOND);
    waiting.push(("b", asks(&admission, "b", document())));
    waiting.push(("c", asks(&admission, "c", document())));
    assert_eq!(order(turn, waiting), ["c", "b", "a"]);
}

#[test]
fn what_has_waited_too_long_is_refused_and_a_join_lends_it_time() {
    let admission = admission(1);
    let turn = busy(&admission);
    let mut old = asks(&admission, "old", arrival(Priority::Document));
    let joined = asks(&admission, "joined", arrival(Priority::Document));
    pass(600 * MILLISECOND);
    admission.joined(b"joined", &arrival(Priority::Document));
    pass(600 * MILLISECOND);
    admission.look(now());
    assert!(matches!(poll(&mut old), Some(Err(_))));
    assert_eq!(order(turn, vec![("joined", joined)]), ["joined"]);
    assert_eq!(admission.stats().expired, 1);
}

#[test]
fn who_has_left_a_flight_no_longer_counts_for_it() {
    let admission = admission(1);
    let turn = busy(&admission);
    let document = arrival(Priority::Document);
    let waiting = vec![
        ("left", asks(&admission, "left", document)),
        ("few", asks(&admission, "few", document)),
    ];
    (0..500).for_each(|_| admission.joined(b"left", &document));
    (0..50).for_each(|_| admission.joined(b"few", &document));
    (0..500).for_each(|_| admission.left(b"left"));
    assert_eq!(order(turn, waiting), ["few", "left"]);
}

#[test]
fn a_slot_is_taken_as_long_as_work_goes_on_whose_request_has_gone() {
    let admission = admission(1);
    let turn = busy(&admission);
    let read = turn.held();
    drop(turn);
    let mut next = asks(&admission, "next", arrival(Priority::Document));
    drop(read);
    assert!(poll(&mut next).is_some_and(|turn| turn.is_ok()));
}

#[test]
fn those_who_are_refused_together_return_apart() {
    let refused = Refused { most: 4 };
    let mut seconds: Vec<u32> = (0..400).map(|_| refused.retry_after()).collect();
    seconds.sort_unstable();
    seconds.dedup();
    assert_eq!(seconds, [1, 2, 3, 4]);
}

#[test]
fn who_has_gone_takes_no_turn() {
    let admission = admission(1);
    let turn = busy(&admission);
    let gone = asks(&admission, "gone", arrival(Priority::Document));
    let granted = asks(&admission, "granted", arrival(Priority::Document));
    drop(gone);
    assert_eq!(admission.stats().waiting, 1);
    drop(turn);
    // The turn has been sent, and is not taken.
    drop(granted);
    let stats = admission.stats();
    assert_eq!((stats.running, stats.waiting), (0, 0));
    drop(busy(&admission));
}

#[test]
fn strangers_take_a_quarter_while_others_ask_and_all_when_nobody_does() {
    let admission = admission(8);
    let turns = |count: usize| -> Vec<Waits> {
        let mut waits: Vec<Waits> = (0..count)
            .map(|_| {
                let (admission, arrival) = (admission.clone(), arrival(Priority::Stranger));
                Box::pin(async move { admission.turn(None, arrival).await }) as Waits
            })
            .collect();
        let _held: Vec<_> = waits.iter_mut().map(poll).collect();
        std::mem::forget(_held);
        waits
    };
    let others: Vec<Turn> = (0..8).map(|_| busy(&admission)).collect();
    let waits_too = asks(&admission, "document", arrival(Priority::Document));
    drop((others, waits_too));
    let waits = turns(8);
    assert_eq!(admission.stats().running, 2);
    pass(LATELY + MILLISECOND);
    admission.look(now());
    assert_eq!(admission.stats().running, 8);
    drop(waits);
}

#[test]
fn a_client_with_many_fills_goes_last() {
    let admission = admission(1);
    let of = |client: u32| Arrival {
        client: ClientNetwork::V4(client),
        is_exempt: false,
        ..arrival(Priority::Document)
    };
    let waits: Vec<Waits> = (0..CLIENT_FILLS)
        .map(|_| {
            let (admission, arrival) = (admission.clone(), of(7));
            let mut waits: Waits = Box::pin(async move { admission.turn(None, arrival).await });
            std::mem::forget(poll(&mut waits));
            waits
        })
        .collect();
    let priority = |client: u32| {
        let mut arrival = of(client);
        admission.arrive(&mut arrival).map(|()| arrival.priority)
    };
    assert_eq!(priority(7), Ok(Priority::Bot));
    assert_eq!(priority(8), Ok(Priority::Document));
    drop(waits);
    // The one that runs still counts.
    assert_eq!(priority(7), Ok(Priority::Document));
}

#[test]
fn writes_that_hang_are_refused_and_others_not() {
    let admission = admission(1);
    let writing = admission.write(now()).unwrap();
    pass(Duration::from_secs(4));
    let second = admission.write(now()).unwrap();
    pass(Duration::from_secs(2));
    assert!(admission.write(now()).is_err());
    drop((writing, second));
    assert!(admission.write(now()).is_ok());
}

/// Counts of a simulated load.
#[derive(Debug, Default)]
struct LoadOutcome {
    offered: u32,
    /// Answered within a deadline.
    good: u32,
    late: u32,
    refused: u32,
}

/// Loads a server with two slots that makes a page in a millisecond: with `load` times the requests
/// that it can answer, for `time`, from `clients` addresses.
fn simulate(admission: &Arc<Admission>, load: u32, time: Duration, clients: u32) -> LoadOutcome {
    let mut outcome = LoadOutcome::default();
    let mut waiting: Vec<(Boottime, Waits)> = Vec::new();
    let mut running: Vec<(Boottime, Boottime, Turn)> = Vec::new();
    let end = now().plus(time);
    let mut chance = 0x9E37_79B9_u64;
    while now() < end {
        for _ in 0..2 * load {
            outcome.offered += 1;
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mut arrival = arrival(Priority::Document);
            arrival.client = ClientNetwork::V4((chance >> 33) as u32 % clients);
            if admission.arrive(&mut arrival).is_err() {
                outcome.refused += 1;
                continue;
            }
            let admission = admission.clone();
            let waits: Waits = Box::pin(async move { admission.turn(None, arrival).await });
            waiting.push((now(), waits));
        }
        waiting.retain_mut(|(at, waits)| match poll(waits) {
            Some(Ok(turn)) => {
                running.push((*at, now().plus(MILLISECOND), turn));
                false
            }
            Some(Err(_)) => {
                outcome.refused += 1;
                false
            }
            None => true,
        });
        pass(MILLISECOND);
        running.retain(|(at, done, _)| {
            if *done > now() {
                return true;
            }
            match now().since(*at) <= Duration::from_secs(1) {
                true => outcome.good += 1,
                false => outcome.late += 1,
            }
            false
        });
    }
    outcome
}

#[test]
fn under_three_times_the_capacity_goodput_stays_and_the_end_of_the_surge_is_soon_over() {
    for clients in [1, 20, 100_000] {
        let admission = admission(2);
        let calm = simulate(&admission, 1, Duration::from_secs(2), clients);
        assert_eq!(calm.refused, 0, "{clients} clients, calm: {calm:?}");
        let surge = simulate(&admission, 3, Duration::from_secs(20), clients);
        let capacity = surge.offered / 3;
        assert!(
            surge.good * 100 >= capacity * 95,
            "{clients} clients, surge: {surge:?}"
        );
        pass(MILLISECOND);
        let _settling = simulate(&admission, 1, Duration::from_secs(1), clients);
        let after = simulate(&admission, 1, Duration::from_secs(2), clients);
        assert!(
            after.refused * 100 <= after.offered,
            "{clients} clients, after: {after:?}"
        );
    }
}

#[test]
fn clients_that_ask_again_at_once_are_never_refused() {
    let admission = admission(2);
    let mut running: Vec<(Boottime, Turn)> = Vec::new();
    let mut waiting: Vec<Waits> = Vec::new();
    for _ in 0..5000 {
        // 64 clients, each with one request: a wait of 32 ms.
        while waiting.len() + running.len() < 64 {
            let mut arrival = arrival(Priority::Document);
            admission.arrive(&mut arrival).expect("a short queue");
            let admission = admission.clone();
            waiting.push(Box::pin(async move { admission.turn(None, arrival).await }));
        }
        waiting.retain_mut(|waits| match poll(waits) {
            Some(turn) => {
                running.push((now().plus(MILLISECOND), turn.expect("a short wait")));
                false
            }
            None => true,
        });
        pass(MILLISECOND);
        running.retain(|(done, _)| *done > now());
    }
    assert!(admission.stats().finished >= 9900);
}
