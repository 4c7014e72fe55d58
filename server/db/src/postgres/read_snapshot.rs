//! The statement behind those of a read: which snapshot they had, where it lies, and whether it
//! holds for their tables.

use std::sync::LazyLock;

use super::files::{FileQuery, Form};
use super::shape::Shape;
use super::wire::Item;
use crate::feed::Transactions;
use crate::{FeedKind, Value};

/// Returns the statement by which a read asks for more than its rows: the snapshot, and a position
/// that the feed must have passed to have brought all that the snapshot saw. The position is asked
/// for after the snapshot was taken, and is there on a primary only: a standby writes no log of its
/// own. The isolation shows that all statements in front had this snapshot. The files show that
/// these statements found the tables that the snapshot sees.
fn asking(position: &str, files: Form) -> Shape {
    let sql = format!(
        "select pg_current_snapshot()::text as snapshot, \
         case when pg_is_in_recovery() then null else {position}::text end as position, \
         current_setting('transaction_isolation') as isolation, {} as files",
        files.expression()
    );
    let columns = ["snapshot", "position", "isolation", "files"];
    Shape::own(&sql, files.params(), &columns)
}

fn all(position: &str) -> Vec<Shape> {
    Form::all().map(|files| asking(position, files)).collect()
}

/// Shapes for logical replication, whose positions are places in the log.
static BY_LOG: LazyLock<Vec<Shape>> = LazyLock::new(|| all("pg_current_wal_insert_lsn()"));

/// Shapes for triggers. All that the snapshot saw is below its upper bound, and a feed by triggers
/// has passed what is below the lower bound of its own. Asked for without the log, which some
/// providers hide.
static BY_TRIGGERS: LazyLock<Vec<Shape>> =
    LazyLock::new(|| all("pg_snapshot_xmax(pg_current_snapshot())"));

/// Returns the question for such a feed.
pub(super) fn item(feed: FeedKind, question: &FileQuery) -> Item<'_> {
    let shapes = match feed {
        FeedKind::Logical => &*BY_LOG,
        FeedKind::Triggers => &*BY_TRIGGERS,
    };
    Item {
        shape: &shapes[question.form.number()],
        params: &question.params,
    }
}

/// Isolations in which all statements of a transaction have one snapshot.
const ISOLATIONS: [&str; 2] = ["repeatable read", "serializable"];

/// The snapshot, and the position that covers what it saw.
pub(super) struct ReadSnapshot {
    pub(super) transactions: Transactions,
    pub(super) position: Option<u64>,
    /// Answer about the files.
    pub(super) files: Value,
}

impl ReadSnapshot {
    /// From the rows of the statement; `None` if they make no sense, and an error if the statements
    /// in front of it may have had other snapshots.
    pub(super) fn read(rows: &[Vec<Value>]) -> Result<Option<Self>, String> {
        let Some([snapshot, position, Value::Text(isolation), files]) =
            rows.first().map(Vec::as_slice)
        else {
            return Ok(None);
        };
        if ISOLATIONS.contains(&isolation.as_ref()) {
            Ok(Self::of(snapshot, position, files))
        } else {
            Err(format!(
                "a function has set default_transaction_isolation to {isolation} for the session"
            ))
        }
    }

    fn of(snapshot: &Value, position: &Value, files: &Value) -> Option<Self> {
        let Value::Text(transactions) = snapshot else {
            return None;
        };
        let position = match position {
            Value::Text(position) => Some(place(position)?),
            _ => None,
        };
        Some(Self {
            transactions: Transactions::parse(transactions)?,
            position,
            files: files.clone(),
        })
    }
}

/// A position in the log, `16/B374D848`, or a transaction id.
pub(super) fn place(text: &str) -> Option<u64> {
    let Some((high, low)) = text.split_once('/') else {
        return text.parse().ok();
    };
    let part = |digits| u32::from_str_radix(digits, 16).ok().map(u64::from);
    Some(part(high)? << 32 | part(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read() {
        assert_eq!(place("16/B374D848"), Some(0x16_b374_d848));
        assert_eq!(place("0/0"), Some(0));
        assert_eq!(place("4294967297"), Some(1 << 32 | 1));
        for wrong in ["", "x", "1/", "x/0", "1/123456789"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
