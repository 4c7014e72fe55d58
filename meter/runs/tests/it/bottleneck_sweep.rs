//! What limits a server over the steps of a sweep, on servers whose limit was planted.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millrace_client::{Process, Stop};
use millrace_runs::{By, Sweep, SweepPlan, sweep};
use millrace_stats::{Finding, Limit};

use crate::bottleneck::{plan, planted};
use crate::planted::Planted;

fn steps(server: &Planted, ladder: &str) -> Sweep {
    let plan = SweepPlan {
        plan: plan(server).with(|plan| {
            plan.length.stop = Stop::Duration(Duration::from_millis(450));
            plan.length.warmup = Duration::from_millis(50);
        }),
        ladder: ladder.parse().unwrap(),
        by: By::Connections,
        process: Process::Constant,
        repeats: 1,
        down: false,
        objective: None,
        seed: 1,
    };
    sweep(&plan, None, &AtomicBool::new(false)).unwrap()
}

fn planted_in_steps(wanted: Limit, kind: &str, ladder: &str) -> Option<(Sweep, Finding)> {
    let server = Planted::start(kind);
    planted(
        wanted,
        || steps(&server, ladder),
        |sweep| sweep.bottleneck.as_deref().unwrap_or_default(),
        |sweep| sweep.steps.iter().map(|step| &step.run).collect(),
    )
}

#[test]
fn a_lock_shows_over_the_steps() {
    let Some((sweep, finding)) = planted_in_steps(Limit::Serialised, "lock", "1,4,16") else {
        return;
    };
    assert!(finding.bound_per_s.unwrap() <= 500.0, "{finding:?}");
    assert_eq!(sweep.demands.unwrap().of_saturation, Some(1.0));
}

#[test]
fn a_wait_shows_and_low_steps_give_no_demands() {
    let Some((sweep, _)) = planted_in_steps(Limit::WaitsElsewhere, "sleep", "1,8") else {
        return;
    };
    let demands = sweep
        .steps
        .iter()
        .map(|step| step.run.probe.as_ref().unwrap().demands.is_some());
    assert_eq!(demands.collect::<Vec<_>>(), [false, true]);
}
