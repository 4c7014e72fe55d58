//! What is wrong with a plan, as far as it can be seen before anything is sent.
//!
//! Each part checks itself. This module refuses parts that contradict each other.

use super::Plan;
use crate::url::Url;
use crate::{Error, Pace, spin};

/// Requests that may wait for a connection in an open loop; some 24 bytes each.
const WAITING: f64 = 20e6;

impl Plan {
    /// The URL of the server, after a check of everything that can be checked without a network.
    ///
    /// # Errors
    /// The plan contradicts itself or cannot be carried out here.
    pub fn check(&self) -> Result<Url, Error> {
        let url = self.target.check()?;
        self.load.check()?;
        self.request.check()?;
        self.length.check()?;
        self.check_connections()?;
        self.check_workload()?;
        self.check_recording()?;
        let probed = self.conditions.probe.iter();
        let probed: Vec<i32> = probed.flat_map(|probe| &probe.pids).copied().collect();
        spin::check(&self.load, &probed)?;
        Ok(url)
    }

    /// The highest rate of a schedule without a deadline: at a higher one more requests could wait
    /// until their timeout than a run keeps.
    pub fn highest_rate(&self) -> f64 {
        (WAITING / self.request.timeout.as_secs_f64()).floor()
    }

    /// Refuses a load that these requests cannot make.
    fn check_connections(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.load.depth > 1 && !self.request.keep_alive {
            return refuse("pipelining needs keep-alive");
        }
        if self.load.depth > 1 && self.has_users() {
            return refuse(
                "think time, cycles and sessions have one request at a time: no pipelining",
            );
        }
        let Some(schedule) = &self.load.schedule else {
            return Ok(());
        };
        let timeout = self.request.timeout;
        let patience = schedule.deadline.map_or(timeout, |d| d.min(timeout));
        if schedule.rate * patience.as_secs_f64() > WAITING {
            return refuse(
                "more than 20 million requests could wait until their timeout: lower the rate or the timeout, or give a deadline",
            );
        }
        Ok(())
    }

    /// Refuses what a workload decides itself, or cannot do.
    fn check_workload(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.request.workload.is_none() {
            return Ok(());
        }
        if self.load.pace != Pace::AtOnce || self.load.session.is_some() {
            return refuse("a workload has its own sessions and pauses");
        }
        if self.target.http2 {
            return refuse("workloads are sent over HTTP/1.1 only, not over HTTP/2");
        }
        Ok(())
    }

    /// Refuses parts of a run that recorded arrivals leave no room for.
    fn check_recording(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        let Some(recording) = self.load.recording() else {
            return Ok(());
        };
        let length = &self.length;
        if !length.ramp_up.is_zero() {
            return refuse("recorded arrivals have their own times: no ramp");
        }
        if length.auto.is_some() {
            return refuse(
                "recorded arrivals have their own length, which the statistics cannot choose",
            );
        }
        if length.warmup.saturating_add(length.ramp_down) >= recording {
            return Err(Error::Plan(format!(
                "the recorded arrivals last {recording:?}, which is not longer than the warm-up of {:?} and the ramp-down of {:?}",
                length.warmup, length.ramp_down
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Auto, Process, Schedule, Think};

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        assert!(Plan::new("http://h/").check().is_ok());
        let refused = |change: fn(&mut Plan), word: &str| {
            let bad = Plan::new("http://h/").with(change);
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(|plan| plan.load.connections = 0, "at least one connection");
        refused(
            |plan| {
                plan.load.depth = 2;
                plan.request.keep_alive = false;
            },
            "keep-alive",
        );
        refused(
            |plan| {
                plan.load.depth = 2;
                plan.load.pace = Pace::Think(Think::Constant(Duration::from_secs(1)));
            },
            "no pipelining",
        );
        refused(
            |plan| plan.load.schedule = Some(Schedule::constant(1e7)),
            "could wait",
        );
    }

    #[test]
    fn recorded_arrivals_have_their_own_length() {
        let recorded = Plan::new("http://h/").with(|plan| {
            let process = Process::Recorded([0, 1_000_000_000].into());
            plan.load.schedule = Some(Schedule::new(10.0, process));
        });
        let sessions = |plan: &mut Plan| plan.load.session = Some(3);
        assert!(recorded.clone().with(sessions).check().is_ok());
        let two = Duration::from_secs(2);
        for (bad, word) in [
            (
                recorded.clone().with(|plan| plan.length.ramp_up = two),
                "no ramp",
            ),
            (
                recorded.clone().with(|plan| plan.length.warmup = two),
                "not longer",
            ),
            (
                recorded
                    .clone()
                    .with(|plan| plan.length.auto = Some(Auto::default())),
                "own length",
            ),
            (
                recorded.with(|plan| plan.length.ramp_down = two),
                "ramp-down of 2s",
            ),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
