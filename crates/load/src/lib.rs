//! The measuring client: sends requests to an HTTP server and says what came back, how fast, and whether to believe
//! it.
//!
//! It knows sockets, HTTP/1.1 as a client sees it, and statistics. It must not know any code of the server (a shared
//! bug would hide itself), nor how results are drawn. Each thread runs an epoll loop of its own; requests are
//! rendered beforehand; responses are validated in full and never kept. However hostile the server, a connection
//! holds at most a head of 64 KiB, and a request ends with its timeout.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use millpond_load::{Plan, Stop, run};
//!
//! let plan = Plan { connections: 10, stop: Stop::Requests(1000), ..Plan::new("http://127.0.0.1:8080/") };
//! let run = run(&plan, None, &AtomicBool::new(false))?;
//! println!("{} {:.0}/s", run.verdict, run.achieved_rate);
//! # Ok::<(), millpond_load::Error>(())
//! ```

mod analysis;
mod arrivals;
mod calibration;
mod capacity;
mod chunked;
mod clock;
mod compare;
mod conclude;
mod connection;
mod driver;
mod engine;
mod error;
mod host;
mod ladder;
mod latency;
mod limits;
mod null;
mod objective;
mod outcome;
mod own;
mod plan;
mod postgres;
mod random;
mod recorder;
mod request;
mod response;
mod run;
mod series;
mod stationary;
mod sweep;
mod tickets;
mod timeline;
mod url;
mod verdict;

pub use analysis::usl::{CurvePoint, Estimate, Observation, Refusal, Resampled, Usl};
pub use calibration::{Calibration, calibrate};
pub use capacity::{
    Capacity, CapacityNews, CapacityPlan, CapacityProgress, CapacityTrial, Curve, Found, Stage,
    capacity,
};
pub use compare::{
    BLOCKS, Block, Compare, CompareProgress, Comparison, Decision, Effect, FEWEST_BLOCKS, Metric,
    PATTERN, Ratio, Sample, Side, Subject, Trial, compare,
};
pub use driver::{Phase, Progress, run};
pub use error::Error;
pub use host::Host;
pub use ladder::Ladder;
pub use latency::{Bucket, Latencies, Latency, Quantile};
pub use millpond_telemetry::probe::postgres::{
    MeanMax, PgCounters, PgGap, PgPerRequest, PgProbe, PgSample, PgServer, PgSummary, PgWait,
};
pub use null::{Delay, NullAnswer, NullLog, NullPlan, NullServer};
pub use objective::{Met, Objective};
pub use outcome::Errors;
pub use plan::{Order, Plan, Process, Schedule, Stop};
pub use postgres::Postgres;
pub use run::{Accounting, Client, Connections, Little, Loop, Point, Run, Timeline, Verdict};
pub use sweep::{
    Attained, By, Direction, Hysteresis, Judged, News, Step, Sweep, SweepPlan, SweepProgress,
    TopRate, sweep,
};
