//! How long the parts of a run are: ramp up, warm-up, measured part, ramp down.

use std::time::Duration;

use crate::{Auto, Error};

/// The parts of a run in time.
#[derive(Clone, Debug)]
pub struct LengthPlan {
    /// When the measured part ends. Requests in flight then still end with their response or their
    /// timeout.
    pub stop: Stop,
    /// Time for which requests are sent but not measured.
    pub warmup: Duration,
    /// Time before the warm-up in which the load rises in proportion: the rate, or the connections
    /// of a closed loop.
    pub ramp_up: Duration,
    /// Time after the measured part for which requests are sent but not measured, so that the
    /// server is under load until the last measured response. Needs a measured part that ends
    /// after a time.
    pub ramp_down: Duration,
    /// The statistics decide when the warm-up and the measured part end. `warmup` and `stop` are
    /// then ignored.
    pub auto: Option<Auto>,
}

/// When the measured part of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    Duration(Duration),
}

impl Default for LengthPlan {
    /// Ten seconds, all of them measured.
    fn default() -> Self {
        Self {
            stop: Stop::Duration(Duration::from_secs(10)),
            warmup: Duration::ZERO,
            ramp_up: Duration::ZERO,
            ramp_down: Duration::ZERO,
            auto: None,
        }
    }
}

impl LengthPlan {
    /// Time before the measured part, if it is known: ramp up and warm-up.
    pub fn unmeasured(&self) -> Duration {
        self.ramp_up.saturating_add(self.warmup)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        match self.stop {
            Stop::Requests(0) => return refuse("at least one request is needed"),
            Stop::Duration(Duration::ZERO) => {
                return refuse("the duration must be longer than nothing");
            }
            Stop::Requests(_) | Stop::Duration(_) => {}
        }
        if !self.ramp_down.is_zero() && matches!(self.stop, Stop::Requests(_)) {
            return refuse(
                "a ramp-down follows a measured time: give a duration, not a number of requests",
            );
        }
        match (&self.auto, self.stop) {
            (Some(_), Stop::Requests(_)) => {
                refuse("either a number of requests or the statistics decide when a run ends")
            }
            (Some(auto), Stop::Duration(_)) => auto.check(),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_contradicts_itself_is_refused() {
        assert!(LengthPlan::default().check().is_ok());
        let counted = LengthPlan {
            stop: Stop::Requests(1),
            ..LengthPlan::default()
        };
        let stopping = |stop| LengthPlan {
            stop,
            ..LengthPlan::default()
        };
        for (bad, word) in [
            (stopping(Stop::Requests(0)), "at least one"),
            (stopping(Stop::Duration(Duration::ZERO)), "longer"),
            (
                LengthPlan {
                    ramp_down: Duration::from_secs(1),
                    ..counted.clone()
                },
                "give a duration",
            ),
            (
                LengthPlan {
                    auto: Some(Auto::default()),
                    ..counted
                },
                "either",
            ),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
