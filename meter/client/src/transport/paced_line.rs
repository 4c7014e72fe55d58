//! A line of limited bandwidth: bytes arrive when the line has carried them.
//!
//! One direction of a connection is paced in portions. A portion is granted when there are bytes to
//! carry, and passes when the line would have carried it to its end. So the last byte of a response
//! of any size arrives as late as over a real line. While a portion waits, the socket is not read:
//! the kernel's buffer fills, and TCP's window stops the peer.

use super::Bandwidth;
use super::tls::CIPHERTEXT;
use base_clock::{MS, Nanos, SECOND};

/// Time of one portion on the line, if that is at least one segment.
const PORTION: Nanos = 10 * MS;
/// The smallest portion: about what one Ethernet frame carries.
const SEGMENT: f64 = 1_448.0;
/// A line that was busy within this time counts as never having stopped, because the client only
/// woke late.
const LATE: Nanos = 2 * MS;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct PacedLine {
    bandwidth: f64,
    portion: usize,
    /// When the line has carried all that was granted.
    free_at: Nanos,
    /// Bytes that may pass at `free_at`.
    granted: usize,
}

/// Answer of the line to bytes that wait to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This number of bytes may pass now; then call [`PacedLine::passed`].
    Now(usize),
    /// Ask again at this time.
    At(Nanos),
}

impl PacedLine {
    pub(crate) fn new(bandwidth: Bandwidth) -> Self {
        let bandwidth = bandwidth.bytes_per_second();
        let portion = bandwidth * PORTION as f64 / SECOND as f64;
        Self {
            bandwidth,
            portion: (portion.max(SEGMENT) as usize).min(CIPHERTEXT),
            free_at: 0,
            granted: 0,
        }
    }

    /// Asks for `waiting` bytes, at least one, to pass.
    pub(crate) fn ask(&mut self, waiting: usize, now: Nanos) -> Turn {
        if self.granted == 0 {
            self.granted = waiting.min(self.portion);
            if now.saturating_sub(self.free_at) > LATE {
                self.free_at = now;
            }
            self.free_at += self.time_of(self.granted);
        }
        if now >= self.free_at {
            Turn::Now(self.granted)
        } else {
            Turn::At(self.free_at)
        }
    }

    /// Records that `count` of the granted bytes have passed.
    pub(crate) fn passed(&mut self, count: usize) {
        self.free_at -= self.time_of(self.granted.saturating_sub(count));
        self.granted = 0;
    }

    /// A new connection: the granted portion is void.
    pub(crate) fn reset(&mut self) {
        self.passed(0);
    }

    /// True if a portion is on the line and has not arrived.
    pub(crate) fn is_busy(&self, now: Nanos) -> bool {
        self.granted > 0 && now < self.free_at
    }

    fn time_of(&self, bytes: usize) -> Nanos {
        (bytes as f64 * SECOND as f64 / self.bandwidth) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When `bytes` that wait from the start have passed; each turn is taken `late` after its time.
    fn carry(line: &mut PacedLine, bytes: usize, begin: Nanos, late: Nanos) -> Nanos {
        let (mut left, mut now) = (bytes, begin);
        while left > 0 {
            match line.ask(left, now) {
                Turn::Now(count) => {
                    line.passed(count);
                    left -= count;
                }
                Turn::At(at) => {
                    assert!(at > now);
                    now = at + late;
                }
            }
        }
        now - begin
    }

    fn line() -> PacedLine {
        PacedLine::new(Bandwidth::new(50_000.0).unwrap())
    }

    #[test]
    fn bytes_take_the_time_of_the_line() {
        for bytes in [1, 100, 1_448, 5_000, 100_000] {
            let took = carry(&mut line(), bytes, 7 * SECOND, 0) as f64;
            let expected = bytes as f64 * 20_000.0;
            assert!((took - expected).abs() < 1e3, "{bytes}: {took}");
        }
    }

    #[test]
    fn a_client_woken_late_loses_nothing_on_the_way() {
        let took = carry(&mut line(), 100_000, SECOND, MS);
        assert!(took.abs_diff(2 * SECOND) <= 2 * MS, "{took}");
    }

    #[test]
    fn a_line_that_rested_has_no_credit() {
        let mut line = line();
        carry(&mut line, 5_000, SECOND, 0);
        let took = carry(&mut line, 5_000, 10 * SECOND, 0);
        assert!(took.abs_diff(100 * MS) < 1_000, "{took}");
    }

    #[test]
    fn bytes_that_did_not_pass_are_not_charged() {
        let mut line = line();
        let Turn::At(at) = line.ask(1_000, SECOND) else {
            panic!("the line is slow")
        };
        assert_eq!(line.ask(9_999, at), Turn::Now(1_000));
        line.passed(500);
        assert_eq!(line.ask(500, at), Turn::At(at + 10 * MS));
        line.reset();
        assert!(!line.is_busy(at));
    }
}
