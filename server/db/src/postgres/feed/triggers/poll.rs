//! One look at the table of changes: the statements, and what they answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::replication::literal;
use super::super::wait::FeedEnd;
use super::objects::{CHANGES, LOST, MAX_BYTES, NODES};
use crate::feed::Transactions;
use crate::postgres::TextRow;
use crate::postgres::catalog::fingerprint;

/// Rows that one look takes. If there are more, it is not looked what they were: a new epoch
/// begins.
pub(super) const MAX_ROWS: usize = 16_384;
/// Rows that are removed at a time.
pub(super) const TIDIED: usize = 10_000;
/// Number of the lock that nodes that tidy agree on: "millpond" in ASCII, and one more, as
/// migrations have that.
const LOCK: i64 = 0x6d69_6c6c_706f_6e65;
/// Silence after which a node is struck off.
const SILENCE: &str = "interval '1 minute'";

/// Schema of the tables, and the node that reads them.
pub(super) struct NodeRegistration {
    /// As it is written in SQL.
    pub(super) schema: String,
    pub(super) node: String,
    /// Another one after each loss of the connection.
    pub(super) life: u64,
}

impl NodeRegistration {
    /// Registers this life in the place of the node's last one. The snapshot of the statement is
    /// older than the life's first one, so nothing from its lower bound on has been seen by a life
    /// of this node that still counts.
    pub(super) fn register(&self) -> String {
        let Self { schema, node, life } = self;
        let node = literal(node);
        format!(
            "insert into {schema}.{NODES} as n (node, life, oldest, seen_at) \
             values ({node}, {life}, pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()), pg_catalog.clock_timestamp()) \
             on conflict (node) do update set life = excluded.life, oldest = excluded.oldest, seen_at = excluded.seen_at"
        )
    }

    /// Says that nothing below `oldest` is needed here any more, and removes old rows if no other
    /// node does. One transaction, so no node finds rows removed and the node that still needed
    /// them on the list; each statement has its own snapshot.
    pub(super) fn tidy(&self, oldest: u64) -> String {
        let Self { schema, node, life } = self;
        let node = literal(node);
        let alone = format!("(select pg_catalog.pg_try_advisory_xact_lock({LOCK}))");
        // Past this nothing is recorded, so it is tried until it succeeds.
        let shrink = self.shrink(MAX_BYTES);
        format!(
            "update {schema}.{NODES} set oldest = '{oldest}', seen_at = pg_catalog.clock_timestamp() where node = {node} and life = {life}; \
             delete from {schema}.{NODES} where seen_at < pg_catalog.clock_timestamp() - {SILENCE} and {alone}; \
             with gone as (delete from {schema}.{CHANGES} where {alone} and ctid = any (array(select ctid from {schema}.{CHANGES} \
             where transaction < (select oldest from {schema}.{NODES} order by oldest limit 1) limit {TIDIED})) returning 1) \
             select count(*)::text from gone; {shrink}"
        )
    }

    /// Empties a table of changes that has more bytes than that, as it has after a time without
    /// nodes. TRUNCATE is seen by older snapshots too, so all nodes are told first that something
    /// is lost. It waits for no lock: later writers would wait behind it. So nothing is emptied
    /// while a transaction is open that has recorded something.
    pub(super) fn shrink(&self, bytes: u64) -> String {
        let schema = &self.schema;
        let text = |name: &str| format!("{schema}.{name}").replace('\'', "''");
        format!(
            "do $millpond$ begin \
             if pg_catalog.pg_relation_size('{}', 'main') > {bytes} then \
             lock table {schema}.{CHANGES} in access exclusive mode nowait; \
             perform pg_catalog.nextval('{}'); \
             truncate {schema}.{CHANGES}; \
             end if; \
             exception when lock_not_available or insufficient_privilege then null; \
             end $millpond$",
            text(CHANGES),
            text(LOST)
        )
    }

    /// Takes this life off the list.
    pub(super) fn leave(&self) -> String {
        let Self { schema, node, life } = self;
        let node = literal(node);
        format!("delete from {schema}.{NODES} where node = {node} and life = {life}")
    }

    /// Returns the statement that prepares the session that looks: planning would take as long as
    /// the rest.
    ///
    /// A snapshot does not see the ids from its upper bound on, and those that it names.
    /// *Counterexample: the look reads all ids from the lower bound on, and sorts them out by
    /// `pg_visible_in_snapshot`. While one transaction stays open, each look reads all that was
    /// recorded since.*
    pub(super) fn prepare(&self) -> String {
        let Self { schema, node, life } = self;
        let node = literal(node);
        format!(
            "prepare millpond_changes(pg_snapshot) as select null::text, pg_catalog.pg_current_snapshot()::text, \
             exists (select from {schema}.{NODES} where node = {node} and life = {life})::text \
             union all (select c.transaction::text, c.relation::text, c.content::text from \
             (select * from {schema}.{CHANGES} where transaction >= pg_catalog.pg_snapshot_xmax($1) union all \
             select * from {schema}.{CHANGES} where transaction = any (array(select pg_catalog.pg_snapshot_xip($1)))) c \
             limit {MAX_ROWS} + 1); \
             prepare millpond_lost as {}; prepare millpond_fingerprint as select {}, null",
            self.lost(),
            fingerprint()
        )
    }

    /// Returns the counter of lost changes.
    pub(super) fn lost(&self) -> String {
        let schema = &self.schema;
        format!("select pg_catalog.concat(last_value, is_called) from {schema}.{LOST}")
    }
}

/// Returns the query for everything that `snapshot` does not see, and for the catalog if `looks`.
/// The counter and the catalog are read last, so they contain the effects of every row that was
/// seen. *Counterexample: they are read before the rows, and a transaction counts between the two.*
///
/// The index is always used: the plan may be from when the table was empty, and it need not stay
/// so.
pub(super) fn ask(snapshot: &str, looks: bool) -> String {
    let fingerprint = if looks {
        "; execute millpond_fingerprint"
    } else {
        ""
    };
    format!(
        "set local enable_seqscan = off; execute millpond_changes({}); set local enable_seqscan = on; \
         execute millpond_lost{fingerprint}",
        literal(snapshot)
    )
}

/// Record of a change of one row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordedChange {
    pub(super) table: u32,
    /// As JSON; `None` if it may be any row of the table.
    pub(super) content: Option<String>,
}

/// Findings of a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PollResult {
    pub(super) seen: Arc<Transactions>,
    pub(super) snapshot: String,
    pub(super) is_registered: bool,
    /// If the catalog was looked at.
    pub(super) fingerprint: Option<String>,
    pub(super) changes: BTreeMap<u64, Vec<RecordedChange>>,
    /// There were more than [`MAX_ROWS`]; what is here is not all.
    pub(super) is_cut: bool,
    pub(super) lost: String,
}

impl PollResult {
    /// From the rows of [`ask`]'s statements; `None` if they make no sense.
    pub(super) fn read(rows: Vec<TextRow>) -> Option<Self> {
        let (mut found, mut lost, mut fingerprint) = (None, None, None);
        let mut changes: BTreeMap<u64, Vec<RecordedChange>> = BTreeMap::new();
        let mut count = 0;
        for row in rows {
            let mut row = row.into_iter();
            match (row.len(), row.next()?, row.next(), row.next()) {
                (1, counter, ..) => lost = counter,
                (2, catalog, ..) => fingerprint = catalog,
                (3, None, Some(Some(snapshot)), Some(Some(registered))) => {
                    found = Some((snapshot, registered == "true"));
                }
                (3, Some(transaction), Some(Some(table)), Some(content)) => {
                    let table = table.parse().ok()?;
                    let of = changes.entry(transaction.parse().ok()?).or_default();
                    of.push(RecordedChange { table, content });
                    count += 1;
                }
                _ => return None,
            }
        }
        let (snapshot, is_registered) = found?;
        Some(Self {
            seen: transactions(&snapshot).ok()?,
            snapshot,
            is_registered,
            fingerprint,
            changes,
            is_cut: count > MAX_ROWS,
            lost: lost?,
        })
    }
}

/// Reads a snapshot.
pub(super) fn transactions(text: &str) -> Result<Arc<Transactions>, FeedEnd> {
    let seen = Transactions::parse(text);
    seen.map(Arc::new)
        .ok_or_else(|| FeedEnd::lost(format!("the server gives no snapshot but {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> TextRow {
        let value = |text: &&str| (*text != "-").then(|| (*text).to_owned());
        values.iter().map(value).collect()
    }

    #[test]
    fn a_poll_is_read_by_transactions_in_any_order_of_rows() {
        let rows = vec![
            row(&["9", "16400", "{}"]),
            row(&["-", "7:10:7", "true"]),
            row(&["8", "16400", "-"]),
            row(&["9", "16401", "{}"]),
            row(&["1f"]),
        ];
        let found = PollResult::read(rows).unwrap();
        assert_eq!(found.changes.keys().collect::<Vec<_>>(), [&8, &9]);
        assert_eq!(found.changes[&8][0].content, None);
        assert_eq!(found.changes[&9].len(), 2);
        assert!(found.is_registered && !found.is_cut);
        assert_eq!((found.lost.as_str(), found.fingerprint), ("1f", None));
        assert!(found.seen.sees(8) && !found.seen.sees(7));
    }

    #[test]
    fn an_answer_without_snapshot_or_counter_makes_no_sense() {
        let head = || row(&["-", "7:10:7", "true"]);
        assert!(PollResult::read(vec![head(), row(&["1f"])]).is_some());
        assert_eq!(PollResult::read(vec![head()]), None);
        assert_eq!(PollResult::read(vec![row(&["1f"])]), None);
        assert_eq!(
            PollResult::read(vec![row(&["-", "x", "true"]), row(&["1f"])]),
            None
        );
        assert_eq!(
            PollResult::read(vec![head(), row(&["1f"]), row(&["x", "1", "-"])]),
            None
        );
    }

    #[test]
    fn a_poll_reads_nothing_twice_with_any_open_transactions() {
        let server = lab_pgtest::Postgres::start().unwrap();
        let connect = || ::postgres::Client::connect(&server.url(), ::postgres::NoTls).unwrap();
        let (mut client, mut other) = (connect(), connect());
        let names = NodeRegistration {
            schema: "public".to_owned(),
            node: "a".to_owned(),
            life: 1,
        };
        client
            .batch_execute(&super::super::objects::install("public"))
            .unwrap();
        client.batch_execute(&names.register()).unwrap();
        let record = format!("insert into {CHANGES} select pg_current_xact_id(), 0, '{{}}'");
        other.batch_execute(&format!("begin; {record}")).unwrap();
        for _ in 0..3 {
            let many = format!("{record} from generate_series(1, 1000)");
            client.batch_execute(&many).unwrap();
        }
        client.batch_execute(&names.prepare()).unwrap();
        let mut snapshot: String = client
            .query_one("select pg_current_snapshot()::text", &[])
            .unwrap()
            .get(0);
        client.batch_execute(&record).unwrap();
        // The new one; then none; then the one that was open.
        for (before, expected) in [("", 1), ("", 0), ("commit", 1)] {
            other.batch_execute(before).unwrap();
            let look = format!("execute millpond_changes('{snapshot}')");
            let explain = format!("set enable_seqscan = off; explain (analyze) {look}");
            let plan = client.simple_query(&explain).unwrap();
            let plan = format!("{plan:?}");
            assert!(!plan.contains("Removed by Filter"), "{plan}");
            assert!(!plan.contains("Seq Scan"), "{plan}");
            let rows = client.simple_query(&look).unwrap();
            let rows: Vec<_> = rows
                .iter()
                .filter_map(|message| match message {
                    ::postgres::SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                })
                .collect();
            assert_eq!(rows.len(), 1 + expected, "{plan}");
            snapshot = rows[0].get(1).unwrap().to_owned();
        }
    }

    #[test]
    fn more_than_is_taken_at_once_is_cut() {
        let mut rows = vec![row(&["-", "7:10:7", "true"]), row(&["1f"])];
        rows.extend((0..MAX_ROWS).map(|_| row(&["9", "1", "-"])));
        assert!(!PollResult::read(rows.clone()).unwrap().is_cut);
        rows.push(row(&["9", "1", "-"]));
        assert!(PollResult::read(rows).unwrap().is_cut);
    }
}
