//! What an experiment found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::Host;
use millrace_stats::{Latency, Ratio, Verdict};

/// A whole experiment. Its JSON is the format of `millrace lab run --json`; times are in the unit of their name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    /// Whether to believe the rest: the worst of what holds for a whole level of a server.
    pub verdict: Verdict,
    /// What speaks against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// Whether every run was made.
    pub complete: bool,
    /// What ended the experiment before its time, with the last output of the server that failed.
    pub failure: Option<String>,
    /// What it is called.
    pub title: String,
    /// What it is to find out.
    pub question: String,
    /// The server to which the others are compared.
    pub baseline: Option<String>,
    /// The servers, in the order of the file.
    pub servers: Vec<LabServer>,
    /// Where each server was measured.
    pub levels: Vec<LabLevel>,
    /// Repeats asked for.
    pub repeats: usize,
    /// Length of each run that was asked for; [`LabRun::duration_s`] is that of a run.
    pub duration_s: f64,
    /// Length of the warm-up before it.
    pub warmup_s: f64,
    /// Requests in flight on one connection.
    pub depth: usize,
    /// The other client that stood beside, if one did: `wrk` or `h2load`.
    #[serde(default)]
    pub cross_check: Option<String>,
    /// Cores of the client; empty where it was not pinned.
    pub client_cores: Vec<usize>,
    /// The figures of each server at each level.
    pub findings: Vec<LabFinding>,
    /// What the file demands of the figures, and whether it holds.
    #[serde(default)]
    pub limits: Vec<LabLimit>,
    /// Every run in the order in which it was made.
    pub runs: Vec<LabRun>,
    /// Texts that all servers share.
    pub files: Vec<Text>,
    /// The plan whose sessions were asked for, if it was one: then rates are of sessions.
    #[serde(default)]
    pub plan: Option<Text>,
    /// The machine.
    pub host: Host,
    /// The command line.
    pub command: String,
}

/// One server of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabServer {
    /// Its name.
    pub name: String,
    /// A word about it; may be empty.
    pub about: String,
    /// Whether it was measured itself, or only stood behind others.
    pub measured: bool,
    /// The command that started it, as it was at last.
    pub command: String,
    /// What it says about its version; may be empty.
    pub version: String,
    /// Its cores; empty where it was not pinned.
    pub cores: Vec<usize>,
    /// Servers that were up with it; their CPU time counts as its own.
    pub with: Vec<String>,
    /// Its configuration files, as they were at last.
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

/// Where a server is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabLevel {
    /// Connections, all open at the same time.
    pub connections: usize,
    /// Requests a second, with a plan sessions; `None` is a closed loop.
    pub rate: Option<f64>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// Which server.
    pub server: String,
    /// Where.
    pub level: LabLevel,
    /// The repeat, from 1.
    pub repeat: usize,
    /// Which of the server's runs at this level in the repeat: from 1; in blocks those beside the other client from 5.
    #[serde(default = "first")]
    pub pass: usize,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Its length. Passes of their own beside the other client are as long as its runs, which last whole seconds.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// What speaks against it.
    pub reasons: Vec<String>,
    /// Why the run before it was `INVALID` and made again; `None` if this was the first.
    pub again: Option<String>,
    /// Complete answers.
    pub requests: u64,
    /// Requests without a good answer.
    pub errors: u64,
    /// Good answers a second.
    pub throughput: f64,
    /// Response times, in a closed loop service times.
    pub latency_us: Option<Latency>,
    /// CPU time of the server for one request: run times of all threads of all its processes.
    pub cpu_us: Option<f64>,
    /// Time in software interrupts on the server's cores for one request, which nobody's run time has. Counted in ticks
    /// of 10 ms.
    pub softirq_us: Option<f64>,
    /// Share of time for which the server's cores were busy, with anything. Counted in ticks of 10 ms, so that a short run can come
    /// out a tick above 1.
    pub core_busy: Option<f64>,
    /// CPU time of the client for one request.
    pub client_cpu_us: Option<f64>,
    /// Share of a core that the busiest client thread used.
    pub client_busy: f64,
    /// How often client threads got a core, for one request: about so often they slept, unless `client_spin` says that they
    /// never do.
    #[serde(default)]
    pub client_turns: Option<f64>,
    /// Share of time for which the client's cores were busy, with anything. `None` where its cores are not given or a server shares
    /// them, and where client threads did not sleep.
    #[serde(default)]
    pub client_core_busy: Option<f64>,
    /// Whether client threads did not sleep. `client_cpu_us` and `client_busy` are without the time in which they had nothing to do.
    #[serde(default)]
    pub client_spin: bool,
    /// Memory that the server's processes took (resident, summed) for each connection that is open and asks for nothing.
    #[serde(default)]
    pub idle_bytes: Option<f64>,
    /// What the other client found directly before or after.
    #[serde(alias = "wrk")]
    pub other: Option<CrossCheck>,
}

/// A run of the other client with the same connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Answers a second.
    pub throughput: f64,
    /// Answers outside 2xx and 3xx, and socket errors.
    pub errors: u64,
    /// CPU time of the server for one request.
    pub cpu_us: Option<f64>,
    /// Share of time for which the server's cores were busy, counted in ticks too; of the middle of the run.
    pub core_busy: Option<f64>,
    /// What the other client itself did meanwhile.
    #[serde(default)]
    pub client: Option<OtherClient>,
}

/// What another client used while it measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherClient {
    /// CPU time for one request.
    pub cpu_us: f64,
    /// Share of its threads' time that they were on a core.
    pub busy: f64,
    /// How often its threads got a core, for one request.
    pub turns: f64,
    /// Share of time for which its cores were busy, with anything: also with interrupts, which some kernels charge no thread for.
    #[serde(default)]
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

/// The figures of a server at a level: of its runs that are not `INVALID`, in blocks without the passes beside the other client if there
/// are others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabFinding {
    /// Which server.
    pub server: String,
    /// Where.
    pub level: LabLevel,
    /// Runs made.
    pub runs: usize,
    /// Those that count.
    pub counted: usize,
    /// The verdict of most weight among its runs.
    pub verdict: Verdict,
    /// Good answers a second.
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
    /// CPU time for one request over itself: outer runs of each block over inner ones, in the pattern A B B A.
    #[serde(default)]
    pub cpu_itself: Option<Ratio>,
    /// Throughput over itself, alike.
    #[serde(default)]
    pub throughput_itself: Option<Ratio>,
    /// Memory for each idle connection.
    #[serde(default)]
    pub idle_bytes: Option<MedianRange>,
    /// This client's throughput over the other's, from pairs of the same turn.
    #[serde(alias = "wrk_ratio")]
    pub other_ratio: Option<MedianRange>,
}

fn first() -> usize {
    1
}

/// A figure that is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabMetric {
    /// CPU time of the server for one request.
    Cpu,
    /// Good answers a second.
    Throughput,
    /// Median response time, in a closed loop service time.
    P50,
    /// The 99th percentile of the same.
    P99,
    /// Resident memory for each connection that is open and asks for nothing.
    Memory,
    /// CPU time of this client for one request, against the other client's.
    ClientCpu,
    /// Good answers a second that this client had, against the other client's.
    ClientThroughput,
}

impl LabMetric {
    /// Whether it is a figure of this client, which is held against the other one.
    pub fn is_of_client(self) -> bool {
        matches!(self, Self::ClientCpu | Self::ClientThroughput)
    }
}

/// What a limit demands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabBound {
    /// The ratio of the figures is at most this.
    AtMost(f64),
    /// The ratio of the figures is at least this.
    AtLeast(f64),
    /// The figure is at most so many microseconds above the other.
    MoreAtMostUs(f64),
}

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabOutcome {
    /// The whole interval is within it.
    Holds,
    /// The interval is partly within it.
    NotShown,
    /// The whole interval is beyond it.
    Missed,
    /// A server differs from itself by as much as what is asked about, or there are too few blocks.
    NotDecided,
}

/// A mean over the blocks with its 95 % interval (Student): a ratio, or a difference in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabInterval {
    /// The mean; of ratios the geometric one.
    pub mean: f64,
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// Blocks that it comes from.
    pub blocks: usize,
}

/// A limit at one level, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabLimit {
    /// The server that is limited, or at which the client is.
    pub server: String,
    /// The server that it is held against, or the other client.
    pub against: String,
    /// If that is the hardest of several that the limit is about: all of these.
    pub best_of: Vec<String>,
    /// The figure.
    pub metric: LabMetric,
    /// Where.
    pub level: LabLevel,
    /// What is demanded.
    pub bound: LabBound,
    /// What was found: `server` over (or less) `against`.
    pub found: Option<LabInterval>,
    /// What `against` is beside itself in the same pattern.
    pub itself: Option<LabInterval>,
    /// What became of it.
    pub outcome: LabOutcome,
}
