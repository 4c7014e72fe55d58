//! When the requests of an open loop are due.

use std::sync::Arc;
use std::time::Duration;

use crate::Error;

/// When requests are due. A due request waits for a free connection if there is none, and its
/// response time counts from when it was due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Requests a second, over all threads.
    pub rate: f64,
    /// How they are spread over a second.
    pub process: Process,
    /// A request that is not sent within this time is shed: it is never sent, and counts as bad.
    pub deadline: Option<Duration>,
}

/// How arrivals are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// At equal distances.
    Constant,
    /// Independent of each other, as from many users (a Poisson process); the same seed gives the
    /// same times.
    Poisson(u64),
    /// At these times in nanoseconds from the beginning of the run, in order;
    /// [`Schedule::recorded`] makes them.
    Recorded(Arc<[u64]>),
}

impl Process {
    /// Returns the process with other times for another `n`, if it is random.
    #[must_use]
    pub fn reseeded(&self, n: u64) -> Self {
        match self {
            Self::Poisson(seed) => Self::Poisson(seed.wrapping_add(n)),
            Self::Constant | Self::Recorded(_) => self.clone(),
        }
    }
}

impl Schedule {
    /// Requests at this rate, spread as `process` says, without a deadline.
    pub fn new(rate: f64, process: Process) -> Self {
        Self {
            rate,
            process,
            deadline: None,
        }
    }

    /// Requests at equal distances, without a deadline.
    pub fn constant(rate: f64) -> Self {
        Self::new(rate, Process::Constant)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if !(self.rate > 0.0 && self.rate <= 1e8) {
            return refuse("the rate must be above 0 and at most 100 million a second");
        }
        if self.deadline == Some(Duration::ZERO) {
            return refuse("a deadline of nothing would shed every request");
        }
        Ok(())
    }
}
