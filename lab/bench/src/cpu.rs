//! Whose core, and how long on it.

use std::time::Duration;

use base_probe::run_times;
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

#[cfg(test)]
mod tests {
    use super::run_time;

    #[test]
    fn this_process_has_run() {
        assert!(run_time(std::process::id()).is_ok());
        assert!(run_time(u32::MAX).is_err());
    }
}
