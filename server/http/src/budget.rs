//! What unfinished requests hold of a worker: one budget for memory, one for disk.
//!
//! A holder is a connection, or a stream of one. A holder that is finished, or that has everything
//! it needs, takes nothing of a budget. When a budget is full, a newcomer is not refused. Instead
//! the clients share the budget evenly: each keeps at most the *level*, the largest amount that all
//! clients may keep at the same time, and a client above the level loses holders until it is at the
//! level. So one client can take the whole budget while no other needs it, and loses what it took
//! as soon as another does. Many people behind one proxy are one client: they share what the proxy
//! has, and the holders that are worth least end first.
//!
//! An eighth of the budget is freed at a time. The next look at all holders comes only after that
//! eighth has arrived once more, so a client cannot make the worker look at them for every byte.
//! Where what is held cannot be ended, the next look comes after a 64th.

use std::collections::HashMap;
use std::net::SocketAddr;

use base_clock::Boottime;

use crate::client::{Client, ClientNetwork};
use crate::event::{StreamToken, Token};

/// Memory that one holder takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) client: ClientNetwork,
    pub(crate) bytes: usize,
    /// When the request, or its body, began to arrive.
    pub(crate) since: Boottime,
    /// False for a request that is complete and waits for its response.
    pub(crate) may_end: bool,
}

impl Holding {
    pub(crate) fn new(peer: SocketAddr, bytes: usize, since: Boottime, may_end: bool) -> Self {
        Self {
            client: Client::new(peer.ip()).network(),
            bytes,
            since,
            may_end,
        }
    }
}

/// Holders of a client that end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndFirst {
    /// Holders that take most for longest: bytes times age.
    Heaviest,
    /// Holders with the fewest bytes per second.
    Slowest,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    end_first: EndFirst,
    held: usize,
    /// With no more than this held, no look at the holders would find one that can end.
    futile_up_to: usize,
    holdings: HashMap<StreamToken, Holding, foldhash::fast::RandomState>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize, end_first: EndFirst) -> Self {
        Self {
            limit,
            end_first,
            held: 0,
            futile_up_to: 0,
            holdings: HashMap::default(),
        }
    }

    /// Raises the limit to at least `limit` bytes.
    pub(crate) fn raise_to(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// Counts what `holder` takes now, instead of what it took before.
    pub(crate) fn hold(&mut self, holder: StreamToken, holding: Holding) {
        self.held += holding.bytes;
        if let Some(before) = self.holdings.insert(holder, holding) {
            self.held -= before.bytes;
        }
    }

    /// Counts nothing for `holder` any more.
    pub(crate) fn release(&mut self, holder: StreamToken) {
        if let Some(before) = self.holdings.remove(&holder) {
            self.held -= before.bytes;
            if !self.is_over() {
                self.futile_up_to = 0;
            }
        }
    }

    /// Counts nothing for any stream of a connection any more. Looks at all holders.
    pub(crate) fn release_connection(&mut self, connection: Token) {
        let of_it: Vec<StreamToken> = self.holdings.keys().copied().collect();
        for holder in of_it {
            if holder.connection == connection {
                self.release(holder);
            }
        }
    }

    /// The number of holders.
    pub(crate) fn holders(&self) -> usize {
        self.holdings.len()
    }

    /// True if more is held than the limit allows.
    pub(crate) fn is_over(&self) -> bool {
        self.held > self.limit
    }

    /// True if at least half of the budget is held.
    pub(crate) fn is_half_full(&self) -> bool {
        self.held >= self.limit / 2
    }

    /// The holders that must end so that an eighth of the budget, or of what is held if that is
    /// less, is free again. They are counted until they are [released](Budget::release).
    pub(crate) fn victims(&mut self, now: Boottime) -> Vec<StreamToken> {
        if self.held <= self.futile_up_to {
            return Vec::new();
        }
        let full = self.limit.min(self.held);
        let mut of_client = HashMap::<ClientNetwork, usize, foldhash::fast::RandomState>::default();
        for holding in self.holdings.values() {
            *of_client.entry(holding.client).or_default() += holding.bytes;
        }
        let mut totals: Vec<usize> = of_client.values().copied().collect();
        let level = level(&mut totals, full - full / 8);
        let mut candidates: Vec<(u128, StreamToken, Holding)> = self
            .holdings
            .iter()
            .filter(|(_, holding)| holding.may_end && of_client[&holding.client] > level)
            .map(|(holder, holding)| (self.value(holding, now), *holder, *holding))
            .collect();
        candidates.sort_unstable_by_key(|(value, ..)| *value);
        let mut victims = Vec::new();
        let mut left = self.held;
        for (_, holder, holding) in candidates {
            let total = of_client.entry(holding.client).or_default();
            if *total > level {
                *total -= holding.bytes;
                left -= holding.bytes;
                victims.push(holder);
            }
        }
        self.futile_up_to = match left > self.limit {
            true => left + self.limit / 64,
            false => 0,
        };
        victims
    }

    /// Returns the value of a holding: the least value ends first.
    fn value(&self, holding: &Holding, now: Boottime) -> u128 {
        let age = now.as_nanos().saturating_sub(holding.since.as_nanos());
        let (bytes, age) = (holding.bytes as u128, u128::from(age.max(1)));
        match self.end_first {
            EndFirst::Heaviest => u128::MAX - bytes * age,
            EndFirst::Slowest => bytes * 1_000_000_000 / age,
        }
    }
}

/// The largest amount that each of these may keep, so that all together keep at most `room`.
fn level(totals: &mut [usize], mut room: usize) -> usize {
    totals.sort_unstable();
    for (at, &total) in totals.iter().enumerate() {
        let share = room / (totals.len() - at);
        if total > share {
            return share;
        }
        room -= total;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: u64 = 1_000_000_000_000;

    fn holder(number: u32) -> StreamToken {
        StreamToken {
            connection: Token::reserved(number),
            stream: 0,
        }
    }

    fn holding(client: u32, bytes: usize, seconds: u64) -> Holding {
        Holding {
            client: ClientNetwork::V4(client),
            bytes,
            since: Boottime::from_nanos(NOW).minus(Duration::from_secs(seconds)),
            may_end: true,
        }
    }

    /// The numbers of the victims among holders of (client, bytes, age in seconds).
    fn victims(end_first: EndFirst, holdings: &[(u32, usize, u64)]) -> Vec<u32> {
        let mut budget = Budget::new(800, end_first);
        for (number, &(client, bytes, seconds)) in (0..).zip(holdings) {
            budget.hold(holder(number), holding(client, bytes, seconds));
        }
        let victims = budget.victims(Boottime::from_nanos(NOW));
        let numbers = (0..).take(holdings.len());
        numbers
            .filter(|number| victims.contains(&holder(*number)))
            .collect()
    }

    #[test]
    fn what_is_held_is_counted_once() {
        let mut budget = Budget::new(100, EndFirst::Heaviest);
        budget.hold(holder(1), holding(1, 60, 0));
        assert!(!budget.is_over() && budget.is_half_full());
        budget.hold(holder(1), holding(1, 100, 0));
        assert!(!budget.is_over());
        budget.hold(holder(2), holding(2, 1, 0));
        assert!(budget.is_over());
        budget.release(holder(1));
        budget.release(holder(1));
        assert_eq!((budget.held, budget.holders()), (1, 1));
        budget.release_connection(holder(2).connection);
        assert_eq!((budget.held, budget.holders()), (0, 0));
        budget.raise_to(10);
        assert_eq!(budget.limit, 100);
    }

    #[test]
    fn the_client_with_most_loses_and_the_others_keep_what_they_have() {
        // 700 may stay: 100 and 100 of the small ones, 500 of the large one.
        let holdings = [(1, 100, 9), (2, 300, 8), (2, 301, 7), (3, 100, 100)];
        assert_eq!(victims(EndFirst::Heaviest, &holdings), [1]);
    }

    #[test]
    fn clients_that_ask_for_the_same_get_the_same() {
        let holdings = [(1, 200, 5), (1, 201, 4), (2, 200, 5), (2, 201, 4)];
        assert_eq!(victims(EndFirst::Heaviest, &holdings), [0, 2]);
    }

    #[test]
    fn of_one_client_the_heaviest_or_the_slowest_ends_first() {
        let holdings = [(1, 10, 100), (1, 500, 1), (1, 300, 50)];
        assert_eq!(victims(EndFirst::Heaviest, &holdings), [2]);
        assert_eq!(victims(EndFirst::Slowest, &holdings), [0, 2]);
    }

    #[test]
    fn a_complete_request_does_not_end() {
        let mut budget = Budget::new(100, EndFirst::Slowest);
        let complete = Holding {
            may_end: false,
            ..holding(1, 200, 60)
        };
        budget.hold(holder(1), complete);
        assert!(budget.is_over());
        assert_eq!(budget.victims(Boottime::from_nanos(NOW)), []);
        // Not looked for until a 64th more is held.
        budget.hold(holder(2), holding(1, 1, 0));
        assert_eq!(budget.victims(Boottime::from_nanos(NOW)), []);
        budget.hold(holder(3), holding(1, 1, 0));
        let mut victims = budget.victims(Boottime::from_nanos(NOW));
        victims.sort_by_key(|victim| victim.connection.index());
        assert_eq!(victims, [holder(3), holder(2)]);
        budget.release(holder(1));
        budget.hold(holder(4), holding(1, 200, 0));
        assert_ne!(budget.victims(Boottime::from_nanos(NOW)), []);
    }

    #[test]
    fn an_eighth_is_free_afterwards() {
        let mut budget = Budget::new(8_000, EndFirst::Heaviest);
        for number in 0..81 {
            budget.hold(holder(number), holding(number % 7, 100, u64::from(number)));
        }
        for victim in budget.victims(Boottime::from_nanos(NOW)) {
            budget.release(victim);
        }
        assert!((6_300..=7_000).contains(&budget.held), "{}", budget.held);
    }
}
