//! The result of a run, as it is stored and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ClassFigures, Host, MergedRun, Pauses, Postgres, Probed, RampDown, Sessions, StreamFigures,
};
use millrace_client::{AutoFigures, Errors};
use millrace_stats::hdr::Histograms;
use millrace_stats::{
    Accounting, Backlog, Bucket, Calibration, Finding, Latencies, Little, Quantile, Timeline,
    Verdict,
};

/// Rule that decides when a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loop {
    /// The response to the request before.
    #[default]
    Closed,
    /// A schedule, regardless of the server.
    Open,
}

/// The version of HTTP that was spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    #[default]
    #[serde(rename = "HTTP/1.1")]
    Http1,
    /// HTTP/2 (RFC 9113).
    #[serde(rename = "HTTP/2")]
    Http2,
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}

/// One measured run. Its JSON is the format of `millrace load --json`; times are in the unit of
/// their name.
///
/// The default is an empty run: a closed loop without a request, which is `INVALID`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Verdict on the result.
    pub verdict: Verdict,
    /// Reasons against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// True if it is `INVALID` only because the client was disturbed: the same run may be valid
    /// another time.
    #[serde(default)]
    pub client_at_fault: bool,
    /// Open or closed loop.
    #[serde(rename = "loop")]
    pub kind: Loop,
    /// The version of HTTP; HTTP/1.1 in results that do not say.
    #[serde(default)]
    pub protocol: Protocol,
    /// The requested URL, or the URL of the server for a list.
    pub url: String,
    /// Length of the measured part: to its planned end, or to the last response of a counted run.
    pub duration_s: f64,
    /// Length of the warm-up before it, with the ramp.
    pub warmup_s: f64,
    /// Measured requests with a complete response, good or not.
    pub requests: u64,
    /// The account of every measured request.
    pub accounting: Accounting,
    /// Requests a second of the schedule; `None` for a closed loop.
    pub offered_rate: Option<f64>,
    /// The backlog that grew during the run, which fails every objective; `None` if the server kept
    /// up, or in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// Complete responses a second in the measured part, of any status, whenever their requests
    /// were sent.
    pub achieved_rate: f64,
    /// Good responses a second.
    pub good_rate: f64,
    /// Bytes of the responses of measured requests, heads included.
    pub bytes: u64,
    /// Failures by kind.
    pub errors: Errors,
    /// A detail of some errors, by kind.
    pub error_examples: BTreeMap<String, String>,
    /// The latencies.
    pub latency_us: Latencies,
    /// The connections.
    pub connections: Connections,
    /// Resources that the client itself used.
    pub client: ClientFigures,
    /// Little's law, where the run was long enough to check it.
    pub little: Option<Little>,
    /// The machine of the client.
    pub host: Host,
    /// The command line that repeats the run. Empty: no command line made it.
    pub command: String,
    /// The run over time.
    pub series: Timeline,
    /// Service times of good responses (in an open loop: response times) as a histogram with
    /// logarithmic bars.
    pub histogram: Vec<Bucket>,
    /// Percentile curve of the same times.
    pub percentiles: Vec<Quantile>,

    // The following are only in some runs.
    /// The classes of a workload, if it has more than one.
    #[serde(default)]
    pub classes: Vec<ClassFigures>,
    /// The sessions, if requests belong to some.
    pub sessions: Option<Sessions>,
    /// The pauses, if there were any between requests.
    pub pauses: Option<Pauses>,
    /// The load after the measured part, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_down: Option<RampDown>,
    /// Decisions of the statistics, if they were asked.
    pub auto: Option<AutoFigures>,
    /// The streams that were held beside the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamFigures>>,
    /// The PostgreSQL server behind it, where one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<Box<Postgres>>,
    /// The client's own limits, if they were measured before.
    pub calibration: Option<Calibration>,
    /// Remarks that do not speak against the run.
    #[serde(default)]
    pub notes: Vec<String>,
    /// When the measured part began, in microseconds since 1970 (UTC) by the clock of the client's
    /// machine; 0 if it was not stored.
    #[serde(default)]
    pub started_unix_us: u64,
    /// All measured times, so that runs can be merged.
    #[serde(default)]
    pub histograms: Histograms,
    /// The runs from which this one was merged; empty for a measured run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<MergedRun>,
    /// Samples of the server's machine, and what a request took there.
    pub probe: Option<Probed>,
    /// Limits of the server, the likeliest first. Empty if no limit is visible, `None` if nothing
    /// was probed.
    pub bottleneck: Option<Vec<Finding>>,
}

/// The connections of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Planned number of connections that are open at the same time.
    pub asked: u64,
    /// How many of those were open at least once.
    pub established: u64,
    /// How many were opened in all, replacements, warm-up and ramp-down included.
    pub opened: u64,
    /// True if a connection served more than one request.
    pub keep_alive: bool,
    /// Requests in flight on one connection: for HTTP/2 the requested number of streams, or as many
    /// as the server allows if that is fewer.
    pub depth: u64,
    /// With limited bandwidth: connections whose responses arrived at 320 kbit/s or more, over the
    /// time in which one was awaited, and which had good responses to 99 % of their requests
    /// (SPECweb99's conforming connections).
    pub conforming: Option<u64>,
}

/// Resources that the client itself used in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// CPU time of all client threads, user and system, for one finished request, without
    /// `spun_us`.
    pub cpu_us_per_request: Option<f64>,
    /// Share of one core that the busiest thread used while requests were issued, from 0 to 1,
    /// without `spun_us`.
    pub busiest_thread: f64,
    /// Threads.
    pub threads: u64,
    /// Time for which the CPU quota of the client's cgroup, or of one above it, kept ready threads
    /// from running, summed over cores. `None` if the kernel does not say.
    pub throttled_us: Option<u64>,
    /// Time for which client threads were ready and had no core, summed over threads.
    pub run_delay_us: Option<u64>,
    /// How often client threads got a core: after each sleep, and after each time one was
    /// preempted.
    pub turns: Option<u64>,
    /// True if client threads polled for events without sleeping.
    #[serde(default)]
    pub spin: bool,
    /// With `spin`, the CPU time of empty turns while requests could be issued, summed over
    /// threads. No other figure here includes it.
    pub spun_us: Option<u64>,
    /// When the measured part began, in nanoseconds of this machine's `CLOCK_MONOTONIC`, so that
    /// other logs with that clock can be related to it. 0 for a merged run.
    #[serde(default)]
    pub started_ns: u64,
}
