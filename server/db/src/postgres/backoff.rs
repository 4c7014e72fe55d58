//! When to try again to reach a server that could not be reached: later and later, and never all at
//! once.

use std::time::Duration;

use base_clock::Boottime;

use crate::Error;
use crate::random::random;

const FIRST: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(5);

/// Record of the attempts to connect.
#[derive(Default)]
pub(super) struct Backoff {
    failures: u32,
    failure: Option<(Error, Boottime)>,
    trying: bool,
}

impl Backoff {
    /// Decides if a connection may be tried now. After a failure one at a time may, once the pause
    /// is over; the others get that failure at once.
    pub(super) fn ask(&mut self, now: Boottime) -> Result<(), Error> {
        match &self.failure {
            Some((error, until)) if self.trying || now < *until => Err(error.clone()),
            _ => {
                self.trying = self.failure.is_some();
                Ok(())
            }
        }
    }

    /// The attempt has succeeded.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The attempt has told nothing: the next may try at once.
    pub(super) fn undecided(&mut self) {
        self.trying = false;
    }

    /// The attempt has failed.
    pub(super) fn failed(&mut self, error: Error, now: Boottime) {
        // Several attempts that began together count once.
        if self.trying || self.failure.is_none() {
            self.failures += 1;
        }
        self.trying = false;
        let pause = FIRST
            .saturating_mul(1 << (self.failures - 1).min(16))
            .min(LAST);
        self.failure = Some((error, now.plus(jittered(pause, random()))));
    }
}

/// Between half of the pause and all of it, so that those who failed together do not come back
/// together.
fn jittered(pause: Duration, random: u64) -> Duration {
    let half = pause / 2;
    let share = u32::try_from(random % 1_024).unwrap_or(0);
    half + half * share / 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Error {
        Error::unavailable("a test")
    }

    #[test]
    fn one_retries_after_the_pause_and_the_others_fail_at_once() {
        let start = Boottime::now();
        let mut backoff = Backoff::default();
        assert!(backoff.ask(start).is_ok());
        assert!(backoff.ask(start).is_ok());
        backoff.failed(failure(), start);
        backoff.failed(failure(), start);
        assert!(backoff.ask(start).is_err());
        let later = start.plus(FIRST);
        assert!(backoff.ask(later).is_ok());
        assert!(backoff.ask(later).is_err());
        backoff.failed(failure(), later);
        assert!(backoff.ask(later.plus(FIRST / 2)).is_err());
        assert!(backoff.ask(later.plus(FIRST * 2)).is_ok());
        backoff.succeeded();
        assert!(backoff.ask(later).is_ok());
        assert!(backoff.ask(later).is_ok());
    }

    #[test]
    fn an_undecided_attempt_leaves_the_pause_as_it_is() {
        let start = Boottime::now();
        let mut backoff = Backoff::default();
        backoff.failed(failure(), start);
        let later = start.plus(FIRST);
        assert!(backoff.ask(later).is_ok());
        backoff.undecided();
        assert!(backoff.ask(later).is_ok());
        assert!(backoff.ask(later).is_err(), "one at a time still");
        backoff.failed(failure(), later);
        assert!(backoff.ask(later.plus(FIRST * 9 / 10)).is_err(), "it grows");
    }

    #[test]
    fn the_pause_grows_to_a_limit() {
        let mut backoff = Backoff::default();
        let mut now = Boottime::now();
        for _ in 0..100 {
            assert!(backoff.ask(now).is_ok());
            backoff.failed(failure(), now);
            now = now.plus(LAST);
        }
        assert_eq!(jittered(LAST, 0), LAST / 2);
        assert!(jittered(LAST, u64::MAX) <= LAST);
    }
}
