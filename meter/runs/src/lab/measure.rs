//! One server at one level: a warm-up, the run, and what it cost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toml::Spanned;

use super::cores::{Both, Looks, Sides, Work};
use super::experiment::numbered;
use super::idle::Idle;
use super::memory;
use super::outcome::{CrossCheck, LabLevel, LabRun};
use super::server::Running;
use super::workshop::Workshop;
use super::{interrupts, other};
use crate::compare::cpu::Reading;
use crate::{Run, run};
use millrace_client::{Phase, Plan, Progress, Stop};
use millrace_stats::Verdict;

/// What the kernel does after so many connections were opened is no cost of those that are idle, and those of the run before may
/// have been closed right before. After a second, one more beside 10,000 was served 8 % less often than alone: in the runs that came straight
/// after another such run, 12 % less often, in the others as often. After three there is no difference between them.
const SETTLING: Duration = Duration::from_secs(3);

/// What is to be measured now.
pub(super) struct Scene<'a, 'b> {
    pub(super) shop: &'a Workshop<'b>,
    pub(super) subject: &'a mut Running<'b>,
    pub(super) beside: &'a mut [Running<'b>],
    pub(super) level: LabLevel,
    /// From 1.
    pub(super) repeat: usize,
    /// Which of the server's runs at this level in the repeat.
    pub(super) pass: usize,
    /// How long.
    pub(super) duration: Duration,
    /// Whether the other client is to run as well.
    pub(super) is_checked: bool,
    /// Whether a run that does not count goes before.
    pub(super) is_cold: bool,
    pub(super) stop: &'a AtomicBool,
}

/// What the server used while something ran.
struct Cost {
    /// Nanoseconds of run time.
    cpu: Option<u64>,
    /// What its cores did, and those of the client.
    cores: Both<Work>,
    /// How busy they were in the middle of it, if it was long enough.
    within: Both<f64>,
    /// Interrupts of the client's cores by others.
    interrupts: Option<u64>,
}

impl Cost {
    fn cpu_us(&self, requests: u64) -> Option<f64> {
        self.cpu
            .filter(|_| requests > 0)
            .map(|nanos| nanos as f64 / 1000.0 / requests as f64)
    }

    /// Of the client's cores, for one request.
    fn interrupts(&self, requests: u64) -> Option<f64> {
        let count = self.interrupts.filter(|_| requests > 0)?;
        Some(count as f64 / requests as f64)
    }
}

/// Measures; `None` if it was stopped. `show` is called about five times a second.
pub(super) fn measure(
    scene: &mut Scene<'_, '_>,
    show: &mut dyn FnMut(),
) -> Result<Option<LabRun>, String> {
    let experiment = scene.shop.experiment;
    let path = experiment.path(scene.subject.spec);
    let url = scene.subject.url(&numbered(path, 0));
    let mut plan = experiment.plan(url, experiment.targets(path), scene.level);
    plan.length.stop = Stop::Duration(scene.duration);
    plan.request.workload = experiment.sessions(&plan)?;
    if !warm(scene, &plan, show)? || scene.is_cold && once(scene, &plan, show)?.is_none() {
        return Ok(None);
    }
    let idle = match scene.subject.spec.idle.as_ref().map(Spanned::get_ref) {
        None => None,
        Some(&count) => match leave_open(scene, &plan, count)? {
            Some(idle) if warm(scene, &plan, show)? => Some(idle),
            _ => return Ok(None),
        },
    };
    // The other client goes first in every second pass, and then in those that it did not in the repeat before.
    let is_other_first = (scene.repeat + scene.pass) % 2 == 1;
    let mut other = None;
    if is_other_first {
        other = cross_check(scene, &plan, show)?;
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
    if !is_other_first {
        other = cross_check(scene, &plan, show)?;
    }
    if let Some(closed) = idle.as_ref().map(Idle::closed).filter(|closed| *closed > 0) {
        ours.verdict = Verdict::Invalid;
        ours.reasons.push(format!(
            "the server has closed {closed} of the idle connections"
        ));
    }
    if scene.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(record(scene, &ours, &cost, again, other)))
}

fn record(
    scene: &Scene<'_, '_>,
    ours: &Run,
    cost: &Cost,
    again: Option<String>,
    other: Option<CrossCheck>,
) -> LabRun {
    let requests = ours.accounting.answered;
    let busy = |within: Option<f64>, cores: Option<Work>| {
        within.or_else(|| cores?.utilisation(requests, ours.achieved_rate))
    };
    LabRun {
        server: scene.subject.record.name.clone(),
        level: scene.level,
        repeat: scene.repeat,
        pass: scene.pass,
        duration_s: Some(ours.duration_s),
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
            .server
            .filter(|_| requests > 0)
            .map(|cores| cores.softirq_us / requests as f64),
        core_busy: busy(cost.within.server, cost.cores.server),
        client_cpu_us: ours.client.cpu_us_per_request,
        client_busy: ours.client.busiest_thread,
        client_turns: ours
            .client
            .turns
            .filter(|_| requests > 0)
            .map(|turns| turns as f64 / requests as f64),
        client_core_busy: busy(cost.within.client, cost.cores.client).filter(|_| !ours.client.spin),
        client_interrupts: cost.interrupts(requests),
        client_spin: ours.client.spin,
        idle_bytes: scene.subject.idle_bytes,
        other,
    }
}

/// Opens connections that ask for nothing, and leaves them alone for a while. What they cost in memory is seen the first time only: later a server may use again
/// what it had for those before.
fn leave_open(
    scene: &mut Scene<'_, '_>,
    plan: &Plan,
    count: usize,
) -> Result<Option<Idle>, String> {
    let path = numbered(scene.shop.experiment.path(scene.subject.spec), 0);
    let before = memory::resident(&pids(scene));
    let opened = Idle::open(
        scene.subject.port,
        &path,
        count,
        plan.load.connections,
        scene.stop,
    );
    let of_it = |error: String| format!("server {}: {error}", scene.subject.record.name);
    let opened = opened.map_err(of_it)?;
    must_live(scene)?;
    let after = memory::resident(&pids(scene));
    if opened.is_some() && scene.subject.idle_bytes.is_none() {
        scene.subject.idle_bytes = before
            .zip(after)
            .map(|(before, after)| (after as f64 - before as f64) / count.max(1) as f64);
    }
    base_clock::rest(SETTLING, scene.stop);
    Ok(opened)
}

/// The warm-up is a run of its own, so that the cost and the answers of a run are of the same requests.
fn warm(scene: &mut Scene<'_, '_>, plan: &Plan, show: &mut dyn FnMut()) -> Result<bool, String> {
    let warmup = scene.shop.experiment.workload.get_ref().warmup.0;
    if !warmup.is_zero() {
        let plan = plan
            .clone()
            .with(|plan| plan.length.stop = Stop::Duration(warmup));
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
    let (sides, mut looks) = (sides(scene), Looks::default());
    let mut progress = |progress: &Progress| {
        if progress.phase == Phase::Measuring && progress.fraction < 1.0 {
            looks.look(sides);
        }
        show();
    };
    let (run, mut cost) = costing(scene, || {
        run(plan, Some(&mut progress), scene.stop).map_err(|error| error.to_string())
    });
    let run = run?;
    cost.within = looks.shares();
    if scene.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    must_live(scene)?;
    Ok(Some((run, cost)))
}

fn cross_check(
    scene: &mut Scene<'_, '_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
) -> Result<Option<CrossCheck>, String> {
    let checker = scene.shop.experiment.cross_check.as_ref();
    let Some(checker) = checker.filter(|_| scene.is_checked && !scene.stop.load(Ordering::Relaxed))
    else {
        return Ok(None);
    };
    let checker = *checker.get_ref();
    let (found, cost) = costing(scene, || {
        other::run(scene.shop, checker, plan, sides(scene), show, scene.stop)
    });
    let found = found?;
    must_live(scene)?;
    Ok(found.map(|found| CrossCheck {
        throughput: found.throughput,
        errors: found.errors,
        cpu_us: cost.cpu_us(found.requests),
        core_busy: found.server_busy,
        client: found.client,
        interrupts: cost.interrupts(found.requests),
    }))
}

/// Does something and says what it cost the server.
fn costing<T>(scene: &Scene<'_, '_>, work: impl FnOnce() -> T) -> (T, Cost) {
    let sides = sides(scene);
    // The longest reading is the outermost, so that it is no part of what the cores are seen to do.
    let (interrupted, ticks) = (interrupts::taken(sides.client), sides.ticks());
    let before = reading(scene);
    let done = work();
    let (after, ticks_after) = (reading(scene), sides.ticks());
    let interrupted_after = interrupts::taken(sides.client);
    let cost = Cost {
        cpu: after
            .zip(before)
            .and_then(|(after, before)| after.since(&before)),
        cores: ticks_after.since(ticks),
        within: Looks::default().shares(),
        interrupts: interrupted_after
            .zip(interrupted)
            .and_then(|(after, before)| after.checked_sub(before)),
    };
    (done, cost)
}

/// The cores of the server and of the client, these only where no server may be on them: what happens there would be its doing too.
fn sides<'a>(scene: &'a Scene<'_, '_>) -> Sides<'a> {
    let workload = scene.shop.experiment.workload.get_ref();
    let client = workload.cores.as_ref().map(Spanned::get_ref);
    let client = client.map_or(&[] as &[usize], Vec::as_slice);
    let beside = scene.beside.iter().map(|running| &running.record);
    let mut servers = [&scene.subject.record].into_iter().chain(beside);
    let is_apart =
        |cores: &[usize]| !cores.is_empty() && cores.iter().all(|core| !client.contains(core));
    Sides {
        server: &scene.subject.record.cores,
        client: match servers.all(|server| is_apart(&server.cores)) {
            true => client,
            false => &[],
        },
    }
}

/// Run times of the server and of what stands behind it. `None` where the kernel does not tell.
fn reading(scene: &Scene<'_, '_>) -> Option<Reading> {
    // A process may end between the listing and the reading; then it is listed again.
    (0..3).find_map(|_| Reading::take(&pids(scene)).ok())
}

/// The processes of the server and of what stands behind it.
fn pids(scene: &Scene<'_, '_>) -> Vec<u32> {
    let others = scene.beside.iter().flat_map(Running::pids);
    scene.subject.pids().into_iter().chain(others).collect()
}

fn must_live(scene: &mut Scene<'_, '_>) -> Result<(), String> {
    scene.subject.must_live()?;
    scene.beside.iter_mut().try_for_each(Running::must_live)
}
