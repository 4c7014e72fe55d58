//! The file of an experiment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

use super::fault::Fault;
use super::form::{Ending, Line, Time};
use super::outcome::{LabLevel, Text};
use super::programs::{self, Missing};
use super::{check, fill::Values};
use crate::Ladder;

/// An experiment, read and checked; nothing of it has been started. Its format is in `docs/experiments.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub(super) title: String,
    #[serde(default)]
    pub(super) question: String,
    pub(super) baseline: Option<Spanned<String>>,
    #[serde(default = "five")]
    pub(super) repeats: Spanned<usize>,
    #[serde(default)]
    pub(super) order: Sequence,
    pub(super) cross_check: Option<Spanned<Checker>>,
    pub(super) workload: Spanned<Workload>,
    pub(super) ladder: Option<Spanned<Levels>>,
    #[serde(default, rename = "file")]
    pub(super) files: Vec<Written>,
    #[serde(default)]
    pub(super) prepare: Vec<Prepare>,
    #[serde(default, rename = "server")]
    pub(super) servers: Vec<Spanned<Server>>,
    /// The folder of the file.
    #[serde(skip)]
    pub(super) here: PathBuf,
    /// The plan that the workload names.
    #[serde(skip)]
    pub(super) asked: Option<Text>,
}

/// In which order the servers are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sequence {
    /// Forwards, then backwards, and so on: A B B A. What drifts on the machine meets all alike.
    #[default]
    Interleaved,
    /// All repeats of one server after another.
    Sequence,
}

/// The other client that stands beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Checker {
    Wrk,
}

/// What is asked of every server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    #[serde(default = "root")]
    pub(super) path: Spanned<String>,
    /// A file of sessions, which are asked for instead of the path.
    pub(super) plan: Option<Spanned<String>>,
    #[serde(default = "one")]
    pub(super) connections: usize,
    #[serde(default = "one")]
    pub(super) depth: usize,
    pub(super) rate: Option<f64>,
    #[serde(default)]
    pub(super) arrivals: Arrivals,
    #[serde(default = "second")]
    pub(super) warmup: Time,
    #[serde(default = "five_seconds")]
    pub(super) duration: Time,
    #[serde(default = "five_seconds")]
    pub(super) timeout: Time,
    #[serde(default)]
    pub(super) headers: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) expect: Vec<u16>,
    #[serde(default)]
    pub(super) cores: Option<Spanned<Vec<usize>>>,
}

/// How arrivals of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Arrivals {
    #[default]
    Constant,
    Poisson,
}

/// The levels at which each server is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Levels {
    #[serde(default, deserialize_with = "ladder")]
    pub(super) connections: Option<Ladder>,
    #[serde(default, deserialize_with = "ladder")]
    pub(super) rates: Option<Ladder>,
}

/// A file that is written before the experiment, or before a server starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// Within the folder that it belongs to.
    pub(super) path: Spanned<String>,
    pub(super) content: Option<Spanned<String>>,
    /// So many bytes of letters instead of a text.
    pub(super) bytes: Option<usize>,
}

/// A step that is done once before anything is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prepare {
    pub(super) run: Spanned<Line>,
    /// Servers that are up while it runs.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
}

/// One server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: Spanned<String>,
    /// A word for the report.
    #[serde(default)]
    pub(super) about: String,
    pub(super) start: Spanned<Line>,
    /// Asked for until it answers; the workload's URL if neither this nor `ready_log` is given.
    pub(super) ready: Option<Spanned<String>>,
    /// Waited for in its output.
    pub(super) ready_log: Option<String>,
    #[serde(default = "half_a_minute")]
    pub(super) ready_timeout: Time,
    pub(super) stop: Option<Spanned<Ending>>,
    pub(super) cwd: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) env: std::collections::BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) files: Vec<Written>,
    pub(super) cores: Option<Spanned<Vec<usize>>>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
    /// Prints its version.
    pub(super) version: Option<Spanned<Line>>,
    /// Instead of the kernel's choice.
    pub(super) port: Option<u16>,
    /// Instead of the workload's.
    pub(super) path: Option<Spanned<String>>,
    /// Stays up throughout.
    #[serde(default)]
    pub(super) keep: bool,
    /// Servers that are up while it is.
    #[serde(default)]
    pub(super) with: Vec<Spanned<String>>,
    /// `false` for what only stands behind others.
    #[serde(default = "yes")]
    pub(super) measured: bool,
}

fn five() -> Spanned<usize> {
    Spanned::new(0..0, 5)
}

fn root() -> Spanned<String> {
    Spanned::new(0..0, "/".to_owned())
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn second() -> Time {
    Time(Duration::from_secs(1))
}

fn five_seconds() -> Time {
    Time(Duration::from_secs(5))
}

fn half_a_minute() -> Time {
    Time(Duration::from_secs(30))
}

fn ladder<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Ladder>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

impl Experiment {
    /// Reads an experiment from the text of its file, which lies in the folder `here`.
    ///
    /// # Errors
    /// Everything that is wrong with it and can be seen without starting anything; a text that is no TOML, or has a
    /// wrong key, gives only its first mistake.
    pub fn read(text: &str, here: &Path) -> Result<Self, Vec<Fault>> {
        let read: Result<Self, toml::de::Error> = toml::from_str(text);
        let mut experiment = read.map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            vec![Fault::at(text, &place, error.message())]
        })?;
        experiment.here = here.to_owned();
        experiment.read_plan(text).map_err(|fault| vec![fault])?;
        let faults = check::faults(&experiment, text);
        if faults.is_empty() {
            Ok(experiment)
        } else {
            Err(faults)
        }
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The names of the servers that are measured, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.measured().map(|server| server.name.get_ref().as_str())
    }

    /// How often each server is measured at each level.
    pub fn repeats(&self) -> usize {
        *self.repeats.get_ref()
    }

    /// Programs that it needs and that are not installed here.
    pub fn missing(&self) -> Vec<Missing> {
        programs::missing(self)
    }

    /// The same experiment with other repeats, such as one for a trial.
    pub fn set_repeats(&mut self, repeats: usize) {
        self.repeats = Spanned::new(self.repeats.span(), repeats);
    }

    /// The same experiment with runs of another length.
    pub fn set_duration(&mut self, duration: Duration) {
        self.workload.get_mut().duration = Time(duration);
    }

    /// The same experiment with another warm-up before each run.
    pub fn set_warmup(&mut self, warmup: Duration) {
        self.workload.get_mut().warmup = Time(warmup);
    }

    /// Leaves only the servers for which `wanted` holds, and those that they need. Without its baseline the experiment
    /// has no ratios.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        for server in &mut self.servers {
            let server = server.get_mut();
            server.measured &= wanted(server.name.get_ref());
        }
        let needed: Vec<String> = self
            .servers
            .iter()
            .filter(|server| server.get_ref().measured)
            .flat_map(|server| &server.get_ref().with)
            .chain(self.prepare.iter().flat_map(|step| &step.with))
            .map(|name| name.get_ref().clone())
            .collect();
        self.servers.retain(|server| {
            let server = server.get_ref();
            server.measured || needed.contains(server.name.get_ref())
        });
        let names: Vec<String> = self.names().map(str::to_owned).collect();
        self.baseline
            .take_if(|baseline| !names.contains(baseline.get_ref()));
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = &Server> {
        let servers = self.servers.iter().map(Spanned::get_ref);
        servers.filter(|server| server.measured)
    }

    pub(super) fn server(&self, name: &str) -> Option<&Server> {
        let mut servers = self.servers.iter().map(Spanned::get_ref);
        servers.find(|server| server.name.get_ref() == name)
    }

    /// The levels, one if there is no ladder.
    pub(super) fn levels(&self) -> Vec<LabLevel> {
        let workload = self.workload.get_ref();
        let same = LabLevel {
            connections: workload.connections,
            rate: workload.rate,
        };
        let Some(levels) = self.ladder.as_ref().map(Spanned::get_ref) else {
            return vec![same];
        };
        let by_rate = levels.rates.iter().flat_map(Ladder::levels);
        let by_rate = by_rate.map(|&rate| LabLevel {
            rate: Some(rate),
            ..same
        });
        // `check` has seen that these are whole numbers.
        let counts = levels.connections.as_ref().map(Ladder::whole);
        let counts = counts.and_then(Result::ok).unwrap_or_default();
        let by_count = counts.into_iter().map(|connections| LabLevel {
            connections,
            ..same
        });
        by_rate.chain(by_count).collect()
    }

    /// The path that is asked of `server`.
    pub(super) fn path<'a>(&'a self, server: &'a Server) -> &'a str {
        let own = server.path.as_ref().map(Spanned::get_ref);
        own.unwrap_or_else(|| self.workload.get_ref().path.get_ref())
    }

    /// The values of a server's placeholders that are known before anything runs: names without their values.
    pub(super) fn placeholders(server: Option<&Server>, with: &[Spanned<String>]) -> Values {
        let mut values = Values::default();
        for name in ["work", "here", "millpond"] {
            values.set(name, "");
        }
        if let Some(server) = server {
            values.set("port", "");
            values.set("dir", "");
            if server.cores.is_some() {
                values.set("core", "");
            }
        }
        for name in with {
            values.set(&format!("port.{}", name.get_ref()), "");
        }
        values
    }
}
