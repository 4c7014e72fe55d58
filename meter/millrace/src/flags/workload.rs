//! Plans and access logs. `commands/workload.rs` reads these flags: they set nothing in the plan of
//! a run.
//!
//! Those of `load` alone are here as well, because they belong to `--from-log`.

use std::path::PathBuf;

use clap::value_parser;

use super::kinds::{nothing, seldom, switch};
use super::{ALL, Flag, LOAD};

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

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "plan",
        help: "Ask for what this plan says: sessions, templates, checks (docs/reference/plans.md)",
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
        help: "Ask as the visitors in this access log did (common, combined, JSON)",
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
        on: LOAD,
        arg: |arg| seldom(switch(arg)).requires("replay"),
        set: nothing,
    },
];
