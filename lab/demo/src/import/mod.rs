//! Real content for the tables of the article site.
//!
//! The source is a Cargo workspace ([`crates`]); the tables are those of
//! `examples/articles/migrations`, on SQLite or PostgreSQL. Everything is read and rendered first
//! and then written in one transaction, so a server on the same database sees one change. A second
//! import updates by slug and writes only the rows that differ. It never touches what readers
//! wrote, and keeps articles that have left the source.
//!
//! Knows Markdown, Cargo's metadata and the tables. Does not apply migrations and does not know the
//! server.

mod cargo;
mod changelog;
mod components;
mod database;
mod dates;
mod html;
mod library;
mod record;
mod text;
mod tidy;
mod topics;
mod write;
mod write_postgres;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

pub(crate) use database::ArticleDatabase;

/// The largest text that becomes an article, in bytes.
pub(crate) const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// Counts of an import.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ImportSummary {
    /// Articles that were not there before.
    pub added: usize,
    /// Articles that were there and differed.
    pub updated: usize,
    /// Articles that were there and are the same still.
    pub unchanged: usize,
    /// Comments added or changed (release notes of components).
    pub comments: usize,
    /// Board threads added or changed (one for each topic of the components).
    pub threads: usize,
    /// Pages that were left out, each with the reason.
    pub skipped: Vec<Skipped>,
}

/// A source that made no article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The name of the component.
    pub source: String,
    /// Why, as a sentence without a full stop.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            added,
            updated,
            unchanged,
            comments,
            threads,
            skipped,
        } = self;
        write!(
            f,
            "{added} articles added, {updated} updated, {unchanged} unchanged"
        )?;
        if comments + threads > 0 {
            write!(
                f,
                "; {comments} release notes and {threads} board threads written"
            )?;
        }
        if !skipped.is_empty() {
            write!(f, "; {} skipped", skipped.len())?;
        }
        Ok(())
    }
}

/// Why nothing was imported. The database is as it was.
#[derive(Debug)]
pub(crate) enum ImportError {
    /// The database lacks a table of the article site.
    MissingTable(&'static str),
    /// The database refused.
    Database(rusqlite::Error),
    /// PostgreSQL refused.
    Postgres(millpond_db::Error),
    /// The database cannot be opened: which, and why.
    Open(String, String),
    /// Cargo could not list the components; its own words.
    Cargo(String),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTable(table) => write!(
                f,
                "the database has no table `{table}`: `millpond serve` on the article site applies its migrations"
            ),
            Self::Database(error) => write!(
                f,
                "the database refused the import, nothing was changed: {error}"
            ),
            Self::Postgres(error) => write!(
                f,
                "the database refused the import, nothing was changed: {error}"
            ),
            Self::Open(database, why) => write!(f, "cannot open {database}: {why}"),
            Self::Cargo(words) => write!(f, "cargo metadata: {words}"),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Postgres(error) => Some(error),
            Self::MissingTable(_) | Self::Open(..) | Self::Cargo(_) => None,
        }
    }
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The result of an import.
pub(crate) type Result<T> = std::result::Result<T, ImportError>;

/// Makes an article of every component that the workspace at `manifest` (its `Cargo.toml`) is built
/// from.
///
/// Runs `cargo metadata` (the program that `CARGO` names, or `cargo`), first without the network.
/// Each step calls `progress` with a few words, once for each component.
///
/// # Errors
/// When Cargo cannot list the components, a table is missing, or the database refuses; then nothing
/// is changed.
pub(crate) fn crates(
    db: &mut ArticleDatabase,
    manifest: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<ImportSummary> {
    db.require_tables()?;
    progress("asking cargo for the components of this build");
    let metadata = cargo::metadata(manifest)?;
    let mut summary = ImportSummary::default();
    let batch = components::batch(&metadata, &mut summary.skipped, progress);
    progress("writing");
    db.write(&batch, &mut summary)?;
    Ok(summary)
}
