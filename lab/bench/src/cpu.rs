//! Whose core, and how long on it.

use std::{
    iter, thread,
    time::{Duration, Instant},
};

use base_probe::run_times;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Result;

/// Reading the clock takes a thirtieth of a microsecond, and an interrupt of the guest some
/// microseconds.
const GAP: Duration = Duration::from_micros(30);

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

/// The share of time for which a core is withheld from a thread that only reads the clock, for
/// longer than [`GAP`] at a time. On a guest the hypervisor withholds it, and may report much less
/// of that to the kernel (steal), or nothing.
pub(crate) fn withheld(core: usize, time: Duration) -> Result<f64> {
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            pin(core)?;
            let began = Instant::now();
            let clock = iter::from_fn(|| Some(began.elapsed())).take_while(|&moment| moment < time);
            // A gap may reach beyond the end.
            let clock = clock.chain([time]);
            Ok(in_gaps(clock).as_secs_f64() / time.as_secs_f64())
        });
        let watched = watch.join();
        watched.unwrap_or_else(|_| Err("the thread that watches the clock has panicked".to_owned()))
    })
}

/// How much of the time lies between two moments that are further apart than [`GAP`].
fn in_gaps(moments: impl Iterator<Item = Duration>) -> Duration {
    let (mut before, mut gaps) = (Duration::ZERO, Duration::ZERO);
    for moment in moments {
        let since = moment.saturating_sub(before);
        if since > GAP {
            gaps += since;
        }
        before = moment;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{in_gaps, run_time, withheld};

    #[test]
    fn long_gaps_count_as_withheld() {
        let moments = [1, 2, 49, 100, 99, 130, 400].map(Duration::from_micros);
        assert_eq!(
            in_gaps(moments.into_iter()),
            Duration::from_micros(47 + 51 + 31 + 270)
        );
        let share = withheld(0, Duration::from_millis(5)).unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn this_process_has_run() {
        assert!(run_time(std::process::id()).is_ok());
        assert!(run_time(u32::MAX).is_err());
    }
}
