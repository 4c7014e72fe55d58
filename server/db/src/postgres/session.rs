//! A session of its own for tools that write much at once, such as an import: scripts, and rows by
//! the thousand.
//!
//! It is reached as the pool's connections are, TLS included, but it is not shared, no timeout ends
//! its statements, and nothing waits for its changes in the feed: servers notice them as those of
//! any other program.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::failure::{chain, sentence};
use super::options::{ConnectionTarget, PostgresOptions};
use super::tls::Tls;
use crate::Error;

/// How long a session waits at its end for the server to take leave.
const FAREWELL: Duration = Duration::from_secs(1);

/// One connection, used by one thread. What it has not committed when it is dropped is rolled back.
pub struct PostgresSession {
    runtime: Runtime,
    /// `None` only while it is dropped.
    client: Option<Client>,
    driver: JoinHandle<()>,
    place: String,
}

/// One row of a result, in PostgreSQL's own output form.
pub type TextRow = Vec<Option<String>>;

impl PostgresSession {
    /// Connects.
    ///
    /// # Errors [`Error::Usage`] if the URL is not right, [`Error::Unavailable`] if the server
    /// cannot be reached.
    pub fn open(options: &PostgresOptions) -> Result<Self, Error> {
        let target = ConnectionTarget::parse(&options.url)?;
        let tls = Tls::new(&target.trust)?;
        let place = target.place();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::unavailable)?;
        let (client, connection) =
            runtime
                .block_on(target.config.connect(tls))
                .map_err(|error| {
                    Error::unavailable(format!("cannot connect to {place}: {}", chain(&error)))
                })?;
        let driver = runtime.spawn(async move {
            // The client reports errors to the waiting caller.
            let _ = connection.await;
        });
        let mut session = Self {
            runtime,
            client: Some(client),
            driver,
            place,
        };
        session.run("set client_min_messages = 'warning'; set statement_timeout = 0")?;
        Ok(session)
    }

    /// Runs a script.
    ///
    /// # Errors
    /// The first statement that PostgreSQL refuses.
    pub fn run(&mut self, script: &str) -> Result<(), Error> {
        self.rows(script).map(drop)
    }

    /// Runs a script, and gives the rows of all its statements.
    ///
    /// # Errors
    /// The first statement that PostgreSQL refuses.
    pub fn rows(&mut self, script: &str) -> Result<Vec<TextRow>, Error> {
        let outcome = match &self.client {
            Some(client) => self.runtime.block_on(client.simple_query(script)),
            None => return Err(Error::unavailable("the session has ended")),
        };
        let messages = outcome.map_err(|error| self.sort(&error, script))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let value = |at| row.get(at).map(str::to_owned);
                Some((0..row.len()).map(value).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// Runs one statement whose parameters are lists of texts, as `insert into t select * from
    /// unnest($1::text[], $2::text[])` takes them: one list for each column.
    ///
    /// # Errors
    /// PostgreSQL refuses it.
    pub fn fill(&mut self, sql: &str, columns: &[Vec<Option<&str>>]) -> Result<u64, Error> {
        let params: Vec<&(dyn ToSql + Sync)> = columns
            .iter()
            .map(|column| column as &(dyn ToSql + Sync))
            .collect();
        let outcome = match &self.client {
            Some(client) => self.runtime.block_on(client.execute(sql, &params)),
            None => return Err(Error::unavailable("the session has ended")),
        };
        outcome.map_err(|error| self.sort(&error, sql))
    }

    fn sort(&self, error: &tokio_postgres::Error, sql: &str) -> Error {
        match error.as_db_error() {
            Some(said) => Error::Sql {
                message: sentence(said),
                sql: sql.into(),
            },
            None => Error::unavailable(format!("{}: {}", self.place, chain(error))),
        }
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        drop(self.client.take());
        // The driver says goodbye once the client has gone.
        let driver = &mut self.driver;
        self.runtime.block_on(async {
            if tokio::time::timeout(FAREWELL, &mut *driver).await.is_err() {
                driver.abort();
            }
        });
    }
}
