//! One server at one level: a warm-up, the run, and what it cost.

use std::sync::atomic::{AtomicBool, Ordering};

use super::cores::Ticks;
use super::outcome::{CrossCheck, LabLevel, LabRun};
use super::server::Running;
use super::workshop::Workshop;
use super::wrk;
use crate::compare::cpu::Reading;
use crate::{Plan, Run, Stop, Verdict, run};

/// What is to be measured now.
pub(super) struct Scene<'a, 'b> {
    pub(super) shop: &'a Workshop<'b>,
    pub(super) subject: &'a mut Running<'b>,
    pub(super) beside: &'a mut [Running<'b>],
    pub(super) level: LabLevel,
    /// From 1.
    pub(super) repeat: usize,
    pub(super) stop: &'a AtomicBool,
}

/// What the server used while something ran.
struct Cost {
    /// Nanoseconds of run time.
    cpu: Option<u64>,
    /// Busy share of its cores, and microseconds of software interrupts there.
    cores: Option<(f64, f64)>,
}

impl Cost {
    fn cpu_us(&self, requests: u64) -> Option<f64> {
        self.cpu
            .filter(|_| requests > 0)
            .map(|nanos| nanos as f64 / 1000.0 / requests as f64)
    }
}

/// Measures; `None` if it was stopped. `show` is called about five times a second.
pub(super) fn measure(
    scene: &mut Scene<'_, '_>,
    show: &mut dyn FnMut(),
) -> Result<Option<LabRun>, String> {
    let experiment = scene.shop.experiment;
    let url = scene.subject.url(experiment.path(scene.subject.spec));
    let mut plan = experiment.plan(url.clone(), scene.level);
    plan.workload = experiment.sessions(&plan)?;
    if !warm(scene, &plan, show)? {
        return Ok(None);
    }
    // The other client goes first in every second repeat.
    let is_wrk_first = scene.repeat.is_multiple_of(2);
    let mut wrk = None;
    if is_wrk_first {
        wrk = cross_check(scene, &url, show)?;
    }
    let Some((mut ours, mut cost)) = once(scene, &plan, show)? else {
        return Ok(None);
    };
    let mut again = None;
    if ours.verdict == Verdict::Invalid {
        again = Some(ours.reasons.join("; "));
        match once(scene, &plan, show)? {
            Some(second) => (ours, cost) = second,
            None => return Ok(None),
        }
    }
    if !is_wrk_first {
        wrk = cross_check(scene, &url, show)?;
    }
    if scene.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(record(scene, &ours, &cost, again, wrk)))
}

fn record(
    scene: &Scene<'_, '_>,
    ours: &Run,
    cost: &Cost,
    again: Option<String>,
    wrk: Option<CrossCheck>,
) -> LabRun {
    let requests = ours.accounting.answered;
    LabRun {
        server: scene.subject.record.name.clone(),
        level: scene.level,
        repeat: scene.repeat,
        verdict: ours.verdict,
        reasons: ours.reasons.clone(),
        again,
        requests,
        errors: ours.errors.total(),
        throughput: ours.good_rate,
        latency_us: ours.latency_us.response.or(ours.latency_us.service),
        cpu_us: cost.cpu_us(requests),
        softirq_us: cost
            .cores
            .filter(|_| requests > 0)
            .map(|(_, softirq)| softirq / requests as f64),
        core_busy: cost.cores.map(|(busy, _)| busy),
        client_cpu_us: ours.client.cpu_us_per_request,
        client_busy: ours.client.busiest_thread,
        wrk,
    }
}

/// The warm-up is a run of its own, so that the cost and the answers of a run are of the same requests.
fn warm(scene: &mut Scene<'_, '_>, plan: &Plan, show: &mut dyn FnMut()) -> Result<bool, String> {
    let warmup = scene.shop.experiment.workload.get_ref().warmup.0;
    if !warmup.is_zero() {
        let plan = Plan {
            stop: Stop::Duration(warmup),
            ..plan.clone()
        };
        run(&plan, Some(&mut |_| show()), scene.stop).map_err(|error| error.to_string())?;
        must_live(scene)?;
    }
    Ok(!scene.stop.load(Ordering::Relaxed))
}

fn once(
    scene: &mut Scene<'_, '_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
) -> Result<Option<(Run, Cost)>, String> {
    let (run, cost) = costing(scene, || {
        run(plan, Some(&mut |_| show()), scene.stop).map_err(|error| error.to_string())
    });
    let run = run?;
    if scene.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    must_live(scene)?;
    Ok(Some((run, cost)))
}

fn cross_check(
    scene: &mut Scene<'_, '_>,
    url: &str,
    show: &mut dyn FnMut(),
) -> Result<Option<CrossCheck>, String> {
    if scene.shop.experiment.cross_check.is_none() || scene.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (found, cost) = costing(scene, || {
        wrk::run(scene.shop, url, scene.level, show, scene.stop)
    });
    let found = found?;
    must_live(scene)?;
    Ok(found.map(|found| CrossCheck {
        throughput: found.throughput,
        errors: found.errors,
        cpu_us: cost.cpu_us(found.requests),
        core_busy: cost.cores.map(|(busy, _)| busy),
    }))
}

/// Does something and says what it cost the server.
fn costing<T>(scene: &Scene<'_, '_>, work: impl FnOnce() -> T) -> (T, Cost) {
    let cores = &scene.subject.record.cores;
    let (ticks, before) = (Ticks::take(cores), reading(scene));
    let done = work();
    let (ticks_after, after) = (Ticks::take(cores), reading(scene));
    let cost = Cost {
        cpu: after
            .zip(before)
            .and_then(|(after, before)| after.since(&before)),
        cores: ticks_after
            .zip(ticks)
            .and_then(|(after, before)| after.since(&before)),
    };
    (done, cost)
}

/// Run times of the server and of what stands behind it. `None` where the kernel does not tell.
fn reading(scene: &Scene<'_, '_>) -> Option<Reading> {
    // A process may end between the listing and the reading; then it is listed again.
    (0..3).find_map(|_| {
        let others = scene.beside.iter().flat_map(Running::pids);
        let pids: Vec<u32> = scene.subject.pids().into_iter().chain(others).collect();
        Reading::take(&pids).ok()
    })
}

fn must_live(scene: &mut Scene<'_, '_>) -> Result<(), String> {
    scene.subject.must_live()?;
    scene.beside.iter_mut().try_for_each(Running::must_live)
}
