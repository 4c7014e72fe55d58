//! How long a client may take over a body or a response.

use std::time::Duration;

use base_clock::Boottime;

use crate::limits::MIN_RATE;

/// The progress of a body or a response. It may pause for the progress timeout. Over its whole
/// course it must keep an average of [`MIN_RATE`] after a start credit of the same length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransferProgress {
    start: Boottime,
    last: Boottime,
    bytes: u64,
}

impl TransferProgress {
    pub(crate) const fn new(now: Boottime) -> Self {
        Self {
            start: now,
            last: now,
            bytes: 0,
        }
    }

    /// When it began.
    pub(crate) const fn start(&self) -> Boottime {
        self.start
    }

    /// `total` bytes have been moved by `now`.
    pub(crate) fn moved_to(&mut self, total: u64, now: Boottime) {
        if total > self.bytes {
            self.bytes = total;
            self.last = now;
        }
    }

    /// The server was not ready for more for this long.
    pub(crate) fn paused(&mut self, pause: Duration) {
        self.start = self.start.plus(pause);
        self.last = self.last.plus(pause);
    }

    /// The deadline if no more bytes are moved.
    pub(crate) fn deadline(&self, timeout: Duration) -> Boottime {
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
        let mut progress = TransferProgress::new(at(100));
        assert_eq!(progress.deadline(TIMEOUT), at(130));
        progress.moved_to(1 << 20, at(120));
        assert_eq!(progress.deadline(TIMEOUT), at(150));
        progress.moved_to(1 << 20, at(140));
        assert_eq!(progress.deadline(TIMEOUT), at(150), "no bytes moved");
    }

    #[test]
    fn one_byte_now_and_then_is_not_enough() {
        let mut progress = TransferProgress::new(at(0));
        for second in 1..30 {
            progress.moved_to(second, at(second));
        }
        assert!(progress.deadline(TIMEOUT) < at(31));
    }

    #[test]
    fn a_slow_but_steady_client_is_served() {
        let mut progress = TransferProgress::new(at(0));
        for second in 1..10_000 {
            assert!(progress.deadline(TIMEOUT) > at(second));
            progress.moved_to(second * MIN_RATE, at(second));
        }
    }
}
