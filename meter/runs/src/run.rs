//! What a run found, as it is stored and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::merge::Part;
use crate::{ClassFigures, Host, Pauses, Postgres, Probed, RampDown, Sessions};
use millrace_client::{AutoFigures, Errors};
use millrace_stats::hdr::Histograms;
use millrace_stats::{
    Accounting, Backlog, Bucket, Calibration, Finding, Latencies, Little, Quantile, Timeline,
    Verdict,
};

/// What decides when a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loop {
    /// The answer to the one before.
    #[default]
    Closed,
    /// A schedule, whatever the server does.
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

/// One measured run. Its JSON is the format of `millrace load --json`; times are in the unit of their name.
///
/// The default is a run of nothing: a closed loop without a request, which is `INVALID`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whether to believe the rest.
    pub verdict: Verdict,
    /// What speaks against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// Whether it is `INVALID` for nothing but what befell the client: the same run may be worth something another time.
    #[serde(default)]
    pub client_at_fault: bool,
    /// Open or closed loop.
    #[serde(rename = "loop")]
    pub kind: Loop,
    /// The version of HTTP; HTTP/1.1 in results that do not say.
    #[serde(default)]
    pub protocol: Protocol,
    /// The URL that was asked for, or stood for the server of a list.
    pub url: String,
    /// Length of the measured part: to its planned end, or to the last answer of a counted run.
    pub duration_s: f64,
    /// Length of the warm-up before it, with the ramp.
    pub warmup_s: f64,
    /// Measured requests with a complete answer, good or not.
    pub requests: u64,
    /// Where every measured request is.
    pub accounting: Accounting,
    /// Requests a second that the schedule asked for; a closed loop has none.
    pub offered_rate: Option<f64>,
    /// The backlog that grew meanwhile, which fails every objective; none where the server kept up, or in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// Complete answers a second of the measured part, of any status and whenever they were asked for.
    pub achieved_rate: f64,
    /// Good answers a second.
    pub good_rate: f64,
    /// Bytes of the answers of measured requests, heads included.
    pub bytes: u64,
    /// What was no good answer, by kind.
    pub errors: Errors,
    /// A word more on some kinds of error, by kind.
    pub error_examples: BTreeMap<String, String>,
    /// The latencies.
    pub latency_us: Latencies,
    /// The connections.
    pub connections: Connections,
    /// What the client itself used.
    pub client: Client,
    /// Little's law, where the run was long enough to check it.
    pub little: Option<Little>,
    /// The machine of the client.
    pub host: Host,
    /// The command line by which it can be made again. Empty: no command line made it.
    pub command: String,
    /// The run over time.
    pub series: Timeline,
    /// Service times of good answers (in an open loop response times) as a histogram with logarithmic bars.
    pub histogram: Vec<Bucket>,
    /// The same as a percentile curve.
    pub percentiles: Vec<Quantile>,

    // Only of some runs.
    /// The classes of a workload, if it has more than one.
    #[serde(default)]
    pub classes: Vec<ClassFigures>,
    /// The sessions, if requests belong to some.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// The pauses, if there were any between requests.
    #[serde(default)]
    pub pauses: Option<Pauses>,
    /// The load after the measured part, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_down: Option<RampDown>,
    /// What the statistics decided, if they did.
    #[serde(default)]
    pub auto: Option<AutoFigures>,
    /// The PostgreSQL server behind it, where one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<Box<Postgres>>,
    /// What the client could do by itself, if that was measured before.
    #[serde(default)]
    pub calibration: Option<Calibration>,
    /// What a reader should know although nothing is wrong with the run.
    #[serde(default)]
    pub notes: Vec<String>,
    /// When the measured part began, in microseconds since 1970 (UTC) by the clock of the client's machine; 0 if that was not
    /// stored.
    #[serde(default)]
    pub started_unix_us: u64,
    /// Every measured time, so that runs can be merged.
    #[serde(default)]
    pub histograms: Histograms,
    /// The runs that this one was merged from; empty for a run that was measured as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_from: Vec<Part>,
    /// What was sampled on the machine of the server, and what a request took there.
    #[serde(default)]
    pub probe: Option<Probed>,
    /// What limits the server, the likeliest first. Empty where nothing shows a limit, none where nothing was sampled.
    #[serde(default)]
    pub bottleneck: Option<Vec<Finding>>,
}

/// The connections of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// How many were to be open at the same time.
    pub asked: u64,
    /// How many of those were open at least once.
    pub established: u64,
    /// How many were opened in all, replacements, warm-up and ramp-down included.
    pub opened: u64,
    /// Whether a connection served more than one request.
    pub keep_alive: bool,
    /// Requests in flight on one connection: of HTTP/2 as many streams as were asked for, or as the server allows if that is
    /// fewer.
    pub depth: u64,
    /// With limited bandwidth: connections whose answers came at 320 kbit/s or more, over all the time in which one was
    /// awaited, and which had good answers to 99 % of their requests (SPECweb99's conforming connections).
    pub conforming: Option<u64>,
}

/// What the client itself used in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// CPU time of all client threads, user and system, for one finished request, without `spun_us`.
    pub cpu_us_per_request: Option<f64>,
    /// Share of one core that the busiest thread used while requests were issued, from 0 to 1, without what is in `spun_us`.
    pub busiest_thread: f64,
    /// Threads.
    pub threads: u64,
    /// Time for which the CPU quota of the client's cgroup, or of one above it, kept ready threads from running, summed
    /// over cores. None where the kernel does not say.
    #[serde(default)]
    pub throttled_us: Option<u64>,
    /// Time for which client threads were ready and had no core, summed over threads.
    #[serde(default)]
    pub run_delay_us: Option<u64>,
    /// How often client threads got a core: each time that one had slept, or had to make room for another.
    #[serde(default)]
    pub turns: Option<u64>,
    /// Whether client threads did not sleep, but looked for events again and again.
    #[serde(default)]
    pub spin: bool,
    /// With `spin` the CPU time of turns in which nothing had happened and nothing was due, while requests could be issued, summed over
    /// threads. It is in no other figure here.
    #[serde(default)]
    pub spun_us: Option<u64>,
    /// When the measured part began, in nanoseconds of this machine's `CLOCK_MONOTONIC`: what else was logged by that clock can
    /// be laid beside it. 0 of a merged run.
    #[serde(default)]
    pub started_ns: u64,
}
