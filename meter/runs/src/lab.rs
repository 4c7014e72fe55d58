//! Experiments as files: several servers, how each is started, pinned and stopped, one workload,
//! and one report.
//!
//! A server runs only while it is measured (or for the whole experiment if the file says so), in
//! its own process group. It is ended with all processes that it started: after its turn, when the
//! experiment fails or panics, and when this process is killed. Every server is measured alike: the
//! client's run, the server's CPU time from the run times of all its threads, and the other
//! activity on its cores.

mod blocks;
mod check;
mod check_addresses;
mod check_ladder;
mod check_limits;
mod check_other;
mod check_spin;
#[cfg(test)]
mod check_tests;
mod check_workload;
mod client_options;
mod cores;
mod cost;
mod doubts;
mod expected_time;
mod experiment;
mod fault;
mod figure;
mod findings;
mod h2load;
mod idle;
mod limit;
mod measure;
mod memory;
mod moments;
mod other_client;
mod outcome;
mod output;
mod placeholders;
mod process;
mod process_tree;
mod programs;
mod progress;
mod quick;
mod requests;
mod run_time;
mod runner;
mod sampled;
mod schedule;
mod server;
mod source;
mod spec;
mod spec_values;
mod study;
mod study_record;
#[cfg(test)]
mod study_tests;
mod trial;
mod work_folder;
mod wrk;

pub use experiment::Experiment;
pub use fault::Fault;
pub use figure::LabFigure;
pub use outcome::{
    CrossCheck, Lab, LabBound, LabFinding, LabInterval, LabLevel, LabLimit, LabMetric, LabMoment,
    LabOutcome, LabRun, LabServer, MedianRange, OtherClient, Text,
};
pub use programs::Missing;
pub use progress::LabProgress;
pub use quick::QuickRuns;
pub use runner::{LabOptions, Programs, lab};
pub use study::Study;
pub use study_record::{CannotRepeat, OriginalTable, StudyPart, StudyRecord, StudyText};
