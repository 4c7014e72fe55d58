//! How many blocks a half of a comparison has: a given number, or as many as the effect needs.
//!
//! With a smallest effect to detect, a half goes on until it could detect that effect. The decision
//! uses how blocks differ from one another, not what they say of A and B. The half of A against
//! itself is the pilot study: it finds the number of blocks, and the comparison has the same
//! number. The comparison's own figures have no part in that number, so Student's interval of them
//! is as valid as with a number fixed beforehand (Stein, "A two-sample test for a linear hypothesis
//! whose power is independent of the variance", Annals of Mathematical Statistics 16, 1945). Only
//! if the blocks of the comparison differ more than those of A with itself are blocks added. The
//! spread so far gives their number, and it is not looked at before they are complete: a look after
//! each block would stop where the spread happens to be small.
//!
//! False finds, and how often an effect of exactly this size is found, in 20,000 simulated
//! comparisons each that begin with ten blocks (a standard error is 0.15 and 0.25 points; with
//! exactly ten blocks 5.1 % of the first were flagged):
//!
//! | blocks in the mean | A flagged beside itself | the effect found |
//! |---|---|---|
//! | 10 | 5.1 % | 98 % |
//! | 11 | 5.3 % | 94 % |
//! | 20 | 5.5 % | 91 % |
//! | 63 | 5.2 % | 90 % |
//! | 58, one run in ten disturbed | 5.3 % | 91 % |
//!
//! The effect is found more often than four times out of five, since the wider of the two spreads
//! counts.

use serde::{Deserialize, Serialize};

use super::design::{Stage, Trials};
use super::judge::{detectable, logs};
use super::{BLOCKS, Block, FEWEST_BLOCKS, MOST_BLOCKS, Metric};

/// The smallest difference that a comparison is to see, and how long it may go on until it could.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detect {
    /// The difference, as a share of A: 0.03 for 3 %. It is to be found four times out of five.
    pub share: f64,
    /// Blocks of each half at most.
    pub most_blocks: usize,
}

/// Blocks of each half.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// The least number of blocks; without an effect to detect, the exact number.
    pub blocks: usize,
    /// The smallest difference to detect.
    pub detect: Option<Detect>,
    /// The metric by which an effect is detected.
    pub metric: Metric,
}

impl Length {
    /// Checks the values.
    pub fn check(&self) -> Result<(), String> {
        if self.blocks < FEWEST_BLOCKS || self.blocks > MOST_BLOCKS {
            return Err(format!(
                "the blocks must be from {FEWEST_BLOCKS} to {MOST_BLOCKS}"
            ));
        }
        let Some(detect) = self.detect else {
            return Ok(());
        };
        if !(detect.share > 0.0 && detect.share <= 1.0) {
            return Err("the effect to be seen must be above 0 and at most 100 %".to_owned());
        }
        if self.blocks < BLOCKS {
            return Err(format!(
                "at least {BLOCKS} blocks are needed to find how many an effect takes, and these are {}",
                self.blocks
            ));
        }
        if detect.most_blocks < self.blocks || detect.most_blocks > MOST_BLOCKS {
            return Err(format!(
                "the most blocks must be from {}, which are made in any case, to {MOST_BLOCKS}",
                self.blocks
            ));
        }
        Ok(())
    }

    /// True if a half has all its blocks.
    pub(super) fn is_reached(&self, trials: &Trials, stage: Stage) -> bool {
        trials.blocks(stage).len() >= self.target(trials, stage)
    }

    /// How many blocks a half will have, by what is known of it so far.
    pub fn expected(&self, trials: &Trials, stage: Stage) -> usize {
        let target = self.target(trials, stage);
        let done = trials.blocks(stage).len();
        match self.detect {
            Some(detect) if (BLOCKS..target).contains(&done) => {
                let seen = self.detectable_effect(trials, stage, done);
                seen.map_or(target, |seen| needed(done, seen, &detect).max(target))
            }
            _ => target,
        }
    }

    /// The number of blocks at which a half ends, or at which it is checked next. It never falls
    /// while blocks are added.
    pub fn target(&self, trials: &Trials, stage: Stage) -> usize {
        let Some(detect) = self.detect else {
            return self.blocks;
        };
        let done = trials.blocks(stage).len();
        let mut target = match stage {
            Stage::Baseline => self.blocks,
            Stage::Comparison => self.blocks.max(trials.baseline.len()),
        };
        while target <= done && target < detect.most_blocks {
            // Where half of the blocks lack the metric, more would lack it too.
            let seen = self
                .detectable_effect(trials, stage, target)
                .filter(|_| self.has_metric(trials.blocks(stage), target));
            target = match seen {
                Some(seen) if seen > detect.share => needed(target, seen, &detect),
                _ => return target,
            };
        }
        target
    }

    /// True if half of the first `blocks` blocks have the metric.
    fn has_metric(&self, half: &[Block], blocks: usize) -> bool {
        2 * logs(&half[..blocks], self.metric).len() >= blocks
    }

    /// The smallest effect that the first `blocks` blocks of a half could detect.
    fn detectable_effect(&self, trials: &Trials, stage: Stage, blocks: usize) -> Option<f64> {
        let of = |blocks| logs(blocks, self.metric);
        match stage {
            Stage::Baseline => {
                let baseline = of(&trials.baseline[..blocks]);
                detectable(&baseline, &baseline)
            }
            Stage::Comparison => {
                detectable(&of(&trials.baseline), &of(&trials.comparison[..blocks]))
            }
        }
    }
}

/// Blocks needed, if `blocks` blocks detect only `seen`, which is too large an effect: the standard
/// error falls with the root of their number. At least a tenth more, since the next check has a
/// cost too.
fn needed(blocks: usize, seen: f64, detect: &Detect) -> usize {
    let needed = blocks as f64 * (seen.ln_1p() / detect.share.ln_1p()).powi(2);
    let least = blocks + blocks.div_ceil(10);
    // What is beyond all numbers is cut off by the conversion.
    (needed.ceil() as usize).max(least).min(detect.most_blocks)
}
