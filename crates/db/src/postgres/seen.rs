//! The statement in front of a read: which snapshot it is, and where it lies.

use std::sync::LazyLock;

use super::FeedKind;
use super::shape::Shape;
use crate::Value;
use crate::feed::Transactions;

/// What a read wants to know besides its rows: the snapshot, and a position that the feed must have passed to have brought all
/// that the snapshot saw. It is asked for after the snapshot was taken, and is only there where there is one: a standby
/// writes no log of its own. The isolation shows that the snapshot is that of all statements behind.
fn asking(position: &str) -> Shape {
    let sql = format!(
        "select pg_current_snapshot()::text as snapshot, \
         case when pg_is_in_recovery() then null else {position}::text end as position, \
         current_setting('transaction_isolation') as isolation"
    );
    Shape::of_texts(&sql, &["snapshot", "position", "isolation"])
}

/// Where the feed is logical replication, whose positions are places in the log.
static BY_LOG: LazyLock<Shape> = LazyLock::new(|| asking("pg_current_wal_insert_lsn()"));

/// Where it is triggers. All that the snapshot saw is below its upper bound, and a feed by triggers has passed what is below the lower
/// bound of its own. Asked for without the log, which some providers hide.
static BY_TRIGGERS: LazyLock<Shape> =
    LazyLock::new(|| asking("pg_snapshot_xmax(pg_current_snapshot())"));

/// What is asked where there is such a feed.
pub(super) fn shape(feed: FeedKind) -> &'static Shape {
    match feed {
        FeedKind::Logical => &BY_LOG,
        FeedKind::Triggers => &BY_TRIGGERS,
    }
}

/// Isolations in which all statements of a transaction have one snapshot.
const ISOLATIONS: [&str; 2] = ["repeatable read", "serializable"];

/// The snapshot, and the position that covers what it saw.
pub(super) struct Seen {
    pub(super) transactions: Transactions,
    pub(super) position: Option<u64>,
}

impl Seen {
    /// From the rows of the statement; `None` if they make no sense, and an error if the statements behind it may have had other snapshots.
    pub(super) fn read(rows: &[Vec<Value>]) -> Result<Option<Self>, String> {
        let Some([snapshot, position, Value::Text(isolation)]) = rows.first().map(Vec::as_slice)
        else {
            return Ok(None);
        };
        if ISOLATIONS.contains(&isolation.as_ref()) {
            Ok(Self::of(snapshot, position))
        } else {
            Err(format!(
                "a function has set default_transaction_isolation to {isolation} for the session"
            ))
        }
    }

    fn of(snapshot: &Value, position: &Value) -> Option<Self> {
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
