//! The result of an experiment, as it is stored and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figure::LabFigure;
use crate::Host;
use millrace_stats::{Latency, Ratio, Verdict};

/// A whole experiment. Its JSON is the format of `millrace lab run --json`; times are in the unit
/// of their name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    /// Verdict on the result: the worst verdict of any server at any level.
    pub verdict: Verdict,
    /// Reasons against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// True if every run was made.
    pub complete: bool,
    /// Cause that ended the experiment early, with the last output of the server that failed.
    pub failure: Option<String>,
    /// The title.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// The server to which the others are compared.
    pub baseline: Option<String>,
    /// The servers, in the order of the file.
    pub servers: Vec<LabServer>,
    /// The levels at which each server was measured.
    pub levels: Vec<LabLevel>,
    /// Requested repeats.
    pub repeats: usize,
    /// Requested length of each run; [`LabRun::duration_s`] is the actual one.
    pub duration_s: f64,
    /// Length of the warm-up before it.
    pub warmup_s: f64,
    /// Requests in flight on one connection.
    pub depth: usize,
    /// Protocol: `HTTP/1.1`, `HTTP/2`, and `over TLS` where it was so.
    #[serde(default = "http1")]
    pub protocol: String,
    /// The other client, if one ran: `wrk` or `h2load`.
    pub cross_check: Option<String>,
    /// Habits of the client besides asking at once and reading as fast as it could, in sentences.
    #[serde(default)]
    pub client_habits: Vec<String>,
    /// Requests of a session, if requests belonged to sessions that arrived at a rate.
    pub session: Option<u64>,
    /// The log whose requests were sent at its own times, if there was one.
    pub replay: Option<String>,
    /// The name of what differs between the levels, if it is neither connections nor a rate.
    pub variable: Option<String>,
    /// The figures to be drawn over the levels; none: the usual ones.
    #[serde(default)]
    pub graph: Vec<LabFigure>,
    /// The figures to be drawn over the time of a run.
    #[serde(default)]
    pub over_time: Vec<LabFigure>,
    /// When it began, in seconds since 1970 (UTC); 0 if it was not stored.
    #[serde(default)]
    pub started_unix_s: u64,
    /// How long all of it took.
    #[serde(default)]
    pub took_s: f64,
    /// Cores of the client; empty where it was not pinned.
    pub client_cores: Vec<usize>,
    /// The figures of each server at each level.
    pub findings: Vec<LabFinding>,
    /// The limits of the file, and whether they hold.
    #[serde(default)]
    pub limits: Vec<LabLimit>,
    /// Every run in the order in which it was made.
    pub runs: Vec<LabRun>,
    /// Texts that all servers share.
    pub files: Vec<Text>,
    /// The plan whose sessions were sent, if there was one; then rates are of sessions.
    pub plan: Option<Text>,
    /// The machine.
    pub host: Host,
    /// The command line.
    pub command: String,
}

/// Returns the protocol of experiments from before they named it.
fn http1() -> String {
    "HTTP/1.1".to_owned()
}

/// One server of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabServer {
    /// Its name.
    pub name: String,
    /// A word about it; may be empty.
    pub about: String,
    /// True if it was measured itself, or only served other servers.
    pub measured: bool,
    /// The command of its last start.
    pub command: String,
    /// Its version as it prints it; may be empty.
    pub version: String,
    /// Its cores; empty where it was not pinned.
    pub cores: Vec<usize>,
    /// Servers that were up with it; their CPU time counts as its own.
    pub with: Vec<String>,
    /// Addresses to which clients connected, each new connection to the next one; empty if it was
    /// the server's own port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Its configuration files at its last start.
    pub files: Vec<Text>,
}

/// A file and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Within its folder.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// A level at which servers are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabLevel {
    /// Connections, all open at the same time.
    pub connections: usize,
    /// Requests a second, with a plan sessions; `None` is a closed loop.
    pub rate: Option<f64>,
    /// Number of paths, if the levels differ in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The value of the experiment's variable, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// The server.
    pub server: String,
    /// The level.
    pub level: LabLevel,
    /// The repeat, from 1.
    pub repeat: usize,
    /// The pass at this level in the repeat, from 1; in blocks, passes with the other client are
    /// numbered from 5.
    #[serde(default = "first")]
    pub pass: usize,
    /// The verdict on the run.
    pub verdict: Verdict,
    /// Its length. Separate passes with the other client are as long as that client's runs, in
    /// whole seconds.
    pub duration_s: Option<f64>,
    /// Reasons against the run.
    pub reasons: Vec<String>,
    /// Why the run before it was `INVALID` and made again; `None` if this was the first.
    pub again: Option<String>,
    /// Complete responses.
    pub requests: u64,
    /// Requests without a good response.
    pub errors: u64,
    /// Good responses a second.
    pub throughput: f64,
    /// Response times, in a closed loop service times.
    pub latency_us: Option<Latency>,
    /// CPU time of the server for one request: run times of all threads of all its processes.
    pub cpu_us: Option<f64>,
    /// Time in software interrupts on the server's cores for one request, which is in no thread's
    /// run time. Counted in ticks of 10 ms.
    pub softirq_us: Option<f64>,
    /// Share of time for which the server's cores were busy, with any work. Counted in ticks of 10
    /// ms, so a short run can be a tick above 1.
    pub core_busy: Option<f64>,
    /// CPU time of the client for one request.
    pub client_cpu_us: Option<f64>,
    /// Share of a core that the busiest client thread used.
    pub client_busy: f64,
    /// How often client threads got a core, for one request. That is about how often they slept,
    /// unless `client_spin` says that they never do.
    pub client_turns: Option<f64>,
    /// Share of time for which the client's cores were busy, with any work. `None` if its cores are
    /// not given, if a server shares them, or if client threads did not sleep.
    pub client_core_busy: Option<f64>,
    /// True if client threads spun. `client_cpu_us` and `client_busy` are without the time in which
    /// they had nothing to do.
    #[serde(default)]
    pub client_spin: bool,
    /// Memory of the server's processes (resident, summed) for each idle connection.
    pub idle_bytes: Option<f64>,
    /// Figures that have no field of their own here.
    #[serde(default)]
    pub figures: BTreeMap<LabFigure, f64>,
    /// How many cores each server used, if there are others behind this one.
    #[serde(default)]
    pub cores_of: BTreeMap<String, f64>,
    /// Limits of the server, the likeliest first, if the machine was sampled.
    #[serde(default)]
    pub limited_by: Vec<String>,
    /// The run over time, if its experiment shows that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<LabMoment>,
    /// The other client's result directly before or after.
    #[serde(alias = "wrk")]
    pub other: Option<CrossCheck>,
}

/// A part of a run; the parts have equal lengths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabMoment {
    /// Its beginning, in seconds from the start of the measured part.
    pub at_s: f64,
    /// Its figures.
    pub figures: BTreeMap<LabFigure, f64>,
    /// How many cores each server used, if there are others behind this one.
    pub cores_of: BTreeMap<String, f64>,
}

/// A run of the other client with the same connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Responses a second.
    pub throughput: f64,
    /// Responses outside 2xx and 3xx, and socket errors.
    pub errors: u64,
    /// CPU time of the server for one request.
    pub cpu_us: Option<f64>,
    /// Share of time for which the server's cores were busy in the middle of the run, counted in
    /// ticks.
    pub core_busy: Option<f64>,
    /// Resources that the other client itself used.
    pub client: Option<OtherClient>,
}

/// Resources that another client used during its run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherClient {
    /// CPU time for one request.
    pub cpu_us: f64,
    /// Share of its threads' time that they were on a core.
    pub busy: f64,
    /// How often its threads got a core, for one request.
    pub turns: f64,
    /// Share of time for which its cores were busy with any work, including interrupts, which some
    /// kernels charge to no thread.
    pub core_busy: Option<f64>,
}

/// The median of some runs, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MedianRange {
    /// Half of the runs are above.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The figures of a server at a level, from its runs that are not `INVALID`; in blocks without the
/// passes with the other client, if there are others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabFinding {
    /// The server.
    pub server: String,
    /// The level.
    pub level: LabLevel,
    /// Runs made.
    pub runs: usize,
    /// Runs that count.
    pub counted: usize,
    /// The verdict of most weight among its runs.
    pub verdict: Verdict,
    /// Good responses a second.
    pub throughput: Option<MedianRange>,
    /// Median response time.
    pub p50_us: Option<MedianRange>,
    /// 99th percentile.
    pub p99_us: Option<MedianRange>,
    /// CPU time of the server for one request.
    pub cpu_us: Option<MedianRange>,
    /// Software interrupts on its cores for one request.
    pub softirq_us: Option<MedianRange>,
    /// Share of time for which its cores were busy.
    pub core_busy: Option<MedianRange>,
    /// CPU time of the client for one request.
    pub client_cpu_us: Option<MedianRange>,
    /// Share of a core that the client's busiest thread used.
    pub client_busy: Option<MedianRange>,
    /// CPU time for one request as a multiple of the baseline's, from pairs of the same repeat.
    pub cpu_ratio: Option<Ratio>,
    /// Throughput as a multiple of the baseline's.
    pub throughput_ratio: Option<Ratio>,
    /// CPU time for one request over itself: outer runs of each block over inner ones, in the
    /// pattern A B B A.
    pub cpu_itself: Option<Ratio>,
    /// Throughput over itself, in the same way.
    pub throughput_itself: Option<Ratio>,
    /// Memory for each idle connection.
    pub idle_bytes: Option<MedianRange>,
    /// Figures that have no field of their own here.
    #[serde(default)]
    pub figures: BTreeMap<LabFigure, MedianRange>,
    /// How many cores each server used, if there are others behind this one.
    #[serde(default)]
    pub cores_of: BTreeMap<String, MedianRange>,
    /// Limits of the server in the run with the median throughput, with the evidence.
    #[serde(default)]
    pub limited_by: Vec<String>,
    /// This client's throughput over the other's, from pairs of the same turn.
    #[serde(alias = "wrk_ratio")]
    pub other_ratio: Option<MedianRange>,
}

fn first() -> usize {
    1
}

/// A figure that a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabMetric {
    /// CPU time of the server for one request.
    Cpu,
    /// Good responses a second.
    Throughput,
    /// Median response time, in a closed loop service time.
    P50,
    /// The 99th percentile of the same.
    P99,
    /// Resident memory for each connection that is open and asks for nothing.
    Memory,
    /// CPU time of this client for one request, against the other client's.
    ClientCpu,
    /// Good responses a second that this client had, against the other client's.
    ClientThroughput,
}

impl LabMetric {
    /// True if it is a figure of this client, which is compared with the other client's.
    pub fn is_of_client(self) -> bool {
        matches!(self, Self::ClientCpu | Self::ClientThroughput)
    }
}

/// The bound of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabBound {
    /// The ratio of the figures is at most this.
    AtMost(f64),
    /// The ratio of the figures is at least this.
    AtLeast(f64),
    /// The figure is at most this many microseconds above the other.
    MoreAtMostUs(f64),
}

/// The outcome of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabOutcome {
    /// The whole interval is within it.
    Holds,
    /// The interval is partly within it.
    NotShown,
    /// The whole interval is beyond it.
    Missed,
    /// The reference differs from itself by as much as the limit, or there are too few blocks.
    NotDecided,
}

/// A mean over the blocks with its 95 % interval (Student): a ratio, or a difference in
/// microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabInterval {
    /// The mean; of ratios the geometric one.
    pub mean: f64,
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// Number of blocks.
    pub blocks: usize,
}

/// A limit at one level, and the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabLimit {
    /// The server that the limit is about, or at which the clients were compared.
    pub server: String,
    /// The server that it is compared with, or the other client.
    pub against: String,
    /// All servers of the limit, if `against` is the hardest of several.
    pub best_of: Vec<String>,
    /// The figure.
    pub metric: LabMetric,
    /// The level.
    pub level: LabLevel,
    /// The bound.
    pub bound: LabBound,
    /// The result: `server` over (or minus) `against`.
    pub found: Option<LabInterval>,
    /// `against` compared with itself in the same pattern.
    pub itself: Option<LabInterval>,
    /// The outcome.
    pub outcome: LabOutcome,
}
