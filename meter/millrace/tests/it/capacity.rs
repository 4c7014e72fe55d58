//! `millrace capacity` against servers of one's own.

use std::fs;
use std::net::TcpListener;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Server, fail, millrace, new_site, run, serve, text};

/// Trials that are too short to say much, and quick.
const TINY: [&str; 8] = [
    "--trial",
    "50ms",
    "--warmup",
    "10ms",
    "--connections",
    "2",
    "--threads",
    "1",
];

fn search(server: &Server, dir: &std::path::Path, more: &[&str]) -> Output {
    let url = format!("http://{}/", server.address());
    let mut args = vec!["capacity", &url, "--json", "it.json"];
    args.extend(TINY);
    args.extend(more);
    run(dir, &args)
}

fn json(dir: &std::path::Path) -> Value {
    crate::support::json(&dir.join("it.json"))
}

#[test]
fn a_limit_that_was_not_reached_is_said_and_written() {
    let site = new_site();
    let server = serve(site.path());
    // Every request has its response within the timeout at these rates, even on a slow machine.
    let more = [
        "--objective",
        "1% < 5s",
        "--from",
        "50",
        "--to",
        "200",
        "--at-least",
        "100",
        "--report",
        "it.html",
    ];
    let output = search(&server, site.path(), &more);
    let said = text(&output.stdout) + &text(&output.stderr);
    let found = json(site.path());
    // On a busy machine the search may end with `client_limit`: that is no backlog of the server.
    if found["found"] != "client_limit" {
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(found["found"], "above_to", "{said}");
        assert!(said.contains("was not reached"), "{said}");
        assert_eq!(
            (&found["low"], &found["is_at_least"]),
            (&200.0.into(), &true.into())
        );
        assert!(found["rate"].is_null() && found["curve"].is_null());
        // 50, 100 and three times 200; one in which the client was late is made again.
        assert!(found["trials"].as_array().unwrap().len() >= 5);
    }
    assert_eq!(found["objective"]["share"], 0.01);
    assert_eq!(found["trials"][0]["stage"], "bracket");
    assert_eq!(found["trials"][0]["rate"], 50.0);
    assert!(
        found["command"]
            .as_str()
            .unwrap()
            .starts_with("millrace capacity")
    );
    let html = fs::read_to_string(site.path().join("it.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("The trials"));
}

#[test]
fn an_objective_that_is_out_of_reach_is_exit_status_three() {
    let site = new_site();
    let server = serve(site.path());
    // No answer comes within a tenth of a microsecond.
    let more = ["--objective", "99% < 0.1us", "--from", "50"];
    let output = search(&server, site.path(), &more);
    let found = json(site.path());
    if found["found"] != "client_limit" {
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("does not meet 99% < 0.1us even at 50"));
        assert_eq!(found["found"], "below_from");
        assert!(found["low"].is_null());
        assert_eq!(found["trials"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn how_long_it_takes_is_said_first_and_quiet_says_nothing() {
    let site = new_site();
    let server = serve(site.path());
    let more = ["--objective", "1% < 5s", "--from", "50", "--to", "100"];
    let said = text(&search(&server, site.path(), &more).stderr);
    assert!(
        said.starts_with("36 to 79 trials of 60ms: 3 s to 5 s, and for each trial up to 5s more"),
        "{said}"
    );
    assert!(said.contains("% in time, "), "{said}");
    let quiet = search(&server, site.path(), &[&more[..], &["--quiet"]].concat());
    assert_eq!(text(&quiet.stderr), "");
    assert!(text(&quiet.stdout).contains("The trials"));
}

#[test]
fn what_was_found_is_written_after_any_signal_and_its_repetition() {
    for signals in [
        &[Signal::INT][..],
        &[Signal::TERM],
        // As `timeout` does: the process, and then its group.
        &[Signal::TERM, Signal::TERM],
        &[Signal::INT, Signal::TERM],
    ] {
        stop_a_search(signals);
    }
}

fn stop_a_search(signals: &[Signal]) {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let child = millrace(&["capacity", &url, "--objective", "1% < 5s", "--json", "-"])
        .args(["--trial", "1min", "--warmup", "0s", "-c", "1"])
        .current_dir(site.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A connection shows that the first trial runs. Before that, the signal would end the process
    // at once.
    while !is_connected(child.id(), server.address().port()) {
        std::thread::yield_now();
    }
    for signal in signals {
        kill_process(Pid::from_child(&child), *signal).unwrap();
        while has_pending_signal(child.id()) {
            std::thread::yield_now();
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["found"], &found["verdict"]),
        (&"stopped".into(), &"SUSPECT".into())
    );
}

/// True if a signal that was sent to the process waits to be taken.
fn has_pending_signal(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let pending = lines.find_map(|line| line.strip_prefix("ShdPnd:"));
    pending.is_some_and(|signals| signals.trim().bytes().any(|digit| digit != b'0'))
}

/// True if the process `pid` has a connection to `port`, by the tables of the kernel.
fn is_connected(pid: u32, port: u16) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let peer = format!(":{port:04X} 01");
    table.lines().any(|line| line.contains(&peer))
}

#[test]
fn bad_arguments_are_told() {
    let here = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    let with = |more: &[&'static str]| {
        let mut args = vec!["capacity", url.as_str()];
        args.extend(more);
        args
    };
    let objective = ["--objective", "99% < 50ms"];
    for (args, word) in [
        (with(&[]), "--objective"),
        (with(&["--objective", "fast"]), "99% < 50ms"),
        (
            with(&[&objective[..], &["--from", "0"]].concat()),
            "lowest rate",
        ),
        (
            with(&[&objective[..], &["--from", "9", "--to", "9"]].concat()),
            "lowest rate",
        ),
        (
            with(&[&objective[..], &["--pid", "2147483647"]].concat()),
            "2147483647",
        ),
        (
            with(&[&objective[..], &["--precision", "0%"]].concat()),
            "percentage",
        ),
        (
            with(&[&objective[..], &["--at-least", "-1"]].concat()),
            "-1",
        ),
        (
            with(&[&objective[..], &["--trial", "0s"]].concat()),
            "duration",
        ),
    ] {
        let (status, message) = fail(here.path(), &args);
        assert!(
            status > 0 && message.contains(word),
            "{args:?}: {status} {message}"
        );
    }
}
