//! What single runs have, on ladders, searches and comparisons: plans, pauses, sessions, and on
//! ladders the host probe.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{fail, new_site, run, run_until, serve, text, write};

/// A session of two requests.
const PLAN: &str = "[[class]]\nname = 'front'\n[[class.step]]\ntarget = '/'\ncheck = { contains = '<html' }\n\
                    [[class.step]]\ntarget = '/notes/1'\n";

fn json(dir: &Path) -> Value {
    crate::support::json(&dir.join("it.json"))
}

#[test]
fn a_sweep_asks_for_a_plan_and_is_probed() {
    let site = new_site();
    let server = serve(site.path());
    write(site.path(), "plan.toml", PLAN);
    let pid = server.pid().to_string();
    let url = format!("http://{}/", server.address());
    let output = run(
        site.path(),
        &[
            "sweep",
            &url,
            "--plan",
            "plan.toml",
            "-c",
            "1,4",
            "--duration",
            "450ms",
            "--warmup",
            "10ms",
            "--probe-interval",
            "100ms",
            "--pid",
            &pid,
            "--no-perf",
            "--json",
            "it.json",
            "--report",
            "it.html",
        ],
    );
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(
        said.contains("limited by: ") && said.contains("What a request takes"),
        "{said}"
    );
    let found = json(site.path());
    assert!(found["bottleneck"].is_array() && found["sessions"] == true);
    assert_eq!(found["demands"]["of_saturation"], 1.0);
    for step in found["steps"].as_array().unwrap() {
        let run = &step["run"];
        assert!(run["sessions"]["started"].as_u64().unwrap() > 0);
        let first = &run["probe"]["samples"]["processes"][0];
        assert_eq!(first["pid"].to_string(), pid);
        assert!(run["probe"]["summary"]["server"]["cpu_s"].as_f64().unwrap() > 0.0);
    }
    let page = fs::read_to_string(site.path().join("it.html")).unwrap();
    for part in [
        "What limits the server",
        "CPU idle against connections",
        "CPU time of a request by where it is spent",
        "4 connections",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_sweep_over_rates_of_sessions_may_go_without_a_probe() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let output = run(
        site.path(),
        &[
            "sweep",
            &url,
            "--rates",
            "20,40",
            "--session",
            "2",
            "--think",
            "1ms",
            "--duration",
            "200ms",
            "--warmup",
            "10ms",
            "--no-probe",
            "--json",
            "it.json",
        ],
    );
    // On a machine that is too busy to send in time the runs are INVALID, and made all the same.
    let said = text(&output.stdout);
    assert!(
        said.contains("sessions a second") && !said.contains("limited by"),
        "{said}"
    );
    let found = json(site.path());
    assert_eq!(found["steps"][1]["run"]["offered_rate"], 80.0);
    assert!(found["bottleneck"].is_null() && found["steps"][0]["run"]["probe"].is_null());
}

#[test]
fn a_search_offers_sessions() {
    let site = new_site();
    let server = serve(site.path());
    let plan = format!("url = 'http://{}/'\n{PLAN}", server.address());
    write(site.path(), "plan.toml", &plan);
    let output = run(
        site.path(),
        &[
            "capacity",
            "--plan",
            "plan.toml",
            "--objective",
            "1% < 5s",
            "--from",
            "20",
            "--to",
            "40",
            "--trial",
            "150ms",
            "--warmup",
            "10ms",
            "-c",
            "4",
            "--json",
            "it.json",
        ],
    );
    let said = text(&output.stdout) + &text(&output.stderr);
    let found = json(site.path());
    assert_eq!(found["sessions"], true, "{said}");
    // On a busy machine the search may end with `client_limit`: that is no backlog of the server.
    if found["found"] != "client_limit" {
        assert!(said.contains("sessions/s"), "{said}");
    }
}

#[test]
fn both_servers_are_asked_for_the_same_plan() {
    let site = new_site();
    let servers = [serve(site.path()), serve(site.path())];
    write(site.path(), "plan.toml", PLAN);
    let [a, b] = [("a", &servers[0]), ("b", &servers[1])]
        .map(|(name, server)| format!("{name}=http://{}/no-such-page", server.address()));
    let compare = [
        "compare",
        &a,
        &b,
        "--plan",
        "plan.toml",
        "--blocks",
        "3",
        "--duration",
        "30ms",
        "--warmup",
        "0s",
        "--json",
        "it.json",
    ];
    // The pages of the URLs do not exist: answers are good only if the plan's are asked for. A
    // short trial on a busy machine may have no answer at all.
    let is_asked = |side| {
        let found = json(site.path());
        trials(&found).any(|trial| trial["side"] == side && is_good(trial))
    };
    let output = run_until(site.path(), &compare, |_| is_asked("A") && is_asked("B"));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(is_asked("A") && is_asked("B"), "{said}");
}

/// The trials of a comparison, those between a server and itself included.
fn trials(found: &Value) -> impl Iterator<Item = &Value> {
    [&found["baseline"], &found["blocks"]]
        .into_iter()
        .flat_map(|blocks| blocks.as_array().unwrap())
        .flat_map(|block| block["trials"].as_array().unwrap())
}

fn is_good(trial: &Value) -> bool {
    trial["sample"]["throughput"].as_f64() > Some(0.0)
}

#[test]
fn contradictions_are_refused() {
    let here = tempfile::tempdir().unwrap();
    write(here.path(), "plan.toml", PLAN);
    let url = "http://127.0.0.1:1/";
    let check = |args: &[&str], word: &str| {
        let (code, message) = fail(here.path(), args);
        assert!(
            code != 0 && message.contains(word),
            "{args:?}: {code} {message}"
        );
    };
    let objective = "99% < 5ms";
    check(
        &["sweep", url, "-c", "1,2", "--auto"],
        "say with --duration",
    );
    check(
        &["capacity", url, "--objective", objective, "--auto"],
        "say with --trial",
    );
    check(
        &["compare", "a=http://h/", "b=http://h/", "--auto"],
        "--auto",
    );
    check(
        &[
            "sweep",
            url,
            "--rates",
            "1,2",
            "--from-log",
            "a.log",
            "--replay",
        ],
        "--replay has one rate",
    );
    check(
        &["sweep", url, "--rates", "1,2", "--rates", "3"],
        "multiple times",
    );
    check(&["sweep", url, "--rates", "1,2", "--rate", "3"], "--rates");
    check(
        &["load", url, "--rate", "1", "--rate", "2"],
        "multiple times",
    );
    check(
        &["sweep", url, "-c", "1,2", "--session", "3"],
        "sessions arrive at a rate",
    );
    check(
        &["sweep", url, "--rates", "1,2", "--think", "1ms"],
        "need sessions",
    );
    check(
        &[
            "capacity",
            url,
            "--objective",
            objective,
            "--session",
            "2",
            "--cycle",
            "1s",
        ],
        "not cycles",
    );
    check(
        &["sweep", url, "-c", "1", "--think", "1s", "--cycle", "1s"],
        "cannot be used with",
    );
    check(
        &[
            "sweep",
            url,
            "-c",
            "1",
            "--plan",
            "plan.toml",
            "--method",
            "PUT",
        ],
        "--method",
    );
    check(
        &[
            "sweep",
            url,
            "-c",
            "1",
            "--plan",
            "plan.toml",
            "--think",
            "1s",
        ],
        "own sessions",
    );
    check(
        &["sweep", url, "-c", "1", "--pid", "1", "--no-probe"],
        "--no-probe",
    );
    check(&["sweep", "-c", "1"], "required");
    check(&["sweep", "-c", "1", "--plan", "plan.toml"], "no server");
    check(
        &["load", url, "--plan", "plan.toml", "--urls", "x"],
        "cannot be used with",
    );
}
