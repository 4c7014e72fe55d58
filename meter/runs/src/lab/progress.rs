//! Progress of an experiment, and the time that is left.

use std::time::Duration;

use super::outcome::LabLevel;
use base_clock::Nanos;

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq)]
pub struct LabProgress<'a> {
    /// The current step: a server's name, or a step of the preparation.
    pub doing: &'a str,
    /// The level; `None` during preparations and starts.
    pub level: Option<LabLevel>,
    /// The repeat, from 1.
    pub repeat: usize,
    /// Repeats in all.
    pub repeats: usize,
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// Time that is left, estimated from the runs so far.
    pub remaining: Duration,
}

/// How long runs take compared with their planned times: starting servers and other clients takes
/// more time.
#[derive(Clone, Copy)]
pub(super) struct TimeEstimate {
    /// Planned for all runs.
    whole: Duration,
    /// Planned for those that are done.
    done: Duration,
    /// When the first run began, and when the last finished run ended.
    began: Nanos,
    ended: Nanos,
}

impl TimeEstimate {
    /// For runs with a planned time of `whole`, the first of which begins now.
    pub(super) fn begin(whole: Duration) -> Self {
        let now = base_clock::now();
        Self {
            whole,
            done: Duration::ZERO,
            began: now,
            ended: now,
        }
    }

    /// A run with this planned time has ended.
    pub(super) fn end_run(&mut self, planned: Duration) {
        self.done += planned;
        self.ended = base_clock::now();
    }

    /// Time that is left at a moment, if the other runs exceed their planned times as the finished
    /// ones did.
    fn remaining(&self, now: Nanos) -> Duration {
        let left = self.whole.saturating_sub(self.done).as_secs_f64();
        let took = self.ended.saturating_sub(self.began) as f64 / 1e9;
        let left = match self.done.is_zero() {
            true => left,
            false => left * took / self.done.as_secs_f64(),
        };
        Duration::from_secs_f64(left)
            .saturating_sub(Duration::from_nanos(now.saturating_sub(self.ended)))
    }
}

/// The current position in an experiment.
pub(super) struct LabPosition {
    pub(super) repeats: usize,
    pub(super) runs: usize,
    pub(super) done: usize,
    pub(super) pace: TimeEstimate,
}

impl LabPosition {
    /// The current step, and the time that is left, estimated from the runs so far.
    pub(super) fn progress<'d>(
        &self,
        doing: &'d str,
        level: Option<LabLevel>,
        repeat: usize,
    ) -> LabProgress<'d> {
        LabProgress {
            doing,
            level,
            repeat,
            repeats: self.repeats,
            done: self.done,
            runs: self.runs,
            remaining: self.pace.remaining(base_clock::now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_follows_from_the_runs_so_far() {
        let seconds = Duration::from_secs;
        let mut pace = TimeEstimate::begin(seconds(100));
        let at = |pace: &TimeEstimate, s: u64| pace.began + s * 1_000_000_000;
        assert_eq!(pace.remaining(at(&pace, 0)), seconds(100));
        assert_eq!(pace.remaining(at(&pace, 3)), seconds(97));
        assert_eq!(pace.remaining(at(&pace, 300)), seconds(0));
        // Long runs with another client first, then short ones: each counts with its planned time.
        pace.end_run(seconds(60));
        pace.ended = at(&pace, 90);
        assert_eq!(pace.remaining(at(&pace, 90)), seconds(60));
        assert_eq!(pace.remaining(at(&pace, 100)), seconds(50));
        pace.end_run(seconds(40));
        assert_eq!(pace.remaining(pace.ended), seconds(0));
    }
}
