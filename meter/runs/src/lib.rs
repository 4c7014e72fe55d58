//! Runs and their results: sweeps, capacity searches, diagnoses, comparisons, merged runs and
//! experiments.
//!
//! It knows how a run is measured (by `millrace-client`), what follows from it (by
//! `millrace-stats`), what is probed during it, and the formats in which results are stored. It
//! must not know any code of the server, how results are drawn, or what the command line is.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use millrace_client::{Plan, Stop};
//! use millrace_runs::run;
//!
//! let plan = Plan::new("http://127.0.0.1:8080/").with(|plan| {
//!     plan.load.connections = 10;
//!     plan.length.stop = Stop::Requests(1000);
//! });
//! let run = run(&plan, None, &AtomicBool::new(false))?;
//! println!("{} {:.0}/s", run.verdict, run.achieved_rate);
//! # Ok::<(), millrace_client::Error>(())
//! ```

mod calibration;
mod capacity;
mod compare;
mod conclude;
mod diagnose;
mod figures;
mod host;
mod lab;
mod ladder;
mod limited;
mod measure;
mod merge;
mod objective;
mod postgres;
mod probe;
mod run;
mod sweep;
mod visits;

pub use base_probe::postgres::{
    MeanMax, PgCounters, PgGap, PgPerRequest, PgProbe, PgSample, PgServer, PgSummary, PgWait,
};
/// Sampling by a host probe and its summary; see [`base_probe`].
pub use base_probe::{Moment, Probe, Summary};
pub use calibration::calibrate;
pub use capacity::{Capacity, CapacityNews, CapacityPlan, CapacityProgress, capacity};
pub use compare::{Compare, CompareProgress, Comparison, compare};
pub use diagnose::{DiagnoseProgress, Diagnosis, Level, diagnose, diagnosed};
pub use figures::{ClassFigures, MergedRun, Pauses, Probed, RampDown, Sessions, StreamFigures};
pub use host::Host;
pub use lab::{
    CannotRepeat, CrossCheck, Experiment, Fault, Lab, LabBound, LabFigure, LabFinding, LabInterval,
    LabLevel, LabLimit, LabMetric, LabMoment, LabOptions, LabOutcome, LabProgress, LabRun,
    LabServer, MedianRange, Missing, OriginalTable, OtherClient, Programs, QuickRuns, Study,
    StudyPart, StudyRecord, StudyText, Text, lab,
};
pub use ladder::Ladder;
pub use measure::run;
pub use merge::MergeError;
pub use postgres::Postgres;
pub use run::{ClientFigures, Connections, Loop, Protocol, Run};
pub use sweep::{
    Attained, By, Crossing, Direction, Edge, Hysteresis, Judged, LevelPower, LevelRange, News,
    Power, Sweep, SweepPlan, SweepProgress, SweepStep, TopRate, sweep,
};
