//! What a client thread has worked: its CPU time, without what a thread that spins takes for looking in vain.
//!
//! A thread that sleeps uses no CPU while it waits, so all that it uses is work. One that spins is on its core throughout. The
//! time of turns in which nothing happened and nothing was due is taken from the clock that every turn reads anyway, and the same
//! share of the thread's CPU time is no work. It is a share because others may take the core from the thread. A turn in which they
//! did is seldom empty when it is over, so then too much is called work; where it is empty, too little.

use base_clock::Nanos;

/// CPU time of a thread, user and system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpu {
    /// In turns in which there was something to do.
    pub work: Nanos,
    /// In turns in which there was nothing.
    pub spun: Nanos,
}

/// The measured part of a thread, so far.
#[derive(Default)]
pub struct CpuAccount {
    /// When it began, and the thread's CPU time then.
    began: Option<(Nanos, Nanos)>,
    /// When the last turn was over.
    last: Nanos,
    /// Time of turns in which there was nothing to do.
    empty: Nanos,
}

impl CpuAccount {
    /// A turn is over, and the measured part begins at `start`.
    pub fn turn(&mut self, now: Nanos, start: Nanos, is_empty: bool) {
        match self.began {
            None if now >= start => self.began = Some((now, base_clock::thread_cpu())),
            Some(_) if is_empty => self.empty += now.saturating_sub(self.last),
            None | Some(_) => {}
        }
        self.last = now;
    }

    /// There was more to do in the turn, until now.
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

    /// Parts `cpu` as the turns of `span` were.
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
    fn turns_without_anything_are_no_work() {
        let mut work = CpuAccount::default();
        assert_eq!(work.cpu(), ThreadCpu::default(), "before it begins");
        work.turn(90, 100, true);
        work.turn(100, 100, true);
        // Three parts of four are empty, one turn of which was longer than it looked.
        work.turn(130, 100, true);
        work.resume(140);
        work.turn(150, 100, false);
        work.turn(200, 100, true);
        assert_eq!(work.empty, 80);
        let parts = |cpu| work.split(cpu, 100);
        let expected = ThreadCpu { work: 20, spun: 80 };
        assert_eq!(parts(100), expected);
        // Somebody else had the core for half of the time.
        let expected = ThreadCpu { work: 10, spun: 40 };
        assert_eq!(parts(50), expected);
    }

    #[test]
    fn whoever_sleeps_works_all_its_cpu_time() {
        let mut work = CpuAccount::default();
        work.turn(1, 0, false);
        work.turn(1_000_001, 0, false);
        let expected = ThreadCpu { work: 7, spun: 0 };
        assert_eq!(work.split(7, 1_000_000), expected);
    }
}
