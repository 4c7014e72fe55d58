//! What limits a server, on servers whose limit was planted.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millpond_load::{
    Diagnosis, Finding, Limit, Plan, ProbePlan, Process, Run, Schedule, Stop, diagnose,
};

use crate::planted::Planted;
use crate::stub::measure;

/// Ten samples a second of the server, for a second and a half.
fn plan(server: &Planted) -> Plan {
    Plan {
        connections: 4,
        threads: 1,
        warmup: Duration::from_millis(200),
        stop: Stop::Duration(Duration::from_millis(1500)),
        probe: Some(probe()),
        ..Plan::new(server.url())
    }
}

fn probe() -> ProbePlan {
    ProbePlan {
        interval: Duration::from_millis(100),
        ..ProbePlan::default()
    }
}

fn levels(server: &Planted) -> Diagnosis {
    let plan = Plan {
        connections: 8,
        stop: Stop::Duration(Duration::from_millis(500)),
        ..plan(server)
    };
    diagnose(&plan, None, &AtomicBool::new(false)).unwrap()
}

/// The first finding. On a machine that is busy with other things that is what limits, and is said so: then there is
/// nothing to be seen of what was planted.
fn first(findings: &[Finding]) -> Option<&Finding> {
    let first = findings.first();
    if let Some(Finding {
        name: Limit::Neighbours,
        evidence,
        ..
    }) = first
    {
        eprintln!("skipped, because other programs had the cores: {evidence:?}");
        return None;
    }
    Some(first.expect("something is named"))
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
    let run = measure(&plan(&server));
    let Some(finding) = first(found(&run)) else {
        return;
    };
    assert_eq!(finding.name, Limit::Threads, "{:#?}", run.bottleneck);
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
    // It writes as fast as the disk can, so not for long.
    let run = measure(&Plan {
        stop: Stop::Duration(Duration::from_millis(800)),
        ..plan(&server)
    });
    let summary = run.probe.as_ref().unwrap().summary.as_ref();
    assert!(!found(&run).is_empty(), "{summary:#?}");
    let Some(finding) = first(found(&run)) else {
        return;
    };
    assert_eq!(finding.name, Limit::Disk, "{summary:#?}");
}

#[test]
fn the_client_itself() {
    let server = Planted::start("fast");
    // Long pipelines: the server answers all of one in one write, the client has to read each answer.
    let run = measure(&Plan {
        connections: 2,
        depth: 64,
        ..plan(&server)
    });
    let summary = run.probe.as_ref().unwrap().summary.as_ref();
    assert!(!found(&run).is_empty(), "{summary:#?}");
    let Some(finding) = first(found(&run)) else {
        return;
    };
    assert_eq!(finding.name, Limit::Client, "{summary:#?}");
}

#[test]
fn a_lock_takes_no_cpu() {
    let server = Planted::start("lock");
    let diagnosis = levels(&server);
    let Some(finding) = first(&diagnosis.bottleneck) else {
        return;
    };
    assert_eq!(finding.name, Limit::Serialised, "{diagnosis:#?}");
    // Two milliseconds for each, one after the other.
    assert!(finding.bound_per_s.unwrap() <= 500.0, "{finding:?}");
}

#[test]
fn a_server_that_only_sleeps_waits_for_others() {
    let server = Planted::start("sleep");
    let diagnosis = levels(&server);
    let Some(finding) = first(&diagnosis.bottleneck) else {
        return;
    };
    assert_eq!(finding.name, Limit::WaitsElsewhere, "{diagnosis:#?}");
}

#[test]
fn a_healthy_server_has_no_bottleneck() {
    let server = Planted::start("fast");
    let run = measure(&Plan {
        schedule: Some(Schedule {
            rate: 100.0,
            process: Process::Constant,
            deadline: None,
        }),
        ..plan(&server)
    });
    assert_eq!(found(&run), [], "{:#?}", run.probe);
}

#[test]
fn a_quota_of_a_control_group() {
    let server = Planted::start("spin");
    let group = match Group::around(server.pid()) {
        Ok(group) => group,
        Err(why) => {
            eprintln!("skipped, because no control group can be made here: {why}");
            return;
        }
    };
    let run = measure(&plan(&server));
    let Some(finding) = first(found(&run)) else {
        return;
    };
    assert_eq!(finding.name, Limit::Quota, "{:#?}", run.bottleneck);
    // A fifth of a core, a millisecond a request.
    assert!(finding.bound_per_s.unwrap() < 300.0, "{finding:?}");
    drop(group);
}

#[test]
fn a_server_that_dies_is_said() {
    let mut server = Planted::start("fast");
    let plan = Plan {
        timeout: Duration::from_millis(200),
        schedule: Some(Schedule {
            rate: 100.0,
            process: Process::Constant,
            deadline: None,
        }),
        ..plan(&server)
    };
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| millpond_load::run(&plan, None, &AtomicBool::new(false)));
        std::thread::park_timeout(Duration::from_millis(700));
        server.kill();
        run.join().unwrap().unwrap()
    });
    let probed = run.probe.unwrap();
    let notes = probed.samples.notes.join("; ");
    assert!(
        notes.contains("ended"),
        "{notes} {:?}",
        probed.samples.processes
    );
    assert!(probed.samples.processes[0].ended_ns.is_some());
    // What was seen of it while it lived is there all the same.
    assert!(probed.summary.unwrap().server.is_some());
}

#[test]
fn what_is_not_there_is_an_error_when_asked_for() {
    let server = Planted::start("fast");
    let refused = |probe: ProbePlan| {
        let plan = Plan {
            probe: Some(probe),
            ..plan(&server)
        };
        let error = millpond_load::run(&plan, None, &AtomicBool::new(false)).unwrap_err();
        error.to_string()
    };
    let nobody = refused(ProbePlan {
        pids: vec![i32::MAX],
        ..probe()
    });
    assert!(nobody.contains("2147483647"), "{nobody}");
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

/// A control group with a fifth of a core, around one process. It goes when the process has.
struct Group {
    folder: PathBuf,
    home: PathBuf,
    pid: u32,
}

impl Group {
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

impl Drop for Group {
    fn drop(&mut self) {
        // A group can only be removed when nobody is in it.
        let _ = fs::write(self.home.join("cgroup.procs"), self.pid.to_string());
        let _ = fs::remove_dir(&self.folder);
    }
}
