//! The table of the flags that measuring commands share: a part for each heading of `--help`.
//!
//! The rows have the order of `--help`. A row that sets nothing is read by the module that a
//! comment names.

use super::{Flag, client, pace, probe, request, target, workload};
use crate::commands::headings::{BESIDE, CLIENT, LOOP, REQUEST, SERVER, WORKLOAD};

/// Every flag that several measuring commands take, and flags of `load` that are listed among them,
/// each with its heading.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static Flag)> {
    let parts = [
        (REQUEST, request::FLAGS),
        (SERVER, target::FLAGS),
        (CLIENT, client::FLAGS),
        (LOOP, pace::FLAGS),
        (WORKLOAD, workload::FLAGS),
        (BESIDE, probe::FLAGS),
    ];
    let rows = |(heading, flags): (&'static str, &'static [Flag])| {
        flags.iter().map(move |flag| (heading, flag))
    };
    parts.into_iter().flat_map(rows)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{Args as _, Command, FromArgMatches as _};

    use millrace_client::{Pace, Plan, Trust};

    use super::super::{PlanFlags, SWEEP};

    fn plan(arguments: &[&str]) -> Plan {
        let command = PlanFlags::<SWEEP>::augment_args(Command::new("sweep"));
        let words = std::iter::once("sweep").chain(arguments.iter().copied());
        let matches = command.try_get_matches_from(words).unwrap();
        let flags = PlanFlags::<SWEEP>::from_arg_matches(&matches).unwrap();
        flags.plan("http://h/").ok().unwrap()
    }

    #[test]
    fn without_flags_a_plan_has_its_defaults() {
        let (plan, usual) = (plan(&[]), Plan::new("http://h/"));
        assert_eq!(format!("{:?}", plan.target), format!("{:?}", usual.target));
        assert_eq!(
            format!("{:?}", plan.request),
            format!("{:?}", usual.request)
        );
        assert_eq!(format!("{:?}", plan.load), format!("{:?}", usual.load));
        assert_eq!(plan.conditions.probe, Some(Default::default()));
    }

    #[test]
    fn each_flag_sets_its_part_of_the_plan() {
        let sent = plan(&[
            "-d",
            "x=1",
            "-H",
            "A: b",
            "--expect",
            "200,304",
            "--depth=3",
        ]);
        assert_eq!(sent.request.method, "POST");
        assert_eq!(sent.request.body, b"x=1");
        assert_eq!(sent.request.headers, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(sent.request.expect, [200, 304]);
        assert_eq!(sent.load.depth, 3);
        assert_eq!(plan(&["-d", "x", "-m", "PUT"]).request.method, "PUT");
        assert_eq!(plan(&["--insecure"]).target.trust, Trust::Anyone);
        let spread = plan(&["--connect-to", "a:1,b:2", "--round-robin"]).target;
        assert_eq!(spread.connect_to, ["a:1", "b:2"]);
        assert!(spread.round_robin);
        assert_eq!(plan(&["--cores", "1,2"]).load.cores, Some(vec![1, 2]));
        let second = Duration::from_secs(1);
        assert_eq!(plan(&["--cycle", "1s"]).load.pace, Pace::Cycle(second));
        assert_eq!(plan(&["--no-probe"]).conditions.probe, None);
        let probe = plan(&["--pid", "7", "--probe-interval", "1s"])
            .conditions
            .probe
            .unwrap();
        assert_eq!((probe.pids, probe.interval), (vec![7], second));
    }
}
