//! How far an experiment is, and what is left of it.

use std::time::Duration;

use super::experiment::Experiment;
use super::outcome::LabLevel;
use crate::clock::{self, Nanos};

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq)]
pub struct LabProgress<'a> {
    /// What is being done: a server's name, or a step of the preparation.
    pub doing: &'a str,
    /// Where it is measured; `None` while something is prepared or started.
    pub level: Option<LabLevel>,
    /// The repeat, from 1.
    pub repeat: usize,
    /// Repeats in all.
    pub repeats: usize,
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// What is left, by the time that the runs so far took.
    pub remaining: Duration,
}

/// Where an experiment stands.
pub(super) struct Place<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) runs: usize,
    pub(super) began: Nanos,
    pub(super) done: usize,
}

impl Place<'_> {
    /// What is being done, and what is left by the time that the runs so far took.
    pub(super) fn progress<'d>(
        &self,
        doing: &'d str,
        level: Option<LabLevel>,
        repeat: usize,
    ) -> LabProgress<'d> {
        let experiment = self.experiment;
        let runs = self.runs;
        let workload = experiment.workload.get_ref();
        let clients = 1 + u32::from(experiment.cross_check.is_some());
        let planned = workload.warmup.0 + workload.duration.0 * clients;
        let gone = clock::since(self.began);
        // The runs so far know better than the plan what a run takes beside its measured part.
        let each = match u32::try_from(self.done) {
            Ok(done) if done > 0 => (gone / (done + 1)).max(planned),
            _ => planned,
        };
        let whole = each * u32::try_from(runs).unwrap_or(u32::MAX);
        LabProgress {
            doing,
            level,
            repeat,
            repeats: experiment.repeats(),
            done: self.done,
            runs,
            remaining: whole.saturating_sub(gone),
        }
    }
}
