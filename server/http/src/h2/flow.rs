//! Windows in both directions (RFC 9113 section 5.2), and how long a client may keep one shut.

use std::time::Duration;

use base_clock::Boottime;

use super::frame::MAX_31_BITS;
use crate::progress::TransferProgress;

/// The window of a stream or a connection before anything was said (section 6.9.2).
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// A window would be larger than 2^31-1 bytes (section 6.9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowOverflow;

/// How many bytes we may send. Negative after the client has taken back what was used already
/// (section 6.9.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self(size as i64)
    }

    /// Bytes that may be sent now.
    pub(crate) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or_default()
    }

    /// `len` bytes are sent.
    pub(crate) const fn sent(&mut self, len: usize) {
        self.0 -= len as i64;
    }

    /// Opens it by `increment`, or shuts it by a negative one.
    pub(crate) fn change(&mut self, increment: i64) -> Result<(), WindowOverflow> {
        self.0 += increment;
        if self.0 > i64::from(MAX_31_BITS) {
            return Err(WindowOverflow);
        }
        Ok(())
    }
}

/// How many bytes the client may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    left: u32,
    size: u32,
}

impl ReceiveWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self { left: size, size }
    }

    /// `len` bytes arrive; false if they are more than the client may send.
    pub(crate) const fn receive(&mut self, len: u32) -> bool {
        match self.left.checked_sub(len) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// By how much the window is opened again, if half of it is used and the client needs more
    /// than the other half for the `expected` bytes to come.
    pub(crate) fn renew(&mut self, expected: u64) -> Option<u32> {
        if self.left > self.size / 2 || u64::from(self.left) >= expected {
            return None;
        }
        let increment = self.size - self.left;
        self.left = self.size;
        Some(increment)
    }
}

/// The time that a window was shut while there was something to send. The rule is that of a socket
/// that takes no bytes: see [`TransferProgress`]. Time in which the window was open is not
/// counted, because then the stream waited for other streams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StallClock {
    /// In the time that this clock has counted.
    progress: TransferProgress,
    counted: Duration,
    since: Option<Boottime>,
}

impl StallClock {
    /// The window is shut at `now`, perhaps again; `sent` bytes have passed through it.
    pub(crate) fn shut(&mut self, sent: u64, now: Boottime) {
        self.open(now);
        self.progress.moved_to(sent, at(self.counted));
        self.since = Some(now);
    }

    /// The window is open, or there is nothing to send.
    pub(crate) fn open(&mut self, now: Boottime) {
        if let Some(since) = self.since.take() {
            self.counted += now.since(since);
        }
    }

    /// When it has been shut for too long.
    pub(crate) fn deadline(&self, timeout: Duration) -> Boottime {
        let Some(since) = self.since else {
            return Boottime::NEVER;
        };
        let deadline = self.progress.deadline(timeout);
        since.plus(deadline.since(at(self.counted)))
    }
}

/// A moment by the clock's own count.
fn at(counted: Duration) -> Boottime {
    Boottime::default().plus(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn second(number: u64) -> Boottime {
        Boottime::from_nanos(number * 1_000_000_000)
    }

    /// RFC 9113 sections 6.9.1 and 6.9.2.
    #[test]
    fn a_send_window_may_be_negative_and_never_too_large() {
        let mut window = SendWindow::new(100);
        window.sent(80);
        assert_eq!(window.change(-60), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.change(41), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.change(i64::from(MAX_31_BITS) - 1), Ok(()));
        assert_eq!(window.change(1), Err(WindowOverflow));
    }

    #[test]
    fn a_receive_window_is_renewed_when_half_is_used_and_more_is_expected() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.receive(49));
        assert_eq!(window.renew(1000), None);
        assert!(window.receive(1));
        assert_eq!(window.renew(50), None);
        assert_eq!(window.renew(51), Some(50));
        assert!(window.receive(100) && !window.receive(1));
    }

    #[test]
    fn a_window_may_be_shut_for_the_timeout() {
        let mut clock = StallClock::default();
        assert_eq!(clock.deadline(TIMEOUT), Boottime::NEVER);
        clock.shut(500, second(100));
        assert_eq!(clock.deadline(TIMEOUT), second(130));
        clock.shut(500, second(110));
        assert_eq!(clock.deadline(TIMEOUT), second(130));
        clock.open(second(110));
        assert_eq!(clock.deadline(TIMEOUT), Boottime::NEVER);
    }

    #[test]
    fn a_window_that_is_opened_byte_by_byte_is_as_good_as_shut() {
        let mut clock = StallClock::default();
        let mut ended = None;
        for number in 1..100 {
            clock.shut(number, second(number));
            if clock.deadline(TIMEOUT) <= second(number) {
                ended = Some(number);
                break;
            }
            if number % 2 == 0 {
                clock.open(second(number + 1));
            }
        }
        assert!(matches!(ended, Some(31..=33)), "{ended:?}");
    }

    #[test]
    fn waiting_for_other_streams_is_not_counted() {
        let mut clock = StallClock::default();
        clock.shut(0, second(0));
        clock.open(second(20));
        clock.shut(1 << 20, second(1000));
        assert_eq!(clock.deadline(TIMEOUT), second(1030));
    }
}
