//! The answer of a comparison as a sentence.

use super::judge::{Question, is_too_uneven, worst};
use super::{Decision, Effect, Metric, Ratio};

/// Names of the two servers.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The server that is compared with.
    pub a: &'a str,
    /// The server that is compared.
    pub b: &'a str,
}

/// The answer, what speaks against it among the other `effects`, and what it means for the limit.
pub fn answer(
    effects: &[Effect],
    decision: Decision,
    within: Option<bool>,
    question: &Question<'_>,
) -> String {
    let (limit, names) = (question.limit, &question.names);
    let deciding = question.length.metric;
    let effect = effects.iter().find(|effect| effect.metric == deciding);
    let Some((effect, ratio, baseline)) =
        effect.and_then(|effect| Some((effect, effect.ratio?, effect.baseline?)))
    else {
        return "not decided: too few blocks were carried out".to_owned();
    };
    let seen = || {
        effect.detectable.map_or_else(
            || "a difference of unknown size".to_owned(),
            |share| format!("a difference of {} % or more", digits(share * 100.0)),
        )
    };
    let sentence = match decision {
        Decision::Undecided => match limit.filter(|limit| is_too_uneven(&baseline, *limit)) {
            Some(limit) => {
                return format!(
                    "not decided: the A/A spread is wider than the limit ({} against itself: {}, limit {limit:.2})",
                    names.a,
                    range(&baseline)
                );
            }
            None => format!(
                "not decided: {} blocks could see {}, and {} % was to be seen ({})",
                ratio.blocks,
                seen(),
                digits(
                    question
                        .length
                        .detect
                        .map_or(0.0, |detect| detect.share * 100.0)
                ),
                words_of_interval(&ratio)
            ),
        },
        Decision::NoDifference => format!(
            "no difference that could be seen ({}); {} would have been",
            words_of_interval(&ratio),
            seen()
        ),
        Decision::Better | Decision::Worse => {
            let against = against(effects, decision, question);
            difference(effect.metric, &ratio, names) + &against
        }
    };
    let Some((limit, within)) = limit.zip(within) else {
        return sentence;
    };
    let bound = worst(effect.metric, &ratio);
    let holds = if within {
        "the limit holds"
    } else {
        "the limit is not shown to hold"
    };
    format!("{sentence}; {holds}: {bound:.3} times at most, limit {limit:.2}")
}

/// The metrics that speak for the other server, as the end of a sentence.
fn against(effects: &[Effect], decision: Decision, question: &Question<'_>) -> String {
    let deciding = question.length.metric;
    let others = effects.iter().filter(|effect| effect.metric != deciding);
    let opposite = others.filter_map(|effect| {
        let ratio = effect.ratio.filter(Ratio::differs)?;
        let is_better = (ratio.ratio > 1.0) != effect.metric.is_cost();
        let agrees = is_better == (decision == Decision::Better);
        (!agrees).then(|| difference(effect.metric, &ratio, &question.names))
    });
    match opposite.collect::<Vec<_>>().join(", and ") {
        nothing if nothing.is_empty() => nothing,
        said => format!(", but {said}"),
    }
}

/// By how much B differs from A, with the interval, as part of a sentence.
fn difference(metric: Metric, ratio: &Ratio, names: &Names<'_>) -> String {
    let (more, b) = (ratio.ratio > 1.0, names.b);
    let change = change(ratio);
    match (metric, more) {
        (Metric::Cpu, true) => format!("{b} costs {change} more CPU per request"),
        (Metric::Cpu, false) => format!("{b} costs {change} less CPU per request"),
        (Metric::Throughput, true) => format!("{b} answers {change} more requests"),
        (Metric::Throughput, false) => format!("{b} answers {change} fewer requests"),
        (Metric::P50 | Metric::P99, _) => format!(
            "the {} of {b} is {change} {}",
            metric.name(),
            if more { "longer" } else { "shorter" }
        ),
    }
}

/// "3.1 % (2.2 to 4.0)": a change without its sign, the smaller bound first.
pub fn change(ratio: &Ratio) -> String {
    let sign = if ratio.ratio < 1.0 { -1.0 } else { 1.0 };
    let percent = |ratio: f64| sign * (ratio - 1.0) * 100.0;
    let (low, high) = (percent(ratio.low), percent(ratio.high));
    format!(
        "{} % ({} to {})",
        digits(percent(ratio.ratio)),
        digits(low.min(high)),
        digits(low.max(high))
    )
}

/// "−1.2 to 0.8 %".
fn words_of_interval(ratio: &Ratio) -> String {
    let percent = |ratio: f64| digits((ratio - 1.0) * 100.0);
    format!("{} to {} %", percent(ratio.low), percent(ratio.high))
}

/// "0.97 to 1.04".
fn range(ratio: &Ratio) -> String {
    format!("{:.3} to {:.3}", ratio.low, ratio.high)
}

/// Per cent: two decimals below one, one below a hundred, none above.
fn digits(percent: f64) -> String {
    let decimals = match percent.abs() {
        size if size < 0.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::length::{Detect, Length};

    fn question(limit: Option<f64>, detect: Option<f64>) -> Question<'static> {
        Question {
            metrics: &[],
            limit,
            length: Length {
                blocks: 10,
                detect: detect.map(|share| Detect {
                    share,
                    most_blocks: 10,
                }),
                metric: Metric::Cpu,
            },
            names: Names { a: "A", b: "new" },
        }
    }

    fn check(metric: Metric, bounds: [f64; 3], limit: Option<f64>, expected: &str) {
        check_seen(metric, bounds, limit, None, expected);
    }

    fn check_seen(
        metric: Metric,
        bounds: [f64; 3],
        limit: Option<f64>,
        detect: Option<f64>,
        expected: &str,
    ) {
        let ratio = of(bounds);
        let effect = Effect {
            metric,
            a: None,
            b: None,
            baseline: Some(of([1.0, 0.95, 1.04])),
            ratio: Some(ratio),
            detectable: Some(0.0187),
        };
        let decision = match ratio.differs() {
            _ if limit == Some(1.01) => Decision::Undecided,
            false if detect.is_some() => Decision::Undecided,
            false => Decision::NoDifference,
            true => Decision::Worse,
        };
        let within = limit.map(|limit| worst(metric, &ratio) <= limit);
        let mut question = question(limit, detect);
        question.length.metric = metric;
        assert_eq!(answer(&[effect], decision, within, &question), expected);
    }

    #[test]
    fn what_speaks_for_the_other_server_is_in_the_answer() {
        let effect = |metric, [ratio, low, high]: [f64; 3]| Effect {
            metric,
            a: None,
            b: None,
            baseline: Some(of([1.0, 0.98, 1.02])),
            ratio: Some(of([ratio, low, high])),
            detectable: Some(0.02),
        };
        let mut question = question(None, None);
        question.length.metric = Metric::Throughput;
        let answer = |p50: [f64; 3], p99: [f64; 3]| {
            let effects = [
                effect(Metric::Throughput, [0.608, 0.571, 0.648]),
                effect(Metric::P50, p50),
                effect(Metric::P99, p99),
            ];
            answer(&effects, Decision::Worse, None, &question)
        };
        let (longer, same, shorter) = ([1.6, 1.5, 1.7], [0.9, 0.7, 1.2], [0.423, 0.253, 0.706]);
        let throughput = "new answers 39.2 % (35.2 to 42.9) fewer requests";
        assert_eq!(answer(longer, same), throughput);
        let for_new = "the 99th percentile of new is 57.7 % (29.4 to 74.7) shorter";
        assert_eq!(
            answer(longer, shorter),
            format!("{throughput}, but {for_new}")
        );
        let both = answer(shorter, shorter);
        assert!(both.contains(", but the median"), "{both}");
        assert!(both.ends_with(&format!(", and {for_new}")), "{both}");
    }

    fn of([ratio, low, high]: [f64; 3]) -> Ratio {
        Ratio {
            ratio,
            low,
            high,
            bootstrap: None,
            spread: 0.01,
            blocks: 10,
        }
    }

    #[test]
    fn the_answer_says_which_way_and_how_far() {
        let more = [1.031, 1.022, 1.04];
        let less = [0.95, 0.93, 0.97];
        let same = [1.002, 0.99, 1.008];
        check(
            Metric::Cpu,
            more,
            None,
            "new costs 3.1 % (2.2 to 4.0) more CPU per request",
        );
        check(
            Metric::Cpu,
            less,
            None,
            "new costs 5.0 % (3.0 to 7.0) less CPU per request",
        );
        check(
            Metric::Throughput,
            less,
            Some(1.05),
            "new answers 5.0 % (3.0 to 7.0) fewer requests; the limit is not shown to hold: 1.075 times at most, \
             limit 1.05",
        );
        check(
            Metric::P99,
            [4.2, 4.0, 4.4],
            None,
            "the 99th percentile of new is 320 % (300 to 340) longer",
        );
        check(
            Metric::Cpu,
            same,
            Some(1.1),
            "no difference that could be seen (−1.0 to 0.80 %); a difference of 1.9 % or more would have been; the \
             limit holds: 1.008 times at most, limit 1.10",
        );
        check(
            Metric::Cpu,
            same,
            Some(1.01),
            "not decided: the A/A spread is wider than the limit (A against itself: 0.950 to 1.040, limit 1.01)",
        );
        check_seen(
            Metric::Cpu,
            same,
            Some(1.1),
            Some(0.015),
            "not decided: 10 blocks could see a difference of 1.9 % or more, and 1.5 % was to be seen (−1.0 to 0.80 %); \
             the limit holds: 1.008 times at most, limit 1.10",
        );
    }

    #[test]
    fn no_measurements_decide_nothing() {
        let text = answer(&[], Decision::Undecided, None, &question(Some(1.1), None));
        assert_eq!(text, "not decided: too few blocks were carried out");
    }
}
