//! Mistakes in the limits of an experiment.

use std::ops::Range;

use toml::Spanned;

use super::experiment::Experiment;
use super::limit::{bound, others, place};
use super::outcome::{LabBound, LabMetric};
use super::spec::{BEST, LimitSpec, Sequence};

/// A mistake and its place.
type Mistake = (Range<usize>, String);

/// All mistakes in the limits.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<Mistake> {
    let limits = experiment.limits.iter();
    limits.flat_map(|limit| of_one(experiment, limit)).collect()
}

fn of_one(experiment: &Experiment, limit: &Spanned<LimitSpec>) -> Vec<Mistake> {
    let (place, limit) = (limit.span(), limit.get_ref());
    let mut found = servers(experiment, limit);
    if experiment.order != Sequence::Blocks {
        let sentence = "a limit is decided by blocks: write order = \"blocks\" at the top";
        found.push((place.clone(), sentence.to_owned()));
    }
    let value = match bound(limit) {
        Some(
            LabBound::AtMost(value) | LabBound::AtLeast(value) | LabBound::MoreAtMostUs(value),
        ) => value,
        None => {
            let sentence = "a limit has one of `at_most`, `at_least` and `more_at_most_us`";
            found.push((place, sentence.to_owned()));
            return found;
        }
    };
    if !(value > 0.0 && value.is_finite()) {
        found.push((place.clone(), "a limit is above 0".to_owned()));
    }
    if limit.more_at_most_us.is_some() && !has_micros(limit.metric) {
        let sentence =
            "`more_at_most_us` goes with cpu, p50, p99 and client-cpu, which are in microseconds";
        found.push((place, sentence.to_owned()));
    }
    found.extend(levels(experiment, limit));
    found
}

fn has_micros(metric: LabMetric) -> bool {
    match metric {
        LabMetric::Cpu | LabMetric::P50 | LabMetric::P99 | LabMetric::ClientCpu => true,
        LabMetric::Throughput | LabMetric::Memory | LabMetric::ClientThroughput => false,
    }
}

fn servers(experiment: &Experiment, limit: &LimitSpec) -> Vec<Mistake> {
    let names: Vec<&str> = experiment.names().collect();
    let mut found = Vec::new();
    let is_of_client = limit.metric.is_of_client();
    for name in [&limit.server, &limit.against] {
        let is_other = std::ptr::eq(name, &limit.against);
        let is_known = names.contains(&name.get_ref().as_str());
        if !is_known && !(is_other && (is_of_client || name.get_ref() == BEST)) {
            let sentence = format!(
                "{:?} is no server that is measured; they are {}",
                name.get_ref(),
                names.join(", ")
            );
            found.push((name.span(), sentence));
        }
    }
    if is_of_client {
        found.extend(other_client(experiment, limit));
        return found;
    }
    let baseline = experiment.baseline.as_ref();
    let baseline = baseline.map(|name| name.get_ref().as_str());
    if limit.server.get_ref() == limit.against.get_ref() {
        let sentence = "a server is not held against itself".to_owned();
        found.push((limit.against.span(), sentence));
    } else if others(limit, &names, baseline).is_empty() {
        let sentence = "there is no other server but the baseline".to_owned();
        found.push((limit.against.span(), sentence));
    }
    let has_idle = |name: &str| {
        let server = experiment.server(name);
        server.is_some_and(|server| experiment.idle(server).is_some())
    };
    let both = [limit.server.get_ref(), limit.against.get_ref()];
    if limit.metric == LabMetric::Memory && !both.iter().all(|name| has_idle(name)) {
        let sentence = "memory is that of idle connections: both servers need `idle`".to_owned();
        found.push((limit.server.span(), sentence));
    }
    found
}

/// A figure of this client is compared with the other client.
fn other_client(experiment: &Experiment, limit: &LimitSpec) -> Option<Mistake> {
    let against = &limit.against;
    let sentence = match &experiment.cross_check {
        None => {
            "client-cpu and client-throughput are held against another client: write cross_check = \"wrk\" or \"h2load\" at the top"
                .to_owned()
        }
        Some(checker) if checker.get_ref().name() == against.get_ref() => return None,
        Some(checker) => format!(
            "client-cpu and client-throughput are held against the other client: write against = {:?}",
            checker.get_ref().name()
        ),
    };
    Some((against.span(), sentence))
}

fn levels(experiment: &Experiment, limit: &LimitSpec) -> Vec<Mistake> {
    let places: Vec<f64> = experiment.levels().iter().map(place).collect();
    let unknown = limit.at.iter().filter(|at| !places.contains(at.get_ref()));
    let words: Vec<String> = places.iter().map(f64::to_string).collect();
    unknown
        .map(|at| {
            let levels = words.join(", ");
            let sentence = format!("{} is no level; they are {levels}", at.get_ref());
            (at.span(), sentence)
        })
        .collect()
}
