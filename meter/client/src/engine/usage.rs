//! What a thread used in the measured part, and how long the kernel kept the thread from running.
//!
//! Usage is read when no measured request can be issued any more. Afterwards the thread only waits
//! for the last responses or their timeouts and is idle even if it was busy before, and the work of
//! a ramp-down is not measured.

use super::Engine;
use crate::cpu_accounting::ThreadCpu;
use crate::scheduler_stats::SchedulerTimes;
use base_clock::Nanos;

/// Readings at the start and at the end of the measured part.
#[derive(Default)]
pub(super) struct UsageReadings {
    at_start: Option<SchedulerTimes>,
    at_end: Option<ThreadUsage>,
}

/// CPU use of a thread while requests could be issued.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUsage {
    /// Its CPU time.
    pub cpu: ThreadCpu,
    /// Length of the time over which it was used.
    pub span: Nanos,
    /// Time for which the kernel kept the thread from running.
    pub kept: SchedulerTimes,
}

impl ThreadUsage {
    /// Share of a core that it worked, from 0 to 1.
    pub fn busy(&self) -> f64 {
        if self.span == 0 {
            0.0
        } else {
            (self.cpu.work as f64 / self.span as f64).min(1.0)
        }
    }
}

impl Engine<'_> {
    /// Called in every turn: takes the readings at the start and the end of the measured part.
    pub(super) fn read_usage_at_edges(&mut self, now: Nanos) {
        if now >= self.times.start && self.usage.at_start.is_none() {
            self.usage.at_start = Some(self.shared.scheduler_stats.read());
        }
        let is_over = self.stopped_at.is_some() || now >= self.times.end;
        if is_over && self.usage.at_end.is_none() {
            self.usage.at_end = Some(self.read_used());
        }
    }

    /// Usage of the measured part; up to now if it is not over.
    pub(super) fn used(&self) -> ThreadUsage {
        self.usage.at_end.unwrap_or_else(|| self.read_used())
    }

    fn read_used(&self) -> ThreadUsage {
        let kept = self
            .usage
            .at_start
            .map(|start| self.shared.scheduler_stats.read().since(start));
        ThreadUsage {
            cpu: self.recorder.work.cpu(),
            span: base_clock::now().saturating_sub(self.times.start),
            kept: kept.unwrap_or_default(),
        }
    }
}
