//! What limits the server at its capacity, from the fresh trials at both ends of the interval.
//!
//! The trials before them find the capacity. Most are too far from it to show the limit.

use crate::Run;
use crate::limited::{LimitFindings, RunAtLevel};
use millrace_stats::Stage;

/// The runs of the fresh trials.
#[derive(Default)]
pub(super) struct Confirmed(Vec<(Stage, Run)>);

impl Confirmed {
    /// Keeps the run if its trial is one of them.
    pub(super) fn keep(&mut self, stage: Stage, run: Run) {
        if matches!(stage, Stage::ConfirmLow | Stage::ConfirmHigh) {
            self.0.push((stage, run));
        }
    }

    /// Returns the findings of the trials together; `None` where there are none, or nothing was
    /// sampled beside them.
    pub(super) fn limit_findings(&self) -> Option<LimitFindings> {
        let stages = [Stage::ConfirmLow, Stage::ConfirmHigh].into_iter();
        let levels: Vec<RunAtLevel<'_>> = stages
            .filter_map(|stage| self.median(stage))
            .map(|run| RunAtLevel {
                in_flight: None,
                run,
            })
            .collect();
        let is_probed = levels.iter().any(|level| level.run.probe.is_some());
        is_probed.then(|| {
            let mut findings = LimitFindings::of(&levels);
            findings.compare(&levels);
            findings
        })
    }

    /// The run with the median throughput.
    fn median(&self, stage: Stage) -> Option<&Run> {
        let of = self.0.iter().filter(|(kept, _)| *kept == stage);
        let mut runs: Vec<&Run> = of.map(|(_, run)| run).collect();
        runs.sort_by(|a, b| a.achieved_rate.total_cmp(&b.achieved_rate));
        runs.get(runs.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use base_probe::{CoreUse, ServerUse, Summary, ThreadUse};

    use super::*;
    use crate::Probed;
    use crate::sweep::sample_run;
    use millrace_stats::Limit;

    /// A run on four cores whose server has one thread, busy for this share of the time.
    fn probed(rate: f64, busy: f64) -> Run {
        let idle = |idle| CoreUse {
            idle,
            ..CoreUse::default()
        };
        let summary = Summary {
            span_s: 10.0,
            cores: [1.0 - busy, 0.9, 1.0, 1.0].map(idle).to_vec(),
            server: Some(ServerUse {
                cpu_s: busy * 10.0,
                ..ServerUse::default()
            }),
            threads: vec![ThreadUse {
                name: "worker".to_owned(),
                busy,
                ..ThreadUse::default()
            }],
            ..Summary::default()
        };
        Run {
            probe: Some(Probed {
                summary: Some(summary),
                ..Probed::default()
            }),
            ..sample_run(8.0, rate)
        }
    }

    #[test]
    fn the_limit_is_told_where_the_objective_just_fails() {
        let mut confirmed = Confirmed::default();
        confirmed.keep(Stage::Refine, probed(2_000.0, 0.99));
        assert!(confirmed.limit_findings().is_none());
        for (stage, rate, busy) in [
            (Stage::ConfirmLow, 900.0, 0.8),
            (Stage::ConfirmHigh, 990.0, 0.97),
            // One that something disturbed.
            (Stage::ConfirmHigh, 100.0, 0.1),
            (Stage::ConfirmHigh, 995.0, 0.98),
        ] {
            confirmed.keep(stage, probed(rate, busy));
        }
        let findings = confirmed.limit_findings().unwrap();
        assert_eq!(findings.bottleneck[0].name, Limit::Threads);
        let evidence = findings.bottleneck[0].evidence.join("; ");
        assert!(evidence.contains("97 %"), "{evidence}");
        assert_eq!(findings.demands.unwrap().rate_per_s, 990.0);
    }

    #[test]
    fn without_samples_nothing_is_told() {
        let mut confirmed = Confirmed::default();
        confirmed.keep(Stage::ConfirmLow, sample_run(8.0, 900.0));
        assert!(confirmed.limit_findings().is_none());
    }
}
