//! A check of a site on SQLite, on a scratch database.

use std::path::{Path, PathBuf};

use millpond_db::{FeedKind, recorded_as_whole, sqlite_requirements};

use super::{CheckReport, deleted, report};
use crate::opening;
use millpond_site_format::{Config, Problem, folder::Migrations};

pub(super) fn check_sqlite(
    dir: &Path,
    config: &Config,
    path: &Path,
    migrations: &Migrations,
) -> Result<CheckReport, Vec<Problem>> {
    let shown = opening::shown(dir, &config.database);
    let failed = |error: millpond_db::Error| vec![Problem::new(&shown, error.to_string())];
    let mut scratch = Scratch::of(path, &shown).map_err(|problem| vec![problem])?;
    if path.exists() {
        scratch.take_rows(path, migrations, scratch.room());
    }
    let database =
        opening::sqlite(dir, &scratch.copy, config, 1).map_err(|problem| vec![problem])?;
    let report = opening::migrate(&database, migrations, &shown)
        .map_err(|problem| vec![problem])
        .and_then(|_| report(dir, config, &database));
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

/// A database of this many bytes at most is copied with its rows.
const MAX_COPY: u64 = 1 << 30;

/// The database that a check works on. It goes away with it.
pub(super) struct Scratch {
    folder: tempfile::TempDir,
    pub(super) copy: PathBuf,
    /// The migrations that the site's database has.
    applied: Vec<String>,
    note: Option<Problem>,
}

impl Scratch {
    /// A copy of the schema of the database at `path`, if there is one.
    pub(super) fn of(path: &Path, shown: &Path) -> Result<Self, Problem> {
        let folder = tempfile::tempdir().map_err(|error| {
            Problem::new(".", format!("no scratch database can be made: {error}"))
        })?;
        let mut scratch = Self {
            copy: folder.path().join("check.db"),
            folder,
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

    /// How many bytes may be copied into its folder.
    fn room(&self) -> u64 {
        let free = rustix::fs::statvfs(self.folder.path())
            .map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        MAX_COPY.min(free / 2)
    }

    /// Takes the place of the copy of the schema by one with the rows, if a migration is pending:
    /// rows may refuse it, as those that are equal do a unique index.
    fn take_rows(&mut self, path: &Path, migrations: &Migrations, limit: u64) {
        let mut pending = migrations.list.iter();
        let Some(first) = pending.find(|known| !self.applied.contains(&known.name)) else {
            return;
        };
        let copy = self.folder.path().join("rows.db");
        let mib = |bytes: u64| bytes >> 20;
        let reason = match millpond_db::copy_rows(path, &copy, limit) {
            Ok(size) if size <= limit => {
                self.copy = copy;
                return;
            }
            Ok(size) => format!(
                "the database has {} MiB, and {} MiB may be copied: 1,024, and half of what is free in {}",
                mib(size),
                mib(limit),
                std::env::temp_dir().display()
            ),
            Err(error) => error.to_string(),
        };
        let message = format!("it and what comes after it was tried without rows ({reason})");
        let note = Problem::new(migrations.file(&first.name), message);
        self.note = Some(note.hint(
            "what the rows do not permit is found when the site starts: try it on a copy of the site",
        ));
    }
}

#[cfg(test)]
mod tests {
    use millpond_db::Migration;

    use super::*;

    #[test]
    fn a_large_database_is_tried_without_rows_and_says_so() {
        let dir = lab_testkit::fast_dir();
        let path = dir.path().join("site.db");
        rusqlite::Connection::open(&path)
            .and_then(|file| file.execute_batch("create table t (a)"))
            .unwrap();
        let mut migrations = Migrations::default();
        migrations.list.push(Migration {
            name: "0002_b.sql".into(),
            sql: String::new(),
        });
        let mut scratch = Scratch::of(&path, Path::new("site.db")).unwrap();
        scratch.take_rows(&path, &migrations, 1);
        let note = scratch.note.take().unwrap().to_string();
        assert!(
            note.contains(
                "migrations/0002_b.sql: it and what comes after it was tried without rows"
            ),
            "{note}"
        );
        assert!(scratch.copy.ends_with("check.db"));
        let room = scratch.room();
        assert!(room <= MAX_COPY);
        scratch.take_rows(&path, &migrations, MAX_COPY);
        assert!(scratch.note.is_none() && scratch.copy.ends_with("rows.db"));
    }
}
