//! The program under test, and folders to serve.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use lab_testkit::program_beside;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use lab_testkit::{PATIENCE, Server, text, write};

/// `millrace` with arguments, not yet started.
pub(crate) fn millrace(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(args);
    command
}

/// `millpond`, the server that is measured.
fn millpond(args: &[&str]) -> Command {
    let program = program_beside(Path::new(env!("CARGO_BIN_EXE_millrace")), "millpond");
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs `millrace` to its end in `dir`.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    millrace(args).current_dir(dir).output().unwrap()
}

/// Runs `millrace` in `dir` until its output is good, for a minute at most, and gives the last
/// output. On a busy machine a short measurement may have no answer at all.
pub(crate) fn run_until(dir: &Path, args: &[&str], is_good: impl Fn(&Output) -> bool) -> Output {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = run(dir, args);
        if is_good(&output) || Instant::now() > deadline {
            return output;
        }
    }
}

/// Runs `millrace` and gives its exit status and what it wrote to standard error.
pub(crate) fn fail(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = run(dir, args);
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

/// True if the machine held up the client, so that a run is INVALID for this reason alone and the
/// program ends with status 1. Only what does not depend on the figures can be tested then.
///
/// `found` is the JSON of one run or of a sweep.
pub(crate) fn was_held_up(output: &Output, found: &Value) -> bool {
    let steps = found["steps"].as_array();
    let runs = steps.map_or(vec![found], |steps| {
        steps.iter().map(|step| &step["run"]).collect()
    });
    let mut invalid = runs.iter().filter(|run| run["verdict"] == "INVALID");
    let was_held_up = output.status.code() == Some(1)
        && invalid.clone().next().is_some()
        && invalid.all(|run| run["client_at_fault"] == true);
    if was_held_up {
        let said = text(&output.stdout) + &text(&output.stderr);
        eprintln!("the machine is too busy for a verdict:\n{said}");
    }
    was_held_up
}

/// The JSON that a command has written to `file`.
pub(crate) fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The site of `millpond new`.
pub(crate) fn new_site() -> TempDir {
    let dir = lab_testkit::fast_dir();
    let mut new = millpond(&["new", "."]);
    let output = new.current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    dir
}

/// `millpond serve SITE` on a free port, ready to answer.
pub(crate) fn serve(site: &Path) -> Server {
    serve_with(site, &[])
}

/// Starts `millpond serve SITE` on a free port with more arguments, ready to answer.
pub(crate) fn serve_with(site: &Path, args: &[&str]) -> Server {
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"]);
    command.arg(site).args(args);
    Server::spawn(command)
}
