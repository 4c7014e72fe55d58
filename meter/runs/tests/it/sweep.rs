//! Sweeps against a little server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millrace_client::{Pace, Plan, Process, Stop, Think};
use millrace_runs::{By, News, Sweep, SweepPlan, sweep};
use millrace_stats::{Met, Verdict};

use crate::stub::{HELLO, StubServer};

fn plan(server: &StubServer, ladder: &str) -> SweepPlan {
    SweepPlan {
        plan: Plan::new(server.url("/")).with(|plan| {
            plan.length.stop = Stop::Duration(Duration::from_millis(100));
            plan.length.warmup = Duration::from_millis(10);
            plan.load.connections = 4;
        }),
        ladder: ladder.parse().unwrap(),
        by: By::Connections,
        process: Process::Constant,
        repeats: 1,
        down: false,
        objective: Some("50% < 5s".parse().unwrap()),
        seed: 1,
    }
}

/// Runs a sweep that is stopped after `steps` of its steps.
fn stopped_after(plan: &SweepPlan, steps: usize) -> (Sweep, Vec<f64>) {
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut watch = |news: News<'_>| match news {
        News::Progress(progress) => {
            assert!(progress.step <= progress.steps && progress.step > 0);
        }
        News::Step(step) => {
            seen.push(step.level);
            stop.store(seen.len() == steps, Ordering::Relaxed);
        }
    };
    (sweep(plan, Some(&mut watch), &stop).unwrap(), seen)
}

#[test]
fn every_level_is_run_with_its_connections() {
    let server = StubServer::fixed(HELLO);
    let (sweep, seen) = stopped_after(&plan(&server, "1..3"), usize::MAX);
    assert_eq!(seen, [1.0, 2.0, 3.0]);
    let asked = sweep.steps.iter().map(|step| step.run.connections.asked);
    assert_eq!(asked.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(
        sweep
            .steps
            .iter()
            .all(|step| step.complete && step.objective == Some(Met::Yes))
    );
    assert_eq!(sweep.objective.unwrap().highest, Some(3.0));
    assert!(
        sweep.usl_refused.contains("3 levels"),
        "{}",
        sweep.usl_refused
    );
    assert!(sweep.top.unwrap().rate > 0.0);
}

#[test]
fn a_sweep_over_rates_asks_for_each() {
    let server = StubServer::fixed(HELLO);
    let plan = SweepPlan {
        by: By::Rate,
        ..plan(&server, "200..400/200")
    };
    let (sweep, _) = stopped_after(&plan, usize::MAX);
    let offered: Vec<f64> = sweep
        .steps
        .iter()
        .filter_map(|step| step.run.offered_rate)
        .collect();
    assert!(offered.len() == 2 && offered[0] < offered[1], "{offered:?}");
    assert!(
        sweep
            .steps
            .iter()
            .all(|step| step.run.connections.asked == 4)
    );
    assert!(sweep.usl_refused.contains("over connections"));
}

#[test]
fn results_so_far_are_kept_when_a_sweep_is_stopped() {
    let server = StubServer::fixed(HELLO);
    let (sweep, seen) = stopped_after(&plan(&server, "1..3"), 1);
    assert_eq!((sweep.steps.len(), seen.len(), sweep.planned), (1, 1, 3));
    assert_ne!(sweep.verdict, Verdict::Valid);
    assert!(sweep.reasons[0].contains("1 of 3"), "{:?}", sweep.reasons);
}

#[test]
fn a_sweep_over_rates_of_sessions_asks_for_more_requests() {
    let server = StubServer::fixed(HELLO);
    let mut plan = SweepPlan {
        by: By::Rate,
        ..plan(&server, "50,100")
    };
    plan.plan.load.session = Some(3);
    let (sweep, _) = stopped_after(&plan, usize::MAX);
    assert!(sweep.sessions);
    let offered = sweep.steps.iter().map(|step| step.run.offered_rate);
    assert_eq!(offered.collect::<Vec<_>>(), [Some(150.0), Some(300.0)]);
    assert_eq!(
        (sweep.bottleneck, sweep.remarks.len()),
        (None, 0),
        "nothing was probed"
    );
}

#[test]
fn connections_that_pause_are_no_requests_in_flight() {
    let server = StubServer::fixed(HELLO);
    let mut plan = plan(&server, "1..3");
    plan.plan.load.pace = Pace::Think(Think::Constant(Duration::from_millis(5)));
    let (sweep, _) = stopped_after(&plan, usize::MAX);
    assert!(
        sweep.usl_refused.contains("pauses"),
        "{}",
        sweep.usl_refused
    );
    plan.by = By::Rate;
    let error = millrace_runs::sweep(&plan, None, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("need sessions"), "{error}");
}
