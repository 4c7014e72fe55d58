//! Running the experiments of studies, one after the other, and keeping their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millrace_report::{Unit, number};
use millrace_runs::{
    Experiment, Lab as Found, LabOptions, LabProgress, Study, StudyPart, StudyRecord,
};
use millrace_stats::Verdict;

use super::catalogue::plain;
use super::expected::StudyTimes;
use super::experiment::{leave_out_missing, packages, programs_of, progress_line};
use super::run::is_missed;
use crate::commands::results::{ResultOptions, write_to};
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::output::{Progress, note, say};

/// The file with the text of a study in the folder of its results.
pub(super) const RECORD: &str = "study.json";

/// How studies are run.
pub(super) struct StudyRun<'a> {
    pub(super) out: &'a Path,
    pub(super) is_quick: bool,
    pub(super) results: &'a ResultOptions,
    pub(super) options: LabOptions,
    /// Change of each experiment by the command line.
    pub(super) change: &'a dyn Fn(&mut Experiment) -> CommandResult,
}

/// How an experiment ended.
enum PartEnd {
    Done(Box<Found>),
    Failed(String),
    /// Nothing of it can be started here.
    NotInstalled(String),
}

/// An experiment of a study as it is run.
struct PreparedPart {
    experiment: Experiment,
    left_out: Vec<String>,
}

impl StudyRun<'_> {
    /// Runs the given experiments of each study. One that fails does not keep the others from
    /// running; Ctrl-C does.
    pub(super) fn all(&self, studies: &[(Study, Vec<String>)]) -> CommandResult {
        let events = Events::listen()?;
        let began = base_clock::now();
        let count: usize = studies.iter().map(|(_, files)| files.len()).sum();
        self.announce(studies, count);
        let (mut number, mut lines) = (0, Vec::new());
        let mut worst = Ok(());
        for (study, files) in studies {
            let folder = self.out.join(&study.name);
            fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
            for file in files {
                number += 1;
                if is_set(&events.stop) {
                    continue;
                }
                let place = format!("[{number} of {count}] {}/{}", study.name, plain(file));
                let (line, result) = self.part(study, file, &folder, &place, &events.stop)?;
                note(format!("{place}: {line}"));
                lines.push(format!("{}/{}: {line}", study.name, plain(file)));
                worst = graver(worst, result);
            }
        }
        say(lines.join("\n"));
        let took = Unit::Seconds.format(base_clock::since(began).as_secs_f64());
        let is_stopped = is_set(&events.stop);
        let what = if is_stopped { "stopped" } else { "done" };
        say(format!(
            "{what}, {} of {count} experiments in {took}; the results are in {}, and millrace lab report {} makes pages of them",
            number::count(lines.len() as u64),
            self.out.display(),
            self.out.display()
        ));
        match is_stopped {
            true => Err(Failure::Said),
            false => worst,
        }
    }

    /// Says how long it will take, and which packages would leave nothing out.
    fn announce(&self, studies: &[(Study, Vec<String>)], count: usize) {
        let (mut times, mut missing) = (StudyTimes::default(), Vec::new());
        for (study, files) in studies {
            times.add(&StudyTimes::of(study, files));
            let experiments = files.iter().flat_map(|file| study.experiment(file).ok());
            missing.extend(experiments.flat_map(|experiment| experiment.missing()));
        }
        if times.is_some() {
            note(format!(
                "experiments: {count}, about {}",
                times.in_words(self.is_quick)
            ));
        }
        if !missing.is_empty() {
            note(format!(
                "not installed, and left out: {}\n  sudo apt-get install {}",
                programs_of(&missing),
                packages(&missing)
            ));
        }
    }

    /// Runs one experiment and keeps what it found. Gives the line that says how it went.
    fn part(
        &self,
        study: &Study,
        file: &str,
        folder: &Path,
        place: &str,
        stop: &AtomicBool,
    ) -> CommandResult<(String, CommandResult)> {
        let began = base_clock::now();
        let mut part = StudyPart {
            file: file.to_owned(),
            title: plain(file).to_owned(),
            quick: self.is_quick,
            ..StudyPart::default()
        };
        let end = match self.prepare(study, file, &mut part.title) {
            Err(end) => end,
            Ok(PreparedPart {
                experiment,
                left_out,
            }) => {
                for sentence in &left_out {
                    note(format!("{place}: {sentence}"));
                }
                part.left_out = left_out;
                self.carry_out(&experiment, place, stop)
            }
        };
        let (line, result) = match end {
            PartEnd::Failed(sentence) => {
                let line = format!("no result: {sentence}");
                part.failure = Some(sentence);
                (line, Err(Failure::Said))
            }
            PartEnd::NotInstalled(sentence) => {
                let line = format!("left out: {sentence}");
                part.failure = Some(sentence);
                (line, Ok(()))
            }
            // Nothing was measured before it was stopped, so an earlier result stays.
            PartEnd::Done(found) if found.runs.is_empty() => {
                return Ok(("stopped".to_owned(), Err(Failure::Said)));
            }
            PartEnd::Done(found) => {
                let name = format!("{}.json", plain(file));
                let json = serde_json::to_string_pretty(&found).map_err(Failure::new)?;
                write_to(&folder.join(&name), &json)?;
                part.result = Some(name);
                self.judged(&found)
            }
        };
        keep(study, part, folder)?;
        let took = Unit::Seconds.format(base_clock::since(began).as_secs_f64());
        Ok((format!("{line}, {took}"), result))
    }

    /// Reads an experiment and takes out what cannot be run here.
    fn prepare(
        &self,
        study: &Study,
        file: &str,
        title: &mut String,
    ) -> Result<PreparedPart, PartEnd> {
        let mut experiment = study.experiment(file).map_err(|faults| {
            let faults: Vec<String> = faults
                .iter()
                .map(|fault| format!("{file}:{fault}"))
                .collect();
            PartEnd::Failed(faults.join("; "))
        })?;
        experiment.title().clone_into(title);
        let left_out = leave_out_missing(&mut experiment);
        let missing = experiment.missing();
        if !missing.is_empty() {
            return Err(PartEnd::NotInstalled(format!(
                "not installed: {} (sudo apt-get install {})",
                programs_of(&missing),
                packages(&missing)
            )));
        }
        if self.is_quick {
            let shortened = study.quick.shorten(file, &mut experiment);
            shortened.map_err(|error| PartEnd::Failed(error.to_string()))?;
        }
        match (self.change)(&mut experiment) {
            Ok(()) => Ok(PreparedPart {
                experiment,
                left_out,
            }),
            Err(Failure::Message { message, .. }) => Err(PartEnd::Failed(message)),
            Err(_) => Err(PartEnd::Failed("an option does not fit".to_owned())),
        }
    }

    fn carry_out(&self, experiment: &Experiment, place: &str, stop: &AtomicBool) -> PartEnd {
        let line: Progress = self.results.line();
        line.log(format!(
            "{place}: {}, {} planned",
            experiment.title(),
            minutes(experiment.planned_time())
        ));
        let mut show = |progress: &LabProgress<'_>| {
            line.show(format!("{place}: {}", progress_line(progress)));
        };
        match millrace_runs::lab(experiment, &self.options, &mut show, stop) {
            Ok(found) => PartEnd::Done(Box::new(found)),
            Err(error) => PartEnd::Failed(error.to_string()),
        }
    }

    fn judged(&self, found: &Found) -> (String, CommandResult) {
        let verdict = found.verdict;
        match &found.failure {
            Some(failure) => (format!("{verdict}, {failure}"), Err(Failure::Said)),
            None if !found.complete => (format!("{verdict}, stopped"), Err(Failure::Said)),
            None if verdict == Verdict::Invalid => (verdict.to_string(), Err(Failure::Said)),
            None if is_missed(found) && !self.is_quick => (
                format!("{verdict}, a limit does not hold"),
                Err(Failure::Missed),
            ),
            None => (verdict.to_string(), Ok(())),
        }
    }
}

/// Writes what became of an experiment into the record of its study.
fn keep(study: &Study, part: StudyPart, folder: &Path) -> CommandResult {
    let path: PathBuf = folder.join(RECORD);
    let known = fs::read(&path).ok();
    // A record that cannot be read is of another version, and is written anew.
    let known = known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut record: StudyRecord = known.unwrap_or_default();
    record.name.clone_from(&study.name);
    record.text = study.text.clone();
    record.host = millrace_runs::Host::here();
    record.put(part, &study.files);
    let json = serde_json::to_string_pretty(&record).map_err(Failure::new)?;
    write_to(&path, &json)
}

fn is_set(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// A failure goes before a limit that is missed, and this before nothing.
fn graver(one: CommandResult, other: CommandResult) -> CommandResult {
    match (one, other) {
        (Ok(()), other) => other,
        (Err(Failure::Missed), Err(other)) => Err(other),
        (one, _) => one,
    }
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {} s", seconds / 60, seconds % 60)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
