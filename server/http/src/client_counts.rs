//! Counts of each client, over all of its connections to all workers: see
//! [`ClientLimits`](crate::ClientLimits).
//!
//! A rate is one number, the moment up to which the client has paid: each request moves it forward,
//! and the clock catches up with it (the generic cell rate algorithm). A client may be as far ahead
//! of the clock as the burst. A connection takes requests in batches and pays for bytes afterwards,
//! so that few of them touch the memory that all workers share.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base_clock::Boottime;
use foldhash::quality::RandomState;

use crate::client::ClientNetwork;
use crate::limits::{BURST, CLIENT_BATCH, CLIENTS, SITE_SHARE};

const SHARDS: usize = 16;
const SECOND: u64 = 1_000_000_000;

/// The moment up to which a client has paid, in nanoseconds since boot.
#[derive(Debug, Default)]
struct Rate(AtomicU64);

impl Rate {
    /// Returns how many of `amount` at `limit` a second may be done now, which are then paid.
    fn take(&self, amount: usize, limit: usize, now: Boottime) -> usize {
        let mut taken = 0;
        let _ = self.0.fetch_update(Relaxed, Relaxed, |paid| {
            let room = room(paid, now) / cost(1, limit).max(1);
            taken = amount.min(usize::try_from(room).unwrap_or(usize::MAX));
            (taken > 0).then(|| paid.max(now.as_nanos()).saturating_add(cost(taken, limit)))
        });
        taken
    }

    /// Takes back what was not done.
    fn give_back(&self, amount: usize, limit: usize) {
        let back = |paid: u64| Some(paid.saturating_sub(cost(amount, limit)));
        let _ = self.0.fetch_update(Relaxed, Relaxed, back);
    }

    /// Pays for what was done; how long the client must wait for the next.
    fn pay(&self, amount: usize, limit: usize, now: Boottime) -> Duration {
        let pay = |paid: u64| Some(paid.max(now.as_nanos()).saturating_add(cost(amount, limit)));
        let before = self.0.fetch_update(Relaxed, Relaxed, pay);
        let paid = before.map_or(0, |paid| pay(paid).unwrap_or(paid));
        Duration::from_nanos(paid.saturating_sub(now.plus(BURST).as_nanos()))
    }

    fn is_ahead_of(&self, now: Boottime) -> bool {
        self.0.load(Relaxed) > now.as_nanos()
    }
}

/// Nanoseconds that a client may still pay ahead.
fn room(paid: u64, now: Boottime) -> u64 {
    let now_or_later = paid.max(now.as_nanos());
    now.plus(BURST).as_nanos().saturating_sub(now_or_later)
}

/// Nanoseconds in which `limit` a second allow `amount`.
const fn cost(amount: usize, limit: usize) -> u64 {
    (amount as u64).saturating_mul(SECOND) / limit as u64
}

/// Counts of one client.
#[derive(Debug, Default)]
struct ClientCount {
    connections: AtomicUsize,
    requests: Rate,
    writes: Rate,
    bytes: Rate,
}

impl ClientCount {
    /// True if nothing would be lost without it.
    fn is_idle(&self, now: Boottime) -> bool {
        let rates = [&self.requests, &self.writes, &self.bytes];
        !rates.iter().any(|rate| rate.is_ahead_of(now))
    }
}

/// The counts of one client: its own, and in IPv6 those of its network of 56 bits, which has
/// [`SITE_SHARE`] times as much.
#[derive(Clone, Debug)]
pub(crate) struct ClientCounts {
    own: Arc<ClientCount>,
    site: Option<Arc<ClientCount>>,
}

impl ClientCounts {
    /// Counts one more connection, unless there are `limit`.
    pub(crate) fn open(self, limit: usize) -> Option<ClientConnection> {
        let connection = ClientConnection(Some(self));
        let is_over = |(count, share): (&ClientCount, usize)| {
            let before = count.connections.fetch_add(1, Relaxed);
            limit > 0 && before >= limit.saturating_mul(share)
        };
        // Both are counted, as both are released.
        let counts = connection.0.iter().flat_map(ClientCounts::each);
        let is_over = counts.map(is_over).fold(false, |any, one| any | one);
        (!is_over).then_some(connection)
    }

    /// Returns how many requests one of the connections may answer before it asks again: fewer,
    /// the less is left.
    pub(crate) fn take_requests(&self, limit: usize, now: Boottime) -> u16 {
        if limit == 0 {
            return u16::MAX;
        }
        let left = room(self.own.requests.0.load(Relaxed), now) / cost(1, limit).max(1);
        let connections = self.own.connections.load(Relaxed).max(1) as u64;
        let batch = (left / (4 * connections)).clamp(1, u64::from(CLIENT_BATCH));
        let taken = self.take(|count| &count.requests, batch as usize, limit, now);
        taken.try_into().unwrap_or(CLIENT_BATCH)
    }

    /// Takes back requests that were not made.
    pub(crate) fn give_back_requests(&self, amount: u16, limit: usize) {
        if limit > 0 {
            for (count, share) in self.each() {
                count
                    .requests
                    .give_back(amount.into(), limit.saturating_mul(share));
            }
        }
    }

    /// Returns whether one more request may be answered, outside of a batch.
    pub(crate) fn take_request(&self, limit: usize, now: Boottime) -> bool {
        self.take(|count| &count.requests, 1, limit, now) > 0
    }

    /// Returns whether one more write may be answered.
    pub(crate) fn take_write(&self, limit: usize, now: Boottime) -> bool {
        self.take(|count| &count.writes, 1, limit, now) > 0
    }

    /// Pays for bytes; how long the connection that moved them must pause.
    pub(crate) fn pay_bytes(&self, bytes: usize, limit: usize, now: Boottime) -> Duration {
        let pay = |(count, share): (&ClientCount, usize)| {
            count.bytes.pay(bytes, limit.saturating_mul(share), now)
        };
        self.each().map(pay).max().unwrap_or_default()
    }

    fn take(
        &self,
        rate: fn(&ClientCount) -> &Rate,
        amount: usize,
        limit: usize,
        now: Boottime,
    ) -> usize {
        if limit == 0 {
            return amount;
        }
        let own = rate(&self.own).take(amount, limit, now);
        let Some(site) = &self.site else {
            return own;
        };
        let both = rate(site).take(own, limit.saturating_mul(SITE_SHARE), now);
        if both < own {
            rate(&self.own).give_back(own - both, limit);
        }
        both
    }

    fn each(&self) -> impl Iterator<Item = (&ClientCount, usize)> {
        let site = self.site.as_deref().map(|site| (site, SITE_SHARE));
        std::iter::once((&*self.own, 1)).chain(site)
    }
}

/// Counts a connection of a client until it is dropped. None: the client has no limits.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection(pub(crate) Option<ClientCounts>);

impl Drop for ClientConnection {
    fn drop(&mut self) {
        for (count, _) in self.0.iter().flat_map(ClientCounts::each) {
            count.connections.fetch_sub(1, Relaxed);
        }
    }
}

/// The clients of a server. A worker looks here once for a connection, and once for a request that
/// a proxy passes on.
#[derive(Debug, Default)]
pub(crate) struct ClientTable {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    clients: HashMap<ClientNetwork, Arc<ClientCount>, RandomState>,
    /// With as many clients the idle ones are forgotten.
    full_at: usize,
}

impl ClientTable {
    /// Returns the counts of a client.
    pub(crate) fn counts(&self, client: ClientNetwork, now: Boottime) -> ClientCounts {
        ClientCounts {
            own: self.count(client, now),
            site: client.site().map(|site| self.count(site, now)),
        }
    }

    fn count(&self, client: ClientNetwork, now: Boottime) -> Arc<ClientCount> {
        let hash = usize::try_from(self.hasher.hash_one(client) >> 40).unwrap_or(0);
        let shard = &self.shards[hash % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = shard.clients.get(&client) {
            return Arc::clone(count);
        }
        if shard.clients.len() >= shard.full_at.max(CLIENTS / SHARDS) {
            shard.forget_idle(now);
        }
        Arc::clone(shard.clients.entry(client).or_default())
    }
}

impl Shard {
    /// Forgets the clients without connections that are not ahead; all without connections, if too
    /// few are idle. The next look comes after as many newcomers as this one was long.
    fn forget_idle(&mut self, now: Boottime) {
        let most = CLIENTS / SHARDS;
        let is_used = |count: &Arc<ClientCount>| Arc::strong_count(count) > 1;
        self.clients
            .retain(|_, count| is_used(count) || !count.is_idle(now));
        if self.clients.len() > most / 2 {
            self.clients.retain(|_, count| is_used(count));
        }
        self.full_at = most.max(2 * self.clients.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    const START: Boottime = Boottime::from_nanos(1_000 * SECOND);

    fn counts(table: &ClientTable, address: &str) -> ClientCounts {
        let client = Client::new(address.parse().unwrap());
        table.counts(client.network(), START)
    }

    fn after(ms: u64) -> Boottime {
        START.plus(Duration::from_millis(ms))
    }

    fn writes(counts: &ClientCounts, tries: usize, at: Boottime) -> usize {
        (0..tries).filter(|_| counts.take_write(10, at)).count()
    }

    #[test]
    fn a_rate_is_a_burst_and_then_so_many_a_second() {
        let table = ClientTable::default();
        let client = counts(&table, "192.0.2.1");
        assert_eq!(writes(&client, 100, START), 40);
        assert_eq!(writes(&client, 100, after(99)), 0);
        assert_eq!(writes(&client, 100, after(1_000)), 10);
        assert_eq!(writes(&client, 100, after(3_600_000)), 40);
        assert_eq!(writes(&counts(&table, "192.0.2.2"), 100, START), 40);
        assert!(
            (0..100_000).all(|_| client.take_write(0, START)),
            "no limit"
        );
    }

    #[test]
    fn a_site_of_ipv6_has_four_shares() {
        let table = ClientTable::default();
        let networks = (0..8).map(|at| counts(&table, &format!("2001:db8:0:{at:x}::1")));
        let networks: Vec<_> = networks.collect();
        let done = networks.iter().map(|client| writes(client, 100, START));
        assert_eq!(done.collect::<Vec<_>>(), [40, 40, 40, 40, 0, 0, 0, 0]);
        // What the site refuses is not counted for the client.
        assert_eq!(writes(&networks[7], 100, after(1_000)), 40);
        let open = networks.iter().flat_map(|client| {
            let connections = (0..10).map(|_| client.clone().open(3));
            connections.collect::<Vec<_>>()
        });
        let open: Vec<_> = open.collect();
        assert_eq!(open.iter().flatten().count(), 12);
        drop(open);
        assert!(networks[0].clone().open(1).is_some());
    }

    #[test]
    fn batches_become_smaller_and_what_is_left_is_given_back() {
        let table = ClientTable::default();
        let client = counts(&table, "192.0.2.1");
        let mut taken = Vec::new();
        while let batch @ 1.. = client.take_requests(100, START) {
            taken.push(batch);
        }
        assert!(taken.is_sorted_by(|a, b| a >= b));
        assert_eq!((taken[0], taken.iter().sum::<u16>()), (CLIENT_BATCH, 400));
        client.give_back_requests(9, 100);
        assert_eq!(
            (0..100).filter(|_| client.take_request(100, START)).count(),
            9
        );
        assert_eq!(client.take_requests(0, START), u16::MAX);
    }

    #[test]
    fn bytes_are_paid_afterwards() {
        let table = ClientTable::default();
        let client = counts(&table, "192.0.2.1");
        let pay = |bytes| client.pay_bytes(bytes, 1000, START);
        assert_eq!(pay(4000), Duration::ZERO);
        assert_eq!(pay(500), Duration::from_millis(500));
        assert_eq!(pay(500), Duration::from_secs(1));
        assert_eq!(
            client.pay_bytes(1, 1000, after(1_000)),
            Duration::from_millis(1)
        );
    }

    #[test]
    fn the_table_is_bounded_and_keeps_clients_that_are_ahead() {
        let table = ClientTable::default();
        let held = counts(&table, "198.51.100.1").open(1).unwrap();
        assert_eq!(writes(&counts(&table, "198.51.100.2"), 100, START), 40);
        let crowd = |writes_too: bool| {
            for at in 0..4 * u32::try_from(CLIENTS).unwrap() {
                let client = counts(
                    &table,
                    &format!("2001:db8:{:x}:{:x}::", at >> 8, (at & 255) << 8),
                );
                if writes_too {
                    client.take_write(10, START);
                }
            }
            let len = |shard: &Mutex<Shard>| shard.lock().unwrap().clients.len();
            assert!(table.shards.iter().map(len).sum::<usize>() <= CLIENTS);
        };
        crowd(false);
        assert_eq!(writes(&counts(&table, "198.51.100.2"), 100, START), 0);
        crowd(true);
        assert!(
            counts(&table, "198.51.100.1").open(1).is_none(),
            "it is open"
        );
        drop(held);
        assert!(counts(&table, "198.51.100.1").open(1).is_some());
    }
}
