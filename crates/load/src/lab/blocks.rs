//! What the repeats say about two servers, and about one beside itself.
//!
//! A repeat is a block: each server's runs in it, at one level, give one value. Runs go forwards and backwards over the
//! servers, so a drift that is linear within a block adds the same to all of them.

use std::collections::BTreeMap;

use super::outcome::{LabInterval, LabRun};
use super::spec::PASSES;
use crate::analysis::bootstrap::Summary;
use crate::compare::judge::ratio;
use crate::{FEWEST_BLOCKS, Ratio, Verdict};

/// A figure of a run.
pub(super) type Figure = fn(&LabRun) -> Option<f64>;

/// The runs of one server at one level that count, by repeat and pass, with what is taken from them.
struct Values(BTreeMap<usize, BTreeMap<usize, f64>>);

impl Values {
    fn of(runs: &[&LabRun], value: impl Fn(&LabRun) -> Option<f64>) -> Self {
        let mut values = BTreeMap::<usize, BTreeMap<usize, f64>>::new();
        // A further pass, with the other client beside, is no part of the pattern.
        let counts = |run: &&&LabRun| run.verdict != Verdict::Invalid && run.pass <= PASSES;
        for run in runs.iter().filter(counts) {
            if let Some(value) = value(run) {
                values
                    .entry(run.repeat)
                    .or_default()
                    .insert(run.pass, value);
            }
        }
        Self(values)
    }

    fn logs(runs: &[&LabRun], figure: Figure) -> Self {
        let positive = |run: &LabRun| figure(run).filter(|value| *value > 0.0);
        Self::of(runs, |run| Some(positive(run)?.ln()))
    }

    /// One difference for each repeat in which both have the same runs: with one missing, a drift would not cancel.
    fn less(&self, other: &Self) -> Vec<f64> {
        let mean = |runs: &BTreeMap<usize, f64>| runs.values().sum::<f64>() / runs.len() as f64;
        let pairs = self.0.iter().filter_map(|(repeat, own)| {
            let other = other.0.get(repeat)?;
            own.keys().eq(other.keys()).then(|| mean(own) - mean(other))
        });
        pairs.collect()
    }

    /// The outer runs of each whole block less the inner ones: A B B A with one server in both places.
    fn outer_less_inner(&self) -> Vec<f64> {
        let halves = self.0.values().filter(|runs| runs.len() == PASSES);
        let half = |runs: &BTreeMap<usize, f64>, passes: [usize; 2]| {
            passes.iter().filter_map(|pass| runs.get(pass)).sum::<f64>() / 2.0
        };
        halves
            .map(|runs| half(runs, [1, 4]) - half(runs, [2, 3]))
            .collect()
    }
}

/// A figure of `runs` as a multiple of that of `base`.
pub(super) fn ratio_to(runs: &[&LabRun], base: &[&LabRun], figure: Figure) -> Option<Ratio> {
    ratio(&Values::logs(runs, figure).less(&Values::logs(base, figure)))
}

/// A figure of `runs` as a multiple of itself.
pub(super) fn ratio_to_itself(runs: &[&LabRun], figure: Figure) -> Option<Ratio> {
    ratio(&Values::logs(runs, figure).outer_less_inner())
}

/// How much greater a figure of `runs` is than that of `base`.
pub(super) fn difference_to(
    runs: &[&LabRun],
    base: &[&LabRun],
    figure: Figure,
) -> Option<LabInterval> {
    difference(&Values::of(runs, figure).less(&Values::of(base, figure)))
}

/// How much greater a figure of `runs` is than itself.
pub(super) fn difference_to_itself(runs: &[&LabRun], figure: Figure) -> Option<LabInterval> {
    difference(&Values::of(runs, figure).outer_less_inner())
}

fn difference(values: &[f64]) -> Option<LabInterval> {
    let summary = Summary::of(values).filter(|summary| summary.count >= FEWEST_BLOCKS)?;
    let (low, high) = summary.interval();
    Some(LabInterval {
        mean: summary.mean,
        low,
        high,
        blocks: summary.count,
    })
}

impl From<Ratio> for LabInterval {
    fn from(ratio: Ratio) -> Self {
        Self {
            mean: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
            blocks: ratio.blocks,
        }
    }
}
