//! The queries of a sample, and how their answers are read.
//!
//! All queries go in one simple query, and so in one transaction and one round trip: the figures of
//! a sample belong to one moment. A query that the server refuses is left out from then on and
//! reported.

use std::collections::BTreeMap;

use tokio_postgres::SimpleQueryRow;

use super::model::{PgCounters, PgSample};

/// One statement of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleQuery {
    /// Figure that is missing without it.
    pub(super) name: &'static str,
    /// Columns are read by name.
    pub(super) sql: &'static str,
    read: fn(&SimpleQueryRow, &mut PgSample),
}

/// Client sessions without the probe's own. The state and type of a session are null if the account
/// may not see it. A session has a user and a database; a background process has none.
const SESSIONS: SampleQuery = SampleQuery {
    name: "sessions",
    sql: "select coalesce(state, 'not visible') as state, count(*) as n, \
          extract(epoch from max(clock_timestamp() - xact_start)) as oldest \
          from pg_stat_activity where pid <> pg_backend_pid() and (backend_type = 'client backend' \
          or (backend_type is null and datid is not null and usesysid is not null)) group by 1",
    read: |row, sample| {
        if let Some((state, n)) = text(row, "state").zip(number(row, "n")) {
            sample.sessions.by_state.insert(state.to_owned(), n);
        }
        let oldest = text(row, "oldest").and_then(|text| text.parse::<f64>().ok());
        let longest = &mut sample.sessions.longest_transaction_s;
        *longest = oldest.into_iter().chain(*longest).reduce(f64::max);
    },
};

/// Idle sessions wait for their clients, and background processes of type `Activity` wait for work:
/// both say nothing about the load.
const WAITS: SampleQuery = SampleQuery {
    name: "waits",
    sql: "select coalesce(wait_event_type || ':' || wait_event, 'none') as event, count(*) as n \
          from pg_stat_activity where pid <> pg_backend_pid() and (state = 'active' or \
          (backend_type <> 'client backend' and wait_event_type <> 'Activity')) group by 1",
    read: |row, sample| {
        if let Some((event, n)) = text(row, "event").zip(number(row, "n")) {
            sample.sessions.waits.insert(event.to_owned(), n);
        }
    },
};

const LOCKS: SampleQuery = SampleQuery {
    name: "locks",
    sql: "select count(*) as n from pg_locks where not granted",
    read: |row, sample| sample.locks_waiting = number(row, "n"),
};

const DATABASE: SampleQuery = SampleQuery {
    name: "transactions, blocks and rows",
    sql: "select xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, \
          tup_inserted + tup_updated + tup_deleted as written, temp_bytes, deadlocks \
          from pg_stat_database where datname = current_database()",
    read: |row, sample| {
        let wal = sample.counters;
        sample.counters = PgCounters {
            commits: number(row, "xact_commit"),
            rollbacks: number(row, "xact_rollback"),
            blocks_read: number(row, "blks_read"),
            blocks_hit: number(row, "blks_hit"),
            rows_read: number(row, "tup_returned"),
            rows_written: number(row, "written"),
            temp_bytes: number(row, "temp_bytes"),
            deadlocks: number(row, "deadlocks"),
            ..wal
        };
    },
};

const WAL: SampleQuery = SampleQuery {
    name: "WAL bytes",
    sql: "select case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0') \
          else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') end as bytes",
    read: |row, sample| sample.counters.wal_bytes = number(row, "bytes"),
};

const WAL_PAGES: SampleQuery = SampleQuery {
    name: "full pages in the WAL",
    sql: "select wal_fpi from pg_stat_wal",
    read: |row, sample| sample.counters.wal_full_pages = number(row, "wal_fpi"),
};

const CHECKPOINTS: SampleQuery = SampleQuery {
    name: "checkpoints",
    sql: "select checkpoints_timed + checkpoints_req as n from pg_stat_bgwriter",
    read: |row, sample| sample.counters.checkpoints = number(row, "n"),
};

const CHECKPOINTS_17: SampleQuery = SampleQuery {
    sql: "select num_timed + num_requested as n from pg_stat_checkpointer",
    ..CHECKPOINTS
};

const SLOTS: SampleQuery = SampleQuery {
    name: "replication slots",
    sql: "select slot_name, greatest(0, case when pg_is_in_recovery() \
          then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), restart_lsn) \
          else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn) end) as retained \
          from pg_replication_slots where restart_lsn is not null",
    read: |row, sample| {
        if let Some((slot, retained)) = text(row, "slot_name").zip(number(row, "retained")) {
            sample.slots.insert(slot.to_owned(), retained);
        }
    },
};

/// The parts that a version has (`server_version_num`, such as 150018), and what it lacks.
pub(super) fn parts(version: u32, unavailable: &mut BTreeMap<String, String>) -> Vec<SampleQuery> {
    let mut parts = vec![SESSIONS, WAITS, LOCKS, DATABASE, WAL, SLOTS];
    parts.push(if version >= 170_000 {
        CHECKPOINTS_17
    } else {
        CHECKPOINTS
    });
    if version >= 140_000 {
        parts.push(WAL_PAGES);
    } else {
        let why = "version 14 or later is needed".to_owned();
        unavailable.insert(WAL_PAGES.name.to_owned(), why);
    }
    parts
}

pub(super) fn together(parts: &[SampleQuery]) -> String {
    let statements: Vec<&str> = parts.iter().map(|part| part.sql).collect();
    statements.join(";\n")
}

impl SampleQuery {
    /// Takes a row of its answer into the sample.
    pub(super) fn read(&self, row: &SimpleQueryRow, sample: &mut PgSample) {
        (self.read)(row, sample);
    }
}

fn text<'a>(row: &'a SimpleQueryRow, column: &str) -> Option<&'a str> {
    row.try_get(column).ok().flatten()
}

fn number(row: &SimpleQueryRow, column: &str) -> Option<u64> {
    text(row, column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_gets_queries_that_it_knows() {
        let mut unavailable = BTreeMap::new();
        let sql = together(&parts(130_011, &mut unavailable));
        assert!(sql.contains("pg_stat_bgwriter") && !sql.contains("pg_stat_wal"));
        assert_eq!(unavailable.len(), 1);
        let mut unavailable = BTreeMap::new();
        let sql = together(&parts(170_002, &mut unavailable));
        assert!(sql.contains("pg_stat_checkpointer") && sql.contains("pg_stat_wal"));
        assert!(!sql.contains("pg_stat_bgwriter") && unavailable.is_empty());
    }
}
