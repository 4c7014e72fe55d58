//! How often the feed looks at the stream while much is committed.
//!
//! A look costs more than the transaction that it finds: the thread is woken, polls and reads, and
//! the thread that answered requests on its core has waited for it. One transaction now and then is
//! worth a look of its own. Of many that come one after another, several are taken at a look, as
//! network drivers do with packets (interrupt moderation; Mogul and Ramakrishnan, "Eliminating
//! receive livelock in an interrupt-driven kernel", 1996). They show later by a rest at most. There
//! is none while a caller waits for the feed, and who begins to wait ends the one that is
//! ([`crate::postgres::wake`]); nor while a heartbeat is under way, whose age counts.

use std::time::Duration;

use base_clock::Boottime;

/// Transactions in a second that each have a look of their own.
const PER_SECOND: u64 = 300;
/// Additional transactions that one burst may have before it counts as many.
const BURST: u64 = 20;
/// From one look to the next, while there are more.
const REST: Duration = Duration::from_millis(4);

/// The time that one transaction stands for.
const EACH: Duration = Duration::from_nanos(1_000_000_000 / PER_SECOND);

/// The recent arrivals: the generic cell rate algorithm (ITU-T I.371), with transactions for cells.
#[derive(Default)]
pub(crate) struct PollPace {
    /// The theoretical arrival time of all transactions so far, at the rate that needs no rest.
    expected: Boottime,
}

impl PollPace {
    /// At a look some transactions were found; until when to rest, if they are many.
    pub(crate) fn found(&mut self, transactions: u64, now: Boottime) -> Option<Boottime> {
        let most = now.plus(EACH * BURST as u32);
        let counted = u32::try_from(transactions).unwrap_or(u32::MAX);
        self.expected = self.expected.max(now).plus(EACH.saturating_mul(counted));
        let many = self.expected > most;
        // A burst is forgotten as soon as another would have been allowed.
        self.expected = self.expected.min(most);
        (many && transactions > 0).then(|| now.plus(REST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Boottime {
        Boottime::from_nanos(1_000_000_000).plus(Duration::from_micros(micros))
    }

    /// Looks at as many transactions in a second as are given, for a second; how often it looked,
    /// and how often rested.
    fn a_second_of(rate: u64) -> (u64, u64) {
        let (mut pace, mut looks, mut rests) = (PollPace::default(), 0, 0);
        let (mut now, mut seen) = (0, 0);
        while now < 1_000_000 {
            let come = now * rate / 1_000_000 + 1;
            if come > seen {
                looks += 1;
                if pace.found(come - seen, at(now)).is_some() {
                    rests += 1;
                    now += REST.as_micros() as u64;
                }
                seen = come;
            }
            now += 50;
        }
        (looks, rests)
    }

    #[test]
    fn each_wake_is_a_poll_until_they_are_many() {
        assert_eq!(a_second_of(10), (10, 0));
        assert_eq!(a_second_of(PER_SECOND), (PER_SECOND, 0));
        for many in [1_000, 10_000] {
            let (looks, rests) = a_second_of(many);
            assert!(
                (230..=300).contains(&looks) && rests + BURST * 2 >= looks,
                "{looks} {rests}"
            );
        }
    }

    #[test]
    fn a_burst_is_soon_forgotten() {
        let mut pace = PollPace::default();
        assert!(pace.found(BURST, at(0)).is_none());
        assert!(pace.found(1_000_000, at(1)).is_some());
        assert!(pace.found(0, at(2)).is_none());
        let later = at(0).plus(EACH * BURST as u32);
        assert!(
            pace.found(BURST, later.plus(Duration::from_millis(1)))
                .is_none()
        );
    }
}
