//! One server of an experiment from its start to its end.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use super::experiment::{Experiment, numbered};
use super::outcome::LabServer;
use super::placeholders::Placeholders;
use super::process::{Launch, Process};
use super::requests::request_to;
use super::spec::ServerSpec;
use super::spec_values::{CommandLine, Ending};
use super::work_folder::{self, WorkFolder};
use crate::run;
use millrace_client::{Order, Plan, Stop};

/// Time between two checks whether a server is ready.
const GLANCE: Duration = Duration::from_millis(20);
/// The longest wait for the response to such a check, and for a program that prints a version or
/// stops a server.
const ASK: Duration = Duration::from_secs(5);

/// A server that is up.
#[derive(Debug)]
pub(super) struct RunningServer<'a> {
    pub(super) spec: &'a ServerSpec,
    /// How it was started, for the report.
    pub(super) record: LabServer,
    pub(super) port: u16,
    /// Memory of each idle connection, once idle connections were opened.
    pub(super) idle_bytes: Option<f64>,
    process: Process,
    values: Placeholders,
}

impl<'a> RunningServer<'a> {
    /// Starts a server and waits until it is ready. `None` if `stop` was set meanwhile.
    pub(super) fn start(
        work_folder: &WorkFolder<'_>,
        spec: &'a ServerSpec,
        beside: &[RunningServer<'_>],
        stop: &AtomicBool,
    ) -> Result<Option<Self>, String> {
        let name = spec.name.get_ref();
        let of_it = |error: String| format!("server {name}: {error}");
        let mut running = Self::launch(work_folder, spec, beside).map_err(of_it)?;
        let ready = running.wait_until_ready(work_folder, stop).map_err(of_it)?;
        if ready {
            running
                .request_each_target(work_folder, stop)
                .map_err(of_it)?;
        }
        Ok(ready.then_some(running))
    }

    /// Requests each of several targets once, so that the server's work for a first request is not
    /// measured.
    fn request_each_target(
        &self,
        work_folder: &WorkFolder<'_>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let experiment = work_folder.experiment;
        let path = work_folder.path(self.spec);
        let targets = experiment.targets(&path, None);
        if targets.is_empty() || !self.spec.measured {
            return Ok(());
        }
        let count = targets.len() as u64;
        let url = self.url(experiment, &numbered(&path, 0));
        let plan = experiment.requests_to(url).with(|plan| {
            plan.length.stop = Stop::Requests(count);
            plan.request.urls = targets;
            plan.request.order = Order::Sequence;
            plan.load.threads = 1;
            plan.request.timeout = ASK;
        });
        let run = run(&plan, None, stop).map_err(|error| error.to_string())?;
        let bad = run.errors.by_kind.iter().find(|(_, bad)| **bad > 0);
        match bad.filter(|_| !stop.load(Ordering::Relaxed)) {
            None => Ok(()),
            Some((kind, bad)) => Err(format!(
                "{bad} of the {count} targets of {path} give no good answer ({kind})"
            )),
        }
    }

    fn launch(
        work_folder: &WorkFolder<'_>,
        spec: &'a ServerSpec,
        beside: &[RunningServer<'_>],
    ) -> Result<Self, String> {
        let name = spec.name.get_ref();
        let folder = work_folder.folder(name)?;
        let port = port(spec.port)?;
        let mut values = work_folder.values();
        values.set("port", port.to_string());
        values.set("dir", folder.to_string_lossy());
        values.set("path", numbered(&work_folder.path(spec), 0));
        let cores = spec.cores.as_ref().map(|cores| cores.get_ref().clone());
        let cores = cores.unwrap_or_default();
        if let Some(core) = cores.first() {
            values.set("core", core.to_string());
        }
        for other in beside {
            let key = format!("port.{}", other.spec.name.get_ref());
            values.set(&key, other.port.to_string());
        }
        let files = work_folder::write(&folder, &spec.files, &values)?;
        let mut launch = work_folder.launch(spec.start.get_ref(), &values)?;
        launch.cores.clone_from(&cores);
        if let Some(cwd) = &spec.cwd {
            launch.cwd = launch.cwd.join(values.fill(cwd.get_ref(), false)?);
        }
        for (key, value) in &spec.env {
            let value = values.fill(value.get_ref(), false)?;
            launch.env.push((key.clone(), value));
        }
        let addresses = spec.addresses.iter();
        let addresses = addresses.map(|address| values.fill(address.get_ref(), false));
        let record = LabServer {
            name: name.clone(),
            about: spec.about.clone(),
            measured: spec.measured,
            command: work_folder.shown(&shell_line(&launch)),
            version: String::new(),
            cores,
            with: spec
                .with
                .iter()
                .map(|name| name.get_ref().clone())
                .collect(),
            addresses: addresses.collect::<Result<_, _>>()?,
            files: files
                .into_iter()
                .map(|mut file| {
                    file.content = work_folder.shown(&file.content);
                    file
                })
                .collect(),
        };
        Ok(Self {
            spec,
            record,
            port,
            idle_bytes: None,
            process: Process::start(&launch)?,
            values,
        })
    }

    /// The URL of a path on this server.
    pub(super) fn url(&self, experiment: &Experiment, path: &str) -> String {
        let scheme = experiment.workload.get_ref().scheme();
        format!("{scheme}://127.0.0.1:{}{path}", self.port)
    }

    /// All its processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.process.pids()
    }

    /// An error if it has ended by itself.
    pub(super) fn must_live(&mut self) -> Result<(), String> {
        match self.process.exited() {
            None => Ok(()),
            Some(status) => Err(format!(
                "server {}: it ended while it was needed ({status}); {}",
                self.record.name,
                self.process.output().last_lines()
            )),
        }
    }

    /// The version that it prints; empty if it prints none.
    pub(super) fn version(&self, work_folder: &WorkFolder<'_>) -> String {
        let Some(line) = &self.spec.version else {
            return String::new();
        };
        let launched = work_folder.launch(line.get_ref(), &self.values);
        let Ok(mut process) = launched.and_then(|launch| Process::start(&launch)) else {
            return String::new();
        };
        if process.wait(ASK).is_none() {
            return String::new();
        }
        let text = process.output().all_output();
        let first = text.lines().find(|line| !line.trim().is_empty());
        first.map(|line| line.trim().to_owned()).unwrap_or_default()
    }

    /// Ends it as its file says, and with force after that.
    pub(super) fn stop(mut self, work_folder: &WorkFolder<'_>) {
        let ending = self.spec.stop.as_ref().map(toml::Spanned::get_ref);
        let signal = match ending {
            None => Some(Signal::TERM),
            Some(Ending::Signal(signal)) => Some(*signal),
            Some(Ending::Command(line)) => {
                let launched = work_folder.launch(line, &self.values);
                // If the command cannot be started, a signal stops the server.
                match launched.and_then(|launch| Process::start(&launch)) {
                    Ok(mut process) => process
                        .wait(ASK)
                        .is_none_or(|status| !status.success())
                        .then_some(Signal::TERM),
                    Err(_) => Some(Signal::TERM),
                }
            }
        };
        self.process.stop(signal);
    }

    /// `false` if `stop` was set before.
    fn wait_until_ready(
        &mut self,
        work_folder: &WorkFolder<'_>,
        stop: &AtomicBool,
    ) -> Result<bool, String> {
        let deadline = base_clock::after(self.spec.ready_timeout.0);
        let experiment = work_folder.experiment;
        let plan = match &self.spec.ready {
            Some(url) => request_to(self.values.fill(url.get_ref(), false)?),
            None => {
                let path = numbered(&work_folder.path(self.spec), 0);
                experiment.requests_to(self.url(experiment, &path))
            }
        };
        if let Some(text) = &self.spec.ready_log {
            self.process.output().await_text(text);
        }
        let mut last = String::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let ready = match &self.spec.ready_log {
                Some(_) => self.process.output().has_awaited_text(),
                None => answers(&plan, stop, &mut last)?,
            };
            if let Some(status) = self.process.exited() {
                return Err(format!(
                    "it ended before it was ready ({status}); {}",
                    self.process.output().last_lines()
                ));
            }
            if ready {
                return Ok(true);
            }
            if base_clock::now() >= deadline {
                return Err(self.never_ready(&plan.target.url, &last));
            }
            self.process.output().wait_for_output(GLANCE);
        }
    }

    fn never_ready(&self, url: &str, last: &str) -> String {
        let seconds = self.spec.ready_timeout.0.as_secs_f64();
        let what = match &self.spec.ready_log {
            Some(text) => format!("it has not written {text:?}"),
            None => format!("{url} gives no good answer ({last})"),
        };
        format!(
            "it is not ready after {seconds} s: {what}; {}",
            self.process.output().last_lines()
        )
    }
}

/// True if a request of `plan` gets a good response; if not, `last` describes the result.
fn answers(plan: &Plan, stop: &AtomicBool, last: &mut String) -> Result<bool, String> {
    let plan = plan.clone().with(|plan| {
        plan.length.stop = Stop::Requests(1);
        plan.load.threads = 1;
        plan.request.timeout = ASK;
    });
    let run = run(&plan, None, stop).map_err(|error| error.to_string())?;
    *last = run
        .errors
        .by_kind
        .iter()
        .find(|(_, count)| **count > 0)
        .map_or_else(|| "no answer".to_owned(), |(kind, _)| kind.clone());
    Ok(run.accounting.good > 0)
}

/// A free port, or the requested one.
fn port(asked: Option<u16>) -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", asked.unwrap_or(0)));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| {
        match (asked, error.kind()) {
            (Some(port), io::ErrorKind::AddrInUse) => format!(
                "port {port} is taken by another program; stop that, or leave `port` out to have a free one"
            ),
            (Some(port), _) => format!("port {port} cannot be used: {error}"),
            (None, _) => format!("no free port: {error}"),
        }
    })
}

/// A command as one would type it.
fn shell_line(launch: &Launch) -> String {
    match &launch.line {
        CommandLine::Shell(line) => line.clone(),
        CommandLine::Program(words) => words.join(" "),
    }
}
