//! The search on a real server.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::limits::Confirmed;
use super::outcome::Capacity;
use super::{CapacityNews, CapacityPlan, CapacityProgress, words};
use crate::calibration::withdraw_surpassed;
use crate::ladder::{Climb, LevelRun};
use crate::limited::LimitFindings;
use crate::{Host, Run};
use base_clock::Nanos;
use millrace_client::{Error, Plan, Progress, Schedule, Stop};
use millrace_stats::capacity::search::{Ask, Searched, search};
use millrace_stats::{CapacityTrial, SearchEnd, Stage};
use millrace_stats::{Objective, Verdict};

/// Searches for the highest rate that meets the objective. When `stop` is set, the search ends with
/// the trials so far. `watch` is called from the calling thread.
///
/// # Errors
/// The first trial cannot be run. If a later trial cannot be run, the result of the trials before
/// it is returned, with the reason.
pub fn capacity(
    plan: &CapacityPlan,
    mut watch: Option<&mut dyn FnMut(CapacityNews<'_>)>,
    stop: &AtomicBool,
) -> Result<Capacity, Error> {
    plan.check()?;
    let length = plan.trial_length();
    let began = base_clock::now();
    let mut trouble = None;
    let mut climb = Climb::new(stop);
    let mut confirmed = Confirmed::default();
    let mut searched = search(&plan.question(), |ask| {
        let mut tell = |run: &Progress| {
            if let Some(watch) = watch.as_mut() {
                watch(CapacityNews::Progress(&how_far(ask, *run, length, began)));
            }
        };
        let level = climb.level(trial_plan(plan, ask), &mut tell)?;
        let Some(LevelRun {
            run,
            complete: true,
        }) = level
        else {
            let failure = climb.failure();
            trouble = failure.map(|error| format!("no trial at {:.0}/s: {error}", ask.rate));
            return Ok(None);
        };
        let trial = trial(ask, &plan.objective, &run);
        confirmed.keep(ask.stage, run);
        if let Some(watch) = watch.as_mut() {
            watch(CapacityNews::Trial(&trial));
        }
        Ok(Some(trial))
    })?;
    withdraw_surpassed(
        plan.plan.conditions.calibration,
        searched
            .trials
            .iter_mut()
            .map(|trial| (trial.achieved_rate, &mut trial.verdict, &mut trial.reasons)),
    );
    let findings = confirmed.limit_findings();
    Ok(conclude(plan, searched, trouble, findings))
}

/// The trial at the highest rate.
pub(super) fn top(plan: &CapacityPlan) -> Plan {
    let ask = Ask {
        stage: Stage::Bracket,
        rate: plan.to,
        number: 0,
        expected: 0,
    };
    trial_plan(plan, &ask)
}

fn trial_plan(plan: &CapacityPlan, ask: &Ask) -> Plan {
    let process = plan.process.reseeded(ask.number as u64);
    let schedule = Schedule::new(ask.rate, process);
    plan.plan
        .clone()
        .with(|trial| trial.load.schedule = Some(schedule))
}

fn how_far(ask: &Ask, run: Progress, length: Duration, began: Nanos) -> CapacityProgress {
    let done = u32::try_from(ask.number).unwrap_or(u32::MAX);
    let all = u32::try_from(ask.expected).unwrap_or(u32::MAX);
    // A trial also takes the time to connect and to await the last responses.
    let each = if done >= 4 {
        (base_clock::since(began) / (done + 1)).max(length)
    } else {
        length
    };
    CapacityProgress {
        stage: ask.stage,
        rate: ask.rate,
        done: ask.number,
        expected: ask.expected,
        run,
        remaining: (each * (all - done.min(all))).saturating_sub(run.elapsed),
    }
}

fn trial(ask: &Ask, objective: &Objective, run: &Run) -> CapacityTrial {
    let times = run.latency_us.response.or(run.latency_us.service);
    let is_late =
        |late: millrace_stats::Latency| times.is_some_and(|times| late.mean > 0.5 * times.mean);
    CapacityTrial {
        stage: ask.stage,
        rate: ask.rate,
        scheduled: run.accounting.issued,
        good: in_time(objective, run),
        backlog: run.backlog.is_some(),
        achieved_rate: run.achieved_rate,
        p99_us: times.and_then(|times| times.p99),
        client_limit: run.verdict == Verdict::Invalid
            && run.latency_us.lateness.is_some_and(is_late),
        verdict: run.verdict,
        reasons: run.reasons.clone(),
    }
}

/// Good responses within the objective's time: from the percentile curve, and beyond its end from
/// the bars of the histogram. Between two points of the curve the share of slower responses changes
/// by 7 %; its logarithm is interpolated.
fn in_time(objective: &Objective, run: &Run) -> u64 {
    let within = objective.within_us;
    let good = run.accounting.good;
    let after = run.percentiles.iter().position(|point| point.us >= within);
    let share = match after {
        Some(after) if after > 0 => {
            let (low, high) = (run.percentiles[after - 1], run.percentiles[after]);
            let part = (within - low.us) / (high.us - low.us).max(f64::MIN_POSITIVE);
            let (before, behind) = ((1.0 - low.q).ln(), (1.0 - high.q).ln());
            1.0 - (before + part.clamp(0.0, 1.0) * (behind - before)).exp()
        }
        _ => {
            let counted: u64 = run.histogram.iter().map(|bar| bar.count).sum();
            let inside = |bar: &millrace_stats::Bucket| {
                let width = (bar.to_us - bar.from_us).max(f64::MIN_POSITIVE);
                bar.count as f64 * ((within - bar.from_us) / width).clamp(0.0, 1.0)
            };
            let longest = run.latency_us.response.or(run.latency_us.service);
            if longest.is_some_and(|times| times.max < within) {
                1.0
            } else {
                run.histogram.iter().map(inside).sum::<f64>() / counted.max(1) as f64
            }
        }
    };
    ((good as f64 * share).round() as u64).min(good)
}

fn conclude(
    plan: &CapacityPlan,
    searched: Searched,
    trouble: Option<String>,
    findings: Option<LimitFindings>,
) -> Capacity {
    let is_probed = findings.is_some();
    let findings = findings.unwrap_or_default();
    let crossing = searched.crossing;
    let low = crossing
        .map(|crossing| crossing.low)
        .or_else(|| seen(plan, &searched));
    let (verdict, reasons) = words::judge(plan, &searched, trouble);
    let says_nothing = matches!(searched.found, SearchEnd::Invalid | SearchEnd::BelowFrom);
    let is_at_least = plan.at_least.and_then(|rate| match low {
        Some(low) if low >= rate => Some(true),
        _ if searched.found == SearchEnd::BelowFrom => Some(false),
        _ if searched.found == SearchEnd::Rate => Some(false),
        _ => None,
    });
    Capacity {
        verdict,
        reasons,
        answer: words::answer(plan, &searched, low),
        found: searched.found,
        rate: crossing.map(|crossing| crossing.rate),
        low: low.filter(|_| !says_nothing || crossing.is_some()),
        high: crossing.map(|crossing| crossing.high),
        met_at_low: searched.met_at_low,
        failed_above_high: searched.failed_above_high,
        objective: plan.objective,
        at_least: plan.at_least,
        is_at_least,
        precision: plan.precision,
        from: plan.from,
        to: plan.to,
        curve: crossing.map(|crossing| crossing.line.into()),
        trials: searched.trials,
        url: plan.plan.target.url.clone(),
        connections: plan.plan.load.connections,
        duration_s: match plan.plan.length.stop {
            Stop::Duration(duration) => duration.as_secs_f64(),
            Stop::Requests(_) => 0.0,
        },
        warmup_s: plan.plan.length.warmup.as_secs_f64(),
        host: Host::here(),
        command: plan.plan.conditions.command.clone(),
        sessions: plan.plan.has_sessions(),
        bottleneck: is_probed.then_some(findings.bottleneck),
        demands: findings.demands,
        remarks: findings.remarks,
    }
}

/// The highest rate at which a trial met the objective.
fn seen(plan: &CapacityPlan, searched: &Searched) -> Option<f64> {
    let met = searched
        .trials
        .iter()
        .filter(|trial| trial.verdict != Verdict::Invalid && trial.meets(&plan.objective));
    met.map(|trial| trial.rate).max_by(f64::total_cmp)
}
