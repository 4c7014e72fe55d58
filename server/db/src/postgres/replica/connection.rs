//! A connection to a replica, and how many there may be.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::timeout;

use super::GREETING;
use super::probe::{self, Probe};
use crate::postgres::connect::PooledConnection;
use crate::postgres::failure::chain;
use crate::postgres::wire::Item;

/// Query for the database system that a server belongs to. It stays the same while a connection
/// lives.
pub(crate) const SYSTEM: &str =
    "select system_identifier::text from pg_catalog.pg_control_system()";

/// A connection in its place.
pub(super) struct Lease {
    pub(super) connection: PooledConnection,
    /// The system identifier of its server.
    pub(super) system: String,
    _place: ReplicaPermit,
}

impl Lease {
    /// Of a new connection, before any read uses it: the server plans the probe here.
    /// Counterexample: *It takes longer over its first than a read may wait, and is left alone each
    /// time.* A statement that takes longer than `limit` it ends itself from then on: that says
    /// which one it was, and the connection stays good.
    pub(super) async fn new(
        connection: PooledConnection,
        place: ReplicaPermit,
        limit: Duration,
    ) -> Result<Self, String> {
        let row = answered(connection.client.query_one(SYSTEM, &[])).await?;
        let system = row.try_get(0).map_err(|error| chain(&error))?;
        let mut lease = Self {
            connection,
            system,
            _place: place,
        };
        lease.probe(GREETING).await?;
        let limit = format!("set statement_timeout = {}", limit.as_millis().max(1));
        answered(lease.connection.client.batch_execute(&limit)).await?;
        Ok(lease)
    }

    /// Asks the server for its own state, in a transaction of its own: a snapshot that is taken
    /// after it is newer.
    pub(super) async fn probe(&mut self, limit: Duration) -> Result<Probe, String> {
        let item = Item {
            shape: probe::shape(),
            params: &[],
        };
        match timeout(limit, self.connection.read(&[item])).await {
            Ok(Ok(tables)) => tables
                .first()
                .and_then(|rows| Probe::read(rows))
                .ok_or_else(|| "it does not say what it is".to_owned()),
            Ok(Err(failed)) => Err(failed.sentence()),
            Err(_) => Err(silent(limit)),
        }
    }
}

/// Returns the answer to a question on a new connection.
async fn answered<T>(
    question: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match timeout(GREETING, question).await {
        Ok(answer) => answer.map_err(|error| chain(&error)),
        Err(_) => Err(silent(GREETING)),
    }
}

fn silent(limit: Duration) -> String {
    format!("it says nothing for {limit:?}")
}

/// The places for connections.
pub(super) struct ReplicaPermits {
    taken: Rc<Cell<usize>>,
    all: usize,
}

/// One of them; free again when this is dropped.
pub(super) struct ReplicaPermit(Rc<Cell<usize>>);

impl ReplicaPermits {
    pub(super) fn new(all: usize) -> Self {
        Self {
            taken: Rc::default(),
            all,
        }
    }

    pub(super) fn take(&self) -> Option<ReplicaPermit> {
        let taken = self.taken.get();
        (taken < self.all).then(|| {
            self.taken.set(taken + 1);
            ReplicaPermit(Rc::clone(&self.taken))
        })
    }
}

impl Drop for ReplicaPermit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::ReplicaPermits;

    #[test]
    fn there_are_so_many_places_and_each_is_taken_again() {
        let places = ReplicaPermits::new(2);
        let (one, two) = (places.take().unwrap(), places.take());
        assert!(two.is_some() && places.take().is_none());
        drop(one);
        assert!(places.take().is_some());
    }
}
