//! Pauses and sessions.

use clap::value_parser;
use millrace_client::{Pace, Think};

use super::kinds::{put, seldom, set, time};
use super::{ALL, Flag};

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "think",
        help: "Pause after each answer: 500ms, exp:500ms (this mean) or uniform:100ms-1s",
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
        on: ALL,
        arg: |arg| seldom(time(arg)),
        set: |plan, given| set(&mut plan.load.pace, given.value().map(Pace::Cycle)),
    },
    Flag {
        name: "session",
        help: "Sessions of N requests, --think between them, arrive at the rate",
        on: ALL,
        arg: |arg| arg.value_name("N").value_parser(value_parser!(u64)),
        set: |plan, given| put(&mut plan.load.session, given.value()),
    },
];
