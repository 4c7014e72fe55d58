//! `millrace lab list`: the studies and experiments that there are.

use std::path::PathBuf;

use clap::Args;
use millrace_runs::{Experiment, Missing, Study};

use super::catalogue::{Catalogue, plain};
use super::expected::StudyTimes;
use super::experiment::{packages, programs_of, read};
use crate::failure::{CommandResult, Failure};
use crate::output::say;

/// Name all studies and experiments, about how long they take, and the programs that they lack
#[derive(Args)]
pub(super) struct List {
    /// The folder with studies/ and experiments/ [default: lab, here or in a folder above]
    #[arg(long, value_name = "DIR")]
    lab: Option<PathBuf>,
}

impl List {
    pub(super) fn run(&self) -> CommandResult {
        let catalogue = Catalogue::find(self.lab.as_deref());
        let (studies, experiments) = (catalogue.studies(), catalogue.experiments());
        if studies.is_empty() && experiments.is_empty() {
            return catalogue.all().map(drop);
        }
        let mut missing = Vec::new();
        let mut is_wrong = false;
        let mut all = StudyTimes::default();
        for (name, study) in studies {
            match study {
                Ok(study) => is_wrong |= !show(&study, &mut missing, &mut all),
                Err(failure) => {
                    is_wrong = true;
                    say(format!("{name}: has mistakes"));
                    failure.print();
                }
            }
        }
        if all.is_some() {
            say(format!("all studies: {all}"));
        }
        if !experiments.is_empty() {
            say("experiments");
        }
        for path in experiments {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            is_wrong |= !line(plain(&name), read(&path), &mut missing);
        }
        if !missing.is_empty() {
            say(format!(
                "\nfor all of them: sudo apt-get install {}",
                packages(&missing)
            ));
        }
        match is_wrong {
            true => Err(Failure::Said),
            false => Ok(()),
        }
    }
}

/// Prints a study with its experiments, and adds its time to that of all; false if an experiment
/// has mistakes.
fn show(study: &Study, missing: &mut Vec<Missing>, all: &mut StudyTimes) -> bool {
    let times = StudyTimes::of(study, &study.files);
    all.add(&times);
    say(format!("{}  {}  ({times})", study.name, study.text.title));
    let mut is_good = true;
    for file in &study.files {
        let read = study
            .experiment(file)
            .map_err(|faults| super::experiment::wrong(&study.path(file), &faults));
        is_good &= line(plain(file), read, missing);
    }
    is_good
}

/// Prints an experiment; false if it has mistakes.
fn line(name: &str, read: CommandResult<Experiment>, missing: &mut Vec<Missing>) -> bool {
    match read {
        Ok(experiment) => {
            let lacks = experiment.missing();
            let lacking = match lacks.is_empty() {
                true => String::new(),
                false => format!("  (not installed: {})", programs_of(&lacks)),
            };
            say(format!("  {name}  {}{lacking}", experiment.title()));
            missing.extend(lacks);
            true
        }
        Err(failure) => {
            say(format!("  {name}  has mistakes"));
            failure.print();
            false
        }
    }
}
