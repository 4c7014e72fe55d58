//! What is sampled on the host beside a run.

use std::time::Duration;

/// Sampling during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Time between two samples, from 100 ms to 1 s.
    pub interval: Duration,
    /// The server's processes, by their ids.
    pub pids: Vec<i32>,
    /// The server's processes, by the ports that they listen on. Without `ports` and `pids` the
    /// port of the URL is taken, if the URL's address belongs to this machine.
    pub ports: Vec<u16>,
    /// True if a missing process of `pids` or listener of `ports` is an error.
    pub required: bool,
    /// True to open counters of `perf_event_open` for the server's threads.
    pub perf: bool,
}

impl Default for ProbePlan {
    /// Four samples a second of the processes that listen on the URL's port.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
            pids: Vec::new(),
            ports: Vec::new(),
            required: true,
            perf: true,
        }
    }
}
