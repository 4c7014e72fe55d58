//! The share of the work that is refused at arrival, and whose work that is.

use std::{hash::BuildHasher, time::Duration};

use base_clock::Boottime;

use super::{Arrival, PRIORITIES};

/// Time between two changes of the share.
const INTERVAL: Duration = Duration::from_millis(100);
/// Part of the growth of the queue that one change answers.
const GROWTH: f64 = 0.5;
/// Change for each deadline that the queue is too long.
const EXCESS: f64 = 0.25;
/// The wait to keep to, as a part of the deadline.
const WAIT: f64 = 0.1;
/// A client with more than one in this many requests is no crowd: chance decides for each of its
/// requests, or the whole load would be cut and let in by turns.
const CROWD: u32 = 16;
/// Counters of requests by client.
const COUNTERS: usize = 256;

/// The controller, and what it counts in an interval.
pub(super) struct Shed {
    /// The share of all arrivals that is refused, 0 to 1.
    share: f64,
    /// The part of each priority that is refused.
    cuts: [f64; PRIORITIES],
    changed: Boottime,
    arrived: [u32; PRIORITIES],
    /// Work that waited or ran at the last change.
    backlog: usize,
    /// Requests of clients whose hashes end alike, of this interval and the last.
    clients: [[u32; COUNTERS]; 2],
    /// Gives each client its place in the order of refusals.
    key: foldhash::fast::RandomState,
    chance: u64,
}

impl Shed {
    pub(super) fn new(now: Boottime) -> Self {
        Self {
            share: 0.0,
            cuts: [0.0; PRIORITIES],
            changed: now,
            arrived: [0; PRIORITIES],
            backlog: 0,
            clients: [[0; COUNTERS]; 2],
            key: foldhash::fast::RandomState::default(),
            chance: 0,
        }
    }

    /// Counts an arrival. True if it is to be refused.
    pub(super) fn arrives(&mut self, arrival: &Arrival) -> bool {
        let priority = arrival.priority as usize;
        self.arrived[priority] += 1;
        let hash = self.key.hash_one(arrival.client);
        let [now, last] = &mut self.clients;
        let counter = hash as usize % COUNTERS;
        now[counter] += 1;
        let cut = self.cuts[priority];
        if cut <= 0.0 {
            return false;
        }
        let all: u32 = self.arrived.iter().sum();
        let is_crowd = now[counter].max(last[counter]) <= all.max(COUNTERS as u32) / CROWD;
        let place = match is_crowd {
            true => hash,
            false => {
                self.chance += 1;
                self.key.hash_one(!self.chance)
            }
        };
        ((place >> 11) as f64) < cut * (1_u64 << 53) as f64
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Changes the share, if the interval is over. `wait` is the expected wait of a newcomer in
    /// deadlines; `emptied` is when the queue was last empty; `backlog` is the work that waits or
    /// runs.
    pub(super) fn tick(&mut self, now: Boottime, wait: f64, emptied: Boottime, backlog: usize) {
        let passed = now.since(self.changed);
        if passed < INTERVAL {
            return;
        }
        let arrived: u32 = self.arrived.iter().sum();
        let growth = backlog as f64 - self.backlog as f64;
        if emptied >= self.changed {
            // One halving for each interval without a queue, also for those without requests.
            let intervals = passed.as_secs_f64() / INTERVAL.as_secs_f64();
            self.share *= 0.5_f64.powf(intervals);
        } else {
            // A burst that is soon done is no overload, however much more it is than nothing.
            let growth = match wait > WAIT {
                true => growth,
                false => growth.min(0.0),
            };
            self.share += GROWTH * growth / f64::from(arrived.max(1)) + EXCESS * (wait - WAIT);
        }
        self.share = match self.share {
            // Less than one in a thousand is none.
            share if share < 1e-3 => 0.0,
            share => share.min(0.99),
        };
        self.cuts = cuts(self.share, &self.arrived);
        self.arrived = [0; PRIORITIES];
        self.backlog = backlog;
        self.clients.swap(0, 1);
        self.clients[0] = [0; COUNTERS];
        self.changed = now;
    }

    /// Gives each client another place in the order of refusals.
    pub(super) fn next_hour(&mut self) {
        self.key = foldhash::fast::RandomState::default();
    }
}

/// Returns the part of each priority that makes up `share` of all that has arrived, the lowest
/// priority first.
fn cuts(share: f64, arrived: &[u32; PRIORITIES]) -> [f64; PRIORITIES] {
    let all: u32 = arrived.iter().sum();
    let mut rest = share * f64::from(all);
    let mut cuts = [0.0; PRIORITIES];
    for priority in (0..PRIORITIES).rev() {
        let own = f64::from(arrived[priority]);
        cuts[priority] = match own > 0.0 {
            true => (rest / own).clamp(0.0, 1.0),
            // None of this priority has arrived: it is cut if a higher one is.
            false => f64::from(u8::from(rest > 0.0)),
        };
        rest = (rest - own).max(0.0);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_priorities_are_cut_first_and_one_of_them_in_part() {
        let arrived = [10, 60, 20, 0, 0, 0, 10];
        assert_eq!(cuts(0.0, &arrived), [0.0; PRIORITIES]);
        assert_eq!(cuts(0.05, &arrived), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]);
        assert_eq!(cuts(0.2, &arrived), [0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(cuts(0.6, &arrived), [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }
}
