//! Whether a run meets an objective.

use crate::Run;
use millrace_stats::objective::Observed;
use millrace_stats::{Met, Objective, Verdict};

impl Run {
    /// Compares the run with an objective.
    pub fn meets(&self, objective: &Objective) -> Met {
        let latency = &self.latency_us;
        objective.judge(&Observed {
            is_failed: self.verdict == Verdict::Invalid || self.backlog.is_some(),
            issued: self.accounting.issued,
            good: self.accounting.good,
            latency: latency.response.as_ref().or(latency.service.as_ref()),
            percentiles: &self.percentiles,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::sample_run;
    use millrace_stats::{Backlog, Latency, Quantile};

    fn judged(text: &str, run: &Run) -> Met {
        run.meets(&text.parse().unwrap())
    }

    #[test]
    fn percentiles_decide_where_they_are_known() {
        // 10,000 good responses: median 1 ms, 99 % 5 ms, longest 20 ms.
        let run = sample_run(10.0, 1000.0);
        assert_eq!(judged("99% < 5.1ms", &run), Met::Yes);
        assert_eq!(judged("99% < 5ms", &run), Met::No);
        assert_eq!(judged("50% < 1.1ms", &run), Met::Yes);
        assert_eq!(judged("97% < 4ms", &run), Met::Undecided);
        assert_eq!(judged("99.99% < 20.1ms", &run), Met::Yes);
        let fine = Run {
            percentiles: vec![Quantile {
                q: 0.975,
                us: 3900.0,
            }],
            ..run
        };
        assert_eq!(judged("97% < 4ms", &fine), Met::Yes);
    }

    #[test]
    fn a_request_without_an_answer_is_late() {
        let mut run = sample_run(10.0, 1000.0);
        run.accounting.issued += 200;
        run.accounting.failed = 200;
        assert_eq!(judged("99% < 1s", &run), Met::No);
        assert_eq!(judged("98% < 1s", &run), Met::Yes);
        run.verdict = Verdict::Invalid;
        assert_eq!(judged("98% < 1s", &run), Met::No);
    }

    #[test]
    fn no_objective_is_met_while_a_backlog_grows() {
        let mut run = sample_run(10.0, 1000.0);
        assert_eq!(judged("50% < 1s", &run), Met::Yes);
        run.backlog = Some(Backlog {
            from: 5.0,
            to: 900.0,
        });
        assert_eq!(judged("50% < 1s", &run), Met::No);
    }

    #[test]
    fn too_few_requests_decide_nothing() {
        let mut run = sample_run(10.0, 1000.0);
        run.latency_us.service = Some(Latency {
            p99: None,
            p999: None,
            ..run.latency_us.service.unwrap()
        });
        assert_eq!(judged("99% < 6ms", &run), Met::Undecided);
        assert_eq!(judged("99% < 21ms", &run), Met::Yes);
    }
}
