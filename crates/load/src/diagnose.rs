//! What limits a server, told from a few short runs with more and more connections.
//!
//! One level of load shows what is full. It does not tell a lock from a sleep: for that the levels are held against
//! each other. With a lock the throughput stays and the response time grows with the connections; where requests only
//! wait for something else, throughput grows and the response time stays.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::analysis::bottleneck::{Finding, LevelSigns, across, findings};
use crate::analysis::demand::{Demands, LEAST};
use crate::{Error, Plan, Progress, Run, Stop, Verdict};

/// Connections below which there is no half of them to compare with.
const FEWEST: usize = 4;
/// Connections where the plan has fewer than [`FEWEST`].
const USUAL: usize = 8;

/// What a few levels say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Whether to believe it: the gravest of the levels' verdicts.
    pub verdict: Verdict,
    /// The levels, lowest first.
    pub levels: Vec<Level>,
    /// What limits the server, the likeliest first; empty where nothing does yet.
    pub bottleneck: Vec<Finding>,
    /// What one request takes, at the level with the highest throughput.
    pub demands: Option<Demands>,
    /// What could not be told, in sentences.
    pub remarks: Vec<String>,
    /// The command line.
    pub command: String,
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

/// Runs `plan` with one connection, and with half, all and twice its connections, and says what limits the server.
/// Fewer than four connections are taken for eight.
///
/// # Errors
/// The plan cannot be carried out, has a schedule, or ends after a number of requests.
pub fn diagnose(
    plan: &Plan,
    mut progress: Option<&mut dyn FnMut(&DiagnoseProgress)>,
    stop: &AtomicBool,
) -> Result<Diagnosis, Error> {
    if plan.schedule.is_some() {
        return Err(Error::Plan(
            "a diagnosis raises the number of connections of a closed loop; it takes no rate"
                .to_owned(),
        ));
    }
    if !matches!(plan.stop, Stop::Duration(_)) {
        return Err(Error::Plan(
            "the levels of a diagnosis end after a duration, not after a number of requests"
                .to_owned(),
        ));
    }
    let all = if plan.connections < FEWEST {
        USUAL
    } else {
        plan.connections
    };
    let steps = [1, all / 2, all, all * 2];
    let mut levels = Vec::new();
    for (number, &connections) in steps.iter().enumerate() {
        let step = Plan {
            connections,
            probe: Some(plan.probe.clone().unwrap_or_default()),
            ..plan.clone()
        };
        let mut tell = |run: &Progress| {
            if let Some(progress) = progress.as_mut() {
                progress(&DiagnoseProgress {
                    step: number + 1,
                    steps: steps.len(),
                    run: *run,
                });
            }
        };
        let run = crate::run(&step, Some(&mut tell), stop)?;
        levels.push(Level {
            in_flight: (connections * plan.depth) as u64,
            run,
        });
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(conclude(levels))
}

/// What the levels say together.
fn conclude(levels: Vec<Level>) -> Diagnosis {
    let mut remarks = Vec::new();
    let top = levels.iter().map(|level| level.run.achieved_rate);
    let highest = top.fold(0.0, f64::max);
    let fastest = levels
        .iter()
        .max_by(|a, b| a.run.achieved_rate.total_cmp(&b.run.achieved_rate));
    let demands = fastest.and_then(|level| {
        let summary = level.run.probe.as_ref()?.summary.as_ref()?;
        let share = level.run.achieved_rate / highest;
        Demands::of(summary, level.run.client_side(), Some(share))
    });
    // What is full is told where it is fullest; the lower levels of the same throughput see it less clearly.
    let mut bottleneck = levels
        .iter()
        .rev()
        .filter(|level| level.run.achieved_rate >= LEAST * highest)
        .find_map(|level| {
            let summary = level.run.probe.as_ref()?.summary.as_ref()?;
            Some(findings(summary, level.run.client_side()))
        })
        .unwrap_or_default();
    if levels.iter().all(|level| level.run.bottleneck.is_none()) {
        remarks.push("no level was long enough for two samples of the host".to_owned());
    }
    if levels.len() < 4 {
        remarks.push("it was stopped before the last level".to_owned());
    }
    if bottleneck.is_empty() && levels.len() == 4 {
        let signs: Option<Vec<LevelSigns>> = levels.iter().map(Level::signs).collect();
        match signs {
            Some(signs) => bottleneck.extend(across(&signs)),
            None => remarks.push(
                "without the server's processes a lock cannot be told from a busy processor"
                    .to_owned(),
            ),
        }
    }
    let graver = |a: Verdict, b: Verdict| match (a, b) {
        (Verdict::Invalid, _) | (_, Verdict::Invalid) => Verdict::Invalid,
        (Verdict::Suspect, _) | (_, Verdict::Suspect) => Verdict::Suspect,
        _ => Verdict::Valid,
    };
    let verdicts = levels.iter().map(|level| level.run.verdict);
    Diagnosis {
        verdict: verdicts.fold(Verdict::Valid, graver),
        command: String::new(),
        levels,
        bottleneck,
        demands,
        remarks,
    }
}

impl Level {
    /// What is held against the other levels; `None` if the server's processes were not seen, or nothing was answered.
    fn signs(&self) -> Option<LevelSigns> {
        let summary = self.run.probe.as_ref()?.summary.as_ref()?;
        let server = summary.server?;
        let requests = self.run.achieved_rate * summary.span_s;
        (requests > 0.0).then(|| LevelSigns {
            in_flight: self.in_flight as f64,
            rate: self.run.achieved_rate,
            response_us: self.in_flight as f64 * 1e6 / self.run.achieved_rate,
            cpu_us: (server.cpu_s + server.run_delay_s) * 1e6 / requests,
            server_share: server.cpu_s / summary.span_s / summary.cores.len().max(1) as f64,
            voluntary: server.voluntary.map(|count| count as f64 / requests),
        })
    }
}
