//! Probes of the host: what the kernel counts about a machine and some of its processes, a few times a second.
//!
//! A [`Prober`] samples on a thread of its own and states what that cost. Every counter in a [`Sample`] only rises, so
//! any two samples give what happened between them ([`Probe::within`]), and leaving samples out loses nothing but
//! resolution. What cannot be read is named in [`Probe::unavailable`] with the reason; it is never a zero.
//!
//! CPU time comes from the scheduler in nanoseconds (`schedstat` of every thread). The split into user and system, and
//! all that is said of cores, comes from clock ticks and is exact to one tick at each end ([`Summary::tick_error`]).

mod cgroup;
mod find;
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
pub use find::{Found, children_of, listening};
pub use model::{
    Core, Cost, Disk, Memory, Network, Pressure, Probe, Process, Sample, Server, Sockets, Thread,
    Throttle,
};
pub use run_times::run_times;
pub use sampler::{FASTEST, Options, Prober, SLOWEST};
pub use summary::{
    CoreUse, DiskUse, NetworkUse, PressureUse, ServerUse, Summary, ThreadUse, ThrottleUse,
};
pub use within::Moment;
