//! CPU time that a client thread worked, without the time that a spinning thread spends on empty
//! turns.
//!
//! A thread that sleeps uses no CPU while it waits, so all its CPU time is work. A thread that
//! spins always uses its core. The time of turns in which nothing happened and nothing was due is
//! measured with the clock that every turn reads anyway, and the same share of the thread's CPU
//! time is not work. It is a share because other threads may take the core. A turn during which
//! another thread had the core is rarely empty at its end, so its time counts as work and the
//! result is too high; if the turn is empty, the result is too low.

use base_clock::Nanos;

/// CPU time of a thread, user and system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpu {
    /// In turns with something to do.
    pub work: Nanos,
    /// In empty turns.
    pub spun: Nanos,
}

/// The measured part of a thread, so far.
#[derive(Default)]
pub struct CpuAccount {
    /// When the measured part began, and the thread's CPU time at that moment.
    began: Option<(Nanos, Nanos)>,
    /// When the last turn ended.
    last: Nanos,
    /// Time of turns in which there was nothing to do.
    empty: Nanos,
}

impl CpuAccount {
    /// Counts a turn that ended at `now`, in a measured part that begins at `start`.
    pub fn turn(&mut self, now: Nanos, start: Nanos, is_empty: bool) {
        match self.began {
            None if now >= start => self.began = Some((now, base_clock::thread_cpu())),
            Some(_) if is_empty => self.empty += now.saturating_sub(self.last),
            None | Some(_) => {}
        }
        self.last = now;
    }

    /// Extends the last turn to `now`.
    pub(crate) fn resume(&mut self, now: Nanos) {
        self.last = now;
    }

    /// CPU time of the calling thread in the measured part, so far.
    pub fn cpu(&self) -> ThreadCpu {
        self.began.map_or(ThreadCpu::default(), |(at, before)| {
            let span = self.last.saturating_sub(at);
            self.split(base_clock::thread_cpu().saturating_sub(before), span)
        })
    }

    /// Divides `cpu` in the proportion of empty and other turns in `span`.
    fn split(&self, cpu: Nanos, span: Nanos) -> ThreadCpu {
        let share = self.empty as f64 / span.max(1) as f64;
        let spun = (cpu as f64 * share.min(1.0)) as Nanos;
        ThreadCpu {
            work: cpu - spun,
            spun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_turns_do_not_count_as_work() {
        let mut work = CpuAccount::default();
        assert_eq!(work.cpu(), ThreadCpu::default(), "before it begins");
        work.turn(90, 100, true);
        work.turn(100, 100, true);
        // Three quarters are empty.
        work.turn(130, 100, true);
        work.resume(140);
        work.turn(150, 100, false);
        work.turn(200, 100, true);
        assert_eq!(work.empty, 80);
        let parts = |cpu| work.split(cpu, 100);
        let expected = ThreadCpu { work: 20, spun: 80 };
        assert_eq!(parts(100), expected);
        // Another thread had the core for half of the time.
        let expected = ThreadCpu { work: 10, spun: 40 };
        assert_eq!(parts(50), expected);
    }

    #[test]
    fn all_cpu_time_of_a_sleeping_thread_is_work() {
        let mut work = CpuAccount::default();
        work.turn(1, 0, false);
        work.turn(1_000_001, 0, false);
        let expected = ThreadCpu { work: 7, spun: 0 };
        assert_eq!(work.split(7, 1_000_000), expected);
    }
}
