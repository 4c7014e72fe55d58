//! The three times of a request, and their histograms: those of a class, and those of an interval.

use hdrhistogram::Histogram;

use crate::series::{LONGEST, histogram};
use base_clock::Nanos;

/// The times of one request that has ended, as far as it has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// From its send to the complete answer, if that was a good one.
    pub service: Option<Nanos>,
    /// From when it was due to the complete answer, if that was a good one; only of an open loop.
    pub response: Option<Nanos>,
    /// From when it was due to its send, with any result; only of an open loop.
    pub send_lag: Option<Nanos>,
}

impl Timing {
    /// Of a request that was due, was sent (0 if it was not) and ended at these times.
    pub fn of([due, sent_at, ended_at]: [Nanos; 3], is_good: bool, is_open: bool) -> Self {
        let since = |from: Nanos| ended_at.saturating_sub(from).clamp(1, LONGEST);
        let lag = sent_at.saturating_sub(due).min(LONGEST);
        Self {
            service: is_good.then(|| since(sent_at)),
            response: (is_good && is_open).then(|| since(due)),
            send_lag: (is_open && sent_at != 0).then_some(lag),
        }
    }

    /// The time that a run shows of a good answer: from the schedule if there is one, else from the
    /// send.
    pub fn main(&self) -> Option<Nanos> {
        self.response.or(self.service)
    }
}

/// Histograms of the three times. All histograms of one loop have the same bounds and the same
/// members, so they can be added.
pub struct Timings {
    /// Service times.
    pub service: Histogram<u64>,
    /// Only of an open loop.
    pub response: Option<Histogram<u64>>,
    /// Only of an open loop.
    pub send_lag: Option<Histogram<u64>>,
}

impl Timings {
    /// Empty ones: with two significant digits 36 KiB each, with three 270 KiB. Only pages that
    /// hold a recorded time take memory.
    pub fn new(digits: u8, is_open: bool) -> Self {
        Self {
            service: histogram(digits),
            response: is_open.then(|| histogram(digits)),
            send_lag: is_open.then(|| histogram(digits)),
        }
    }

    /// A few nanoseconds; never allocates.
    pub fn record(&mut self, timing: &Timing) {
        let pairs = [
            (Some(&mut self.service), timing.service),
            (self.response.as_mut(), timing.response),
            (self.send_lag.as_mut(), timing.send_lag),
        ];
        for (histogram, time) in pairs {
            if let (Some(histogram), Some(time)) = (histogram, time) {
                histogram.saturating_record(time);
            }
        }
    }

    /// Adds the times of another thread.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (Some(&mut self.service), Some(&other.service)),
            (self.response.as_mut(), other.response.as_ref()),
            (self.send_lag.as_mut(), other.send_lag.as_ref()),
        ];
        for (mine, other) in pairs {
            if let (Some(mine), Some(other)) = (mine, other) {
                // Both have the same bounds, so nothing can fall outside.
                let _ = mine.add(other);
            }
        }
    }

    /// The times that a run shows: from the schedule where there is one, else from the send.
    pub fn main(&self) -> &Histogram<u64> {
        self.response.as_ref().unwrap_or(&self.service)
    }
}

#[cfg(test)]
impl Timing {
    /// A good answer of a closed loop.
    pub fn served(service: Nanos) -> Self {
        Self {
            service: Some(service),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_time_is_a_send_lag_and_a_service_time() {
        let of = |[due, sent_at]: [Nanos; 2], good, open| {
            let timing = Timing::of([due, sent_at, 100], good, open);
            (timing.response, timing.send_lag, timing.service)
        };
        let sent = [10, 30];
        assert_eq!(of(sent, true, true), (Some(90), Some(20), Some(70)));
        assert_eq!(of(sent, false, true), (None, Some(20), None));
        assert_eq!(of(sent, true, false), (None, None, Some(70)));
        assert_eq!(of([10, 0], false, true), (None, None, None));
    }

    #[test]
    fn added_histograms_equal_those_recorded_together() {
        let timing = |n: u64| {
            let is_good = !n.is_multiple_of(3);
            Timing::of([n, n + n * n, 1_000_000 + n], is_good, true)
        };
        let [mut all, mut one, mut other] = [(); 3].map(|()| Timings::new(2, true));
        for n in 1..100 {
            all.record(&timing(n));
            let part = if n % 2 == 0 { &mut one } else { &mut other };
            part.record(&timing(n));
        }
        one.add(&other);
        assert!(one.service == all.service && one.response == all.response);
        assert!(one.send_lag == all.send_lag && one.main().len() == 66);
        assert_eq!(all.send_lag.unwrap().len(), 99);
    }
}
