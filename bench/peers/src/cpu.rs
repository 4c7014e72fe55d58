//! Whose core, and how long on it.

use std::{fs, time::Duration};

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
    let folder = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut nanoseconds = 0;
    for task in tasks {
        let path = task
            .map_err(|error| format!("{folder}: {error}"))?
            .path()
            .join("schedstat");
        // A thread that ends while we look has no file any more.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        nanoseconds += parse(&text).ok_or_else(|| format!("{}: {text:?}", path.display()))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The first figure: time on a core. The others are time in the queue and the number of turns.
fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{parse, run_time};

    #[test]
    fn the_first_figure_counts() {
        assert_eq!(parse("123456 78 9\n"), Some(123_456));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_process_has_run() {
        assert!(run_time(std::process::id()).is_ok());
        assert!(run_time(u32::MAX).is_err());
    }
}
