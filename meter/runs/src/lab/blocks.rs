//! What the repeats say about two servers, about one server against itself, and about two clients.
//!
//! A repeat is a block: each server's runs in it, at one level, give one value. Runs go forwards
//! and backwards over the servers, so a drift that is linear within a block adds the same to all
//! servers. For the same reason the two clients take turns first and last in four passes of their
//! own.

use std::collections::BTreeMap;

use super::outcome::{LabInterval, LabRun};
use super::spec::PASSES;
use millrace_stats::analysis::bootstrap::Summary;
use millrace_stats::compare::judge::ratio;
use millrace_stats::{FEWEST_BLOCKS, Ratio, Verdict};

pub(super) type Figure = fn(&LabRun) -> Option<f64>;

/// A figure of one server's counted runs at one level, by repeat and place in the block.
struct BlockValues(BTreeMap<usize, BTreeMap<usize, f64>>);

impl BlockValues {
    /// `place` is a run's place in its block, from 1; `None` if the run is no part of the pattern.
    fn of(runs: &[&LabRun], place: fn(&LabRun) -> Option<usize>, figure: Figure) -> Self {
        let mut values = BTreeMap::<usize, BTreeMap<usize, f64>>::new();
        for run in runs.iter().filter(|run| run.verdict != Verdict::Invalid) {
            if let Some((place, value)) = place(run).zip(figure(run)) {
                values.entry(run.repeat).or_default().insert(place, value);
            }
        }
        Self(values)
    }

    fn logs(&self) -> Self {
        let mut values = self.0.clone();
        for block in values.values_mut() {
            block.retain(|_, value| *value > 0.0);
            block.values_mut().for_each(|value| *value = value.ln());
        }
        values.retain(|_, block| !block.is_empty());
        Self(values)
    }

    /// One difference for each repeat in which both have the same runs: if a run is missing, a
    /// drift does not cancel.
    fn differences(&self, other: &Self) -> Vec<f64> {
        let mean = |runs: &BTreeMap<usize, f64>| runs.values().sum::<f64>() / runs.len() as f64;
        let pairs = self.0.iter().filter_map(|(repeat, own)| {
            let other = other.0.get(repeat)?;
            own.keys().eq(other.keys()).then(|| mean(own) - mean(other))
        });
        pairs.collect()
    }

    /// The outer runs of each whole block less the inner runs: A B B A with one server in both
    /// places. Each side has two runs, while each of two servers has four, so the random difference
    /// between runs is √2 times as large (variances add). Divided by √2, the result is the
    /// difference that two equal servers would show, like the half of A against itself in
    /// `compare`.
    fn outer_less_inner(&self) -> Vec<f64> {
        let halves = self.0.values().filter(|runs| runs.len() == PASSES);
        let half = |runs: &BTreeMap<usize, f64>, passes: [usize; 2]| {
            passes.iter().filter_map(|pass| runs.get(pass)).sum::<f64>() / 2.0
        };
        halves
            .map(|runs| (half(runs, [1, 4]) - half(runs, [2, 3])) * std::f64::consts::FRAC_1_SQRT_2)
            .collect()
    }

    fn only_whole_blocks(mut self) -> Self {
        self.0.retain(|_, block| block.len() == PASSES);
        self
    }
}

/// A figure on two sides of the same blocks.
pub(super) struct PairedFigures {
    own: BlockValues,
    other: BlockValues,
}

impl PairedFigures {
    /// Two servers. Passes with the other client are no part of the pattern.
    pub(super) fn of_servers(runs: &[&LabRun], base: &[&LabRun], figure: Figure) -> Self {
        let place = |run: &LabRun| (run.pass <= PASSES).then_some(run.pass);
        Self {
            own: BlockValues::of(runs, place, figure),
            other: BlockValues::of(base, place, figure),
        }
    }

    /// This client and the other, in the passes in which the other client ran. Both clients have
    /// runs of the same turns, so in a block that lacks one a drift does not cancel.
    pub(super) fn of_clients(runs: &[&LabRun], own: Figure, other: Figure) -> Self {
        let place = |run: &LabRun| run.pass.checked_sub(PASSES).filter(|place| *place > 0);
        Self {
            own: BlockValues::of(runs, place, own).only_whole_blocks(),
            other: BlockValues::of(runs, place, other).only_whole_blocks(),
        }
    }

    /// One side as a multiple of the other.
    pub(super) fn ratio(&self) -> Option<Ratio> {
        ratio(&self.own.logs().differences(&self.other.logs()))
    }

    /// The other side as a multiple of itself.
    pub(super) fn other_over_itself(&self) -> Option<Ratio> {
        ratio(&self.other.logs().outer_less_inner())
    }

    /// How much greater one side is than the other.
    pub(super) fn difference(&self) -> Option<LabInterval> {
        difference(&self.own.differences(&self.other))
    }

    /// How much greater the other side is than itself.
    pub(super) fn other_less_itself(&self) -> Option<LabInterval> {
        difference(&self.other.outer_less_inner())
    }
}

/// A figure of `runs` as a multiple of that of `base`.
pub(super) fn ratio_to(runs: &[&LabRun], base: &[&LabRun], figure: Figure) -> Option<Ratio> {
    PairedFigures::of_servers(runs, base, figure).ratio()
}

/// A figure of `runs` as a multiple of itself.
pub(super) fn ratio_to_itself(runs: &[&LabRun], figure: Figure) -> Option<Ratio> {
    PairedFigures::of_servers(&[], runs, figure).other_over_itself()
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
