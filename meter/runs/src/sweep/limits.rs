//! What limits the server, from the probes of a sweep's steps.

use super::{By, Direction, Sweep, SweepStep};
use crate::limited::{LimitFindings, RunAtLevel, demands, highest};

impl Sweep {
    /// Finds what limits the server. Demands come from steps with at least 70 % of the highest
    /// throughput: at lower load a request costs more. Called again after probes are attached to
    /// the steps.
    pub fn find_limits(&mut self) {
        let whole = || self.steps.iter().filter(|step| step.complete);
        let most = highest(whole().map(|step| &step.run));
        let is_probed = whole().any(|step| step.run.probe.is_some());
        let findings = is_probed.then(|| {
            let levels = levels(self);
            let mut findings = LimitFindings::of(&levels);
            findings.compare(&levels);
            findings
        });
        for step in &mut self.steps {
            let taken = demands(&step.run, most).filter(|_| step.complete);
            if let Some(probed) = &mut step.run.probe {
                probed.demands = taken;
            }
        }
        let is_known = has_samples(&self.steps);
        let findings = findings.unwrap_or_default();
        self.bottleneck = is_known.then_some(findings.bottleneck);
        self.demands = findings.demands;
        self.remarks = findings.remarks;
    }
}

/// True if any step that ran to its end was sampled for long enough.
fn has_samples(steps: &[SweepStep]) -> bool {
    let mut whole = steps.iter().filter(|step| step.complete);
    whole.any(|step| step.run.bottleneck.is_some())
}

/// The way up, lowest level first. The repeat with the median throughput represents its level.
fn levels(sweep: &Sweep) -> Vec<RunAtLevel<'_>> {
    let mut up: Vec<&SweepStep> = sweep
        .steps
        .iter()
        .filter(|step| step.complete && step.direction == Direction::Up)
        .collect();
    let rate = |step: &SweepStep| step.run.achieved_rate;
    up.sort_by(|a, b| {
        let by_level = a.level.total_cmp(&b.level);
        by_level.then(rate(a).total_cmp(&rate(b)))
    });
    let same = up.chunk_by(|a, b| a.level == b.level);
    same.map(|steps| {
        let step = steps[steps.len() / 2];
        RunAtLevel {
            in_flight: in_flight(sweep.by, step),
            run: &step.run,
        }
    })
    .collect()
}

/// Requests in flight at a step, where that is known: with pauses some connections have none.
fn in_flight(by: By, step: &SweepStep) -> Option<f64> {
    let is_constant = by == By::Connections && !step.run.has_pauses();
    is_constant.then(|| step.level * step.run.connections.depth.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use base_probe::{CoreUse, ServerUse, Summary};

    use super::*;
    use crate::sweep::sample_run;
    use crate::{Probed, Run};
    use millrace_stats::{Limit, Verdict};

    /// A run on an eight-core machine, with a server that needs 50 µs for a request.
    fn probed(connections: f64, rate: f64) -> Run {
        let summary = Summary {
            span_s: 10.0,
            cores: vec![CoreUse::default(); 8],
            server: Some(ServerUse {
                cpu_s: rate * 10.0 * 50e-6,
                ..ServerUse::default()
            }),
            ..Summary::default()
        };
        Run {
            probe: Some(Probed {
                summary: Some(summary),
                ..Probed::default()
            }),
            bottleneck: Some(Vec::new()),
            ..sample_run(connections, rate)
        }
    }

    fn sweep(by: By, levels: &[(f64, f64)]) -> Sweep {
        let steps = levels.iter().map(|&(level, rate)| SweepStep {
            level,
            direction: Direction::Up,
            repeat: 1,
            complete: true,
            objective: None,
            run: probed(level, rate),
        });
        let mut sweep = Sweep {
            verdict: Verdict::Valid,
            reasons: Vec::new(),
            by,
            url: String::new(),
            ladder: String::new(),
            planned: levels.len() as u64,
            steps: steps.collect(),
            top: None,
            power: None,
            hysteresis: None,
            usl: None,
            usl_refused: String::new(),
            objective: None,
            command: String::new(),
            sessions: false,
            bottleneck: None,
            demands: None,
            remarks: Vec::new(),
        };
        sweep.find_limits();
        sweep
    }

    fn name(sweep: &Sweep) -> Option<Limit> {
        Some(sweep.bottleneck.as_ref()?.first()?.name)
    }

    #[test]
    fn a_lock_shows_over_the_steps_and_demands_only_near_saturation() {
        let lock = [(1.0, 300.0), (2.0, 450.0), (8.0, 470.0), (16.0, 460.0)];
        let found = sweep(By::Connections, &lock);
        assert_eq!(name(&found), Some(Limit::Serialised));
        assert_eq!(found.demands.unwrap().of_saturation, Some(1.0));
        let taken = |step: &SweepStep| step.run.probe.as_ref().unwrap().demands.is_some();
        let taken: Vec<bool> = found.steps.iter().map(taken).collect();
        assert_eq!(taken, [false, true, true, true]);
    }

    #[test]
    fn a_wait_shows_over_the_steps() {
        let sleep = [(2.0, 100.0), (4.0, 200.0), (32.0, 1_590.0)];
        let found = sweep(By::Connections, &sleep);
        assert_eq!(name(&found), Some(Limit::WaitsElsewhere));
    }

    #[test]
    fn what_the_levels_cannot_tell_is_said() {
        let near = [(4.0, 400.0), (8.0, 410.0), (12.0, 400.0)];
        let found = sweep(By::Connections, &near);
        assert_eq!(found.bottleneck, Some(Vec::new()));
        assert!(
            found.remarks[0].contains("four times"),
            "{:?}",
            found.remarks
        );
        let rates = [(100.0, 100.0), (900.0, 450.0)];
        let found = sweep(By::Rate, &rates);
        assert!(
            found.remarks[0].contains("in flight"),
            "{:?}",
            found.remarks
        );
        let none = sweep(By::Connections, &[]);
        assert_eq!((none.bottleneck, none.remarks.len()), (None, 0));
    }

    #[test]
    fn of_repeats_the_median_stands_for_its_level_and_stopped_steps_for_nothing() {
        let lock = [(1.0, 440.0), (8.0, 470.0), (8.0, 9_000.0), (8.0, 5.0)];
        let mut found = sweep(By::Connections, &lock);
        assert_eq!(name(&found), Some(Limit::Serialised));
        found.steps[2].complete = false;
        found.find_limits();
        assert!(found.steps[2].run.probe.as_ref().unwrap().demands.is_none());
        assert!(found.steps[1].run.probe.as_ref().unwrap().demands.is_some());
    }
}
