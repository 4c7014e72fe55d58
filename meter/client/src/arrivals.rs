//! When the requests of an open loop are due.

use std::sync::Arc;

use crate::pace::unit;
use crate::plan::{Process, Schedule};
use base_clock::{Nanos, SECOND};
use millrace_stats::random::mix;

/// One thread's share of a schedule: the times at which its requests are due, in order.
///
/// Constant arrivals are computed from the number of the arrival, so rounding errors do not add up:
/// arrival `i` of all threads is due at `i / rate` and belongs to thread `i mod threads`. Poisson
/// arrivals: each thread has an independent process, and the superposition of Poisson processes is
/// a Poisson process. Recorded arrivals are dealt to the threads in turn; only recorded arrivals
/// have an end.
///
/// During a ramp the rate rises in proportion to time. After `t` of a ramp of length `T` the
/// process has advanced by `t² / 2T` of its own time (the time change of an inhomogeneous Poisson
/// process; Lewis and Shedler 1979).
pub(crate) struct Arrivals {
    origin: Nanos,
    /// Length of the ramp.
    ramp: f64,
    kind: Recurrence,
}

enum Recurrence {
    Constant {
        /// Nanoseconds from one arrival of all threads to the next.
        distance: f64,
        next: u64,
        threads: u64,
    },
    Poisson {
        /// Mean distance of this thread's arrivals.
        mean: f64,
        /// Time of the last arrival after the origin.
        at: f64,
        seed: u64,
        next: u64,
    },
    Recorded {
        times: Arc<[u64]>,
        next: usize,
        threads: usize,
    },
}

impl Arrivals {
    /// The share of `thread` (of `threads`) in a schedule that begins at `origin`.
    pub(crate) fn new(
        schedule: &Schedule,
        origin: Nanos,
        ramp: Nanos,
        (thread, threads): (usize, usize),
    ) -> Self {
        let distance = SECOND as f64 / schedule.rate;
        let kind = match &schedule.process {
            Process::Constant => Recurrence::Constant {
                distance,
                next: thread as u64,
                threads: threads as u64,
            },
            Process::Poisson(seed) => Recurrence::Poisson {
                mean: distance * threads as f64,
                at: 0.0,
                seed: mix(*seed, thread as u64),
                next: 0,
            },
            Process::Recorded(times) => Recurrence::Recorded {
                times: Arc::clone(times),
                next: thread,
                threads,
            },
        };
        Self {
            origin,
            ramp: ramp as f64,
            kind,
        }
    }

    /// The time at which the process has advanced by `after` of its own time.
    fn ramped(&self, after: f64) -> f64 {
        if after < self.ramp / 2.0 {
            (2.0 * self.ramp * after).sqrt()
        } else {
            after + self.ramp / 2.0
        }
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let after = match &mut self.kind {
            Recurrence::Constant {
                distance,
                next,
                threads,
            } => {
                let after = *next as f64 * *distance;
                *next += *threads;
                after
            }
            Recurrence::Poisson {
                mean,
                at,
                seed,
                next,
            } => {
                // The inverse of the exponential distribution.
                *at -= unit(mix(*seed, *next)).ln() * *mean;
                *next += 1;
                *at
            }
            Recurrence::Recorded {
                times,
                next,
                threads,
            } => {
                // Computed in whole numbers: a float would round times of more than 104 days.
                let after = *times.get(*next)?;
                *next += *threads;
                return Some(self.origin.saturating_add(after));
            }
        };
        Some(self.origin.saturating_add(self.ramped(after) as Nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(process: Process, thread: usize, threads: usize, count: usize) -> Vec<Nanos> {
        let schedule = Schedule::new(3_000.0, process);
        Arrivals::new(&schedule, 5, 0, (thread, threads))
            .take(count)
            .collect()
    }

    #[test]
    fn a_ramp_rises_to_the_rate_and_goes_on_without_a_gap() {
        let schedule = Schedule::constant(1_000.0);
        let due: Vec<Nanos> = Arrivals::new(&schedule, 0, 10 * SECOND, (0, 1))
            .take(20_000)
            .collect();
        // Half the rate on average during the ramp, a quarter of it in its first half.
        let before = |time| due.iter().filter(|&&at| at < time).count();
        assert!((4_999..=5_001).contains(&before(10 * SECOND)));
        assert!((1_249..=1_251).contains(&before(5 * SECOND)));
        assert!((9_999..=10_001).contains(&before(15 * SECOND)));
        assert!(due.is_sorted());
    }

    #[test]
    fn recorded_arrivals_are_dealt_out_and_end() {
        let process = Process::Recorded([0, 10, 10, 30, 70].into());
        assert_eq!(times(process.clone(), 0, 1, 9), [5, 15, 15, 35, 75]);
        assert_eq!(times(process.clone(), 0, 2, 9), [5, 15, 75]);
        assert_eq!(times(process, 1, 2, 9), [15, 35]);
    }

    #[test]
    fn equal_distances_do_not_drift_and_threads_share_them() {
        let all = times(Process::Constant, 0, 1, 30_001);
        assert_eq!((all[0], all[30_000]), (5, 10 * SECOND + 5));
        let mut shared = times(Process::Constant, 0, 2, 10);
        shared.extend(times(Process::Constant, 1, 2, 10));
        shared.sort_unstable();
        assert_eq!(shared, all[..20]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_the_spread_and_the_seed() {
        let count = 100_000;
        let times_of = |seed| times(Process::Poisson(seed), 0, 1, count);
        let all = times_of(7);
        assert!(all == times_of(7) && all != times_of(8));
        assert!(all.is_sorted());
        let mean = (all[count - 1] - 5) as f64 / count as f64;
        // The standard error of the mean is 0.3 %.
        assert!((mean * 3_000.0 / 1e9 - 1.0).abs() < 0.015, "{mean}");
        let squares: f64 = all
            .windows(2)
            .map(|pair| ((pair[1] - pair[0]) as f64).powi(2))
            .sum();
        // The second moment of an exponential distribution is twice the square of its mean.
        let ratio = squares / (count - 1) as f64 / (mean * mean);
        assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
        assert_ne!(all[0], times(Process::Poisson(7), 1, 2, 1)[0]);
    }
}
