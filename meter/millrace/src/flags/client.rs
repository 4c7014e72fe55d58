//! Threads and cores of the client, and its calibration.

use clap::{ArgAction, value_parser};

use super::kinds::{nothing, put, seldom, set, switch, time};
use super::{ALL, Flag};
use crate::commands::values::whole;

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "threads",
        help: "Client threads; 0 is one for each core",
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
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| put(&mut plan.load.spin, given.is_on()),
    },
    // These two are read by commands/calibration.rs.
    Flag {
        name: "calibration",
        help: "How long to measure the client itself first, against a null server; 1s for runs of \
               2s or more",
        on: ALL,
        arg: |arg| seldom(time(arg)).conflicts_with("no-calibration"),
        set: nothing,
    },
    Flag {
        name: "no-calibration",
        help: "Do not measure the client itself first",
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: nothing,
    },
];
