//! What to measure: the plan of one run.

mod check;
mod probe;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::auto::Auto;
use crate::pace::Pace;
use crate::transport::{Bandwidth, Trust};
use crate::{Workload, limits, spin};
use millrace_stats::Calibration;

pub use probe::ProbePlan;

/// One run. In a closed loop every connection sends its next request when the answer to the last one is complete; with a
/// schedule requests are sent when it says so, whatever the server does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server and, without `urls`, the target: `http://host[:port][/path]`.
    pub url: String,
    /// Targets to choose from: paths, or URLs on the same server. Empty: only `url`.
    pub urls: Vec<String>,
    /// How a target is chosen from `urls`.
    pub order: Order,
    /// Connections, all open at the same time.
    pub connections: usize,
    /// When the measured part ends. Its requests in flight are then followed to their answer or timeout.
    pub stop: Stop,
    /// Time for which requests are sent but not measured.
    pub warmup: Duration,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Requests that a connection serves before a new one takes its place; no limit if none.
    pub per_connection: Option<u64>,
    /// Requests in flight on one connection (pipelining, or streams of HTTP/2), at least 1.
    pub depth: usize,
    /// Client threads; 0 is one for each core, never more than connections.
    pub threads: usize,
    /// Cores to pin the threads to, in turn.
    pub cores: Option<Vec<usize>>,
    /// The threads never sleep while the run goes on: each takes a whole core, and no server pays for waking it.
    pub spin: bool,
    /// Longest wait for a connection, and for a complete answer.
    pub timeout: Duration,
    /// Further request fields. `Host` and `User-Agent` replace the client's own.
    pub headers: Vec<(String, String)>,
    /// The request method.
    pub method: String,
    /// The request body; empty is none.
    pub body: Vec<u8>,
    /// Statuses that count as good; empty is 200 to 399.
    pub expect: Vec<u16>,
    /// When requests are to be sent: an open loop. Without it the loop is closed.
    pub schedule: Option<Schedule>,

    // Pauses, sessions and phases.
    /// What lies between the requests of a connection, or with `session` of a session.
    pub pace: Pace,
    /// A partly open loop: what the schedule says is when sessions begin, and each makes this many requests.
    pub session: Option<u64>,
    /// Time before the warm-up in which the load rises in proportion: the rate, or the connections of a closed loop.
    pub ramp_up: Duration,
    /// Time after the measured part for which requests are sent on and not measured, so that the last answers come from a
    /// server under load. It needs a measured part with an end in time.
    pub ramp_down: Duration,
    /// The statistics decide when the warm-up and the measured part end; `warmup` and `stop` are not looked at.
    pub auto: Option<Auto>,
    /// What is asked for and in which order, instead of `urls`, `method`, `headers`, `body` and `expect`: sessions one
    /// after the other on each connection, or with a schedule as it says.
    pub workload: Option<Arc<Workload>>,

    /// HTTP/2 instead of HTTP/1.1: over TLS by ALPN, in clear text because the server is known to speak it. `depth` is then
    /// the number of streams at a time on one connection, of which the server may allow fewer.
    pub http2: bool,

    // How the server is reached, and what is demanded of its answers.
    /// Connections go through this Unix socket; the URL's host is only named in the request.
    pub unix_socket: Option<PathBuf>,
    /// Connections go to this `HOST:PORT`; the URL's host is what the request and TLS name.
    pub connect_to: Option<String>,
    /// Which certificates are accepted of an `https://` server.
    pub trust: Trust,
    /// Most that a connection receives. What the kernel or TLS adds counts as well, handshakes do not.
    pub throttle_down: Option<Bandwidth>,
    /// Most that a connection sends.
    pub throttle_up: Option<Bandwidth>,
    /// A regular expression that must match somewhere in the body of a good answer (up to 16 MiB, with many connections less).
    pub expect_body: Option<String>,
    /// The SHA-256 digest that the body of a good answer must have, in hexadecimal.
    pub expect_sha256: Option<String>,

    // What the run is judged by, and what is watched beside it.
    /// What the client itself can do, from `calibrate` of `millrace-runs`.
    pub calibration: Option<Calibration>,
    /// What is sampled on this machine while the run lasts; nothing if none.
    pub probe: Option<ProbePlan>,
    /// The URL of a PostgreSQL server to watch meanwhile.
    pub postgres: Option<String>,
}

/// When the requests of an open loop are to be sent. A request that is due waits for a connection with room if there is none, and
/// its response time counts from when it was due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Requests a second, over all threads.
    pub rate: f64,
    /// How they are spread over a second.
    pub process: Process,
    /// A request that could not be sent within this time is shed: it is not sent any more, and counts as bad.
    pub deadline: Option<Duration>,
}

/// How arrivals are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// At equal distances.
    Constant,
    /// Independent of each other, as from many users (a Poisson process); the same seed gives the same times.
    Poisson(u64),
    /// At these times in nanoseconds from the beginning of the run, in order; [`Schedule::recorded`] makes them.
    Recorded(Arc<[u64]>),
}

impl Process {
    /// The same process with other times for another `n`, if it is random.
    #[must_use]
    pub fn reseeded(&self, n: u64) -> Self {
        match self {
            Self::Poisson(seed) => Self::Poisson(seed.wrapping_add(n)),
            Self::Constant | Self::Recorded(_) => self.clone(),
        }
    }
}

/// How a target is chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Uniformly at random; the same seed chooses the same targets.
    Random(u64),
    /// One after the other, from the beginning again after the last.
    Sequence,
}

/// When the measured part of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    Duration(Duration),
}

impl Plan {
    /// One connection with keep-alive for ten seconds: the defaults of every other field.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            urls: Vec::new(),
            order: Order::Sequence,
            connections: 1,
            stop: Stop::Duration(Duration::from_secs(10)),
            warmup: Duration::ZERO,
            keep_alive: true,
            per_connection: None,
            depth: 1,
            threads: 0,
            cores: None,
            spin: false,
            timeout: Duration::from_secs(5),
            headers: Vec::new(),
            method: "GET".to_owned(),
            body: Vec::new(),
            expect: Vec::new(),
            schedule: None,
            pace: Pace::AtOnce,
            session: None,
            ramp_up: Duration::ZERO,
            ramp_down: Duration::ZERO,
            auto: None,
            workload: None,
            http2: false,
            unix_socket: None,
            connect_to: None,
            trust: Trust::System,
            throttle_down: None,
            throttle_up: None,
            expect_body: None,
            expect_sha256: None,
            calibration: None,
            probe: None,
            postgres: None,
        }
    }

    /// The lines of a file of URLs, without empty ones and those that begin with `#`.
    pub fn urls_from(text: &str) -> Vec<String> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    /// What is to be said before the run: resources that it may use up on the way, and those that it takes from the server.
    pub fn notes(&self) -> Vec<String> {
        let ports = limits::source_ports_over_time(self);
        ports.into_iter().chain(spin::note(self)).collect()
    }

    /// Whether `status` counts as a good answer.
    pub(crate) fn is_good(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            (200..400).contains(&status)
        } else {
            self.expect.contains(&status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_urls_may_have_comments() {
        assert_eq!(Plan::urls_from("# all\n/a\r\n\n  /b \n"), ["/a", "/b"]);
    }

    #[test]
    fn expected_statuses_replace_the_usual_ones() {
        let plan = Plan::new("http://h/");
        assert!(plan.is_good(200) && plan.is_good(304) && !plan.is_good(404) && !plan.is_good(199));
        let only = Plan {
            expect: vec![404],
            ..plan
        };
        assert!(only.is_good(404) && !only.is_good(200));
    }
}
