//! What is asked for, and what counts as a good answer.

use std::fs;

use clap::{ArgAction, value_parser};
use millrace_client::Plan;

use super::kinds::{put, seldom, set, switch, time};
use super::{ALL, Flag, Given};
use crate::commands::values::status;
use crate::failure::{CommandResult, Failure};
use crate::output::note;

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "header",
        help: "A request field, as 'Name: value'; may be repeated",
        on: ALL,
        arg: |arg| {
            arg.short('H')
                .value_name("FIELD")
                .value_parser(header)
                .action(ArgAction::Append)
        },
        set: |plan, given| put(&mut plan.request.headers, given.values()),
    },
    Flag {
        name: "method",
        help: "The request method; POST if there is a body, else GET",
        on: ALL,
        arg: |arg| arg.short('m').value_name("METHOD"),
        set: |plan, given| set(&mut plan.request.method, given.value()),
    },
    Flag {
        name: "data",
        help: "The request body, or @FILE",
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
        on: ALL,
        arg: |arg| {
            arg.value_name("STATUS")
                .value_delimiter(',')
                .value_parser(status)
                .action(ArgAction::Append)
        },
        set: |plan, given| put(&mut plan.request.expect, given.values()),
    },
    Flag {
        name: "timeout",
        help: "Longest wait for a connection, and for an answer",
        on: ALL,
        arg: |arg| time(arg).default_value("5s"),
        set: |plan, given| set(&mut plan.request.timeout, given.value()),
    },
    Flag {
        name: "no-keep-alive",
        help: "A new connection for each request",
        on: ALL,
        arg: |arg| seldom(switch(arg)),
        set: |plan, given| put(&mut plan.request.keep_alive, !given.is_on()),
    },
    Flag {
        name: "per-connection",
        help: "Requests that a connection serves before a new one takes its place",
        on: ALL,
        arg: |arg| {
            seldom(arg)
                .value_name("N")
                .value_parser(value_parser!(u64))
                .conflicts_with("no-keep-alive")
        },
        set: |plan, given| put(&mut plan.request.per_connection, given.value()),
    },
    Flag {
        name: "http2",
        help: "HTTP/2: over TLS by ALPN, in clear text with prior knowledge",
        on: ALL,
        arg: switch,
        set: |plan, given| put(&mut plan.target.http2, given.is_on()),
    },
    Flag {
        name: "depth",
        help: "Requests in flight on one connection (pipelining); with --http2 streams at a time",
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
        name: "expect-body",
        help: "A regular expression that the body of a good answer matches",
        on: ALL,
        arg: |arg| arg.value_name("REGEX"),
        set: |plan, given| put(&mut plan.request.expect_body, given.value()),
    },
    Flag {
        name: "expect-sha256",
        help: "The SHA-256 digest of the body of a good answer",
        on: ALL,
        arg: |arg| seldom(arg).value_name("HEX"),
        set: |plan, given| put(&mut plan.request.expect_sha256, given.value()),
    },
];

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

/// True if a body looks like a time: to other load generators `-d` is the duration.
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
    use super::*;

    #[test]
    fn a_field_has_a_name_and_a_value() {
        assert_eq!(header("A:  b: c "), Ok(("A".into(), "b: c".into())));
        assert!(header("A").is_err());
    }
}
