//! The database that an import writes to.

use std::time::Duration;

use millpond_db::{PostgresOptions, PostgresSession};
use millpond_site::DatabaseUrl;
use rusqlite::Connection;

use super::record::ImportBatch;
use super::{ImportError, ImportSummary, Result, write, write_postgres};

/// How long to wait for another program that writes to the same file.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open database with the tables of the article site. A write here reaches a server as a change
/// of another program.
pub(crate) enum ArticleDatabase {
    /// An SQLite file.
    Sqlite(Connection),
    /// A PostgreSQL database.
    Postgres(PostgresSession),
}

impl ArticleDatabase {
    /// Opens the database of a site.
    ///
    /// # Errors
    /// [`ImportError::Open`].
    pub(crate) fn open(database: &DatabaseUrl) -> Result<Self> {
        match database {
            DatabaseUrl::Sqlite(path) => sqlite(path)
                .map(Self::Sqlite)
                .map_err(|error| ImportError::Open(path.display().to_string(), error.to_string())),
            DatabaseUrl::Postgres(url) => {
                PostgresSession::open(&PostgresOptions::new(url.reveal()))
                    .map(Self::Postgres)
                    .map_err(|error| ImportError::Open(url.to_string(), error.to_string()))
            }
        }
    }

    /// # Errors
    /// Names the first table that is missing.
    pub(super) fn require_tables(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(connection) => write::require_tables(connection),
            Self::Postgres(session) => write_postgres::require_tables(session),
        }
    }

    pub(super) fn write(&mut self, batch: &ImportBatch, summary: &mut ImportSummary) -> Result<()> {
        match self {
            Self::Sqlite(connection) => write::write(connection, batch, summary),
            Self::Postgres(session) => write_postgres::write(session, batch, summary),
        }
    }

    /// The ids and titles of all articles, from the shortest to the longest.
    ///
    /// # Errors
    /// The database refused.
    pub(crate) fn articles(&mut self) -> Result<Vec<(i64, String)>> {
        match self {
            Self::Sqlite(connection) => {
                let mut query = connection
                    .prepare("select id, title from article order by length(body_html), id")?;
                let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            Self::Postgres(session) => {
                let rows =
                    session.rows("select id, title from article order by length(body_html), id")?;
                let article = |row: Vec<Option<String>>| {
                    let [Some(id), Some(title)] = <[_; 2]>::try_from(row).ok()? else {
                        return None;
                    };
                    Some((id.parse().ok()?, title))
                };
                Ok(rows.into_iter().filter_map(article).collect())
            }
        }
    }
}

fn sqlite(path: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}
