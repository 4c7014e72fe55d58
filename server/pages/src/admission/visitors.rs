//! Who was seen lately, in half a megabyte, however many they are.

use std::{
    hash::BuildHasher,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use millpond_http::ClientNetwork;

/// Bits of one map. A hundred thousand clients set a twentieth of them, so one stranger in twenty
/// passes for a client that was seen.
const BITS: usize = 1 << 21;

/// Clients that were given something that others ask for too, in this hour or the last.
pub struct Visitors {
    maps: [Box<[AtomicU64]>; 2],
    current: AtomicUsize,
    key: foldhash::fast::RandomState,
}

impl Visitors {
    pub(super) fn new() -> Self {
        let map = || (0..BITS / 64).map(|_| AtomicU64::new(0)).collect();
        Self {
            maps: [map(), map()],
            current: AtomicUsize::new(0),
            key: foldhash::fast::RandomState::default(),
        }
    }

    /// Notes a client. Writes nothing if it was noted before.
    #[inline]
    pub fn note(&self, client: ClientNetwork) {
        let (word, bit) = self.place(client);
        let word = &self.maps[self.current.load(Ordering::Relaxed)][word];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Returns whether a client was noted.
    #[must_use]
    pub fn knows(&self, client: ClientNetwork) -> bool {
        let (word, bit) = self.place(client);
        let mut maps = self.maps.iter();
        maps.any(|map| map[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Forgets those who were last seen before the hour that has just ended.
    pub(super) fn next_hour(&self) {
        let next = 1 - self.current.load(Ordering::Relaxed);
        let words = self.maps[next].iter();
        words.for_each(|word| word.store(0, Ordering::Relaxed));
        self.current.store(next, Ordering::Relaxed);
    }

    fn place(&self, client: ClientNetwork) -> (usize, u64) {
        let hash = self.key.hash_one(client) as usize;
        (hash / 64 % (BITS / 64), 1 << (hash % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_for_one_to_two_hours() {
        let visitors = Visitors::new();
        assert!(!visitors.knows(ClientNetwork::V4(7)));
        visitors.note(ClientNetwork::V4(7));
        visitors.next_hour();
        assert!(visitors.knows(ClientNetwork::V4(7)) && !visitors.knows(ClientNetwork::V4(8)));
        visitors.next_hour();
        assert!(!visitors.knows(ClientNetwork::V4(7)));
    }
}
