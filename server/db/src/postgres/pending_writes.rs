//! Writes that wait until the feed delivers their change (coherence.md, rule 19).
//!
//! A write leaves a message with a token in its own transaction (`pg_logical_emit_message`,
//! transactional). When the feed brings the transaction, triggers and cascades are in it; once it
//! has been applied, the write may be answered.
//!
//! A feed that reads a table of changes tells how far it is by a snapshot, so there a write needs
//! no token: after its commit it waits for a snapshot that sees its transaction.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Position;
use crate::feed::Transactions;

/// The prefix of all messages that Millpond leaves in the log.
pub(crate) const PREFIX: &str = "millpond";

/// The writes that wait.
#[derive(Default)]
pub(crate) struct PendingWrites {
    state: Mutex<PendingWritesState>,
}

#[derive(Default)]
struct PendingWritesState {
    /// True if there is a feed that could bring a token.
    up: bool,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Position>>,
    /// Writes that wait for a snapshot: their transactions and tokens.
    transactions: Vec<(u64, u64)>,
    /// Transactions of which such a feed has applied everything, and the position that covers them.
    seen: Option<(Arc<Transactions>, Position)>,
}

/// The end of a wait: the position at which the change was applied, or an error if the feed was
/// lost meanwhile. Then the write begins an epoch before it is answered.
pub(crate) type Arrival = oneshot::Receiver<Position>;

impl PendingWrites {
    /// A token to leave in the transaction, and what to wait for after the commit; `None` while
    /// there is no feed: then the write begins an epoch.
    pub(crate) fn expect(&self) -> Option<(u64, Arrival)> {
        let mut state = self.state.lock();
        state.expect()
    }

    /// Returns the arrival to wait for after the commit of `transaction`, where the feed reports
    /// what it has seen; `None` while there is no feed.
    pub(crate) fn expect_transaction(&self, transaction: u64) -> Option<(u64, Arrival)> {
        let mut state = self.state.lock();
        let (token, arrival) = state.expect()?;
        state.transactions.push((transaction, token));
        state.settle();
        Some((token, arrival))
    }

    /// Such a feed has applied everything that `seen` sees, which `position` covers.
    pub(crate) fn seen(&self, seen: &Arc<Transactions>, position: Position) {
        let mut state = self.state.lock();
        state.seen = Some((Arc::clone(seen), position));
        state.settle();
    }

    /// A wait that is over: the transaction has written nothing, and `position` covers all that it
    /// has seen. `None` while there is no feed.
    pub(crate) fn expect_nothing(&self, position: Position) -> Option<(u64, Arrival)> {
        let mut state = self.state.lock();
        let (token, arrival) = state.expect()?;
        if let Some(arrived) = state.waiting.remove(&token) {
            // The other end is right here.
            let _ = arrived.send(position);
        }
        Some((token, arrival))
    }

    /// The token has no waiter any more: the transaction was rolled back, or the wait took too
    /// long.
    pub(crate) fn forget(&self, token: u64) {
        let mut state = self.state.lock();
        state.waiting.remove(&token);
        state.transactions.retain(|(_, own)| *own != token);
    }

    /// The change that carries the token was applied at `position`.
    pub(crate) fn arrived(&self, token: u64, position: Position) {
        if let Some(arrived) = self.state.lock().waiting.remove(&token) {
            // The waiter has gone.
            let _ = arrived.send(position);
        }
    }

    /// The feed is lost.
    pub(crate) fn lost(&self) {
        let mut state = self.state.lock();
        state.up = false;
        state.waiting.clear();
        state.transactions.clear();
        state.seen = None;
    }

    /// There is a feed.
    pub(crate) fn restored(&self) {
        self.state.lock().up = true;
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl PendingWritesState {
    fn expect(&mut self) -> Option<(u64, Arrival)> {
        if !self.up {
            return None;
        }
        let token = self.next;
        self.next += 1;
        let (arrived, arrival) = oneshot::channel();
        self.waiting.insert(token, arrived);
        Some((token, arrival))
    }

    /// Tells those whose transactions have been seen.
    fn settle(&mut self) {
        let Some((seen, position)) = &self.seen else {
            return;
        };
        let waiting = &mut self.waiting;
        self.transactions.retain(|(transaction, token)| {
            let is_seen = seen.sees(*transaction);
            if is_seen && let Some(arrived) = waiting.remove(token) {
                // The waiter has gone.
                let _ = arrived.send(position.clone());
            }
            !is_seen
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_for_a_snapshot_that_sees_it() {
        let pending = PendingWrites::default();
        assert!(pending.expect_transaction(7).is_none());
        pending.restored();
        let here = |at| Position::new("here", at);
        let seen = |text, at| {
            pending.seen(&Arc::new(Transactions::parse(text).unwrap()), here(at));
        };
        seen("5:7:5", 7);
        let (_, mut early) = pending.expect_transaction(6).unwrap();
        assert_eq!(early.try_recv(), Ok(here(7)));
        let (_, mut running) = pending.expect_transaction(5).unwrap();
        let (_, mut later) = pending.expect_transaction(7).unwrap();
        seen("5:8:5", 8);
        assert_eq!(later.try_recv(), Ok(here(8)));
        assert!(running.try_recv().is_err());
        assert_eq!(pending.len(), 1);
        let (_, mut nothing) = pending.expect_nothing(here(6)).unwrap();
        assert_eq!((nothing.try_recv(), pending.len()), (Ok(here(6)), 1));
        pending.lost();
        assert_eq!(
            running.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        assert!(pending.expect_nothing(here(6)).is_none());
        // What the last life has seen says nothing of the next.
        pending.restored();
        let (token, mut anew) = pending.expect_transaction(6).unwrap();
        assert!(anew.try_recv().is_err());
        pending.forget(token);
        seen("9:9:", 9);
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn a_write_completes_when_its_change_arrived_or_cannot_arrive() {
        let pending = PendingWrites::default();
        assert!(pending.expect().is_none());
        pending.restored();
        let (first, mut first_arrival) = pending.expect().unwrap();
        let (second, mut second_arrival) = pending.expect().unwrap();
        assert_ne!(first, second);
        let position = Position::new("here", 7);
        pending.arrived(first, position.clone());
        assert_eq!(first_arrival.try_recv(), Ok(position));
        assert!(second_arrival.try_recv().is_err());
        assert_eq!(pending.len(), 1);
        pending.lost();
        assert_eq!(
            second_arrival.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        assert_eq!(pending.len(), 0);
    }
}
