//! When to look for news for a while before sleeping.
//!
//! To sleep and be woken costs a thread CPU, and each side of a conversation the time in which the other's core wakes up. Who waits awake for
//! as long as sleeping would cost spends at most twice the least that is possible (Karlin, Li, Manasse and Owicki, "Empirical studies
//! of competitive spinning for a shared-memory multiprocessor", SOSP 1991). Here an account is kept besides: what looking takes is
//! paid from what it saved, and from an allowance. When that is used up all waits are slept through for a while, a longer one each
//! time. So looking in vain, whoever brings it about, takes what it saved before and the allowance for each rest, and no more.

use std::time::Duration;

use millpond_store::clock::Boottime;

use super::Token;

/// For how long news is looked for.
const WINDOW: Duration = Duration::from_micros(50);
/// The CPU that is saved by a wait that ends awake: what sleeping and being woken takes, 22 µs in a guest of two cores.
const SAVED: Duration = Duration::from_micros(30);
/// What may be lost before a rest, and be in hand at most. A conversation becomes quick only after some hundred answers, while the other side,
/// and a hypervisor under it, learn to sleep less deeply.
const ALLOWANCE: Duration = Duration::from_millis(10);
/// Waits that are slept through when the allowance is used up; doubled with each time that follows, and as it was once all has been earned again.
const FIRST_REST: u32 = 256;
/// And at most so many, with 200 in vain between them: half a microsecond for each.
const LONGEST_REST: u32 = 16_384;
/// Two looks that are further apart were not interrupted by the machine alone, which takes less: somebody else wants this core.
const INTERRUPTED: Duration = Duration::from_micros(500);

/// Decides for one thread.
#[derive(Debug)]
pub(super) struct Spin {
    /// What is left of the allowance.
    left: Duration,
    /// Waits to sleep through before it is tried again.
    resting: u32,
    /// How many that were last time.
    rest: u32,
}

impl Default for Spin {
    fn default() -> Self {
        Self {
            left: ALLOWANCE,
            resting: 0,
            rest: 0,
        }
    }
}

impl Spin {
    /// Looks until there is something, for as long as that is worthwhile; whether there was.
    pub(super) fn look(&mut self, is_there: impl FnMut() -> bool) -> bool {
        self.look_by(Boottime::now, is_there)
    }

    fn look_by(
        &mut self,
        mut now: impl FnMut() -> Boottime,
        mut is_there: impl FnMut() -> bool,
    ) -> bool {
        if self.resting > 0 {
            self.resting -= 1;
            return false;
        }
        let began = now();
        let mut before = began;
        loop {
            let (found, at) = (is_there(), now());
            let (passed, is_interrupted) = (at.since(began), at.since(before) > INTERRUPTED);
            if found || is_interrupted || passed > WINDOW {
                self.account(passed, found);
                if is_interrupted || self.left.is_zero() {
                    self.begin_rest();
                }
                return found;
            }
            before = at;
        }
    }

    fn account(&mut self, passed: Duration, found: bool) {
        let saved = if found { SAVED } else { Duration::ZERO };
        self.left = (self.left + saved).saturating_sub(passed).min(ALLOWANCE);
        if self.left == ALLOWANCE {
            self.rest = 0;
        }
    }

    fn begin_rest(&mut self) {
        self.rest = (self.rest * 2).clamp(FIRST_REST, LONGEST_REST);
        self.resting = self.rest;
        self.left = ALLOWANCE / 2;
    }
}

/// So many of the last answers tell how many talk to the server.
const REMEMBERED: usize = 8;
/// And so many are few.
const FEW: usize = 4;

/// To whom the last answers went.
#[derive(Debug)]
pub(crate) struct Talkers {
    last: [Token; REMEMBERED],
    next: usize,
}

impl Default for Talkers {
    fn default() -> Self {
        Self {
            last: [Token::reserved(0); REMEMBERED],
            next: 0,
        }
    }
}

impl Talkers {
    /// An answer goes to that one.
    pub(crate) fn note(&mut self, token: Token) {
        self.last[self.next] = token;
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether the last answers went to few.
    pub(crate) fn are_few(&self) -> bool {
        let is_first = |at: &usize| !self.last[..*at].contains(&self.last[*at]);
        (0..REMEMBERED).filter(is_first).count() <= FEW
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A clock that goes on with each look.
    struct Looks {
        spin: Spin,
        step: Duration,
        /// Waits in which it was looked at all.
        awake: u32,
        /// The time that looking took, and that it saved.
        took: Duration,
        saved: Duration,
    }

    impl Looks {
        fn new(step: Duration) -> Self {
            Self {
                spin: Spin::default(),
                step,
                awake: 0,
                took: Duration::ZERO,
                saved: Duration::ZERO,
            }
        }

        /// Waits for what comes after `delay`.
        fn wait(&mut self, delay: Duration) {
            let (mut looks, mut at, step) = (0, Boottime::from_nanos(1), self.step);
            let now = || {
                at = at.plus(step);
                at
            };
            let found = self.spin.look_by(now, || {
                looks += 1;
                step * looks > delay
            });
            self.awake += u32::from(looks > 0);
            self.took += step * looks;
            self.saved += if found { SAVED } else { Duration::ZERO };
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
        let mut looks = Looks::new(MICRO);
        assert_eq!(looks.waits(100_000, SOON), 100_000);
        // Also when it came late at first, or does now and then.
        let mut looks = Looks::new(MICRO);
        assert_eq!(looks.waits(150, NEVER), 150);
        for _ in 0..1000 {
            assert_eq!(looks.waits(1, LATE) + looks.waits(9, SOON), 10);
        }
    }

    #[test]
    fn what_does_not_is_looked_for_ever_more_rarely() {
        for delay in [LATE, NEVER] {
            let mut looks = Looks::new(MICRO);
            looks.waits(100_000, delay);
            let tries = looks.waits(100 * LONGEST_REST, delay);
            assert!(tries < 100 * LONGEST_REST / 40, "{tries} for {delay:?}");
            // And each time again once it comes soon.
            looks.waits(LONGEST_REST, SOON);
            assert_eq!(looks.waits(100_000, SOON), 100_000);
        }
    }

    proptest! {
        /// Whatever comes when: looking takes no more than what it saved, and the allowance for each rest.
        #[test]
        fn what_it_takes_is_bounded(phases in prop::collection::vec((1..3000_u32, 0..80_u64, 0..80_u64), 1..60)) {
            let mut looks = Looks::new(MICRO);
            let mut waits = 0;
            for (count, one, other) in phases {
                for at in 0..count {
                    looks.wait(Duration::from_micros(if at % 2 == 0 { one } else { other }));
                }
                waits += count;
                let rests = waits / FIRST_REST + 2;
                prop_assert!(looks.took <= looks.saved + ALLOWANCE * rests);
                let slept = waits - looks.awake;
                let lost = looks.took.saturating_sub(looks.saved + ALLOWANCE * 2);
                prop_assert!(lost <= (ALLOWANCE / FIRST_REST) * slept + ALLOWANCE, "{lost:?} for {slept} that slept");
            }
        }
    }

    #[test]
    fn who_is_interrupted_leaves_the_core_to_others() {
        let mut looks = Looks::new(2 * INTERRUPTED);
        assert_eq!(looks.waits(1 + FIRST_REST, NEVER), 1);
        // Also if there was something when it came back.
        let mut looks = Looks::new(2 * INTERRUPTED);
        assert_eq!(looks.waits(1 + FIRST_REST, Duration::ZERO), 1);
    }

    #[test]
    fn few_are_four_of_the_last_answers() {
        let mut talkers = Talkers::default();
        assert!(talkers.are_few());
        for at in 0..100 {
            talkers.note(Token::reserved(100 + at % 4));
        }
        assert!(talkers.are_few());
        for at in 0..8 {
            talkers.note(Token::reserved(100 + at % 5));
        }
        assert!(!talkers.are_few());
    }
}
