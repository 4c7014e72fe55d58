//! The answer of a search as a sentence, and what speaks against it.

use super::CapacityPlan;
use millrace_stats::Verdict;
use millrace_stats::capacity::search::Searched;
use millrace_stats::{CapacityTrial, SearchEnd};

/// The answer. `low` is the highest rate that was seen to meet the objective.
pub(super) fn answer(plan: &CapacityPlan, searched: &Searched, low: Option<f64>) -> String {
    let objective = plan.objective;
    let rate = |value: f64| rate(plan, value);
    let upto = low.map_or_else(String::new, |low| format!("; it was met at {}", rate(low)));
    match (searched.found, searched.crossing) {
        (SearchEnd::Rate, Some(crossing)) => format!(
            "{objective} is met up to {} (95 %: {} to {})",
            rate(crossing.rate),
            rate(crossing.low),
            rate(crossing.high)
        ),
        (SearchEnd::BelowFrom, _) => {
            format!(
                "the server does not meet {objective} even at {}",
                rate(plan.from)
            )
        }
        (SearchEnd::AboveTo, _) => format!(
            "the server's rate limit was not reached up to {}: {objective} is met there",
            rate(plan.to)
        ),
        (SearchEnd::ClientLimit, _) => {
            let last = searched.trials.last().map_or(plan.from, |trial| trial.rate);
            format!(
                "the client, not the server, is the limit above {}",
                rate(low.unwrap_or(last))
            )
        }
        (SearchEnd::Stopped, Some(crossing)) => format!(
            "stopped before the end: {objective} seems to be met up to {} (95 %: {} to {}), unconfirmed",
            rate(crossing.rate),
            rate(crossing.low),
            rate(crossing.high)
        ),
        (SearchEnd::Stopped, None) => format!("stopped before the rate was found{upto}"),
        (SearchEnd::Invalid, _) => format!("a trial was INVALID, so there is no rate{upto}"),
        (SearchEnd::Rate | SearchEnd::Undecided, _) => {
            format!("the trials do not show where {objective} begins to fail{upto}")
        }
    }
}

/// The verdict on a search and its reasons. Trials beyond the limit are always SUSPECT, which is no
/// reason.
pub(super) fn judge(
    plan: &CapacityPlan,
    searched: &Searched,
    trouble: Option<String>,
) -> (Verdict, Vec<String>) {
    let mut reasons: Vec<String> = trouble.into_iter().collect();
    let ended_by = match searched.found {
        SearchEnd::Invalid => searched.trials.last(),
        // Trials below it may have been good.
        SearchEnd::ClientLimit => {
            let mut trials = searched.trials.iter().rev();
            trials.find(|trial| trial.client_limit)
        }
        _ => None,
    };
    if let Some(last) = ended_by {
        reasons.extend(last.reasons.iter().map(|reason| at(plan, last, reason)));
        return (Verdict::Invalid, reasons);
    }
    match searched.found {
        SearchEnd::Stopped if reasons.is_empty() => {
            reasons.push("the search was stopped before its end".to_owned());
        }
        SearchEnd::Undecided => reasons.push(
            "the share of good answers in time did not cross the objective within the rates around which trials were \
             made; longer trials may show it"
                .to_owned(),
        ),
        _ => {}
    }
    if let Some(crossing) = searched.crossing
        && crossing.precision() > plan.precision
    {
        reasons.push(format!(
                "the interval is wider than asked for: ±{:.1} % instead of ±{:.1} %; longer trials make it narrower",
                crossing.precision() * 100.0,
                plan.precision * 100.0
            ));
    }
    if searched.met_at_low == Some(false) {
        reasons.push(
            "fresh trials at the lower end of the interval did not meet the objective".to_owned(),
        );
    }
    if searched.failed_above_high == Some(false) {
        reasons
            .push("fresh trials above the upper end of the interval met the objective".to_owned());
    }
    // A fault of the client or of the counts also shows at rates that the server can serve.
    let borne =
        |trial: &&CapacityTrial| trial.verdict == Verdict::Suspect && trial.meets(&plan.objective);
    let suspect: Vec<&CapacityTrial> = searched.trials.iter().filter(borne).collect();
    let met = searched
        .trials
        .iter()
        .filter(|trial| trial.meets(&plan.objective));
    let met = met.count();
    // Chance and the nearness of saturation make one good run in four SUSPECT.
    if let Some(worst) = suspect.first().filter(|_| suspect.len() * 4 > met) {
        let reason = worst.reasons.first().map_or("", String::as_str);
        reasons.push(format!(
            "{} of {met} trials that met the objective are SUSPECT, the first {}",
            suspect.len(),
            at(plan, worst, reason)
        ));
    }
    let verdict = if reasons.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Suspect
    };
    (verdict, reasons)
}

fn at(plan: &CapacityPlan, trial: &CapacityTrial, reason: &str) -> String {
    format!("at {}: {reason}", rate(plan, trial.rate))
}

/// A rate with its significant digits, and with its unit unless it counts requests.
fn rate(plan: &CapacityPlan, rate: f64) -> String {
    let digits = usize::from(rate < 100.0);
    let what = if plan.plan.has_sessions() {
        " sessions"
    } else {
        ""
    };
    format!("{rate:.digits$}{what}/s")
}
