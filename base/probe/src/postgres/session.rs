//! One connection of the probe: prepared, asked, and given up when it does not answer.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::PgError;
use super::cpu::PgProcesses;
use super::error::words;
use super::model::{PgSample, PgServer};
use super::queries::{SampleQuery, parts, together};

/// How long a statement may take on the server.
const STATEMENT_MS: u64 = 1_000;
/// Limit for an answer: a stopped or vanished server does not keep its own `statement_timeout`.
const ANSWER: Duration = Duration::from_millis(2_500);
/// The oldest version whose views are known (`server_version_num`).
const OLDEST: u32 = 130_000;

/// Why there is no sample.
#[derive(Debug)]
pub(super) enum SampleFailure {
    /// The connection is unusable.
    Lost(String),
    /// The server refused this one.
    Refused(String),
}

/// A connection that is ready to be asked.
pub(super) struct PgSession {
    client: Client,
    parts: Vec<SampleQuery>,
    query: String,
    processes: Option<PgProcesses>,
    pub(super) server: PgServer,
}

impl PgSession {
    /// Connects and finds out what the server lets the account see; what it does not is noted.
    pub(super) async fn open(
        config: &Config,
        unavailable: &mut BTreeMap<String, String>,
    ) -> Result<Self, PgError> {
        let failed = |error: tokio_postgres::Error| PgError::connect(words(&error));
        let opening = timeout(ANSWER * 2, config.connect(NoTls));
        let (client, connection) = opening
            .await
            .map_err(|_| PgError::connect(format!("no answer within {:?}", ANSWER * 2)))?
            .map_err(failed)?;
        // It ends with the client, and its error is the client's next one.
        tokio::spawn(connection);
        let mut session = Self {
            client,
            parts: Vec::new(),
            query: String::new(),
            processes: None,
            server: PgServer::default(),
        };
        let setup = timeout(ANSWER, session.set_up(unavailable));
        match setup.await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(PgError::connect(format!("no answer within {ANSWER:?}"))),
        }
        Ok(session)
    }

    async fn set_up(&mut self, unavailable: &mut BTreeMap<String, String>) -> Result<(), PgError> {
        let failed = |error: tokio_postgres::Error| PgError::connect(words(&error));
        let settings = format!(
            "set statement_timeout = {STATEMENT_MS}; set default_transaction_read_only = on"
        );
        self.client.batch_execute(&settings).await.map_err(failed)?;
        let row = self.client.query_one(ABOUT, &[]).await.map_err(failed)?;
        let version = row.get::<_, i32>("version").cast_unsigned();
        let name: String = row.get("name");
        if version < OLDEST {
            return Err(PgError::version(&name));
        }
        self.server = PgServer {
            version: name,
            database: row.get("database"),
            max_connections: row.get::<_, i32>("max_connections").unsigned_abs().into(),
            is_standby: row.get("standby"),
        };
        if !row.get::<_, bool>("sees_all") {
            let account: &str = row.get("account");
            unavailable.insert(
                "sessions and waits of other accounts".to_owned(),
                format!("{account} may not see them; to allow it: grant pg_monitor to {account}"),
            );
        }
        match PgProcesses::of_backend(row.get("pid"), row.get("age")) {
            Ok(processes) => self.processes = Some(processes),
            Err(why) => {
                unavailable.insert("CPU".to_owned(), why);
            }
        }
        self.choose(version, unavailable).await
    }

    /// Tries each part alone: one that is refused would take the others along.
    async fn choose(
        &mut self,
        version: u32,
        unavailable: &mut BTreeMap<String, String>,
    ) -> Result<(), PgError> {
        for part in parts(version, unavailable) {
            match self.client.simple_query(part.sql).await {
                Ok(_) => self.parts.push(part),
                Err(error) if error.as_db_error().is_some() => {
                    unavailable.insert(part.name.to_owned(), words(&error));
                }
                Err(error) => return Err(PgError::connect(words(&error))),
            }
        }
        self.query = together(&self.parts);
        Ok(())
    }

    /// One sample, without its time.
    pub(super) async fn sample(
        &self,
        unavailable: &mut BTreeMap<String, String>,
    ) -> Result<PgSample, SampleFailure> {
        let answer = timeout(ANSWER, self.client.simple_query(&self.query)).await;
        let messages = match answer {
            Ok(Ok(messages)) => messages,
            Ok(Err(error)) if error.as_db_error().is_some() && !self.client.is_closed() => {
                return Err(SampleFailure::Refused(words(&error)));
            }
            Ok(Err(error)) => return Err(SampleFailure::Lost(words(&error))),
            Err(_) => return Err(SampleFailure::Lost(format!("no answer within {ANSWER:?}"))),
        };
        let mut sample = PgSample::default();
        let mut parts = self.parts.iter();
        let mut part = parts.next();
        for message in &messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    if let Some(part) = part {
                        part.read(row, &mut sample);
                    }
                }
                SimpleQueryMessage::CommandComplete(_) => part = parts.next(),
                _ => {}
            }
        }
        if let Some(processes) = &self.processes {
            match processes.run_time() {
                Ok(time) => sample.counters.cpu_ns = Some(time),
                Err(why) => {
                    unavailable.insert("CPU of some samples".to_owned(), why);
                }
            }
        }
        Ok(sample)
    }
}

/// Query that is asked once on each connection.
const ABOUT: &str = "select current_setting('server_version_num')::int as version, \
     current_setting('server_version') as name, current_database()::text as database, \
     current_user::text as account, current_setting('max_connections')::int as max_connections, \
     pg_is_in_recovery() as standby, pg_backend_pid() as pid, \
     pg_has_role('pg_read_all_stats', 'usage') as sees_all, \
     coalesce(extract(epoch from clock_timestamp() - (select backend_start from pg_stat_activity \
     where pid = pg_backend_pid())), 0)::float8 as age";
