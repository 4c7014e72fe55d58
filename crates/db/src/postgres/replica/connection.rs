//! A connection to a replica, and how many there may be.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::timeout;

use super::probe::{self, Probe};
use crate::postgres::connect::Connection;
use crate::postgres::failure::chain;
use crate::postgres::wire::Item;

/// Which database system a server belongs to. It stays the same while a connection lives.
pub(in crate::postgres) const SYSTEM: &str =
    "select system_identifier::text from pg_catalog.pg_control_system()";

/// A connection in its place.
pub(super) struct Lease {
    pub(super) connection: Connection,
    /// The system identifier of its server.
    pub(super) system: String,
    _place: Place,
}

impl Lease {
    pub(super) async fn new(
        connection: Connection,
        place: Place,
        limit: Duration,
    ) -> Result<Self, String> {
        let row = timeout(limit, connection.client.query_one(SYSTEM, &[])).await;
        let row = row.map_err(|_| format!("it says nothing for {limit:?}"))?;
        let system = row.and_then(|row| row.try_get(0));
        Ok(Self {
            system: system.map_err(|error| chain(&error))?,
            connection,
            _place: place,
        })
    }

    /// What the server says of itself, in a transaction of its own: a snapshot that is taken after it is newer.
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
            Err(_) => Err(format!("it says nothing for {limit:?}")),
        }
    }
}

/// The places for connections.
pub(super) struct Places {
    taken: Rc<Cell<usize>>,
    all: usize,
}

/// One of them; free again when this is dropped.
pub(super) struct Place(Rc<Cell<usize>>);

impl Places {
    pub(super) fn new(all: usize) -> Self {
        Self {
            taken: Rc::default(),
            all,
        }
    }

    pub(super) fn take(&self) -> Option<Place> {
        let taken = self.taken.get();
        (taken < self.all).then(|| {
            self.taken.set(taken + 1);
            Place(Rc::clone(&self.taken))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn there_are_so_many_places_and_each_is_taken_again() {
        let places = Places::new(2);
        let (one, two) = (places.take().unwrap(), places.take());
        assert!(two.is_some() && places.take().is_none());
        drop(one);
        assert!(places.take().is_some());
    }
}
