//! Mistakes of an experiment that can be found before anything is started.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path};

use toml::Spanned;

use super::experiment::{Experiment, NUMBER, numbered};
use super::fault::Fault;
use super::placeholders::Placeholders;
use super::source::ExperimentText;
use super::spec::{BEST, FileSpec, ServerSpec};
use super::spec_values::{CommandLine, Ending};
use super::{
    check_addresses, check_ladder, check_limits, check_other, check_spin, check_workload, programs,
};
use millrace_client::limits;

/// Repeats and levels that an experiment may have: each is a run of seconds.
pub(super) const MOST: usize = 1000;
/// Most paths of a workload, and most files of a kind.
pub(super) const MOST_NUMBERS: usize = 1_000_000;

/// Placeholders that have a meaning already.
pub(super) const RESERVED: [&str; 9] = [
    "work", "here", "millpond", "millrace", "path", "port", "dir", "core", "n",
];

/// All mistakes, in the order of the file.
pub(super) fn faults(experiment: &Experiment, source: &ExperimentText) -> Vec<Fault> {
    let mut check = ExperimentCheck {
        experiment,
        found: Vec::new(),
    };
    check.names();
    check.values();
    check.numbers();
    check.workload();
    check.prepare();
    for server in &experiment.servers {
        check.server(server.get_ref());
    }
    let mut found = check.found;
    found.extend(check_limits::mistakes(experiment));
    found.sort_by_key(|(place, _)| place.start);
    found
        .iter()
        .map(|(place, message)| source.fault(place, message.as_str()))
        .collect()
}

struct ExperimentCheck<'a> {
    experiment: &'a Experiment,
    found: Vec<(Range<usize>, String)>,
}

impl ExperimentCheck<'_> {
    fn report(&mut self, place: Range<usize>, message: impl Into<String>) {
        self.found.push((place, message.into()));
    }

    fn names(&mut self) {
        let experiment = self.experiment;
        let mut seen = BTreeSet::new();
        for server in &experiment.servers {
            let name = &server.get_ref().name;
            let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
            if !name.get_ref().starts_with(|c: char| c.is_ascii_lowercase())
                || !name.get_ref().chars().all(fine)
            {
                self.report(
                    name.span(),
                    format!(
                        "{:?} is no name for a server: small letters, digits, - _ and . after a letter are",
                        name.get_ref()
                    ),
                );
            }
            if name.get_ref() == BEST {
                self.report(
                    name.span(),
                    "`best` means the others in a limit, and is no name",
                );
            }
            if !seen.insert(name.get_ref()) {
                self.report(
                    name.span(),
                    format!("a second server is called {:?}", name.get_ref()),
                );
            }
        }
        if experiment.measured().next().is_none() {
            self.report(0..0, "there is no [[server]] to be measured");
        }
        if let Some(baseline) = &experiment.baseline
            && !experiment.names().any(|name| name == baseline.get_ref())
        {
            let names: Vec<&str> = experiment.names().collect();
            self.report(
                baseline.span(),
                format!(
                    "the baseline {:?} is no server that is measured; they are {}",
                    baseline.get_ref(),
                    names.join(", ")
                ),
            );
        }
    }

    /// Placeholders of the file's own.
    fn values(&mut self) {
        let experiment = self.experiment;
        for (name, value) in &experiment.values {
            let letter = |c: char| c.is_ascii_lowercase();
            let is_name = name.starts_with(letter)
                && name
                    .chars()
                    .all(|c| letter(c) || c.is_ascii_digit() || c == '_' || c == '-');
            if !is_name || RESERVED.contains(&name.as_str()) {
                self.report(
                    value.span(),
                    format!(
                        "{name:?} is no name for a value: small letters, digits, - and _ after a letter are, but {}",
                        RESERVED.join(", ")
                    ),
                );
            }
        }
    }

    fn numbers(&mut self) {
        let experiment = self.experiment;
        if !(1..=MOST).contains(experiment.repeats.get_ref()) {
            self.report(
                experiment.repeats.span(),
                format!("repeats must be from 1 to {MOST}"),
            );
        }
        self.found.extend(check_ladder::mistakes(experiment));
    }

    fn workload(&mut self) {
        let workload = &self.experiment.workload;
        let inner = workload.get_ref();
        self.path(&inner.path);
        self.count(&inner.path, self.experiment.most_paths());
        self.idle(inner.idle.as_ref());
        for field in &inner.headers {
            if !field.get_ref().contains(':') {
                self.report(
                    field.span(),
                    "a request field is written as \"Name: value\"",
                );
            }
        }
        if let Some(cores) = &inner.cores {
            self.cores(cores);
        }
        self.found.extend(check_spin::mistakes(self.experiment));
        self.found.extend(check_other::mistakes(self.experiment));
        self.found.extend(check_workload::mistakes(self.experiment));
        self.found
            .extend(check_addresses::mistakes(self.experiment));
        self.runs();
    }

    fn idle(&mut self, idle: Option<&Spanned<usize>>) {
        let Some(idle) = idle else {
            return;
        };
        if self.experiment.workload.get_ref().http2 {
            self.report(
                idle.span(),
                "idle connections ask by HTTP/1.1 first, and the workload is HTTP/2",
            );
        }
        if !(1..=MOST_NUMBERS).contains(idle.get_ref()) {
            self.report(
                idle.span(),
                format!("idle connections are from 1 to {MOST_NUMBERS}"),
            );
        }
    }

    /// The run of every level.
    fn runs(&mut self) {
        let workload = &self.experiment.workload;
        let path = workload.get_ref().path.get_ref();
        let scheme = workload.get_ref().scheme();
        let url = format!("{scheme}://127.0.0.1:1{}", numbered(path, 0));
        let base = self.experiment.requests_to(url.clone());
        let sessions = match (self.experiment.sessions(&base), &workload.get_ref().plan) {
            (Ok(sessions), _) => sessions,
            (Err(mistake), Some(plan)) => return self.report(plan.span(), mistake),
            (Err(mistake), None) => return self.report(workload.span(), mistake),
        };
        for level in self.experiment.levels() {
            let plan = self
                .experiment
                .plan(url.clone(), Vec::new(), level)
                .with(|plan| plan.request.workload = sessions.clone());
            if let Err(error) = plan.check() {
                self.report(workload.span(), error.to_string());
                break;
            }
        }
    }

    fn prepare(&mut self) {
        let experiment = self.experiment;
        let shared = experiment.placeholders(None, &[]);
        self.files(&experiment.files, &shared);
        for step in &experiment.prepare {
            self.with(&step.with, None);
            let values = experiment.placeholders(None, &step.with);
            self.line(&step.run, step.run.get_ref(), &values);
            self.needs(&step.needs);
        }
    }

    fn server(&mut self, server: &ServerSpec) {
        self.with(&server.with, Some(server));
        self.needs(&server.needs);
        if let Some(cores) = &server.cores {
            self.cores(cores);
        }
        if let Some(path) = &server.path {
            self.path(path);
            let count = self.experiment.most_paths();
            let count = count.filter(|_| path.get_ref().contains(NUMBER));
            self.count(path, count);
        }
        self.idle(server.idle.as_ref());
        if let (Some(ready), Some(_)) = (&server.ready, &server.ready_log) {
            self.report(ready.span(), "a server has either `ready` or `ready_log`");
        }
        let values = self.experiment.placeholders(Some(server), &server.with);
        self.line(&server.start, server.start.get_ref(), &values);
        if let Some(version) = &server.version {
            self.line(version, version.get_ref(), &values);
        }
        if let Some(stop) = &server.stop
            && let Ending::Command(line) = stop.get_ref()
        {
            self.line(stop, line, &values);
        }
        let texts = server
            .ready
            .iter()
            .chain(&server.cwd)
            .chain(server.env.values());
        for text in texts {
            self.text(text, &values);
        }
        self.files(&server.files, &values);
    }

    fn files(&mut self, files: &[FileSpec], values: &Placeholders) {
        for file in files {
            let path = Path::new(file.path.get_ref());
            let inside = path
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            if !inside || path.as_os_str().is_empty() {
                self.report(
                    file.path.span(),
                    "a file's path stays within its folder: it neither begins with / nor has .. in it",
                );
            }
            self.count(&file.path, file.count);
            match (&file.content, file.bytes) {
                (Some(content), None) => self.text(content, values),
                (None, Some(bytes)) if bytes <= 1 << 30 => {}
                (None, Some(_)) => self.report(file.path.span(), "a file has at most 1 GiB"),
                (Some(_), Some(_)) | (None, None) => {
                    self.report(file.path.span(), "a file has either `content` or `bytes`");
                }
            }
        }
    }

    fn line<T>(&mut self, place: &Spanned<T>, line: &CommandLine, values: &Placeholders) {
        for text in line.texts() {
            if let Err(error) = values.fill(text, false) {
                self.report(place.span(), error);
            }
        }
    }

    fn text(&mut self, text: &Spanned<String>, values: &Placeholders) {
        if let Err(error) = values.fill(text.get_ref(), false) {
            self.report(text.span(), error);
        }
    }

    /// A path with `{n}`, which stands for several paths.
    fn count(&mut self, path: &Spanned<String>, count: Option<usize>) {
        let has_number = path.get_ref().contains(NUMBER);
        if count.is_some_and(|count| !(1..=MOST_NUMBERS).contains(&count)) {
            self.report(path.span(), format!("`count` is from 1 to {MOST_NUMBERS}"));
        } else if has_number != count.is_some() {
            self.report(
                path.span(),
                format!("`count` goes with {NUMBER} in the path, which stands for the number"),
            );
        }
    }

    fn path(&mut self, path: &Spanned<String>) {
        if !path.get_ref().starts_with('/') {
            self.report(path.span(), "a path begins with /");
        }
    }

    fn with(&mut self, with: &[Spanned<String>], user: Option<&ServerSpec>) {
        for (position, name) in with.iter().enumerate() {
            let place = name.span();
            let before = &with[..position];
            let is_up =
                |needed: &Spanned<String>| before.iter().any(|up| up.get_ref() == needed.get_ref());
            match self.experiment.server(name.get_ref()) {
                None => self.report(place, format!("there is no server {:?}", name.get_ref())),
                Some(other) if user.is_some_and(|user| user.name == other.name) => {
                    self.report(place, "a server does not stand behind itself");
                }
                // Servers start in the order of one list, so there are no cycles.
                Some(other) if !other.with.iter().all(is_up) => {
                    self.report(
                        place,
                        format!(
                            "{:?} needs others itself; name them here too, before it",
                            name.get_ref()
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }

    fn cores(&mut self, cores: &Spanned<Vec<usize>>) {
        if cores.get_ref().is_empty() {
            self.report(cores.span(), "the list of cores is empty");
        }
        for &core in cores.get_ref() {
            if !limits::may_run_on(core) {
                self.report(
                    cores.span(),
                    format!("this process may not run on core {core}, or there is none"),
                );
            }
        }
    }

    fn needs(&mut self, needs: &[Spanned<String>]) {
        for need in needs {
            let (program, package) = programs::need(need.get_ref());
            let fine = |c: char| c.is_ascii_alphanumeric() || "-+._/".contains(c);
            if program.is_empty()
                || package.is_empty()
                || package.starts_with('-')
                || !need.get_ref().replacen(':', "", 1).chars().all(fine)
            {
                self.report(
                    need.span(),
                    "what is needed is written as \"PROGRAM\", or \"PROGRAM:PACKAGE\" where Debian's package has another name",
                );
            }
        }
    }
}
