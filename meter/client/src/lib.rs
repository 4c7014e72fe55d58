//! The measuring client: sends requests to an HTTP server, validates the responses, and records
//! when each was due, sent and answered.
//!
//! It knows sockets, and HTTP/1.1 and HTTP/2 from the client's side. It must not use any code of
//! the server, because a shared bug would hide itself. It must not know what its records mean:
//! `millrace-runs` makes the verdicts and figures of a run. Each thread runs its own epoll loop.
//! Requests are rendered before the run. Responses are validated in full, and kept only if a
//! workload or a check uses them. With any server, a connection (with HTTP/2: each stream) holds at
//! most a head of 64 KiB and, if a body is kept, 16 MiB of the body (all connections together 1
//! GiB, or 64 KiB each). A request ends with its timeout.

mod arrivals;
mod auto;
mod body;
mod chunked;
pub mod classes;
mod command_line;
mod connection;
pub mod cpu_accounting;
pub mod driver;
pub mod engine;
mod error;
mod http2;
pub mod limits;
mod live_snapshot;
pub mod null;
pub mod outcome;
mod pace;
mod plan;
mod progress;
mod recorded;
pub mod recorder;
pub mod request;
pub mod response;
pub mod scheduler_stats;
pub mod sink;
pub mod spin;
pub mod streams;
pub mod tickets;
mod transport;
pub mod url;
mod workload;

pub use auto::{Auto, AutoFigures};
pub use command_line::command_line;
pub use error::Error;
pub use live_snapshot::LiveSnapshot;
pub use null::{Delay, NullAnswer, NullLog, NullPlan, NullServer};
pub use outcome::Errors;
pub use pace::{Pace, Think};
pub use plan::{
    LengthPlan, LoadPlan, Order, Plan, ProbePlan, Process, RequestPlan, RunConditions, Schedule,
    Stop, TargetPlan,
};
pub use progress::{Phase, Progress};
pub use transport::{Bandwidth, Trust, client_config, reach};
pub use workload::{
    ArrivalKind, ArrivalPattern, DIRECTORY_BYTES, FileSet, FileSetError, Learned, LearnedClass,
    LogError, LogLines, MOST_DIRECTORIES, PlanError, Replay, Workload,
};
