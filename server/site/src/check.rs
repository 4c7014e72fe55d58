//! `millpond check`: all faults that `serve` would find, the routes that never answer, and the
//! dependencies of each query.

mod files;
mod sqlite;

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use millpond_db::{Advice, Database, Error, Query, Requirement, repair_sqlite};

use crate::{
    SiteOptions,
    core::Generation,
    data::{self, DataSources, FilePin},
    opening::{self, reading::look},
};
pub use files::{missing_tables, write_migrations};
use millpond_site_compile::page::{PageQuery, PageStatement};
use millpond_site_format::{
    Config, DatabaseUrl, PostgresUrl, Problem,
    dialect::dialect_of,
    folder::{Migrations, migrations},
    problem::below,
    rules::shadowed,
};
use partials::ShownQueries;
use sqlite::check_sqlite;

mod dead_link;
mod documents;
mod forms;
mod links;
mod partials;
mod passed_over;
mod reach;
mod targets;
mod tokens;
mod uploads;

pub use reach::ReachReport;

/// A message and a hint.
type HintedNote = (String, String);

/// The result of a check of a site.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// How many addresses with pages there are.
    pub pages: usize,
    /// How many forms there are.
    pub forms: usize,
    /// Every query, with what it depends on.
    pub queries: Vec<QueryReport>,
    /// Reach of each `[[require]]` entry.
    pub reached: Vec<ReachReport>,
    /// Pages and files that never respond, or not at their own address: allowed, but probably not
    /// intended.
    pub notes: Vec<Problem>,
    /// Requirements that the database lacks so that pages can be kept in memory.
    pub requirements: Vec<Requirement>,
    /// The migrations that were tried and are not applied yet.
    pub pending: Vec<String>,
    /// The migrations that files of data lack.
    pub missing_tables: Vec<FilePin>,
}

/// Dependencies of one query of a page.
#[derive(Clone, Debug)]
pub struct QueryReport {
    /// The `.sql` file, relative to the site folder.
    pub file: PathBuf,
    /// The query's name.
    pub name: String,
    /// The files of the pages that show it, if it is the query of a template.
    pub shown_by: Vec<PathBuf>,
    /// One line for each thing that it depends on.
    pub dependencies: Vec<String>,
    /// Changes that end its results, in few words.
    pub ends: Vec<String>,
    /// Changes that would make it depend on less, or have it kept.
    pub advice: Vec<Advice>,
    query: Query,
}

impl fmt::Display for QueryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.name)?;
        self.dependencies
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Checks a site without serving it, or all sites that its configuration names. The migrations are
/// applied to a scratch database and the queries prepared there, so the site's own database is
/// neither needed nor changed; tables that no migration makes are looked up in a copy of the site's
/// schema. On PostgreSQL all of this happens on the site's own database, in a transaction that is
/// rolled back.
///
/// # Errors
/// All faults.
pub fn check(dir: &Path, config: &Config) -> Result<CheckReport, Vec<Problem>> {
    if !config.has_hosts() {
        return check_one(dir, config);
    }
    let mut all = CheckReport::default();
    let mut problems = Vec::new();
    for host in &config.hosts {
        let checked = host
            .read()
            .map_err(|problem| vec![problem])
            .and_then(|config| check_one(&host.site, &config));
        match checked {
            Ok(report) => {
                all.pages += report.pages;
                all.forms += report.forms;
                all.requirements.extend(report.requirements);
                all.pending.extend(report.pending);
                all.notes.extend(below(&host.shown, report.notes));
                let reached = report.reached.into_iter();
                all.reached.extend(reached.map(|rule| ReachReport {
                    file: host.shown.join(&rule.file),
                    ..rule
                }));
                all.queries.extend(report.queries.into_iter().map(|query| {
                    QueryReport {
                        file: host.shown.join(&query.file),
                        shown_by: query
                            .shown_by
                            .iter()
                            .map(|page| host.shown.join(page))
                            .collect(),
                        ..query
                    }
                }));
            }
            Err(found) => problems.extend(below(&host.shown, found)),
        }
    }
    if problems.is_empty() {
        Ok(all)
    } else {
        Err(problems)
    }
}

fn check_one(dir: &Path, config: &Config) -> Result<CheckReport, Vec<Problem>> {
    let migrations = migrations(dir, dialect_of(&config.database))?;
    match &config.database {
        DatabaseUrl::Sqlite(path) => opening::no_replicas(config)
            .map_err(|problem| vec![problem])
            .and_then(|()| check_sqlite(dir, config, path, &migrations)),
        DatabaseUrl::Postgres(url) => check_postgres(dir, config, url, &migrations),
    }
}

/// On the server itself, in a transaction that is rolled back: nothing is changed there.
fn check_postgres(
    dir: &Path,
    config: &Config,
    url: &PostgresUrl,
    migrations: &Migrations,
) -> Result<CheckReport, Vec<Problem>> {
    let database = open(url, config).map_err(|problem| vec![problem])?;
    let shown = opening::shown(dir, &config.database);
    let report = database
        .rehearse(&migrations.list)
        .map_err(|error| vec![opening::refused(error, migrations, &shown)])
        .and_then(|rehearsal| {
            let mut report = report(dir, config, &database)?;
            report.requirements = requirements(&database, &report, &shown)?;
            report.pending = rehearsal.pending;
            report.notes.extend(deleted(&rehearsal.applied, migrations));
            report.notes.extend(rehearsal.left_out.map(|name| {
                Problem::new(
                    migrations.file(&name),
                    "runs without a transaction, so it was not tried, nor what comes after it",
                )
            }));
            Ok(report)
        });
    database.stop();
    report
}

/// One connection: a check and a repair do one thing after another.
fn open(url: &PostgresUrl, config: &Config) -> Result<Database, Problem> {
    let options = SiteOptions {
        readers: Some(1),
        workers: 1,
        ..SiteOptions::default()
    };
    opening::postgres(url, config, &options)
}

/// Runs the statement of each requirement that [may be fixed](Requirement::may_fix) by it, on the
/// site's own database; calls `done` after each.
///
/// # Errors
/// The first that the server refuses; those before it are done.
pub fn repair(
    dir: &Path,
    config: &Config,
    requirements: &[Requirement],
    mut done: impl FnMut(&Requirement),
) -> Result<(), Problem> {
    let shown = opening::shown(dir, &config.database);
    let mut repair_all = |repair: &dyn Fn(&Requirement) -> Result<(), Error>| {
        let mut fixable = requirements.iter().filter(|lacking| lacking.may_fix);
        fixable.try_for_each(|lacking| {
            repair(lacking).map_err(|error| Problem::new(&shown, error.to_string()))?;
            done(lacking);
            Ok(())
        })
    };
    match &config.database {
        DatabaseUrl::Sqlite(path) => repair_all(&|lacking| repair_sqlite(path, lacking)),
        DatabaseUrl::Postgres(url) => {
            let database = open(url, config)?;
            let outcome = repair_all(&|lacking| database.repair(lacking));
            database.stop();
            outcome
        }
    }
}

/// Lists the requirements that the server lacks so that the results of the site's queries can be
/// kept.
fn requirements(
    database: &Database,
    report: &CheckReport,
    shown: &Path,
) -> Result<Vec<Requirement>, Vec<Problem>> {
    let queries: Vec<Query> = report
        .queries
        .iter()
        .map(|query| query.query.clone())
        .collect();
    database
        .requirements(&queries)
        .map_err(|error| vec![Problem::new(shown, error.to_string())])
}

/// The migrations that were applied and of which there is no file any more.
fn deleted(applied: &[String], migrations: &Migrations) -> Vec<Problem> {
    let is_there = |name: &String| migrations.list.iter().any(|known| known.name == *name);
    let gone = applied.iter().filter(|name| !is_there(name));
    gone.map(|name| {
        let message = "this migration was applied to the database, and its file is gone";
        Problem::new(migrations.file(name), message)
            .hint("restore the file: a new database would lack what it makes")
    })
    .collect()
}

/// Reads the folder as serving it would, and says what is there.
fn report(dir: &Path, config: &Config, database: &Database) -> Result<CheckReport, Vec<Problem>> {
    let sources = DataSources::new(dir, config);
    let zone = config.formats.zone;
    let mut files = data::found(&sources, database, config);
    let read = report_pages(dir, config, database);
    // On SQLite the database is a copy.
    if !database.is_postgres() {
        let refused = data::refused_rows(&sources, database, zone);
        files.problems.extend(refused);
    }
    let files = files.bounded();
    match read {
        Ok(mut report) if files.problems.is_empty() => {
            report.notes.extend(files.notes());
            report.missing_tables = files.pins;
            Ok(report)
        }
        read => {
            let mut problems = files.problems.clone();
            // A page may fail for the lack of the table.
            problems.extend(read.as_ref().err().into_iter().flat_map(|_| files.notes()));
            problems.extend(read.err().into_iter().flatten());
            Err(problems)
        }
    }
}

fn report_pages(
    dir: &Path,
    config: &Config,
    database: &Database,
) -> Result<CheckReport, Vec<Problem>> {
    look(dir, config, database).and_then(|generation| {
        let unread = generation.statics.notes();
        if !unread.is_empty() {
            return Err(unread.to_vec());
        }
        let mut notes = generation.pages.doubts.clone();
        let reached = reach::reached(&generation);
        notes.extend(reach::notes(&generation, &reached));
        notes.extend(tokens::notes(&generation));
        notes.extend(shadowed(&config.rules));
        notes.extend(hidden(&generation));
        notes.extend(passed_over::notes(dir));
        notes.extend(targets::nowhere(&generation));
        notes.extend(links::notes(&generation));
        let sources = DataSources::new(dir, config);
        notes.extend(documents::notes(&generation, &sources));
        let shown = ShownQueries::of(&generation.pages);
        notes.extend(shown.notes());
        notes.extend(forms::notes(&generation));
        notes.extend(uploads::notes(dir, &generation.pages));
        let endpoints = &generation.pages.endpoints;
        let pages = endpoints.iter().filter(|endpoint| endpoint.page.is_some());
        let forms = endpoints.iter().map(|endpoint| endpoint.forms.len());
        Ok(CheckReport {
            pages: pages.count(),
            forms: forms.sum(),
            queries: queries(&generation, &shown),
            reached,
            notes,
            ..CheckReport::default()
        })
    })
}

/// The queries of all pages. Those of a partial stand once, however many pages show it.
fn queries(generation: &Generation, shown: &ShownQueries<'_>) -> Vec<QueryReport> {
    let mut seen = BTreeSet::new();
    let endpoints = generation.pages.endpoints.iter();
    let queries = endpoints
        .filter_map(|endpoint| endpoint.page.as_ref())
        .flat_map(|page| &page.queries)
        .filter(|query| seen.insert((&query.file, query.line)));
    let statements = queries.flat_map(|query| {
        let statements = query.statements.iter();
        statements.map(move |statement| (query, statement))
    });
    statements
        .map(|(query, statement)| QueryReport {
            file: query.file.clone(),
            name: statement.name(query),
            shown_by: shown.files(query),
            dependencies: query.describe(statement),
            ends: query.ends(statement),
            advice: advice(query, statement),
            query: statement.query.clone(),
        })
        .collect()
}

/// The advice on a query that is useful beside its `-- max-age:` or `-- until:`, if it has one.
fn advice(query: &PageQuery, statement: &PageStatement) -> Vec<Advice> {
    let mut all = statement.query.advice();
    let ends_in_time = query.until.is_some() && statement.query.may_end_by_clock();
    all.retain(|advice| advice.is_kept || query.max_age.is_none() && !ends_in_time);
    all
}

/// The pages and files that another page, file or rule precedes.
fn hidden(generation: &Generation) -> Vec<Problem> {
    let mut notes = Vec::new();
    for endpoint in &generation.pages.endpoints {
        if let Some(rule) = rule_before(generation, &endpoint.pattern.sample()) {
            let message = format!("never answers: {rule} comes first");
            notes.push(Problem::new(
                "pages",
                format!("{} {message}", endpoint.pattern),
            ));
        }
    }
    let mut files: Vec<_> = generation.statics.files().map(|(path, _)| path).collect();
    files.sort_unstable();
    for path in files {
        if let Some(why) = hides(generation, path) {
            let note = Problem::new(format!("static{path}"), why);
            notes.push(match open_parameter(generation, path) {
                Some(name) => note.hint(format!(
                    "say which values the page takes: -- param: {name} text in (…); or name the file otherwise"
                )),
                None => note,
            });
        }
    }
    notes
}

/// Why the file at a path does not respond there.
fn hides(generation: &Generation, path: &str) -> Option<String> {
    if let Some(rule) = rule_before(generation, path) {
        return Some(format!("does not answer at {path}: {rule} comes first"));
    }
    let page_at = |path: &str| {
        let found = generation.pages.router.find(path)?;
        Some(&generation.pages.endpoints[found.page].pattern)
    };
    if let Some(page) = page_at(path) {
        return Some(format!("does not answer at {path}: the page {page} does"));
    }
    if path == "/404.html" && generation.pages.error_pages.has(404) {
        return Some("is not shown where nothing answers: pages/404.html is".to_owned());
    }
    let is_index = generation.statics.find("/").is_some_and(|index| {
        let own = generation.statics.find(path);
        own.is_some_and(|own| own.is_same(index)) && path.matches('/').count() == 1
    });
    let page = page_at("/").filter(|_| is_index)?;
    Some(format!("does not answer at /: the page {page} does"))
}

/// The first part of its path for which the page at this path takes any text, where no rule comes
/// first.
fn open_parameter<'g>(generation: &'g Generation, path: &str) -> Option<&'g str> {
    if rule_before(generation, path).is_some() {
        return None;
    }
    let endpoint = &generation.pages.endpoints[generation.pages.router.find(path)?.page];
    let mut params = endpoint.pattern.params().zip(&endpoint.choices);
    let (name, _) = params.find(|(_, choices)| choices.is_empty())?;
    Some(name)
}

/// The rule that applies to a path before pages and files.
fn rule_before(generation: &Generation, path: &str) -> Option<String> {
    let (kind, place) = generation.rules.as_ref()?.before(path)?;
    Some(format!(
        "the {kind} in line {} of millpond.toml",
        place.line
    ))
}
