//! When a connection has waited long enough. One timer per connection, which is moved forward only when it fires.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use millpond_store::clock::Boottime;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::MIN_RATE;

/// A timer that is cheap to push back: most deadlines are passed over long before they are reached, so the timer wheel
/// hears of a new one only if it is earlier than what is armed, or when that fires early.
pub(super) struct Deadline {
    sleep: Pin<Box<Sleep>>,
    armed: Boottime,
}

impl Deadline {
    pub(super) fn new(now: Boottime, first: Boottime) -> Self {
        Self {
            sleep: Box::pin(sleep_until(Instant::now() + first.since(now))),
            armed: first,
        }
    }

    /// Ready once `at` is reached.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, at: Boottime) -> Poll<()> {
        if at < self.armed {
            self.arm(at, Boottime::now());
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Boottime::now();
            if now >= at {
                return Poll::Ready(());
            }
            self.arm(at, now);
        }
        Poll::Pending
    }

    fn arm(&mut self, at: Boottime, now: Boottime) {
        // The wheel counts milliseconds and rounds; one more keeps it from firing a shade too early again and again.
        self.sleep
            .as_mut()
            .reset(Instant::now() + at.since(now) + Duration::from_millis(1));
        self.armed = at;
    }
}

/// How a body or a response gets on: it may stand still for the progress timeout, and over its whole course it must
/// keep an average of [`MIN_RATE`] once it has used up a start credit of the same length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    start: Boottime,
    last: Boottime,
    bytes: u64,
}

impl Progress {
    pub(super) const fn new(now: Boottime) -> Self {
        Self {
            start: now,
            last: now,
            bytes: 0,
        }
    }

    /// `total` bytes have been moved by `now`.
    pub(super) fn moved_to(&mut self, total: u64, now: Boottime) {
        if total > self.bytes {
            self.bytes = total;
            self.last = now;
        }
    }

    /// When patience ends if nothing more is moved.
    pub(super) fn deadline(&self, timeout: Duration) -> Boottime {
        let credit = Duration::from_millis(self.bytes.saturating_mul(1000) / MIN_RATE);
        self.last
            .plus(timeout)
            .min(self.start.plus(timeout).plus(credit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Boottime {
        Boottime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_body_may_stand_still_for_the_timeout() {
        let mut progress = Progress::new(at(100));
        assert_eq!(progress.deadline(TIMEOUT), at(130));
        progress.moved_to(1 << 20, at(120));
        assert_eq!(progress.deadline(TIMEOUT), at(150));
        progress.moved_to(1 << 20, at(140));
        assert_eq!(progress.deadline(TIMEOUT), at(150), "nothing moved");
    }

    #[test]
    fn one_byte_now_and_then_is_not_enough() {
        let mut progress = Progress::new(at(0));
        for second in 1..30 {
            progress.moved_to(second, at(second));
        }
        assert!(progress.deadline(TIMEOUT) < at(31));
    }

    #[test]
    fn a_slow_but_steady_client_is_served() {
        let mut progress = Progress::new(at(0));
        for second in 1..10_000 {
            assert!(progress.deadline(TIMEOUT) > at(second));
            progress.moved_to(second * MIN_RATE, at(second));
        }
    }
}
