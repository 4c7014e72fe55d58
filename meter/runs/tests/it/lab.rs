//! Experiments with the floor as their servers. It answers every request with the same bytes, after
//! a given number of rounds of work.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use millrace_runs::{Experiment, Lab, LabOptions, LabOutcome, Programs, lab};
use millrace_stats::Verdict;

/// A core that this process may use.
fn core() -> usize {
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    (0..).find(|&core| cores.is_set(core)).unwrap()
}

/// Compiles the floor into `dir`.
fn floor(dir: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/floor/floor.c");
    let compiled = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(dir.join("floor"))
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
}

/// Carries out an experiment with two floors in blocks; the second works more.
fn blocks(dir: &Path, more: &str) -> Lab {
    floor(dir);
    let core = core();
    let text = format!(
        "title = 'Two floors'\nbaseline = 'light'\norder = 'blocks'\nrepeats = 3\nladder = {{ connections = '1,2' }}\n\
         include = ['heavy.toml']\nvalues = {{ rounds = '20000' }}\n[workload]\npath = '/{{n}}.txt'\ncount = 50\n\
         warmup = '5ms'\nduration = '20ms'\n[[server]]\nname = 'light'\ncores = [{core}]\n\
         start = ['{{here}}/floor', '{{port}}', '100', '50']\n{more}"
    );
    let heavy = format!(
        "[[server]]\nname = 'heavy'\ncores = [{core}]\nidle = 20\n\
         start = ['{{here}}/floor', '{{port}}', '100', '50', '{{rounds}}']\n"
    );
    fs::write(dir.join("heavy.toml"), heavy).unwrap();
    carry_out(&Experiment::read(&text, dir).unwrap())
}

fn carry_out(experiment: &Experiment) -> Lab {
    let options = LabOptions {
        programs: Programs {
            millpond: "/none".into(),
            millrace: "/none".into(),
        },
        keep: false,
        command: String::new(),
    };
    lab(experiment, &options, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// The limits of `heavy` against `light`: a metric, and what it may be.
fn limits(limits: &[(&str, &str)]) -> String {
    let one = |(metric, bound): &(&str, &str)| {
        format!(
            "[[limit]]\nserver = 'heavy'\nagainst = 'light'\nmetric = '{metric}'\nat = [2]\n{bound}\n"
        )
    };
    limits.iter().map(one).collect()
}

#[test]
fn blocks_go_forwards_and_backwards_twice_at_each_level() {
    let dir = tempfile::tempdir().unwrap();
    let found = blocks(dir.path(), "");
    assert!(found.complete && found.limits.is_empty(), "{found:?}");
    assert_eq!(found.runs.len(), 3 * 2 * 4 * 2);
    let order = |from: usize| -> Vec<(usize, usize, &str)> {
        let block = found.runs[from..from + 8].iter();
        block
            .map(|run| (run.level.connections, run.pass, run.server.as_str()))
            .collect()
    };
    let (a, b) = ("light", "heavy");
    let expected = |level| {
        [
            (1, a),
            (1, b),
            (2, b),
            (2, a),
            (3, a),
            (3, b),
            (4, b),
            (4, a),
        ]
        .map(|(pass, server)| (level, pass, server))
    };
    assert_eq!(order(0), expected(1));
    assert_eq!(order(8), expected(2));
    for run in &found.runs {
        // A busy machine may make a figure doubtful, but each run is made.
        assert!(run.requests > 0 && run.errors == 0, "{run:?}");
        assert_eq!(run.idle_bytes.is_some(), run.server == b, "{run:?}");
    }
    let last = &found.findings[3];
    assert_eq!((last.server.as_str(), last.runs), (b, 12));
}

#[test]
fn limits_are_decided_at_their_levels() {
    let dir = tempfile::tempdir().unwrap();
    let asked = limits(&[
        ("cpu", "at_most = 0.01"),
        ("cpu", "at_most = 10000.0"),
        ("throughput", "at_least = 0.0001"),
        ("cpu", "more_at_most_us = 10000.0"),
    ]);
    let found = blocks(dir.path(), &asked);
    assert_ne!(found.verdict, Verdict::Valid, "three blocks are few");
    let few = "a limit is decided by 10 blocks or more, and these are 3";
    assert!(
        found.reasons.iter().any(|reason| reason == few),
        "{:?}",
        found.reasons
    );
    let [missed, rest @ ..] = &found.limits[..] else {
        panic!("{:?}", found.limits);
    };
    // On a busy machine runs may be INVALID, and a block without them decides nothing.
    let open = LabOutcome::NotDecided;
    let is = |outcome, expected| outcome == expected || outcome == open;
    assert!(is(missed.outcome, LabOutcome::Missed), "{missed:?}");
    assert_eq!(rest.len(), 3);
    for limit in rest {
        assert!(is(limit.outcome, LabOutcome::Holds), "{limit:?}");
        assert_eq!(limit.level.connections, 2);
    }
}

/// Runs only if the other client is installed, because the project does not need it.
#[test]
fn the_other_client_runs_beside() {
    let dir = tempfile::tempdir().unwrap();
    floor(dir.path());
    for (name, package) in [("wrk", "wrk"), ("h2load", "nghttp2-client")] {
        let text = format!(
            "title = 'x'\nrepeats = 1\ncross_check = '{name}'\n[workload]\npath = '/{{n}}.txt'\ncount = 3\n\
             connections = 2\ndepth = 2\nwarmup = '5ms'\nduration = '20ms'\nheaders = ['X-Any: thing']\n\
             [[server]]\nname = 'floor'\nstart = ['{{here}}/floor', '{{port}}', '100', '50']\n"
        );
        let experiment = Experiment::read(&text, dir.path()).unwrap();
        if let [missing] = &experiment.missing()[..] {
            assert_eq!(
                (missing.program.as_str(), missing.package.as_str()),
                (name, package)
            );
            continue;
        }
        let found = carry_out(&experiment);
        assert_eq!(found.cross_check.as_deref(), Some(name));
        let other = found.runs[0].other.unwrap();
        assert!(other.throughput > 0.0 && other.errors == 0, "{other:?}");
        assert!(found.findings[0].other_ratio.is_some());
    }
}
