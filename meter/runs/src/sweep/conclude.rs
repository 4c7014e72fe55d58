//! What the steps of a sweep say together.

use super::{By, Direction, Hysteresis, Sweep, SweepPlan, SweepStep, TopRate, attained, power};
use crate::Run;
use crate::calibration::withdraw_surpassed;
use millrace_stats::Verdict;
use millrace_stats::analysis::usl::{Observation, Usl};

/// Steps whose reasons are given one by one. The rows of the other steps show their verdicts.
const NAMED: usize = 6;

/// `trouble` is why a step could not be run at all.
pub(super) fn conclude(
    plan: &SweepPlan,
    planned: usize,
    mut steps: Vec<SweepStep>,
    trouble: Option<&str>,
) -> Sweep {
    let runs = steps.iter_mut().map(|step| &mut step.run);
    withdraw_surpassed(
        plan.plan.conditions.calibration,
        runs.map(|run| (run.achieved_rate, &mut run.verdict, &mut run.reasons)),
    );
    let (verdict, reasons) = judge(planned, &steps, trouble);
    let whole: Vec<&SweepStep> = steps.iter().filter(|step| step.complete).collect();
    let (usl, usl_refused) = match plan.by {
        By::Rate => {
            let why = "the law is about requests in flight, so it needs a sweep over connections";
            (None, why.to_owned())
        }
        By::Connections if whole.iter().any(|step| step.run.has_pauses()) => {
            let why = "the law is about requests in flight, and a connection that pauses has none";
            (None, why.to_owned())
        }
        By::Connections => match Usl::fit(&observations(plan, &whole), plan.seed) {
            Ok(usl) => (Some(usl), String::new()),
            Err(refusal) => (None, refusal.to_string()),
        },
    };
    let mut sweep = Sweep {
        verdict,
        reasons,
        by: plan.by,
        url: plan.plan.target.url.clone(),
        ladder: plan.ladder.to_string(),
        planned: planned as u64,
        top: top(&whole),
        power: power::highest(&whole),
        hysteresis: hysteresis(&whole),
        usl,
        usl_refused,
        objective: plan
            .objective
            .map(|objective| attained::attained(objective, &whole)),
        command: plan.plan.conditions.command.clone(),
        steps,
        sessions: plan.plan.has_sessions(),
        bottleneck: None,
        demands: None,
        remarks: Vec::new(),
    };
    sweep.find_limits();
    sweep
}

/// The verdict of the worst step, with reasons.
fn judge(planned: usize, steps: &[SweepStep], trouble: Option<&str>) -> (Verdict, Vec<String>) {
    let whole = steps.iter().filter(|step| step.complete).count();
    let mut reasons: Vec<String> = trouble.iter().map(ToString::to_string).collect();
    if whole < planned {
        reasons.push(format!("{whole} of {planned} steps were run to their end"));
    }
    let complete = || steps.iter().filter(|step| step.complete);
    let has = |verdict| complete().any(|step| step.run.verdict == verdict);
    let mut doubtful: Vec<&SweepStep> = complete()
        .filter(|step| step.run.verdict != Verdict::Valid)
        .collect();
    // The gravest first, otherwise in the order of the runs.
    doubtful.sort_by_key(|step| step.run.verdict != Verdict::Invalid);
    reasons.extend(doubtful.iter().take(NAMED).map(|step| {
        let reasons = step.run.reasons.join("; ");
        // The reasons follow the verdict of the sweep, so only another verdict is named.
        match step.run.verdict {
            Verdict::Suspect if has(Verdict::Invalid) => {
                format!("at {}, SUSPECT: {reasons}", step.level)
            }
            _ => format!("at {}: {reasons}", step.level),
        }
    }));
    if doubtful.len() > NAMED {
        reasons.push(format!("{} more steps in doubt", doubtful.len() - NAMED));
    }
    let verdict = if trouble.is_some() || whole == 0 || has(Verdict::Invalid) {
        Verdict::Invalid
    } else if reasons.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Suspect
    };
    (verdict, reasons)
}

/// The steps of each level, lowest first.
pub(super) fn by_level<'a>(steps: &[&'a SweepStep]) -> Vec<Vec<&'a SweepStep>> {
    let mut sorted = steps.to_vec();
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let same = sorted.chunk_by(|a, b| a.level == b.level);
    same.map(<[&SweepStep]>::to_vec).collect()
}

fn mean<'a>(steps: impl Iterator<Item = &'a SweepStep>) -> Option<f64> {
    let (sum, count) = steps.fold((0.0, 0.0), |(sum, count), step| {
        (sum + step.run.good_rate, count + 1.0)
    });
    (count > 0.0).then(|| sum / count)
}

fn top(steps: &[&SweepStep]) -> Option<TopRate> {
    let levels = by_level(steps).into_iter().filter_map(|level| {
        Some(TopRate {
            level: level[0].level,
            rate: mean(level.into_iter())?,
        })
    });
    levels.max_by(|a, b| a.rate.total_cmp(&b.rate))
}

fn hysteresis(steps: &[&SweepStep]) -> Option<Hysteresis> {
    let levels = by_level(steps).into_iter().filter_map(|level| {
        let way = |way: Direction| {
            mean(
                level
                    .iter()
                    .copied()
                    .filter(move |step| step.direction == way),
            )
        };
        Some(Hysteresis {
            level: level[0].level,
            up: way(Direction::Up)?,
            down: way(Direction::Down)?,
        })
    });
    let size = |one: &Hysteresis| (one.down - one.up).abs() / one.up.max(one.down).max(1e-9);
    levels.max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// Returns the points to which the law is fitted: the way up. On the way down the server may not
/// have recovered.
fn observations(plan: &SweepPlan, steps: &[&SweepStep]) -> Vec<Observation> {
    let up = steps.iter().filter(|step| step.direction == Direction::Up);
    let one = |step: &&SweepStep| Observation {
        load: step.level * plan.plan.load.depth as f64,
        throughput: step.run.good_rate,
        error_share: error_share(&step.run),
    };
    up.map(one).collect()
}

fn error_share(run: &Run) -> f64 {
    1.0 - run.accounting.good as f64 / run.accounting.issued.max(1) as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Connections;
    use millrace_client::{Plan, Process};
    use millrace_stats::{Accounting, Latencies, Latency};

    /// A good run of ten seconds with 99 % within 5 ms.
    pub(crate) fn sample_run(connections: f64, rate: f64) -> Run {
        let count = (rate * 10.0) as u64;
        let latency = Latency {
            count,
            mean: 1100.0,
            p50: Some(1000.0),
            p90: Some(2000.0),
            p95: Some(3000.0),
            p99: Some(5000.0),
            p999: Some(9000.0),
            max: 20_000.0,
        };
        Run {
            protocol: crate::Protocol::default(),
            verdict: Verdict::Valid,
            url: "http://127.0.0.1/".into(),
            duration_s: 10.0,
            warmup_s: 1.0,
            requests: count,
            accounting: Accounting {
                issued: count,
                answered: count,
                good: count,
                ..Accounting::default()
            },
            achieved_rate: rate,
            good_rate: rate,
            bytes: count * 100,
            latency_us: Latencies {
                service: Some(latency),
                ..Latencies::default()
            },
            connections: Connections {
                asked: connections as u64,
                ..Connections::default()
            },
            ..Run::default()
        }
    }

    pub(crate) fn step(level: f64, direction: Direction, rate: f64) -> SweepStep {
        SweepStep {
            level,
            direction,
            repeat: 1,
            complete: true,
            objective: None,
            run: sample_run(level, rate),
        }
    }

    pub(crate) fn plan(by: By) -> SweepPlan {
        SweepPlan {
            plan: Plan::new("http://127.0.0.1/"),
            ladder: "1..10".parse().unwrap(),
            by,
            process: Process::Constant,
            repeats: 1,
            down: false,
            objective: None,
            seed: 1,
        }
    }

    /// σ = 0.2, κ = 0.01, λ = 1000 at ten levels.
    pub(crate) fn climb() -> Vec<SweepStep> {
        let rate = |n: f64| 1000.0 * n / (1.0 + 0.2 * (n - 1.0) + 0.01 * n * (n - 1.0));
        let levels = (1..=10).map(f64::from);
        levels.map(|n| step(n, Direction::Up, rate(n))).collect()
    }

    #[test]
    fn a_climb_has_its_top_and_its_law() {
        let sweep = conclude(&plan(By::Connections), 10, climb(), None);
        assert_eq!((sweep.verdict, sweep.reasons.len()), (Verdict::Valid, 0));
        let usl = sweep.usl.unwrap();
        assert!((usl.sigma.value - 0.2).abs() < 1e-6 && sweep.usl_refused.is_empty());
        assert_eq!(sweep.top.unwrap().level, 9.0);
        assert_eq!(sweep.hysteresis, None);
        let sweep = conclude(&plan(By::Rate), 10, climb(), None);
        assert!(sweep.usl.is_none() && sweep.usl_refused.contains("connections"));
    }

    #[test]
    fn the_way_down_is_compared_and_not_fitted() {
        let mut steps = climb();
        let usl = conclude(&plan(By::Connections), 10, steps.clone(), None).usl;
        steps.push(step(5.0, Direction::Down, 1000.0));
        steps.push(step(1.0, Direction::Down, 990.0));
        let sweep = conclude(&plan(By::Connections), 12, steps, None);
        let hysteresis = sweep.hysteresis.unwrap();
        assert_eq!((hysteresis.level, hysteresis.down), (5.0, 1000.0));
        assert_eq!(sweep.usl, usl);
    }

    #[test]
    fn a_step_that_was_stopped_is_kept_and_not_believed() {
        let mut steps = climb();
        steps[9].complete = false;
        steps[9].run.good_rate = 1e9;
        let sweep = conclude(&plan(By::Connections), 10, steps, None);
        assert_eq!((sweep.verdict, sweep.steps.len()), (Verdict::Suspect, 10));
        assert!(sweep.reasons[0].contains("9 of 10"), "{:?}", sweep.reasons);
        assert_eq!(sweep.top.unwrap().level, 9.0);
    }

    #[test]
    fn a_ceiling_that_one_step_surpassed_speaks_against_no_step() {
        let near = |rate: f64| {
            let mut steps = climb();
            steps[0].run.verdict = Verdict::Suspect;
            steps[0].run.reasons =
                vec!["the client itself can do only 1100/s here, and this is 91 % of it".into()];
            let mut plan = plan(By::Connections);
            plan.plan.conditions.calibration = Some(millrace_stats::Calibration {
                ceiling_per_s: rate,
                ..millrace_stats::Calibration::default()
            });
            conclude(&plan, 10, steps, None)
        };
        let (low, high) = (near(1100.0), near(1e9));
        assert_eq!((low.verdict, low.reasons.len()), (Verdict::Valid, 0));
        assert_eq!(low.steps[0].run.verdict, Verdict::Valid);
        assert_eq!((high.verdict, high.reasons.len()), (Verdict::Suspect, 1));
    }

    #[test]
    fn one_bad_step_spoils_the_sweep() {
        let mut steps = climb();
        for step in &mut steps[2..] {
            step.run.verdict = Verdict::Suspect;
            step.run.reasons = vec!["why".into()];
        }
        steps[8].run.verdict = Verdict::Invalid;
        let sweep = conclude(&plan(By::Connections), 10, steps, None);
        assert_eq!(sweep.verdict, Verdict::Invalid);
        assert_eq!(sweep.reasons[..2], ["at 9: why", "at 3, SUSPECT: why"]);
        assert_eq!(sweep.reasons.last().unwrap(), "2 more steps in doubt");
        let sweep = conclude(&plan(By::Rate), 10, climb(), Some("no run at 7"));
        assert_eq!(sweep.verdict, Verdict::Invalid);
        let sweep = conclude(&plan(By::Rate), 10, Vec::new(), None);
        assert_eq!((sweep.verdict, sweep.top), (Verdict::Invalid, None));
    }
}
