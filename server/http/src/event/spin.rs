//! When to poll for events for a while before sleeping.
//!
//! To sleep and to be woken costs a thread CPU, and costs each side the time in which the other
//! side's core wakes up. A thread that polls for as long as sleeping would cost spends at most
//! twice the minimum (Karlin, Li, Manasse and Owicki, "Empirical studies of competitive spinning
//! for a shared-memory multiprocessor", SOSP 1991). Besides, an account is kept: the time of
//! polling is paid from what polling has earned, and from an allowance. When both are used up, the
//! thread sleeps through a number of waits, which doubles each time. So a client can make the
//! worker waste at most the budget that earlier spinning has earned, and the allowance of each
//! rest.

use std::mem;
use std::thread;
use std::time::Duration;

use base_clock::Boottime;

use super::Token;

/// For how long the thread polls.
const WINDOW: Duration = Duration::from_micros(50);
/// Gain of a wait without sleep: the CPU of sleeping and being woken, 22 µs in a guest of two
/// cores, and a part for the time that the client saves.
const WORTH: Duration = Duration::from_micros(30);
/// The largest budget. Half of it is given at first and after each rest, enough for 200 waits
/// that find nothing: a conversation becomes quick only after some hundred responses, while the
/// client, and a hypervisor under it, learn to sleep less deeply.
const ALLOWANCE: Duration = Duration::from_millis(20);
/// Waits that are slept through when it is used up; doubled with each time that follows, and as it
/// was once all of it has been earned.
const FIRST_REST: u32 = 256;
/// The longest rest. With 200 unsuccessful waits between two rests, a wait costs half a
/// microsecond.
const LONGEST_REST: u32 = 16_384;
/// A yield takes at least this long if another thread ran, and less than half of that if not.
const TAKEN: Duration = Duration::from_micros(2);
/// The length of a sample, in waits.
const SAMPLE: u32 = 16;
/// If a yield let another thread run in this many waits of a sample, that thread needs the core (it
/// may be the client), and this thread sleeps. (Interrupts look the same, and are rarer.)
const OFTEN: u32 = 4;

/// Decides for one thread.
#[derive(Debug)]
pub(super) struct Spin {
    /// The rest of the allowance.
    left: Duration,
    /// Waits to sleep through before the next attempt.
    resting: u32,
    /// The length of the last rest.
    rest: u32,
    /// Waits of the sample, and those in which another thread ran.
    waits: u32,
    gave_way: u32,
}

impl Default for Spin {
    fn default() -> Self {
        Self {
            left: ALLOWANCE / 2,
            resting: 0,
            rest: 0,
            waits: 0,
            gave_way: 0,
        }
    }
}

/// How a wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpinResult {
    /// An event was there already; a sleeping thread would have found it as soon.
    AtOnce,
    /// An event arrived before the thread would have slept.
    Awaited,
    /// No event arrived, or the thread did not poll.
    Nothing,
}

impl Spin {
    /// SpinSimulation until there is something, for as long as that is worthwhile.
    pub(super) fn look(&mut self, is_there: impl FnMut() -> bool) -> SpinResult {
        self.look_by(Boottime::now, is_there, thread::yield_now)
    }

    fn look_by(
        &mut self,
        mut now: impl FnMut() -> Boottime,
        mut is_there: impl FnMut() -> bool,
        mut give_way: impl FnMut(),
    ) -> SpinResult {
        if self.resting > 0 {
            self.resting -= 1;
            return SpinResult::Nothing;
        }
        // This earns nothing: it saves no sleep, and shows nothing about other threads.
        if is_there() {
            return SpinResult::AtOnce;
        }
        let began = now();
        let (mut at, mut is_taken) = (began, false);
        loop {
            give_way();
            is_taken |= now().since(at) > TAKEN;
            let found = is_there();
            at = now();
            let passed = at.since(began);
            if found || passed > WINDOW {
                self.account(passed, found);
                if self.is_in_the_way(is_taken) || self.left.is_zero() {
                    self.begin_rest();
                }
                return if found {
                    SpinResult::Awaited
                } else {
                    SpinResult::Nothing
                };
            }
        }
    }

    /// Counts a wait; at the end of a sample, whether other threads need this core.
    fn is_in_the_way(&mut self, is_taken: bool) -> bool {
        self.waits += 1;
        self.gave_way += u32::from(is_taken);
        if self.waits < SAMPLE {
            return false;
        }
        let gave_way = mem::take(&mut self.gave_way);
        self.waits = 0;
        gave_way >= OFTEN
    }

    fn account(&mut self, passed: Duration, found: bool) {
        let worth = if found { WORTH } else { Duration::ZERO };
        self.left = (self.left + worth).saturating_sub(passed).min(ALLOWANCE);
        if self.left == ALLOWANCE {
            self.rest = 0;
        }
    }

    fn begin_rest(&mut self) {
        self.rest = (self.rest * 2).clamp(FIRST_REST, LONGEST_REST);
        self.resting = self.rest;
        self.left = ALLOWANCE / 2;
        (self.waits, self.gave_way) = (0, 0);
    }
}

/// The number of last responses whose clients are counted.
const REMEMBERED: usize = 8;
/// The largest number of clients that counts as few.
const FEW: usize = 4;

/// The clients that received the last responses.
#[derive(Debug)]
pub(crate) struct RecentClients {
    last: [Token; REMEMBERED],
    next: usize,
}

impl Default for RecentClients {
    fn default() -> Self {
        Self {
            last: [Token::reserved(0); REMEMBERED],
            next: 0,
        }
    }
}

impl RecentClients {
    /// Adds the client that receives a response.
    pub(crate) fn add(&mut self, token: Token) {
        self.last[self.next] = token;
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// True if the last responses went to few clients.
    pub(crate) fn are_few(&self) -> bool {
        let is_first = |at: &usize| !self.last[..*at].contains(&self.last[*at]);
        (0..REMEMBERED).filter(is_first).count() <= FEW
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// A clock that goes on with each look.
    struct SpinSimulation {
        spin: Spin,
        step: Duration,
        /// The time for which another thread runs during a yield.
        taken: Duration,
        /// Waits in which it was looked at all.
        awake: u32,
        /// The time that looking took where there was nothing at once, and what it was worth.
        took: Duration,
        worth: Duration,
    }

    impl SpinSimulation {
        fn new(step: Duration) -> Self {
            Self {
                spin: Spin::default(),
                step,
                taken: Duration::ZERO,
                awake: 0,
                took: Duration::ZERO,
                worth: Duration::ZERO,
            }
        }

        /// Waits for what comes after `delay`.
        fn wait(&mut self, delay: Duration) {
            let (began, step, taken) = (Boottime::from_nanos(1), self.step, self.taken);
            let (at, looks) = (Cell::new(began), Cell::new(0));
            let pass = |by| at.set(at.get().plus(by));
            let is_there = || {
                pass(step);
                looks.set(looks.get() + 1);
                at.get().since(began) > delay
            };
            let looked = self.spin.look_by(|| at.get(), is_there, || pass(taken));
            self.awake += u32::from(looks.get() > 0);
            if looks.get() > 1 {
                self.took += at.get().since(began) - step;
            }
            if looked == SpinResult::Awaited {
                self.worth += WORTH;
            }
        }

        fn waits(&mut self, count: u32, delay: Duration) -> u32 {
            let before = self.awake;
            (0..count).for_each(|_| self.wait(delay));
            self.awake - before
        }
    }

    const MICRO: Duration = Duration::from_micros(1);
    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_micros(45);
    const NEVER: Duration = Duration::from_secs(1);

    #[test]
    fn what_comes_soon_is_looked_for_each_time() {
        let mut looks = SpinSimulation::new(MICRO);
        assert_eq!(looks.waits(100_000, SOON), 100_000);
        // Also when it came late at first, or does now and then.
        let mut looks = SpinSimulation::new(MICRO);
        assert_eq!(looks.waits(150, NEVER), 150);
        for _ in 0..1000 {
            assert_eq!(looks.waits(1, LATE) + looks.waits(9, SOON), 10);
        }
    }

    #[test]
    fn what_does_not_is_looked_for_ever_more_rarely() {
        for delay in [LATE, NEVER] {
            let mut looks = SpinSimulation::new(MICRO);
            looks.waits(100_000, delay);
            let tries = looks.waits(100 * LONGEST_REST, delay);
            assert!(tries < 100 * LONGEST_REST / 20, "{tries} for {delay:?}");
            // And each time again once it comes soon, be it not at once.
            while looks.waits(1, NEVER) == 1 {}
            while looks.waits(1, NEVER) == 0 {}
            looks.waits(150, NEVER);
            assert_eq!(looks.waits(100_000, SOON), 100_000);
        }
    }

    #[test]
    fn what_is_there_at_once_pays_for_nothing() {
        let mut looks = SpinSimulation::new(MICRO);
        let mut in_vain = 0;
        for _ in 0..100_000 {
            looks.waits(3, Duration::ZERO);
            in_vain += looks.waits(1, NEVER);
        }
        assert!(in_vain < 100_000 / 10, "{in_vain}");
    }

    proptest! {
        /// For any times of arrival: spinning takes no more than the budget that it has earned, and
        /// the allowance for each rest.
        #[test]
        fn what_it_takes_is_bounded(phases in prop::collection::vec((1..3000_u32, 0..80_u64, 0..80_u64), 1..60)) {
            let mut looks = SpinSimulation::new(MICRO);
            let mut waits = 0;
            for (count, one, other) in phases {
                for at in 0..count {
                    looks.wait(Duration::from_micros(if at % 2 == 0 { one } else { other }));
                }
                waits += count;
                let rests = waits / FIRST_REST + 2;
                prop_assert!(looks.took <= looks.worth + ALLOWANCE * rests);
                let slept = waits - looks.awake;
                let lost = looks.took.saturating_sub(looks.worth + ALLOWANCE * 2);
                prop_assert!(lost <= (ALLOWANCE / FIRST_REST) * slept + ALLOWANCE, "{lost:?} for {slept} that slept");
            }
        }
    }

    #[test]
    fn who_is_in_the_way_leaves_the_core_to_others() {
        let mut looks = SpinSimulation::new(MICRO);
        looks.taken = 5 * MICRO;
        assert_eq!(looks.waits(SAMPLE + FIRST_REST, SOON), SAMPLE);
        // A rare interrupt is no other thread.
        let mut looks = SpinSimulation::new(MICRO);
        for _ in 0..1000 {
            looks.taken = 5 * MICRO;
            assert_eq!(looks.waits(1, SOON), 1);
            looks.taken = Duration::ZERO;
            assert_eq!(looks.waits(7, SOON), 7);
        }
    }

    #[test]
    fn few_are_four_of_the_last_answers() {
        let mut recent_clients = RecentClients::default();
        assert!(recent_clients.are_few());
        for at in 0..100 {
            recent_clients.add(Token::reserved(100 + at % 4));
        }
        assert!(recent_clients.are_few());
        for at in 0..8 {
            recent_clients.add(Token::reserved(100 + at % 5));
        }
        assert!(!recent_clients.are_few());
    }
}
