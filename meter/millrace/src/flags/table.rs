//! The table of the flags that measuring commands share.
//!
//! The rows have the order of `--help`. A row that sets nothing is read by the module that its
//! comment names.

use std::fs;
use std::path::PathBuf;

use clap::{Arg, ArgAction, value_parser};
use millrace_client::{Bandwidth, Pace, Plan, Think, Trust};

use super::{CAPACITY, COMPARE, Flag, Given, LOAD, PROBING, SWEEP};
use crate::commands::headings::{BESIDE, CLIENT, LOOP, REQUEST, SERVER, WORKLOAD};
use crate::commands::values::{self, status, whole};
use crate::failure::{CommandResult, Failure};
use crate::output::note;

const ALL: u8 = LOAD | SWEEP | CAPACITY | COMPARE;

/// Flags that `--learn-only` refuses, because it measures nothing.
const MEASURING: [&str; 9] = [
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

/// Every flag that several measuring commands take, and flags of `load` that are listed among them.
pub(super) const TABLE: &[Flag] = &[
    Flag {
        name: "header",
        help: "A request field, as 'Name: value'; may be repeated",
        heading: REQUEST,
        on: ALL,
        arg: |arg| {
            arg.short('H')
                .value_name("FIELD")
                .value_parser(header)
                .action(ArgAction::Append)
        },
        set: |plan, given| {
            plan.request.headers = given.values();
            Ok(())
        },
    },
    Flag {
        name: "method",
        help: "The request method; POST if there is a body, else GET",
        heading: REQUEST,
        on: ALL,
        arg: |arg| arg.short('m').value_name("METHOD"),
        set: |plan, given| {
            if let Some(method) = given.value() {
                plan.request.method = method;
            }
            Ok(())
        },
    },
    Flag {
        name: "data",
        help: "The request body, or @FILE",
        heading: REQUEST,
        on: ALL,
        arg: |arg| arg.short('d').value_name("BODY"),
        set: |plan, given| {
            given
                .value()
                .map_or(Ok(()), |body| set_body(plan, given, body))
        },
    },
    Flag {
        name: "expect",
        help: "Statuses that count as good, such as 200,304; without it 200 to 399",
        heading: REQUEST,
        on: ALL,
        arg: |arg| {
            arg.value_name("STATUS")
                .value_delimiter(',')
                .value_parser(status)
                .action(ArgAction::Append)
        },
        set: |plan, given| {
            plan.request.expect = given.values();
            Ok(())
        },
    },
    Flag {
        name: "timeout",
        help: "Longest wait for a connection, and for an answer",
        heading: REQUEST,
        on: ALL,
        arg: |arg| time(arg).default_value("5s"),
        set: |plan, given| set(&mut plan.request.timeout, given.value()),
    },
    Flag {
        name: "no-keep-alive",
        help: "A new connection for each request",
        heading: REQUEST,
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| {
            plan.request.keep_alive = !given.is_on();
            Ok(())
        },
    },
    Flag {
        name: "per-connection",
        help: "Requests that a connection serves before a new one takes its place",
        heading: REQUEST,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("N")
                .value_parser(value_parser!(u64))
                .conflicts_with("no-keep-alive")
        },
        set: |plan, given| {
            plan.request.per_connection = given.value();
            Ok(())
        },
    },
    Flag {
        name: "http2",
        help: "HTTP/2: over TLS by ALPN, in clear text with prior knowledge",
        heading: REQUEST,
        on: ALL,
        arg: switch,
        set: |plan, given| {
            plan.target.http2 = given.is_on();
            Ok(())
        },
    },
    Flag {
        name: "depth",
        help: "Requests in flight on one connection (pipelining); with --http2 streams at a time",
        heading: REQUEST,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("N")
                .value_parser(value_parser!(usize))
                .default_value("1")
        },
        set: |plan, given| set(&mut plan.load.depth, given.value()),
    },
    Flag {
        name: "cacert",
        help: "Root certificates (PEM) for https://, instead of the system's",
        heading: SERVER,
        on: ALL,
        arg: |arg| arg.value_name("FILE").value_parser(value_parser!(PathBuf)),
        set: |plan, given| set(&mut plan.target.trust, given.value().map(Trust::File)),
    },
    Flag {
        name: "insecure",
        help: "Accept every certificate",
        heading: SERVER,
        on: ALL,
        arg: |arg| switch(arg).conflicts_with("cacert"),
        set: |plan, given| {
            let trust = given.is_on().then_some(Trust::Anyone);
            set(&mut plan.target.trust, trust)
        },
    },
    Flag {
        name: "full-handshakes",
        help: "Resume no TLS session: each connection makes a full handshake",
        heading: SERVER,
        on: ALL,
        arg: |arg| switch(seldom(arg)),
        set: |plan, given| {
            plan.target.full_handshakes = given.is_on();
            Ok(())
        },
    },
    Flag {
        name: "unix-socket",
        help: "Connect through this Unix socket",
        heading: SERVER,
        on: ALL,
        arg: |arg| {
            arg.value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("connect-to")
        },
        set: |plan, given| {
            plan.target.unix_socket = given.value();
            Ok(())
        },
    },
    Flag {
        name: "connect-to",
        help: "Connect there; Host and TLS keep the URL's host",
        heading: SERVER,
        on: ALL,
        arg: |arg| arg.value_name("HOST:PORT"),
        set: |plan, given| {
            plan.target.connect_to = given.value();
            Ok(())
        },
    },
    Flag {
        name: "throttle-down",
        help: "Most that each connection receives in a second, such as 50K (bytes) or 400kbit",
        heading: SERVER,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("RATE")
                .value_parser(value_parser!(Bandwidth))
        },
        set: |plan, given| {
            plan.target.throttle_down = given.value();
            Ok(())
        },
    },
    Flag {
        name: "throttle-up",
        help: "Most that each connection sends in a second",
        heading: SERVER,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("RATE")
                .value_parser(value_parser!(Bandwidth))
        },
        set: |plan, given| {
            plan.target.throttle_up = given.value();
            Ok(())
        },
    },
    Flag {
        name: "expect-body",
        help: "A regular expression that the body of a good answer matches",
        heading: REQUEST,
        on: ALL,
        arg: |arg| arg.value_name("REGEX"),
        set: |plan, given| {
            plan.request.expect_body = given.value();
            Ok(())
        },
    },
    Flag {
        name: "expect-sha256",
        help: "The SHA-256 digest of the body of a good answer",
        heading: REQUEST,
        on: ALL,
        arg: |arg| seldom(arg).value_name("HEX"),
        set: |plan, given| {
            plan.request.expect_sha256 = given.value();
            Ok(())
        },
    },
    Flag {
        name: "threads",
        help: "Client threads; 0 is one for each core",
        heading: CLIENT,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("N")
                .value_parser(value_parser!(usize))
                .default_value("0")
        },
        set: |plan, given| set(&mut plan.load.threads, given.value()),
    },
    Flag {
        name: "cores",
        help: "Cores to pin the client threads to, such as 1,2",
        heading: CLIENT,
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("CORES")
                .value_delimiter(',')
                .value_parser(whole::<usize>)
                .action(ArgAction::Append)
        },
        set: |plan, given| {
            let cores: Vec<usize> = given.values();
            plan.load.cores = (!cores.is_empty()).then_some(cores);
            Ok(())
        },
    },
    Flag {
        name: "spin",
        help: "Never sleep while waiting for answers, so that the server wakes no client thread; \
               each thread takes a whole core",
        heading: CLIENT,
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| {
            plan.load.spin = given.is_on();
            Ok(())
        },
    },
    Flag {
        name: "think",
        help: "Pause after each answer: 500ms, exp:500ms (this mean) or uniform:100ms-1s",
        heading: LOOP,
        on: ALL,
        arg: |arg| {
            arg.value_name("TIME")
                .value_parser(value_parser!(Think))
                .conflicts_with("cycle")
        },
        set: |plan, given| set(&mut plan.load.pace, given.value().map(Pace::Think)),
    },
    Flag {
        name: "cycle",
        help: "Send the next request of a connection this long after the last one; at once if the \
               answer came later",
        heading: LOOP,
        on: ALL,
        arg: |arg| seldom(time(arg)),
        set: |plan, given| set(&mut plan.load.pace, given.value().map(Pace::Cycle)),
    },
    Flag {
        name: "session",
        help: "Sessions of N requests, --think between them, arrive at the rate",
        heading: LOOP,
        on: ALL,
        arg: |arg| arg.value_name("N").value_parser(value_parser!(u64)),
        set: |plan, given| {
            plan.load.session = given.value();
            Ok(())
        },
    },
    // These five are read by commands/workload.rs.
    Flag {
        name: "plan",
        help: "Ask for what this plan says: sessions, templates, checks (docs/reference/plans.md)",
        heading: WORKLOAD,
        on: ALL,
        arg: |arg| {
            arg.value_name("FILE.toml")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["from-log", "method", "data"])
        },
        set: nothing,
    },
    Flag {
        name: "from-log",
        help: "Ask as the visitors in this access log did (common or combined; .gz)",
        heading: WORKLOAD,
        on: ALL,
        arg: |arg| {
            arg.value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["method", "data"])
        },
        set: nothing,
    },
    Flag {
        name: "learn-only",
        help: "Only say what --from-log has to teach: classes, popularity, arrivals",
        heading: WORKLOAD,
        on: LOAD,
        arg: |arg| {
            seldom(switch(arg))
                .requires("from-log")
                .conflicts_with_all(MEASURING)
        },
        set: nothing,
    },
    Flag {
        name: "replay",
        help: "Send the log's own GETs and HEADs at its own times",
        heading: WORKLOAD,
        on: LOAD,
        arg: |arg| {
            switch(arg)
                .requires("from-log")
                .conflicts_with_all(["rate", "arrivals", "session"])
        },
        set: nothing,
    },
    Flag {
        name: "replay-unsafe",
        help: "Replay other methods too, without a body: they may change data",
        heading: WORKLOAD,
        on: LOAD,
        arg: |arg| seldom(switch(arg)).requires("replay"),
        set: nothing,
    },
    Flag {
        name: "pid",
        help: "The server's process, with its children; else who listens on the URL's port",
        heading: BESIDE,
        on: PROBING,
        arg: |arg| {
            arg.value_name("PID")
                .value_parser(value_parser!(i32))
                .action(ArgAction::Append)
                .conflicts_with("no-probe")
        },
        set: |plan, given| {
            if let Some(probe) = &mut plan.conditions.probe {
                probe.pids = given.values();
            }
            Ok(())
        },
    },
    Flag {
        name: "port",
        help: "The server's processes, by a port that they listen on",
        heading: BESIDE,
        on: PROBING,
        arg: |arg| {
            arg.value_name("PORT")
                .value_parser(value_parser!(u16))
                .action(ArgAction::Append)
                .conflicts_with("no-probe")
        },
        set: |plan, given| {
            if let Some(probe) = &mut plan.conditions.probe {
                probe.ports = given.values();
            }
            Ok(())
        },
    },
    Flag {
        name: "no-probe",
        help: "Sample nothing beside the run",
        heading: BESIDE,
        on: PROBING,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| {
            if given.is_on() {
                plan.conditions.probe = None;
            }
            Ok(())
        },
    },
    Flag {
        name: "probe-interval",
        help: "Time between two samples of the host, from 100ms to 1s",
        heading: BESIDE,
        on: PROBING,
        arg: |arg| seldom(time(arg)).default_value("250ms"),
        set: |plan, given| match &mut plan.conditions.probe {
            Some(probe) => set(&mut probe.interval, given.value()),
            None => Ok(()),
        },
    },
    Flag {
        name: "no-perf",
        help: "Do not count instructions, cycles and misses in the server's threads",
        heading: BESIDE,
        on: PROBING,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| {
            if let Some(probe) = &mut plan.conditions.probe {
                probe.perf = !given.is_on();
            }
            Ok(())
        },
    },
    // These two are read by commands/calibration.rs.
    Flag {
        name: "calibration",
        help: "How long to measure the client itself first, against a null server; 1s for runs of \
               2s or more",
        heading: CLIENT,
        on: ALL,
        arg: |arg| seldom(time(arg)).conflicts_with("no-calibration"),
        set: nothing,
    },
    Flag {
        name: "no-calibration",
        help: "Do not measure the client itself first",
        heading: CLIENT,
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: nothing,
    },
];

/// A flag without a value.
fn switch(arg: Arg) -> Arg {
    arg.action(ArgAction::SetTrue)
}

/// A flag whose value is a length of time.
fn time(arg: Arg) -> Arg {
    arg.value_name("TIME").value_parser(values::duration)
}

/// A flag that `-h` leaves out.
fn seldom(arg: Arg) -> Arg {
    arg.hide_short_help(true)
}

/// Sets one field if the flag has a value.
fn set<T>(field: &mut T, value: Option<T>) -> CommandResult {
    if let Some(value) = value {
        *field = value;
    }
    Ok(())
}

/// For a flag that sets nothing in the plan.
fn nothing(_: &mut Plan, _: &Given<'_>) -> CommandResult {
    Ok(())
}

/// The body, or the content of the file that it names. A body without a method is sent by POST.
fn set_body(plan: &mut Plan, given: &Given<'_>, body: String) -> CommandResult {
    let has_method = given.is_with("method");
    if !has_method && is_time(&body) {
        note(format_args!(
            "note: -d sends {body:?} as the body of a POST; how long to measure is said by --duration"
        ));
    }
    if !has_method {
        plan.request.method = "POST".to_owned();
    }
    plan.request.body = match body.strip_prefix('@') {
        Some(path) => {
            fs::read(path).map_err(|error| Failure::new(format!("cannot read {path}: {error}")))?
        }
        None => body.into_bytes(),
    };
    Ok(())
}

/// Whether a body looks like a time: to other load generators `-d` is the duration.
fn is_time(body: &str) -> bool {
    let unit = body.trim_start_matches(|digit: char| digit.is_ascii_digit());
    unit.len() < body.len() && ["", "ms", "s", "m", "min", "h"].contains(&unit)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a field is written as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{Args as _, Command, FromArgMatches as _};

    use super::super::{PlanFlags, SWEEP};
    use super::*;

    fn plan(arguments: &[&str]) -> Plan {
        let command = PlanFlags::<SWEEP>::augment_args(Command::new("sweep"));
        let words = std::iter::once("sweep").chain(arguments.iter().copied());
        let matches = command.try_get_matches_from(words).unwrap();
        let flags = PlanFlags::<SWEEP>::from_arg_matches(&matches).unwrap();
        flags.plan("http://h/").ok().unwrap()
    }

    #[test]
    fn a_field_has_a_name_and_a_value() {
        assert_eq!(header("A:  b: c "), Ok(("A".into(), "b: c".into())));
        assert!(header("A").is_err());
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
