//! `millpond check`: everything that `serve` would find wrong, what never answers, and what each query depends on.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    Config, Problem,
    core::Generation,
    folder::migrations,
    hosts::{below, read as read_config},
    reading::look,
    rules::shadowed,
    site::open_database,
};

/// What a check of a site has found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every query, with what it depends on.
    pub queries: Vec<QueryReport>,
    /// What is there and never answers, or not at its address: no fault, but hardly meant.
    pub notes: Vec<Problem>,
}

/// What one query of a page depends on.
#[derive(Clone, Debug)]
pub struct QueryReport {
    /// The `.sql` file, relative to the site folder.
    pub file: PathBuf,
    /// The query's name.
    pub name: String,
    /// One line for each thing that it depends on.
    pub dependencies: Vec<String>,
}

impl fmt::Display for QueryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.name)?;
        self.dependencies
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Checks a site without serving it, or all sites that its configuration names. The migrations are applied to a scratch database
/// and the queries prepared there, so the site's own is neither needed nor touched; tables that no migration makes are looked up in
/// a copy of the site's schema.
///
/// # Errors
/// Everything that is wrong.
pub fn check(dir: &Path, config: &Config) -> Result<Report, Vec<Problem>> {
    if !config.has_hosts() {
        return check_one(dir, config);
    }
    let mut all = Report::default();
    let mut problems = Vec::new();
    for host in &config.hosts {
        let checked = read_config(host)
            .map_err(|problem| vec![problem])
            .and_then(|config| check_one(&host.site, &config));
        match checked {
            Ok(report) => {
                all.notes.extend(below(&host.shown, report.notes));
                all.queries
                    .extend(report.queries.into_iter().map(|query| QueryReport {
                        file: host.shown.join(&query.file),
                        ..query
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

fn check_one(dir: &Path, config: &Config) -> Result<Report, Vec<Problem>> {
    migrations(dir)?;
    let scratch = Scratch::new().map_err(|error| {
        vec![Problem::new(
            ".",
            format!("no scratch database can be made: {error}"),
        )]
    })?;
    if config.database.exists() {
        millpond_db::copy_schema(&config.database, &scratch.0.join("check.db")).map_err(
            |error| {
                vec![Problem::new(
                    config
                        .database
                        .strip_prefix(dir)
                        .unwrap_or(&config.database),
                    error.to_string(),
                )]
            },
        )?;
    }
    let database = open_database(dir, &scratch.0.join("check.db"), 1)?;
    let report = look(dir, config, &database).and_then(|generation| {
        let unread = generation.statics.notes();
        if !unread.is_empty() {
            return Err(unread.to_vec());
        }
        let mut notes = shadowed(&config.rules);
        notes.extend(hidden(&generation));
        Ok(Report {
            queries: queries(&generation),
            notes,
        })
    });
    database.stop();
    report
}

fn queries(generation: &Generation) -> Vec<QueryReport> {
    let endpoints = generation.pages.endpoints.iter();
    let queries = endpoints
        .filter_map(|endpoint| endpoint.page.as_ref())
        .flat_map(|page| &page.queries);
    queries
        .map(|query| QueryReport {
            file: query.file.clone(),
            name: query.name.clone(),
            dependencies: query.query.describe(),
        })
        .collect()
}

/// The pages and files that something else stands before.
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
            notes.push(Problem::new(format!("static{path}"), why));
        }
    }
    notes
}

/// What keeps the file at a path from answering there.
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
    if path == "/404.html" && generation.pages.custom_404 {
        return Some("is not shown where nothing answers: pages/404.html is".to_owned());
    }
    let is_index = generation.statics.find("/").is_some_and(|index| {
        let own = generation.statics.find(path);
        own.is_some_and(|own| own.is_same(index)) && path.matches('/').count() == 1
    });
    let page = page_at("/").filter(|_| is_index)?;
    Some(format!("does not answer at /: the page {page} does"))
}

/// The rule that takes a path before pages and files are asked.
fn rule_before(generation: &Generation, path: &str) -> Option<String> {
    let (kind, place) = generation.rules.as_ref()?.before(path)?;
    Some(format!(
        "the {kind} in line {} of millpond.toml",
        place.line
    ))
}

/// A folder of its own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("millpond-check-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
