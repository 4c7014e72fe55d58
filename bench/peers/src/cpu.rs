//! Whose core, and how long on it.

use std::{fs, time::Duration};

use millpond_telemetry::probe::run_times;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Result;

/// Binds this thread, and every process that it starts from now on, to one core.
pub(crate) fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| format!("core {core}: {error}"))
}

/// The time that all threads of a process have run, from schedstat: nanoseconds, not ticks.
pub(crate) fn run_time(pid: u32) -> Result<Duration> {
    let threads = run_times(pid).map_err(|error| format!("run time of process {pid}: {error}"))?;
    Ok(Duration::from_nanos(threads.values().sum()))
}

/// The time that the hypervisor has kept from a core that had something to do since the machine began, in ticks of 10 ms: steal of
/// proc_stat(5). A machine of its own has none.
pub(crate) fn stolen(core: usize) -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    steal(&stat, core).ok_or_else(|| format!("/proc/stat has no steal of core {core}"))
}

fn steal(stat: &str, core: usize) -> Option<Duration> {
    let name = format!("cpu{core}");
    let mut lines = stat.lines().map(str::split_ascii_whitespace);
    let mut fields = lines.find_map(|mut fields| (fields.next()? == name).then_some(fields))?;
    let ticks: u64 = fields.nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks.checked_mul(10)?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{run_time, steal};

    #[test]
    fn steal_is_the_eighth_of_a_core() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 93 0 0\ncpu10 1 2 3 4\n";
        assert_eq!(steal(stat, 1), Some(Duration::from_millis(930)));
        assert_eq!(steal(stat, 10), None);
        assert_eq!(steal(stat, 2), None);
    }

    #[test]
    fn this_process_has_run() {
        assert!(run_time(std::process::id()).is_ok());
        assert!(run_time(u32::MAX).is_err());
    }
}
