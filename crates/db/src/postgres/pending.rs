//! Writes that wait until their change has come through the feed (COHERENCE, rule 19).
//!
//! A write leaves a message with a token in its own transaction (`pg_logical_emit_message`, transactional). When the feed
//! brings the transaction, triggers and cascades are in it; once it has been applied, the write may be answered.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Position;

/// The prefix of all messages that Millpond leaves in the log.
pub(crate) const PREFIX: &str = "millpond";

/// The writes that wait.
#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether there is a feed that could bring a token.
    up: bool,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Position>>,
}

/// The end of a wait: the position at which the change was applied, or an error if the feed was lost meanwhile. Then nothing
/// that was kept before is given any more, so the write may be answered too.
pub(crate) type Arrival = oneshot::Receiver<Position>;

impl Pending {
    /// A token to leave in the transaction, and what to wait for after the commit; `None` while there is no feed, and
    /// then nothing needs to be waited for.
    pub(crate) fn expect(&self) -> Option<(u64, Arrival)> {
        let mut state = self.state.lock();
        if !state.up {
            return None;
        }
        let token = state.next;
        state.next += 1;
        let (told, arrival) = oneshot::channel();
        state.waiting.insert(token, told);
        Some((token, arrival))
    }

    /// Nobody waits for the token any more: the transaction was rolled back, or the wait took too long.
    pub(crate) fn forget(&self, token: u64) {
        self.state.lock().waiting.remove(&token);
    }

    /// The change that carries the token was applied at `position`.
    pub(crate) fn arrived(&self, token: u64, position: Position) {
        if let Some(told) = self.state.lock().waiting.remove(&token) {
            // Whoever waited has gone.
            let _ = told.send(position);
        }
    }

    /// The feed is lost.
    pub(crate) fn lost(&self) {
        let mut state = self.state.lock();
        state.up = false;
        state.waiting.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_told_when_its_change_has_come_or_cannot_come() {
        let pending = Pending::default();
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
