//! Options of a workload that contradict each other.

use std::ops::Range;

use super::experiment::Experiment;

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let whole = &experiment.workload;
    let workload = whole.get_ref();
    let ladder = experiment.ladder.as_ref().map(|ladder| ladder.get_ref());
    let has_rates = workload.rate.is_some() || ladder.is_some_and(|ladder| ladder.rates.is_some());
    let mut found = Vec::new();
    let mut say = |place: Range<usize>, sentence: &str| found.push((place, sentence.to_owned()));
    if let Some(replay) = &workload.replay {
        if has_rates || workload.session.is_some() || workload.think.is_some() {
            say(
                replay.span(),
                "a replay has the times of its log: leave out rates, session and think",
            );
        }
        if workload.plan.is_some() || workload.count.is_some() || workload.requests.is_some() {
            say(
                replay.span(),
                "a replay sends the requests of its log: leave out plan, count and requests",
            );
        }
        if workload.method.is_some() || workload.body.is_some() {
            say(
                replay.span(),
                "a replay sends the methods of its log: leave out method and body",
            );
        }
        let name = replay.get_ref();
        if !name.contains('{') && !experiment.here.join(name).is_file() {
            let sentence = format!("there is no file {name} in the folder of the experiment");
            say(replay.span(), &sentence);
        }
    }
    if let Some(speed) = &workload.speed {
        if workload.replay.is_none() {
            say(speed.span(), "`speed` is that of a log: it needs `replay`");
        } else if !(0.001..=1e6).contains(speed.get_ref()) {
            say(speed.span(), "a speed is from 0.001 to 1000000");
        }
    }
    if workload.requests.is_some() && workload.duration.is_some() {
        say(
            whole.span(),
            "a run ends after a number of requests or after a time: leave out `requests` or `duration`",
        );
    }
    if workload.plan.is_some()
        && (workload.method.is_some()
            || workload.body.is_some()
            || workload.session.is_some()
            || workload.think.is_some())
    {
        say(
            whole.span(),
            "a plan has methods, bodies, sessions and pauses of its own: leave out method, body, session and think",
        );
    }
    found
}
