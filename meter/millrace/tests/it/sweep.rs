//! `millrace sweep` against a server of one's own.

use std::fs;

use crate::support::{fail, json, new_site, run, serve, text, was_held_up};

#[test]
fn a_sweep_over_connections_is_rows_and_files() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let output = run(
        site.path(),
        &[
            "sweep",
            &url,
            "-c",
            "1..3",
            "--down",
            "--duration",
            "150ms",
            "--warmup",
            "20ms",
            "--objective",
            "50% < 4s",
            "--json",
            "sweep.json",
            "--csv",
            "sweep.csv",
            "--report",
            "sweep.html",
        ],
    );
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for expected in [
        "connections",
        "Maximum throughput",
        "No Universal Scalability Law: the sweep has 3 levels",
        "Objective 50% < 4s: met up to 3 connections",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let sweep = json(&site.path().join("sweep.json"));
    let steps = sweep["steps"].as_array().unwrap();
    let levels: Vec<f64> = steps
        .iter()
        .map(|step| step["level"].as_f64().unwrap())
        .collect();
    assert_eq!(levels, [1.0, 2.0, 3.0, 2.0, 1.0]);
    assert_eq!(steps[3]["direction"], "down");
    assert_eq!(steps[2]["run"]["connections"]["asked"], 3);
    assert_eq!(
        (&sweep["by"], &sweep["planned"]),
        (&"connections".into(), &5.into())
    );
    assert_eq!(sweep["objective"]["highest"], 3.0);
    assert!(sweep["hysteresis"]["down"].as_f64().unwrap() > 0.0);
    assert!(sweep["usl"].is_null());
    let csv = fs::read_to_string(site.path().join("sweep.csv")).unwrap();
    let columns = |line: &str| line.split(',').count();
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.lines().all(|line| columns(line) == 20), "{csv}");
    assert!(
        csv.lines().nth(4).unwrap().starts_with("2,down,1,true,"),
        "{csv}"
    );
    let html = fs::read_to_string(site.path().join("sweep.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("Throughput"));
}

#[test]
fn a_sweep_over_rates_is_an_open_loop_and_an_objective_can_be_missed() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let output = run(
        site.path(),
        &[
            "sweep",
            &url,
            "--rates",
            "100,200",
            "-c",
            "4",
            "--arrivals",
            "poisson",
            "--duration",
            "300ms",
            "--warmup",
            "20ms",
            "--objective",
            "50% < 1us",
            "--no-probe",
            "--csv",
            "-",
            "--json",
            "it.json",
        ],
    );
    let csv = text(&output.stdout);
    let found = json(&site.path().join("it.json"));
    assert!(
        output.status.code() == Some(3) || was_held_up(&output, &found),
        "{csv}{}",
        text(&output.stderr)
    );
    assert!(
        csv.starts_with("level,direction,") && csv.lines().count() == 3,
        "{csv}"
    );
    assert!(text(&output.stderr).contains("met at no level"));
    let offered = csv.lines().nth(1).unwrap().split(',').nth(5).unwrap();
    assert!(offered.parse::<f64>().unwrap() > 0.0, "{csv}");
}

#[test]
fn mistakes_are_named() {
    let here = tempfile::tempdir().unwrap();
    let check = |args: &[&str], status: i32, word: &str| {
        let (code, message) = fail(
            here.path(),
            &[&["sweep", "http://127.0.0.1:1/"], args].concat(),
        );
        assert!(code == status && message.contains(word), "{code} {message}");
    };
    check(&[], 2, "--rates");
    check(&["--rates", "10..1"], 2, "ends before it begins");
    check(&["-c", "1,2", "--arrivals", "poisson"], 2, "--rates");
    check(&["-c", "1,2", "--objective", "fast"], 2, "99% < 50ms");
    check(&["-c", "1.5"], 1, "whole number");
    check(&["--rates", "5", "-c", "1..3"], 1, "one number");
    check(
        &["-c", "1", "--json", "-", "--csv", "-"],
        1,
        "standard output",
    );
    check(&["-c", "1", "--duration", "20ms", "--warmup", "0s"], 1, "");
}
