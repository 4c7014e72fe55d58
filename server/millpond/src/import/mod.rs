//! Real content for the tables of the article site.
//!
//! Two sources, two databases, one schema (`examples/articles/migrations`): the components of a Cargo workspace ([`crates`]) and a
//! folder of Markdown files with front matter ([`markdown`]). Everything is read and rendered first and then written in
//! one transaction, so that a server on the same file sees one change. Importing again updates by slug and writes only
//! the rows that differ; what readers wrote is never touched, and what has left the source stays.
//!
//! Knows Markdown, Cargo's metadata and the schema. Does not apply migrations and does not know the server.

mod cargo;
mod changelog;
mod components;
mod dates;
mod folder;
mod front_matter;
mod html;
mod library;
mod record;
mod relations;
mod target;
mod text;
mod tidy;
mod topics;
mod write;
mod write_postgres;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

pub use target::Target;

/// The largest text that becomes an article, in bytes.
pub const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// What an import did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
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
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
}

/// A source that made no article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file, or the name of the component.
    pub source: String,
    /// The line of the file, where one is to blame.
    pub line: Option<usize>,
    /// Why, as a sentence without a full stop.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.source, self.reason),
            None => write!(f, "{}: {}", self.source, self.reason),
        }
    }
}

impl fmt::Display for Summary {
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
pub enum Error {
    /// The database lacks a table of the article site.
    MissingTable(&'static str),
    /// The database refused.
    Database(rusqlite::Error),
    /// PostgreSQL refused.
    Postgres(millpond_db::Error),
    /// The database cannot be opened: which, and why.
    Open(String, String),
    /// A folder or file could not be read.
    Read(PathBuf, std::io::Error),
    /// Cargo could not list the components; its own words.
    Cargo(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTable(table) => write!(
                f,
                "the database has no table `{table}`: apply the migrations of the article site first \
                 (`millpond serve` on the site does it)"
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
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Cargo(words) => write!(f, "cargo metadata: {words}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Postgres(error) => Some(error),
            Self::Read(_, error) => Some(error),
            Self::MissingTable(_) | Self::Open(..) | Self::Cargo(_) => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The result of an import.
pub type Result<T> = std::result::Result<T, Error>;

/// Makes an article of every component that the workspace at `manifest` (its `Cargo.toml`) is built from.
///
/// Runs `cargo metadata` (the program that `CARGO` names, or `cargo`), first without the network. `progress` is told
/// what is being done, in a few words, once for each component.
///
/// # Errors
/// When Cargo cannot list the components, a table is missing, or the database refuses; then nothing has changed.
pub fn crates(db: &mut Target, manifest: &Path, progress: &mut dyn FnMut(&str)) -> Result<Summary> {
    db.require_tables()?;
    progress("asking cargo for the components of this build");
    let metadata = cargo::metadata(manifest)?;
    let mut summary = Summary::default();
    let batch = components::batch(&metadata, &mut summary.skipped, progress);
    progress("writing");
    db.write(&batch, &mut summary)?;
    Ok(summary)
}

/// Makes an article of every Markdown file (`.md`, `.markdown`) with front matter in `dir` and the folders below it.
///
/// Files that are no such thing, are broken, or are larger than [`MAX_SOURCE_BYTES`] are left out and listed in
/// [`Summary::skipped`] with file and line; drafts are left out silently.
///
/// # Errors
/// When `dir` cannot be read, a table is missing, or the database refuses; then nothing has changed.
pub fn markdown(db: &mut Target, dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Summary> {
    db.require_tables()?;
    let mut summary = Summary::default();
    let batch = folder::batch(dir, &mut summary.skipped, progress)?;
    progress("writing");
    db.write(&batch, &mut summary)?;
    Ok(summary)
}
