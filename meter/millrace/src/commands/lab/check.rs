//! `millrace lab check`: mistakes of an experiment or a study.

use std::path::Path;

use clap::Args;
use millrace_runs::{Experiment, Missing, Study};

use super::catalogue::{Catalogue, Chosen};
use super::experiment::{not_installed, read, wrong};
use crate::failure::{CommandResult, Failure};
use crate::output::say;

/// Look at an experiment or a study without running it: mistakes in its files, programs that are
/// missing, and what it may not do here
#[derive(Args)]
pub(super) struct CheckCommand {
    /// The experiment: its file or its name; or a study: its name, its folder or its study.toml
    #[arg(value_name = "FILE")]
    what: String,
    /// The folder with studies/ and experiments/ [default: lab, here or in a folder above]
    #[arg(long, value_name = "DIR")]
    lab: Option<std::path::PathBuf>,
}

impl CheckCommand {
    pub(super) fn run(&self) -> CommandResult {
        match Catalogue::find(self.lab.as_deref()).choose(&self.what)? {
            Chosen::File(path) => check_file(&path),
            Chosen::Study(study, files) => check_study(&study, &files),
        }
    }
}

fn check_file(path: &Path) -> CommandResult {
    let experiment = read(path)?;
    say(line(&experiment));
    installed(&experiment.missing())
}

fn check_study(study: &Study, files: &[String]) -> CommandResult {
    say(format!("{}: {}", study.name, study.text.title));
    let (mut missing, mut wrongs) = (Vec::new(), Vec::new());
    for file in files {
        match study.experiment(file) {
            Ok(mut experiment) => {
                say(format!("  {file}: {}", line(&experiment)));
                missing.extend(experiment.missing());
                if let Err(error) = study.quick.shorten(file, &mut experiment) {
                    wrongs.push(Failure::new(format!("{file}, with --quick: {error}")));
                }
            }
            Err(faults) => wrongs.push(wrong(&study.path(file), &faults)),
        }
    }
    if let Some(last) = wrongs.pop() {
        wrongs.iter().for_each(Failure::print);
        return Err(last);
    }
    missing.sort();
    missing.dedup_by(|a, b| a.program == b.program);
    installed(&missing)
}

fn line(experiment: &Experiment) -> String {
    let names: Vec<&str> = experiment.names().collect();
    format!(
        "{}: {} servers ({}), {} repeats",
        experiment.title(),
        names.len(),
        names.join(", "),
        experiment.repeats()
    )
}

fn installed(missing: &[Missing]) -> CommandResult {
    if !missing.is_empty() {
        return Err(not_installed(missing));
    }
    say("every program that it needs is installed");
    Ok(())
}
