//! How SQLite would run queries of ours (<https://www.sqlite.org/eqp.html>).

use std::collections::HashMap;

use rusqlite::Connection;

use crate::data_file::quoted;
use crate::precision::Operand;
use crate::precision::witness::MAX_ROWS;
use crate::sqlite::recorder::{Recorder, StatementPolicy};

pub(super) struct Plans<'a> {
    pub(super) connection: &'a Connection,
    pub(super) recorder: &'a Recorder,
}

impl Plans<'_> {
    /// True if SQLite finds the rows of a query by indexes, without looking at all rows of a table.
    /// The items of a list are no table.
    pub(super) fn seeks(&self, sql: &str) -> bool {
        let scans = |step: &String| {
            let is_list = step.starts_with("SCAN json_each VIRTUAL TABLE");
            step.contains("SCAN") && !is_list || step.contains("AUTOMATIC")
        };
        let plan = self.plan(sql);
        plan.is_ok_and(|plan| !plan.iter().any(scans))
    }

    /// True if a table has no more rows at the moment than a witness may look at.
    pub(super) fn has_few_rows(&self, table: &str) -> bool {
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM main.{} LIMIT {})",
            quoted(table),
            MAX_ROWS + 1
        );
        let count = || self.connection.query_row(&sql, [], |row| row.get(0));
        let count: rusqlite::Result<i64> = self.recorder.record(StatementPolicy::Own, count).0;
        count.is_ok_and(|count| count <= MAX_ROWS as i64)
    }

    /// The parameters of a query whose rows SQLite finds in their order, by an index. The last one,
    /// which has no name, is left out; the others are those of the statement.
    pub(super) fn in_order(
        &self,
        sql: &str,
        parameters: &HashMap<String, usize>,
    ) -> Option<Vec<Operand>> {
        let plan = self.plan(sql).ok()?;
        if plan.iter().any(|step| step.contains("TEMP B-TREE")) {
            return None;
        }
        let prepare = || self.connection.prepare(sql);
        let statement = self.recorder.record(StatementPolicy::Own, prepare).0.ok()?;
        let names = (1..statement.parameter_count()).map(|index| statement.parameter_name(index));
        names
            .map(|name| Some(Operand::Parameter(*parameters.get(name?)?)))
            .collect()
    }

    fn plan(&self, sql: &str) -> rusqlite::Result<Vec<String>> {
        let explain = || {
            let mut plan = self
                .connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            plan.raw_query().mapped(|row| row.get("detail")).collect()
        };
        self.recorder.record(StatementPolicy::Own, explain).0
    }
}
