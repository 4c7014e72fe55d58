//! What some cores did, from `/proc/stat`: also what no process is charged for.
//!
//! The kernel counts in ticks of 10 ms (`USER_HZ` is 100 on every architecture that Linux supports today), by looking
//! at what runs when the timer ticks; of a run of five seconds a share is right to about one in a hundred.

use std::fs;

/// Microseconds of a tick.
const TICK_US: f64 = 10_000.0;

/// Ticks of some cores since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    busy: u64,
    softirq: u64,
    all: u64,
}

impl Ticks {
    /// Of `cores`; `None` for none, and where the kernel does not tell.
    pub(super) fn take(cores: &[usize]) -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?, cores)
    }

    fn read(stat: &str, cores: &[usize]) -> Option<Self> {
        let mut sum = Self::default();
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
            // user nice system idle iowait irq softirq steal; what follows is counted within user already.
            let &[user, nice, system, idle, iowait, irq, softirq, steal] = ticks.get(..8)? else {
                return None;
            };
            let busy = user + nice + system + irq + softirq + steal;
            sum.busy += busy;
            sum.softirq += softirq;
            sum.all += busy + idle + iowait;
        }
        (!cores.is_empty()).then_some(sum)
    }

    /// The busy share since `earlier`, and the microseconds in software interrupts. `None` where no tick has passed.
    pub(super) fn since(&self, earlier: &Self) -> Option<(f64, f64)> {
        let all = self.all.checked_sub(earlier.all).filter(|&all| all > 0)?;
        let busy = self.busy.saturating_sub(earlier.busy) as f64 / all as f64;
        let softirq = self.softirq.saturating_sub(earlier.softirq);
        Some((busy.min(1.0), softirq as f64 * TICK_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_cores_that_are_asked_for() {
        let stat = |a: u64| {
            format!(
                "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 {a} 0 0 50 0 0 2 0 0 0\ncpu10 1 0 0 1 0 0 0 0 0 0\n"
            )
        };
        let before = Ticks::read(&stat(10), &[0]).unwrap();
        let after = Ticks::read(&stat(40).replace("50 0 0 2", "80 0 0 12"), &[0]).unwrap();
        let (busy, softirq) = after.since(&before).unwrap();
        assert!((busy - 40.0 / 70.0).abs() < 1e-9 && (softirq - 100_000.0).abs() < 1e-6);
        assert_eq!(before.since(&before), None);
        assert!(Ticks::read(&stat(1), &[0, 1]).is_none());
        assert!(Ticks::read(&stat(1), &[]).is_none());
        assert!(Ticks::read("garbage", &[0]).is_none());
    }
}
