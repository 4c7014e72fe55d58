//! What is wrong with a plan, as far as it can be seen before anything is sent.

use std::time::Duration;

use super::{Plan, Stop};
use crate::transport::Trust;
use crate::url::{self, Url};
use crate::{Error, spin};

/// Requests that may wait for a connection in an open loop; some 24 bytes each.
const WAITING: f64 = 20e6;

impl Plan {
    /// The plan's URL, after a check of everything that can be checked without a network.
    ///
    /// # Errors
    /// The plan contradicts itself or cannot be carried out here.
    pub fn check(&self) -> Result<Url, Error> {
        let url = Url::parse(&self.url)?;
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
        if self.depth > 1 && !self.keep_alive {
            return refuse("pipelining needs keep-alive");
        }
        if self.per_connection == Some(0) {
            return refuse("a connection must serve at least one request");
        }
        if self.per_connection.is_some() && !self.keep_alive {
            return refuse("a number of requests for each connection needs keep-alive");
        }
        if self.threads > 1024 {
            return refuse("more than 1024 threads are asked for");
        }
        if self.timeout < Duration::from_millis(1) {
            return refuse("the timeout must be at least 1 ms");
        }
        match self.stop {
            Stop::Requests(0) => return refuse("at least one request is needed"),
            Stop::Duration(Duration::ZERO) => {
                return refuse("the duration must be longer than nothing");
            }
            Stop::Requests(_) | Stop::Duration(_) => {}
        }
        if let Some(schedule) = &self.schedule {
            if !(schedule.rate > 0.0 && schedule.rate <= 1e8) {
                return refuse("the rate must be above 0 and at most 100 million a second");
            }
            if schedule.deadline == Some(Duration::ZERO) {
                return refuse("a deadline of nothing would shed every request");
            }
            let patience = schedule
                .deadline
                .map_or(self.timeout, |d| d.min(self.timeout));
            if schedule.rate * patience.as_secs_f64() > WAITING {
                return refuse(
                    "more than 20 million requests could wait until their timeout: lower the rate or the timeout, or give a deadline",
                );
            }
        }
        if self.cores.as_ref().is_some_and(Vec::is_empty) {
            return refuse("the list of cores is empty");
        }
        spin::check(self, &[])?;
        self.check_phases()?;
        self.check_http2()?;
        self.check_reaching(&url)?;
        Ok(url)
    }

    /// Refuses what does not go together with HTTP/2.
    fn check_http2(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.http2 && self.workload.is_some() {
            return refuse("workloads are sent over HTTP/1.1 only, not over HTTP/2");
        }
        if self.http2 && (self.throttle_down.is_some() || self.throttle_up.is_some()) {
            return refuse("bandwidth is limited for HTTP/1.1 only: HTTP/2 has windows of its own");
        }
        Ok(())
    }

    /// The part of the check that is about how the server is reached.
    fn check_reaching(&self, url: &Url) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if self.unix_socket.is_some() && self.connect_to.is_some() {
            return refuse("connections go through a Unix socket or to another address, not both");
        }
        if let Some(other) = &self.connect_to {
            url::host_and_port(other)?;
        }
        if self.trust != Trust::System && !url.secure {
            return refuse("which certificates are accepted only matters for an https:// URL");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, Schedule};

    #[test]
    fn a_plan_that_cannot_be_carried_out_is_refused() {
        let good = Plan::new("http://h/");
        assert!(good.check().is_ok());
        for bad in [
            Plan {
                connections: 0,
                ..good.clone()
            },
            Plan {
                depth: 0,
                ..good.clone()
            },
            Plan {
                depth: 2,
                keep_alive: false,
                ..good.clone()
            },
            Plan {
                per_connection: Some(0),
                ..good.clone()
            },
            Plan {
                per_connection: Some(2),
                keep_alive: false,
                ..good.clone()
            },
            Plan {
                stop: Stop::Requests(0),
                ..good.clone()
            },
            Plan {
                stop: Stop::Duration(Duration::ZERO),
                ..good.clone()
            },
            Plan {
                timeout: Duration::ZERO,
                ..good.clone()
            },
            Plan {
                cores: Some(Vec::new()),
                ..good.clone()
            },
            Plan {
                url: "ftp://h/".into(),
                ..good.clone()
            },
            Plan {
                trust: Trust::Anyone,
                ..good.clone()
            },
            Plan {
                http2: true,
                throttle_up: Some("1K".parse().unwrap()),
                ..good.clone()
            },
            Plan {
                connect_to: Some("nowhere".into()),
                ..good.clone()
            },
            Plan {
                schedule: Some(Schedule {
                    rate: 1e7,
                    process: Process::Constant,
                    deadline: None,
                }),
                ..good.clone()
            },
            Plan {
                connect_to: Some("h:1".into()),
                unix_socket: Some("/s".into()),
                ..good
            },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
