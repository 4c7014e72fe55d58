//! The parts of a run in time: the ramp up, the warm-up, the measured part, the ramp down.

use std::time::Duration;

use crate::plan::Process;
use crate::{Error, Pace, Plan, Stop, recorded};

impl Plan {
    /// Time before the measured part, where that is given: the ramp and the warm-up.
    pub fn unmeasured(&self) -> Duration {
        self.ramp_up.saturating_add(self.warmup)
    }

    /// How long the arrivals last, if they are recorded.
    pub fn recording(&self) -> Option<Duration> {
        match &self.schedule.as_ref()?.process {
            Process::Recorded(times) => Some(Duration::from_nanos(recorded::length(times))),
            Process::Constant | Process::Poisson(_) => None,
        }
    }

    /// Requests a second that the schedule asks for.
    pub fn offered(&self) -> Option<f64> {
        let rate = self.schedule.as_ref()?.rate;
        Some(rate * self.session.unwrap_or(1) as f64)
    }

    /// Whether connections belong to users who pause or make several requests, instead of taking
    /// any due request.
    pub(crate) fn has_users(&self) -> bool {
        self.pace != Pace::AtOnce || self.has_sessions()
    }

    /// Whether a rate is one of sessions, which make requests of their own.
    pub fn has_sessions(&self) -> bool {
        self.session.is_some() || self.workload.is_some()
    }

    /// Refuses what contradicts itself about pauses, sessions and phases.
    pub(crate) fn check_phases(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        self.pace.check()?;
        if self.has_users() && self.depth > 1 {
            return refuse(
                "think time, cycles and sessions have one request at a time: no pipelining",
            );
        }
        if self.workload.is_some() && (self.pace != Pace::AtOnce || self.session.is_some()) {
            return refuse("a workload has its own sessions and pauses");
        }
        if self.workload.is_some() && (self.expect_body.is_some() || self.expect_sha256.is_some()) {
            return refuse("a workload has its own checks of bodies");
        }
        match self.session {
            Some(0) => return refuse("a session must make at least one request"),
            Some(n) if n > 1_000_000 => {
                return refuse("a session may make a million requests at most");
            }
            Some(_) if self.schedule.is_none() => {
                return refuse("sessions arrive at a rate: give one");
            }
            None if self.schedule.is_some() && self.pace != Pace::AtOnce => {
                return refuse(
                    "a schedule says when each request is due: think time and cycles need sessions with it",
                );
            }
            _ => {}
        }
        if self.schedule.is_some() && matches!(self.pace, Pace::Cycle(_)) {
            return refuse("sessions that arrive at a rate have think time, not cycles");
        }
        if let Some(recording) = self.recording() {
            if !self.ramp_up.is_zero() {
                return refuse("recorded arrivals have their own times: no ramp");
            }
            if self.auto.is_some() {
                return refuse(
                    "recorded arrivals have their own length, which the statistics cannot choose",
                );
            }
            if self.warmup.saturating_add(self.ramp_down) >= recording {
                return Err(Error::Plan(format!(
                    "the recorded arrivals last {recording:?}, which is not longer than the warm-up of {:?} and the ramp-down of {:?}",
                    self.warmup, self.ramp_down
                )));
            }
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
    use crate::{Auto, Schedule, Think};

    #[test]
    fn contradictions_are_refused() {
        let rate = |process| {
            Some(Schedule {
                rate: 10.0,
                process,
                deadline: None,
            })
        };
        let plan = Plan::new("http://h/");
        let think = Pace::Think(Think::Constant(Duration::from_secs(1)));
        let cycle = Pace::Cycle(Duration::from_secs(1));
        let open = Plan {
            schedule: rate(Process::Constant),
            ..plan.clone()
        };
        let recorded = Plan {
            schedule: rate(Process::Recorded([0, 1_000_000_000].into())),
            ..plan.clone()
        };
        let session = Some(3);
        let second = Duration::from_secs(1);
        for (bad, word) in [
            (
                Plan {
                    pace: think,
                    depth: 2,
                    ..plan.clone()
                },
                "pipelining",
            ),
            (
                Plan {
                    session,
                    ..plan.clone()
                },
                "rate",
            ),
            (
                Plan {
                    session: Some(0),
                    ..open.clone()
                },
                "at least one",
            ),
            (
                Plan {
                    pace: think,
                    ..open.clone()
                },
                "need sessions",
            ),
            (
                Plan {
                    pace: cycle,
                    session,
                    ..open.clone()
                },
                "not cycles",
            ),
            (
                Plan {
                    ramp_up: second,
                    ..recorded.clone()
                },
                "no ramp",
            ),
            (
                Plan {
                    warmup: 2 * second,
                    ..recorded.clone()
                },
                "not longer",
            ),
            (
                Plan {
                    auto: Some(Auto::default()),
                    ..recorded.clone()
                },
                "own length",
            ),
            (
                Plan {
                    ramp_down: 2 * second,
                    ..recorded.clone()
                },
                "ramp-down of 2s",
            ),
            (
                Plan {
                    ramp_down: second,
                    stop: Stop::Requests(1),
                    ..plan.clone()
                },
                "give a duration",
            ),
            (
                Plan {
                    auto: Some(Auto::default()),
                    stop: Stop::Requests(1),
                    ..plan.clone()
                },
                "either",
            ),
        ] {
            let error = bad.check_phases().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        for good in [
            Plan {
                pace: think,
                session,
                ..open.clone()
            },
            Plan {
                pace: cycle,
                ..plan
            },
            Plan {
                session,
                ..recorded
            },
            open,
        ] {
            assert!(good.check_phases().is_ok(), "{good:?}");
        }
    }
}
