//! When `millrace load` sends: arrivals, pauses, sessions, and what contradicts itself.

use std::fs;

use crate::support::{fail, json, new_site, run, serve, text, was_held_up, write};

#[test]
fn arrivals_sessions_and_pauses_are_said_in_table_json_and_report() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let load = |options: &[&str]| {
        let results = ["--json", "run.json", "--report", "run.html"];
        let args = [&["load", &url, "-c", "4"], options, &results].concat();
        let output = run(site.path(), &args);
        let found = json(&site.path().join("run.json"));
        let has_measured = output.status.success() || was_held_up(&output, &found);
        assert!(has_measured, "{}", text(&output.stderr));
        (text(&output.stdout), found)
    };
    write(
        site.path(),
        "times",
        "# seconds\n0\n0.1\n0.2 # the third\n0.4\n",
    );
    let (_, found) = load(&["--arrivals", "file:times", "--speed", "2"]);
    assert_eq!(found["accounting"]["issued"], 4);

    let session = [
        "--rate",
        "50",
        "--session",
        "3",
        "--think",
        "exp:2ms",
        "-n",
        "60",
    ];
    let (table, found) = load(&session);
    assert_eq!(
        (&found["requests"], &found["offered_rate"]),
        (&60.into(), &150.0.into())
    );
    assert_eq!(found["sessions"]["offered_rate"], 50.0);
    assert!(
        table.contains("sessions") && table.contains("think time"),
        "{table}"
    );
    let page = fs::read_to_string(site.path().join("run.html")).unwrap();
    assert!(page.contains("exponential think time, mean 2ms"));

    let (table, found) = load(&[
        "--cycle",
        "10ms",
        "--duration",
        "200ms",
        "--ramp-up",
        "50ms",
        "--ramp-down",
        "100ms",
    ]);
    assert!(found["ramp_down"]["requests"].as_u64().unwrap() > 0);
    assert!(table.contains("one request every 10ms"), "{table}");
    assert!((found["warmup_s"].as_f64().unwrap() - 0.05).abs() < 1e-9);
}

#[test]
fn what_contradicts_itself_is_told_before_anything_is_sent() {
    let site = new_site();
    write(site.path(), "bad", "0\n1\nsoon\n");
    write(site.path(), "none", "# nothing\n");
    for (options, words) in [
        (
            &["--arrivals", "file:bad"][..],
            &["bad", "line 3", "soon"][..],
        ),
        (&["--arrivals", "file:none"], &["none", "no line"]),
        (&["--arrivals", "file:missing"], &["missing"]),
        (&["--arrivals", "file:bad", "--rate", "5"], &["own rate"]),
        (&["--arrivals", "poisson"], &["--rate"]),
        (&["--speed", "2"], &["recorded"]),
        (&["--session", "2"], &["rate"]),
        (&["--think", "1s", "--rate", "5"], &["sessions"]),
        (&["--think", "1s", "--depth", "2"], &["pipelining"]),
        (&["--deadline", "1s"], &["--rate"]),
        (&["--auto", "--auto-max", "1s"], &["2 s"]),
        (&["--auto", "--auto-precision", "90%"], &["50%"]),
    ] {
        let (_, said) = fail(
            site.path(),
            &[&["load", "http://127.0.0.1:1/"], options].concat(),
        );
        for word in words {
            assert!(said.contains(word), "{options:?}: {said}");
        }
    }
}
