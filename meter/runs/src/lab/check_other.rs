//! Options that another client does not support: the two clients can only be compared if both send
//! the same requests.

use std::ops::Range;

use super::experiment::Experiment;
use super::spec::OtherProgram;

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let Some(checker) = &experiment.cross_check else {
        return Vec::new();
    };
    let workload = experiment.workload.get_ref();
    let mut found = Vec::new();
    let mut say = |place: Range<usize>, sentence: &str| found.push((place, sentence.to_owned()));
    let ladder = experiment.ladder.as_ref().map(|ladder| ladder.get_ref());
    if workload.rate.is_some() || ladder.is_some_and(|ladder| ladder.rates.is_some()) {
        say(
            checker.span(),
            "the other client is asked for no rate: cross_check goes with a closed loop",
        );
    }
    if workload.plan.is_some() {
        say(
            checker.span(),
            "the other client knows no sessions: cross_check does not go with a plan",
        );
    }
    if workload.http2 && *checker.get_ref() == OtherProgram::Wrk {
        say(
            checker.span(),
            "wrk knows no HTTP/2: cross_check = \"h2load\"",
        );
    }
    if workload.full_handshakes || workload.per_connection.is_some() {
        say(
            checker.span(),
            "the other client keeps its connections: cross_check goes neither with full_handshakes nor with per_connection",
        );
    }
    let has_habits = workload.think.is_some()
        || workload.throttle_down.is_some()
        || workload.throttle_up.is_some()
        || workload.method.is_some()
        || workload.body.is_some()
        || workload.requests.is_some()
        || workload.replay.is_some()
        || !workload.keep_alive;
    if has_habits {
        say(
            checker.span(),
            "the other client asks by GET, at once, and for a time: cross_check does not go with think, throttle_down, \
             throttle_up, method, body, requests, replay and keep_alive = false",
        );
    }
    if ladder.is_some_and(|ladder| ladder.counts.is_some()) {
        say(
            checker.span(),
            "the other client is told its paths once: cross_check does not go with a ladder of counts",
        );
    }
    let mut names: Vec<&str> = Vec::new();
    for field in &workload.headers {
        // Text without a colon is not a field; another check reports it.
        let Some((name, value)) = field.get_ref().split_once(':') else {
            continue;
        };
        let name = name.trim();
        let is_named = |other: &&str| other.eq_ignore_ascii_case(name);
        if is_named(&"host") {
            say(
                field.span(),
                "the other client writes a Host field of its own: cross_check does not go with one in headers",
            );
        } else if names.iter().any(is_named) {
            say(
                field.span(),
                "wrk sends a field of this name once: cross_check goes with different names",
            );
        } else if value.trim().is_empty() {
            say(
                field.span(),
                "h2load sends no field without a value: cross_check goes with values",
            );
        }
        names.push(name);
    }
    found
}
