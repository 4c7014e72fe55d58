//! What a probe stores: counters as the kernel gives them, stamped with two clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Samples of one machine. This is also the format of `millrace load --probe-only --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The requested time between two samples. If many samples are kept, every second one is left
    /// out.
    pub interval_ms: f64,
    /// Clock ticks in a second: what core times, and user and system times, are counted in.
    pub ticks_per_second: u64,
    /// The processes that were watched, in the order in which they were found.
    pub processes: Vec<Process>,
    /// The samples, in order.
    pub samples: Vec<Sample>,
    /// Sources that could not be read, each with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// Events of the processes while they were watched, in sentences.
    pub notes: Vec<String>,
    /// Cost of sampling itself.
    pub cost: Cost,
}

/// A process that was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// How it was found: its id was given, it listens on a port, or it is a child of a found
    /// process.
    pub found: String,
    /// When it was found to have ended, by the monotonic clock.
    pub ended_ns: Option<u64>,
}

/// Resources that the probe itself used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the sampling thread.
    pub cpu_ms: f64,
    /// CPU time of the sampling thread as a share of one core.
    pub core_share: f64,
    /// Samples taken.
    pub samples: u64,
}

/// The state of all counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the sample, from 0, with those counted that were left out.
    pub number: u64,
    /// When, by the machine's monotonic clock.
    pub mono_ns: u64,
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The cores that are on line.
    pub cores: Vec<Core>,
    /// All watched processes together; `None` while there is none.
    pub server: Option<WatchedServer>,
    /// The threads of these processes with the most run time since the watch began, at most
    /// sixteen.
    pub threads: Vec<Thread>,
    /// Numbers of the cores on which threads of the watched processes may run, in order; empty if
    /// unknown.
    #[serde(default)]
    pub server_cores: Vec<usize>,
    /// The threads of the program that takes the samples, if it asked for them by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_threads: Vec<Thread>,
    /// Numbers of the cores that some of these may run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_cores: Vec<usize>,
    /// Time for which tasks waited for a resource.
    pub pressure: Pressure,
    /// Network counters, of the first process's network namespace.
    pub network: Option<Network>,
    /// Sockets in the same namespace.
    pub sockets: Option<Sockets>,
    /// Whole disks.
    pub disks: Vec<Disk>,
    /// The machine's memory.
    pub memory: Option<Memory>,
    /// The CPU quotas of the first process's control group and of the groups around it, the
    /// innermost first. A stored probe always has the same groups.
    #[serde(default)]
    pub throttles: Vec<Throttle>,
    /// Counters of `perf_event_open`, scaled where the kernel took turns between them.
    pub perf: BTreeMap<String, u64>,
}

/// One core, in ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Programs, niced ones included.
    pub user: u64,
    /// The kernel on behalf of programs.
    pub system: u64,
    /// Soft interrupts: most of the network's work.
    pub softirq: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Time that a hypervisor gave to others.
    pub steal: u64,
    /// Nothing to do.
    pub idle: u64,
    /// Nothing to do while something waited for a disk.
    pub iowait: u64,
}

/// All watched processes together, including those that ended since the first sample. Counters
/// count from the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedServer {
    /// Processes alive.
    pub processes: u64,
    /// Threads alive.
    pub threads: u64,
    /// CPU time by the scheduler, in nanoseconds.
    pub run_ns: u64,
    /// Time for which threads were runnable and had no core, in nanoseconds.
    pub wait_ns: u64,
    /// CPU time in user mode, in ticks.
    pub user: u64,
    /// CPU time in the kernel, in ticks.
    pub system: u64,
    /// Times that a thread gave up its core to wait for something; `None` if not readable.
    pub voluntary: Option<u64>,
    /// Times that a thread was taken off its core.
    pub involuntary: Option<u64>,
    /// Page faults without and with a disk.
    pub faults: u64,
    /// Page faults that needed a disk.
    pub major_faults: u64,
    /// Threads seen waiting without being interruptible (mostly for a disk), summed over the
    /// samples so far.
    pub blocked: u64,
    /// Resident memory in bytes; shared pages count once for each process.
    pub rss_bytes: u64,
    /// Open file descriptors; `None` if not readable.
    pub descriptors: Option<u64>,
    /// Bytes read from disks; `None` if not readable.
    pub read_bytes: Option<u64>,
    /// Bytes written towards disks.
    pub written_bytes: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: i32,
    /// Its id.
    pub tid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// CPU time in nanoseconds, since it began.
    pub run_ns: u64,
    /// Time runnable without a core, in nanoseconds.
    pub wait_ns: u64,
}

/// Pressure stall information: microseconds since boot in which at least one task waited. `None`
/// where the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// For a core.
    pub cpu_us: Option<u64>,
    /// For a disk.
    pub io_us: Option<u64>,
    /// For memory.
    pub memory_us: Option<u64>,
}

/// Network counters since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Bytes sent and received over interfaces other than loopback.
    pub received_bytes: u64,
    /// Bytes sent over interfaces other than loopback.
    pub sent_bytes: u64,
    /// Packets received over interfaces other than loopback.
    pub received_packets: u64,
    /// Packets sent over interfaces other than loopback.
    pub sent_packets: u64,
    /// Bytes over loopback, which are sent and received at once.
    pub loopback_bytes: u64,
    /// Packets over loopback.
    pub loopback_packets: u64,
    /// Capacity of the fastest interface each way, in bytes a second; `None` if no driver says.
    pub speed_bytes_per_s: Option<u64>,
    /// TCP segments sent, and of those, sent again.
    pub segments: u64,
    /// TCP segments sent again.
    pub retransmits: u64,
    /// Connections that a full accept queue turned away.
    pub listen_overflows: u64,
    /// Connection requests dropped at a listener for any reason.
    pub listen_drops: u64,
    /// SYN cookies sent: the queue of half-open connections was full.
    pub syn_cookies: u64,
}

/// Sockets at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockets {
    /// TCP sockets in use, and those in TIME_WAIT.
    pub in_use: u64,
    /// Sockets in TIME_WAIT.
    pub time_wait: u64,
    /// Sockets without an owner.
    pub orphans: u64,
    /// Established connections.
    pub established: u64,
    /// Sockets by TCP state, looked at once a second unless there are very many.
    pub by_state: BTreeMap<String, u64>,
    /// Connections that wait to be accepted on the watched ports, looked at with the states.
    pub accept_queue: Option<u64>,
}

/// One disk, since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its name, such as `sda`.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed: what a synchronous write ends with.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds in which at least one request was in progress.
    pub busy_ms: u64,
}

/// The machine's memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// Memory that programs could still get without swapping.
    pub available: u64,
}

/// A CPU quota, and how often it was used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// Cores that the group may use on average; `None` is no limit.
    pub quota_cores: Option<f64>,
    /// Periods that have passed with work in them.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled: u64,
    /// Time that runnable threads were kept waiting for the next period, in microseconds.
    pub throttled_us: u64,
}
