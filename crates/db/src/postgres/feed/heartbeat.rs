//! The heartbeat: a message that goes out through the database and comes back through the stream (COHERENCE, rule 6).
//!
//! Its age counts from the moment at which it was sent. Whatever was committed before that moment has its commit record before
//! the heartbeat's, and the stream brings transactions in the order of their commit records. So when the message is back,
//! all of that has been applied, and with it everything up to the end of the heartbeat's own commit record.
//!
//! It is one statement, so its answer has more than the message's place: a snapshot of the primary, which tells what all later
//! snapshots see, and the fingerprint of the catalog (rule 9). A heartbeat counts only if the fingerprint is the known one; it
//! was taken after the heartbeat was sent, so a change of the catalog that was committed before is in it.

use std::time::Duration;

use millpond_store::clock::Boottime;

use super::messages;
use super::replication::literal;
use super::wire::Row;
use crate::feed::Transactions;
use crate::postgres::catalog::FINGERPRINT;
use crate::postgres::pending::PREFIX;

/// At most one is under way.
pub(crate) struct Heartbeat {
    interval: Duration,
    /// How many were sent.
    number: u64,
    due: Boottime,
    flight: Option<Flight>,
}

struct Flight {
    sent: Boottime,
    seen: Option<Transactions>,
    /// The end of its commit record, once the stream has brought it.
    back: Option<u64>,
}

/// A heartbeat that is back and answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) sent: Boottime,
    pub(crate) seen: Transactions,
    pub(crate) position: u64,
}

/// What the server says to a heartbeat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub(crate) seen: Transactions,
    /// For `visible` of what the catalog holds.
    pub(crate) fingerprint: String,
    pub(crate) standbys: String,
}

impl Heartbeat {
    /// The first is due at once.
    pub(crate) fn new(interval: Duration, now: Boottime) -> Self {
        Self {
            interval,
            number: 0,
            due: now,
            flight: None,
        }
    }

    /// When the next is due; never while one is under way.
    pub(crate) fn due(&self) -> Boottime {
        if self.flight.is_some() {
            Boottime::NEVER
        } else {
            self.due
        }
    }

    /// One is sent now; its statement.
    pub(crate) fn send(&mut self, node: &str, now: Boottime) -> String {
        self.number += 1;
        self.due = now.plus(self.interval);
        self.flight = Some(Flight {
            sent: now,
            seen: None,
            back: None,
        });
        format!(
            "select pg_catalog.pg_logical_emit_message(true, {}, {}), pg_catalog.pg_current_snapshot()::text, \
             pg_catalog.current_setting('synchronous_standby_names'), {FINGERPRINT}",
            literal(PREFIX),
            literal(&messages::heartbeat(node, self.number)),
        )
    }

    /// The server has answered with this snapshot.
    pub(crate) fn answered(&mut self, seen: Transactions) -> Option<Beat> {
        self.flight.as_mut()?.seen = Some(seen);
        self.complete()
    }

    /// The stream has brought the message of this number, in a transaction whose commit record ends here.
    pub(crate) fn back(&mut self, number: u64, position: u64) -> Option<Beat> {
        if number == self.number {
            self.flight.as_mut()?.back = Some(position);
        }
        self.complete()
    }

    /// The one under way does not count: the catalog has changed.
    pub(crate) fn void(&mut self) {
        self.flight = None;
    }

    fn complete(&mut self) -> Option<Beat> {
        let flight = self.flight.take()?;
        match (flight.back, flight.seen) {
            (Some(position), Some(seen)) => Some(Beat {
                sent: flight.sent,
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
    pub(crate) fn read(rows: &[Row]) -> Option<Self> {
        let [row] = rows else { return None };
        let text = |at: usize| row.get(at)?.as_deref();
        Some(Self {
            seen: Transactions::parse(text(1)?)?,
            standbys: text(2)?.to_owned(),
            fingerprint: text(3)?.to_owned(),
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
        let beat = |position| Beat {
            sent: now,
            seen: seen(),
            position,
        };
        assert!(heartbeat.send("0a", now).contains("'0a:h:1'"));
        assert_eq!(heartbeat.due(), Boottime::NEVER);
        assert_eq!(heartbeat.answered(seen()), None);
        assert_eq!(heartbeat.back(1, 70), Some(beat(70)));
        assert_eq!(heartbeat.due(), now.plus(SECOND));
        heartbeat.send("0a", now);
        assert_eq!(heartbeat.back(2, 80), None);
        assert_eq!(heartbeat.answered(seen()), Some(beat(80)));
    }

    #[test]
    fn one_that_is_void_or_of_another_number_does_not_count() {
        let now = Boottime::from_nanos(5);
        let mut heartbeat = Heartbeat::new(SECOND, now);
        heartbeat.send("0a", now);
        heartbeat.void();
        assert_eq!(heartbeat.back(1, 70), None);
        heartbeat.send("0a", now);
        assert_eq!(heartbeat.back(1, 70), None);
        assert_eq!(heartbeat.answered(seen()), None);
    }

    #[test]
    fn an_answer_is_one_row_of_four() {
        let row = ["0/0", "7:9:8", "", "abc"].map(|text| Some(text.to_owned()));
        let pulse = Pulse::read(&[row.to_vec()]).unwrap();
        assert_eq!(pulse.fingerprint, "abc");
        assert!(!pulse.seen.sees(8));
        assert_eq!(Pulse::read(&[row[..3].to_vec()]), None);
        assert_eq!(Pulse::read(&[]), None);
    }
}
