//! What the blocks say: pure figures in, an answer out.

use super::design::{Stage, Trials};
use super::length::Length;
use super::words::{self, Names};
use super::{BLOCKS, Block, Decision, Effect, FEWEST_BLOCKS, Metric, Ratio, Side, Trial};
use crate::Verdict;
use crate::analysis::bootstrap::{Summary, studentised};

/// Question of a comparison.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// All metrics to be shown.
    pub metrics: &'a [Metric],
    /// How many times worse than A the server B may be.
    pub limit: Option<f64>,
    /// Blocks of each stage, and the metric that decides.
    pub length: Length,
    /// The names of the two servers.
    pub names: Names<'a>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Verdict on the comparison.
    pub verdict: Verdict,
    /// Reasons against the comparison; empty for `VALID`.
    pub reasons: Vec<String>,
    /// Remarks that do not speak against the comparison.
    pub notes: Vec<String>,
    /// The answer as a sentence.
    pub answer: String,
    /// The answer in a word.
    pub decision: Decision,
    /// True if B is within the limit; `None` without a limit, or where that could not be decided.
    pub within_limit: Option<bool>,
    /// True if all blocks were carried out.
    pub complete: bool,
    /// Findings, one for each metric that was measured.
    pub effects: Vec<Effect>,
}

/// Judges what was measured.
pub fn judge(trials: &Trials, question: &Question<'_>) -> Judgement {
    let effects: Vec<Effect> = question
        .metrics
        .iter()
        .map(|&metric| effect(trials, metric))
        .collect();
    let complete = [Stage::Baseline, Stage::Comparison]
        .into_iter()
        .all(|stage| is_complete(trials, stage, &question.length));
    let decisive = effects
        .iter()
        .find(|effect| effect.metric == question.length.metric);
    if let Some(reason) = invalid(trials) {
        return Judgement {
            verdict: Verdict::Invalid,
            answer: "not decided: a run is INVALID".to_owned(),
            reasons: vec![reason],
            notes: repeated_blocks(trials).into_iter().collect(),
            decision: Decision::Undecided,
            within_limit: None,
            complete,
            effects,
        };
    }
    let mut reasons = Vec::new();
    if !complete {
        reasons.push(incomplete(trials, &question.length));
    } else if question.length.blocks < BLOCKS {
        reasons.push(format!(
            "a ratio is decided by {BLOCKS} blocks or more, and these are {}",
            question.length.blocks
        ));
    }
    let mut notes: Vec<String> = repeated_blocks(trials).into_iter().collect();
    if let Some(suspects) = Suspects::among(trials) {
        let told = if suspects.are_many() {
            &mut reasons
        } else {
            &mut notes
        };
        told.push(suspects.sentence());
    }
    reasons.extend(
        decisive
            .into_iter()
            .flat_map(|effect| doubts(effect, trials)),
    );
    let (decision, within_limit) = decide(decisive, question);
    // A caller who may stop when the figures are good needs no limit, so only a complete comparison
    // is within one.
    let within_limit = within_limit.filter(|_| complete);
    Judgement {
        verdict: if reasons.is_empty() {
            Verdict::Valid
        } else {
            Verdict::Suspect
        },
        answer: words::answer(&effects, decision, within_limit, question),
        reasons,
        notes,
        decision,
        within_limit,
        complete,
        effects,
    }
}

/// True if a stage has all the blocks that it is to have, and all their runs.
fn is_complete(trials: &Trials, stage: Stage, length: &Length) -> bool {
    let whole = trials.blocks(stage).iter().all(Block::is_complete);
    whole && length.is_reached(trials, stage)
}

fn incomplete(trials: &Trials, length: &Length) -> String {
    let whole = |stage| {
        let blocks = trials.blocks(stage).iter();
        blocks.filter(|block| block.is_complete()).count()
    };
    let of = |stage| {
        let about = if length.detect.is_some() {
            "about "
        } else {
            ""
        };
        format!("{about}{}", length.expected(trials, stage))
    };
    format!(
        "the comparison is incomplete: {} of {} A/A blocks and {} of {} blocks were carried out",
        whole(Stage::Baseline),
        of(Stage::Baseline),
        whole(Stage::Comparison),
        of(Stage::Comparison)
    )
}

/// The decision, and whether the limit holds.
fn decide(effect: Option<&Effect>, question: &Question<'_>) -> (Decision, Option<bool>) {
    let limit = question.limit;
    let Some((effect, ratio, baseline)) =
        effect.and_then(|effect| Some((effect, effect.ratio?, effect.baseline?)))
    else {
        return (Decision::Undecided, None);
    };
    if limit.is_some_and(|limit| is_too_uneven(&baseline, limit)) {
        return (Decision::Undecided, None);
    }
    let decision = match (
        ratio.differs(),
        (ratio.ratio > 1.0) == effect.metric.is_cost(),
    ) {
        (false, _) if undetected_effect(effect, question).is_some() => Decision::Undecided,
        (false, _) => Decision::NoDifference,
        (true, true) => Decision::Worse,
        (true, false) => Decision::Better,
    };
    let worst = worst(effect.metric, &ratio);
    (decision, limit.map(|limit| worst <= limit))
}

/// The smallest effect that could be detected, if that is larger than the one asked for.
pub(super) fn undetected_effect(effect: &Effect, question: &Question<'_>) -> Option<f64> {
    let detect = question.length.detect?;
    effect.detectable.filter(|seen| *seen > detect.share)
}

/// The most by which server B is worse than A: the upper bound of a cost, the inverse lower bound
/// of a rate.
pub fn worst(metric: Metric, ratio: &Ratio) -> f64 {
    if metric.is_cost() {
        ratio.high
    } else {
        1.0 / ratio.low
    }
}

/// How far an interval reaches from 1, in either direction, as a factor.
fn reach(ratio: &Ratio) -> f64 {
    ratio.high.max(1.0 / ratio.low)
}

/// True if A differs from itself by more than a limit allows: as far from 1 as the limit, which may
/// be below 1.
pub(super) fn is_too_uneven(baseline: &Ratio, limit: f64) -> bool {
    reach(baseline) > limit.max(1.0 / limit)
}

/// The log ratios of the blocks that have the metric.
pub fn logs(blocks: &[Block], metric: Metric) -> Vec<f64> {
    let log = |block: &Block| Some(block.ratio(metric)?.ln());
    blocks.iter().filter_map(log).collect()
}

/// See [`Effect::detectable`]. The wider spread of A against itself and the comparison counts: a
/// quiet first half says nothing about a disturbed second half.
pub(super) fn detectable(baseline: &[f64], comparison: &[f64]) -> Option<f64> {
    let (baseline, comparison) = Summary::of(baseline).zip(Summary::of(comparison))?;
    let wider = Summary {
        deviation: baseline.deviation.max(comparison.deviation),
        ..comparison
    };
    (baseline.count.min(comparison.count) >= FEWEST_BLOCKS).then(|| wider.detectable().exp_m1())
}

/// Finds the effect on one metric.
fn effect(trials: &Trials, metric: Metric) -> Effect {
    let baseline = logs(&trials.baseline, metric);
    let comparison = logs(&trials.comparison, metric);
    let mean = |side| {
        let means: Vec<f64> = trials
            .comparison
            .iter()
            .filter_map(|block| Some(block.mean(metric, side)?.ln()))
            .collect();
        (!means.is_empty()).then(|| (means.iter().sum::<f64>() / means.len() as f64).exp())
    };
    Effect {
        metric,
        a: mean(Side::A),
        b: mean(Side::B),
        baseline: ratio(&baseline),
        ratio: ratio(&comparison),
        detectable: detectable(&baseline, &comparison),
    }
}

/// The ratio with its interval from the log ratios of blocks; `None` for too few blocks.
pub fn ratio(logs: &[f64]) -> Option<Ratio> {
    let summary = Summary::of(logs).filter(|summary| summary.count >= FEWEST_BLOCKS)?;
    let (low, high) = summary.interval();
    // The seed is a constant: the same runs give the same interval.
    let bootstrap = studentised(logs, 1).map(|(low, high)| (low.exp(), high.exp()));
    Some(Ratio {
        ratio: summary.mean.exp(),
        low: low.exp(),
        high: high.exp(),
        // A bound out of all numbers has no place in JSON.
        bootstrap: bootstrap.filter(|(low, high)| *low > 0.0 && high.is_finite()),
        spread: summary.deviation,
        blocks: summary.count,
    })
}

/// Every run with the place where it stands.
fn all(trials: &Trials) -> impl Iterator<Item = (String, &Trial)> {
    let stage = |name: &'static str, blocks| {
        let blocks: &[Block] = blocks;
        blocks.iter().enumerate().flat_map(move |(block, runs)| {
            runs.trials.iter().enumerate().map(move |(run, trial)| {
                (
                    format!("{name} block {}, run {}", block + 1, run + 1),
                    trial,
                )
            })
        })
    };
    stage("A/A", &trials.baseline).chain(stage("A/B", &trials.comparison))
}

/// The sentence about blocks that were measured again.
fn repeated_blocks(trials: &Trials) -> Option<String> {
    let first = trials.aside.first()?;
    let reasons = first.block.trials.last()?.reasons.join("; ");
    let (blocks, which) = match trials.aside.len() {
        1 => ("one block was".to_owned(), "it is"),
        more => (format!("{more} blocks were"), "the first is"),
    };
    Some(format!(
        "{blocks} measured again, because the client was disturbed; {which} {} block {}: {reasons}",
        if first.baseline { "A/A" } else { "A/B" },
        first.number
    ))
}

fn invalid(trials: &Trials) -> Option<String> {
    let (place, trial) = all(trials).find(|(_, trial)| trial.verdict == Verdict::Invalid)?;
    Some(format!("{place} is INVALID: {}", trial.reasons.join("; ")))
}

struct Suspects<'a> {
    count: usize,
    of: usize,
    place: String,
    first: &'a Trial,
}

/// One run in this number may be SUSPECT by chance: each check of a run is a test of its own, with
/// false alarms, and machines have disturbances. The interval counts such runs like the others.
/// Only more of them change the meaning of the comparison.
const BY_CHANCE: usize = 20;

impl<'a> Suspects<'a> {
    fn among(trials: &'a Trials) -> Option<Self> {
        let mut runs = all(trials).filter(|(_, trial)| trial.verdict == Verdict::Suspect);
        let (place, first) = runs.next()?;
        Some(Self {
            count: 1 + runs.count(),
            of: all(trials).count(),
            place,
            first,
        })
    }

    fn are_many(&self) -> bool {
        self.count * BY_CHANCE > self.of
    }

    fn sentence(&self) -> String {
        let are = if self.count == 1 { "is" } else { "are" };
        format!(
            "{} of {} runs {are} SUSPECT, the first is {}: {}",
            self.count,
            self.of,
            self.place,
            self.first.reasons.join("; ")
        )
    }
}

/// Lists the reasons against the metric that decides.
fn doubts(effect: &Effect, trials: &Trials) -> Vec<String> {
    let mut doubts = Vec::new();
    let whole = trials
        .baseline
        .iter()
        .chain(&trials.comparison)
        .filter(|block| block.is_complete());
    let (mut blocks, mut with) = (0, 0);
    for block in whole {
        blocks += 1;
        with += usize::from(block.ratio(effect.metric).is_some());
    }
    if with < blocks {
        doubts.push(format!(
            "{} of {blocks} blocks lack the {}: {}",
            blocks - with,
            effect.metric.name(),
            match effect.metric {
                Metric::Cpu =>
                    "a process or a thread of it ended during a run, or none of them ran",
                Metric::Throughput => "no good answers",
                Metric::P50 | Metric::P99 => "too few samples, which longer runs have",
            }
        ));
    }
    if let Some(baseline) = effect.baseline.filter(Ratio::differs) {
        doubts.push(format!(
            "A differs from itself, by {}: the order of the runs shows in the figures",
            words::change(&baseline)
        ));
    }
    if let Some(ratio) = effect.ratio
        && let Some((low, high)) = ratio.bootstrap
        && ratio.differs() != (low > 1.0 || high < 1.0)
    {
        doubts.push(
            "the interval that decides and the bootstrap disagree whether there is a difference: take more blocks"
                .to_owned(),
        );
    }
    doubts
}
