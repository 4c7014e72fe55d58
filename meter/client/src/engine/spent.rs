//! What a thread used in the measured part, and what the kernel kept from it.
//!
//! It is taken when no measured request can be issued any more: while the last answers are awaited, or their timeouts, the
//! thread is idle however busy it was before, and what it does in a ramp-down is not measured.

use super::Engine;
use crate::own::Usage;
use crate::work::Cpu;
use base_clock::Nanos;

/// What there was to be read at the beginning and at the end.
#[derive(Default)]
pub(super) struct Spent {
    at_start: Option<Usage>,
    at_end: Option<Used>,
}

/// What a thread used while requests could be issued.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Its CPU time.
    pub cpu: Cpu,
    /// In which time.
    pub span: Nanos,
    /// What the kernel kept from it.
    pub kept: Usage,
}

impl Used {
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
    pub(super) fn take_stock(&mut self, now: Nanos) {
        if now >= self.times.start && self.spent.at_start.is_none() {
            self.spent.at_start = Some(self.shared.own.read());
        }
        let is_over = self.stopped_at.is_some() || now >= self.times.end;
        if is_over && self.spent.at_end.is_none() {
            self.spent.at_end = Some(self.read_used());
        }
    }

    /// What was used in the measured part; up to now, if it is not over.
    pub(super) fn used(&self) -> Used {
        self.spent.at_end.unwrap_or_else(|| self.read_used())
    }

    fn read_used(&self) -> Used {
        let kept = self
            .spent
            .at_start
            .map(|start| self.shared.own.read().since(start));
        Used {
            cpu: self.recorder.work.cpu(),
            span: base_clock::now().saturating_sub(self.times.start),
            kept: kept.unwrap_or_default(),
        }
    }
}
