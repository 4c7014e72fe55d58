//! `millrace lab`: an experiment with several servers, from a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::values;
use clap::{Args, Subcommand};
use millrace_client::command_line;
use millrace_report::{lab_csv, lab_report, lab_tables, number, text_table};
use millrace_runs::{
    Experiment, Fault, Lab as Found, LabOptions, LabOutcome, LabProgress, Ladder, Missing, Programs,
};
use millrace_stats::Verdict;

use super::results::ResultOptions;
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::output::{note, say};

/// Measure several servers alike: an experiment from a file
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<Run>),
    Check(CheckCommand),
}

/// Start each server of an experiment in turn, measure it, and compare them
///
/// Exit status: 0 when every run was made and counts and every limit of the file holds, 1 when a
/// server failed, a level of a server has only INVALID runs, or the experiment was stopped, 3 when
/// a limit is missed, or could not be shown to hold. What there is by then is written in each case.
#[derive(Args)]
struct Run {
    /// The experiment, such as lab/experiments/static-8k.toml
    file: PathBuf,
    /// Measure only these servers, by their names with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure at these numbers of connections instead of the file's, such as 1,32; limits at
    /// others are not asked about
    #[arg(short, long, value_name = "LEVELS")]
    connections: Option<Ladder>,
    /// Leave out servers whose programs are not installed
    #[arg(long)]
    available: bool,
    /// Repeats instead of those of the file
    #[arg(long, value_name = "N")]
    repeats: Option<usize>,
    /// Length of each run instead of the file's
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// Warm-up before each run instead of the file's
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    warmup: Option<Duration>,
    /// Keep the temporary folder with the servers' files
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    results: ResultOptions,
}

/// Look at an experiment without running it: mistakes in its file, programs that are missing, and
/// what it may not do here
#[derive(Args)]
struct CheckCommand {
    /// The experiment
    file: PathBuf,
}

impl Lab {
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Check(check) => check.run(),
        }
    }
}

impl CheckCommand {
    fn run(&self) -> CommandResult {
        let experiment = read(&self.file)?;
        let names: Vec<&str> = experiment.names().collect();
        say(format!(
            "{}: {} servers ({}), {} repeats",
            experiment.title(),
            names.len(),
            names.join(", "),
            experiment.repeats()
        ));
        let missing = experiment.missing();
        if !missing.is_empty() {
            return Err(not_installed(&missing));
        }
        say("every program that it needs is installed");
        Ok(())
    }
}

/// This program, and `millpond` beside it: releases and builds have both in one folder. If there is
/// none, the shell finds it by its name.
fn programs() -> CommandResult<Programs> {
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

impl Run {
    fn run(self) -> CommandResult {
        let experiment = self.experiment()?;
        self.results.teller()?;
        let options = LabOptions {
            programs: programs()?,
            keep: self.keep,
            command: command_line("millrace"),
        };
        let events = Events::listen()?;
        let found = {
            let line = self.results.line();
            let mut logged = 0;
            let mut show = |progress: &LabProgress<'_>| {
                line.show(progress_line(progress));
                if logged != progress.repeat {
                    logged = progress.repeat;
                    line.log(progress_line(progress));
                }
            };
            millrace_runs::lab(&experiment, &options, &mut show, &events.stop)
                .map_err(Failure::new)?
        };
        self.results
            .write(&found, &summary(&found), lab_csv, lab_report)?;
        match &found.failure {
            Some(failure) => Err(Failure::new(failure)),
            // The summary shows why.
            None if found.verdict == Verdict::Invalid || !found.complete => Err(Failure::Said),
            None if is_missed(&found) => Err(Failure::Missed),
            None => Ok(()),
        }
    }

    /// The experiment with what the command line changes.
    fn experiment(&self) -> CommandResult<Experiment> {
        let mut experiment = read(&self.file)?;
        for name in &self.only {
            if !experiment.names().any(|known| known == name) {
                let names: Vec<&str> = experiment.names().collect();
                return Err(Failure::new(format!("no server is called {name:?}"))
                    .hint(format!("the servers are {}", names.join(", "))));
            }
        }
        if !self.only.is_empty() {
            experiment.retain(|name| self.only.iter().any(|wanted| wanted == name));
        }
        if self.available {
            leave_out_missing(&mut experiment);
        }
        let missing = experiment.missing();
        if !missing.is_empty() {
            return Err(not_installed(&missing));
        }
        if let Some(connections) = &self.connections {
            experiment
                .set_connections(connections.clone())
                .map_err(Failure::new)?;
        }
        if let Some(repeats) = self.repeats {
            if !(1..=1000).contains(&repeats) {
                return Err(Failure::new("--repeats must be from 1 to 1000"));
            }
            experiment.set_repeats(repeats);
        }
        if let Some(duration) = self.duration {
            experiment.set_duration(duration);
        }
        if let Some(warmup) = self.warmup {
            experiment.set_warmup(warmup);
        }
        Ok(experiment)
    }
}

fn read(path: &Path) -> CommandResult<Experiment> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let absolute = path
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot find {}: {error}", path.display())))?;
    let here = absolute.parent().unwrap_or(Path::new("/"));
    Experiment::read(&text, here).map_err(|faults| wrong(path, &faults))
}

fn wrong(path: &Path, faults: &[Fault]) -> Failure {
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| format!("{}:{fault}", path.display()))
        .collect();
    Failure::new(lines.join("\nerror: "))
        .hint("docs/reference/experiments.md describes the format of an experiment")
}

/// Leaves out servers that cannot be started, with a note.
fn leave_out_missing(experiment: &mut Experiment) {
    let missing = experiment.missing();
    for one in &missing {
        for server in &one.servers {
            note(format!(
                "note: {server} is left out, for {} is not installed",
                one.program
            ));
        }
    }
    let is_there = |name: &str| {
        !missing
            .iter()
            .any(|one| one.servers.iter().any(|server| server == name))
    };
    if experiment.names().any(is_there) {
        experiment.retain(is_there);
    }
}

fn not_installed(missing: &[Missing]) -> Failure {
    let mut packages: Vec<&str> = missing.iter().map(|one| one.package.as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    let programs: Vec<&str> = missing.iter().map(|one| one.program.as_str()).collect();
    let packages = packages.join(" ");
    Failure::new(format!("not installed: {}", programs.join(", "))).hint(format!(
        "sudo apt-get install {packages}\n        a package may start a service that is not needed here; \
         sudo systemctl disable --now SERVICE ends it"
    ))
}

/// Whether a limit is missed or undecided.
fn is_missed(found: &Found) -> bool {
    let mut limits = found.limits.iter();
    limits.any(|limit| limit.outcome != LabOutcome::Holds)
}

/// The tables, the doubts, and the limits of the file.
fn summary(found: &Found) -> String {
    let mut text = format!("{}\n\n", found.title);
    for table in lab_tables(found) {
        text.push_str(&text_table(&table));
        text.push('\n');
    }
    text.push_str(&format!("{}\n", found.verdict));
    for reason in &found.reasons {
        text.push_str(&format!("  {reason}\n"));
    }
    text
}

fn progress_line(progress: &LabProgress<'_>) -> String {
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
