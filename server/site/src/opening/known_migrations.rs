//! Migrations that are added or edited while a site is served.
//!
//! They are applied at the next start, and the owner is told. In development a new one is applied
//! at once, as a start would do it, and one that cannot be applied is a fault of the folder.

use std::{collections::BTreeMap, path::Path};

use millpond_db::{Database, Error, Migration, sql::Lexer};

use crate::opening;
use millpond_site_format::{
    Config, Problem,
    dialect::{Dialect, dialect_of},
    folder::{Migrations, migrations},
};

/// Migrations as the owner of a served site knows them.
#[derive(Default)]
pub(crate) struct KnownMigrations {
    /// Migrations that are applied: the text by the name.
    applied: BTreeMap<String, String>,
    /// Problems that were reported last.
    told: Vec<Problem>,
    /// True if the pages in use may have been compiled before the last of them.
    pub(crate) are_pages_older: bool,
}

impl KnownMigrations {
    /// Reads the migrations in the folder, all of which are applied.
    pub(crate) fn new(dir: &Path, config: &Config) -> Self {
        Self {
            applied: texts(&read(dir, config).unwrap_or_default()),
            ..Self::default()
        }
    }

    /// Lists the news about the folder since the last call: migrations that wait for the next
    /// start, and those for which it will fail.
    pub(crate) fn news(&mut self, dir: &Path, config: &Config) -> Vec<Problem> {
        let found = read(dir, config).unwrap_or_default();
        let all = found.list.iter().filter_map(|migration| {
            let file = found.file(&migration.name);
            match self.applied.get(&migration.name) {
                None => Some(Problem::new(
                    file,
                    "is new, and is applied at the next start of the server",
                )),
                Some(text) if *text == text_of(migration) => None,
                Some(_) => Some(
                    Problem::new(
                        file,
                        "has been edited since it was applied: the next start of the server will fail",
                    )
                    .hint("restore it, and put the change into a new migration"),
                ),
            }
        });
        let all: Vec<Problem> = all.collect();
        let news = all.iter().filter(|problem| !self.told.contains(problem));
        let news = news.cloned().collect();
        self.told = all;
        news
    }

    /// Applies those that are new, in development; gives their names.
    ///
    /// # Errors
    /// One is broken, or was edited since it was applied. A database that is away is no fault of
    /// the folder: the next change of a file tries again.
    pub(crate) fn apply(
        &mut self,
        dir: &Path,
        config: &Config,
        database: &Database,
    ) -> Result<Vec<String>, Vec<Problem>> {
        let mut found = read(dir, config)?;
        // An editor has made the file, and its text is still to come: recorded as applied, it could
        // not be written any more.
        let dialect = dialect_of(&config.database);
        found
            .list
            .retain(|migration| has_statement(migration, dialect));
        let texts = texts(&found);
        if texts == self.applied {
            return Ok(Vec::new());
        }
        match database.migrate(&found.list) {
            Ok(applied) => {
                self.applied = texts;
                self.are_pages_older |= !applied.is_empty();
                Ok(applied.iter().map(|name| found.file(name)).collect())
            }
            Err(
                Error::Unavailable { .. }
                | Error::Overloaded
                | Error::Locked { .. }
                | Error::Timeout { .. },
            ) => Ok(Vec::new()),
            Err(error) => {
                // Those before it may be applied.
                self.are_pages_older = true;
                let is_edited = matches!(error, Error::MigrationChanged { .. });
                let shown = opening::shown(dir, &config.database);
                let problem = opening::refused(error, &found, &shown);
                Err(vec![match is_edited {
                    true => problem.hint(
                        "restore it, and put the change into a new migration; or, if the data may be \
                         lost, stop the server, delete the database, and start again",
                    ),
                    false => problem,
                }])
            }
        }
    }
}

fn read(dir: &Path, config: &Config) -> Result<Migrations, Vec<Problem>> {
    migrations(dir, dialect_of(&config.database))
}

fn texts(found: &Migrations) -> BTreeMap<String, String> {
    let list = found.list.iter();
    list.map(|migration| (migration.name.clone(), text_of(migration)))
        .collect()
}

/// The text as the database remembers it: version control may change line ends.
fn text_of(migration: &Migration) -> String {
    migration.sql.replace('\r', "")
}

/// True if there is more than comments in it.
fn has_statement(migration: &Migration, dialect: Dialect) -> bool {
    Lexer::new(&migration.sql, dialect).any(|token| !token.is_blank())
}
