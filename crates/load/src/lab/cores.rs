//! What some cores did, from `/proc/stat`: also what no process is charged for.
//!
//! The kernel tells times in ticks of 10 ms (`USER_HZ` is 100 on every architecture that Linux supports today). What is busy
//! it learns by looking at what runs when its timer ticks, and how long a core was idle it measures (`CONFIG_NO_HZ_IDLE`, as
//! distributions build it), so busy is what was not idle. The moment and the ticks are read together: a run is shorter than the
//! time between the readings around it, by the threads and connections that begin and end with it.

use std::fs;

use crate::clock::{self, Nanos};

/// Microseconds of a tick.
const TICK_US: f64 = 10_000.0;

/// Of some cores since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    at: Nanos,
    cores: usize,
    idle: u64,
    softirq: u64,
}

/// What some cores did between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// Seconds that each of them was not idle, on average; right to about a tick.
    pub(super) busy_s: f64,
    /// Microseconds in software interrupts, of all of them.
    pub(super) softirq_us: f64,
}

impl Work {
    /// The share of a run that took so many seconds. By the rounding of a tick, and by what was done right before and after, it can
    /// come out above 1.
    pub(super) fn share_of(&self, seconds: f64) -> Option<f64> {
        (seconds > 0.0).then(|| self.busy_s / seconds)
    }
}

impl Ticks {
    /// Of `cores`; `None` for none, and where the kernel does not tell.
    pub(super) fn take(cores: &[usize]) -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Self::read(&stat, cores, clock::now())
    }

    fn read(stat: &str, cores: &[usize], at: Nanos) -> Option<Self> {
        let mut sum = Self {
            at,
            cores: cores.len(),
            idle: 0,
            softirq: 0,
        };
        for core in cores {
            let name = format!("cpu{core}");
            let line = stat
                .lines()
                .find(|line| line.split_whitespace().next() == Some(&name))?;
            let ticks: Vec<u64> = line
                .split_whitespace()
                .skip(1)
                .map_while(|word| word.parse().ok())
                .collect();
            let &[_user, _nice, _system, idle, iowait, _irq, softirq] = ticks.get(..7)? else {
                return None;
            };
            sum.idle += idle + iowait;
            sum.softirq += softirq;
        }
        (!cores.is_empty()).then_some(sum)
    }

    /// What they did since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Option<Work> {
        let seconds = self.at.checked_sub(earlier.at)? as f64 / 1e9;
        let idle = self.idle.saturating_sub(earlier.idle) as f64 * TICK_US / 1e6;
        let softirq = self.softirq.saturating_sub(earlier.softirq);
        Some(Work {
            busy_s: (seconds - idle / self.cores as f64).max(0.0),
            softirq_us: softirq as f64 * TICK_US,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn work_is_of_the_cores_that_are_asked_for() {
        let stat = |idle: u64, iowait: u64, softirq: u64| {
            format!(
                "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 7 0 0 {idle} {iowait} 0 {softirq} 0 0 0\ncpu10 1 0 0 1 0 0 0 0 0 0\n"
            )
        };
        let before = Ticks::read(&stat(50, 1, 2), &[0], 5 * MS).unwrap();
        let after = Ticks::read(&stat(75, 6, 12), &[0], 705 * MS).unwrap();
        let work = after.since(&before).unwrap();
        assert!((work.busy_s - 0.4).abs() < 1e-9 && (work.softirq_us - 100_000.0).abs() < 1e-6);
        assert!((work.share_of(0.5).unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(work.share_of(0.0), None);
        // Of two cores, of which one was never idle.
        let before = Ticks::read(&stat(50, 1, 2), &[0, 10], 5 * MS).unwrap();
        let after = Ticks::read(&stat(75, 6, 12), &[0, 10], 705 * MS).unwrap();
        assert!((after.since(&before).unwrap().busy_s - 0.55).abs() < 1e-9);
        assert_eq!(before.since(&after), None);
        assert!(Ticks::read(&stat(1, 1, 1), &[0, 1], 0).is_none());
        assert!(Ticks::read(&stat(1, 1, 1), &[], 0).is_none());
        assert!(Ticks::read("garbage", &[0], 0).is_none());
    }

    #[test]
    fn a_core_that_was_full_for_a_run_is_full_whatever_was_read_around_it() {
        // 270 to 280 ms around a run of 250 ms, of which two or three ticks were idle.
        let reading = |idle: u64, at: Nanos| {
            let stat = format!("cpu0 0 0 0 {idle} 0 0 0 0 0 0\n");
            Ticks::read(&stat, &[0], at).unwrap()
        };
        let shares = [(2, 272), (3, 278), (2, 270), (3, 276)].map(|(idle, ms)| {
            let work = reading(idle, ms * MS).since(&reading(0, 0)).unwrap();
            work.share_of(0.25).unwrap()
        });
        let mean = shares.iter().sum::<f64>() / 4.0;
        assert!((mean - 0.996).abs() < 1e-9, "{shares:?}");
    }
}
