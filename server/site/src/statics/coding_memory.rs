//! The memory that is left for codings of static files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are left. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct CodingMemory(Arc<AtomicUsize>);

/// Reserved bytes; released on drop.
#[derive(Debug)]
pub(super) struct ReservedMemory {
    room: CodingMemory,
    bytes: usize,
}

impl CodingMemory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Reserves `bytes`, if they are available.
    pub(super) fn take(&self, bytes: usize) -> Option<ReservedMemory> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.ok().map(|_| ReservedMemory {
            room: self.clone(),
            bytes,
        })
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl ReservedMemory {
    /// Gives back all but `used`, which stay taken.
    pub(super) fn keep(mut self, used: usize) {
        self.bytes = self.bytes.saturating_sub(used);
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_comes_back() {
        let room = CodingMemory::new(100);
        let taken = room.take(70).unwrap();
        assert!(room.take(31).is_none());
        let other = room.take(30).unwrap();
        assert_eq!(room.left(), 0);
        drop(other);
        taken.keep(20);
        assert_eq!(room.left(), 80);
    }
}
