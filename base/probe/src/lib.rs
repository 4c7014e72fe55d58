//! Probes of the host: what the kernel counts about a machine and some of its processes, a few
//! times a second.
//!
//! A [`Prober`] samples on a thread of its own and states the cost of sampling. Every counter in a
//! [`Sample`] only rises, so any two samples give what happened between them ([`Probe::within`]),
//! and fewer samples lose nothing but resolution. A value that cannot be read is never a zero:
//! [`Probe::unavailable`] names it with the reason.
//!
//! CPU time comes from the scheduler in nanoseconds (`schedstat` of every thread). The split into
//! user and system, and all figures of cores, come from clock ticks and are exact to one tick at
//! each end ([`Summary::tick_error`]).

mod cgroup;
mod discovery;
mod host;
mod missing;
mod model;
mod network;
mod perf;
pub mod postgres;
mod processes;
mod run_times;
mod sampler;
mod sockets;
mod summary;
mod threads;
mod within;

pub use cgroup::Group;
pub use discovery::{Listening, children_of, listening};
pub use model::{
    Core, Cost, Disk, Memory, Network, Pressure, Probe, Process, Sample, Sockets, Thread, Throttle,
    WatchedServer,
};
pub use run_times::run_times;
pub use sampler::{FASTEST, Prober, ProberOptions, SLOWEST};
pub use summary::{
    CoreUse, DiskUse, NetworkUse, PressureUse, ServerUse, Summary, ThreadUse, ThrottleUse,
};
pub use within::Moment;
