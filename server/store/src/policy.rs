//! The eviction policy: S3-FIFO.
//!
//! Yang, Zhang, Qiu, Yue, Vigfusson, *FIFO queues are all you need for cache eviction*, SOSP 2023.
//! New entries wait in a *small* queue. Entries that are visited often enough move to the *main*
//! queue, a clock with a two-bit count. The hashes of the other entries are remembered in a *ghost*
//! queue, and a key that returns while it is remembered goes to main at once. A hit raises a count
//! in the entry without the lock and writes nothing once the count is full.
//!
//! The parameters are not the paper's. The paper's small queue of 10 % is made for large caches; on
//! a small cache (0.1 % of the keys of the `orm-busy` trace) it is ten points worse than LRU, and
//! so is SIEVE. With half the budget and a ghost queue of one and a half budgets, the worst of nine
//! traces and sizes is a third of a point below LRU, and the mean is 1.3 points above it
//! (`lab-bench hit-ratio`). The same policy in libcachesim is `S3FIFO(n, small_size_ratio=0.5,
//! ghost_size_ratio=1.5, move_to_main_threshold=2)`.
//!
//! Two things are added. Neither has an effect while every entry is valid and costs the same.
//! *Cost*: an expensive entry is promoted after fewer visits and gets one more round in main; a
//! cheap entry needs more visits. *Death*: an invalidated entry leaves as soon as the hand reaches
//! it, regardless of its visits. If a valid entry would have stayed or gone to the ghosts, the hash
//! is remembered, because a change ends an answer but not the interest in it.
//!
//! The policy owns no lock: the store calls it under its own lock.

mod ghost;
mod slab;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use ghost::Ghosts;
use slab::{List, Slab};

/// Visits in the small queue after which an entry moves to main.
const PROMOTION: u8 = 2;
/// The least cost of an expensive entry, in multiples of the mean; one visit moves it to main. The
/// inverse is the most that a cheap entry costs.
const EXPENSIVE: f32 = 4.0;
/// The highest count.
pub(crate) const MAX_VISITS: u8 = 3;

/// Bytes that the policy itself takes for one entry: a node, and one and a half ghosts when all
/// entries have one size.
#[cfg(test)]
pub(crate) const OVERHEAD: usize =
    slab::node_size::<Seat<std::sync::Arc<()>>>() + ghost::OVERHEAD * 3 / 2;

/// View of an entry for the policy.
pub(crate) trait Resident {
    /// Bytes at present. A change must be reported to [`Policy::reweigh`].
    fn weight(&self) -> usize;
    /// The key's hash, which identifies the key after the entry has left.
    fn hash(&self) -> u64;
    /// Hits since the policy last looked, at most [`MAX_VISITS`]. Raised without the lock.
    fn visits(&self) -> u8;
    /// Sets the count. A hit at the same moment may be lost, which is harmless.
    fn set_visits(&self, visits: u8);
    /// The time that the fill took, as a multiple of the mean.
    fn cost(&self) -> f32;
    /// True if the entry will never be served again.
    fn is_dead(&self) -> bool;
}

/// Identifies a resident of one [`Policy`] from its insertion to its removal or eviction. Never
/// `u32::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
}

/// A resident with its state in the queues.
struct Seat<R> {
    resident: Option<R>,
    /// Kept here, so that the sums stay right when the resident's own weight changes.
    weight: u32,
    queue: Queue,
    /// True if this resident of main may be passed over once more because it is expensive.
    grace: bool,
}

impl<R> Default for Seat<R> {
    fn default() -> Self {
        Self {
            resident: None,
            weight: 0,
            queue: Queue::Small,
            grace: false,
        }
    }
}

/// S3-FIFO over residents of various weights.
pub(crate) struct Policy<R> {
    budget: usize,
    main_limit: usize,
    seats: Slab<Seat<R>>,
    small: List,
    main: List,
    main_weight: usize,
    used: usize,
    ghosts: Ghosts,
    /// The last insertion. It is in no queue until [`evict`](Self::evict) has made room: the paper
    /// evicts before it inserts.
    newcomer: Option<u32>,
}

impl<R: Clone + Resident> Policy<R> {
    /// A policy for residents that weigh `budget` bytes together.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            main_limit: budget - budget / 2,
            seats: Slab::new(),
            small: List::new(),
            main: List::new(),
            main_weight: 0,
            used: 0,
            ghosts: Ghosts::new(budget.saturating_add(budget / 2)),
            newcomer: None,
        }
    }

    /// The sum of the residents' weights.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// The number of seats; some may be empty.
    pub(crate) fn seats(&self) -> u32 {
        self.seats.len()
    }

    /// The residents of `seats` seats from `from` on, in no order.
    pub(crate) fn residents(&self, from: u32, seats: u32) -> impl Iterator<Item = &R> {
        let end = from.saturating_add(seats).min(self.seats.len());
        (from..end).filter_map(|at| self.seats[at].resident.as_ref())
    }

    /// The resident of a seat; none if the seat is empty.
    pub(crate) fn resident(&self, seat: u32) -> Option<&R> {
        let exists = seat < self.seats.len();
        exists.then(|| self.seats[seat].resident.as_ref()).flatten()
    }

    /// Returns whether a newcomer that may never be visited has a place: beside all residents, or
    /// because its key is remembered. Forgets the key in this case, so that the newcomer has to
    /// earn its place in main, and remembers it in the other.
    pub(crate) fn admits_unproven(&mut self, hash: u64, weight: usize) -> bool {
        if self.used.saturating_add(weight) <= self.budget || self.ghosts.forget(hash) {
            return true;
        }
        self.ghosts.remember(hash, seat_weight(weight));
        false
    }

    /// Adds `resident`. Call [`evict`](Self::evict) next, which may refuse the resident.
    pub(crate) fn insert(&mut self, resident: R) -> Handle {
        self.queue_newcomer();
        let weight = seat_weight(resident.weight());
        let queue = if self.ghosts.forget(resident.hash()) {
            Queue::Main
        } else {
            Queue::Small
        };
        let grace = is_expensive(&resident);
        let index = self.seats.insert(Seat {
            resident: Some(resident),
            weight,
            queue,
            grace,
        });
        self.used += weight as usize;
        self.newcomer = Some(index);
        Handle(index)
    }

    /// Removes a resident from its queue. Its key is not remembered.
    pub(crate) fn remove(&mut self, handle: Handle) -> R {
        self.unlink(handle.0);
        self.vacate(handle.0)
    }

    /// Notes that a resident's weight has changed. Call [`evict`](Self::evict) next if the weight
    /// grew.
    pub(crate) fn reweigh(&mut self, handle: Handle, old: usize, new: usize) {
        debug_assert_eq!(
            self.seats[handle.0].weight,
            seat_weight(old),
            "the policy was not told of a weight"
        );
        // If no eviction can make room for the resident, it leaves alone instead of evicting all
        // others first.
        let can_never_fit = self.can_never_fit(new);
        if can_never_fit {
            self.unlink(handle.0);
            self.queue_newcomer();
            self.newcomer = Some(handle.0);
        }
        let seat = &mut self.seats[handle.0];
        let (before, after) = (seat.weight as usize, seat_weight(new) as usize);
        seat.weight = seat_weight(new);
        self.used = self.used - before + after;
        if seat.queue == Queue::Main && !can_never_fit && self.newcomer != Some(handle.0) {
            self.main_weight = self.main_weight - before + after;
        }
    }

    /// Moves residents to `out` until the rest weighs no more than the budget.
    pub(crate) fn evict(&mut self, out: &mut Vec<R>) {
        if let Some(index) = self.newcomer
            && self.can_never_fit(self.seats[index].weight as usize)
        {
            self.newcomer = None;
            out.push(self.vacate(index));
        }
        while self.used > self.budget {
            if self.main_weight > self.main_limit || self.small.is_empty() {
                self.evict_main(out);
            } else {
                self.evict_small(out);
            }
        }
        self.queue_newcomer();
    }

    /// True if no eviction makes room for `weight`. A weight that the sums cannot hold is not kept
    /// either.
    fn can_never_fit(&self, weight: usize) -> bool {
        weight > self.budget || seat_weight(weight) == u32::MAX
    }

    /// Evicts from the small queue until one resident has left; frequently visited residents move
    /// to main on the way.
    fn evict_small(&mut self, out: &mut Vec<R>) {
        while let Some(index) = self.small.pop_front(&mut self.seats) {
            let seat = &mut self.seats[index];
            let resident = occupied(&seat.resident);
            if resident.visits() >= promotion(resident) && !resident.is_dead() {
                resident.set_visits(0);
                seat.queue = Queue::Main;
                seat.grace = is_expensive(resident);
                self.main_weight += seat.weight as usize;
                self.main.push_back(&mut self.seats, index);
            } else {
                self.ghosts.remember(resident.hash(), seat.weight);
                out.push(self.vacate(index));
                return;
            }
        }
    }

    /// Turns the main queue until one resident has left that was not visited since the last turn.
    fn evict_main(&mut self, out: &mut Vec<R>) {
        // Three visits and one grace are used up in four turns, unless hits add visits meanwhile.
        let mut patience = self.main.len() * (usize::from(MAX_VISITS) + 1);
        while let Some(index) = self.main.pop_front(&mut self.seats) {
            let seat = &mut self.seats[index];
            let resident = occupied(&seat.resident);
            let (visits, dead) = (resident.visits().min(MAX_VISITS), resident.is_dead());
            if (visits == 0 && !seat.grace) || dead || patience == 0 {
                if visits > 0 {
                    self.ghosts.remember(resident.hash(), seat.weight);
                }
                self.main_weight -= seat.weight as usize;
                out.push(self.vacate(index));
                return;
            }
            patience -= 1;
            if visits > 0 {
                resident.set_visits(visits - 1);
                seat.grace = is_expensive(resident);
            } else {
                seat.grace = false;
            }
            self.main.push_back(&mut self.seats, index);
        }
    }

    /// Puts the newcomer into its queue.
    fn queue_newcomer(&mut self) {
        let Some(index) = self.newcomer.take() else {
            return;
        };
        match self.seats[index].queue {
            Queue::Small => self.small.push_back(&mut self.seats, index),
            Queue::Main => {
                self.main_weight += self.seats[index].weight as usize;
                self.main.push_back(&mut self.seats, index);
            }
        }
    }

    fn unlink(&mut self, index: u32) {
        if self.newcomer == Some(index) {
            self.newcomer = None;
            return;
        }
        match self.seats[index].queue {
            Queue::Small => self.small.unlink(&mut self.seats, index),
            Queue::Main => {
                self.main_weight -= self.seats[index].weight as usize;
                self.main.unlink(&mut self.seats, index);
            }
        }
    }

    /// Empties a seat that is in no queue any more.
    fn vacate(&mut self, index: u32) -> R {
        let seat = self.seats.remove(index);
        self.used -= seat.weight as usize;
        seat.resident
            .expect("a handle names a resident until it has left")
    }
}

/// A weight as the seat stores it: 4 GiB or more counts as 4 GiB, and such a resident does not
/// stay.
fn seat_weight(weight: usize) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

fn occupied<R>(resident: &Option<R>) -> &R {
    resident.as_ref().expect("a seat in a queue is taken")
}

fn is_expensive<R: Resident>(resident: &R) -> bool {
    resident.cost() >= EXPENSIVE
}

/// The visits after which `resident` moves to main.
fn promotion<R: Resident>(resident: &R) -> u8 {
    if is_expensive(resident) {
        PROMOTION - 1
    } else if resident.cost() <= 1.0 / EXPENSIVE {
        PROMOTION + 1
    } else {
        PROMOTION
    }
}
