//! When to look for news for a while before sleeping.
//!
//! To sleep and be woken costs a thread more CPU than a short wait, and each side of a conversation the time in which the other's core
//! wakes up. Who waits awake for as long as sleeping would cost spends at most twice the least that is possible (Karlin, Li, Manasse
//! and Owicki, "Empirical studies of competitive spinning for a shared-memory multiprocessor", SOSP 1991). That is for strangers; what comes
//! on a server's connections resembles what came before. So it is done while few talk to the server, each of whom will have read his
//! answer and asked again in a moment, and after waits in vain it is tried ever more rarely.

use std::time::Duration;

use millpond_store::clock::Boottime;

use super::Token;

/// For how long news is looked for.
const WINDOW: Duration = Duration::from_micros(100);
/// What sleeping costs, about: to look for longer was in vain, even if news came.
const WORTH: Duration = Duration::from_micros(30);
/// Waits in vain, one after the other, that are borne: a conversation becomes quick only after some tens of answers, while the other
/// side, and a hypervisor under it, learn to sleep less deeply.
const TRIES: u32 = 128;
/// Waits that are slept through after so many tries; doubled with each time that follows.
const FIRST_REST: u32 = 128;
/// And at most so many: one wait in vain of a hundred or so, less than a microsecond for each.
const LONGEST_REST: u32 = 16_384;
/// Two looks that are further apart were not interrupted by the machine alone, which takes less: somebody else wants this core.
const INTERRUPTED: Duration = Duration::from_micros(500);

/// Decides for one thread.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// Waits to sleep through before it is tried again.
    resting: u32,
    /// How many that were last time.
    rest: u32,
    /// How many in a row were in vain.
    in_vain: u32,
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
            let (is_there, at) = (is_there(), now());
            let passed = at.since(began);
            if is_there && passed <= WORTH {
                (self.rest, self.in_vain) = (0, 0);
                return true;
            }
            if !is_there && at.since(before) > INTERRUPTED {
                self.rest(self.rest * 2);
                return false;
            }
            if is_there || passed > WINDOW {
                self.was_in_vain();
                return is_there;
            }
            before = at;
        }
    }

    fn was_in_vain(&mut self) {
        self.in_vain += 1;
        if self.in_vain == TRIES {
            self.rest(self.rest * 2);
        }
    }

    fn rest(&mut self, waits: u32) {
        self.rest = waits.clamp(FIRST_REST, LONGEST_REST);
        (self.resting, self.in_vain) = (self.rest, 0);
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
    use super::*;

    /// Waits `waits` times for what comes after `delay`, on a clock that goes on by `step` with each look; in how many of them it was looked.
    fn looked(spin: &mut Spin, waits: u32, delay: Duration, step: Duration) -> u32 {
        let mut looked = 0;
        for _ in 0..waits {
            let (mut looks, mut at) = (0, Boottime::from_nanos(1));
            let now = || {
                at = at.plus(step);
                at
            };
            spin.look_by(now, || {
                looks += 1;
                step * looks > delay
            });
            looked += u32::from(looks > 0);
        }
        looked
    }

    const MICRO: Duration = Duration::from_micros(1);
    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_micros(60);
    const NEVER: Duration = Duration::from_secs(1);

    #[test]
    fn what_comes_soon_is_looked_for_each_time() {
        let mut spin = Spin::default();
        assert_eq!(looked(&mut spin, 1000, SOON, MICRO), 1000);
        // Nor is a conversation that becomes quick held against its beginning.
        looked(&mut spin, TRIES - 1, LATE, MICRO);
        looked(&mut spin, 1, SOON, MICRO);
        looked(&mut spin, TRIES - 1, NEVER, MICRO);
        assert_eq!(looked(&mut spin, 1000, SOON, MICRO), 1000);
    }

    #[test]
    fn what_does_not_is_looked_for_ever_more_rarely() {
        for delay in [LATE, NEVER] {
            let mut spin = Spin::default();
            let rests: u32 = (0..8).map(|times| FIRST_REST << times).sum();
            let waits = 8 * TRIES + rests;
            assert_eq!(looked(&mut spin, waits, delay, MICRO), 8 * TRIES);
            let waits = 10 * (TRIES + LONGEST_REST);
            assert_eq!(looked(&mut spin, waits, delay, MICRO), 10 * TRIES);
            assert_eq!(looked(&mut spin, 100, SOON, MICRO), 100);
        }
    }

    #[test]
    fn who_is_interrupted_leaves_the_core_to_others() {
        let mut spin = Spin::default();
        assert_eq!(looked(&mut spin, 1 + FIRST_REST, NEVER, 2 * INTERRUPTED), 1);
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
