//! Experiments with mistakes, and those of the project, which have none.

use std::fs;
use std::path::Path;

use crate::{Experiment, Fault};

/// The mistakes in an experiment, but for cores that the machine of the test does not have.
fn faults(text: &str) -> Vec<Fault> {
    let read = Experiment::read(text, Path::new("/"));
    let mut faults = read.err().unwrap_or_default();
    faults.retain(|fault| !fault.message.contains("may not run on core"));
    faults
}

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_example_of_the_manual_is_an_experiment() {
    let manual = fs::read_to_string(project().join("docs/experiments.md")).unwrap();
    let (_, rest) = manual.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    assert_eq!(faults(example), []);
}

#[test]
fn the_experiments_of_the_project_are_in_order() {
    let folder = fs::read_dir(project().join("experiments")).unwrap();
    let mut seen = 0;
    for entry in folder {
        let path = entry.unwrap().path();
        let found = faults(&fs::read_to_string(&path).unwrap());
        assert_eq!(found, [], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 3);
}

#[test]
fn hostile_files_are_mistakes_and_no_panic() {
    let server = "[workload]\n[[server]]\nname = 'a'\nstart = 'x'\n";
    for (text, sentence) in [
        ("".to_owned(), "missing field `title`"),
        ("title = 'x'\n[workload]\n".to_owned(), "no [[server]]"),
        (
            format!("title = 'x'\nrepeats = -1\n{server}"),
            "invalid value",
        ),
        (
            format!(
                "title = 'x'\n{server}{}",
                server.replacen("[workload]\n", "", 1)
            ),
            "a second server",
        ),
        (format!("title = 'x'\n{server}cores = [99999999]\n"), "core"),
        (
            format!("title = 'x'\n{server}cores = []\n"),
            "the list of cores is empty",
        ),
        (
            format!("title = 'x'\n{server}with = ['a']\n"),
            "behind itself",
        ),
        (
            format!("title = 'x'\n{server}stop = 'SIGSEGV'\n"),
            "SIGSEGV is no signal",
        ),
        (
            format!("title = 'x'\n{server}path = 'a'\n"),
            "a path begins with /",
        ),
        (
            format!("title = 'x'\n{server}needs = ['a; rm -rf']\n"),
            "PROGRAM:PACKAGE",
        ),
        (
            format!(
                "title = 'x'\ncross_check = 'wrk'\n{}",
                server.replace("]\n[[", "]\nrate = 5\n[[")
            ),
            "closed loop",
        ),
        (
            format!(
                "title = 'x'\n{}",
                server.replace("]\n[[", "]\nwarmup = '1e9s'\n[[")
            ),
            "is no time",
        ),
        (
            format!("title = 'x'\n{}", server.replace("'a'", "'../a'")),
            "no name for a server",
        ),
        (
            format!("title = 'x'\nladder = {{}}\n{server}"),
            "either connections or rates",
        ),
    ] {
        let read = Experiment::read(&text, Path::new("/"));
        let found = read.err().unwrap_or_default();
        assert!(
            found.iter().any(|fault| fault.message.contains(sentence)),
            "{text}\n{found:?}"
        );
    }
}

#[test]
fn a_plan_is_read_and_its_mistakes_have_both_places() {
    let dir = tempfile::tempdir().unwrap();
    let text = |head: &str, workload: &str| {
        format!(
            "title = 'x'\n{head}[workload]\nplan = 'p.toml'\n{workload}[[server]]\nname = 'a'\nstart = 'x'\n"
        )
    };
    let found = |head: &str, workload: &str| {
        let read = Experiment::read(&text(head, workload), dir.path());
        let faults = read.err().unwrap_or_default();
        faults
            .iter()
            .map(Fault::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(
        found("", "").contains("3:8: cannot read"),
        "{}",
        found("", "")
    );
    let plan = "[[class]]\nname = 'c'\ntarget = '/'\n";
    fs::write(dir.path().join("p.toml"), plan).unwrap();
    assert_eq!(found("", ""), "");
    assert_eq!(found("", "rate = 10\n"), "");
    assert!(found("", "depth = 2\n").contains("no pipelining"));
    assert!(found("cross_check = 'wrk'\n", "").contains("does not go with a plan"));
    fs::write(dir.path().join("p.toml"), plan.replace("target", "tagret")).unwrap();
    let mistake = found("", "");
    assert!(
        mistake.starts_with("3:8: ") && mistake.contains("p.toml:1:1: "),
        "{mistake}"
    );
}
