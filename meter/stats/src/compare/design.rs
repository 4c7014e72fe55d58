//! The order of runs: the A/A phase, then the comparison. It does not know what a run is.

use super::length::Length;
use super::{Aside, Block, PATTERN, Side, Trial};
use crate::Verdict;

/// One of the two halves of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A against itself.
    Baseline,
    /// B against A.
    Comparison,
}

/// The run that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonStep {
    /// The half of the comparison.
    pub stage: Stage,
    /// From 0.
    pub block: usize,
    /// The place in the pattern.
    pub side: Side,
    /// How often in a row the client has spoilt this block, if this is its first run.
    pub spoilt: u32,
    /// Blocks that this stage will have, as far as is known.
    pub blocks: usize,
    /// Runs before it, in both stages.
    pub number: usize,
    /// Runs of both stages, as far as is known.
    pub runs: usize,
}

impl ComparisonStep {
    /// The server to be measured.
    pub fn server(&self) -> Side {
        match self.stage {
            Stage::Baseline => Side::A,
            Stage::Comparison => self.side,
        }
    }
}

/// Every run that was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trials {
    /// Blocks of A against itself.
    pub baseline: Vec<Block>,
    /// Blocks of A and B.
    pub comparison: Vec<Block>,
    /// Blocks that were measured again.
    pub aside: Vec<Aside>,
}

impl Trials {
    /// The blocks of a stage.
    pub fn blocks(&self, stage: Stage) -> &[Block] {
        match stage {
            Stage::Baseline => &self.baseline,
            Stage::Comparison => &self.comparison,
        }
    }

    fn of(&mut self, stage: Stage) -> &mut Vec<Block> {
        match stage {
            Stage::Baseline => &mut self.baseline,
            Stage::Comparison => &mut self.comparison,
        }
    }
}

/// One block in this number may be measured again.
const ONE_AGAIN_IN: usize = 10;
/// But one block at most this often: a disturbance that lasts so long, pauses included, does not
/// pass.
const IN_A_ROW: u32 = 5;

/// Makes runs until all are complete, `measure` gives `None`, or a run is `INVALID`: then no
/// conclusion is possible, and the rest would waste time.
///
/// If only the client is at fault, the block is put aside and measured again, a limited number of
/// times: on a machine with other work some of hundreds of short runs are disturbed, and the
/// disturbance does not depend on the server. [`ComparisonStep::spoilt`] counts these blocks; a
/// disturbance often ends after a while.
pub fn carry_out<E>(
    length: &Length,
    mut measure: impl FnMut(ComparisonStep) -> Result<Option<Trial>, E>,
) -> Result<Trials, E> {
    let mut trials = Trials::default();
    for stage in [Stage::Baseline, Stage::Comparison] {
        let (mut again, mut in_a_row) = (0, 0);
        while !length.is_reached(&trials, stage) {
            let first = ComparisonStep {
                spoilt: in_a_row,
                ..first_step(length, &trials, stage)
            };
            let allowed = length.target(&trials, stage).div_ceil(ONE_AGAIN_IN);
            let done = one_block(first, &mut measure)?;
            if done.is_sound() {
                in_a_row = 0;
                trials.of(stage).push(done);
            } else if again < allowed && in_a_row < IN_A_ROW && done.is_spoilt_by_client() {
                again += 1;
                in_a_row += 1;
                trials.aside.push(Aside {
                    baseline: stage == Stage::Baseline,
                    number: first.block + 1,
                    block: done,
                });
            } else {
                if !done.trials.is_empty() {
                    trials.of(stage).push(done);
                }
                return Ok(trials);
            }
        }
    }
    Ok(trials)
}

/// The first run of the block that is next.
fn first_step(length: &Length, trials: &Trials, stage: Stage) -> ComparisonStep {
    let block = trials.blocks(stage).len();
    let blocks = length.expected(trials, stage);
    // What it takes to see an effect in A against itself, it will take in the comparison.
    let (before, all) = match stage {
        Stage::Baseline => (block, 2 * blocks),
        Stage::Comparison => (
            trials.baseline.len() + block,
            trials.baseline.len() + blocks,
        ),
    };
    ComparisonStep {
        stage,
        block,
        side: PATTERN[0],
        spoilt: 0,
        blocks,
        number: before * PATTERN.len(),
        runs: all * PATTERN.len(),
    }
}

/// The runs of a block, to the first that is `INVALID` or was stopped.
fn one_block<E>(
    first: ComparisonStep,
    measure: &mut impl FnMut(ComparisonStep) -> Result<Option<Trial>, E>,
) -> Result<Block, E> {
    let mut done = Block::default();
    for (place, side) in PATTERN.into_iter().enumerate() {
        let trial = measure(ComparisonStep {
            side,
            spoilt: if place == 0 { first.spoilt } else { 0 },
            number: first.number + place,
            ..first
        })?;
        let is_last = trial
            .as_ref()
            .is_none_or(|trial| trial.verdict == Verdict::Invalid);
        done.trials.extend(trial);
        if is_last {
            break;
        }
    }
    Ok(done)
}

impl Block {
    fn is_sound(&self) -> bool {
        let sound = |trial: &Trial| trial.verdict != Verdict::Invalid;
        self.is_complete() && self.trials.iter().all(sound)
    }

    fn is_spoilt_by_client(&self) -> bool {
        self.trials
            .last()
            .is_some_and(|trial| trial.client_at_fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detect, Metric, Sample};

    const fn blocks(blocks: usize) -> Length {
        Length {
            blocks,
            detect: None,
            metric: Metric::Cpu,
        }
    }

    fn trial(step: ComparisonStep, verdict: Verdict) -> Option<Trial> {
        Some(Trial {
            side: step.side,
            sample: Sample::default(),
            verdict,
            reasons: Vec::new(),
            client_at_fault: false,
        })
    }

    #[test]
    fn a_runs_against_itself_and_then_against_b() {
        let mut servers = String::new();
        let trials = carry_out(&blocks(2), |step| {
            assert_eq!((step.blocks, step.runs), (2, 16));
            servers.push(if step.server() == Side::A { 'a' } else { 'b' });
            Ok::<_, ()>(trial(step, Verdict::Valid))
        })
        .unwrap();
        assert_eq!(servers, "aaaaaaaaabbaabba");
        assert_eq!((trials.baseline.len(), trials.comparison.len()), (2, 2));
        let sides: Vec<Side> = trials.baseline[0].trials.iter().map(|t| t.side).collect();
        assert_eq!(sides, PATTERN);
    }

    /// Carries out ten blocks; the client spoils the runs with these numbers, in order of
    /// measurement.
    fn spoilt(at: &[usize]) -> Trials {
        let mut made = 0;
        let done = carry_out(&blocks(10), |step| {
            let client_at_fault = at.contains(&made);
            made += 1;
            let verdict = [Verdict::Valid, Verdict::Invalid][usize::from(client_at_fault)];
            Ok::<_, ()>(trial(step, verdict).map(|trial| Trial {
                client_at_fault,
                ..trial
            }))
        });
        done.unwrap()
    }

    #[test]
    fn a_block_that_the_client_has_spoilt_is_measured_again_once_in_ten() {
        // The second block of A against itself, and the first against B.
        let trials = spoilt(&[5, 42]);
        assert!(
            trials
                .baseline
                .iter()
                .chain(&trials.comparison)
                .all(Block::is_sound)
        );
        assert_eq!((trials.baseline.len(), trials.comparison.len()), (10, 10));
        let aside: Vec<_> = trials
            .aside
            .iter()
            .map(|aside| (aside.baseline, aside.number, aside.block.trials.len()))
            .collect();
        assert_eq!(aside, [(true, 2, 2), (false, 1, 1)]);
        // The same block again: that is more than one of ten.
        let trials = spoilt(&[5, 6]);
        assert_eq!((trials.baseline.len(), trials.aside.len()), (2, 1));
        assert!(!trials.baseline[1].is_sound());
    }

    /// A against itself takes many blocks. The comparison takes as many, and may repeat a tenth of
    /// them.
    #[test]
    fn the_comparison_is_as_long_as_what_a_against_itself_took() {
        let length = Length {
            detect: Some(Detect {
                share: 0.01,
                most_blocks: 500,
            }),
            ..blocks(10)
        };
        let mut spoilt = 0;
        let mut pauses = Vec::new();
        let trials = carry_out(&length, |step| {
            // The deviation of a block's log ratio is 0.05, so 200 blocks see 1 %.
            let up = step.side == Side::B && step.block % 2 == 0;
            let cpu_us = Some(if up { 105.0 } else { 100.0 });
            if step.stage == Stage::Comparison && step.block < 10 {
                assert!(step.blocks > 50, "{step:?}");
                assert!(
                    step.runs.abs_diff(2 * step.blocks * PATTERN.len()) < 100,
                    "{step:?}"
                );
                if spoilt < 3 && step.block == 0 {
                    spoilt += 1;
                    pauses.push(step.spoilt);
                    return Ok::<_, ()>(trial(step, Verdict::Invalid).map(|trial| Trial {
                        client_at_fault: true,
                        ..trial
                    }));
                }
            }
            let sample = Sample {
                cpu_us,
                ..Sample::default()
            };
            Ok(trial(step, Verdict::Valid).map(|trial| Trial { sample, ..trial }))
        })
        .unwrap();
        assert_eq!((trials.aside.len(), pauses), (3, vec![0, 1, 2]));
        assert_eq!(trials.baseline.len(), trials.comparison.len());
    }

    #[test]
    fn it_ends_with_the_first_invalid_run_and_when_it_is_stopped() {
        let trials = carry_out(&blocks(3), |step| {
            Ok::<_, ()>(trial(
                step,
                [Verdict::Valid, Verdict::Invalid][usize::from(step.number == 5)],
            ))
        })
        .unwrap();
        assert_eq!(trials.baseline[1].trials.len(), 2);
        assert!(trials.baseline[0].is_complete() && trials.comparison.is_empty());
        let trials = carry_out(&blocks(3), |step| {
            Ok::<_, ()>(
                (step.number < 16)
                    .then(|| trial(step, Verdict::Valid))
                    .flatten(),
            )
        })
        .unwrap();
        assert_eq!((trials.baseline.len(), trials.comparison.len()), (3, 1));
        assert!(carry_out(&blocks(3), |_| Err(1)).is_err());
    }
}
