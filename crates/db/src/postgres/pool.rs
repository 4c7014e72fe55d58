//! The connections of one thread: opened when they are needed, kept while they live.

use std::cell::RefCell;
use std::sync::Arc;

use millpond_store::clock::Boottime;

use super::Shared;
use super::backoff::Backoff;
use super::connect::{Connection, connect};
use crate::Error;

/// One thread's share of the connections. How many are in use at once is the [lane](super::lane)'s to limit.
pub(super) struct Pool {
    pub(super) shared: Arc<Shared>,
    idle: RefCell<Vec<Connection>>,
    backoff: RefCell<Backoff>,
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            idle: RefCell::default(),
            backoff: RefCell::default(),
        }
    }

    /// A connection that was used before and is not known to be dead, or a new one.
    pub(super) async fn get(&self) -> Result<Connection, Error> {
        while let Some(connection) = self.pop() {
            if !connection.is_dead() {
                return Ok(connection);
            }
        }
        self.open().await
    }

    /// The one that was used last: its statements are the warmest, and those that nobody needs stay at the bottom.
    fn pop(&self) -> Option<Connection> {
        self.idle.borrow_mut().pop()
    }

    /// A new connection.
    pub(super) async fn open(&self) -> Result<Connection, Error> {
        self.backoff.borrow_mut().ask(Boottime::now())?;
        let outcome = connect(&self.shared).await;
        let mut backoff = self.backoff.borrow_mut();
        match &outcome {
            Ok(_) => backoff.succeeded(),
            Err(error) => {
                backoff.failed(error.clone(), Boottime::now());
                self.shared.link.count_failure(&error.to_string());
            }
        }
        outcome
    }

    /// Keeps a connection for the next.
    pub(super) fn put(&self, connection: Connection) {
        self.idle.borrow_mut().push(connection);
    }

    /// Takes leave of the server.
    pub(super) async fn close(&self) {
        while let Some(connection) = self.pop() {
            connection.close().await;
        }
    }
}
