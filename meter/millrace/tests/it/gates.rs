//! What is asked of a measurement is obeyed, or refused by its name before anything is measured.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    Server, fail, json, millrace, new_site, run, run_until, serve, text, was_held_up, write,
};

/// An experiment with one server, which leaves a mark when it is started.
fn experiment() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = "title = 'One'\nquestion = 'Is it quiet?'\nbaseline = 'one'\nrepeats = 1\n[workload]\npath = '/'\nconnections = 1\n\
                warmup = '20ms'\nduration = '50ms'\n[[server]]\nname = 'one'\n\
                start = 'touch {here}/started; exec {millrace} null --listen 127.0.0.1:{port}'\n";
    write(dir.path(), "it.toml", text);
    dir
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_measured() {
    let dir = experiment();
    write(dir.path(), "a-file", "");
    let lab = ["lab", "run", "it.toml"];
    let probe = ["load", "--probe-only", "--duration", "1h"];
    for (result, word) in [
        (["--json", "nowhere/it.json"], "no folder nowhere"),
        (["--report", "nowhere/it.html"], "no folder nowhere"),
        (["--svg", "a-file"], "it is no folder"),
    ] {
        for command in [&lab[..], &probe[..]] {
            let (status, said) = fail(dir.path(), &[command, &result[..]].concat());
            assert_eq!(status, 1, "{said}");
            assert!(said.contains(word), "{said}");
        }
    }
    assert!(!dir.path().join("started").exists());
}

#[test]
fn an_experiment_shows_how_far_it_is_unless_it_is_to_be_quiet() {
    let dir = experiment();
    let progress = |more: &[&str]| {
        let output = run(dir.path(), &[&["lab", "run", "it.toml"], more].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(text(&output.stdout).contains("Answers"));
        said
    };
    assert!(progress(&[]).contains("repeat 1 of 1"));
    assert!(progress(&["--plain"]).contains("repeat 1 of 1"));
    assert_eq!(progress(&["--quiet"]), "");
}

fn diagnosis<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "load",
        url,
        "--diagnose",
        "--duration",
        "400ms",
        "--quiet",
        "--no-perf",
    ];
    [&args, more].concat()
}

fn diagnose(dir: &Path, url: &str, more: &[&str]) -> (Option<i32>, String) {
    let output = run(dir, &diagnosis(url, more));
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_diagnosis_is_held_against_an_objective_and_the_client_is_measured_before() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let (code, said) = diagnose(site.path(), &url, &["-c", "4", "--objective", "50% < 60s"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("50% < 60s with 4 in flight: reached"),
        "{said}"
    );
    let (code, said) = diagnose(site.path(), &url, &["--objective", "99% < 1us"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("with 8 in flight: missed"), "{said}");
    let more = ["--calibration", "100ms", "--json", "it.json"];
    let file = site.path().join("it.json");
    // A busy machine may leave the client no time at all for its calibration.
    let is_calibrated = || {
        let found = json(&file);
        let levels = found["levels"].as_array().unwrap();
        let ceiling = |level: &Value| level["run"]["calibration"]["ceiling_per_s"].as_f64();
        levels.iter().all(|level| ceiling(level) > Some(0.0))
    };
    let args = diagnosis(&url, &more);
    let output = run_until(site.path(), &args, |_| is_calibrated());
    let said = text(&output.stderr);
    assert!(output.status.success() && is_calibrated(), "{said}");
}

#[test]
fn what_samples_alone_and_a_log_alone_have_no_use_for_is_refused_by_name() {
    let here = tempfile::tempdir().unwrap();
    let probe = ["load", "--probe-only", "--duration", "50ms"];
    let learn = ["load", "--from-log", "access.log", "--learn-only"];
    for (command, more) in [
        (&probe[..], &["--objective", "99% < 5ms"][..]),
        (&probe, &["--rate", "5"]),
        (&probe, &["--connections", "8"]),
        (&probe, &["--plan", "p.toml"]),
        (&probe, &["--pg", "postgres://me@127.0.0.1/db"]),
        (&probe, &["--warmup", "1s"]),
        (&probe, &["--think", "1s"]),
        (&learn, &["--json", "it.json"]),
        (&learn, &["--report", "it.html"]),
        (&learn, &["--objective", "99% < 5ms"]),
    ] {
        let (status, said) = fail(here.path(), &[command, more].concat());
        assert_eq!(status, 2, "{said}");
        assert!(said.contains(more[0]), "{said}");
        assert!(said.contains("cannot be used with"), "{said}");
    }
}

/// A server that answers at most 100 requests a second on a connection.
fn slow() -> Server {
    Server::spawn(millrace(&["null", "--delay", "10ms"]))
}

#[test]
fn a_backlog_that_grows_fails_an_objective_that_the_times_would_meet() {
    let server = slow();
    let url = format!("http://{}/", server.address());
    let here = tempfile::tempdir().unwrap();
    let gate = [
        "--duration",
        "1s",
        "--objective",
        "1% < 30s",
        "--no-calibration",
    ];
    let load = ["load", &url, "--rate", "400", "--json", "it.json"];
    let output = run(here.path(), &[&load, &gate[..]].concat());
    let found = json(&here.path().join("it.json"));
    if was_held_up(&output, &found) {
        return;
    }
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("missed, for the backlog grew from"), "{said}");
    let grown = |end: &str| found["backlog"][end].as_f64().unwrap();
    assert!(grown("to") > grown("from") + 50.0, "{}", found["backlog"]);
    assert!(found["reasons"].to_string().contains("the backlog grew"));
    let sweep = [
        "sweep", &url, "--rates", "20,400", "-c", "1", "--warmup", "0s", "--json", "it.json",
    ];
    let output = run(here.path(), &[&sweep, &gate[..]].concat());
    if was_held_up(&output, &json(&here.path().join("it.json"))) {
        return;
    }
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("At 400 requests a second the backlog grew from"),
        "{said}"
    );
    assert!(said.contains("met up to 20"), "{said}");
}

#[test]
fn a_search_for_the_capacity_knows_a_backlog_by_the_same_sign() {
    let server = slow();
    let url = format!("http://{}/", server.address());
    let here = tempfile::tempdir().unwrap();
    let args = [
        "capacity",
        &url,
        "--objective",
        "1% < 30s",
        "-c",
        "1",
        "--from",
        "400",
        "--arrivals",
        "constant",
        "--trial",
        "1s",
        "--warmup",
        "0s",
        "--json",
        "it.json",
    ];
    let output = run(here.path(), &args);
    let said = text(&output.stdout);
    let found = json(&here.path().join("it.json"));
    // On a busy machine the search may end with `client_limit`: that is no backlog of the server.
    if found["found"] != "client_limit" {
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("no: a backlog grew"), "{said}");
    }
}
