//! The order of runs: the A/A phase, then the comparison. It does not know what a run is.

use super::{Block, PATTERN, Side, Trial};
use crate::Verdict;

/// One of the two halves of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A against itself.
    Baseline,
    /// B against A.
    Comparison,
}

/// The run that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) stage: Stage,
    /// From 0.
    pub(super) block: usize,
    /// The place in the pattern.
    pub(super) side: Side,
    /// Runs before it, in both stages.
    pub(super) number: usize,
}

impl Step {
    /// The server to be measured.
    pub(super) fn server(&self) -> Side {
        match self.stage {
            Stage::Baseline => Side::A,
            Stage::Comparison => self.side,
        }
    }
}

/// All runs of both stages.
pub(super) fn runs(blocks: usize) -> usize {
    2 * blocks * PATTERN.len()
}

/// Every run that was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trials {
    pub(super) baseline: Vec<Block>,
    pub(super) comparison: Vec<Block>,
}

/// Makes run after run until all are there, `measure` gives `None`, or a run is `INVALID`: nothing can be said any
/// more then, and nobody should wait for the rest.
pub(super) fn carry_out<E>(
    blocks: usize,
    mut measure: impl FnMut(Step) -> Result<Option<Trial>, E>,
) -> Result<Trials, E> {
    let mut trials = Trials::default();
    let mut number = 0;
    for stage in [Stage::Baseline, Stage::Comparison] {
        for block in 0..blocks {
            let mut done = Block::default();
            let mut goes_on = true;
            for side in PATTERN {
                let step = Step {
                    stage,
                    block,
                    side,
                    number,
                };
                number += 1;
                let trial = measure(step)?;
                goes_on = trial
                    .as_ref()
                    .is_some_and(|trial| trial.verdict != Verdict::Invalid);
                done.trials.extend(trial);
                if !goes_on {
                    break;
                }
            }
            if !done.trials.is_empty() {
                match stage {
                    Stage::Baseline => trials.baseline.push(done),
                    Stage::Comparison => trials.comparison.push(done),
                }
            }
            if !goes_on {
                return Ok(trials);
            }
        }
    }
    Ok(trials)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Sample;

    fn trial(step: Step, verdict: Verdict) -> Option<Trial> {
        Some(Trial {
            side: step.side,
            sample: Sample::default(),
            verdict,
            reasons: Vec::new(),
        })
    }

    #[test]
    fn a_runs_against_itself_and_then_against_b() {
        let mut servers = String::new();
        let trials = carry_out(2, |step| {
            servers.push(if step.server() == Side::A { 'a' } else { 'b' });
            Ok::<_, ()>(trial(step, Verdict::Valid))
        })
        .unwrap();
        assert_eq!(servers, "aaaaaaaaabbaabba");
        assert_eq!(servers.len(), runs(2));
        assert_eq!((trials.baseline.len(), trials.comparison.len()), (2, 2));
        let sides: Vec<Side> = trials.baseline[0].trials.iter().map(|t| t.side).collect();
        assert_eq!(sides, PATTERN);
    }

    #[test]
    fn it_ends_with_the_first_invalid_run_and_when_it_is_stopped() {
        let trials = carry_out(3, |step| {
            Ok::<_, ()>(trial(
                step,
                [Verdict::Valid, Verdict::Invalid][usize::from(step.number == 5)],
            ))
        })
        .unwrap();
        assert_eq!(trials.baseline[1].trials.len(), 2);
        assert!(trials.baseline[0].is_complete() && trials.comparison.is_empty());
        let trials = carry_out(3, |step| {
            Ok::<_, ()>(
                (step.number < 16)
                    .then(|| trial(step, Verdict::Valid))
                    .flatten(),
            )
        })
        .unwrap();
        assert_eq!((trials.baseline.len(), trials.comparison.len()), (3, 1));
        assert!(carry_out(3, |_| Err(1)).is_err());
    }
}
