//! How many connections send, and when each sends.

use std::time::Duration;

use super::{Process, Schedule};
use crate::{Error, Pace, limits, recorded};

/// The load of a run. In a closed loop every connection sends its next request when the response to
/// the last one is complete. With a schedule requests are sent when they are due, however slow the
/// server is.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Connections, all open at the same time.
    pub connections: usize,
    /// Requests in flight on one connection (pipelining, or streams of HTTP/2), at least 1.
    pub depth: usize,
    /// Client threads. 0: one for each core. There are never more threads than connections.
    pub threads: usize,
    /// Cores to pin the threads to, in turn.
    pub cores: Option<Vec<usize>>,
    /// Threads never sleep during the run: each takes a whole core, and the server never pays for
    /// waking a thread.
    pub spin: bool,
    /// When requests are due: an open loop. None: a closed loop.
    pub schedule: Option<Schedule>,
    /// The pause between the requests of a connection, or with `session` of a session.
    pub pace: Pace,
    /// A partly open loop: the schedule begins sessions, and each makes this many requests.
    pub session: Option<u64>,
}

impl Default for LoadPlan {
    /// A closed loop on one connection.
    fn default() -> Self {
        Self {
            connections: 1,
            depth: 1,
            threads: 0,
            cores: None,
            spin: false,
            schedule: None,
            pace: Pace::AtOnce,
            session: None,
        }
    }
}

impl LoadPlan {
    /// Threads that carry out this load.
    pub fn thread_count(&self) -> usize {
        let threads = if self.threads == 0 {
            self.cores.as_ref().map_or_else(limits::cores, Vec::len)
        } else {
            self.threads
        };
        threads.min(self.connections)
    }

    /// Requests a second that the schedule asks for.
    pub fn offered(&self) -> Option<f64> {
        let rate = self.schedule.as_ref()?.rate;
        Some(rate * self.session.unwrap_or(1) as f64)
    }

    /// How long the arrivals last, if they are recorded.
    pub fn recording(&self) -> Option<Duration> {
        match &self.schedule.as_ref()?.process {
            Process::Recorded(times) => Some(Duration::from_nanos(recorded::length(times))),
            Process::Constant | Process::Poisson(_) => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.connections == 0 {
            return refuse("at least one connection is needed");
        }
        if self.connections > 1_000_000 {
            return refuse("more than a million connections are asked for");
        }
        if self.depth == 0 || self.depth > 10_000 {
            return refuse("the pipelining depth must be from 1 to 10000");
        }
        if self.threads > 1024 {
            return refuse("more than 1024 threads are asked for");
        }
        if self.cores.as_ref().is_some_and(Vec::is_empty) {
            return refuse("the list of cores is empty");
        }
        if let Some(schedule) = &self.schedule {
            schedule.check()?;
        }
        self.check_pauses()
    }

    /// Refuses pauses and sessions that contradict the schedule.
    fn check_pauses(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        self.pace.check()?;
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Think;

    fn closed() -> LoadPlan {
        LoadPlan::default()
    }

    fn open() -> LoadPlan {
        LoadPlan {
            schedule: Some(Schedule::constant(10.0)),
            ..closed()
        }
    }

    #[test]
    fn a_load_that_contradicts_itself_is_refused() {
        let think = Pace::Think(Think::Constant(Duration::from_secs(1)));
        let cycle = Pace::Cycle(Duration::from_secs(1));
        let session = Some(3);
        for (bad, word) in [
            (
                LoadPlan {
                    connections: 0,
                    ..closed()
                },
                "at least one connection",
            ),
            (
                LoadPlan {
                    depth: 0,
                    ..closed()
                },
                "depth",
            ),
            (
                LoadPlan {
                    cores: Some(Vec::new()),
                    ..closed()
                },
                "cores is empty",
            ),
            (
                LoadPlan {
                    session,
                    ..closed()
                },
                "at a rate",
            ),
            (
                LoadPlan {
                    session: Some(0),
                    ..open()
                },
                "at least one request",
            ),
            (
                LoadPlan {
                    pace: think,
                    ..open()
                },
                "need sessions",
            ),
            (
                LoadPlan {
                    pace: cycle,
                    session,
                    ..open()
                },
                "not cycles",
            ),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        for good in [
            LoadPlan {
                pace: think,
                session,
                ..open()
            },
            LoadPlan {
                pace: cycle,
                ..closed()
            },
            open(),
        ] {
            assert!(good.check().is_ok(), "{good:?}");
        }
    }
}
