//! Fills that wait for a slot, in the order in which they get one.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use base_clock::Boottime;
use tokio::sync::oneshot;

use super::{Arrival, PRIORITIES, Priority, Turn};

/// Place of a fill: the first has the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    priority: Priority,
    /// Requests that wait for each expected millisecond, as a power of two; negative, so that the
    /// greatest comes first. Powers, so that the age decides between fills that are nearly alike.
    worth: i8,
    serial: u64,
}

/// A fill that waits.
pub(super) struct Waiting {
    flight: u64,
    pub(super) sender: oneshot::Sender<Turn>,
    pub(super) arrival: Arrival,
    /// Requests that wait for it.
    pub(super) waiters: u32,
    /// When a request last joined.
    latest: Boottime,
}

#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Rank, Waiting>,
    /// The rank of each flight that waits.
    ranks: HashMap<u64, Rank>,
    /// Arrivals and joins of each priority, with flight and serial number; some may have left.
    arrived: [VecDeque<(Boottime, u64, u64)>; PRIORITIES],
    /// How many wait, for each priority.
    counts: [usize; PRIORITIES],
    serial: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Counts those that go before a newcomer of this priority.
    pub(super) fn ahead_of(&self, priority: Priority) -> usize {
        self.counts[..=priority as usize].iter().sum()
    }

    /// Adds a fill; `mean` is the time that one takes. Returns the number of its flight and its
    /// serial number.
    pub(super) fn push(
        &mut self,
        flight: Option<u64>,
        arrival: Arrival,
        mean: Duration,
        sender: oneshot::Sender<Turn>,
    ) -> (u64, u64) {
        self.serial += 1;
        let flight = flight.unwrap_or(!self.serial);
        let waiting = Waiting {
            flight,
            sender,
            arrival,
            waiters: 1,
            latest: arrival.at,
        };
        let arrived = &mut self.arrived[arrival.priority as usize];
        arrived.push_back((arrival.at, flight, self.serial));
        self.insert(self.serial, waiting, mean);
        (flight, self.serial)
    }

    fn insert(&mut self, serial: u64, waiting: Waiting, mean: Duration) {
        let rank = Rank {
            priority: waiting.arrival.priority,
            // A page that takes far longer than others waits behind some of them, not behind all.
            worth: worth(waiting.waiters, near(waiting.arrival.cost, mean)),
            serial,
        };
        self.counts[rank.priority as usize] += 1;
        self.ranks.insert(waiting.flight, rank);
        self.waiting.insert(rank, waiting);
    }

    fn take(&mut self, rank: Rank) -> Option<Waiting> {
        let waiting = self.waiting.remove(&rank)?;
        self.counts[rank.priority as usize] -= 1;
        self.ranks.remove(&waiting.flight);
        Some(waiting)
    }

    /// Notes one more request that waits for a flight.
    pub(super) fn joined(&mut self, flight: u64, arrival: &Arrival, mean: Duration) {
        let Some(&rank) = self.ranks.get(&flight) else {
            return;
        };
        let Some(mut waiting) = self.take(rank) else {
            return;
        };
        waiting.waiters += 1;
        waiting.latest = waiting.latest.max(arrival.at);
        let is_other = waiting.arrival.client != arrival.client;
        let priority = waiting.arrival.priority.min(arrival.priority);
        waiting.arrival.priority = match priority {
            // What two clients want is no address that one has made up.
            Priority::Stranger if is_other => Priority::Resource,
            priority => priority,
        };
        let arrived = &mut self.arrived[waiting.arrival.priority as usize];
        arrived.push_back((arrival.at, flight, rank.serial));
        self.insert(rank.serial, waiting, mean);
    }

    /// Notes one request less that waits for a flight.
    pub(super) fn left(&mut self, flight: u64, mean: Duration) {
        let rank = self.ranks.get(&flight).copied();
        if let Some(rank) = rank
            && let Some(mut waiting) = self.take(rank)
        {
            waiting.waiters = (waiting.waiters - 1).max(1);
            self.insert(rank.serial, waiting, mean);
        }
    }

    /// Removes a fill whose client has gone.
    pub(super) fn remove(&mut self, flight: u64, serial: u64) -> Option<Waiting> {
        let rank = self.ranks.get(&flight).copied();
        self.take(rank.filter(|rank| rank.serial == serial)?)
    }

    /// Removes the fill that is next, of no lower priority than `lowest`. If the newest is to be
    /// first, it is the newest of those with the highest priority and worth; if not, the oldest of
    /// them, or one of that priority which has waited since before `aged`.
    pub(super) fn pop(
        &mut self,
        lowest: Priority,
        newest_first: bool,
        aged: Boottime,
    ) -> Option<Waiting> {
        let first = *self.waiting.first_key_value()?.0;
        if first.priority > lowest {
            return None;
        }
        let oldest = self.aged(first.priority, aged);
        let last = Rank {
            serial: u64::MAX,
            ..first
        };
        let rank = match newest_first {
            true => *self.waiting.range(..=last).next_back()?.0,
            false => oldest.unwrap_or(first),
        };
        self.take(rank)
    }

    /// Returns the oldest of a priority if it has waited since before `moment`. Without this, a
    /// page whose cost seemed high for a moment would wait behind all that come later.
    fn aged(&mut self, priority: Priority, moment: Boottime) -> Option<Rank> {
        let arrived = &mut self.arrived[priority as usize];
        while let Some(&(at, flight, serial)) = arrived.front() {
            let rank = self.ranks.get(&flight).copied();
            match rank.filter(|rank| (rank.serial, rank.priority) == (serial, priority)) {
                Some(rank) => return (at < moment).then_some(rank),
                // It has left.
                None => _ = arrived.pop_front(),
            }
        }
        None
    }

    /// Removes a fill that no request has joined since `moment`, or that has waited for twice
    /// `patience`; none if there is none such.
    pub(super) fn expire(&mut self, moment: Boottime, patience: Duration) -> Option<Waiting> {
        let longest = moment.minus(patience);
        for priority in 0..PRIORITIES {
            while let Some(&(at, flight, serial)) = self.arrived[priority].front()
                && at < moment
            {
                self.arrived[priority].pop_front();
                let rank = self.ranks.get(&flight);
                let waiting = rank.and_then(|rank| self.waiting.get(rank));
                // A later join has an entry of its own.
                if waiting.is_some_and(|it| it.latest < moment || it.arrival.at < longest)
                    && let Some(waiting) = self.remove(flight, serial)
                {
                    return Some(waiting);
                }
            }
        }
        None
    }
}

/// A cost, within a factor of eight of the mean, if there is one.
fn near(cost: Duration, mean: Duration) -> Duration {
    match mean.is_zero() {
        true => cost,
        false => cost.clamp(mean / 8, mean * 8),
    }
}

/// The negative logarithm of waiters for each millisecond.
fn worth(waiters: u32, cost: Duration) -> i8 {
    let milliseconds = cost.as_secs_f32().mul_add(1e3, 0.01);
    -((waiters as f32 / milliseconds).log2().floor() as i8)
}
