//! Which entries a sweep looks at: those that are hot, and those that were made ahead and that nobody has asked for yet.
//!
//! A sweep that looked at all of a hundred thousand entries took 17 ms, and changes that follow one another wanted one after the other. So
//! an entry is named here, by its seat in the eviction policy, by whatever makes it hot: the hit with which it becomes so, the value
//! whose heat it inherits, or a fold that leaves it hot. That is once between two folds, so hits hardly ever meet at the lock.
//!
//! A name may be there twice, or be of a seat in which somebody else sits by now: it says only "look", under the ledger's lock.

use crate::sync::Mutex;

/// Names that are kept. Past it they are not trusted, and the next sweep looks at every entry.
const MOST: usize = 1 << 18;

/// See the [module](self).
pub(crate) struct Watched {
    most: usize,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    seats: Vec<u32>,
    /// Whether there were more.
    too_many: bool,
}

impl Watched {
    /// Without sweeps nothing is named.
    pub(crate) fn new(is_swept: bool) -> Self {
        Self {
            most: if is_swept { MOST } else { 0 },
            names: Mutex::default(),
        }
    }

    /// Names one; a sweep that begins after this looks at it.
    pub(crate) fn name(&self, seat: u32) {
        if self.most == 0 {
            return;
        }
        let mut names = self.names.lock();
        if names.seats.len() < self.most {
            names.seats.push(seat);
        } else {
            names.too_many = true;
        }
    }

    /// Takes all names out, each once; none if every entry is to be looked at.
    pub(crate) fn take(&self) -> Option<Vec<u32>> {
        let names = std::mem::take(&mut *self.names.lock());
        if names.too_many {
            return None;
        }
        let mut seats = names.seats;
        seats.sort_unstable();
        seats.dedup();
        Some(seats)
    }

    /// Forgets all names: every entry is about to be looked at.
    pub(crate) fn clear(&self) {
        let names = std::mem::take(&mut *self.names.lock());
        drop(names);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_given_once_and_too_many_are_all() {
        let watched = Watched {
            most: 3,
            names: Mutex::default(),
        };
        [7, 2, 7].into_iter().for_each(|seat| watched.name(seat));
        assert_eq!(watched.take(), Some(vec![2, 7]));
        (0..9).for_each(|seat| watched.name(seat));
        assert_eq!(watched.take(), None);
        watched.name(1);
        assert_eq!(watched.take(), Some(vec![1]));
        (0..9).for_each(|seat| watched.name(seat));
        watched.clear();
        assert_eq!(watched.take(), Some(Vec::new()));
        let unswept = Watched::new(false);
        unswept.name(1);
        assert_eq!(unswept.take(), Some(Vec::new()));
    }
}
