//! How often a password may be tried: for one account, and from one address.
//!
//! Each account and address has a time up to which its attempts are charged. An attempt moves this
//! time forward, and the clock catches up with it. So one number both counts and decays (the
//! generic cell rate algorithm). The table has a fixed size; when it is full, the entry that has
//! waited longest is dropped.

use std::{
    hash::{BuildHasher as _, Hash},
    time::Duration,
};

use base_clock::Boottime;
use foldhash::fast::RandomState;
use millpond_http::Request;
use parking_lot::Mutex;

const SETS: usize = 4_096;
const WAYS: usize = 4;

/// A rate: a burst, and one more attempt after each interval.
#[derive(Clone, Copy)]
struct Rate {
    burst: u32,
    interval: Duration,
}

/// A person mistypes a few times; a list of passwords is worth nothing at 60 an hour.
const ACCOUNT: Rate = Rate {
    burst: 10,
    interval: Duration::from_secs(60),
};
/// An office or a school is one address; a list of accounts is worth little at 720 an hour.
const ADDRESS: Rate = Rate {
    burst: 60,
    interval: Duration::from_secs(5),
};

#[derive(Clone, Copy, Default)]
struct AttemptSlot {
    /// 0 where it is free.
    name: u64,
    /// Nanoseconds since boot.
    paid_until: u64,
}

/// The counters of a site.
pub(crate) struct Attempts {
    table: Mutex<Box<[[AttemptSlot; WAYS]]>>,
    /// Seeded at random, so that a client cannot choose names that share a slot.
    hasher: RandomState,
}

/// One attempt that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    address: u64,
    account: Option<u64>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            table: Mutex::new(vec![[AttemptSlot::default(); WAYS]; SETS].into()),
            hasher: RandomState::default(),
        }
    }
}

impl Attempts {
    /// Counts an attempt from a client's address, on an account if there is one.
    ///
    /// # Errors
    /// How long to wait, if there were too many. Then nothing is counted, so an attempt after the
    /// wait is allowed.
    pub(crate) fn begin(
        &self,
        request: &Request<'_>,
        account: Option<&str>,
    ) -> Result<Attempt, Duration> {
        let attempt = Attempt {
            address: self.name(&("address", request.client().network())),
            account: account.map(|account| self.name(&("account", account))),
        };
        let now = request.received.max(Boottime::default()).as_nanos();
        let mut table = self.table.lock();
        for (name, rate) in attempt.names() {
            let slot = slot(&mut table, name);
            let ahead = slot.paid_until.saturating_sub(now);
            let room = nanos(rate.interval) * u64::from(rate.burst - 1);
            if ahead > room {
                return Err(Duration::from_nanos(ahead - room));
            }
        }
        for (name, rate) in attempt.names() {
            let slot = slot(&mut table, name);
            slot.name = name;
            slot.paid_until = slot.paid_until.max(now) + nanos(rate.interval);
        }
        Ok(attempt)
    }

    /// Takes back one that was right.
    pub(crate) fn forgive(&self, attempt: Attempt) {
        let mut table = self.table.lock();
        for (name, rate) in attempt.names() {
            let slot = slot(&mut table, name);
            if slot.name == name {
                slot.paid_until = slot.paid_until.saturating_sub(nanos(rate.interval));
            }
        }
    }

    fn name(&self, what: &impl Hash) -> u64 {
        self.hasher.hash_one(what).max(1)
    }
}

impl Attempt {
    fn names(self) -> impl Iterator<Item = (u64, Rate)> {
        let account = self.account.map(|account| (account, ACCOUNT));
        [Some((self.address, ADDRESS)), account]
            .into_iter()
            .flatten()
    }
}

const fn nanos(interval: Duration) -> u64 {
    interval.as_secs() * 1_000_000_000
}

/// The slot of a name: its own slot, or, without a count, the slot that would be dropped first.
fn slot(table: &mut [[AttemptSlot; WAYS]], name: u64) -> &mut AttemptSlot {
    let set = &mut table[(name >> 32) as usize % SETS];
    let own = set.iter().position(|slot| slot.name == name);
    let way = own.unwrap_or_else(|| {
        let oldest = (0..WAYS)
            .min_by_key(|way| set[*way].paid_until)
            .unwrap_or(0);
        set[oldest] = AttemptSlot::default();
        oldest
    });
    &mut set[way]
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use millpond_http::OwnedRequest;

    use super::*;

    const START: Boottime = Boottime::from_nanos(1_000_000_000_000);

    fn from(address: &str, after: u64) -> OwnedRequest {
        let received = START.plus(Duration::from_secs(after));
        OwnedRequest::new("POST", "/login")
            .from_peer((address.parse::<IpAddr>().unwrap(), 1).into(), received)
    }

    fn tries(attempts: &Attempts, address: &str, account: &str, after: u64, times: usize) -> usize {
        let request = from(address, after);
        let good = |_: &usize| attempts.begin(&request.as_request(), Some(account)).is_ok();
        (0..times).filter(good).count()
    }

    #[test]
    fn an_account_is_tried_a_few_times_from_all_addresses() {
        let attempts = Attempts::default();
        assert_eq!(tries(&attempts, "192.0.2.1", "ann", 0, 5), 5);
        assert_eq!(tries(&attempts, "198.51.100.7", "ann", 0, 20), 5);
        assert_eq!(
            tries(&attempts, "192.0.2.1", "bob", 0, 20),
            10,
            "another account"
        );
        let request = from("203.0.113.9", 0);
        let wait = attempts.begin(&request.as_request(), Some("ann"));
        assert_eq!(wait, Err(Duration::from_secs(60)));
        assert_eq!(tries(&attempts, "192.0.2.1", "ann", 60, 20), 1);
        assert_eq!(tries(&attempts, "192.0.2.1", "ann", 3_600, 20), 10);
    }

    #[test]
    fn what_was_right_does_not_count() {
        let attempts = Attempts::default();
        for _ in 0..200 {
            let request = from("192.0.2.1", 0);
            let attempt = attempts.begin(&request.as_request(), Some("ann")).unwrap();
            attempts.forgive(attempt);
        }
        assert_eq!(tries(&attempts, "192.0.2.1", "ann", 0, 20), 10);
    }

    #[test]
    fn an_address_tries_many_accounts_and_then_no_more() {
        let attempts = Attempts::default();
        let each = |address: &str| {
            let once =
                |at: &usize| tries(&attempts, address, &format!("{address} {at}"), 0, 1) == 1;
            (0..500).filter(once).count()
        };
        assert_eq!(each("192.0.2.1"), 60);
        assert_eq!(each("192.0.2.2"), 60);
        assert_eq!(each("2001:db8::1"), 60);
        assert_eq!(each("2001:db8::2"), 0, "the same subscriber");
        assert_eq!(each("::ffff:192.0.2.2"), 0, "the same address");
    }

    #[test]
    fn the_table_is_bounded_and_remembers_the_latest_clients() {
        let attempts = Attempts::default();
        for at in 0..100_000_u32 {
            let [_, a, b, c] = at.to_be_bytes();
            tries(
                &attempts,
                &format!("192.{a}.{b}.{c}"),
                &at.to_string(),
                0,
                1,
            );
        }
        assert_eq!(tries(&attempts, "203.0.113.9", "ann", 1, 20), 10);
    }
}
