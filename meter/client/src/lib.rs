//! The measuring client: sends requests to an HTTP server, validates the responses, and records when each was due, was
//! sent and was answered.
//!
//! It knows sockets, and HTTP/1.1 and HTTP/2 as a client sees them. It must not know any code of the server (a shared bug
//! would hide itself), nor what its records mean: verdicts and figures of a run are made by `millrace-runs`.
//! Each thread runs an epoll loop of its own; requests are rendered beforehand; responses are validated in full and kept
//! only where a workload or a check looks at them. However hostile the server, a connection (of HTTP/2 each stream) holds
//! at most a head of 64 KiB and, where a body is kept, 16 MiB of it (all connections together 1 GiB, or 64 KiB each); and
//! a request ends with its timeout.

mod arrivals;
mod auto;
mod body;
mod chunked;
pub mod classes;
mod connection;
pub mod driver;
pub mod engine;
mod error;
mod glimpse;
mod http2;
pub mod limits;
pub mod null;
pub mod outcome;
pub mod own;
mod pace;
mod plan;
mod progress;
mod recorded;
pub mod recorder;
pub mod request;
pub mod response;
pub mod sink;
pub mod spin;
pub mod tickets;
mod transport;
pub mod url;
pub mod work;
mod workload;

pub use auto::{Auto, AutoFigures};
pub use error::Error;
pub use glimpse::Glimpse;
pub use null::{Delay, NullAnswer, NullLog, NullPlan, NullServer};
pub use outcome::Errors;
pub use pace::{Pace, Think};
pub use plan::{
    LengthPlan, LoadPlan, Order, Plan, ProbePlan, Process, RequestPlan, RunConditions, Schedule,
    Stop, TargetPlan,
};
pub use progress::{Phase, Progress};
pub use transport::{Bandwidth, Trust};
pub use workload::{
    ArrivalKind, ArrivalPattern, DIRECTORY_BYTES, FileSet, FileSetError, Learned, LearnedClass,
    LogError, LogLines, MOST_DIRECTORIES, PlanError, Replay, Workload,
};
