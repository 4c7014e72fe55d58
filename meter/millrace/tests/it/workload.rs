//! `millrace load` with plans, file sets and access logs.

use std::fs;
use std::path::Path;

use crate::support::{fail, new_site, run, serve, text, write};

/// The result of a run with `--json run.json`.
fn result(dir: &Path) -> serde_json::Value {
    crate::support::json(&dir.join("run.json"))
}

#[test]
fn a_file_set_is_written_and_nothing_else_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(
        dir.path(),
        &["load", "fileset", "set", "--directories", "1"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("millrace load URL --plan set/plan.toml"));
    assert_eq!(
        fs::metadata(dir.path().join("set/dir0/class2_9"))
            .unwrap()
            .len(),
        92_160
    );
    write(dir.path(), "mine/notes", "");
    let (status, said) = fail(dir.path(), &["load", "fileset", "mine"]);
    assert!(
        status == 1 && said.contains("mine/notes is not of a file set"),
        "{said}"
    );
    let (status, said) = fail(
        dir.path(),
        &["load", "fileset", "set", "--directories", "0"],
    );
    assert!(status == 1 && said.contains("from 1 to 10000"), "{said}");
}

#[test]
fn what_a_log_teaches_is_said_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let line = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a/b.css HTTP/1.0\" 200 1\n";
    write(dir.path(), "access.log", &line.repeat(30));
    let output = run(
        dir.path(),
        &["load", "--from-log", "access.log", "--learn-only"],
    );
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("100.00%") && said.contains("/a/*.css"),
        "{said}"
    );
    write(dir.path(), "access.log", "no log\n");
    let (status, said) = fail(
        dir.path(),
        &["load", "--from-log", "access.log", "--learn-only"],
    );
    assert!(
        status == 1 && said.contains("access.log:1: not in the common"),
        "{said}"
    );
}

#[test]
fn a_plan_is_run_and_its_mistakes_are_told_before_anything_is_sent() {
    let site = new_site();
    let server = serve(site.path());
    let plan = format!(
        "url = 'http://{}/'\n[[class]]\nname = 'front'\nweight = 3\ntarget = '/'\ncheck = {{ contains = '<html' }}\n\
         [[class]]\nname = 'note'\ntarget = '/notes/{{{{random 1 1}}}}'\n",
        server.address()
    );
    write(site.path(), "plan.toml", &plan);
    let output = run(
        site.path(),
        &[
            "load",
            "--plan",
            "plan.toml",
            "-c",
            "2",
            "-n",
            "100",
            "--json",
            "run.json",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = result(site.path());
    let names: Vec<_> = json["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| &class["name"])
        .collect();
    assert_eq!(names, ["front", "note"]);
    assert_eq!(json["accounting"]["good"], 100);
    write(site.path(), "plan.toml", &plan.replace("weight", "wieght"));
    let (status, said) = fail(site.path(), &["load", "--plan", "plan.toml"]);
    let expected = "plan.toml:4:1: unknown key \"wieght\" in [[class]]; did you mean \"weight\"?";
    assert!(status == 1 && said.contains(expected), "{said}");
    for (args, word) in [
        (&["load"][..], "required"),
        (&["load", "http://h/", "--replay"][..], "--from-log"),
        (
            &["load", "--plan", "nowhere.toml"][..],
            "cannot read nowhere.toml",
        ),
        (
            &["load", "--plan", "plan.toml", "--from-log", "x"][..],
            "cannot be used with",
        ),
        (&["load", "--from-log", "x"][..], "required"),
    ] {
        let (status, said) = fail(site.path(), args);
        assert!(status != 0 && said.contains(word), "{args:?}: {said}");
    }
}

#[test]
fn a_seed_that_is_asked_for_goes_before_the_plans_own() {
    let site = new_site();
    let server = serve(site.path());
    let plan = format!(
        "url = 'http://{}/'\n[[class]]\nname = 'front'\ntarget = '/'\n[[class]]\nname = 'note'\ntarget = '/notes/1'\n",
        server.address()
    );
    let fronts = |own: &str, options: &[&str]| {
        write(site.path(), "plan.toml", &(own.to_owned() + &plan));
        let args = [
            "load",
            "--plan",
            "plan.toml",
            "-n",
            "100",
            "--json",
            "run.json",
        ];
        let output = run(site.path(), &[&args, options].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        result(site.path())["classes"][0]["good"].as_u64().unwrap()
    };
    let usual = fronts("", &[]);
    let mut is_other = false;
    for seed in ["2", "3", "4"] {
        let own = format!("seed = {seed}\n");
        let asked = fronts("seed = 9\n", &["--seed", seed]);
        assert_eq!(asked, fronts(&own, &[]), "seed {seed}");
        is_other |= asked != usual;
    }
    assert!(is_other, "{usual} each time");
}

#[test]
fn a_log_is_replayed_faster_than_it_was() {
    let site = new_site();
    let server = serve(site.path());
    let line =
        |second| format!("h - - [10/Oct/2000:13:55:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n");
    let text_of = line(0).repeat(20)
        + &line(9).repeat(20)
        + "h - - [10/Oct/2000:13:55:09 +0000] \"POST / HTTP/1.1\" 303 1\n";
    write(site.path(), "access.log", &text_of);
    let url = format!("http://{}/", server.address());
    let args = [
        "load",
        &url,
        "--from-log",
        "access.log",
        "--replay",
        "--speed",
        "50",
        "-c",
        "4",
        "--json",
        "run.json",
    ];
    let output = run(site.path(), &args);
    assert!(
        text(&output.stderr).contains("1 requests with other methods"),
        "{}",
        text(&output.stderr)
    );
    let json = result(site.path());
    assert_eq!(json["accounting"]["good"], 40, "{}", text(&output.stdout));
    assert_eq!(json["loop"], "open");
    // The series is as long as the log, whose end no duration gives.
    assert!(json["series"]["interval_s"].as_f64() < Some(1.0));
}
