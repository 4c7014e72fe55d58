//! A session of its own, beside the pool: for tools that write much at once, such as an import, and
//! for the server's own values.
//!
//! It is reached as the pool's connections are, TLS included, but it is not shared, and nothing
//! waits for its changes in the feed: servers notice them as those of any other program.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use super::failure::{chain, constraint, is_lost, sentence};
use super::options::{ConnectionTarget, PostgresOptions};
use super::tls::Tls;
use crate::{ConstraintKind, Error};

/// How long a session waits at its end for the server to take leave.
const FAREWELL: Duration = Duration::from_secs(1);

/// One connection, used by one thread. What it has not committed when it is dropped is rolled back.
pub struct PostgresSession {
    runtime: Runtime,
    /// `None` only while it is dropped.
    client: Option<Client>,
    driver: JoinHandle<()>,
    place: String,
    /// How long connecting or one call may take; `None`: as long as it takes.
    limit: Option<Duration>,
}

/// One row of a result, in PostgreSQL's own output form.
pub type TextRow = Vec<Option<String>>;

impl PostgresSession {
    /// Connects. No timeout ends its statements.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URL is not right, [`Error::Unavailable`] if the server
    /// cannot be reached.
    pub fn open(options: &PostgresOptions) -> Result<Self, Error> {
        let target = ConnectionTarget::parse(&options.url)?;
        Self::connect(&target, None)
    }

    /// Connects for a caller that cannot wait: connecting, and each call, ends after `limit`. Of
    /// several hosts the first that takes writes is used.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_within(options: &PostgresOptions, limit: Duration) -> Result<Self, Error> {
        let mut target = ConnectionTarget::parse(&options.url)?;
        let config = &mut target.config;
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        if hosts > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Self::connect(&target, Some(limit))
    }

    fn connect(target: &ConnectionTarget, limit: Option<Duration>) -> Result<Self, Error> {
        let tls = Tls::new(&target.trust)?;
        let place = target.place();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::unavailable)?;
        let connecting = within(limit, &place, target.config.connect(tls));
        let (client, connection) = runtime.block_on(connecting)?.map_err(|error| {
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
            limit,
        };
        let timeout = limit.map_or(0, |limit| limit.as_millis());
        session.run(&format!(
            "set client_min_messages = 'warning'; set statement_timeout = {timeout}"
        ))?;
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
        let outcome = self.wait(self.client()?.simple_query(script))?;
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
        let outcome = self.wait(self.client()?.execute(sql, &params))?;
        outcome.map_err(|error| self.sort(&error, sql))
    }

    /// Runs one statement with texts as parameters, whose columns are texts.
    ///
    /// # Errors
    /// PostgreSQL refuses it; [`Error::Unavailable`] if the connection is lost, and then the
    /// session is of no more use.
    pub fn query(&mut self, sql: &str, params: &[&str]) -> Result<Vec<TextRow>, Error> {
        let params: Vec<_> = params.iter().map(|text| (*text, Type::TEXT)).collect();
        let params = params
            .iter()
            .map(|(text, kind)| (text as &(dyn ToSql + Sync), kind.clone()));
        let params: Vec<_> = params.collect();
        let outcome = self.wait(self.client()?.query_typed(sql, &params))?;
        let rows = outcome.map_err(|error| self.sort(&error, sql))?;
        let texts = |row: &Row| (0..row.len()).map(|at| row.try_get(at)).collect();
        let rows: Result<_, _> = rows.iter().map(texts).collect();
        rows.map_err(|error| self.sort(&error, sql))
    }

    fn client(&self) -> Result<&Client, Error> {
        let ended = || Error::unavailable("the session has ended");
        self.client.as_ref().ok_or_else(ended)
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> Result<T, Error> {
        self.runtime.block_on(within(self.limit, &self.place, call))
    }

    fn sort(&self, error: &tokio_postgres::Error, sql: &str) -> Error {
        match error.as_db_error() {
            Some(said) if !is_lost(error) => {
                use ConstraintKind::{Check, NotNull};
                let message = match ConstraintKind::of_state(said.code().code()) {
                    // The detail has the whole row.
                    Some(Check | NotNull) => said.message().to_owned(),
                    _ => sentence(said),
                };
                let sql = Arc::from(sql);
                let refused = constraint(&said.into(), message.clone(), &sql);
                refused.unwrap_or(Error::Sql { message, sql })
            }
            _ => Error::unavailable(format!("{}: {}", self.place, chain(error))),
        }
    }
}

/// The outcome of `call`, unless it takes longer than `limit`.
async fn within<T>(
    limit: Option<Duration>,
    place: &str,
    call: impl Future<Output = T>,
) -> Result<T, Error> {
    match limit {
        None => Ok(call.await),
        Some(limit) => tokio::time::timeout(limit, call)
            .await
            .map_err(|_| Error::unavailable(format!("{place} does not answer within {limit:?}"))),
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
