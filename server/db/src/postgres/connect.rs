//! One connection: how its session is set, and the statements that it has prepared.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use foldhash::fast::RandomState;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::context::DatabaseContext;
use super::failure::chain;
use super::feed::STARTED;
use super::files::KnownFiles;
use super::link::FeedLink;
use super::liveness::SERVER_SIDE;
use super::prepare::{PreparedStatement, own};
use super::wire::open::{OpenedWire, Refusal, open};
use super::wire::{FailedBatch, Item, Wire};
use crate::{Error, FeedKind, Value};

/// The time for the conversation after the socket has been opened: TLS, password, settings.
const GREETING: Duration = Duration::from_secs(10);
/// How long it is waited for the server when a connection is closed or a statement cancelled.
const FAREWELL: Duration = Duration::from_secs(1);
/// Statements that the driver keeps prepared, besides those of reads; each costs memory in the
/// server.
const MAX_STATEMENTS: usize = 1_024;
/// The first version that tells what a query names (bodies of functions as trees), and streams
/// large transactions before they end.
const MIN_VERSION: i32 = 140_000;

/// The statements that Millpond itself needs around those of the owner.
pub(super) struct OwnStatements {
    pub(super) begin_write: Rc<PreparedStatement>,
    /// Leaves a write's token in its transaction, or tells the id by which the feed will know it.
    pub(super) token: Rc<PreparedStatement>,
    pub(super) commit: Rc<PreparedStatement>,
    pub(super) rollback: Rc<PreparedStatement>,
}

const BEGIN_WRITE: &str = "begin isolation level read committed read write";
const EMIT: &str = "select pg_logical_emit_message(true, $1::text, $2::text)::text";
/// The id, if the transaction has written, and a bound below which all lies that it has seen.
const TRANSACTION: &str =
    "select pg_current_xact_id_if_assigned()::text, pg_snapshot_xmax(pg_current_snapshot())::text";

/// An open connection. It has one user at a time.
pub(super) struct PooledConnection {
    pub(super) client: Client,
    pub(super) own: OwnStatements,
    /// The files of the tables that were read on it.
    pub(super) files: KnownFiles,
    wire: Wire,
    statements: HashMap<Arc<str>, Rc<PreparedStatement>, RandomState>,
    /// The catalog's number for which the statements were prepared.
    schema: u64,
    /// When its server was started, as [`STARTED`] gives it.
    started: String,
    /// The catalog's number when the session began, or before.
    began: u64,
    opened_at: Boottime,
    driver: JoinHandle<()>,
}

/// Connects, and sets what results and dependencies rely on.
pub(super) async fn connect(shared: &DatabaseContext) -> Result<PooledConnection, Error> {
    let hosts = shared.target.config.get_hosts().len().max(1);
    let per_host = shared.target.config.get_connect_timeout().copied();
    let time = per_host.unwrap_or_default() * u32::try_from(hosts).unwrap_or(1) + GREETING;
    match timeout(time, greet(shared)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::unavailable(format!(
            "{} does not answer within {time:?}",
            shared.place
        ))),
    }
}

async fn greet(shared: &DatabaseContext) -> Result<PooledConnection, Error> {
    let cannot = |error: tokio_postgres::Error| {
        Error::unavailable(format!(
            "cannot connect to {}: {}",
            shared.place,
            chain(&error)
        ))
    };
    // Counterexample: *A session takes over the role's settings, they are changed, and the session
    // is taken for one that began after the change.*
    let began = shared.link.schema();
    let opened_at = Boottime::now();
    let opened = open(shared).await.map_err(|Refusal { why, is_login }| {
        let message = format!("cannot connect to {}: {why}", shared.place);
        match is_login {
            true => Error::Login { message },
            false => Error::Unavailable { message },
        }
    })?;
    let OpenedWire {
        client,
        wire,
        driver,
    } = opened;
    client
        .batch_execute(&session(shared))
        .await
        .map_err(cannot)?;
    check_version(shared, &client).await?;
    let started = client
        .query_one(STARTED, &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(cannot)?;
    let token = match shared.options.feed {
        FeedKind::Logical => EMIT,
        FeedKind::Triggers => TRANSACTION,
    };
    let own = OwnStatements {
        begin_write: own(&client, BEGIN_WRITE).await.map_err(cannot)?,
        token: own(&client, token).await.map_err(cannot)?,
        commit: own(&client, "commit").await.map_err(cannot)?,
        rollback: own(&client, "rollback").await.map_err(cannot)?,
    };
    Ok(PooledConnection {
        client,
        own,
        files: KnownFiles::default(),
        wire,
        statements: HashMap::default(),
        schema: began,
        started,
        began,
        opened_at,
        driver,
    })
}

/// Output forms are fixed, as results are kept and compared; what is not said to write only reads;
/// a transaction that waits for us ends by itself.
fn session(shared: &DatabaseContext) -> String {
    let limit = shared.options.statement_timeout.as_millis().max(1);
    let liveness = SERVER_SIDE.map(|(name, value)| format!("; set {name} = {value}"));
    format!(
        "set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; \
         set bytea_output = 'hex'; set extra_float_digits = 1; set xmloption = 'content'; \
         set standard_conforming_strings = on; set client_min_messages = 'warning'; \
         set default_transaction_isolation = 'repeatable read'; set default_transaction_read_only = on; \
         set statement_timeout = {limit}; set idle_in_transaction_session_timeout = {limit}{}",
        liveness.concat()
    )
}

async fn check_version(shared: &DatabaseContext, client: &Client) -> Result<(), Error> {
    let cannot = |error: tokio_postgres::Error| {
        Error::unavailable(format!("{}: {}", shared.place, chain(&error)))
    };
    let version = client
        .query_one("select current_setting('server_version_num')::integer", &[])
        .await
        .and_then(|row| row.try_get(0));
    let version: i32 = version.map_err(cannot)?;
    if version < MIN_VERSION {
        return Err(Error::unavailable(format!(
            "{} is PostgreSQL {}; Millpond needs 14 or later",
            shared.place,
            version / 10_000
        )));
    }
    Ok(())
}

impl PooledConnection {
    /// True if the server has gone, as far as is known without asking it.
    pub(super) fn is_dead(&self) -> bool {
        self.client.is_closed() || self.wire.is_over()
    }

    /// True if its session has begun in the catalog of this number, and so with its settings and
    /// without plans of an older one, also in functions (coherence.md, rule 9).
    pub(super) fn has_begun_in(&self, schema: u64) -> bool {
        self.began == schema
    }

    /// How long ago its session began.
    pub(super) fn age(&self) -> Duration {
        Boottime::now().since(self.opened_at)
    }

    /// The session of a replica began when the replica had this catalog.
    pub(super) fn on_replica(self, began: u64) -> Self {
        Self { began, ..self }
    }

    /// Runs statements that only read, in one snapshot and one round trip; gives the rows of each.
    pub(super) async fn read(
        &mut self,
        items: &[Item<'_>],
    ) -> Result<Vec<Vec<Vec<Value>>>, FailedBatch> {
        self.wire.run(items).await
    }

    /// True if it leads where the feed does.
    pub(super) fn is_feeds_server(&self, link: &FeedLink) -> bool {
        link.is_feeds_server(&self.started)
    }

    /// Forgets what was prepared for another catalog.
    pub(super) fn keep_up_with(&mut self, schema: u64) {
        if self.schema != schema {
            self.forget_all();
            self.schema = schema;
        }
    }

    /// A statement that was prepared here.
    pub(super) fn known(&self, text: &str) -> Option<Rc<PreparedStatement>> {
        self.statements.get(text).cloned()
    }

    /// Keeps a prepared statement.
    pub(super) fn remember(&mut self, text: Arc<str>, ready: Rc<PreparedStatement>) {
        if self.statements.len() >= MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(text, ready);
    }

    /// Forgets all prepared statements: the server says that they are outdated.
    pub(super) fn forget_all(&mut self) {
        self.statements.clear();
        self.wire.forget_all();
    }

    /// Says goodbye.
    pub(super) async fn close(self) {
        let Self {
            client,
            own,
            statements,
            mut driver,
            ..
        } = self;
        drop((client, own, statements));
        if timeout(FAREWELL, &mut driver).await.is_err() {
            driver.abort();
        }
    }

    /// Closes a connection on which a commit may still run: to cancel that would make its outcome
    /// no clearer.
    pub(super) fn abort(self) {
        self.driver.abort();
    }

    /// Closes a connection whose statement has no waiter, and asks the server to cancel the
    /// statement.
    pub(super) fn abandon(self, shared: &Arc<DatabaseContext>) {
        let token = self.client.cancel_token();
        let address = self.wire.address().clone();
        let shared = Arc::clone(shared);
        tokio::task::spawn_local(async move {
            let cancel = address.cancel(&token, &shared.target.config, shared.tls.config());
            // If the server does not answer, there is nothing more to do for it.
            let _ = timeout(FAREWELL, cancel).await;
            self.driver.abort();
        });
    }
}
