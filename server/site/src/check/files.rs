//! The migrations that files of data lack.

use std::path::Path;

use millpond_db::Database;

use super::{open, sqlite::Scratch};
use crate::{
    data::{self, DataSources, FilePin},
    opening,
};
use millpond_site_format::{Config, DatabaseUrl, Problem, dialect::dialect_of, folder::migrations};

/// The migrations that a site's files of data lack, with the types of their values. The site's
/// database is not changed, as by [`check`](super::check).
///
/// # Errors
/// What is wrong with the migrations there are, or with the database.
pub fn missing_tables(dir: &Path, config: &Config) -> Result<Vec<FilePin>, Vec<Problem>> {
    let sources = DataSources::new(dir, config);
    if !sources.has_any() || config.has_hosts() {
        return Ok(Vec::new());
    }
    let migrations = migrations(dir, dialect_of(&config.database))?;
    let shown = opening::shown(dir, &config.database);
    let one = |problem| vec![problem];
    let find = |database: &Database, is_ready: Result<(), Problem>| {
        let pins = is_ready.map(|()| data::found(&sources, database, config).pins);
        database.stop();
        pins.map_err(one)
    };
    match &config.database {
        DatabaseUrl::Sqlite(path) => {
            let scratch = Scratch::of(path, &shown).map_err(one)?;
            let database = opening::sqlite(dir, &scratch.copy, config, 1).map_err(one)?;
            let ready = opening::migrate(&database, &migrations, &shown);
            find(&database, ready.map(drop))
        }
        DatabaseUrl::Postgres(url) => {
            let database = open(url, config).map_err(one)?;
            let rehearsed = database.rehearse(&migrations.list).map(drop);
            let refused = |error| opening::refused(error, &migrations, &shown);
            find(&database, rehearsed.map_err(refused))
        }
    }
}

/// Writes the migrations into `migrations/`, each with the next number; gives the paths below the
/// site's folder. They are applied when the site starts.
///
/// # Errors
/// A file that cannot be written; those before it are there.
pub fn write_migrations(dir: &Path, pins: &[FilePin]) -> Result<Vec<String>, Problem> {
    data::pin(dir, pins)
}
