//! How many blocks a half of a comparison has: as many as were asked for, or as many as it takes.
//!
//! With a smallest effect that is to be seen, a half goes on until it could see it. What ends it is how the blocks differ from one
//! another, and not what they say of A and B: for normal values the mean and the spread are independent, so stopping at a
//! small spread does not make a difference out of none (Wittes and Brittain, "The role of internal pilot studies in
//! increasing the efficiency of clinical trials", Statistics in Medicine 9, 1990). `simulation` holds it to that.

use serde::{Deserialize, Serialize};

use super::design::{Stage, Trials};
use super::judge::{detectable, logs};
use super::{BLOCKS, FEWEST_BLOCKS, Metric};

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
pub(super) struct Length {
    /// At least so many; without an effect to be seen, just so many.
    pub(super) blocks: usize,
    pub(super) detect: Option<Detect>,
    /// The metric by which an effect is to be seen.
    pub(super) metric: Metric,
}

impl Length {
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.blocks < FEWEST_BLOCKS || self.blocks > 10_000 {
            return Err(format!("the blocks must be from {FEWEST_BLOCKS} to 10000"));
        }
        let Some(detect) = self.detect else {
            return Ok(());
        };
        if !(detect.share > 0.0 && detect.share <= 1.0) {
            return Err("the effect to be seen must be above 0 and at most 100 %".to_owned());
        }
        if self.blocks < BLOCKS {
            return Err(format!(
                "how many blocks an effect takes is told by the first {BLOCKS} or more, and these are {}",
                self.blocks
            ));
        }
        if detect.most_blocks < self.blocks || detect.most_blocks > 10_000 {
            return Err(format!(
                "the most blocks must be from {}, which are made in any case, to 10000",
                self.blocks
            ));
        }
        Ok(())
    }

    /// Whether a half has all its blocks.
    pub(super) fn is_reached(&self, trials: &Trials, stage: Stage) -> bool {
        trials.blocks(stage).len() >= self.expected(trials, stage)
    }

    /// How many blocks a half will have, by what is known of its spread so far.
    pub(super) fn expected(&self, trials: &Trials, stage: Stage) -> usize {
        let done = trials.blocks(stage).len();
        let Some(detect) = self.detect.filter(|_| done >= self.blocks) else {
            return self.blocks;
        };
        // Where the metric is missing, more blocks would lack it too.
        let Some(seen) = self.seen(trials, stage).filter(|seen| *seen > detect.share) else {
            return done;
        };
        // The standard error falls with the root of the blocks. A metric that says nothing at all takes all of them.
        let needed = done as f64 * (seen.ln_1p() / detect.share.ln_1p()).powi(2);
        (needed.min(detect.most_blocks as f64).ceil() as usize)
            .clamp((done + 1).min(detect.most_blocks), detect.most_blocks)
    }

    /// The smallest effect that a half could see.
    fn seen(&self, trials: &Trials, stage: Stage) -> Option<f64> {
        let baseline = logs(trials.blocks(Stage::Baseline), self.metric);
        match stage {
            Stage::Baseline => detectable(&baseline, &baseline),
            Stage::Comparison => detectable(
                &baseline,
                &logs(trials.blocks(Stage::Comparison), self.metric),
            ),
        }
    }
}
