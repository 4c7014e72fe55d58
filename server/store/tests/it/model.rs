//! The store against a plain model: every answer keeps the promise, and nothing is left at the end.

mod database;
mod world;

use proptest::{prelude::*, test_runner::Config as Runs};

use database::{Listing, Source, Ticking};
use world::World;

/// One step of the world. Numbers choose among what there is, modulo.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Wait(u8),
    /// A transaction begins that writes these cells.
    Begin(u8),
    /// One that runs is flushed.
    Flush(usize),
    /// One that was flushed becomes visible.
    Show(usize),
    /// The feed brings the next one.
    Bring,
    /// The feed says what is visible.
    Tell,
    /// A heartbeat returns that was sent this much before it could have been.
    Beat(u8),
    /// The feed loses what it has not brought and starts again.
    Lose,
    /// An epoch begins and nothing was lost.
    Renew,
    Get(usize),
    /// A request joins, with the need that it has or the stricter one.
    Join(usize, bool),
    /// A flight begins, reads, brings what it read to a further key, and lands.
    Depart(usize),
    Read(usize),
    Also(usize, usize),
    Land(usize, Landing),
    /// A flight without a request: for an offered key, or for any key.
    Ahead,
    Warm(usize),
    /// Each heat is halved.
    Fold,
    /// The steps from the request to the end, if no flight runs for the key.
    Fill(usize),
    /// A page is made of stored objects and stored.
    Combine(usize),
    /// A waiting request looks, or gives up.
    Poll(usize),
    GiveUp(usize),
    Grow(usize, u16),
}

#[derive(Clone, Copy, Debug)]
enum Landing {
    Complete,
    /// With an age after which it is over.
    MaxAge(u8),
    Negative,
    Heavy,
    Give,
    Fail,
    Alone,
    Drop,
}

fn landing() -> impl Strategy<Value = Landing> {
    prop_oneof![
        12 => Just(Landing::Complete),
        2 => any::<u8>().prop_map(Landing::MaxAge),
        2 => Just(Landing::Negative),
        1 => Just(Landing::Heavy),
        1 => Just(Landing::Give),
        1 => Just(Landing::Fail),
        1 => Just(Landing::Alone),
        1 => Just(Landing::Drop),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..64usize;
    // Most requests are for few keys.
    let key = prop_oneof![4 => 0..6usize, 1 => 0..64usize].boxed();
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Wait),
        4 => (1..16u8).prop_map(Step::Begin),
        5 => n.clone().prop_map(Step::Flush),
        4 => n.clone().prop_map(Step::Show),
        4 => Just(Step::Bring),
        3 => Just(Step::Tell),
        5 => (0..50u8).prop_map(Step::Beat),
        1 => Just(Step::Lose),
        1 => Just(Step::Renew),
        10 => key.clone().prop_map(Step::Get),
        10 => (key.clone(), prop::bool::weighted(0.2)).prop_map(|(key, strict)| Step::Join(key, strict)),
        8 => n.clone().prop_map(Step::Depart),
        8 => n.clone().prop_map(Step::Read),
        2 => (n.clone(), key.clone()).prop_map(|(flight, key)| Step::Also(flight, key)),
        9 => (n.clone(), landing()).prop_map(|(flight, landing)| Step::Land(flight, landing)),
        6 => Just(Step::Ahead),
        2 => key.clone().prop_map(Step::Warm),
        1 => Just(Step::Fold),
        10 => key.clone().prop_map(Step::Fill),
        8 => n.clone().prop_map(Step::Combine),
        6 => n.clone().prop_map(Step::Poll),
        1 => n.prop_map(Step::GiveUp),
        1 => (key, 0..2000u16).prop_map(|(key, bytes)| Step::Grow(key, bytes)),
    ]
}

fn runs() -> Runs {
    let cases = std::env::var("MILLPOND_PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    Runs {
        cases: cases.unwrap_or(256),
        failure_persistence: None,
        ..Runs::default()
    }
}

fn run<S: Source>(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::<S>::new();
    for step in steps {
        world.take(step)?;
        world.check_bounds()?;
    }
    world.end()
}

proptest! {
    #![proptest_config(runs())]

    #[test]
    fn a_feed_of_ticks_keeps_the_promise(steps in prop::collection::vec(step(), 1..300)) {
        run::<Ticking>(&steps)?;
    }

    #[test]
    fn a_feed_of_transaction_ids_keeps_the_promise(steps in prop::collection::vec(step(), 1..300)) {
        run::<Listing>(&steps)?;
    }
}

/// A page that is requested repeatedly and changes each time: from the second day on it is made
/// ahead.
#[test]
fn an_ordinary_day_is_full_of_what_is_made_ahead() {
    let mut world = World::<Listing>::new();
    for _ in 0..100 {
        let change = [
            Step::Begin(1),
            Step::Flush(0),
            Step::Bring,
            Step::Show(0),
            Step::Tell,
            Step::Beat(0),
            Step::Ahead,
            Step::Depart(0),
            Step::Read(0),
            Step::Land(0, Landing::Complete),
            Step::Fill(0),
        ];
        let asked = std::iter::repeat_n(Step::Get(0), 5);
        for step in change.into_iter().chain(asked) {
            world.take(&step).expect("the promise");
        }
    }
    assert_eq!((world.hits, world.offered), (500, 99));
}

/// The model is worthless if the store never gives a hit, so the steps of an ordinary day are
/// repeated many times.
#[test]
fn an_ordinary_day_is_full_of_hits() {
    let mut world = World::<Listing>::new();
    for round in 0..100 {
        let steps = [
            Step::Begin(1 << (round % 4)),
            Step::Flush(0),
            Step::Bring,
            Step::Show(0),
            Step::Tell,
            Step::Beat(0),
            Step::Join(4, false),
            Step::Depart(0),
            Step::Read(0),
            Step::Land(0, Landing::Complete),
            Step::Join(2, false),
            Step::Depart(0),
            Step::Join(2, false),
            Step::Read(0),
            Step::Land(0, Landing::Complete),
            Step::Poll(0),
            Step::Get(2),
            Step::Beat(0),
            Step::Combine(1),
        ];
        for step in &steps {
            world.take(step).expect("the promise");
        }
    }
    assert_eq!((world.hits, world.landed, world.combined), (100, 100, 100));
}
