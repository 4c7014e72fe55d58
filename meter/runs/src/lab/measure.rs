//! One server at one level: a warm-up, the run, and its cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toml::Spanned;

use super::cores::{CoreReadings, CoreWork};
use super::cost::{Cost, pids, sides, with_cost};
use super::experiment::numbered;
use super::figure::LabFigure;
use super::idle::Idle;
use super::memory;
use super::moments::ServerWatch;
use super::other_client;
use super::outcome::{CrossCheck, LabLevel, LabRun};
use super::sampled;
use super::server::RunningServer;
use super::work_folder::WorkFolder;
use crate::{Run, run};
use millrace_client::{Phase, Plan, Progress, Stop, client_config};
use millrace_stats::Verdict;

/// Pause after idle connections were opened. The kernel's work after opening many connections is no
/// cost of idle connections, and those of the run before may have been closed just now. With a
/// pause of one second, one busy connection beside 10,000 idle ones was served 8 % less often than
/// alone: 12 % less often in runs directly after another such run, and equally often in the others.
/// With three seconds there is no difference.
const SETTLING: Duration = Duration::from_secs(3);

/// The current measurement.
pub(super) struct LevelRun<'a, 'b> {
    pub(super) work_folder: &'a WorkFolder<'b>,
    pub(super) subject: &'a mut RunningServer<'b>,
    pub(super) beside: &'a mut [RunningServer<'b>],
    pub(super) level: LabLevel,
    /// From 1.
    pub(super) repeat: usize,
    /// Number of the server's run at this level in the repeat.
    pub(super) pass: usize,
    /// How long.
    pub(super) duration: Duration,
    /// True if the other client runs as well.
    pub(super) is_checked: bool,
    /// True if an uncounted run goes first.
    pub(super) is_cold: bool,
    pub(super) stop: &'a AtomicBool,
}

/// Measures; `None` if it was stopped. `show` is called about five times a second.
pub(super) fn measure(
    level_run: &mut LevelRun<'_, '_>,
    show: &mut dyn FnMut(),
) -> Result<Option<LabRun>, String> {
    let experiment = level_run.work_folder.experiment;
    let path = level_run.work_folder.path(level_run.subject.spec);
    let url = level_run.subject.url(experiment, &numbered(&path, 0));
    let targets = experiment.targets(&path, Some(level_run.level));
    let mut plan = experiment.plan(url, targets, level_run.level);
    plan.length.stop = experiment.workload.get_ref().stop(level_run.duration);
    plan.target
        .connect_to
        .clone_from(&level_run.subject.record.addresses);
    match level_run.work_folder.replayed()? {
        Some(log) => experiment.replay(&mut plan, &log)?,
        None => plan.request.workload = experiment.sessions(&plan)?,
    }
    if !warm(level_run, &plan, show)?
        || level_run.is_cold && once(level_run, &plan, show)?.is_none()
    {
        return Ok(None);
    }
    let idle = match experiment
        .idle(level_run.subject.spec)
        .map(Spanned::get_ref)
    {
        None => None,
        Some(&count) => match open_idle(level_run, &plan, count)? {
            Some(idle) if warm(level_run, &plan, show)? => Some(idle),
            _ => return Ok(None),
        },
    };
    // The other client goes first in every second pass, and in the next repeat in the other passes.
    let is_other_first = (level_run.repeat + level_run.pass) % 2 == 1;
    let mut other = None;
    if is_other_first {
        other = cross_check(level_run, &plan, show)?;
    }
    let Some((mut ours, mut cost)) = once(level_run, &plan, show)? else {
        return Ok(None);
    };
    let mut again = None;
    if ours.verdict == Verdict::Invalid {
        again = Some(ours.reasons.join("; "));
        match once(level_run, &plan, show)? {
            Some(second) => (ours, cost) = second,
            None => return Ok(None),
        }
    }
    if !is_other_first {
        other = cross_check(level_run, &plan, show)?;
    }
    if let Some(closed) = idle.as_ref().map(Idle::closed).filter(|closed| *closed > 0) {
        ours.verdict = Verdict::Invalid;
        ours.reasons.push(format!(
            "the server has closed {closed} of the idle connections"
        ));
    }
    if level_run.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(record(level_run, &ours, &cost, again, other)))
}

fn record(
    level_run: &LevelRun<'_, '_>,
    ours: &Run,
    cost: &Cost,
    again: Option<String>,
    other: Option<CrossCheck>,
) -> LabRun {
    let requests = ours.accounting.answered;
    let busy = |within: Option<f64>, cores: Option<CoreWork>| {
        within.or_else(|| cores?.utilisation(requests, ours.achieved_rate))
    };
    LabRun {
        server: level_run.subject.record.name.clone(),
        level: level_run.level,
        repeat: level_run.repeat,
        pass: level_run.pass,
        duration_s: Some(ours.duration_s),
        verdict: ours.verdict,
        reasons: ours.reasons.clone(),
        again,
        requests,
        errors: ours.errors.total(),
        throughput: ours.good_rate,
        latency_us: ours.latency_us.response.or(ours.latency_us.service),
        cpu_us: cost.cpu_us(requests).or_else(|| sampled::cpu_us(ours)),
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
        client_spin: ours.client.spin,
        idle_bytes: level_run.subject.idle_bytes,
        figures: figures(ours, cost),
        cores_of: cost.cores_of(),
        limited_by: sampled::limits(ours),
        over_time: cost.over_time.clone(),
        other,
    }
}

/// The figures that have no field of their own.
fn figures(ours: &Run, cost: &Cost) -> BTreeMap<LabFigure, f64> {
    let times = ours.latency_us.response.or(ours.latency_us.service);
    let issued = ours.accounting.issued.max(1) as f64;
    let all = [
        (LabFigure::Mean, times.map(|times| times.mean)),
        (LabFigure::P90, times.and_then(|times| times.p90)),
        (LabFigure::Max, times.map(|times| times.max)),
        (
            LabFigure::Bytes,
            (ours.duration_s > 0.0).then(|| ours.bytes as f64 / ours.duration_s),
        ),
        (
            LabFigure::Failed,
            Some((issued - ours.accounting.good as f64).max(0.0) / issued),
        ),
        (
            LabFigure::Timeouts,
            Some(ours.errors.count("timeout") as f64 / issued),
        ),
        (
            LabFigure::Cores,
            sampled::cores(ours).or_else(|| cost.cores(cost.cpu?)),
        ),
        (LabFigure::Memory, cost.memory.map(|bytes| bytes as f64)),
    ];
    let known = all
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    known.chain(sampled::figures(ours)).collect()
}

/// Opens idle connections and waits. Their memory is measured only the first time, because later a
/// server may reuse the memory of earlier connections.
fn open_idle(
    level_run: &mut LevelRun<'_, '_>,
    plan: &Plan,
    count: usize,
) -> Result<Option<Idle>, String> {
    let path = numbered(&level_run.work_folder.path(level_run.subject.spec), 0);
    let tls = plan.target.url.starts_with("https:").then(|| {
        // As many clients as connections: none of them has a session to resume.
        let mut target = plan.target.clone();
        target.full_handshakes = true;
        client_config(&target)
    });
    let tls = tls.transpose().map_err(|error| error.to_string())?;
    let before = memory::resident(&pids(level_run));
    let opened = Idle::open(
        level_run.subject.port,
        &path,
        tls.map(Arc::new).as_ref(),
        count,
        plan.load.connections,
        level_run.stop,
    );
    let of_it = |error: String| format!("server {}: {error}", level_run.subject.record.name);
    let opened = opened.map_err(of_it)?;
    must_live(level_run)?;
    let after = memory::resident(&pids(level_run));
    if opened.is_some() && level_run.subject.idle_bytes.is_none() {
        level_run.subject.idle_bytes = before
            .zip(after)
            .map(|(before, after)| (after as f64 - before as f64) / count.max(1) as f64);
    }
    base_clock::rest(SETTLING, level_run.stop);
    Ok(opened)
}

/// The warm-up is a separate run, so that the cost and the responses of a run belong to the same
/// requests.
fn warm(
    level_run: &mut LevelRun<'_, '_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
) -> Result<bool, String> {
    let warmup = level_run.work_folder.experiment.workload.get_ref().warmup.0;
    if !warmup.is_zero() {
        let plan = plan
            .clone()
            .with(|plan| plan.length.stop = Stop::Duration(warmup));
        run(&plan, Some(&mut |_| show()), level_run.stop).map_err(|error| error.to_string())?;
        must_live(level_run)?;
    }
    Ok(!level_run.stop.load(Ordering::Relaxed))
}

fn once(
    level_run: &mut LevelRun<'_, '_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
) -> Result<Option<(Run, Cost)>, String> {
    let (sides, mut looks) = (sides(level_run), CoreReadings::default());
    let experiment = level_run.work_folder.experiment;
    let plan = plan.clone().with(|plan| {
        plan.conditions.probe = experiment
            .probe
            .then(|| sampled::probe(plan, &pids(level_run)));
    });
    let shows_memory = experiment.shows(LabFigure::Memory);
    let mut memory = None;
    let mut watch = (!experiment.over_time.is_empty()).then(ServerWatch::default);
    let mut progress = |progress: &Progress| {
        if progress.phase == Phase::Measuring && progress.fraction < 1.0 {
            looks.look(sides);
            if shows_memory {
                memory = memory.max(memory::resident(&pids(level_run)));
            }
            if let Some(watch) = &mut watch {
                watch.look(level_run);
            }
        }
        show();
    };
    let (run, mut cost) = with_cost(level_run, || {
        run(&plan, Some(&mut progress), level_run.stop).map_err(|error| error.to_string())
    });
    let run = run?;
    cost.within = looks.shares();
    cost.memory = memory;
    cost.over_time = watch.map_or_else(Vec::new, |watch| watch.moments(&run));
    if level_run.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    must_live(level_run)?;
    Ok(Some((run, cost)))
}

fn cross_check(
    level_run: &mut LevelRun<'_, '_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
) -> Result<Option<CrossCheck>, String> {
    let checker = level_run.work_folder.experiment.cross_check.as_ref();
    let Some(checker) =
        checker.filter(|_| level_run.is_checked && !level_run.stop.load(Ordering::Relaxed))
    else {
        return Ok(None);
    };
    let checker = *checker.get_ref();
    let (found, cost) = with_cost(level_run, || {
        other_client::run(
            level_run.work_folder,
            checker,
            plan,
            sides(level_run),
            show,
            level_run.stop,
        )
    });
    let found = found?;
    must_live(level_run)?;
    Ok(found.map(|found| CrossCheck {
        throughput: found.throughput,
        errors: found.errors,
        cpu_us: cost.cpu_us(found.requests),
        core_busy: found.server_busy,
        client: found.client,
    }))
}

fn must_live(level_run: &mut LevelRun<'_, '_>) -> Result<(), String> {
    level_run.subject.must_live()?;
    level_run
        .beside
        .iter_mut()
        .try_for_each(RunningServer::must_live)
}
