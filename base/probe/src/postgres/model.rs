//! What the probe brings home, as it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that was seen of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgProbe {
    /// Server that was asked.
    pub server: PgServer,
    /// The moments, in order.
    pub samples: Vec<PgSample>,
    /// Times without a connection, in order.
    pub gaps: Vec<PgGap>,
    /// Figures that could not be seen, each with the reason.
    pub unavailable: BTreeMap<String, String>,
}

/// A server, as it was at the first connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgServer {
    /// Its version, such as `15.18`.
    pub version: String,
    /// The database of the connection, whose counters are read.
    pub database: String,
    /// Connections that the server takes.
    pub max_connections: u64,
    /// True if it only replays another's WAL.
    pub is_standby: bool,
}

/// One moment. Counters only rise, from an origin that is the server's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgSample {
    /// When, in seconds from the beginning of the measured part.
    pub at_s: f64,
    /// The number of the probe's connection, from 0: the server may restart between two
    /// connections.
    pub connection: u64,
    /// Its sessions.
    pub sessions: PgSessions,
    /// Lock requests that are not granted.
    pub locks_waiting: Option<u64>,
    /// Counts of the server so far.
    pub counters: PgCounters,
    /// Bytes of WAL that each replication slot keeps from being removed.
    pub slots: BTreeMap<String, u64>,
}

/// Client sessions at one moment, the probe's own left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgSessions {
    /// The number of sessions in each state: `active`, `idle`, `idle in transaction`…; `not
    /// visible` for sessions of other accounts that the probe's account may not see.
    pub by_state: BTreeMap<String, u64>,
    /// Waits of active sessions and background processes, as `Type:event`; `none` for those that
    /// work.
    pub waits: BTreeMap<String, u64>,
    /// Age of the oldest open transaction, in seconds; none if there is none, or none is visible.
    pub longest_transaction_s: Option<f64>,
}

/// Counters. Those of transactions, blocks and rows count one database, the others the whole
/// server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgCounters {
    /// Transactions committed, the probe's own (one a second) included.
    pub commits: Option<u64>,
    /// Transactions rolled back.
    pub rollbacks: Option<u64>,
    /// Blocks asked of the operating system.
    pub blocks_read: Option<u64>,
    /// Blocks found in shared buffers.
    pub blocks_hit: Option<u64>,
    /// Rows that scans have read.
    pub rows_read: Option<u64>,
    /// Rows inserted, updated and deleted.
    pub rows_written: Option<u64>,
    /// Bytes written to temporary files.
    pub temp_bytes: Option<u64>,
    /// Deadlocks found.
    pub deadlocks: Option<u64>,
    /// Bytes of WAL: the position at which it is written, on a standby replayed.
    pub wal_bytes: Option<u64>,
    /// Whole pages written to the WAL after a checkpoint; from version 14 on.
    pub wal_full_pages: Option<u64>,
    /// Checkpoints, timed and requested.
    pub checkpoints: Option<u64>,
    /// CPU time of all its processes in nanoseconds, those that have ended included.
    pub cpu_ns: Option<u64>,
}

/// A time in which the probe had no answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgGap {
    /// From when, in seconds from the beginning of the measured part.
    pub from_s: f64,
    /// To when: the next answer, or the end of the probe.
    pub to_s: f64,
    /// Cause of the failure.
    pub reason: String,
}

impl PgProbe {
    /// Moves all times `seconds` earlier: they count from a later origin.
    pub(super) fn since(mut self, seconds: f64) -> Self {
        for sample in &mut self.samples {
            sample.at_s -= seconds;
        }
        for gap in &mut self.gaps {
            gap.from_s -= seconds;
            gap.to_s -= seconds;
        }
        self
    }
}

impl PgSessions {
    /// Client sessions of any state.
    pub fn total(&self) -> u64 {
        self.by_state.values().sum()
    }
}

impl PgCounters {
    /// Returns the difference between `earlier` and this. `None` if a counter has fallen: the
    /// server was restarted, or its counters were reset.
    pub(super) fn since(&self, earlier: &Self) -> Option<Self> {
        let mut went_back = false;
        let mut less = |of: fn(&Self) -> Option<u64>| {
            let (now, before) = of(self).zip(of(earlier))?;
            went_back |= now < before;
            now.checked_sub(before)
        };
        let happened = Self {
            commits: less(|c| c.commits),
            rollbacks: less(|c| c.rollbacks),
            blocks_read: less(|c| c.blocks_read),
            blocks_hit: less(|c| c.blocks_hit),
            rows_read: less(|c| c.rows_read),
            rows_written: less(|c| c.rows_written),
            temp_bytes: less(|c| c.temp_bytes),
            deadlocks: less(|c| c.deadlocks),
            wal_bytes: less(|c| c.wal_bytes),
            wal_full_pages: less(|c| c.wal_full_pages),
            checkpoints: less(|c| c.checkpoints),
            cpu_ns: less(|c| c.cpu_ns),
        };
        (!went_back).then_some(happened)
    }

    /// Both together; what one of them lacks, the sum lacks.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let sum = |of: fn(&Self) -> Option<u64>| Some(of(self)? + of(other)?);
        Self {
            commits: sum(|c| c.commits),
            rollbacks: sum(|c| c.rollbacks),
            blocks_read: sum(|c| c.blocks_read),
            blocks_hit: sum(|c| c.blocks_hit),
            rows_read: sum(|c| c.rows_read),
            rows_written: sum(|c| c.rows_written),
            temp_bytes: sum(|c| c.temp_bytes),
            deadlocks: sum(|c| c.deadlocks),
            wal_bytes: sum(|c| c.wal_bytes),
            wal_full_pages: sum(|c| c.wal_full_pages),
            checkpoints: sum(|c| c.checkpoints),
            cpu_ns: sum(|c| c.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_stays_unknown_and_a_reset_gives_no_difference() {
        let before = PgCounters {
            commits: Some(10),
            cpu_ns: Some(5),
            ..PgCounters::default()
        };
        let after = PgCounters {
            commits: Some(14),
            cpu_ns: None,
            deadlocks: Some(1),
            ..PgCounters::default()
        };
        let happened = after.since(&before).unwrap();
        assert_eq!(happened.commits, Some(4));
        assert_eq!((happened.cpu_ns, happened.deadlocks), (None, None));
        assert_eq!(happened.plus(&happened).commits, Some(8));
        assert_eq!(before.since(&after), None);
    }
}
