//! The two directions of a connection with limited bandwidth, and whether it kept SPECweb99's pace.

use super::Bandwidth;
use super::paced_line::PacedLine;
use crate::TargetPlan;
use crate::recorder::Pending;
use base_clock::{Nanos, SECOND};

/// The bit rate that a conforming connection reaches, in bits a second.
const CONFORMING: f64 = 320_000.0;
/// The share of its requests that must have good responses.
const GOOD: f64 = 0.99;

/// The limits of one connection, and what it achieved in the measured part.
#[derive(Debug)]
pub(crate) struct BandwidthPace {
    pub(crate) down: Option<PacedLine>,
    pub(crate) up: Option<PacedLine>,
    ended: u64,
    good: u64,
    bytes: u64,
    /// Time in which a response was awaited.
    busy: Nanos,
    last: Nanos,
}

impl BandwidthPace {
    /// The pace that a plan sets, if it sets one.
    pub(crate) fn of(target: &TargetPlan) -> Option<Self> {
        let line = |bandwidth: Option<Bandwidth>| bandwidth.map(PacedLine::new);
        let (down, up) = (line(target.throttle_down), line(target.throttle_up));
        (down.is_some() || up.is_some()).then_some(Self {
            down,
            up,
            ended: 0,
            good: 0,
            bytes: 0,
            busy: 0,
            last: 0,
        })
    }

    /// A new connection takes the place of the last, over the same line.
    pub(crate) fn reset(&mut self) {
        [&mut self.down, &mut self.up]
            .into_iter()
            .flatten()
            .for_each(PacedLine::reset);
    }

    /// Counts a complete response of `bytes` bytes.
    pub(crate) fn answered(&mut self, request: &Pending, bytes: u64, good: bool, now: Nanos) {
        if request.measured {
            self.ended += 1;
            self.good += u64::from(good);
            self.bytes += bytes;
            // The waiting times of requests in flight together overlap and count once.
            self.busy += now.saturating_sub(request.sent_at.max(self.last));
            self.last = now;
        }
    }

    /// A request will not be answered.
    pub(crate) fn failed(&mut self, request: &Pending) {
        self.ended += u64::from(request.measured);
    }

    /// True if the responses arrived at 320 kbit/s or more, over the time in which a response was
    /// awaited, and at least 99 % of the requests had a good response. After the run rules of
    /// SPECweb99 (release 1.02), whose metric is the number of connections that reach this bit
    /// rate.
    pub(crate) fn conforms(&self) -> bool {
        let bits = self.bytes as f64 * 8.0;
        self.good > 0
            && self.good as f64 >= GOOD * self.ended as f64
            && bits * SECOND as f64 >= CONFORMING * self.busy as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> BandwidthPace {
        let down = Some(Bandwidth::new(50_000.0).unwrap());
        BandwidthPace::of(&TargetPlan {
            throttle_down: down,
            ..TargetPlan::new("http://h/")
        })
        .unwrap()
    }

    fn request(sent_at: Nanos) -> Pending {
        Pending {
            index: 0,
            class: 0,
            measured: true,
            due: sent_at,
            free_at: sent_at,
            sent_at,
            pause: 0,
        }
    }

    #[test]
    fn the_bit_rate_counts_only_time_in_which_an_answer_was_awaited() {
        let mut pace = pace();
        assert!(!pace.conforms(), "nothing was answered");
        pace.answered(&request(SECOND), 40_000, true, 2 * SECOND);
        assert!(pace.conforms(), "exactly 320 kbit in a second");
        pace.answered(&request(9 * SECOND), 40_000, true, 10 * SECOND);
        assert!(pace.conforms(), "the pause in between does not count");
        pace.answered(&request(11 * SECOND), 39_000, true, 12 * SECOND);
        assert!(!pace.conforms());
    }

    #[test]
    fn requests_in_flight_together_are_waited_for_together() {
        let mut pace = pace();
        pace.answered(&request(SECOND), 40_000, true, 2 * SECOND);
        pace.answered(&request(SECOND), 40_000, true, 3 * SECOND);
        assert!(pace.conforms());
    }

    #[test]
    fn one_request_in_a_hundred_may_fail() {
        let mut pace = pace();
        for n in 0..99 {
            pace.answered(&request(n * SECOND), 50_000, true, (n + 1) * SECOND);
        }
        pace.failed(&request(99 * SECOND));
        assert!(pace.conforms());
        pace.answered(&request(100 * SECOND), 50_000, false, 101 * SECOND);
        assert!(!pace.conforms());
    }

    #[test]
    fn without_a_limit_there_is_no_pace() {
        assert!(BandwidthPace::of(&TargetPlan::new("http://h/")).is_none());
    }
}
