//! The entries that a sweep examines: hot entries, and entries that were made ahead and have not
//! been requested yet.
//!
//! A sweep over all of a hundred thousand entries took 17 ms, and each of several changes in a row
//! needs a sweep. So an entry is named here, by its seat in the eviction policy, when it becomes
//! hot: by a hit, by the heat that it inherits, or by a fold that leaves it hot. That is once
//! between two folds, so hits seldom meet at the lock.
//!
//! A seat may be named twice, or may have another entry by now. A name only means "examine this
//! seat under the ledger's lock".

use crate::sync::Mutex;

/// The most names that are kept. Past it the names are not used, and the next sweep examines every
/// entry.
const MOST: usize = 1 << 18;

/// See the [module](self).
pub(crate) struct Watched {
    limit: usize,
    watched_seats: Mutex<WatchedSeats>,
}

#[derive(Default)]
struct WatchedSeats {
    seats: Vec<u32>,
    /// True if there were more names than are kept.
    too_many: bool,
}

impl Watched {
    /// Without sweeps no entry is named.
    pub(crate) fn new(is_swept: bool) -> Self {
        Self {
            limit: if is_swept { MOST } else { 0 },
            watched_seats: Mutex::default(),
        }
    }

    /// Names a seat; a sweep that begins later examines it.
    pub(crate) fn add(&self, seat: u32) {
        if self.limit == 0 {
            return;
        }
        let mut watched_seats = self.watched_seats.lock();
        if watched_seats.seats.len() < self.limit {
            watched_seats.seats.push(seat);
        } else {
            watched_seats.too_many = true;
        }
    }

    /// Takes all names, each once; none if every entry must be examined.
    pub(crate) fn take(&self) -> Option<Vec<u32>> {
        let watched_seats = std::mem::take(&mut *self.watched_seats.lock());
        if watched_seats.too_many {
            return None;
        }
        let mut seats = watched_seats.seats;
        seats.sort_unstable();
        seats.dedup();
        Some(seats)
    }

    /// Forgets all names, because every entry is about to be examined.
    pub(crate) fn clear(&self) {
        let watched_seats = std::mem::take(&mut *self.watched_seats.lock());
        drop(watched_seats);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_given_once_and_too_many_are_all() {
        let watched = Watched {
            limit: 3,
            watched_seats: Mutex::default(),
        };
        [7, 2, 7].into_iter().for_each(|seat| watched.add(seat));
        assert_eq!(watched.take(), Some(vec![2, 7]));
        (0..9).for_each(|seat| watched.add(seat));
        assert_eq!(watched.take(), None);
        watched.add(1);
        assert_eq!(watched.take(), Some(vec![1]));
        (0..9).for_each(|seat| watched.add(seat));
        watched.clear();
        assert_eq!(watched.take(), Some(Vec::new()));
        let unswept = Watched::new(false);
        unswept.add(1);
        assert_eq!(unswept.take(), Some(Vec::new()));
    }
}
