//! How the server is reached.

use std::path::PathBuf;

use clap::{ArgAction, value_parser};
use millrace_client::{Bandwidth, Trust};

use super::kinds::{put, seldom, set, switch};
use super::{ALL, Flag};

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "cacert",
        help: "Root certificates (PEM) for https://, instead of the system's",
        on: ALL,
        arg: |arg| arg.value_name("FILE").value_parser(value_parser!(PathBuf)),
        set: |plan, given| set(&mut plan.target.trust, given.value().map(Trust::File)),
    },
    Flag {
        name: "insecure",
        help: "Accept every certificate",
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
        on: ALL,
        arg: |arg| switch(seldom(arg)),
        set: |plan, given| put(&mut plan.target.full_handshakes, given.is_on()),
    },
    Flag {
        name: "unix-socket",
        help: "Connect through this Unix socket",
        on: ALL,
        arg: |arg| {
            arg.value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("connect-to")
        },
        set: |plan, given| put(&mut plan.target.unix_socket, given.value()),
    },
    Flag {
        name: "connect-to",
        help: "Connect there, to several in turn; Host and TLS keep the URL's host",
        on: ALL,
        arg: |arg| {
            arg.value_name("HOST:PORT")
                .value_delimiter(',')
                .action(ArgAction::Append)
        },
        set: |plan, given| put(&mut plan.target.connect_to, given.values()),
    },
    Flag {
        name: "round-robin",
        help: "Of a name with several addresses connect to each in turn, not to the first that accepts",
        on: ALL,
        arg: |arg| switch(seldom(arg)).conflicts_with("unix-socket"),
        set: |plan, given| put(&mut plan.target.round_robin, given.is_on()),
    },
    Flag {
        name: "throttle-down",
        help: "Most that each connection receives in a second, such as 50K (bytes) or 400kbit",
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("RATE")
                .value_parser(value_parser!(Bandwidth))
        },
        set: |plan, given| put(&mut plan.target.throttle_down, given.value()),
    },
    Flag {
        name: "throttle-up",
        help: "Most that each connection sends in a second",
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("RATE")
                .value_parser(value_parser!(Bandwidth))
        },
        set: |plan, given| put(&mut plan.target.throttle_up, given.value()),
    },
];
