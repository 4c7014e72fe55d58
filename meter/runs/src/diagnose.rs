//! What limits a server, found by a few short runs with more and more connections.
//!
//! One level of load shows which resource is full. Only several levels distinguish a lock from a
//! sleep. With a lock, throughput stays and the response time grows with the connections. With
//! requests that only wait for something else, throughput grows and the response time stays.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::Run;
use crate::ladder::{Climb, LevelRun};
use crate::limited::{LimitFindings, RunAtLevel};
use millrace_client::{Error, Plan, Progress, Stop, reach};
use millrace_stats::Verdict;
use millrace_stats::analysis::bottleneck::Finding;
use millrace_stats::analysis::demand::Demands;

/// Connections below which there is no half of them to compare with.
const FEWEST: usize = 4;
/// Connections where the plan has fewer than [`FEWEST`].
const USUAL: usize = 8;
/// Levels of a diagnosis.
const LEVELS: usize = 4;
/// Index of the level with all connections of the plan.
const ALL: usize = 2;

/// Findings of a few levels together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Verdict on the diagnosis: the gravest of the levels' verdicts.
    pub verdict: Verdict,
    /// The levels, lowest first.
    pub levels: Vec<Level>,
    /// Limits of the server, the likeliest first; empty where nothing limits it yet.
    pub bottleneck: Vec<Finding>,
    /// Demands of one request, at the level with the highest throughput.
    pub demands: Option<Demands>,
    /// Limits that could not be judged, in sentences.
    pub remarks: Vec<String>,
    /// The command line.
    pub command: String,
}

impl Diagnosis {
    /// The level with all connections of the plan, which an objective is about. None: the diagnosis
    /// was stopped before that level.
    pub fn at_all_connections(&self) -> Option<&Level> {
        self.levels.get(ALL)
    }
}

/// How far a diagnosis is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiagnoseProgress {
    /// The level that runs, from 1.
    pub step: usize,
    /// All levels.
    pub steps: usize,
    /// How far the level's run is.
    pub run: Progress,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Connections, or with pipelining requests in flight.
    pub in_flight: u64,
    /// The run.
    pub run: Run,
}

/// The connections of each level for a plan with this many: one, half, all, and twice as many.
/// Fewer than four count as eight.
pub fn diagnosed(connections: usize) -> [usize; LEVELS] {
    let all = if connections < FEWEST {
        USUAL
    } else {
        connections
    };
    [1, all / 2, all, all * 2]
}

/// Runs `plan` with one connection, and with half, all and twice its connections ([`diagnosed`]),
/// and finds what limits the server.
///
/// # Errors
/// The plan cannot be carried out, nothing listens, it has a schedule, or ends after a number of
/// requests.
pub fn diagnose(
    plan: &Plan,
    mut progress: Option<&mut dyn FnMut(&DiagnoseProgress)>,
    stop: &AtomicBool,
) -> Result<Diagnosis, Error> {
    if plan.load.schedule.is_some() {
        return Err(Error::Plan(
            "a diagnosis raises the number of connections of a closed loop; it takes no rate"
                .to_owned(),
        ));
    }
    if !matches!(plan.length.stop, Stop::Duration(_)) {
        return Err(Error::Plan(
            "the levels of a diagnosis end after a duration, not after a number of requests"
                .to_owned(),
        ));
    }
    reach(plan)?;
    let steps = diagnosed(plan.load.connections);
    let mut levels = Vec::new();
    let mut climb = Climb::new(stop);
    for (number, &connections) in steps.iter().enumerate() {
        let step = plan.clone().with(|step| {
            step.load.connections = connections;
            step.conditions.probe.get_or_insert_default();
        });
        let mut tell = |run: &Progress| {
            if let Some(progress) = progress.as_mut() {
                progress(&DiagnoseProgress {
                    step: number + 1,
                    steps: steps.len(),
                    run: *run,
                });
            }
        };
        let Some(LevelRun { run, .. }) = climb.level(step, &mut tell)? else {
            break;
        };
        levels.push(Level {
            in_flight: (connections * plan.load.depth) as u64,
            run,
        });
    }
    match climb.failure() {
        Some(error) => Err(error),
        None => Ok(conclude(levels, plan.conditions.command.clone())),
    }
}

/// Concludes a diagnosis from the levels together.
fn conclude(levels: Vec<Level>, command: String) -> Diagnosis {
    let runs: Vec<RunAtLevel<'_>> = levels
        .iter()
        .map(|level| RunAtLevel {
            in_flight: Some(level.in_flight as f64),
            run: &level.run,
        })
        .collect();
    let mut findings = LimitFindings::of(&runs);
    if levels.len() < LEVELS {
        findings
            .remarks
            .push("it was stopped before the last level".to_owned());
    } else {
        findings.compare(&runs);
    }
    let graver = |a: Verdict, b: Verdict| match (a, b) {
        (Verdict::Invalid, _) | (_, Verdict::Invalid) => Verdict::Invalid,
        (Verdict::Suspect, _) | (_, Verdict::Suspect) => Verdict::Suspect,
        _ => Verdict::Valid,
    };
    let verdicts = levels.iter().map(|level| level.run.verdict);
    Diagnosis {
        // Without a level there is nothing to be valid.
        verdict: verdicts.reduce(graver).unwrap_or(Verdict::Invalid),
        command,
        levels,
        bottleneck: findings.bottleneck,
        demands: findings.demands,
        remarks: findings.remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_client::{NullPlan, NullServer};

    #[test]
    fn an_objective_is_about_the_level_with_all_connections() {
        assert_eq!(diagnosed(1), [1, 4, 8, 16]);
        assert_eq!(diagnosed(32), [1, 16, 32, 64]);
        let levels = diagnosed(32).map(|connections| Level {
            in_flight: connections as u64,
            run: Run::default(),
        });
        let mut diagnosis = conclude(levels.to_vec(), String::new());
        let asked = diagnosis.at_all_connections().map(|level| level.in_flight);
        assert_eq!(asked, Some(32));
        diagnosis.levels.truncate(ALL);
        assert!(diagnosis.at_all_connections().is_none());
    }

    #[test]
    fn a_diagnosis_without_a_level_is_invalid() {
        let stop = AtomicBool::new(true);
        let server = NullServer::start(&NullPlan::default()).unwrap();
        let plan = Plan::new(server.url()).with(|plan| {
            plan.length.stop = Stop::Duration(std::time::Duration::from_secs(1));
        });
        let diagnosis = diagnose(&plan, None, &stop).unwrap();
        assert_eq!(diagnosis.verdict, Verdict::Invalid);
        assert!(diagnosis.levels.is_empty() && !diagnosis.remarks.is_empty());
        drop(server.stop());
    }
}
