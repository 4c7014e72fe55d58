//! `millrace compare` against servers of one's own.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{fail, millrace, new_site, run, run_until, serve, text};

#[test]
fn a_server_compared_with_itself_has_an_answer_with_its_noise_floor() {
    let site = new_site();
    let server = serve(site.path());
    let (old, new) = (
        format!("old=http://{}/", server.address()),
        format!("new=http://{}/", server.address()),
    );
    let pid = server.pid().to_string();
    let output = run_until(
        site.path(),
        &[
            "compare",
            &old,
            &new,
            "--blocks",
            "3",
            "--duration",
            "200ms",
            "--warmup",
            "5ms",
            "--pid-a",
            &pid,
            "--pid-b",
            &pid,
            "--json",
            "it.json",
            "--report",
            "it.html",
        ],
        |output| output.status.success(),
    );
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("A/A: old against itself") && said.contains("server CPU per request"),
        "{said}"
    );
    let found = crate::support::json(&site.path().join("it.json"));
    assert_eq!(found["metric"], "cpu");
    assert_eq!(found["complete"], true);
    // Three blocks are fewer than a comparison should have.
    assert_eq!(found["verdict"], "SUSPECT");
    assert!(found["limit"].is_null() && found["within_limit"].is_null());
    assert_eq!(found["baseline"].as_array().unwrap().len(), 3);
    assert_eq!(found["blocks"][0]["trials"][1]["side"], "B");
    for effect in found["effects"].as_array().unwrap() {
        if effect["metric"] == "p99" {
            continue;
        }
        let ratio = &effect["ratio"];
        let bound = |name: &str| ratio[name].as_f64().unwrap();
        assert!(
            bound("low") <= bound("ratio") && bound("ratio") <= bound("high"),
            "{effect}"
        );
        assert!(effect["baseline"]["blocks"] == 3 && effect["detectable"].is_f64());
    }
    assert!(
        found["answer"].is_string()
            && found["command"]
                .as_str()
                .unwrap()
                .starts_with("millrace compare")
    );
    let html = fs::read_to_string(site.path().join("it.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("old against itself"));
}

#[test]
fn a_limit_that_does_not_hold_is_exit_status_three() {
    let site = new_site();
    let server = serve(site.path());
    let url = |name: &str| format!("{name}=http://{}/", server.address());
    // No noise makes a server a thousand times cheaper or more expensive than itself.
    for (limit, status) in [("0.001", 3), ("1000", 0)] {
        let output = run_until(
            site.path(),
            &[
                "compare",
                &url("A"),
                &url("B"),
                "--blocks",
                "3",
                "--duration",
                "100ms",
                "--warmup",
                "0s",
                "--limit",
                limit,
            ],
            |output| output.status.code() == Some(status),
        );
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            text(&output.stdout)
        );
        assert!(
            text(&output.stdout).contains("the limit "),
            "{}",
            text(&output.stdout)
        );
    }
}

#[test]
fn a_server_without_good_answers_is_invalid() {
    let site = new_site();
    let server = serve(site.path());
    let url = |name: &str| format!("{name}=http://{}/missing", server.address());
    let output = run(
        site.path(),
        &[
            "compare",
            &url("A"),
            &url("B"),
            "--duration",
            "20ms",
            "--warmup",
            "0s",
            "--json",
            "-",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["verdict"], "INVALID");
    assert_eq!(found["baseline"][0]["trials"].as_array().unwrap().len(), 1);
    assert!(
        text(&output.stderr).contains("not decided"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_comparison_that_is_stopped_says_what_there_is() {
    // A server that takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let url = |name: &str| format!("{name}=http://{address}/");
    let mut child = millrace(&[
        "compare",
        &url("A"),
        &url("B"),
        "--duration",
        "10min",
        "--warmup",
        "0s",
        "--json",
        "-",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // A connection shows that the command listens for signals.
    let connection = silent.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut json = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut json)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(connection);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["complete"], false);
    assert!(
        found["reasons"][0].as_str().unwrap().contains("incomplete"),
        "{found}"
    );
}

#[test]
fn bad_arguments_are_named() {
    let here = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = |name: &str| format!("{name}=http://{}/", server.local_addr().unwrap());
    let (a, b) = (url("A"), url("B"));
    let (a, b) = (a.as_str(), b.as_str());
    for (args, status, word) in [
        (vec!["compare", a], 2, "required"),
        (vec!["compare", a, "http://127.0.0.1:1/?x=1"], 2, "NAME=URL"),
        (vec!["compare", a, b, "--pid-a", "1"], 2, "--pid-b"),
        (vec!["compare", a, b, "--blocks", "2"], 1, "blocks"),
        (vec!["compare", a, b, "--limit", "0"], 1, "limit"),
        (vec!["compare", a, b, "--metric", "cpu"], 1, "processes"),
        (
            vec!["compare", a, b, "--metric", "throughput", "--rate", "10"],
            1,
            "open loop",
        ),
        (vec!["compare", a, b, "--rate", "0"], 1, "rate"),
        (vec!["compare", a, "B=ftp://127.0.0.1/"], 1, "ftp"),
        (
            vec![
                "compare",
                a,
                b,
                "--warmup",
                "0s",
                "--pid-a",
                "4294967295",
                "--pid-b",
                "1",
            ],
            1,
            "process 4294967295",
        ),
    ] {
        let (code, said) = fail(here.path(), &args);
        assert_eq!(code, status, "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
}
