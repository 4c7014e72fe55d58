//! Options that another client does not support: the two clients can only be compared if both send
//! the same requests.

use std::ops::Range;

use toml::Spanned;

use super::experiment::Experiment;
use super::spec::OtherProgram;

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let Some(checker) = &experiment.cross_check else {
        return Vec::new();
    };
    let options = of_options(experiment, *checker.get_ref()).into_iter();
    let mut found: Vec<(Range<usize>, String)> = options
        .map(|sentence| (checker.span(), sentence.to_owned()))
        .collect();
    found.extend(of_headers(&experiment.workload.get_ref().headers));
    found
}

fn of_options(experiment: &Experiment, checker: OtherProgram) -> Vec<&'static str> {
    let workload = experiment.workload.get_ref();
    let ladder = experiment.ladder.as_ref().map(|ladder| ladder.get_ref());
    let has_habits = workload.think.is_some()
        || workload.throttle_down.is_some()
        || workload.throttle_up.is_some()
        || workload.method.is_some()
        || workload.body.is_some()
        || workload.requests.is_some()
        || workload.replay.is_some()
        || !workload.keep_alive;
    let all = [
        (
            workload.rate.is_some() || ladder.is_some_and(|ladder| ladder.rates.is_some()),
            "the other client is asked for no rate: cross_check goes with a closed loop",
        ),
        (
            workload.plan.is_some(),
            "the other client knows no sessions: cross_check does not go with a plan",
        ),
        (
            workload.http2 && checker == OtherProgram::Wrk,
            "wrk knows no HTTP/2: cross_check = \"h2load\"",
        ),
        (
            workload.full_handshakes || workload.per_connection.is_some(),
            "the other client keeps its connections: cross_check goes neither with full_handshakes nor with per_connection",
        ),
        (
            has_habits,
            "the other client asks by GET, at once, and for a time: cross_check does not go with think, throttle_down, \
             throttle_up, method, body, requests, replay and keep_alive = false",
        ),
        (
            ladder.is_some_and(|ladder| ladder.counts.is_some()),
            "the other client is told its paths once: cross_check does not go with a ladder of counts",
        ),
    ];
    let wrong = all.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, sentence)| sentence).collect()
}

fn of_headers(headers: &[Spanned<String>]) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for field in headers {
        // Text without a colon is not a field; another check reports it.
        let Some((name, value)) = field.get_ref().split_once(':') else {
            continue;
        };
        let name = name.trim();
        let is_named = |other: &&str| other.eq_ignore_ascii_case(name);
        let sentence = if is_named(&"host") {
            Some(
                "the other client writes a Host field of its own: cross_check does not go with one in headers",
            )
        } else if names.iter().any(is_named) {
            Some("wrk sends a field of this name once: cross_check goes with different names")
        } else if value.trim().is_empty() {
            Some("h2load sends no field without a value: cross_check goes with values")
        } else {
            None
        };
        found.extend(sentence.map(|sentence| (field.span(), sentence.to_owned())));
        names.push(name);
    }
    found
}
