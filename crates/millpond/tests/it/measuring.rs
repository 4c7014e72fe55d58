//! `millpond load` against a server of one's own.

use std::fs;
use std::net::TcpListener;

use crate::support::{Server, new_site, run, text, write};

#[test]
fn a_run_is_a_table_and_json_and_a_report() {
    let site = new_site();
    let server = Server::start(site.path());
    let url = format!("http://{}/", server.address());
    write(site.path(), "urls", "# two pages\n/\n/notes/1\n");
    let args = [
        "load",
        &url,
        "-c",
        "2",
        "-n",
        "200",
        "--urls",
        "urls",
        "--order",
        "random",
        "--seed",
        "7",
        "-H",
        "X-Test: a b",
        "--json",
        "run.json",
        "--report",
        "run.html",
    ];
    let output = run(site.path(), &args);
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(
        text(&output.stdout).contains("requests"),
        "{}",
        text(&output.stdout)
    );
    let run: serde_json::Value =
        serde_json::from_slice(&fs::read(site.path().join("run.json")).unwrap()).unwrap();
    assert_eq!(run["requests"], 200);
    assert_eq!(run["loop"], "closed");
    assert_eq!(
        run["command"],
        format!(
            "millpond {}",
            args.join(" ").replace("X-Test: a b", "'X-Test: a b'")
        )
    );
    assert!(
        fs::read_to_string(site.path().join("run.html"))
            .unwrap()
            .starts_with("<!doctype html>")
    );
}

#[test]
fn json_on_standard_output_is_nothing_else() {
    let site = new_site();
    let server = Server::start(site.path());
    let url = format!("http://{}/", server.address());
    let output = run(site.path(), &["load", &url, "-n", "50", "--json", "-"]);
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["requests"], 50);
    assert!(run["offered_rate"].is_null());
    assert!(text(&output.stderr).contains("requests"));
}

#[test]
fn a_run_without_answers_is_invalid() {
    let here = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{closed}/");
    let output = run(here.path(), &["load", &url, "-n", "5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("INVALID"),
        "{}",
        text(&output.stdout)
    );
    let output = run(here.path(), &["load", "https://127.0.0.1/", "-n", "5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: "),
        "{}",
        text(&output.stderr)
    );
}
