//! What limits a server, on servers whose limit was planted.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millrace_client::{Plan, ProbePlan, Progress, Schedule, Stop};
use millrace_runs::{Diagnosis, Run, Summary, diagnose};
use millrace_stats::{Finding, Limit};

use crate::planted::Planted;
use crate::stub::measure;

/// Ten samples a second of the server, for a second and a half.
pub(crate) fn plan(server: &Planted) -> Plan {
    Plan::new(server.url()).with(|plan| {
        plan.load.connections = 4;
        plan.load.threads = 1;
        plan.length.warmup = Duration::from_millis(200);
        plan.length.stop = Stop::Duration(Duration::from_millis(1500));
        plan.conditions.probe = Some(probe());
    })
}

fn probe() -> ProbePlan {
    ProbePlan {
        interval: Duration::from_millis(100),
        ..ProbePlan::default()
    }
}

fn levels(server: &Planted) -> Diagnosis {
    let plan = plan(server).with(|plan| {
        plan.load.connections = 8;
        plan.length.stop = Stop::Duration(Duration::from_millis(500));
    });
    diagnose(&plan, None, &AtomicBool::new(false)).unwrap()
}

/// Attempts to find a planted limit while other programs use the cores.
const ATTEMPTS: usize = 4;
/// Cores that other programs may use without excusing a wrong result.
const LITTLE: f64 = 0.2;

/// The tests of this file take whole cores, so one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures until `wanted` is the first limit. On a busy machine other programs may be the limit:
/// only then it measures again, and finally skips the test with a message. Any other limit is an
/// error.
pub(crate) fn planted<T>(
    wanted: Limit,
    measure: impl Fn() -> T,
    findings: impl Fn(&T) -> &[Finding],
    runs: impl Fn(&T) -> Vec<&Run>,
) -> Option<(T, Finding)> {
    let _alone = alone();
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let measured = measure();
        let first = findings(&measured).first().cloned();
        if let Some(first) = first.as_ref().filter(|first| first.name == wanted) {
            let first = first.clone();
            return Some((measured, first));
        }
        let others = runs(&measured).into_iter().map(others).fold(0.0, f64::max);
        let summaries: Vec<_> = runs(&measured).into_iter().map(summary).collect();
        assert!(
            others > LITTLE,
            "{wanted:?} is not named but {first:#?}, and others took {others:.2} cores: {summaries:#?}"
        );
        let named = first.map_or("nothing".to_owned(), |first| format!("{:?}", first.name));
        seen.push(format!("{named} while others had {others:.2} cores"));
    }
    eprintln!("skipped: not {wanted:?} but {}", seen.join(", "));
    None
}

/// Measures one run until `wanted` is the first limit.
fn planted_in_run(wanted: Limit, plan: &Plan) -> Option<(Run, Finding)> {
    planted(wanted, || measure(plan), |run| found(run), |run| vec![run])
}

/// Measures several levels of load until `wanted` is the first limit.
fn planted_in_levels(wanted: Limit, server: &Planted) -> Option<(Diagnosis, Finding)> {
    planted(
        wanted,
        || levels(server),
        |all| &all.bottleneck,
        |all| all.levels.iter().map(|level| &level.run).collect(),
    )
}

fn summary(run: &Run) -> Option<&Summary> {
    run.probe.as_ref()?.summary.as_ref()
}

/// Cores that neither the server nor the client used, or that other guests of a hypervisor used:
/// their time is charged to the process that was running.
fn others(run: &Run) -> f64 {
    let Some(summary) = summary(run) else {
        return 0.0;
    };
    let idle: f64 = summary
        .cores
        .iter()
        .map(|core| core.idle + core.iowait + core.softirq + core.irq)
        .sum();
    let server = summary.server.unwrap_or_default().cpu_s / summary.span_s;
    let client = run.client.cpu_us_per_request.unwrap_or(0.0) * run.achieved_rate / 1e6;
    let stolen: f64 = summary.cores.iter().map(|core| core.steal).sum();
    stolen.max(summary.cores.len() as f64 - idle - server - client)
}

fn found(run: &Run) -> &[Finding] {
    let probed = run.probe.as_ref().unwrap();
    let notes = (&probed.samples.unavailable, &probed.samples.notes);
    run.bottleneck
        .as_deref()
        .unwrap_or_else(|| panic!("{notes:?}"))
}

#[test]
fn one_thread_that_computes() {
    let server = Planted::start("spin");
    let Some((run, finding)) = planted_in_run(Limit::Threads, &plan(&server)) else {
        return;
    };
    // A request takes a millisecond of CPU, so there is no more than a thousand in a second.
    let bound = finding.bound_per_s.unwrap();
    assert!((500.0..1_100.0).contains(&bound), "{finding:?}");
    let probed = run.probe.as_ref().unwrap();
    let processes = &probed.samples.processes;
    assert_eq!(processes[0].pid, server.pid().cast_signed());
    assert!(processes[0].found.contains("port"), "{processes:?}");
    let demands = &probed.demands.as_ref().unwrap().resources;
    let cpu = demands
        .iter()
        .find(|demand| demand.resource == "server CPU");
    let cpu = cpu.unwrap().per_request;
    assert!((900.0..1_500.0).contains(&cpu), "{demands:?}");
}

#[test]
fn a_disk_that_syncs() {
    let server = Planted::start("sync");
    // The test is short, because it writes as fast as the disk can.
    let plan =
        plan(&server).with(|plan| plan.length.stop = Stop::Duration(Duration::from_millis(800)));
    planted_in_run(Limit::Disk, &plan);
}

#[test]
fn the_client_itself() {
    let server = Planted::start("fast");
    // Long pipelines: the server answers a whole pipeline in one write, while the client has to
    // parse each response.
    let plan = plan(&server).with(|plan| {
        plan.load.connections = 2;
        plan.load.depth = 64;
    });
    planted_in_run(Limit::Client, &plan);
}

#[test]
fn a_lock_takes_no_cpu() {
    let server = Planted::start("lock");
    let Some((_, finding)) = planted_in_levels(Limit::Serialised, &server) else {
        return;
    };
    // Two milliseconds for each, one after the other.
    assert!(finding.bound_per_s.unwrap() <= 500.0, "{finding:?}");
}

#[test]
fn a_server_that_only_sleeps_waits_for_others() {
    let server = Planted::start("sleep");
    planted_in_levels(Limit::WaitsElsewhere, &server);
}

#[test]
fn connections_past_a_limit() {
    let server = Planted::start("full");
    // The server takes one connection, and two more may wait; it never sees the others.
    let plan = plan(&server).with(|plan| {
        plan.load.connections = 8;
        plan.request.timeout = Duration::from_millis(400);
    });
    let Some((run, finding)) = planted_in_run(Limit::Backlog, &plan) else {
        return;
    };
    assert!(run.connections.established < 8, "{:?}", run.connections);
    assert!(run.errors.count("timeout") > 0, "{:?}", run.errors);
    let evidence = &finding.evidence[0];
    assert!(
        evidence.contains("found the accept queue full"),
        "{evidence}"
    );
}

#[test]
fn a_healthy_server_has_no_bottleneck() {
    let _alone = alone();
    let server = Planted::start("fast");
    let run =
        measure(&plan(&server).with(|plan| plan.load.schedule = Some(Schedule::constant(100.0))));
    // On a busy machine other programs are the limit, and no other limit may be found.
    let by_others = |finding: &Finding| finding.name == Limit::Neighbours;
    let excused = others(&run) > LITTLE && found(&run).iter().all(by_others);
    assert!(found(&run).is_empty() || excused, "{:#?}", run.probe);
}

#[test]
fn a_quota_of_a_control_group() {
    let server = Planted::start("spin");
    let group = match CpuQuota::around(server.pid()) {
        Ok(group) => group,
        Err(why) => {
            eprintln!("skipped, because no control group can be made here: {why}");
            return;
        }
    };
    let Some((_, finding)) = planted_in_run(Limit::Quota, &plan(&server)) else {
        return;
    };
    // A fifth of a core, a millisecond a request.
    assert!(finding.bound_per_s.unwrap() < 300.0, "{finding:?}");
    drop(group);
}

#[test]
fn a_server_that_dies_is_reported() {
    let mut server = Planted::start("fast");
    let plan = plan(&server).with(|plan| {
        plan.request.timeout = Duration::from_millis(200);
        plan.load.schedule = Some(Schedule::constant(100.0));
    });
    // Some samples of it are there by then.
    let mut kill = |progress: &Progress| {
        if progress.finished > 20 {
            server.kill();
        }
    };
    let run = millrace_runs::run(&plan, Some(&mut kill), &AtomicBool::new(false)).unwrap();
    let probed = run.probe.unwrap();
    let notes = probed.samples.notes.join("; ");
    assert!(
        notes.contains("ended"),
        "{notes} {:?}",
        probed.samples.processes
    );
    assert!(probed.samples.processes[0].ended_ns.is_some());
    // The samples from before its end are still there.
    assert!(probed.summary.unwrap().server.is_some());
}

#[test]
fn what_is_not_there_is_an_error_when_asked_for() {
    let server = Planted::start("fast");
    let refused = |probe: ProbePlan| {
        let plan = plan(&server).with(|plan| plan.conditions.probe = Some(probe));
        let error = millrace_runs::run(&plan, None, &AtomicBool::new(false)).unwrap_err();
        error.to_string()
    };
    let missing = refused(ProbePlan {
        pids: vec![i32::MAX],
        ..probe()
    });
    assert!(missing.contains("2147483647"), "{missing}");
    let closed = refused(ProbePlan {
        ports: vec![1],
        ..probe()
    });
    assert!(closed.contains("port 1"), "{closed}");
    let fast = refused(ProbePlan {
        interval: Duration::from_millis(1),
        ..probe()
    });
    assert!(fast.contains("100ms"), "{fast}");
}

/// A cgroup with a fifth of a core for one process; removed after the process has ended.
struct CpuQuota {
    folder: PathBuf,
    home: PathBuf,
    pid: u32,
}

impl CpuQuota {
    fn around(pid: u32) -> Result<Self, String> {
        let named = format!("millpond-planted-{pid}");
        let v1 = PathBuf::from("/sys/fs/cgroup/cpu");
        let v2 = PathBuf::from("/sys/fs/cgroup");
        let (home, limits): (PathBuf, &[(&str, &str)]) = if v1.join("cpu.cfs_quota_us").exists() {
            (
                v1,
                &[
                    ("cpu.cfs_period_us", "50000"),
                    ("cpu.cfs_quota_us", "10000"),
                ],
            )
        } else {
            (v2, &[("cpu.max", "10000 50000")])
        };
        let folder = home.join(named);
        let said = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir(&folder).map_err(said)?;
        let group = Self {
            folder: folder.clone(),
            home,
            pid,
        };
        for (file, value) in limits {
            fs::write(folder.join(file), value).map_err(said)?;
        }
        fs::write(folder.join("cgroup.procs"), pid.to_string()).map_err(said)?;
        Ok(group)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // A group can only be removed when it is empty.
        let _ = fs::write(self.home.join("cgroup.procs"), self.pid.to_string());
        let _ = fs::remove_dir(&self.folder);
    }
}
