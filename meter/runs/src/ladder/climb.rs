//! Going up levels: the one loop of sweeps, searches for a capacity and diagnoses.
//!
//! A climb runs one level after the other and decides whether there is a next one. The caller says
//! which level comes next, and what the runs mean together.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Run;
use millrace_client::{Error, Plan, Progress};

/// Levels that are run one after the other.
pub(crate) struct Climb<'a> {
    stop: &'a AtomicBool,
    done: usize,
    failure: Option<Error>,
}

/// Result of one level.
pub(crate) struct LevelRun {
    pub(crate) run: Run,
    /// False if the user stopped the climb during this run.
    pub(crate) complete: bool,
}

impl<'a> Climb<'a> {
    /// A climb that ends early when `stop` is set.
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self {
            stop,
            done: 0,
            failure: None,
        }
    }

    /// Runs the next level. None: the climb is over, because the user stopped it or this level
    /// could not be run; [`Self::failure`] says why.
    ///
    /// # Errors
    /// The first level could not be run.
    pub(crate) fn level(
        &mut self,
        mut plan: Plan,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Option<LevelRun>, Error> {
        if self.is_over() {
            return Ok(None);
        }
        // No command line makes one level alone.
        plan.conditions.command.clear();
        match crate::run(&plan, Some(progress), self.stop) {
            Ok(run) => {
                self.done += 1;
                let complete = !self.stop.load(Ordering::Relaxed);
                Ok(Some(LevelRun { run, complete }))
            }
            Err(error) if self.done == 0 => Err(error),
            Err(error) => {
                self.failure = Some(error);
                Ok(None)
            }
        }
    }

    /// Why a level after the first could not be run.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_client::{NullPlan, NullServer, Stop};

    #[test]
    fn a_climb_ends_with_the_first_level_that_cannot_be_run() {
        let server = NullServer::start(&NullPlan::default()).unwrap();
        let stop = AtomicBool::new(false);
        let good = Plan::new(server.url()).with(|plan| plan.length.stop = Stop::Requests(3));
        let bad = good.clone().with(|plan| plan.load.connections = 0);
        let mut quiet = |_: &Progress| ();
        assert!(Climb::new(&stop).level(bad.clone(), &mut quiet).is_err());

        let mut climb = Climb::new(&stop);
        let first = climb.level(good.clone(), &mut quiet).unwrap().unwrap();
        assert!(first.complete && first.run.command.is_empty());
        assert!(climb.level(bad, &mut quiet).unwrap().is_none());
        assert!(climb.level(good.clone(), &mut quiet).unwrap().is_none());
        assert!(climb.failure().is_some());

        stop.store(true, Ordering::Relaxed);
        let mut climb = Climb::new(&stop);
        assert!(climb.level(good, &mut quiet).unwrap().is_none());
        assert!(climb.failure().is_none());
        drop(server.stop());
    }
}
