//! Reading an experiment from its file, and what stands in its way on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use millrace_client::command_line;
use millrace_report::number;
use millrace_runs::{Experiment, Fault, LabOptions, LabProgress, Missing, Programs};

use crate::failure::{CommandResult, Failure};

/// This program, and `millpond` beside it: releases and builds have both in one folder. If there is
/// none, the shell finds it by its name.
pub(super) fn programs() -> CommandResult<Programs> {
    let millrace = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let beside = millrace.with_file_name("millpond");
    Ok(Programs {
        millpond: if beside.is_file() {
            beside
        } else {
            "millpond".into()
        },
        millrace,
    })
}

/// How experiments are carried out.
pub(super) fn options(keep: bool) -> CommandResult<LabOptions> {
    Ok(LabOptions {
        programs: programs()?,
        keep,
        command: command_line("millrace"),
    })
}

/// Reads the experiment of a file.
pub(super) fn read(path: &Path) -> CommandResult<Experiment> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let absolute = path
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot find {}: {error}", path.display())))?;
    let here = absolute.parent().unwrap_or(Path::new("/"));
    Experiment::read(&text, here).map_err(|faults| wrong(path, &faults))
}

/// The mistakes of a file, each with its place.
pub(super) fn wrong(path: &Path, faults: &[Fault]) -> Failure {
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| format!("{}:{fault}", path.display()))
        .collect();
    Failure::new(lines.join("\nerror: "))
        .hint("docs/reference/experiments.md describes the format of an experiment")
}

/// Takes out the servers that cannot be started, and gives a sentence for each. All servers stay if
/// none could be started.
pub(super) fn leave_out_missing(experiment: &mut Experiment) -> Vec<String> {
    let missing = experiment.missing();
    let lacks = |name: &str| -> Vec<&str> {
        let needed = missing
            .iter()
            .filter(|one| experiment.needs(name, &one.servers));
        needed.map(|one| one.program.as_str()).collect()
    };
    let lost: BTreeMap<String, String> = experiment
        .names()
        .map(|name| (name.to_owned(), lacks(name).join(", ")))
        .filter(|(_, programs)| !programs.is_empty())
        .collect();
    if lost.len() == experiment.names().count() {
        return Vec::new();
    }
    experiment.retain(|name| !lost.contains_key(name));
    lost.iter()
        .map(|(name, programs)| format!("{name} is left out, for {programs} is not installed"))
        .collect()
}

/// The packages of programs that are missing, each once.
pub(super) fn packages(missing: &[Missing]) -> String {
    let mut packages: Vec<&str> = missing.iter().map(|one| one.package.as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    packages.join(" ")
}

/// The programs that are missing, each once, in a line.
pub(super) fn programs_of(missing: &[Missing]) -> String {
    let mut programs: Vec<&str> = missing.iter().map(|one| one.program.as_str()).collect();
    programs.sort_unstable();
    programs.dedup();
    programs.join(", ")
}

/// The failure of an experiment whose programs are missing.
pub(super) fn not_installed(missing: &[Missing]) -> Failure {
    let (programs, packages) = (programs_of(missing), packages(missing));
    Failure::new(format!("not installed: {programs}")).hint(format!(
        "sudo apt-get install {packages}\n        a package may start a service that is not needed here; \
         sudo systemctl disable --now SERVICE ends it"
    ))
}

/// Describes the progress of an experiment, in a line.
pub(super) fn progress_line(progress: &LabProgress<'_>) -> String {
    let at = progress
        .level
        .map_or("starting".to_owned(), |level| level.to_string());
    let seconds = progress.remaining.as_secs_f64().ceil() as u64;
    format!(
        "{}: {at}, repeat {} of {}  {} of {} runs, {} min {} s left",
        progress.doing,
        progress.repeat,
        progress.repeats,
        number::count(progress.done as u64),
        number::count(progress.runs as u64),
        number::count(seconds / 60),
        seconds % 60
    )
}
