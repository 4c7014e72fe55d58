//! An experiment from its first step to its figures.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toml::Spanned;

use super::doubts::doubts;
use super::experiment::Experiment;
use super::findings::{findings, judge};
use super::limit::limits;
use super::measure::{LevelRun, measure};
use super::outcome::{Lab, LabLevel, LabRun, LabServer, Text};
use super::process::{Process, Remover};
use super::progress::{LabPosition, LabProgress, TimeEstimate};
use super::schedule::{self, ServerTurn, turns};
use super::server::RunningServer;
use super::spec::{PrepareStep, Sequence, ServerSpec};
use super::work_folder::WorkFolder;
use crate::Host;
use base_clock::Nanos;
use millrace_client::Error;
use millrace_stats::Verdict;

/// Time between two checks of a step of the preparation.
const GLANCE: Duration = Duration::from_millis(200);

/// The programs of this project that an experiment can start.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The value of `{millpond}`: the web server.
    pub millpond: PathBuf,
    /// The value of `{millrace}`: this program.
    pub millrace: PathBuf,
}

/// How an experiment is carried out.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The programs of this project that an experiment can start.
    pub programs: Programs,
    /// Keep the temporary folder with its files and logs.
    pub keep: bool,
    /// The command line by which the experiment can be made again.
    pub command: String,
}

/// Carries out an experiment. It ends early, with the results so far, when `stop` is set or a
/// server fails; no server keeps running. `progress` is called about five times a second.
///
/// # Errors
/// A failure before the first run was complete, so there is no result. The sentence names the
/// server or the step, and has the end of its output.
pub fn lab(
    experiment: &Experiment,
    options: &LabOptions,
    progress: &mut dyn FnMut(&LabProgress<'_>),
    stop: &AtomicBool,
) -> Result<Lab, Error> {
    let cannot = |source| Error::System {
        what: "make a temporary folder",
        source,
    };
    let mut builder = tempfile::Builder::new();
    // Servers that drop their privileges read in this folder.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    builder.prefix("millrace-lab-").permissions(permissions);
    let mut folder = builder.tempdir().map_err(cannot)?;
    folder.disable_cleanup(options.keep);
    let _remover = match options.keep {
        true => None,
        false => Some(Remover::of(folder.path()).map_err(cannot)?),
    };
    let mut bench = ExperimentRun {
        work_folder: WorkFolder::new(experiment, folder.path(), &options.programs),
        experiment,
        levels: experiment.levels(),
        started: base_clock::now(),
        started_unix_s: base_clock::unix_nanos() / base_clock::SECOND,
        kept: Vec::new(),
        records: BTreeMap::new(),
        files: Vec::new(),
        runs: Vec::new(),
        planned: schedule::runs(experiment),
        pace: TimeEstimate::begin(schedule::time(experiment)),
        progress,
        stop,
    };
    let ended = bench.carry_out();
    bench.stop_all();
    let failure = ended.err();
    match failure {
        Some(sentence) if bench.runs.is_empty() => Err(Error::Plan(sentence)),
        failure => Ok(bench.conclude(failure, options.command.clone())),
    }
}

struct ExperimentRun<'a, 'p> {
    work_folder: WorkFolder<'a>,
    experiment: &'a Experiment,
    levels: Vec<LabLevel>,
    started: Nanos,
    started_unix_s: u64,
    /// Servers that stay up, between their turns.
    kept: Vec<RunningServer<'a>>,
    records: BTreeMap<String, LabServer>,
    files: Vec<Text>,
    runs: Vec<LabRun>,
    /// Runs to be made.
    planned: usize,
    pace: TimeEstimate,
    progress: &'p mut dyn FnMut(&LabProgress<'_>),
    stop: &'a AtomicBool,
}

impl<'a> ExperimentRun<'a, '_> {
    fn carry_out(&mut self) -> Result<(), String> {
        let files = self.work_folder.write_shared()?;
        let shown = |file: Text| Text {
            content: self.work_folder.shown(&file.content),
            ..file
        };
        self.files = files.into_iter().map(shown).collect();
        for (number, step) in self.experiment.prepare.iter().enumerate() {
            self.prepare(number + 1, step)?;
            // Servers that are already up have read the files before this step.
            self.end_block();
        }
        self.pace = TimeEstimate::begin(schedule::time(self.experiment));
        let mut repeat = 0;
        for turn in turns(self.experiment) {
            if turn.repeat != repeat && self.experiment.order == Sequence::Blocks {
                self.end_block();
                self.begin_block(turn.repeat)?;
                repeat = turn.repeat;
            }
            if self.is_stopping() {
                return Ok(());
            }
            self.turn(&turn)?;
        }
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn prepare(&mut self, number: usize, step: &'a PrepareStep) -> Result<(), String> {
        let what = format!("step {number} of the preparation");
        let Some(beside) = self.start_servers(&step.with)? else {
            return Ok(());
        };
        let mut values = self.work_folder.values();
        for other in &beside {
            let key = format!("port.{}", other.spec.name.get_ref());
            values.set(&key, other.port.to_string());
        }
        let launch = self.work_folder.launch(step.run.get_ref(), &values)?;
        let mut process = Process::start(&launch).map_err(|error| format!("{what}: {error}"))?;
        let status = loop {
            match process.wait(GLANCE) {
                Some(status) => break status,
                None if self.is_stopping() => return Ok(()),
                None => self.show(&what, None, 1),
            }
        };
        beside.into_iter().for_each(|other| self.stop_server(other));
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "{what} failed ({status}); {}",
                process.output().last_lines()
            ))
        }
    }

    /// Starts a server if it is not up, measures it, and stops it if its turn is over with that.
    fn turn(&mut self, turn: &ServerTurn<'a>) -> Result<(), String> {
        let (spec, repeat) = (turn.server, turn.repeat);
        if let Some(&level) = turn.levels.first() {
            self.work_folder.set_level(level);
        }
        let Some(mut beside) = self.start_servers(&spec.with)? else {
            return Ok(());
        };
        self.show(spec.name.get_ref(), None, repeat);
        let Some(mut subject) = self.start_server(spec, &beside)? else {
            return Ok(());
        };
        for &level in &turn.levels {
            let level_run = LevelRun {
                work_folder: &self.work_folder,
                subject: &mut subject,
                beside: &mut beside,
                level,
                repeat,
                pass: turn.pass,
                duration: turn.duration(self.experiment),
                is_checked: turn.is_checked,
                is_cold: turn.is_cold,
                stop: self.stop,
            };
            let place = self.place();
            match measure_showing(level_run, &mut *self.progress, &place)? {
                Some(run) => self.runs.push(run),
                None => break,
            }
            self.pace.end_run(turn.run_time(self.experiment));
        }
        self.stop_server(subject);
        beside.into_iter().for_each(|other| self.stop_server(other));
        Ok(())
    }

    /// The servers of these names, up. `None` if it was stopped.
    fn start_servers(
        &mut self,
        names: &[Spanned<String>],
    ) -> Result<Option<Vec<RunningServer<'a>>>, String> {
        let experiment = self.experiment;
        let mut up = Vec::new();
        for name in names {
            let spec = experiment
                .server(name.get_ref())
                .ok_or_else(|| format!("there is no server {:?}", name.get_ref()))?;
            match self.start_server(spec, &up)? {
                Some(running) => up.push(running),
                None => return Ok(None),
            }
        }
        Ok(Some(up))
    }

    fn start_server(
        &mut self,
        spec: &'a ServerSpec,
        beside: &[RunningServer<'a>],
    ) -> Result<Option<RunningServer<'a>>, String> {
        let kept = self
            .kept
            .iter()
            .position(|running| running.spec.name == spec.name);
        if let Some(place) = kept {
            let mut running = self.kept.swap_remove(place);
            running.must_live()?;
            return Ok(Some(running));
        }
        let Some(mut running) = RunningServer::start(&self.work_folder, spec, beside, self.stop)?
        else {
            return Ok(None);
        };
        let name = spec.name.get_ref();
        running.record.version = match self.records.get(name) {
            Some(record) => record.version.clone(),
            None => running.version(&self.work_folder),
        };
        self.records.insert(name.clone(), running.record.clone());
        Ok(Some(running))
    }

    fn stop_server(&mut self, running: RunningServer<'a>) {
        if running.spec.keep || self.experiment.order == Sequence::Blocks {
            self.kept.push(running);
        } else {
            running.stop(&self.work_folder);
        }
    }

    /// Starts every server before the first turn of a block, so that no turn takes longer than the
    /// others.
    fn begin_block(&mut self, repeat: usize) -> Result<(), String> {
        let experiment = self.experiment;
        for spec in experiment.measured() {
            let Some(beside) = self.start_servers(&spec.with)? else {
                return Ok(());
            };
            self.show(spec.name.get_ref(), None, repeat);
            let subject = self.start_server(spec, &beside)?;
            let up = subject.into_iter().chain(beside);
            up.for_each(|running| self.stop_server(running));
        }
        Ok(())
    }

    /// Stops the servers of one block. The next block has new processes, so differences between
    /// starts of a server are part of the differences between blocks.
    fn end_block(&mut self) {
        let (stay, over) = std::mem::take(&mut self.kept)
            .into_iter()
            .partition(|running| running.spec.keep);
        self.kept = stay;
        let over: Vec<RunningServer<'a>> = over;
        over.into_iter()
            .for_each(|running| running.stop(&self.work_folder));
    }

    fn stop_all(&mut self) {
        for running in std::mem::take(&mut self.kept) {
            running.stop(&self.work_folder);
        }
    }

    fn show(&mut self, doing: &str, level: Option<LabLevel>, repeat: usize) {
        let place = self.place();
        (self.progress)(&place.progress(doing, level, repeat));
    }

    fn place(&self) -> LabPosition {
        LabPosition {
            repeats: self.experiment.repeats(),
            runs: self.planned,
            done: self.runs.len(),
            pace: self.pace,
        }
    }

    fn conclude(self, failure: Option<String>, command: String) -> Lab {
        let experiment = self.experiment;
        let workload = experiment.workload.get_ref();
        let names: Vec<&str> = experiment.names().collect();
        let baseline = experiment.baseline.as_ref().map(Spanned::get_ref);
        let base = baseline.map(String::as_str);
        let checker = experiment.cross_check.as_ref();
        let other = checker.map_or("", |checker| checker.get_ref().name());
        let findings = findings(&self.runs, &names, &self.levels, base);
        let asked = experiment.limits.iter().map(Spanned::get_ref);
        let limits = limits(asked, &self.runs, &names, base, &self.levels);
        let (mut verdict, mut reasons) = judge(&findings, &self.runs);
        let complete = self.runs.len() == self.planned;
        let doubts = doubts(experiment, complete);
        if !doubts.is_empty() && verdict == Verdict::Valid {
            verdict = Verdict::Suspect;
        }
        reasons.splice(0..0, doubts);
        let mut records = self.records;
        let in_order = experiment.servers.iter();
        let servers = in_order.filter_map(|server| records.remove(server.get_ref().name.get_ref()));
        let cores = workload.cores.as_ref().map(|cores| cores.get_ref().clone());
        Lab {
            verdict,
            reasons,
            complete,
            failure,
            title: experiment.title.clone(),
            question: experiment.question.trim().to_owned(),
            baseline: baseline.cloned(),
            servers: servers.collect(),
            levels: self.levels,
            repeats: experiment.repeats(),
            duration_s: workload.duration().as_secs_f64(),
            warmup_s: workload.warmup.0.as_secs_f64(),
            depth: workload.depth,
            protocol: workload.protocol().to_owned(),
            cross_check: checker.map(|_| other.to_owned()),
            client_habits: workload.habits(),
            session: workload.session,
            variable: experiment.variable().map(str::to_owned),
            graph: experiment
                .graph
                .iter()
                .map(|figure| *figure.get_ref())
                .collect(),
            over_time: experiment
                .over_time
                .iter()
                .map(|figure| *figure.get_ref())
                .collect(),
            started_unix_s: self.started_unix_s,
            took_s: base_clock::since(self.started).as_secs_f64(),
            client_cores: cores.unwrap_or_default(),
            findings,
            limits,
            runs: self.runs,
            files: self.files,
            plan: experiment.asked.clone(),
            host: Host::here(),
            command,
        }
    }
}

/// Measures, and reports the progress.
fn measure_showing(
    mut level_run: LevelRun<'_, '_>,
    progress: &mut dyn FnMut(&LabProgress<'_>),
    place: &LabPosition,
) -> Result<Option<LabRun>, String> {
    let (name, level, repeat) = (
        level_run.subject.record.name.clone(),
        level_run.level,
        level_run.repeat,
    );
    measure(&mut level_run, &mut || {
        progress(&place.progress(&name, Some(level), repeat));
    })
}
