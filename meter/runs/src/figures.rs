//! The parts of a run's figures that only some runs have.

use serde::{Deserialize, Serialize};

use crate::Host;
use base_probe::{Probe, Summary};
use millrace_client::Errors;
use millrace_stats::analysis::demand::Demands;
use millrace_stats::{Hdr, Latency, Timeline, Verdict};

/// Streams that were held beside the load of a run, and writes that they told of; from the
/// beginning of the run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamFigures {
    /// Streams that the plan asked for.
    pub asked: u64,
    /// Streams whose response began.
    pub opened: u64,
    /// Streams that ended before the run did.
    pub ended: u64,
    /// Writes with a good response.
    pub writes: u64,
    /// Writes with another response, or with none.
    pub failed_writes: u64,
    /// Events that no write was waiting for.
    pub others: u64,
    /// Streams without an event within the timeout after a write, summed over writes.
    pub missed: u64,
    /// From the send of a write to the first event of each stream after it.
    pub event_us: Option<Latency>,
    /// The times behind `event_us`.
    pub times: Option<Hdr>,
}

/// One class of requests of a workload, measured by itself. The classes add up to the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// Its name in the plan.
    pub name: String,
    /// Requests issued.
    pub issued: u64,
    /// Requests with a complete response, good or not.
    pub requests: u64,
    /// Requests with a good response.
    pub good: u64,
    /// Requests that will not be answered.
    pub failed: u64,
    /// Requests that were past their deadline before they could be sent.
    pub shed: u64,
    /// Failed requests by kind, without unsolicited bytes; empty in results of older versions.
    #[serde(default)]
    pub errors: Errors,
    /// Bytes of the responses, heads included.
    pub bytes: u64,
    /// From the scheduled send to the complete response, of good responses; only of an open loop.
    pub response_us: Option<Latency>,
    /// From the actual send to the complete response, of good responses.
    pub service_us: Option<Latency>,
    /// From the scheduled to the actual send, of all that were sent; only of an open loop.
    pub send_lag_us: Option<Latency>,
    /// The times behind `response_us`, so that runs can be merged.
    pub response: Option<Hdr>,
    /// The times behind `service_us`.
    pub service: Option<Hdr>,
    /// The times behind `send_lag_us`.
    pub send_lag: Option<Hdr>,
    /// Figures over time, in intervals that may be longer than the run's; empty in results of older
    /// versions.
    #[serde(default)]
    pub series: Timeline,
}

/// The sessions of a run, counted by their measured requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// Sessions a second of the schedule; `None` for a closed loop.
    pub offered_rate: Option<f64>,
    /// Sessions whose first request was measured.
    pub started: u64,
    /// Sessions whose last request was measured and had a good response.
    pub completed: u64,
    /// Sessions that ended early with a measured request that had no good response.
    pub broken_off: u64,
}

/// The load that went on after the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RampDown {
    /// Its length by plan.
    pub length_s: f64,
    /// Requests that were issued in it. They are in no other figure.
    pub requests: u64,
}

/// The pauses between requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// The requested pauses, in words.
    pub asked: String,
    /// Mean of the pauses before measured requests, as they were planned.
    pub mean_us: f64,
    /// Measured requests whose response arrived after the next request was due; only of cycles.
    pub missed_cycles: u64,
}

/// The results of a probe for a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// The measured part; `None` if it has fewer than two samples.
    pub summary: Option<Summary>,
    /// The amount that one request took of each resource.
    pub demands: Option<Demands>,
    /// When the measured part began, by the clock of `samples`.
    pub began_ns: u64,
    /// Everything that was sampled.
    pub samples: Probe,
}

/// One of the runs that were merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedRun {
    /// Its command line.
    pub command: String,
    /// When its measured part began, in microseconds since 1970 (UTC), by its machine's clock.
    pub started_unix_us: u64,
    /// Length of its measured part.
    pub duration_s: f64,
    /// Its complete responses.
    pub requests: u64,
    /// Complete responses a second.
    pub achieved_rate: f64,
    /// The verdict on whether to believe it.
    pub verdict: Verdict,
    /// The machine of its client.
    pub host: Host,
}
