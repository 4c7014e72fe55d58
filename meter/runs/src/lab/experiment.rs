//! The file of an experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::fault::Fault;
use super::figure::LabFigure;
use super::outcome::{LabLevel, Text};
use super::programs::{self, Missing};
use super::source::ExperimentText;
use super::spec::{
    BEST, FileSpec, LadderSpec, LimitSpec, OtherProgram, PrepareStep, Sequence, ServerSpec,
    WorkloadSpec,
};
use super::{check, placeholders::Placeholders};
use crate::Ladder;

/// An experiment, read and checked; nothing is started yet. Its format is in
/// `docs/reference/experiments.md`.
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
    pub(super) cross_check: Option<Spanned<OtherProgram>>,
    /// [`ExperimentText`] has put the texts of these files behind this one's.
    #[serde(default, rename = "include")]
    _include: IgnoredAny,
    /// Placeholders of its own.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Spanned<String>>,
    pub(super) workload: Spanned<WorkloadSpec>,
    pub(super) ladder: Option<Spanned<LadderSpec>>,
    #[serde(default, rename = "file")]
    pub(super) files: Vec<FileSpec>,
    #[serde(default)]
    pub(super) prepare: Vec<PrepareStep>,
    #[serde(default, rename = "server")]
    pub(super) servers: Vec<Spanned<ServerSpec>>,
    /// Figures to be drawn over the levels; none: the usual ones.
    #[serde(default)]
    pub(super) graph: Vec<Spanned<LabFigure>>,
    /// Figures to be drawn over the time of a run.
    #[serde(default)]
    pub(super) over_time: Vec<Spanned<LabFigure>>,
    /// True if the machine is sampled beside each run.
    #[serde(default)]
    pub(super) probe: bool,
    #[serde(default, rename = "limit")]
    pub(super) limits: Vec<Spanned<LimitSpec>>,
    /// The folder of the file.
    #[serde(skip)]
    pub(super) here: PathBuf,
    /// The plan that the workload names.
    #[serde(skip)]
    pub(super) asked: Option<Text>,
}

fn five() -> Spanned<usize> {
    Spanned::new(0..0, 5)
}

impl Experiment {
    /// Reads an experiment from the text of its file, which is in the folder `here`.
    ///
    /// # Errors
    /// All mistakes that can be found without starting anything. A text that is not TOML, or that
    /// has a wrong key, gives only its first mistake.
    pub fn read(text: &str, here: &Path) -> Result<Self, Vec<Fault>> {
        let source = ExperimentText::gather(text, here).map_err(|fault| vec![fault])?;
        let read: Result<Self, toml::de::Error> = toml::from_str(source.text());
        let mut experiment = read.map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            vec![source.fault(&place, error.message())]
        })?;
        experiment.here = here.to_owned();
        experiment.read_plan(&source).map_err(|fault| vec![fault])?;
        let faults = check::faults(&experiment, &source);
        if faults.is_empty() {
            Ok(experiment)
        } else {
            Err(faults)
        }
    }

    /// The title.
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

    /// Keeps only the servers for which `wanted` holds, and those that they need. Without its
    /// baseline the experiment has no ratios, and limits on removed servers are not checked.
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
        self.limits.retain(|limit| {
            let limit = limit.get_ref();
            let against = limit.against.get_ref();
            let has_other =
                limit.metric.is_of_client() || against == BEST || names.contains(against);
            names.contains(limit.server.get_ref()) && has_other
        });
    }

    /// True if a graph shows this figure.
    pub(super) fn shows(&self, figure: LabFigure) -> bool {
        self.graph.iter().any(|shown| *shown.get_ref() == figure)
    }

    /// True if the server `name` is one of `servers`, or is measured with one of them behind it.
    pub fn needs(&self, name: &str, servers: &[String]) -> bool {
        let with = self.server(name).map(|server| &server.with);
        let with = with
            .into_iter()
            .flatten()
            .map(|other| other.get_ref().as_str());
        std::iter::once(name)
            .chain(with)
            .any(|needed| servers.iter().any(|server| server == needed))
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = &ServerSpec> {
        let servers = self.servers.iter().map(Spanned::get_ref);
        servers.filter(|server| server.measured)
    }

    pub(super) fn server(&self, name: &str) -> Option<&ServerSpec> {
        let mut servers = self.servers.iter().map(Spanned::get_ref);
        servers.find(|server| server.name.get_ref() == name)
    }

    /// The levels, one if there is no ladder.
    pub(super) fn levels(&self) -> Vec<LabLevel> {
        let workload = self.workload.get_ref();
        let same = LabLevel {
            connections: workload.connections,
            rate: workload.rate,
            ..LabLevel::default()
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
        let whole = |ladder: &Option<Ladder>| {
            let levels = ladder.as_ref().map(Ladder::whole);
            levels.and_then(Result::ok).unwrap_or_default()
        };
        let by_connections = whole(&levels.connections).into_iter();
        let by_connections = by_connections.map(|connections| LabLevel {
            connections,
            ..same
        });
        let by_count = whole(&levels.counts).into_iter().map(|count| LabLevel {
            count: Some(count),
            ..same
        });
        let values = levels.values.iter().flat_map(Spanned::get_ref);
        let by_value = values.map(|&value| LabLevel {
            value: Some(value),
            ..same
        });
        by_rate
            .chain(by_connections)
            .chain(by_count)
            .chain(by_value)
            .collect()
    }

    /// The path that is requested from `server`.
    pub(super) fn path<'a>(&'a self, server: &'a ServerSpec) -> &'a str {
        let own = server.path.as_ref().map(Spanned::get_ref);
        own.unwrap_or_else(|| self.workload.get_ref().path.get_ref())
    }

    /// Number of connections to `server` that are open and ask for nothing while it is measured.
    pub(super) fn idle<'a>(&'a self, server: &'a ServerSpec) -> Option<&'a Spanned<usize>> {
        server
            .idle
            .as_ref()
            .or(self.workload.get_ref().idle.as_ref())
    }

    /// The name of the placeholder that has another value at each level, if there is one.
    pub(super) fn variable(&self) -> Option<&str> {
        let ladder = self.ladder.as_ref()?.get_ref();
        ladder.variable.as_ref().map(|name| name.get_ref().as_str())
    }

    /// The number of paths, with a ladder of it the highest; `None` if the path is one.
    pub(super) fn most_paths(&self) -> Option<usize> {
        let ladder = self.ladder.as_ref();
        let counts = ladder.and_then(|ladder| ladder.get_ref().counts.as_ref());
        let highest = counts.and_then(|counts| counts.whole().ok()?.last().copied());
        highest.or(self.workload.get_ref().count)
    }

    /// The targets of `path` at a level: one for each number, or none where it has no `{n}`.
    /// Without a level those of all levels.
    pub(super) fn targets(&self, path: &str, level: Option<LabLevel>) -> Vec<String> {
        let count = level.and_then(|level| level.count).or(self.most_paths());
        let count = count.filter(|_| path.contains(NUMBER)).unwrap_or(0);
        (0..count).map(|n| numbered(path, n)).collect()
    }

    /// The placeholders of a server that are known before anything runs: names without values.
    pub(super) fn placeholders(
        &self,
        server: Option<&ServerSpec>,
        with: &[Spanned<String>],
    ) -> Placeholders {
        let mut values = Placeholders::default();
        let own = self.values.keys().map(String::as_str);
        // Preparations are done once, before the first level.
        let variable = self.variable().filter(|_| server.is_some());
        for name in ["work", "here", "millpond", "millrace", "path"]
            .into_iter()
            .chain(own)
            .chain(variable)
        {
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

/// The placeholder for a number in a path.
pub(super) const NUMBER: &str = "{n}";

pub(super) fn numbered(path: &str, n: usize) -> String {
    path.replace(NUMBER, &n.to_string())
}
