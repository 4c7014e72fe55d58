//! The options of the measuring commands that say how a server is reached and what it must answer.

use crate::support::{fail, new_site, run, serve, text};

#[test]
fn a_run_goes_elsewhere_is_paced_and_looks_at_bodies() {
    let site = new_site();
    let server = serve(site.path());
    let address = server.address().to_string();
    let args = |expected: &'static str| {
        let url = "http://example.test/";
        let mut args = vec!["load", url, "-n", "20", "--connect-to", &address];
        args.extend(["-H", "Host: localhost", "--throttle-down", "8Mbit"]);
        args.extend(["--throttle-up", "1M", "--expect-body", expected]);
        args.extend(["--json", "-"]);
        run(site.path(), &args)
    };
    let output = args("(?i)<html");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["accounting"]["good"], 20, "{json}");
    assert!(json["connections"]["conforming"].is_u64(), "{json}");
    assert!(text(&output.stderr).contains("conforming"));
    let output = args("no page has this");
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["errors"]["bad_body"], 20, "{json}");
    assert_eq!(
        json["error_examples"]["bad_body"],
        "the body does not match the expression"
    );
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let here = tempfile::tempdir().unwrap();
    let (http, https) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
    for (args, word) in [
        (vec![http, "--insecure"], "https://"),
        (vec![http, "--cacert", "x"], "https://"),
        (vec![https, "--cacert", "x", "--insecure"], "--insecure"),
        (vec![https, "--cacert", "missing.pem"], "missing.pem"),
        (vec![http, "--unix-socket", "missing"], "missing"),
        (vec![http, "--unix-socket", "."], "no Unix socket"),
        (
            vec![http, "--unix-socket", "x", "--connect-to", "h:1"],
            "--connect-to",
        ),
        (vec![http, "--connect-to", "nowhere"], "HOST:PORT"),
        (vec![http, "--throttle-down", "fast"], "400kbit"),
        (vec![http, "--throttle-up", "10"], "1K"),
        (vec![http, "--expect-body", "("], "regular expression"),
        (vec![http, "--expect-sha256", "12"], "64 hexadecimal digits"),
        (vec![http, "-m", "HEAD", "--expect-body", "x"], "HEAD"),
        (vec!["https://bad_host!/"], "bad_host!"),
    ] {
        let args = [vec!["load"], args].concat();
        let (status, message) = fail(here.path(), &args);
        assert!(
            status > 0 && message.contains(word),
            "{args:?}: {status} {message}"
        );
    }
}

#[test]
fn source_ports_that_may_run_out_are_noted_before_the_run() {
    let here = tempfile::tempdir().unwrap();
    let args = ["load", "http://127.0.0.1:1/", "--no-keep-alive"];
    let rate = ["--rate", "100000", "--duration", "20ms"];
    let output = run(here.path(), &[&args[..], &rate].concat());
    let said = text(&output.stderr);
    assert!(said.contains("6000000 connections in a minute"), "{said}");
}
