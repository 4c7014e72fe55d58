//! A check of a site on SQLite, on a scratch database.

use std::path::{Path, PathBuf};

use millpond_db::{FeedKind, recorded_as_whole, sqlite_requirements};

use super::{CheckReport, deleted, report};
use crate::{Config, Problem, folder::Migrations, opening};

pub(super) fn check_sqlite(
    dir: &Path,
    config: &Config,
    path: &Path,
    migrations: &Migrations,
) -> Result<CheckReport, Vec<Problem>> {
    let shown = opening::shown(dir, &config.database);
    let failed = |error: millpond_db::Error| vec![Problem::new(&shown, error.to_string())];
    let scratch = Scratch::of(path, &shown).map_err(|problem| vec![problem])?;
    let database =
        opening::sqlite(dir, &scratch.copy, config, 1).map_err(|problem| vec![problem])?;
    let report = opening::migrate(&database, migrations, &shown)
        .map_err(|problem| vec![problem])
        .and_then(|()| report(dir, config, &database));
    database.stop();
    let mut report = report?;
    report.notes.extend(deleted(&scratch.applied, migrations));
    report.notes.extend(scratch.note);
    if config.feed == FeedKind::Triggers {
        let whole = recorded_as_whole(&scratch.copy).map_err(failed)?;
        let notes = whole_tables(&whole, &report);
        report.notes.extend(notes);
    }
    // On the site's own file: the scratch database has no triggers that record changes.
    report.requirements = sqlite_requirements(path, config.feed).map_err(failed)?;
    Ok(report)
}

/// The tables that queries narrow and whose changes by other programs are not narrowed.
fn whole_tables(whole: &[(String, &str)], report: &CheckReport) -> Vec<Problem> {
    let is_narrowed = |table: &str| {
        let rows = format!("{table}: rows ");
        let mut lines = report.queries.iter().flat_map(|query| &query.dependencies);
        lines.any(|line| line.starts_with(&rows))
    };
    let notes = whole.iter().filter(|(table, _)| is_narrowed(table));
    notes
        .map(|(table, reason)| {
            let message = format!(
                "with feed = \"triggers\" each change to {table} by another program ends all pages that read it, as {table} {reason}"
            );
            Problem::new("millpond.toml", message)
                .hint("a change by a form of the site ends only the pages with its rows")
        })
        .collect()
}

/// The database that a check works on. It goes away with it.
struct Scratch {
    _folder: tempfile::TempDir,
    copy: PathBuf,
    /// The migrations that the site's database has.
    applied: Vec<String>,
    note: Option<Problem>,
}

impl Scratch {
    /// A copy of the schema of the database at `path`, if there is one.
    fn of(path: &Path, shown: &Path) -> Result<Self, Problem> {
        let folder = tempfile::tempdir().map_err(|error| {
            Problem::new(".", format!("no scratch database can be made: {error}"))
        })?;
        let mut scratch = Self {
            copy: folder.path().join("check.db"),
            _folder: folder,
            applied: Vec::new(),
            note: None,
        };
        if path.exists() {
            scratch.applied = millpond_db::copy_schema(path, &scratch.copy).map_err(|error| {
                let problem = Problem::new(shown, format!("the database cannot be read: {error}"));
                opening::with_file_hint(problem, path)
            })?;
        }
        Ok(scratch)
    }
}
