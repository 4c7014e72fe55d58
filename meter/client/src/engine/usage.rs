//! What a thread used in the measured part, and what the kernel kept from it.
//!
//! It is taken when no measured request can be issued any more: while the last answers are awaited, or their timeouts, the
//! thread is idle however busy it was before, and what it does in a ramp-down is not measured.

use super::Engine;
use crate::cpu_accounting::ThreadCpu;
use crate::scheduler_stats::SchedulerTimes;
use base_clock::Nanos;

/// What there was to be read at the beginning and at the end.
#[derive(Default)]
pub(super) struct UsageReadings {
    at_start: Option<SchedulerTimes>,
    at_end: Option<ThreadUsage>,
}

/// What a thread used while requests could be issued.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUsage {
    /// Its CPU time.
    pub cpu: ThreadCpu,
    /// In which time.
    pub span: Nanos,
    /// What the kernel kept from it.
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
    /// Called in every turn of the loop: reads when the measured part begins, and when it is over.
    pub(super) fn read_usage_at_edges(&mut self, now: Nanos) {
        if now >= self.times.start && self.usage.at_start.is_none() {
            self.usage.at_start = Some(self.shared.scheduler_stats.read());
        }
        let is_over = self.stopped_at.is_some() || now >= self.times.end;
        if is_over && self.usage.at_end.is_none() {
            self.usage.at_end = Some(self.read_used());
        }
    }

    /// What was used in the measured part; up to now, if it is not over.
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
