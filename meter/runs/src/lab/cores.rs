//! Activity of some cores, from `/proc/stat`, including work that is charged to no process.
//!
//! The kernel counts times in ticks of 10 ms (`USER_HZ` is 100 on every architecture that Linux
//! supports today). It estimates busy time by looking at what runs at each tick, but measures idle
//! time exactly (`CONFIG_NO_HZ_IDLE`, as distributions build it). So here busy time is the time
//! that was not idle.

use std::fs;

use base_clock::Nanos;

/// Microseconds of a tick.
const TICK_US: f64 = 10_000.0;

/// Times of some cores since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    at: Nanos,
    cores: usize,
    idle: u64,
    softirq: u64,
}

/// Activity of some cores between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CoreWork {
    /// Time between the readings.
    seconds: f64,
    /// Time for which a core was not idle, averaged over the cores; exact to about a tick.
    busy_s: f64,
    /// Microseconds in software interrupts, summed over the cores.
    pub(super) softirq_us: f64,
}

impl CoreWork {
    /// Share of the time for which the cores were busy.
    pub(super) fn share(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.busy_s / self.seconds)
    }

    /// How busy the cores were while responses arrived at `rate`, if all their work was for these
    /// `answers`: a run is shorter than the time between the readings around it (utilisation law, U
    /// = X · D). For runs that are too short to be sampled from within. The rounding of a tick and
    /// the opening of connections can raise it above 1; requests half done at the end can lower it.
    pub(super) fn utilisation(&self, answers: u64, rate: f64) -> Option<f64> {
        (answers > 0).then(|| self.busy_s / answers as f64 * rate)
    }
}

/// Cores of the server and of the client.
#[derive(Clone, Copy)]
pub(super) struct CoreSets<'a> {
    /// The server's cores; empty if the server is not pinned.
    pub(super) server: &'a [usize],
    /// The client's cores; empty if a server is on them.
    pub(super) client: &'a [usize],
}

/// One reading of both sides.
#[derive(Clone, Copy)]
pub(super) struct PerSide<T> {
    pub(super) server: Option<T>,
    pub(super) client: Option<T>,
}

impl CoreSets<'_> {
    pub(super) fn ticks(self) -> PerSide<Ticks> {
        let [server, client] = [self.server, self.client].map(Ticks::take);
        PerSide { server, client }
    }
}

impl PerSide<Ticks> {
    /// Activity of both sides since `earlier`.
    pub(super) fn since(self, earlier: Self) -> PerSide<CoreWork> {
        let work = |now: Option<Ticks>, then: Option<Ticks>| now?.since(&then?);
        PerSide {
            server: work(self.server, earlier.server),
            client: work(self.client, earlier.client),
        }
    }
}

/// The first and the last of several readings during a run.
#[derive(Default)]
pub(super) struct CoreReadings(Option<(PerSide<Ticks>, PerSide<Ticks>)>);

/// The least time between two readings: in less, a tick is too large an error.
const LOOKED_AT_S: f64 = 0.4;

impl CoreReadings {
    pub(super) fn look(&mut self, sides: CoreSets<'_>) {
        let now = sides.ticks();
        self.0 = Some((self.0.map_or(now, |(first, _)| first), now));
    }

    /// How busy each side was between the readings.
    pub(super) fn shares(self) -> PerSide<f64> {
        let Some((first, last)) = self.0 else {
            return PerSide {
                server: None,
                client: None,
            };
        };
        let work = last.since(first);
        let share =
            |work: Option<CoreWork>| work.filter(|work| work.seconds >= LOOKED_AT_S)?.share();
        PerSide {
            server: share(work.server),
            client: share(work.client),
        }
    }
}

impl Ticks {
    /// Times of `cores`; `None` without cores, or if the kernel does not say.
    fn take(cores: &[usize]) -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Self::read(&stat, cores, base_clock::now())
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

    /// Activity since `earlier`.
    fn since(&self, earlier: &Self) -> Option<CoreWork> {
        let seconds = self.at.checked_sub(earlier.at)? as f64 / 1e9;
        let idle = self.idle.saturating_sub(earlier.idle) as f64 * TICK_US / 1e6;
        let softirq = self.softirq.saturating_sub(earlier.softirq);
        Some(CoreWork {
            seconds,
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
    fn work_is_that_of_the_given_cores() {
        let stat = |idle: u64, iowait: u64, softirq: u64| {
            format!(
                "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 7 0 0 {idle} {iowait} 0 {softirq} 0 0 0\ncpu10 1 0 0 1 0 0 0 0 0 0\n"
            )
        };
        let before = Ticks::read(&stat(50, 1, 2), &[0], 5 * MS).unwrap();
        let after = Ticks::read(&stat(75, 6, 12), &[0], 705 * MS).unwrap();
        let work = after.since(&before).unwrap();
        assert!((work.busy_s - 0.4).abs() < 1e-9 && (work.softirq_us - 100_000.0).abs() < 1e-6);
        assert!((work.share().unwrap() - 4.0 / 7.0).abs() < 1e-9);
        assert_eq!(before.since(&before).unwrap().share(), None);
        // Two cores, one of which was never idle.
        let before = Ticks::read(&stat(50, 1, 2), &[0, 10], 5 * MS).unwrap();
        let after = Ticks::read(&stat(75, 6, 12), &[0, 10], 705 * MS).unwrap();
        assert!((after.since(&before).unwrap().busy_s - 0.55).abs() < 1e-9);
        assert_eq!(before.since(&after), None);
        assert!(Ticks::read(&stat(1, 1, 1), &[0, 1], 0).is_none());
        assert!(Ticks::read(&stat(1, 1, 1), &[], 0).is_none());
        assert!(Ticks::read("garbage", &[0], 0).is_none());
    }

    #[test]
    fn a_core_that_was_full_for_a_run_counts_as_full() {
        // Around a run of 250 ms with 1,000 answers.
        let utilisation = |idle: u64, ms: u64, answers: u64| {
            let reading = |idle: u64, at: Nanos| {
                let stat = format!("cpu0 0 0 0 {idle} 0 0 0 0 0 0\n");
                Ticks::read(&stat, &[0], at).unwrap()
            };
            let work = reading(idle, ms * MS).since(&reading(0, 0)).unwrap();
            work.utilisation(answers, 4000.0).unwrap()
        };
        let shares =
            [(2, 272), (3, 278), (2, 270), (3, 276)].map(|(idle, ms)| utilisation(idle, ms, 1000));
        let mean = shares.iter().sum::<f64>() / 4.0;
        assert!((mean - 0.996).abs() < 1e-9, "{shares:?}");
        // Forty more requests were in flight at its end and were answered afterwards.
        assert!((utilisation(0, 260, 1040) - 1.0).abs() < 1e-9);
        let nothing = CoreSets {
            server: &[],
            client: &[],
        };
        let ticks = nothing.ticks();
        assert!(ticks.server.is_none() && ticks.since(ticks).client.is_none());
    }

    #[test]
    fn readings_within_a_run_count_only_if_far_enough_apart() {
        let looks = |ms: u64| {
            let at = |idle: u64, at: Nanos| {
                let ticks = Ticks::read(&format!("cpu0 0 0 0 {idle} 0 0 0 0\n"), &[0], at);
                PerSide {
                    server: ticks,
                    client: None,
                }
            };
            CoreReadings(Some((at(0, 0), at(10, ms * MS)))).shares()
        };
        assert_eq!(looks(300).server, None);
        assert_eq!((looks(500).server, looks(500).client), (Some(0.8), None));
        assert_eq!(CoreReadings::default().shares().server, None);
        let mut one = CoreReadings::default();
        one.look(CoreSets {
            server: &[0],
            client: &[],
        });
        assert_eq!(one.shares().server, None, "only one");
    }
}
