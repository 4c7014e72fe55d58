//! How the requests of a log arrived: rates, and whether they arrived in bursts.

use std::collections::VecDeque;

/// Seconds for which counts are held back. A log is written when requests end, so its lines are not
/// quite in order.
const HELD: i64 = 600;
/// The fewest windows for an index of dispersion.
const WINDOWS: u64 = 10;

/// Counts requests by the second.
#[derive(Debug)]
pub(super) struct Counter {
    /// The second of the first count that is held, and the counts from there on.
    begin: i64,
    held: VecDeque<u64>,
    /// Requests older than the held seconds; counted in the oldest held second.
    late: u64,
    tally: SecondSums,
}

/// Sums over seconds in order.
#[derive(Debug)]
struct SecondSums {
    seconds: u64,
    requests: u64,
    peak: u64,
    windows: [Window; 3],
}

/// Sums over windows of some seconds.
#[derive(Debug)]
struct Window {
    size: u64,
    filled: u64,
    count: u64,
    windows: u64,
    sum: u128,
    squares: u128,
}

/// How requests arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalPattern {
    /// From the first request to the last, in seconds: at least 1.
    pub seconds: u64,
    /// Requests a second over all of it.
    pub mean_rate: f64,
    /// Requests in the second with the most.
    pub peak_rate: u64,
    /// For windows of this many seconds, the index of dispersion: variance / mean of the counts, 1
    /// for independent visitors at a steady rate. `None` with fewer than ten windows.
    pub dispersion: [(u64, Option<f64>); 3],
    /// Requests that were logged more than ten minutes after others that came later.
    pub out_of_order: u64,
    /// In a word, from the indices.
    pub kind: ArrivalKind,
}

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// Like a Poisson process: as from independent visitors.
    PoissonLike,
    /// In bursts, or at a rate that changes.
    Bursty,
    /// More evenly than by chance, as from a clock.
    Even,
    /// The log is too short to say.
    Unknown,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self {
            begin: 0,
            held: VecDeque::new(),
            late: 0,
            tally: SecondSums {
                seconds: 0,
                requests: 0,
                peak: 0,
                windows: [1, 10, 60].map(Window::new),
            },
        }
    }

    /// A request in the second `time`.
    pub(super) fn add(&mut self, time: i64) {
        if self.held.is_empty() {
            self.begin = time;
        }
        // No count was released while the log is younger than the held time: it may begin with its
        // second line.
        while time < self.begin
            && self.tally.seconds == 0
            && self.held.len() < HELD as usize
            && self.begin.saturating_sub(time) < HELD
        {
            self.held.push_front(0);
            self.begin -= 1;
        }
        let mut at = time.saturating_sub(self.begin);
        if at < 0 {
            self.late += 1;
            at = 0;
        }
        if at >= HELD {
            self.release_counts(at - HELD + 1);
            at = HELD - 1;
        }
        if self.held.len() <= at as usize {
            self.held.resize(at as usize + 1, 0);
        }
        self.held[at as usize] += 1;
    }

    fn release_counts(&mut self, seconds: i64) {
        let counted = seconds.min(self.held.len() as i64);
        for count in self.held.drain(..counted as usize) {
            self.tally.second(count);
        }
        self.tally.empty((seconds - counted) as u64);
        self.begin = self.begin.saturating_add(seconds);
    }

    /// The result; `None` without a request.
    pub(super) fn finish(mut self) -> Option<ArrivalPattern> {
        let held = self.held.len() as i64;
        self.release_counts(held);
        let tally = self.tally;
        let dispersion = tally
            .windows
            .each_ref()
            .map(|window| (window.size, window.dispersion()));
        (tally.requests > 0).then(|| ArrivalPattern {
            seconds: tally.seconds,
            mean_rate: tally.requests as f64 / tally.seconds as f64,
            peak_rate: tally.peak,
            dispersion,
            out_of_order: self.late,
            kind: kind(&tally.windows),
        })
    }
}

impl SecondSums {
    fn second(&mut self, count: u64) {
        self.seconds += 1;
        self.requests += count;
        self.peak = self.peak.max(count);
        self.windows
            .iter_mut()
            .for_each(|window| window.add(count, 1));
    }

    /// Seconds without a request, however many.
    fn empty(&mut self, seconds: u64) {
        self.seconds += seconds;
        self.windows
            .iter_mut()
            .for_each(|window| window.add(0, seconds));
    }
}

impl Window {
    fn new(size: u64) -> Self {
        Self {
            size,
            filled: 0,
            count: 0,
            windows: 0,
            sum: 0,
            squares: 0,
        }
    }

    /// `count` requests in the first of `seconds` seconds.
    fn add(&mut self, count: u64, seconds: u64) {
        self.count += count;
        self.filled += seconds;
        if self.filled >= self.size {
            self.windows += self.filled / self.size;
            self.filled %= self.size;
            self.sum += u128::from(self.count);
            self.squares += u128::from(self.count) * u128::from(self.count);
            self.count = 0;
        }
    }

    fn dispersion(&self) -> Option<f64> {
        if self.windows < WINDOWS || self.sum == 0 {
            return None;
        }
        let (count, sum) = (self.windows as f64, self.sum as f64);
        let variance = (self.squares as f64 - sum * sum / count) / (count - 1.0);
        Some(variance * count / sum)
    }

    /// How far from 1 the index of a Poisson process may be by chance (three standard errors), or
    /// without significance.
    fn allowance(&self) -> f64 {
        (3.0 * (2.0 / (self.windows as f64 - 1.0)).sqrt()).max(0.5)
    }
}

fn kind(windows: &[Window; 3]) -> ArrivalKind {
    let judged = || {
        windows
            .iter()
            .filter_map(|window| Some((window.dispersion()?, window.allowance())))
    };
    if judged().next().is_none() {
        ArrivalKind::Unknown
    } else if judged().any(|(index, allowance)| index > 1.0 + allowance) {
        ArrivalKind::Bursty
    } else if judged().any(|(index, allowance)| index < 1.0 - allowance) {
        ArrivalKind::Even
    } else {
        ArrivalKind::PoissonLike
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_stats::random::Random;

    fn count(times: impl IntoIterator<Item = i64>) -> ArrivalPattern {
        let mut counter = Counter::new();
        times.into_iter().for_each(|time| counter.add(time));
        counter.finish().unwrap()
    }

    #[test]
    fn rates_do_not_depend_on_the_order_of_the_log() {
        let times = [100, 101, 101, 99, 105, 101, 1009];
        let found = count(times);
        assert_eq!(
            (found.seconds, found.peak_rate, found.out_of_order),
            (911, 3, 0)
        );
        assert!((found.mean_rate - 7.0 / 911.0).abs() < 1e-12);
        assert_eq!(count([5, 5]).kind, ArrivalKind::Unknown);
        assert_eq!(count([0, 2000, 10]).out_of_order, 1);
    }

    #[test]
    fn independent_even_and_bursty_arrivals_are_told_apart() {
        let mut random = Random::new(4);
        let mut at = 0.0;
        let poisson: Vec<i64> = (0..20_000)
            .map(|_| {
                at -= (1.0 - random.uniform()).ln() / 10.0;
                at as i64
            })
            .collect();
        let found = count(poisson.iter().copied());
        assert_eq!(found.kind, ArrivalKind::PoissonLike, "{found:?}");
        assert!((found.dispersion[0].1.unwrap() - 1.0).abs() < 0.15);
        assert_eq!(count((0..20_000).map(|n| n / 10)).kind, ArrivalKind::Even);
        assert_eq!(
            count(poisson.iter().map(|time| time / 7 * 7)).kind,
            ArrivalKind::Bursty
        );
    }

    #[test]
    fn a_leap_in_time_costs_nothing() {
        let found = count([0, i64::MAX / 4, i64::MAX / 4 + 1]);
        assert_eq!(
            (found.seconds, found.peak_rate),
            (i64::MAX as u64 / 4 + 2, 1)
        );
        count([i64::MIN / 2, 0, i64::MAX / 2]);
    }
}
