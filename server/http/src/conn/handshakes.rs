//! Handshakes that wait for their turn: each costs as much as fifty requests.
//!
//! Clients have turns, and a client that had no handshake waiting is next. Of one client the newest
//! handshake comes first: the client of an old one may have given up. So a newcomer waits only for
//! handshakes that come later, however many wait, also of the same client. A handshake that never
//! gets its turn ends by its deadline, that of a request's head.

use std::collections::{HashMap, VecDeque};

use crate::client::ClientNetwork;
use crate::event::Token;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// The newest is the last.
    waiting: HashMap<ClientNetwork, Vec<Token>, foldhash::fast::RandomState>,
    /// The clients, the next first.
    turns: VecDeque<ClientNetwork>,
    len: usize,
}

impl Handshakes {
    pub(super) fn push(&mut self, client: ClientNetwork, token: Token) {
        let waiting = self.waiting.entry(client).or_default();
        if waiting.is_empty() {
            self.turns.push_front(client);
        }
        waiting.push(token);
        self.len += 1;
    }

    /// Takes the next, which may have ended meanwhile.
    pub(super) fn pop(&mut self) -> Option<Token> {
        let client = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&client)?;
        let token = waiting.pop()?;
        self.len -= 1;
        if waiting.is_empty() {
            self.waiting.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some(token)
    }

    /// Forgets those that have ended, if there may be more of them than of the `open` connections.
    pub(super) fn forget_ended(&mut self, open: usize, mut is_there: impl FnMut(Token) -> bool) {
        if self.len <= 64 + 2 * open {
            return;
        }
        self.waiting.retain(|_, waiting| {
            waiting.retain(|token| is_there(*token));
            !waiting.is_empty()
        });
        let waiting = &self.waiting;
        self.turns.retain(|client| waiting.contains_key(client));
        self.len = self.waiting.values().map(Vec::len).sum();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which these are taken, which were queued as (client, number).
    fn order(queued: &[(u32, u32)]) -> Vec<u32> {
        let mut handshakes = Handshakes::default();
        for &(client, number) in queued {
            handshakes.push(ClientNetwork::V4(client), Token::reserved(number));
        }
        let taken = std::iter::from_fn(|| handshakes.pop());
        taken.map(|token| u32::MAX - token.index()).collect()
    }

    #[test]
    fn clients_have_turns_and_the_newest_of_each_comes_first() {
        assert_eq!(order(&[(1, 1), (1, 2), (1, 3)]), [3, 2, 1]);
        assert_eq!(order(&[(1, 1), (1, 2), (1, 3), (2, 4)]), [4, 3, 2, 1]);
        assert_eq!(
            order(&[(1, 1), (1, 2), (2, 3), (2, 4), (1, 5)]),
            [4, 5, 3, 2, 1]
        );
    }

    #[test]
    fn a_newcomer_is_next_however_many_wait() {
        let flood = (0..10_000).map(|number| (number % 7, number));
        let queued: Vec<_> = flood.chain([(8, 10_000)]).collect();
        assert_eq!(order(&queued)[0], 10_000);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let mut handshakes = Handshakes::default();
        for number in 0..1_000 {
            handshakes.push(ClientNetwork::V4(number % 3), Token::reserved(number));
            handshakes.forget_ended(10, |token| token == Token::reserved(999));
            assert!(handshakes.len <= 85, "{}", handshakes.len);
        }
        handshakes.forget_ended(0, |token| token == Token::reserved(999));
        while handshakes.len > 1 {
            handshakes.pop();
        }
        assert!(handshakes.pop().is_some() && handshakes.is_empty());
    }
}
