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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::experiment::Experiment;

    const SERVER: &str = "[[server]]\nname = 'a'\nstart = 'a'\n";

    #[test]
    fn options_that_contradict_each_other_are_named() {
        for (workload, expected) in [
            ("replay = 'gone.log'", "there is no file gone.log"),
            (
                "replay = '{work}/x.log'\nrate = 5.0",
                "leave out rates, session and think",
            ),
            (
                "replay = '{work}/x.log'\nrequests = 5",
                "leave out plan, count and requests",
            ),
            (
                "replay = '{work}/x.log'\nbody = 'x'",
                "leave out method and body",
            ),
            ("speed = 2.0", "it needs `replay`"),
            ("replay = '{work}/x.log'\nspeed = 0.0", "a speed is from"),
            (
                "requests = 5\nduration = '1s'",
                "leave out `requests` or `duration`",
            ),
            ("session = 5", "sessions arrive at a rate"),
            ("rate = 5.0\nthink = '1s'", "need sessions"),
            ("think = 'soon'", "is not understood"),
            ("throttle_down = '1bit'", "a bandwidth must be"),
            ("throttle_down = 'fast'", "no bandwidth"),
            ("throttle_down = '64kbit'\nhttp2 = true", "HTTP/1.1 only"),
            ("keep_alive = false\nper_connection = 5", "needs keep-alive"),
            ("session = 0\nrate = 1.0", "at least one request"),
        ] {
            let text = format!("title = 'x'\n[workload]\n{workload}\n{SERVER}");
            let faults = Experiment::read(&text, Path::new("/")).unwrap_err();
            let is_named = faults.iter().any(|fault| fault.message.contains(expected));
            assert!(is_named, "{workload}: {faults:?}");
        }
    }

    #[test]
    fn another_client_does_not_do_as_this_one() {
        for workload in [
            "think = '1s'",
            "method = 'PUT'",
            "requests = 5",
            "keep_alive = false",
        ] {
            let text =
                format!("title = 'x'\ncross_check = 'wrk'\n[workload]\n{workload}\n{SERVER}");
            let faults = Experiment::read(&text, Path::new("/")).unwrap_err();
            assert!(
                faults[0].message.contains("the other client asks by GET"),
                "{faults:?}"
            );
        }
    }
}
