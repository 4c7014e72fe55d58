//! The heartbeat: a message that goes out through the database and comes back through the stream
//! (coherence.md, rule 6).
//!
//! Its age counts from the moment at which it was sent. Every transaction committed before that
//! moment has its commit record before the heartbeat's, and the stream brings transactions in the
//! order of their commit records. So when the message is back, all of that has been applied, and
//! with it everything up to the end of the heartbeat's own commit record.
//!
//! It is one statement, so its answer has more than the message's place: a snapshot of the primary,
//! which tells what all later snapshots see, and the fingerprint of the catalog (rule 9). A
//! heartbeat counts only if the fingerprint is the known one; it was taken after the heartbeat was
//! sent, so a change of the catalog that was committed before is in it. Not every one looks at the
//! catalog ([`CatalogChecks`]).

use std::time::Duration;

use base_clock::Boottime;

use super::catalog_checks::CatalogChecks;
use super::messages;
use super::replication::literal;
use crate::feed::Transactions;
use crate::postgres::TextRow;
use crate::postgres::catalog::fingerprint;
use crate::postgres::pending_writes::PREFIX;

/// At most one is under way.
pub(crate) struct Heartbeat {
    interval: Duration,
    /// How many were sent.
    number: u64,
    due: Boottime,
    looks: CatalogChecks,
    flight: Option<Flight>,
}

struct Flight {
    sent: Boottime,
    looks: bool,
    seen: Option<Transactions>,
    /// The end of its commit record, once the stream has brought it.
    back: Option<u64>,
}

/// A heartbeat that is back and answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompletedHeartbeat {
    /// From when it counts.
    pub(crate) sent: Boottime,
    pub(crate) seen: Transactions,
    pub(crate) position: u64,
}

/// Answer of the server to a heartbeat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub(crate) seen: Transactions,
    pub(crate) standbys: String,
    /// If it looked.
    pub(crate) fingerprint: Option<String>,
}

/// Returns the statement that prepares the session that asks: planning would take as long as the
/// rest.
pub(crate) fn prepare() -> String {
    let prefix = literal(PREFIX);
    let common = format!(
        "(text) as select pg_catalog.pg_logical_emit_message(true, {prefix}, $1), pg_catalog.pg_current_snapshot()::text, \
         pg_catalog.current_setting('synchronous_standby_names')"
    );
    format!(
        "prepare millpond_beat{common}; prepare millpond_look{common}, {}",
        fingerprint()
    )
}

impl Heartbeat {
    /// The first is due at once.
    pub(crate) fn new(interval: Duration, now: Boottime) -> Self {
        Self {
            interval,
            number: 0,
            due: now,
            looks: CatalogChecks::new(interval, now),
            flight: None,
        }
    }

    /// When the next is due; never while one is under way.
    pub(crate) fn due(&self) -> Boottime {
        if self.is_under_way() {
            Boottime::NEVER
        } else {
            self.due
        }
    }

    /// True if one was sent that has not come back, or is not answered.
    pub(crate) fn is_under_way(&self) -> bool {
        self.flight.is_some()
    }

    /// One is sent now; its statement.
    pub(crate) fn send(&mut self, node: &str, now: Boottime) -> String {
        let looks = self.looks.is_due(now);
        self.number += 1;
        self.due = now.plus(self.interval);
        self.flight = Some(Flight {
            sent: now,
            looks,
            seen: None,
            back: None,
        });
        let statement = if looks {
            "millpond_look"
        } else {
            "millpond_beat"
        };
        let message = literal(&messages::heartbeat(node, self.number));
        format!("execute {statement}({message})")
    }

    /// The server has answered with this snapshot, and if it looked at the catalog, has found it as
    /// it is known.
    pub(crate) fn answered(
        &mut self,
        seen: Transactions,
        now: Boottime,
    ) -> Option<CompletedHeartbeat> {
        let flight = self.flight.as_mut()?;
        flight.seen = Some(seen);
        if flight.looks {
            self.looks.found(flight.sent, now);
        }
        self.complete()
    }

    /// The stream has brought the message of this number, in a transaction whose commit record ends
    /// here.
    pub(crate) fn back(&mut self, number: u64, position: u64) -> Option<CompletedHeartbeat> {
        if number == self.number {
            self.flight.as_mut()?.back = Some(position);
        }
        self.complete()
    }

    /// The one under way does not count: the catalog has changed. The next looks again.
    pub(crate) fn invalidate(&mut self) {
        self.flight = None;
        self.looks.invalidate();
    }

    fn complete(&mut self) -> Option<CompletedHeartbeat> {
        let flight = self.flight.take()?;
        match (flight.back, flight.seen) {
            (Some(position), Some(seen)) => Some(CompletedHeartbeat {
                sent: self.looks.last(),
                seen,
                position,
            }),
            (back, seen) => {
                self.flight = Some(Flight {
                    back,
                    seen,
                    ..flight
                });
                None
            }
        }
    }
}

impl Pulse {
    /// From the row of a heartbeat's statement.
    pub(crate) fn read(rows: &[TextRow]) -> Option<Self> {
        let [row] = rows else { return None };
        let text = |at: usize| row.get(at)?.as_deref();
        Some(Self {
            seen: Transactions::parse(text(1)?)?,
            standbys: text(2)?.to_owned(),
            fingerprint: text(3).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seen() -> Transactions {
        Transactions::parse("7:7:").unwrap()
    }

    #[test]
    fn it_counts_once_it_is_back_and_answered_whichever_comes_first() {
        let now = Boottime::from_nanos(5);
        let mut heartbeat = Heartbeat::new(SECOND, now);
        assert_eq!(heartbeat.due(), now);
        let beat = |position| CompletedHeartbeat {
            sent: now,
            seen: seen(),
            position,
        };
        assert_eq!(heartbeat.send("0a", now), "execute millpond_look('0a:h:1')");
        assert_eq!(heartbeat.due(), Boottime::NEVER);
        assert!(heartbeat.is_under_way());
        assert_eq!(heartbeat.answered(seen(), now), None);
        assert_eq!(heartbeat.back(1, 70), Some(beat(70)));
        assert_eq!(heartbeat.due(), now.plus(SECOND));
        heartbeat.send("0a", now);
        assert_eq!(heartbeat.back(2, 80), None);
        assert_eq!(heartbeat.answered(seen(), now), Some(beat(80)));
    }

    #[test]
    fn one_that_is_void_or_of_another_number_does_not_count() {
        let now = Boottime::from_nanos(5);
        let mut heartbeat = Heartbeat::new(SECOND, now);
        heartbeat.send("0a", now);
        heartbeat.invalidate();
        assert_eq!(heartbeat.back(1, 70), None);
        heartbeat.send("0a", now);
        assert_eq!(heartbeat.back(1, 70), None);
        assert_eq!(heartbeat.answered(seen(), now), None);
    }

    #[test]
    fn one_that_does_not_look_counts_from_the_last_that_did() {
        let at = |millis| Boottime::default().plus(Duration::from_millis(millis));
        let mut heartbeat = Heartbeat::new(Duration::from_millis(100), at(0));
        let mut beat = |sent, took, number| {
            let looks = heartbeat.send("0a", at(sent)).contains("look");
            heartbeat.back(number, number);
            let beat = heartbeat.answered(seen(), at(sent + took)).unwrap();
            (looks, beat.sent)
        };
        // It takes 15 ms to look: a pause of 300 ms would be too long, one of 250 ms is not.
        assert_eq!(beat(1_000, 15, 1), (true, at(1_000)));
        assert_eq!(beat(1_100, 1, 2), (false, at(1_000)));
        assert_eq!(beat(1_200, 1, 3), (false, at(1_000)));
        // Now it takes 3 ms.
        assert_eq!(beat(1_300, 3, 4), (true, at(1_300)));
        assert_eq!(beat(1_400, 1, 5), (true, at(1_400)));
        heartbeat.send("0a", at(1_401));
        heartbeat.invalidate();
        assert!(heartbeat.send("0a", at(1_402)).contains("look"));
    }

    #[test]
    fn an_answer_is_one_row_of_three_or_four() {
        let row = ["0/0", "7:9:8", "", "abc"].map(|text| Some(text.to_owned()));
        let pulse = Pulse::read(&[row.to_vec()]).unwrap();
        assert_eq!(pulse.fingerprint.as_deref(), Some("abc"));
        assert!(!pulse.seen.sees(8));
        let pulse = Pulse::read(&[row[..3].to_vec()]).unwrap();
        assert_eq!(pulse.fingerprint, None);
        assert_eq!(Pulse::read(&[row[..2].to_vec()]), None);
        assert_eq!(Pulse::read(&[]), None);
    }
}
