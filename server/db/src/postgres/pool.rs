//! The connections of one thread: opened when they are needed, kept while they live.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;

use super::backoff::Backoff;
use super::connect::{PooledConnection, connect};
use super::context::DatabaseContext;
use crate::Error;

/// How long a session is read from while a feed is wanted and there is none: nothing tells then
/// that settings have changed, which sessions take over when they begin (coherence.md, rule 9).
const UNFED_SESSION_LIFE: Duration = Duration::from_secs(2);

/// One thread's share of the connections. How many are in use at once is the [lane](super::lane)'s
/// to limit.
pub(super) struct Pool {
    pub(super) shared: Arc<DatabaseContext>,
    idle: RefCell<Vec<PooledConnection>>,
    backoff: RefCell<Backoff>,
}

impl Pool {
    pub(super) fn new(shared: Arc<DatabaseContext>) -> Self {
        Self {
            shared,
            idle: RefCell::default(),
            backoff: RefCell::default(),
        }
    }

    /// A connection that was used before and is not known to be dead, or a new one; to the feed's
    /// server, while there is a feed.
    pub(super) async fn get(&self) -> Result<PooledConnection, Error> {
        while let Some(connection) = self.pop() {
            // What leads elsewhere, or began in another catalog, is closed by being dropped.
            let link = &self.shared.link;
            let is_current = connection.has_begun_in(link.schema())
                && (link.has_feed()
                    || !link.awaits_feed()
                    || connection.age() < UNFED_SESSION_LIFE);
            if is_current && !connection.is_dead() && connection.is_feeds_server(link) {
                return Ok(connection);
            }
        }
        self.open().await
    }

    /// The one that was used last: its statements are the warmest, and connections that are not
    /// needed stay at the bottom.
    fn pop(&self) -> Option<PooledConnection> {
        self.idle.borrow_mut().pop()
    }

    /// A new connection.
    pub(super) async fn open(&self) -> Result<PooledConnection, Error> {
        self.backoff.borrow_mut().ask(Boottime::now())?;
        let attempt = Attempt { pool: self };
        let outcome = connect(&self.shared).await;
        std::mem::forget(attempt);
        let outcome = outcome.and_then(|connection| self.checked(connection));
        match &outcome {
            Ok(_) => self.backoff.borrow_mut().succeeded(),
            Err(error) => self.failed(error.clone()),
        }
        outcome
    }

    fn checked(&self, connection: PooledConnection) -> Result<PooledConnection, Error> {
        if connection.is_feeds_server(&self.shared.link) {
            return Ok(connection);
        }
        Err(Error::unavailable(format!(
            "{} has led to another server than the one whose changes are followed; of several hosts only one may take writes",
            self.shared.place
        )))
    }

    fn failed(&self, error: Error) {
        self.shared.link.failures.count(&error.to_string());
        self.backoff.borrow_mut().failed(error, Boottime::now());
    }

    /// Keeps a connection for the next.
    pub(super) fn put(&self, connection: PooledConnection) {
        self.idle.borrow_mut().push(connection);
    }

    /// A connection has said nothing for so long that its fellows may be as deaf: what is idle is
    /// closed, so that the next does not wait for each of them in turn.
    pub(super) fn mark_suspect(&self) {
        self.idle.borrow_mut().clear();
    }

    /// Takes leave of the server.
    pub(super) async fn close(&self) {
        while let Some(connection) = self.pop() {
            connection.close().await;
        }
    }
}

/// An attempt to connect: if its caller gives up, the attempt counts as failed, and the next may
/// try.
struct Attempt<'a> {
    pool: &'a Pool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let place = &self.pool.shared.place;
        let given_up = format!("{place} took too long to connect to");
        self.pool.failed(Error::unavailable(given_up));
    }
}
