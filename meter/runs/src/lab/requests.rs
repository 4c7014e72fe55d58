//! The requests of an experiment: one path, or the sessions of a plan.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::experiment::Experiment;
use super::fault::Fault;
use super::outcome::{LabLevel, Text};
use super::source::ExperimentText;
use super::spec::ArrivalSpec;
use millrace_client::{Order, Plan, Process, Replay, Schedule, Trust, Workload};

/// A request to `url`. Every certificate is accepted, because the experiment starts the servers.
pub(super) fn request_to(url: String) -> Plan {
    let is_secure = url.starts_with("https:");
    Plan::new(url).with(|plan| {
        if is_secure {
            plan.target.trust = Trust::Anyone;
        }
    })
}

impl Experiment {
    /// Reads the plan that the workload names, from the folder of the experiment's file. `source`
    /// gives the position of a mistake.
    pub(super) fn read_plan(&mut self, source: &ExperimentText) -> Result<(), Fault> {
        let Some(name) = &self.workload.get_ref().plan else {
            return Ok(());
        };
        let path = self.here.join(name.get_ref());
        let content = fs::read_to_string(&path).map_err(|error| {
            let sentence = format!("cannot read {}: {error}", path.display());
            source.fault(&name.span(), sentence)
        })?;
        self.asked = Some(Text {
            path: name.get_ref().clone(),
            content,
        });
        Ok(())
    }

    /// The sessions of the plan, made for the server of `base`; none without a plan.
    ///
    /// # Errors
    /// The first mistake in the plan, or in a file that it names, with its place in that file.
    pub(super) fn sessions(&self, base: &Plan) -> Result<Option<Arc<Workload>>, String> {
        let Some(Text { path, content }) = &self.asked else {
            return Ok(None);
        };
        let path: PathBuf = self.here.join(path);
        let workload = Workload::parse(content, &path, base).map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(workload)))
    }

    /// Lets `plan` send the requests of the log that the workload names, which is at `path`, at
    /// their own times.
    ///
    /// # Errors
    /// The log cannot be read, or has nothing to send.
    pub(super) fn replay(&self, plan: &mut Plan, path: &Path) -> Result<(), String> {
        let workload = self.workload.get_ref();
        let speed = workload
            .speed
            .as_ref()
            .map_or(1.0, |speed| *speed.get_ref());
        let replay = Replay::from_log(path, false).map_err(|error| error.to_string())?;
        let (sent, times) = replay.workload(plan).map_err(|error| error.to_string())?;
        let schedule = Schedule::recorded(&times, speed).map_err(|error| error.to_string())?;
        plan.target.url = sent.url().to_owned();
        plan.request.workload = Some(Arc::new(sent));
        plan.load.schedule = Some(schedule);
        Ok(())
    }

    /// Requests to `url`, over the protocol of the workload.
    pub(super) fn requests_to(&self, url: String) -> Plan {
        let workload = self.workload.get_ref();
        request_to(url).with(|plan| {
            plan.target.http2 = workload.http2;
            plan.target.full_handshakes = workload.full_handshakes;
            workload.set_request(plan);
        })
    }

    /// The run of one level against `url`, or against `targets` there if there are any, without its
    /// warm-up and without the sessions of a plan.
    pub(super) fn plan(&self, url: String, targets: Vec<String>, level: LabLevel) -> Plan {
        let workload = self.workload.get_ref();
        let field = |field: &toml::Spanned<String>| {
            let (name, value) = field.get_ref().split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        self.requests_to(url).with(|plan| {
            plan.request.urls = targets;
            plan.request.order = Order::Random(1);
            plan.load.connections = level.connections;
            plan.load.depth = workload.depth;
            plan.length.stop = workload.stop(workload.duration());
            workload.set_habits(plan);
            plan.request.timeout = workload.timeout.0;
            plan.request.headers = workload.headers.iter().filter_map(field).collect();
            plan.request.expect = workload.expect.clone();
            plan.request.per_connection = workload.per_connection;
            plan.load.cores = workload.cores.as_ref().map(|cores| cores.get_ref().clone());
            plan.load.spin = workload.spins();
            let process = match workload.arrivals {
                ArrivalSpec::Constant => Process::Constant,
                ArrivalSpec::Poisson => Process::Poisson(1),
            };
            // Rates of the file are of requests; a schedule begins sessions.
            let session = workload.session.unwrap_or(1).max(1) as f64;
            plan.load.schedule = level
                .rate
                .map(|rate| Schedule::new(rate / session, process));
        })
    }
}
