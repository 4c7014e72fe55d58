//! One read on one replica, and what it means if that comes to nothing.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connection::Lease;
use super::probe::{self, Probe};
use super::{ATTEMPT, LOOKS, PAUSE, PROBE};
use crate::postgres::files::FileComparison;
use crate::postgres::read::{WitnessItem, deps_of, items_of, question};
use crate::postgres::read_snapshot::{self, ReadSnapshot};
use crate::postgres::replay::Needed;
use crate::postgres::run::RunError;
use crate::postgres::statement::StatementAnalysis;
use crate::postgres::wire::{BatchError, FailedBatch, Item, StatementRows};
use crate::{Call, Deps, FeedKind, ReadResult, ResultRows, Snapshot};

/// Why a replica has not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplicaFailure {
    /// It has not replayed enough, or replaying was in the read's way. The connection is good.
    Behind,
    /// The call with this index failed there, which may be its own fault. The connection is good.
    Failed(usize),
    /// A table was emptied or written anew while it was read. The connection is good.
    Rewritten,
    /// The prepared statements there are of another schema, and were forgotten. The connection is
    /// good.
    Outdated,
    /// Its session began before the replica had the catalog of this number, which it has now.
    Older(u64),
    /// The call with this index has a result that is too large; the rest of it is still on its way.
    Unread(usize),
    /// The server has ended the call with this index, as it took too long. The connection is good.
    Slow(usize),
    /// Nothing arrived in time, whether the calls were `asked` yet or not. They may still run.
    Late { asked: bool },
    /// The connection is not to be used again.
    Broken(String),
}

impl ReplicaFailure {
    /// The calls that are better not asked for there again soon.
    pub(super) fn blamed<'a>(&self, found: &'a [StatementAnalysis]) -> &'a [StatementAnalysis] {
        match self {
            Self::Failed(at) | Self::Unread(at) | Self::Slow(at) => {
                found.get(*at..=*at).unwrap_or_default()
            }
            // The server keeps its answers back until it has them all, so the missing one is
            // unknown.
            Self::Late { asked: true } => found,
            Self::Late { asked: false }
            | Self::Behind
            | Self::Rewritten
            | Self::Outdated
            | Self::Older(_)
            | Self::Broken(_) => &[],
        }
    }
}

/// Runs the calls within [`ATTEMPT`], if the replica has replayed what is needed.
pub(super) async fn attempt(
    lease: &mut Lease,
    needed: &Needed,
    calls: &[Call],
    found: &[StatementAnalysis],
) -> Result<ReadResult, ReplicaFailure> {
    let asked = Cell::new(false);
    let done = timeout(ATTEMPT, at_leisure(lease, needed, calls, found, &asked)).await;
    done.unwrap_or_else(|_| Err(ReplicaFailure::Late { asked: asked.get() }))
}

async fn at_leisure(
    lease: &mut Lease,
    needed: &Needed,
    calls: &[Call],
    found: &[StatementAnalysis],
    asked: &Cell<bool>,
) -> Result<ReadResult, ReplicaFailure> {
    let before = replayed(lease, needed).await?;
    let schema = found.first().map_or(0, |found| found.schema);
    if !lease.connection.has_begun_in(schema) {
        return Err(ReplicaFailure::Older(schema));
    }
    asked.set(true);
    let question = question(&lease.connection, found);
    let witnesses = WitnessItem::all(calls, found);
    let mut items = Vec::with_capacity(calls.len() + witnesses.len() + 2);
    items.extend(items_of(calls, found));
    items.extend(witnesses.iter().map(WitnessItem::item));
    items.push(read_snapshot::item(FeedKind::Logical, &question));
    items.push(Item {
        shape: probe::shape(),
        params: &[],
    });
    let tables = lease.connection.read(&items).await.map_err(|failed| {
        if failed.is_outdated() {
            lease.connection.forget_all();
            return ReplicaFailure::Outdated;
        }
        if WitnessItem::has_failed(&failed, &witnesses, found) {
            return ReplicaFailure::Behind;
        }
        sort(failed)
    })?;
    let broken = |why: &str| ReplicaFailure::Broken(why.to_owned());
    let mut tables = tables.into_iter();
    let after = Probe::read(&tables.next_back().unwrap_or_default());
    let seen = ReadSnapshot::read(&tables.next_back().unwrap_or_default())
        .map_err(ReplicaFailure::Broken)?;
    let (Some(seen), Some(after)) = (seen, after) else {
        return Err(broken("it does not say what it is"));
    };
    if lease.connection.files.answer(&question, &seen.files) != FileComparison::Same {
        return Err(ReplicaFailure::Rewritten);
    }
    // A place where the log is written is what a primary has.
    if seen.position.is_some() || !after.follows(&before) {
        return Err(broken("it has become another server while it was read"));
    }
    let results: Vec<StatementRows> = tables.by_ref().take(calls.len()).collect();
    let deps = deps_of(calls, found, &results, &witnesses, tables);
    Ok(assemble(found, results, deps, &before, &after))
}

/// How far it is, once that is far enough, or not at all after a moment.
async fn replayed(lease: &mut Lease, needed: &Needed) -> Result<Probe, ReplicaFailure> {
    for look in 1.. {
        let probe = lease.probe(PROBE).await.map_err(ReplicaFailure::Broken)?;
        let fault = probe.fault(&lease.system, Some(&needed.source));
        if let Some(fault) = fault {
            return Err(ReplicaFailure::Broken(fault.to_string()));
        }
        if probe.replayed >= needed.at {
            return Ok(probe);
        }
        if look >= LOOKS {
            return Err(ReplicaFailure::Behind);
        }
        sleep(PAUSE).await;
    }
    Err(ReplicaFailure::Behind)
}

/// Makes the result of the rows, as the primary's would be: the dependencies were found out there.
fn assemble(
    found: &[StatementAnalysis],
    results: Vec<StatementRows>,
    deps: Vec<Deps>,
    before: &Probe,
    after: &Probe,
) -> ReadResult {
    let rows = found.iter().zip(results).map(|(found, rows)| ResultRows {
        columns: Arc::clone(&found.shape.columns),
        rows,
    });
    ReadResult {
        deps,
        results: rows.collect(),
        snapshot: Snapshot::Applied(before.replayed),
        position: after.received.max(after.replayed),
        // What is needed of a replica is no less than what the feed covers.
        uncovered: None,
        elapsed: Duration::ZERO,
    }
}

/// Sorts the failure of a batch, whose last statements are ours: the primary is asked, and its
/// answer is given.
fn sort(failed: FailedBatch) -> ReplicaFailure {
    let call = failed.index;
    match failed.wrong {
        BatchError::Failed(RunError::Database(trouble)) if trouble.is_lost() => {
            ReplicaFailure::Broken(trouble.sentence())
        }
        // What replaying had to cancel.
        BatchError::Failed(RunError::Database(trouble)) if trouble.is_conflict() => {
            ReplicaFailure::Behind
        }
        BatchError::Failed(RunError::Database(trouble)) if trouble.is_cancelled() => {
            ReplicaFailure::Slow(call)
        }
        BatchError::Failed(RunError::TooLarge) => ReplicaFailure::Unread(call),
        BatchError::Failed(RunError::Database(_) | RunError::Unreadable(_)) => {
            ReplicaFailure::Failed(call)
        }
        _ => ReplicaFailure::Broken("it has not answered as the primary does".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::server_error::{DatabaseError, ServerError};

    fn of(wrong: BatchError) -> ReplicaFailure {
        sort(FailedBatch { index: 1, wrong })
    }

    fn said(code: &str) -> ReplicaFailure {
        let said = ServerError {
            code: code.to_owned(),
            ..ServerError::default()
        };
        of(BatchError::Failed(RunError::Database(
            DatabaseError::Server(said.into()),
        )))
    }

    #[test]
    fn a_failed_read_names_the_cause() {
        assert_eq!(
            said("40001"),
            ReplicaFailure::Behind,
            "replaying cancelled it"
        );
        assert_eq!(said("57014"), ReplicaFailure::Slow(1), "the limit ended it");
        assert_eq!(said("22012"), ReplicaFailure::Failed(1));
        assert!(matches!(said("57P01"), ReplicaFailure::Broken(_)));
        let unreadable = BatchError::Failed(RunError::Unreadable(0));
        assert_eq!(of(unreadable), ReplicaFailure::Failed(1));
        let large = BatchError::Failed(RunError::TooLarge);
        assert_eq!(of(large), ReplicaFailure::Unread(1));
        assert!(matches!(of(BatchError::NoQuery), ReplicaFailure::Broken(_)));
    }
}
