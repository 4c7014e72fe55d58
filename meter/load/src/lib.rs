//! The measuring client: sends requests to an HTTP server and says what came back, how fast, and whether to believe
//! it.
//!
//! It knows sockets, HTTP/1.1 and HTTP/2 as a client sees them, and statistics. It must not know any code of the server (a shared
//! bug would hide itself), nor how results are drawn. Each thread runs an epoll loop of its own; requests are
//! rendered beforehand; responses are validated in full and kept only where a workload or a check looks at them. However
//! hostile the server, a connection (of HTTP/2 each stream) holds at most a head of 64 KiB and, for those who look, 16 MiB of a body (all
//! connections together 1 GiB, or 64 KiB each); and a request ends with its timeout.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use millrace_load::{Plan, Stop, run};
//!
//! let plan = Plan { connections: 10, stop: Stop::Requests(1000), ..Plan::new("http://127.0.0.1:8080/") };
//! let run = run(&plan, None, &AtomicBool::new(false))?;
//! println!("{} {:.0}/s", run.verdict, run.achieved_rate);
//! # Ok::<(), millrace_load::Error>(())
//! ```

mod analysis;
mod arrivals;
mod auto;
mod awake;
mod backlog;
mod body;
mod calibration;
mod capacity;
mod chunked;
mod classes;
mod compare;
mod conclude;
mod connection;
mod diagnose;
mod driver;
mod engine;
mod error;
mod figures;
mod glimpse;
mod hdr;
mod host;
mod http2;
mod lab;
mod ladder;
mod latency;
mod limited;
mod limits;
mod merge;
mod null;
mod objective;
mod outcome;
mod own;
mod pace;
mod phases;
mod plan;
mod postgres;
mod probe;
mod progress;
mod random;
mod recorded;
mod recorder;
mod request;
mod response;
mod run;
mod series;
mod sink;
mod span;
mod spin;
mod stationary;
mod sweep;
mod tickets;
mod timeline;
mod timings;
mod transport;
mod url;
mod verdict;
mod visits;
mod work;
mod workload;

pub use analysis::bottleneck::{Finding, Limit};
pub use analysis::demand::{Demand, Demands, PerRequest};
pub use analysis::usl::{CurvePoint, Estimate, Observation, Refusal, Resampled, Usl};
pub use auto::Auto;
pub use backlog::Backlog;
pub use base_probe::postgres::{
    MeanMax, PgCounters, PgGap, PgPerRequest, PgProbe, PgSample, PgServer, PgSummary, PgWait,
};
/// What a host probe samples and sums up; see [`base_probe`].
pub use base_probe::{Moment, Probe, Summary};
pub use calibration::{Calibration, calibrate};
pub use capacity::{
    Capacity, CapacityNews, CapacityPlan, CapacityProgress, CapacityTrial, Curve, Found, Stage,
    capacity,
};
pub use compare::{
    Aside, BLOCKS, Block, Compare, CompareProgress, Comparison, Decision, Detect, Effect,
    FEWEST_BLOCKS, MOST_BLOCKS, Metric, PATTERN, Ratio, Sample, Side, Subject, Trial, compare,
};
pub use diagnose::{DiagnoseProgress, Diagnosis, Level, diagnose, diagnosed};
pub use driver::run;
pub use error::Error;
pub use figures::{AutoFigures, ClassFigures, Pauses, RampDown, Sessions};
pub use glimpse::Glimpse;
pub use hdr::{Hdr, Histograms};
pub use host::Host;
pub use lab::{
    CrossCheck, Experiment, Fault, Lab, LabBound, LabFinding, LabInterval, LabLevel, LabLimit,
    LabMetric, LabOptions, LabOutcome, LabProgress, LabRun, LabServer, Missing, OtherClient,
    Programs, Spread, Text, lab,
};
pub use ladder::Ladder;
pub use latency::{Bucket, Latencies, Latency, Quantile};
pub use merge::{MergeError, Part};
pub use null::{Delay, NullAnswer, NullLog, NullPlan, NullServer};
pub use objective::{Met, Objective};
pub use outcome::Errors;
pub use pace::{Pace, Think};
pub use plan::{Order, Plan, Process, Schedule, Stop};
pub use postgres::Postgres;
pub use probe::{ProbePlan, Probed};
pub use progress::{Phase, Progress};
pub use run::{
    Accounting, Client, Connections, Little, Loop, Point, Protocol, Run, Timeline, Verdict,
};
pub use span::duration;
pub use sweep::{
    Attained, By, Crossing, Direction, Edge, Hysteresis, Judged, LevelPower, LevelRange, News,
    Power, Step, Sweep, SweepPlan, SweepProgress, TopRate, sweep,
};
pub use transport::{Bandwidth, Trust};
pub use workload::{
    ArrivalKind, ArrivalPattern, DIRECTORY_BYTES, FileSet, FileSetError, Learned, LearnedClass,
    LogError, LogLines, MOST_DIRECTORIES, PlanError, Replay, Workload,
};
