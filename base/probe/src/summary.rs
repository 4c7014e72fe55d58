//! What a machine and the watched processes did in a span of time, as it is stored and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{Memory, Network, Sockets};

/// Use of a machine and of the watched processes in a span of time. Shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// From the first sample in the span to the last one.
    pub span_s: f64,
    /// Samples in the span.
    pub samples: u64,
    /// Error of a share of a core by one clock tick at each end, at most.
    pub tick_error: f64,
    /// The cores.
    pub cores: Vec<CoreUse>,
    /// The watched processes together.
    pub server: Option<ServerUse>,
    /// Their busiest threads, the busiest first.
    pub threads: Vec<ThreadUse>,
    /// Places in `cores` of those that the watched processes may run on; empty if not known.
    #[serde(default)]
    pub server_cores: Vec<usize>,
    /// The threads of the program that took the samples, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_threads: Vec<ThreadUse>,
    /// Places in `cores` of those that these may run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_cores: Vec<usize>,
    /// Pressure.
    pub pressure: PressureUse,
    /// The network.
    pub network: Option<NetworkUse>,
    /// Sockets at the end of the span.
    pub sockets: Option<Sockets>,
    /// The most connections that were seen waiting to be accepted.
    pub accept_queue_max: Option<u64>,
    /// The disks.
    pub disks: Vec<DiskUse>,
    /// The machine's memory when the least of it was available.
    pub memory: Option<Memory>,
    /// The CPU quota.
    pub throttle: Option<ThrottleUse>,
    /// Counters of `perf_event_open`.
    pub perf: BTreeMap<String, u64>,
}

/// How a core spent its time, in shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUse {
    /// Programs.
    pub user: f64,
    /// The kernel on behalf of programs.
    pub system: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Hard interrupts.
    pub irq: f64,
    /// Given to others by a hypervisor.
    pub steal: f64,
    /// Nothing to do.
    pub idle: f64,
    /// Nothing to do while something waited for a disk.
    pub iowait: f64,
}

/// Resources that the watched processes used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time by the scheduler.
    pub cpu_s: f64,
    /// Of that in user mode, by ticks.
    pub user_s: f64,
    /// Of that in the kernel, by ticks.
    pub system_s: f64,
    /// Time that threads were runnable without a core.
    pub run_delay_s: f64,
    /// Times that a thread gave up its core to wait.
    pub voluntary: Option<u64>,
    /// Times that a thread was taken off its core.
    pub involuntary: Option<u64>,
    /// Page faults.
    pub faults: u64,
    /// Page faults that needed a disk.
    pub major_faults: u64,
    /// Threads that waited without being interruptible, mostly for a disk: mean of the samples.
    pub blocked_threads: f64,
    /// Bytes read from disks.
    pub read_bytes: Option<u64>,
    /// Bytes written towards disks.
    pub written_bytes: Option<u64>,
    /// Resident memory at most.
    pub rss_bytes_max: u64,
    /// Threads at most.
    pub threads_max: u64,
    /// Processes at most.
    pub processes_max: u64,
    /// Open descriptors at most.
    pub descriptors_max: Option<u64>,
}

/// A thread's share of a core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Its process.
    pub pid: i32,
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// Share of the time that it ran.
    pub busy: f64,
    /// Share of the time that it was runnable without a core.
    pub run_delay: f64,
}

/// Shares of the time in which at least one task waited for a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureUse {
    /// For a core.
    pub cpu: Option<f64>,
    /// For a disk.
    pub io: Option<f64>,
    /// For memory.
    pub memory: Option<f64>,
}

/// Network use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Differences of all counters; the speed as it is.
    #[serde(flatten)]
    pub counts: Network,
    /// Share of the fastest interface's speed, in the busier direction. `None` if its driver does
    /// not give the speed.
    pub busy: Option<f64>,
}

/// Disk use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Its name.
    pub name: String,
    /// Share of the time in which at least one request was in progress.
    pub busy: f64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// How often a CPU quota was used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThrottleUse {
    /// Cores that it allows on average; `None` is no limit.
    pub quota_cores: Option<f64>,
    /// Periods with work in them.
    pub periods: u64,
    /// Periods in which it was used up.
    pub throttled: u64,
    /// Time that runnable threads were kept waiting.
    pub throttled_s: f64,
}
