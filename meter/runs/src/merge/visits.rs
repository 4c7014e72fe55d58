//! Classes, sessions and pauses of several runs.

use super::spans::Spans;
use super::{errors, sum, timeline};
use crate::{ClassFigures, Pauses, RampDown, Run, Sessions};
use millrace_client::Errors;
use millrace_stats::latency::summary;
use millrace_stats::{Hdr, Latency, Timeline};

/// The classes, which all runs have in the same order.
pub(super) fn classes(runs: &[Run], spans: &Spans) -> Vec<ClassFigures> {
    let names = runs[0].classes.iter().map(|class| &class.name);
    names
        .enumerate()
        .map(|(place, name)| class(runs, place, name, spans))
        .collect()
}

fn class(runs: &[Run], place: usize, name: &str, spans: &Spans) -> ClassFigures {
    let all = |of: fn(&ClassFigures) -> u64| sum(runs, |run| of(&run.classes[place]));
    let each = || runs.iter().map(|run| &run.classes[place]);
    let times =
        |of: fn(&ClassFigures) -> Option<&Hdr>| Hdr::merge(each().filter_map(|class| of(class)));
    let (response, service) = (
        times(|class| class.response.as_ref()),
        times(|class| class.service.as_ref()),
    );
    // A run of an older version has neither. The sum of the others would look like the sum of all.
    let send_lag = match each().all(|class| class.response.is_none() || class.send_lag.is_some()) {
        true => times(|class| class.send_lag.as_ref()),
        false => None,
    };
    let errors = match each().all(|class| !class.errors.by_kind.is_empty()) {
        true => errors(each().map(|class| &class.errors)),
        false => Errors::default(),
    };
    let series: Vec<&Timeline> = each().map(|class| &class.series).collect();
    // As above: an older version has none.
    let series = match series.iter().all(|series| series.interval_s > 0.0) {
        true => timeline::merge(&series, spans),
        false => Timeline::default(),
    };
    let latency =
        |times: &Option<Hdr>| -> Option<Latency> { summary(&times.as_ref()?.histogram()) };
    ClassFigures {
        name: name.to_owned(),
        issued: all(|class| class.issued),
        requests: all(|class| class.requests),
        good: all(|class| class.good),
        failed: all(|class| class.failed),
        shed: all(|class| class.shed),
        errors,
        bytes: all(|class| class.bytes),
        response_us: latency(&response),
        service_us: latency(&service),
        send_lag_us: latency(&send_lag),
        response,
        service,
        send_lag,
        series,
    }
}

/// The sessions, if all runs have some.
pub(super) fn sessions(runs: &[Run], spans: &Spans) -> Option<Sessions> {
    let all = runs.iter().map(|run| run.sessions);
    let all: Vec<Sessions> = all.collect::<Option<_>>()?;
    let add = |of: fn(&Sessions) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    Some(Sessions {
        offered_rate: spans.per_second(runs, |run| run.sessions?.offered_rate),
        started: add(|sessions| sessions.started),
        completed: add(|sessions| sessions.completed),
        broken_off: add(|sessions| sessions.broken_off),
    })
}

/// The ramp-down, which is as long in all runs.
pub(super) fn ramp_down(runs: &[Run]) -> Option<RampDown> {
    let first = runs[0].ramp_down?;
    Some(RampDown {
        requests: sum(runs, |run| run.ramp_down.map_or(0, |ramp| ramp.requests)),
        ..first
    })
}

/// The pauses, if all runs have some; each run's mean counts as often as the run has requests.
pub(super) fn pauses(runs: &[Run]) -> Option<Pauses> {
    let all = runs.iter().map(|run| run.pauses.as_ref());
    let all: Vec<&Pauses> = all.collect::<Option<_>>()?;
    let weights = runs.iter().map(|run| run.accounting.issued as f64);
    let weighted: f64 = weights
        .clone()
        .zip(&all)
        .map(|(weight, pauses)| weight * pauses.mean_us)
        .sum();
    Some(Pauses {
        asked: all.first()?.asked.clone(),
        mean_us: weighted / weights.sum::<f64>().max(1.0),
        missed_cycles: all
            .iter()
            .map(|pauses| pauses.missed_cycles)
            .fold(0, u64::saturating_add),
    })
}
