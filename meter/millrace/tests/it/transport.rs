//! The options of the measuring commands that say how a server is reached and what it must answer.

use std::net::TcpListener;

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
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = |scheme: &str| format!("{scheme}://{}/", server.local_addr().unwrap());
    let (http, https) = (url("http"), url("https"));
    let (http, https) = (http.as_str(), https.as_str());
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
fn a_port_where_nothing_listens_is_named_at_once() {
    let here = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let url = format!("http://{address}/");
    let (a, b) = (format!("A={url}"), format!("B={url}"));
    for args in [
        &["load", &url, "--duration", "1h"][..],
        &["load", &url, "--diagnose", "--duration", "1h"],
        &["sweep", &url, "--rates", "10,20", "--duration", "1h"],
        &[
            "sweep",
            &url,
            "--rates",
            "1",
            "--session",
            "2",
            "--duration",
            "1h",
        ],
        &["capacity", &url, "--objective", "99% < 1s", "--trial", "1h"],
        &["compare", &a, &b, "--duration", "1h"],
        &[
            "load",
            "http://example.test/",
            "--connect-to",
            &address.to_string(),
        ],
    ] {
        let (status, message) = fail(
            here.path(),
            &[args, &["--quiet", "--json", "it.json"]].concat(),
        );
        let expected = format!(
            "error: nothing listens at {address}\n  hint: start the server, or correct the URL or --connect-to\n"
        );
        assert_eq!((status, message), (1, expected), "{args:?}");
        assert!(!here.path().join("it.json").exists());
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
