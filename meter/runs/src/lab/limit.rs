//! Whether the limits of an experiment hold.
//!
//! A limit holds if the whole 95 % interval of the result is within it. It is not decided if the
//! reference (a server or the other client) differs from itself by as much: if its interval against
//! itself reaches further than the limit, and further than the result.

use super::blocks::{Figure, PairedFigures};
use super::outcome::{
    CrossCheck, LabBound, LabInterval, LabLevel, LabLimit, LabMetric, LabOutcome, LabRun,
};
use super::spec::{BEST, LimitSpec};

/// Every limit at each of its levels at which all its servers were measured.
pub(super) fn limits<'a>(
    asked: impl Iterator<Item = &'a LimitSpec>,
    runs: &[LabRun],
    servers: &[&str],
    baseline: Option<&str>,
    levels: &[LabLevel],
) -> Vec<LabLimit> {
    let mut found = Vec::new();
    for limit in asked {
        let others = others(limit, servers, baseline);
        for level in levels.iter().filter(|level| is_at(limit, level)) {
            let each = others
                .iter()
                .filter_map(|other| decide(limit, other, *level, runs));
            // The comparison that is furthest from holding decides.
            let hardest = each.max_by(|a, b| excess(a).total_cmp(&excess(b)));
            found.extend(hardest.map(|hardest| LabLimit {
                best_of: match limit.against.get_ref().as_str() {
                    BEST => others.iter().map(|other| (*other).to_owned()).collect(),
                    _ => Vec::new(),
                },
                ..hardest
            }));
        }
    }
    found
}

/// The servers that a limit refers to. `best` leaves out the baseline, which does no work.
pub(super) fn others<'s>(
    limit: &'s LimitSpec,
    servers: &[&'s str],
    baseline: Option<&str>,
) -> Vec<&'s str> {
    match limit.against.get_ref().as_str() {
        BEST => {
            let own = limit.server.get_ref();
            let peers = servers.iter().copied();
            peers
                .filter(|name| *name != own && Some(*name) != baseline)
                .collect()
        }
        one => vec![one],
    }
}

/// The position of a level on its ladder.
pub(super) fn place(level: &LabLevel) -> f64 {
    level.rate.unwrap_or(level.connections as f64)
}

/// True if a limit applies at a level: at all levels, unless it names some.
pub(super) fn is_at(limit: &LimitSpec, level: &LabLevel) -> bool {
    let mut places = limit.at.iter();
    limit.at.is_empty() || places.any(|at| *at.get_ref() == place(level))
}

/// The bound that a limit has; `check` has seen that there is exactly one.
pub(super) fn bound(limit: &LimitSpec) -> Option<LabBound> {
    let most = limit.at_most.map(LabBound::AtMost);
    let least = limit.at_least.map(LabBound::AtLeast);
    let more = limit.more_at_most_us.map(LabBound::MoreAtMostUs);
    let mut bounds = [most, least, more].into_iter().flatten();
    bounds.next().filter(|_| bounds.next().is_none())
}

/// The two figures that a metric compares.
enum ComparedFigures {
    Servers(Figure),
    /// This client's figure and the other's, at one server.
    Clients(Figure, Figure),
}

fn compared(metric: LabMetric) -> ComparedFigures {
    use ComparedFigures::{Clients, Servers};
    match metric {
        LabMetric::Cpu => Servers(|run| run.cpu_us),
        LabMetric::Throughput => Servers(|run| Some(run.throughput)),
        LabMetric::P50 => Servers(|run| run.latency_us?.p50),
        LabMetric::P99 => Servers(|run| run.latency_us?.p99),
        LabMetric::Memory => Servers(|run| run.idle_bytes),
        LabMetric::ClientCpu => Clients(
            |run| run.client_cpu_us,
            |run| Some(good(run)?.client?.cpu_us),
        ),
        LabMetric::ClientThroughput => Clients(
            |run| Some(run.throughput),
            |run| Some(good(run)?.throughput),
        ),
    }
}

/// The other client's result if it had no errors, because its rates count errors too.
fn good(run: &LabRun) -> Option<CrossCheck> {
    run.other.filter(|other| other.errors == 0)
}

/// A limit against one server, or the other client, at one level; `None` if one of the two was not
/// measured there.
fn decide(limit: &LimitSpec, other: &str, level: LabLevel, runs: &[LabRun]) -> Option<LabLimit> {
    let of = |name: &str| -> Vec<&LabRun> {
        let at = |run: &&LabRun| run.server == name && run.level == level;
        runs.iter().filter(at).collect()
    };
    let known = |runs: Vec<_>| Some(runs).filter(|runs| !runs.is_empty());
    let own = known(of(limit.server.get_ref()))?;
    let sides = match compared(limit.metric) {
        ComparedFigures::Servers(figure) => {
            PairedFigures::of_servers(&own, &known(of(other))?, figure)
        }
        ComparedFigures::Clients(ours, theirs) => PairedFigures::of_clients(&own, ours, theirs),
    };
    let bound = bound(limit)?;
    let (found, itself) = match bound {
        LabBound::AtMost(_) | LabBound::AtLeast(_) => (
            sides.ratio().map(LabInterval::from),
            sides.other_over_itself().map(LabInterval::from),
        ),
        LabBound::MoreAtMostUs(_) => (sides.difference(), sides.other_less_itself()),
    };
    Some(LabLimit {
        server: limit.server.get_ref().clone(),
        against: other.to_owned(),
        best_of: Vec::new(),
        metric: limit.metric,
        level,
        bound,
        found,
        itself,
        outcome: match found.zip(itself) {
            Some((found, itself)) => outcome(bound, &found, &itself),
            None => LabOutcome::NotDecided,
        },
    })
}

fn outcome(bound: LabBound, found: &LabInterval, itself: &LabInterval) -> LabOutcome {
    let farthest = reach(bound, limit_of(bound)).max(reach(bound, found.mean));
    if reach(bound, itself.low).max(reach(bound, itself.high)) > farthest {
        return LabOutcome::NotDecided;
    }
    let (holds, missed) = match bound {
        LabBound::AtMost(limit) | LabBound::MoreAtMostUs(limit) => {
            (found.high <= limit, found.low > limit)
        }
        LabBound::AtLeast(limit) => (found.low >= limit, found.high < limit),
    };
    match (holds, missed) {
        (true, _) => LabOutcome::Holds,
        (false, true) => LabOutcome::Missed,
        (false, false) => LabOutcome::NotShown,
    }
}

fn limit_of(bound: LabBound) -> f64 {
    match bound {
        LabBound::AtMost(limit) | LabBound::AtLeast(limit) | LabBound::MoreAtMostUs(limit) => limit,
    }
}

/// How far a value is from "no difference", in either direction: a logarithm, or microseconds.
fn reach(bound: LabBound, value: f64) -> f64 {
    match bound {
        LabBound::AtMost(_) | LabBound::AtLeast(_) => value.ln().abs(),
        LabBound::MoreAtMostUs(_) => value.abs(),
    }
}

/// How far the worse end of the interval is beyond the limit; an unknown interval is worst.
fn excess(limit: &LabLimit) -> f64 {
    let Some(found) = limit
        .found
        .filter(|_| limit.outcome != LabOutcome::NotDecided)
    else {
        return f64::INFINITY;
    };
    match limit.bound {
        LabBound::AtMost(bound) => (found.high / bound).ln(),
        LabBound::AtLeast(bound) => (bound / found.low).ln(),
        LabBound::MoreAtMostUs(bound) => found.high - bound,
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::OtherClient;
    use super::*;
    use crate::lab::findings::run_of;

    /// Blocks of four runs of a server: `cpu` of each block and pass.
    fn runs(server: &str, cpu: impl Fn(usize, usize) -> f64) -> Vec<LabRun> {
        let places = (1..=10).flat_map(|repeat| (1..=4).map(move |pass| (repeat, pass)));
        let one = |(repeat, pass)| LabRun {
            pass,
            ..run_of(server, repeat, cpu(repeat, pass))
        };
        places.map(one).collect()
    }

    fn check(limit: &str, runs: &[LabRun]) -> LabLimit {
        let limit: LimitSpec = toml::from_str(limit).unwrap();
        let servers = ["floor", "it", "near", "far"];
        let levels = [runs[0].level];
        let found = limits([&limit].into_iter(), runs, &servers, Some("floor"), &levels);
        found.into_iter().next().unwrap()
    }

    /// Some noise, the same every time.
    fn noise(repeat: usize, pass: usize) -> f64 {
        1.0 + ((repeat * 7 + pass * 5) % 11) as f64 / 1000.0
    }

    fn four() -> Vec<LabRun> {
        let drift = |repeat: usize, pass: usize| noise(repeat, pass) * (repeat * 4 + pass) as f64;
        let mut all = runs("floor", drift);
        all.extend(runs("it", |repeat, pass| 1.2 * drift(repeat, pass + 1)));
        all.extend(runs("near", |repeat, pass| 1.5 * drift(repeat, pass)));
        all.extend(runs("far", |repeat, pass| 2.0 * drift(repeat, pass)));
        all
    }

    #[test]
    fn a_limit_holds_is_missed_or_is_not_shown() {
        let all = four();
        let at = |against: &str, bound: &str| {
            let text = format!("server = 'it'\nagainst = '{against}'\nmetric = 'cpu'\n{bound}");
            check(&text, &all)
        };
        assert_eq!(at("floor", "at_most = 1.4").outcome, LabOutcome::Holds);
        assert_eq!(at("floor", "at_most = 1.1").outcome, LabOutcome::Missed);
        let found = at("floor", "at_most = 1.4").found.unwrap();
        let between = format!("at_most = {}", f64::midpoint(found.mean, found.high));
        assert_eq!(at("floor", &between).outcome, LabOutcome::NotShown);
        assert_eq!(at("floor", "at_least = 1.1").outcome, LabOutcome::Holds);
        assert_eq!(at("far", "at_most = 1.0").outcome, LabOutcome::Holds);
        let best = at("best", "at_most = 1.0");
        assert_eq!(
            (best.against.as_str(), best.outcome),
            ("near", LabOutcome::Holds)
        );
        assert_eq!(best.best_of, ["near", "far"]);
        assert!(at("floor", "more_at_most_us = 0.5").outcome != LabOutcome::Holds);
        assert_eq!(
            at("floor", "more_at_most_us = 50.0").outcome,
            LabOutcome::Holds
        );
        let elsewhere: LimitSpec = toml::from_str(
            "server = 'it'\nagainst = 'floor'\nmetric = 'cpu'\nat = [99]\nat_most = 1.0",
        )
        .unwrap();
        let levels = [all[0].level];
        assert_eq!(
            limits(
                [&elsewhere].into_iter(),
                &all,
                &["it", "floor"],
                None,
                &levels
            ),
            []
        );
    }

    /// Compares clients where this one takes 8 µs per request and the other `theirs`, with a limit
    /// of 1.1.
    fn beside(theirs: impl Fn(usize, usize) -> f64) -> LabLimit {
        let mut all = runs("it", |_, _| 10.0);
        for repeat in 1..=10 {
            for place in 1..=4 {
                let drift = noise(repeat, place) * (8.0 + place as f64);
                let mut run = run_of("it", repeat, 10.0);
                run.pass = 4 + place;
                run.client_cpu_us = Some(8.0 * drift);
                run.other = run.other.map(|other| CrossCheck {
                    client: Some(OtherClient {
                        cpu_us: theirs(repeat, place) * drift,
                        busy: 0.9,
                        turns: 0.0,
                        core_busy: None,
                    }),
                    ..other
                });
                all.push(run);
            }
        }
        let text = "server = 'it'\nagainst = 'wrk'\nmetric = 'client-cpu'\nat_most = 1.1";
        check(text, &all)
    }

    #[test]
    fn clients_are_compared_in_the_passes_that_they_share() {
        let even = beside(|_, _| 7.5);
        assert_eq!(even.outcome, LabOutcome::Holds, "{even:?}");
        let found = even.found.unwrap();
        assert!((found.mean - 8.0 / 7.5).abs() < 1e-3, "{found:?}");
        assert_eq!((even.against.as_str(), found.blocks), ("wrk", 10));
        assert_eq!(beside(|_, _| 6.0).outcome, LabOutcome::Missed);
        let restless = |repeat: usize, place: usize| match (repeat % 2, place) {
            (0, 1 | 4) | (1, 2 | 3) => 12.0,
            _ => 5.0,
        };
        assert_eq!(beside(restless).outcome, LabOutcome::NotDecided);
        // Without the other client's own figure the limit is not decided.
        let text = "server = 'it'\nagainst = 'wrk'\nmetric = 'client-cpu'\nat_most = 1.1";
        let none = check(text, &runs("it", |_, _| 10.0));
        assert_eq!((none.outcome, none.found), (LabOutcome::NotDecided, None));
        let mut all = runs("it", |_, _| 10.0);
        all.iter_mut().for_each(|run| run.pass += 4);
        let text = "server = 'it'\nagainst = 'wrk'\nmetric = 'client-throughput'\nat_least = 0.97";
        let found = check(text, &all);
        assert_eq!(found.outcome, LabOutcome::Holds, "{found:?}");
        all.retain(|run| run.pass != 6);
        assert_eq!(check(text, &all).found, None, "no block is whole");
    }

    #[test]
    fn a_server_that_differs_from_itself_decides_nothing() {
        // Outer runs cost more or less than inner ones, in every block otherwise.
        let restless = |repeat: usize, pass: usize| match (repeat % 2, pass) {
            (0, 1 | 4) | (1, 2 | 3) => 1.5,
            _ => 1.0,
        };
        let mut all = runs("floor", restless);
        all.extend(runs("it", |_, _| 1.25));
        let text = "server = 'it'\nagainst = 'floor'\nmetric = 'cpu'\nat_most = 1.10";
        assert_eq!(check(text, &all).outcome, LabOutcome::NotDecided);
        let few: Vec<LabRun> = four().into_iter().filter(|run| run.repeat < 3).collect();
        let found = check(text, &few);
        assert_eq!((found.outcome, found.found), (LabOutcome::NotDecided, None));
    }
}
