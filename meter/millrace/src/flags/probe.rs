//! What is sampled beside a run.

use clap::{ArgAction, value_parser};

use super::kinds::{seldom, set, switch, time};
use super::{Flag, PROBING};

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "pid",
        help: "The server's process, with its children; else who listens on the URL's port",
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
        on: PROBING,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| {
            if let Some(probe) = &mut plan.conditions.probe {
                probe.perf = !given.is_on();
            }
            Ok(())
        },
    },
];
