//! `--spin`, wherever the client's threads and cores are set.

use std::path::Path;

use serde_json::Value;

use crate::support::{fail, json, new_site, run, serve, text, write};

/// Runs a command that must succeed; what it has written and what it has said.
fn found(dir: &Path, args: &[&str]) -> (Value, String) {
    let output = run(dir, &[args, &["--json", "it.json"]].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    // On a busy machine runs may be INVALID, and the command ends with 1 after measuring.
    assert!(dir.join("it.json").exists(), "{said}");
    (json(&dir.join("it.json")), said)
}

#[test]
fn every_measuring_command_spins_when_it_is_asked_to() {
    let site = new_site();
    let server = serve(site.path());
    let url = format!("http://{}/", server.address());
    let short = ["--spin", "--threads", "1", "--warmup", "5ms"];
    let of = |args: &[&str]| found(site.path(), &[args, &short].concat());

    let (load, said) = of(&["load", &url, "-n", "50"]);
    assert_eq!(load["accounting"]["answered"], 50);
    assert_eq!(load["client"]["spin"], true);
    assert!(load["client"]["spun_us"].is_u64(), "{load}");
    assert!(said.contains("spinning left out"), "{said}");

    let (sweep, _) = of(&["sweep", &url, "-c", "1,2", "--duration", "30ms"]);
    for step in sweep["steps"].as_array().unwrap() {
        assert_eq!(step["run"]["client"]["spin"], true);
    }
    let (search, _) = of(&[
        "capacity",
        &url,
        "--objective",
        "50% < 4s",
        "--to",
        "200",
        "--trial",
        "30ms",
    ]);
    assert!(!search["trials"].as_array().unwrap().is_empty());
    let (compared, _) = of(&[
        "compare",
        &format!("a={url}"),
        &format!("b={url}"),
        "--blocks",
        "3",
        "--duration",
        "20ms",
    ]);
    assert!(compared["answer"].is_string(), "{compared}");
}

#[test]
fn more_threads_than_cores_are_refused() {
    let site = new_site();
    let args = [
        "load",
        "http://127.0.0.1:1/",
        "--spin",
        "-c",
        "9",
        "--threads",
        "3",
        "--cores",
        "0,0",
    ];
    let (status, said) = fail(site.path(), &args);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("3 threads would share 1"), "{said}");
}

#[test]
fn an_experiment_has_a_client_that_spins_on_a_core_of_its_own() {
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&core| cores.is_set(core))
        .collect();
    let [server, client, ..] = cores[..] else {
        return;
    };
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "site/millpond.toml", "[server]\n");
    write(dir.path(), "site/pages/index.html", "front\n");
    write(dir.path(), "site/static/a.txt", "a text\n");
    let experiment = |client: usize| {
        let text = format!(
            "title = 'Spin'\nrepeats = 1\n[workload]\npath = '/a.txt'\ncores = [{client}]\nspin = true\nwarmup = '5ms'\n\
             duration = '50ms'\n[[server]]\nname = 'it'\ncores = [{server}]\nstart = ['{{millpond}}', 'serve', '{{here}}/site', \
             '--listen', '127.0.0.1:{{port}}', '--workers', '1']\n"
        );
        write(dir.path(), "it.toml", &text);
    };
    experiment(client);
    let (lab, said) = found(dir.path(), &["lab", "run", "it.toml"]);
    assert_eq!(lab["complete"], true, "{said}");
    assert_eq!(lab["runs"][0]["client_spin"], true);
    assert_eq!(lab["runs"][0]["errors"], 0);
    experiment(server);
    let (status, said) = fail(dir.path(), &["lab", "check", "it.toml"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("it.toml:11:") && said.contains("give it another"),
        "{said}"
    );
}
