//! A comparison of two real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Comparison;
use super::cpu::ThreadTimes;
use crate::calibration::withdraw_surpassed;
use crate::{Host, Run, run};
use base_clock::Nanos;
use millrace_client::{Error, Plan, Stop, Workload, reach, spin};
use millrace_stats::Detect;
use millrace_stats::compare::design::{self, ComparisonStep, Stage};
use millrace_stats::compare::judge::{Question, judge};
use millrace_stats::compare::length::Length;
use millrace_stats::compare::words::Names;
use millrace_stats::{BLOCKS, Metric, PATTERN, Sample, Side, Subject, Trial};

/// Subjects and settings of a comparison.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The server that is compared with.
    pub a: Subject,
    /// The server that is compared.
    pub b: Subject,
    /// One run; its URL is replaced by those of the servers. A warm-up is a separate run before
    /// each measured run, so that the CPU time and the responses of a run belong to the same
    /// requests.
    pub plan: Plan,
    /// Workloads for A and B instead of their URLs: the same workload, made for each server.
    pub workloads: Option<[Arc<Workload>; 2]>,
    /// Blocks of each phase, at least `FEWEST_BLOCKS`; the fewest where `detect` is given.
    pub blocks: usize,
    /// The smallest difference to be detected: each phase continues until it could detect it.
    pub detect: Option<Detect>,
    /// The metric that decides. `None`: server CPU if both servers have processes, otherwise
    /// throughput in a closed loop and the median in an open one.
    pub metric: Option<Metric>,
    /// How many times worse than A the server B may be.
    pub limit: Option<f64>,
}

/// How far a comparison is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareProgress {
    /// True if this is still A against itself.
    pub is_baseline: bool,
    /// The block, from 1.
    pub block: usize,
    /// Blocks of this phase, as far as is known.
    pub blocks: usize,
    /// The server that is being measured.
    pub server: Side,
    /// Runs that are done, of both phases.
    pub done: usize,
    /// Runs in all, as far as is known.
    pub runs: usize,
    /// Time that is left, estimated from the runs so far.
    pub remaining: Duration,
    /// Progress of the current run.
    pub run: millrace_client::Progress,
}

impl Compare {
    /// A comparison of two URLs by plan and ten blocks.
    pub fn new(a: Subject, b: Subject, plan: Plan) -> Self {
        Self {
            a,
            b,
            plan,
            workloads: None,
            blocks: BLOCKS,
            detect: None,
            metric: None,
            limit: None,
        }
    }

    /// The metrics that these runs give, and the one that decides.
    fn metrics(&self) -> Result<(Vec<Metric>, Metric), Error> {
        let has_cpu = !self.a.pids.is_empty() && !self.b.pids.is_empty();
        let is_closed = self.plan.load.schedule.is_none();
        let given = |metric: &Metric| match metric {
            Metric::Cpu => has_cpu,
            Metric::Throughput => is_closed,
            Metric::P50 | Metric::P99 => true,
        };
        let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(given).collect();
        match self.metric {
            Some(metric) if metrics.contains(&metric) => Ok((metrics, metric)),
            Some(Metric::Cpu) => {
                refuse("to compare the CPU time, the processes of both servers must be given")
            }
            Some(_) => refuse("throughput says nothing in an open loop, where the rate is given"),
            None => {
                let metric = metrics[0];
                Ok((metrics, metric))
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self
            .limit
            .is_some_and(|limit| !(limit.is_finite() && limit > 0.0))
        {
            return refuse("the limit must be a number above 0, such as 1.10");
        }
        for side in [Side::A, Side::B] {
            let plan = self.plan_of(side);
            plan.check()?;
            let pids = self.subject(side).pids.iter();
            let pids: Vec<i32> = pids.filter_map(|&pid| i32::try_from(pid).ok()).collect();
            spin::check(&plan.load, &pids)?;
        }
        Ok(())
    }

    fn subject(&self, side: Side) -> &Subject {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// One run against a server.
    pub fn plan_of(&self, side: Side) -> Plan {
        let workload = self.workloads.as_ref().map(|[a, b]| match side {
            Side::A => Arc::clone(a),
            Side::B => Arc::clone(b),
        });
        self.plan.clone().with(|to| {
            to.target.url = self.subject(side).url.clone();
            to.request.workload = workload.or_else(|| self.plan.request.workload.clone());
        })
    }
}

fn refuse<T>(sentence: &str) -> Result<T, Error> {
    Err(Error::Plan(sentence.to_owned()))
}

/// Compares two servers: A against itself, then A and B in blocks. It ends early, with the results
/// so far, when `stop` is set and after an `INVALID` run. But a block that only the client has
/// spoilt is measured again, up to one in ten blocks. `progress` is called about four times a
/// second.
///
/// # Errors
/// The plan cannot be carried out, a server accepts no connection, or a given process cannot be
/// read at the start of a run.
pub fn compare(
    compare: &Compare,
    mut progress: Option<&mut dyn FnMut(&CompareProgress)>,
    stop: &AtomicBool,
) -> Result<Comparison, Error> {
    compare.check()?;
    let (metrics, metric) = compare.metrics()?;
    let blocks = Length {
        blocks: compare.blocks,
        detect: compare.detect,
        metric,
    };
    blocks.check().map_err(Error::Plan)?;
    for side in [Side::A, Side::B] {
        reach(&compare.plan_of(side))?;
    }
    let began = base_clock::now();
    let mut trials = design::carry_out(&blocks, |step| {
        let mut show = |run: &millrace_client::Progress| {
            if let Some(callback) = progress.as_deref_mut() {
                callback(&progress_of(compare, step, *run, began));
            }
        };
        measure(compare, step, &mut show, stop)
    })?;
    let blocks_of = [&mut trials.baseline, &mut trials.comparison];
    let runs = blocks_of.into_iter().flatten();
    let runs = runs.flat_map(|block| &mut block.trials).map(|trial| {
        let rate = trial.sample.throughput.unwrap_or_default();
        (rate, &mut trial.verdict, &mut trial.reasons)
    });
    withdraw_surpassed(compare.plan.conditions.calibration, runs);
    let judgement = judge(
        &trials,
        &Question {
            metrics: &metrics,
            limit: compare.limit,
            length: blocks,
            names: Names {
                a: &compare.a.name,
                b: &compare.b.name,
            },
        },
    );
    Ok(Comparison {
        verdict: judgement.verdict,
        reasons: judgement.reasons,
        notes: judgement.notes,
        answer: judgement.answer,
        decision: judgement.decision,
        limit: compare.limit,
        within_limit: judgement.within_limit,
        complete: judgement.complete,
        metric,
        a: compare.a.clone(),
        b: compare.b.clone(),
        effects: judgement.effects,
        blocks_asked: compare.blocks,
        detect: compare.detect,
        connections: compare.plan.load.connections,
        offered_rate: compare
            .plan
            .load
            .schedule
            .as_ref()
            .map(|schedule| schedule.rate),
        sessions: compare.plan_of(Side::A).has_sessions(),
        duration_s: length(compare.plan.length.stop).as_secs_f64(),
        warmup_s: compare.plan.length.warmup.as_secs_f64(),
        baseline: trials.baseline,
        blocks: trials.comparison,
        aside: trials.aside,
        host: Host::here(),
        command: compare.plan.conditions.command.clone(),
    })
}

/// The planned length of a run; zero for a run that counts requests.
fn length(stop: Stop) -> Duration {
    match stop {
        Stop::Duration(duration) => duration,
        Stop::Requests(_) => Duration::ZERO,
    }
}

fn progress_of(
    compare: &Compare,
    step: ComparisonStep,
    run: millrace_client::Progress,
    began: Nanos,
) -> CompareProgress {
    let planned = compare.plan.length.warmup + length(compare.plan.length.stop);
    // The runs so far show better than the plan how long a run takes besides its measured part.
    let each = match u32::try_from(step.number) {
        Ok(done) if done >= PATTERN.len() as u32 => {
            (base_clock::since(began) / (done + 1)).max(planned)
        }
        _ => planned,
    };
    let whole = each * u32::try_from(step.runs).unwrap_or(u32::MAX);
    CompareProgress {
        is_baseline: step.stage == Stage::Baseline,
        block: step.block + 1,
        blocks: step.blocks,
        server: step.server(),
        done: step.number,
        runs: step.runs,
        remaining: whole.saturating_sub(base_clock::since(began)),
        run,
    }
}

/// How long to wait for a disturbance of the client to end, after `spoilt` blocks spoilt in a row:
/// one second, then twice as long each time.
fn pause_after(spoilt: u32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(30);
    Duration::from_secs(1 << spoilt.saturating_sub(1).min(5)).min(LONGEST)
}

/// One run with its warm-up; `None` if it was stopped.
fn measure(
    compare: &Compare,
    step: ComparisonStep,
    show: &mut dyn FnMut(&millrace_client::Progress),
    stop: &AtomicBool,
) -> Result<Option<Trial>, Error> {
    if step.spoilt > 0 {
        base_clock::rest(pause_after(step.spoilt), stop);
    }
    let subject = compare.subject(step.server());
    let plan = compare
        .plan_of(step.server())
        .with(|plan| plan.length.warmup = Duration::ZERO);
    if !compare.plan.length.warmup.is_zero() {
        let warmup = plan
            .clone()
            .with(|to| to.length.stop = Stop::Duration(compare.plan.length.warmup));
        run(&warmup, Some(&mut *show), stop)?;
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let before = ThreadTimes::take(&subject.pids)?;
    let run = run(&plan, Some(show), stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    // A server that died during the run has made the run INVALID, which says more than a missing
    // process.
    let spent = ThreadTimes::take(&subject.pids)
        .ok()
        .and_then(|after| after.since(&before));
    Ok(Some(Trial {
        side: step.side,
        sample: sample(&run, spent),
        verdict: run.verdict,
        reasons: run.reasons,
        client_at_fault: run.client_at_fault,
    }))
}

/// The figures of a run for which the server spent this many nanoseconds.
fn sample(run: &Run, spent: Option<u64>) -> Sample {
    let latency = run.latency_us.response.or(run.latency_us.service);
    let answered = run.accounting.answered;
    Sample {
        throughput: (run.good_rate > 0.0).then_some(run.good_rate),
        p50_us: latency.and_then(|latency| latency.p50),
        p99_us: latency.and_then(|latency| latency.p99),
        cpu_us: spent
            .filter(|_| answered > 0)
            .map(|nanos| nanos as f64 / 1000.0 / answered as f64),
    }
}
