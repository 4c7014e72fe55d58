//! The file with the history, and what is written to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millpond_db::{Bind, Call, Database, Error, Expect, Query, ResultRows, WriteStep, block_on};
use millpond_site::{Config, DAMAGED, DatabaseUrl, Problem, Site, SiteOptions};
use serde_json::{Value, json};

use crate::files::{FILES, SETTINGS};
use crate::{CertificateState, Fact};

/// The routes that have figures of their own in a period. The others are summed.
const MOST_ROUTES: u64 = 100;
/// The explanations that are kept.
const MOST_EXPLAINED: i64 = 50;

/// The last requests that are shown.
const MOST_SEEN: u64 = 5_000;

/// Statements of a sample, in their order, each with what it needs.
const STATEMENTS: [(Needs, &str); 12] = [
    (Needs::Figures, include_str!("sql/sample.sql")),
    (Needs::Durations, include_str!("sql/durations.sql")),
    (Needs::Routes, include_str!("sql/route_names.sql")),
    (Needs::Routes, include_str!("sql/routes.sql")),
    (Needs::Nothing, include_str!("sql/facts.sql")),
    (Needs::Nothing, include_str!("sql/gone_facts.sql")),
    (Needs::Nothing, include_str!("sql/certificates.sql")),
    (Needs::Nothing, include_str!("sql/gone_certificates.sql")),
    // Behind the figures, so that a page which shows the newest time shows them too.
    (Needs::Nothing, include_str!("sql/clock.sql")),
    (Needs::Figures, include_str!("sql/prune_samples.sql")),
    (Needs::Figures, include_str!("sql/prune_durations.sql")),
    (Needs::Routes, include_str!("sql/prune_routes.sql")),
];
/// Names of routes that nothing in the history has; looked for at the start.
const PRUNE_NAMES: &str = include_str!("sql/prune_names.sql");
/// An explanation, and the end of old ones.
const EXPLAINED: [&str; 2] = [
    include_str!("sql/explained.sql"),
    include_str!("sql/prune_explained.sql"),
];
/// The last requests, and the end of older ones.
const SEEN: [&str; 2] = [
    include_str!("sql/seen.sql"),
    include_str!("sql/prune_seen.sql"),
];
/// The end of alerts without a rule, new ones, and the states of all.
const ALERTS: [&str; 3] = [
    include_str!("sql/gone_alerts.sql"),
    include_str!("sql/known_alerts.sql"),
    include_str!("sql/alerts.sql"),
];
/// Tables that are read through at the start: damage in one shows.
const TABLES: [&str; 4] = ["sample", "duration", "route_sample", "fact"];

/// Part of a sample without which a statement does not run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Figures,
    Durations,
    Routes,
}

/// A sample, as the history takes it.
pub(crate) struct HistorySample {
    pub(crate) at: u64,
    /// When the server started.
    pub(crate) started: u64,
    /// Time that it covers; zero where another process has taken the place of this one.
    pub(crate) span: Duration,
    /// True if the state of this process is not that of now any more.
    pub(crate) is_ending: bool,
    /// Counts and gauges by their names; null before the first.
    pub(crate) figures: Value,
    pub(crate) durations: Value,
    pub(crate) routes: Value,
    pub(crate) facts: Value,
    pub(crate) certificates: Value,
}

impl HistorySample {
    /// The state at the start: nothing has been counted yet.
    pub(crate) fn begin(at: u64, facts: &[Fact], certificates: &[CertificateState]) -> Self {
        Self {
            at,
            started: at,
            span: Duration::ZERO,
            is_ending: false,
            figures: Value::Null,
            durations: json!([]),
            routes: json!([]),
            facts: Self::facts(facts),
            certificates: json!(certificates),
        }
    }

    pub(crate) fn facts(facts: &[Fact]) -> Value {
        let facts = facts.iter();
        facts
            .map(|fact| json!([fact.topic, fact.name, fact.unit, fact.value]))
            .collect()
    }

    fn has(&self, needs: Needs) -> bool {
        let is_filled = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        match needs {
            Needs::Nothing => !self.is_ending,
            Needs::Figures => !self.figures.is_null(),
            Needs::Durations => is_filled(&self.durations),
            Needs::Routes => is_filled(&self.routes),
        }
    }

    fn value(&self, name: &str) -> millpond_db::Value {
        let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).into();
        let text = |value: &Value| value.clone().into();
        match name {
            "now" => integer(self.at),
            "started" => integer(self.started),
            "span_ms" => integer(u64::try_from(self.span.as_millis()).unwrap_or(u64::MAX)),
            "most" => integer(MOST_ROUTES),
            "figures" => text(&self.figures),
            "durations" => text(&self.durations),
            "routes" => text(&self.routes),
            "facts" => text(&self.facts),
            "certificates" => text(&self.certificates),
            _ => millpond_db::Value::Null,
        }
    }
}

/// The file with the history of a server.
pub struct History {
    database: Database,
    statements: Vec<(Needs, Query)>,
    explained: [Query; 2],
    seen: [Query; 2],
    alerts: [Query; 3],
    log: fn(&str),
    /// True while samples cannot be written, which is told once.
    is_failing: AtomicBool,
}

impl History {
    /// Opens the site over the history in `file`. A damaged file is set aside.
    pub(crate) fn open(file: &Path, log: fn(&str)) -> Result<(Arc<Site>, Self), Vec<Problem>> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let first = match try_open(&file, log) {
            Err(problems) if problems.iter().any(is_damage) => problems,
            opened => return opened,
        };
        let aside = set_aside(&file).map_err(|error| {
            let message = format!("is damaged, and cannot be set aside: {error}");
            vec![Problem::new(&file, message)]
        })?;
        let why: Vec<String> = first.iter().map(ToString::to_string).collect();
        log(&format!(
            "the history of figures could not be read, so it is now {} and a new one begins: {}",
            aside.display(),
            why.join("; ")
        ));
        try_open(&file, log)
    }

    /// Writes a sample, in one transaction. False if it could not be written.
    pub(crate) fn write(&self, sample: &HistorySample) -> bool {
        let statements = self.statements.iter();
        let steps = statements
            .filter(|(needs, _)| sample.has(*needs))
            .map(|(_, query)| step(query, Expect::Exec, |name| sample.value(name)));
        self.written(steps.collect()).is_some()
    }

    /// Writes the last requests; without any, those that are there go.
    pub(crate) fn write_seen(&self, requests: &[Value]) -> bool {
        let kept = if requests.is_empty() { 0 } else { MOST_SEEN };
        let value = |name: &str| match name {
            "requests" => json!(requests).into(),
            _ => i64::try_from(kept).unwrap_or(i64::MAX).into(),
        };
        let steps = self.seen.iter();
        let steps = steps.map(|query| step(query, Expect::Exec, value));
        self.written(steps.collect()).is_some()
    }

    /// Holds rules against the figures of the minute that ends now, `passed` milliseconds after the
    /// last look, on a machine with `cores`. Returns what turned, as it is told.
    pub(crate) fn hold_alerts(&self, rules: &Value, [now, passed, cores]: [u64; 3]) -> Vec<Value> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).into();
        let value = |name: &str| match name {
            "now" => number(now),
            "passed" => number(passed),
            "cores" => number(cores),
            _ => rules.clone().into(),
        };
        let steps = self.alerts.iter();
        let steps = steps.map(|query| step(query, Expect::Many, value));
        let results = self.written(steps.collect()).unwrap_or_default();
        let texts = results
            .iter()
            .flat_map(|result| result.rows.iter().flatten());
        let turned = texts.filter_map(|text| match text {
            millpond_db::Value::Text(json) => serde_json::from_str(json).ok(),
            _ => None,
        });
        turned.collect()
    }

    /// Writes in one transaction, and says once when that does not succeed.
    fn written(&self, steps: Vec<WriteStep>) -> Option<Vec<ResultRows>> {
        match block_on(self.database.write(steps)) {
            Ok(written) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    (self.log)("the history of figures is written again");
                }
                Some(written.results)
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    (self.log)(&format!(
                        "the history of figures cannot be written, and the site is served on: {error}"
                    ));
                }
                None
            }
        }
    }

    /// Keeps an explanation, and returns its number.
    pub(crate) async fn keep_explanation(
        &self,
        host: Option<&str>,
        target: &str,
        body: &Value,
    ) -> Result<i64, Error> {
        let value = |name: &str| match name {
            "now" => {
                let now = base_clock::unix_nanos() / base_clock::SECOND;
                i64::try_from(now).unwrap_or(i64::MAX).into()
            }
            "host" => host.map_or(millpond_db::Value::Null, |host| host.to_owned().into()),
            "target" => target.to_owned().into(),
            "most" => MOST_EXPLAINED.into(),
            _ => body.clone().into(),
        };
        let [insert, prune] = &self.explained;
        let steps = vec![
            step(insert, Expect::One, value),
            step(prune, Expect::Exec, value),
        ];
        let written = self.database.write(steps).await?;
        let first = written.results.first();
        let id = first.and_then(|rows| rows.rows.first()?.first().cloned());
        match id {
            Some(millpond_db::Value::Integer(id)) => Ok(id),
            _ => Ok(0),
        }
    }
}

/// A statement with its values by the names of its parameters.
fn step(query: &Query, expect: Expect, value: impl Fn(&str) -> millpond_db::Value) -> WriteStep {
    let params = query.params();
    let bind = params.iter().map(|param| Bind::Value(value(&param.name)));
    WriteStep {
        query: query.clone(),
        bind: bind.collect(),
        expect,
    }
}

fn try_open(file: &Path, log: fn(&str)) -> Result<(Arc<Site>, History), Vec<Problem>> {
    let mut config = Config::parse(SETTINGS, Path::new("/")).map_err(|problem| vec![problem])?;
    config.database = DatabaseUrl::Sqlite(file.to_owned());
    let options = SiteOptions {
        files: Some(FILES),
        workers: 1,
        log,
        ..SiteOptions::default()
    };
    // Nothing is beside a file that is no folder: the texts are in the program.
    let site = Site::open(file, &config, options)?;
    let problem = |error: &dyn std::fmt::Display| vec![Problem::new(file, error.to_string())];
    let database = site.database().clone();
    let prepare = |sql: &str| database.prepare(sql).map_err(|error| problem(&error));
    let read_through = || -> Result<(), Vec<Problem>> {
        for table in TABLES {
            let query = prepare(&format!("select count(*) as rows from {table}"))?;
            let params = Vec::new();
            let read = block_on(database.read(vec![Call { query, params }]));
            read.map_err(|error| problem(&error))?;
        }
        let names = step(&prepare(PRUNE_NAMES)?, Expect::Exec, |_| {
            millpond_db::Value::Null
        });
        let written = block_on(database.write(vec![names]));
        written.map(drop).map_err(|error| problem(&error))
    };
    read_through()?;
    let statements = STATEMENTS.iter();
    let statements: Result<Vec<_>, _> = statements
        .map(|(needs, sql)| prepare(sql).map(|query| (*needs, query)))
        .collect();
    let history = History {
        statements: statements?,
        explained: [prepare(EXPLAINED[0])?, prepare(EXPLAINED[1])?],
        seen: [prepare(SEEN[0])?, prepare(SEEN[1])?],
        alerts: [
            prepare(ALERTS[0])?,
            prepare(ALERTS[1])?,
            prepare(ALERTS[2])?,
        ],
        database: database.clone(),
        log,
        is_failing: AtomicBool::new(false),
    };
    Ok((site, history))
}

/// True if SQLite says that a file is damaged. A full disk or a missing right is another problem.
fn is_damage(problem: &Problem) -> bool {
    let signs = ["malformed", "not a database"];
    signs.iter().any(|sign| problem.message.contains(sign))
}

/// Renames a damaged file, with what SQLite keeps beside it. An older one is replaced, so that
/// there is at most one.
fn set_aside(file: &Path) -> std::io::Result<PathBuf> {
    let aside = file.with_extension(DAMAGED);
    for ending in ["", "-wal", "-shm"] {
        let named = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let (from, to) = (named(file), named(&aside));
        if from.exists() {
            fs::rename(from, to)?;
        } else if to.exists() {
            fs::remove_file(to)?;
        }
    }
    Ok(aside)
}
