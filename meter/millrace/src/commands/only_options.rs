//! What `millrace load` refuses beside `--probe-only` and `--learn-only`: neither sends anything, and an option that nobody obeys
//! should be named, not dropped.

/// Options of requests, their times and their judgement, which `--probe-only` has no use for. Samples without a run have no
/// rows for `--csv` and no requests to hold a database against.
pub(super) const SENDING: [&str; 51] = [
    "url",
    "connections",
    "rate",
    "requests",
    "warmup",
    "objective",
    "arrivals",
    "speed",
    "deadline",
    "ramp_up",
    "ramp_down",
    "auto",
    "auto_precision",
    "auto_max",
    "think",
    "cycle",
    "session",
    "urls",
    "order",
    "seed",
    "plan",
    "from_log",
    "learn_only",
    "replay",
    "replay_unsafe",
    "headers",
    "method",
    "body",
    "expect",
    "timeout",
    "no_keep_alive",
    "per_connection",
    "http2",
    "depth",
    "cacert",
    "insecure",
    "unix_socket",
    "connect_to",
    "throttle_down",
    "throttle_up",
    "expect_body",
    "expect_sha256",
    "threads",
    "cores",
    "spin",
    "calibration",
    "no_calibration",
    "no_probe",
    "diagnose",
    "pg",
    "csv",
];

/// What `--learn-only`, which says something of a log and measures nothing, has no result for.
pub(super) const MEASURING: [&str; 9] = [
    "replay",
    "objective",
    "diagnose",
    "probe_only",
    "pg",
    "json",
    "csv",
    "report",
    "svg",
];

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::super::load::Load;
    use super::{MEASURING, SENDING};

    /// What `--probe-only` obeys.
    const OBEYED: [&str; 10] = [
        "duration",
        "pid",
        "port",
        "probe_interval",
        "no_perf",
        "json",
        "report",
        "svg",
        "plain",
        "quiet",
    ];

    #[test]
    fn every_option_of_a_run_is_obeyed_or_refused_where_only_samples_are_taken() {
        let command = Load::augment_args(Command::new("load"));
        for argument in command.get_arguments() {
            let name = argument.get_id().as_str();
            let is_obeyed = OBEYED.contains(&name) || name == "probe_only";
            assert_ne!(is_obeyed, SENDING.contains(&name), "{name}");
        }
        for name in SENDING.iter().chain(&MEASURING) {
            let is_there = command
                .get_arguments()
                .any(|argument| argument.get_id() == *name);
            assert!(is_there, "{name}");
        }
    }
}
