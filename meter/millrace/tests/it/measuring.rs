//! `millrace load` against a server of one's own.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{fail, new_site, run, serve, text, write};

#[test]
fn a_run_is_a_table_and_json_and_a_report() {
    let site = new_site();
    let server = serve(site.path());
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
    let run = crate::support::json(&site.path().join("run.json"));
    assert_eq!(run["requests"], 200);
    assert_eq!(run["loop"], "closed");
    assert_eq!(
        run["command"],
        format!(
            "millrace {}",
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
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let output = run(site.path(), &["load", &url, "-n", "50", "--json", "-"]);
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["requests"], 50);
    assert!(run["offered_rate"].is_null());
    assert!(text(&output.stderr).contains("requests"));
}

/// A server that stands still for two of ten seconds. A closed loop would have counted sixteen slow
/// requests; an open one counts the two thousand visitors who waited.
#[test]
fn an_open_loop_sees_a_server_that_stands_still() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let args = [
        "load",
        &url,
        "-c",
        "16",
        "--rate",
        "1000",
        "--duration",
        "10s",
        "--json",
        "run.json",
    ];
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| run(site.path(), &args));
        // The experiment is these times: two seconds of standing still in the middle of ten.
        std::thread::sleep(Duration::from_secs(4));
        server.signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(2));
        server.signal(Signal::CONT);
        measuring.join().unwrap();
    });
    let run = crate::support::json(&site.path().join("run.json"));
    assert_eq!(run["loop"], "open");
    // INVALID if a busy machine held up the generator too.
    assert_ne!(run["verdict"], "VALID");
    let reasons = run["reasons"].to_string();
    assert!(reasons.contains("not stationary"), "{reasons}");
    assert_eq!(run["accounting"]["issued"], 10_000);
    let p99 = |times: &str| run["latency_us"][times]["p99"].as_f64().unwrap();
    // A fifth of the requests were due in these two seconds: the 99th percentile is at nineteen
    // twentieths of them.
    let (response, service) = (p99("response"), p99("service"));
    assert!(response > 1.7e6, "{response}");
    assert!(service < response / 10.0, "{service} {response}");
}

#[test]
fn an_objective_decides_the_exit_status() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let status = |objective: &str, requests: &str| {
        let args = ["load", &url, "-n", requests, "--objective", objective];
        let output = run(site.path(), &args);
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = status("50% < 60s", "100");
    assert!(code == Some(0) && said.contains("reached"), "{said}");
    let (code, said) = status("99% < 1us", "100");
    assert!(code == Some(3) && said.contains("missed"), "{said}");
    let (code, said) = status("half of them soon", "100");
    assert!(code == Some(2) && said.contains("99% < 50ms"), "{said}");
}

#[test]
fn a_rate_goes_with_its_options() {
    let here = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:1/";
    for (args, word) in [
        (vec!["load", url, "--rate", "0"], "rate"),
        (vec!["load", url, "--deadline", "1s"], "--rate"),
        (vec!["load", url, "--arrivals", "poisson"], "--rate"),
        (vec!["load", url, "--rate", "many"], "--rate"),
    ] {
        let (status, message) = fail(here.path(), &args);
        assert!(
            status > 0 && message.contains(word),
            "{args:?}: {status} {message}"
        );
    }
}

#[test]
fn a_run_without_answers_is_invalid() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/missing", server.address());
    let output = run(site.path(), &["load", &url, "-n", "5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("INVALID"),
        "{}",
        text(&output.stdout)
    );
    let output = run(site.path(), &["load", "ftp://127.0.0.1/", "-n", "5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: "),
        "{}",
        text(&output.stderr)
    );
}

/// `-d` is a length of time to other load generators.
#[test]
fn a_body_that_looks_like_a_time_is_pointed_out() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let hint = "said by --duration";
    for (body, said) in [
        (&["-d10s"][..], true),
        (&["-d", "30"], true),
        (&["-d", "10s", "-m", "PUT"], false),
        (&["-d", "name=10s"], false),
    ] {
        let args = [&["load", &url, "-n", "3"], body].concat();
        let note = text(&run(site.path(), &args).stderr);
        assert_eq!(note.contains(hint), said, "{body:?}: {note}");
    }
}

#[test]
fn the_host_is_sampled_beside_a_run_and_without_one() {
    let site = new_site();
    let server = serve(site.path());
    let address = server.address().to_string();
    let (_, port) = address.rsplit_once(':').unwrap();
    let url = format!("http://{address}/");
    let sampled = |args: &[&str]| -> serde_json::Value {
        let output = run(site.path(), args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        crate::support::json(&site.path().join("probe.json"))
    };
    let quick = ["--probe-interval", "100ms", "--json", "probe.json"];
    let beside = sampled(&[&["load", &url, "--duration", "500ms"], &quick[..]].concat());
    assert!(beside["bottleneck"].is_array(), "{}", beside["bottleneck"]);
    let found = &beside["probe"]["samples"]["processes"][0];
    assert_eq!(found["found"], format!("listens on port {port}"));
    let only = [
        "load",
        "--probe-only",
        "--port",
        port,
        "--duration",
        "300ms",
    ];
    let alone = sampled(&[&only, &quick[..]].concat());
    assert_eq!(alone["processes"][0]["pid"], found["pid"]);
    let without = sampled(&[
        "load",
        &url,
        "-n",
        "10",
        "--no-probe",
        "--json",
        "probe.json",
    ]);
    assert!(without["probe"].is_null() && without["bottleneck"].is_null());
    for (args, word) in [
        (vec!["load", &url, "--pid", "2147483647"], "2147483647"),
        (vec!["load", &url, "--probe-interval", "1ms"], "100ms"),
        (vec!["load", &url, "--diagnose", "--rate", "5"], "--rate"),
        (vec!["load", &url, "--probe-only"], "--probe-only"),
        (vec!["load"], "URL"),
    ] {
        let (status, message) = fail(site.path(), &args);
        assert!(
            status > 0 && message.contains(word),
            "{args:?}: {status} {message}"
        );
    }
}
