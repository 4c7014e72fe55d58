//! `millrace lab run`: an experiment, or the experiments of studies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millrace_report::{lab_csv, lab_report, lab_tables, text_table};
use millrace_runs::{Experiment, Lab as Found, LabOutcome, LabProgress, Ladder, QuickRuns, Study};
use millrace_stats::Verdict;

use super::catalogue::{Catalogue, Chosen};
use super::experiment::{leave_out_missing, not_installed, options, progress_line, read};
use super::studies::StudyRun;
use crate::commands::results::ResultOptions;
use crate::commands::values;
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::output::note;

/// Run an experiment or a study: start each server in turn, measure it, and compare them
///
/// Exit status: 0 when every run was made and counts and every limit of the file holds, 1 when a
/// server failed, a level of a server has only INVALID runs, or the experiment was stopped, 3 when
/// a limit is missed, or could not be shown to hold. What there is by then is written in each case.
/// Of a study, servers that are not installed are left out, and the other experiments go on after
/// one that failed; with --quick its limits do not count.
#[derive(Args)]
pub(super) struct Run {
    /// A study or an experiment by its name, as `lab list` has it, or an experiment's file, such as
    /// lab/experiments/static-8k.toml
    #[arg(value_name = "NAME|FILE", required_unless_present = "all")]
    what: Option<String>,
    /// Run every study; what is not installed is left out
    #[arg(long, conflicts_with = "what")]
    all: bool,
    /// Make short and few runs, as the study says: to see that everything works
    #[arg(long)]
    quick: bool,
    /// Keep the results of studies in this folder, for `lab report`
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// The folder with studies/ and experiments/ [default: lab, here or in a folder above]
    #[arg(long, value_name = "DIR")]
    lab: Option<PathBuf>,
    /// Measure only these servers, by their names with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure at these numbers of connections instead of the file's, such as 1,32; limits at
    /// others are not asked about
    #[arg(short, long, value_name = "LEVELS")]
    connections: Option<Ladder>,
    /// Leave out servers whose programs are not installed, as a study does
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

impl Run {
    pub(super) fn run(self) -> CommandResult {
        let catalogue = Catalogue::find(self.lab.as_deref());
        let chosen = match &self.what {
            Some(name) => catalogue.choose(name)?,
            None => {
                let all = catalogue.all()?;
                let with_files = |study: Study| (study.clone(), study.files);
                let all: Vec<_> = all.into_iter().map(with_files).collect();
                return self.studies(&all);
            }
        };
        match chosen {
            Chosen::File(path) => self.file(&path),
            Chosen::Study(study, files) => self.studies(&[(*study, files)]),
        }
    }

    /// Runs studies, each with some of its experiments.
    fn studies(&self, studies: &[(Study, Vec<String>)]) -> CommandResult {
        if !self.only.is_empty() || self.connections.is_some() || self.results.has_files() {
            return Err(Failure::new(
                "--only, --connections, --json, --csv, --report and --svg are for a single file",
            )
            .hint(format!(
                "the results of a study are kept in {}; millrace lab report makes pages of them",
                self.out.display()
            )));
        }
        let run = StudyRun {
            out: &self.out,
            is_quick: self.quick,
            results: &self.results,
            options: options(self.keep)?,
            change: &|experiment| self.change(experiment),
        };
        run.all(studies)
    }

    /// Runs the experiment of a file.
    fn file(&self, path: &Path) -> CommandResult {
        let experiment = self.experiment(path)?;
        self.results.teller()?;
        let options = options(self.keep)?;
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
    fn experiment(&self, path: &Path) -> CommandResult<Experiment> {
        let mut experiment = read(path)?;
        if self.quick {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let quick = QuickRuns::default();
            quick
                .shorten(&file, &mut experiment)
                .map_err(Failure::new)?;
        }
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
            for sentence in leave_out_missing(&mut experiment) {
                note(format!("note: {sentence}"));
            }
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
        self.change(&mut experiment)?;
        Ok(experiment)
    }

    /// Sets what the command line says of all runs.
    fn change(&self, experiment: &mut Experiment) -> CommandResult {
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
        Ok(())
    }
}

/// True if a limit is missed or undecided.
pub(super) fn is_missed(found: &Found) -> bool {
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
