//! What the kernel reports about this process that spoils a measurement: time for which its
//! cgroup's CPU quota stopped it, and time for which its threads waited for a core.

use std::fs;

use base_probe::Group;

use base_clock::Nanos;

/// Sources of the figures.
pub(crate) struct SchedulerStats {
    /// The process's cgroup and those above it; the quota of each applies. `None` if the kernel
    /// counts none.
    group: Option<Group>,
}

/// Totals at one moment; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTimes {
    /// Time for which a quota kept ready threads of the cgroup from running, summed over cores and
    /// over the cgroup and those above it, so that it never falls.
    pub throttled: Option<Nanos>,
    /// Time for which the calling thread was ready and had no core.
    pub run_delay: Option<Nanos>,
    /// How often the calling thread got a core: after each sleep, and after each time it was
    /// preempted.
    pub turns: Option<u64>,
}

impl SchedulerTimes {
    /// The increase since `start`.
    pub(crate) fn since(self, start: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            throttled: less(self.throttled, start.throttled),
            run_delay: less(self.run_delay, start.run_delay),
            turns: less(self.turns, start.turns),
        }
    }
}

impl SchedulerStats {
    /// Finds the cgroup of this process, of version 2 or the first.
    pub(crate) fn find() -> Self {
        Self {
            group: Group::of(std::process::id()).ok(),
        }
    }

    /// Reads the totals for the calling thread.
    pub(crate) fn read(&self) -> SchedulerTimes {
        let throttles = self.group.as_ref().and_then(|group| group.sample().ok());
        let kept_us = throttles.map(|all| all.iter().map(|one| one.throttled_us).sum::<u64>());
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").ok();
        let [_, run_delay, turns] = schedstat.as_deref().map_or([None; 3], schedule);
        SchedulerTimes {
            throttled: kept_us.map(|kept_us| kept_us.saturating_mul(1000)),
            run_delay,
            turns,
        }
    }
}

/// The figures of a `schedstat` of `/proc`: nanoseconds on a core, nanoseconds of waiting for a
/// core, and number of times on a core.
pub fn schedule(text: &str) -> [Option<u64>; 3] {
    let mut figures = text
        .split_ascii_whitespace()
        .map(|figure| figure.parse().ok());
    [(); 3].map(|()| figures.next().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedstat_has_three_figures() {
        assert_eq!(schedule("1 23 4\n"), [Some(1), Some(23), Some(4)]);
        assert_eq!(schedule("1 x"), [Some(1), None, None]);
    }

    #[test]
    fn unknown_figures_stay_unknown() {
        let known = SchedulerTimes {
            throttled: Some(5),
            run_delay: Some(9),
            turns: Some(2),
        };
        let unknown = SchedulerTimes::default();
        let expected = SchedulerTimes {
            throttled: Some(0),
            run_delay: Some(0),
            turns: Some(0),
        };
        assert_eq!(known.since(known), expected);
        assert_eq!(known.since(unknown), unknown);
    }
}
