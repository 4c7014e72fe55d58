//! The run over time: counts and latencies in intervals of equal length.
//!
//! The number of intervals is bounded for any length of the run: if there are too many, neighbours
//! are joined and the interval doubles.

use hdrhistogram::Histogram;

use crate::hdr::COARSE;
use crate::timings::{Timing, Timings};
use base_clock::{MS, Nanos};

/// Intervals past which neighbours are joined.
pub const MOST: usize = 120;
/// Intervals past which neighbours are joined, for one class of several. Up to ten classes together
/// have as many as the run, which bounds the memory of their histograms.
const FEWEST: usize = 12;
/// The longest latency that an interval's histogram tells apart: an hour.
pub const LONGEST: Nanos = 3_600_000_000_000;

/// One thread's intervals, counted from the start of the measured part.
pub struct Series {
    /// Length of one interval.
    pub interval: Nanos,
    /// The intervals in order.
    pub slots: Vec<Slot>,
    /// True if the series is one of an open loop.
    pub is_open: bool,
    /// Intervals past which neighbours are joined.
    most: usize,
}

/// Requests that finished within one interval.
#[derive(Default)]
pub struct Slot {
    /// Requests that ended, well or not.
    pub finished: u64,
    /// Requests that ended otherwise than with a good answer.
    pub errors: u64,
    /// Time from when a request was due to its end, summed over `finished`. In a closed loop a
    /// request is due when its place is free.
    pub cycle: u128,
    /// Requests in flight times their duration, in nanoseconds, from samples; only of an open loop.
    pub in_flight: u128,
    /// Their times, to two digits; none where nothing ended.
    pub times: Option<Timings>,
}

impl Series {
    /// For a run of known length some sixty intervals, else milliseconds that grow.
    pub fn new(duration: Option<Nanos>, is_open: bool) -> Self {
        Self::of_at_most(MOST, duration, is_open)
    }

    /// For one of `classes` classes.
    pub fn of_class(classes: usize, duration: Option<Nanos>, is_open: bool) -> Self {
        let most = (MOST / classes.max(1)).max(FEWEST);
        Self::of_at_most(most, duration, is_open)
    }

    fn of_at_most(most: usize, duration: Option<Nanos>, is_open: bool) -> Self {
        let planned = most as u64 / 2;
        Self {
            interval: duration.map_or(MS, |duration| duration.div_ceil(planned).max(MS)),
            slots: Vec::new(),
            is_open,
            most,
        }
    }

    /// A request ended `at` after the start, with a good answer if it has a service time. The first
    /// request of an interval allocates the histograms.
    pub fn record(&mut self, at: Nanos, cycle: Nanos, timing: &Timing) {
        let is_open = self.is_open;
        let slot = self.slot(at);
        slot.finished += 1;
        slot.cycle += u128::from(cycle);
        slot.errors += u64::from(timing.service.is_none());
        slot.times
            .get_or_insert_with(|| Timings::new(COARSE, is_open))
            .record(timing);
    }

    /// For the last `since` nanoseconds before `at`, `count` requests were in flight.
    pub fn sample(&mut self, at: Nanos, since: Nanos, count: u64) {
        // The time may reach back over several intervals.
        let (mut from, count) = (at - since, u128::from(count));
        while from < at {
            let end = ((from / self.interval + 1) * self.interval).min(at);
            self.slot(from).in_flight += count * u128::from(end - from);
            from = end;
        }
    }

    fn slot(&mut self, at: Nanos) -> &mut Slot {
        while at / self.interval >= self.most as u64 {
            self.double();
        }
        let index = (at / self.interval) as usize;
        while self.slots.len() <= index {
            self.slots.push(Slot::default());
        }
        &mut self.slots[index]
    }

    /// Adds another thread's intervals.
    pub fn merge(&mut self, mut other: Self) {
        while self.interval < other.interval {
            self.double();
        }
        while other.interval < self.interval {
            other.double();
        }
        for (index, slot) in other.slots.into_iter().enumerate() {
            match self.slots.get_mut(index) {
                Some(mine) => mine.join(slot),
                None => self.slots.push(slot),
            }
        }
    }

    fn double(&mut self) {
        self.interval *= 2;
        let mut joined: Vec<Slot> = Vec::with_capacity(self.most);
        for (index, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            match joined.last_mut() {
                Some(last) if index % 2 == 1 => last.join(slot),
                _ => joined.push(slot),
            }
        }
        self.slots = joined;
    }
}

impl Slot {
    fn join(&mut self, other: Self) {
        self.finished += other.finished;
        self.errors += other.errors;
        self.cycle += other.cycle;
        self.in_flight += other.in_flight;
        self.times = match (self.times.take(), other.times) {
            (Some(mut mine), Some(other)) => {
                mine.add(&other);
                Some(mine)
            }
            (mine, other) => mine.or(other),
        };
    }
}

/// From a nanosecond to an hour.
pub fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, digits).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base_clock::SECOND;

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_intervals_and_every_count() {
        let mut series = Series::new(None, false);
        for second in 0..100_000 {
            let timing = Timing {
                service: (second % 2 == 0).then_some(3),
                ..Timing::default()
            };
            series.record(second * SECOND, 5, &timing);
        }
        assert!(series.slots.len() <= MOST);
        assert_eq!(
            series.slots.iter().map(|slot| slot.finished).sum::<u64>(),
            100_000
        );
        assert_eq!(
            series.slots.iter().map(|slot| slot.errors).sum::<u64>(),
            50_000
        );
        assert_eq!(
            series.slots.iter().map(|slot| slot.cycle).sum::<u128>(),
            500_000
        );
        let latencies: u64 = series
            .slots
            .iter()
            .filter_map(|slot| slot.times.as_ref())
            .map(|times| times.service.len())
            .sum();
        assert_eq!(latencies, 50_000);
    }

    #[test]
    fn many_classes_have_together_about_as_many_intervals_as_one_run() {
        for (classes, planned) in [(1, 60), (2, 30), (7, 8), (20, 6), (10_000, 6)] {
            let mut series = Series::of_class(classes, Some(60 * SECOND), true);
            assert_eq!(series.interval, 60 * SECOND / planned);
            // Answers that come late.
            for second in 0..200 {
                series.record(second * SECOND, 0, &Timing::served(1));
            }
            assert!(series.slots.len() <= (MOST / classes).max(FEWEST));
        }
    }

    #[test]
    fn a_sample_is_spread_over_the_intervals_that_it_reaches_back_over() {
        let mut series = Series::new(Some(60 * MS), true);
        series.sample(5 * MS / 2, 5 * MS / 2, 4);
        let spread: Vec<u128> = series.slots.iter().map(|slot| slot.in_flight).collect();
        let (whole, half) = (u128::from(4 * MS), u128::from(2 * MS));
        assert_eq!(spread, [whole, whole, half]);
    }

    #[test]
    fn threads_with_different_intervals_are_merged() {
        let (mut one, mut other) = (Series::new(None, false), Series::new(None, false));
        one.record(50 * MS, 1, &Timing::served(1));
        other.record(150 * MS, 1, &Timing::served(1));
        other.record(20 * SECOND, 1, &Timing::default());
        one.merge(other);
        assert_eq!(one.interval, 256 * MS);
        assert_eq!(one.slots[0].finished, 2);
        assert_eq!(one.slots[78].errors, 1);
    }
}
