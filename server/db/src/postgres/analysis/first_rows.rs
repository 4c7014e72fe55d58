//! The first rows of an order (coherence.md, rule 23): `ORDER BY c LIMIT n` of the statement.
//!
//! Only those rows of the table with `c` count whose `c` is not behind that of the last row of the
//! result. That row says it, so `c` has to be one of the columns of the result.

use super::columns;
use super::constants;
use super::from_clause;
use super::nodes::{Object, TreeNode};
use super::witness::ROWS_BEYOND;
use crate::Value;
use crate::column_set::ColumnSet;
use crate::order::OrderPlace;
use crate::postgres::catalog::Catalog;
use crate::postgres::order::{OrderClass, OrderName, RowOrder};
use crate::precision::Operand;
use crate::precision::witness::MAX_ROWS;

/// The first rows of an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstRows {
    /// The column of the result that they are ordered by, from 0.
    output: usize,
    pub(super) limit: Operand,
    pub(super) offset: Option<Operand>,
    /// The name of the column.
    pub(super) column: String,
    pub(super) order: RowOrder,
}

impl FirstRows {
    /// The place of the last row; none if there may be room for more rows. `rows` are those of the
    /// result.
    pub(super) fn last(
        &self,
        name: OrderName,
        rows: &[Vec<Value>],
        given: &[Value],
    ) -> Option<OrderPlace> {
        let limit = self.limit.value(given)?;
        let is_full = matches!(limit, Value::Integer(limit) if *limit == rows.len() as i64);
        let last = rows.last().filter(|_| is_full)?;
        name.place_of(last.get(self.output)?)
    }

    /// Returns those of the rows of a witness that are not behind the last row of the result; none
    /// if there may be more. A witness gives rows in this order, of each the place second; `result`
    /// is that of the statement, with its parameters.
    pub(super) fn that_count<'w>(
        &self,
        witness: &'w [Vec<Value>],
        (result, given): (&[Vec<Value>], &[Value]),
    ) -> Option<Vec<&'w Vec<Value>>> {
        let name = OrderName::new(0, &self.column, self.order, &ColumnSet::All);
        let last = self.last(name, result, given)?;
        let place = |row: &Vec<Value>| match row.get(1) {
            Some(Value::Text(text)) => name.place_of_text(text.as_bytes()),
            _ => name.place_of_null(),
        };
        let count = self.limit_of_witness(given)?;
        let is_behind = |row: &Vec<Value>| place(row) > last;
        let are_all = witness.len() < count || witness.last().is_some_and(is_behind);
        are_all.then(|| witness.iter().filter(|row| place(row) <= last).collect())
    }

    /// Returns how many rows the witness gives at most.
    fn limit_of_witness(&self, given: &[Value]) -> Option<usize> {
        let count = |operand: &Operand| match operand.value(given)? {
            Value::Integer(count) => Some(usize::try_from(*count).ok()?.min(MAX_ROWS)),
            Value::Null => Some(MAX_ROWS),
            _ => None,
        };
        let offset = self.offset.as_ref().map_or(Some(0), count)?;
        Some(count(&self.limit)? + offset + ROWS_BEYOND)
    }
}

/// Returns the reference, from 0, the place of the column, and the first rows by it that a
/// statement without ties takes, if it takes these.
pub(super) fn of(query: &Object, catalog: &Catalog) -> Option<(usize, usize, FirstRows)> {
    // `LimitOption`
    const WITHOUT_TIES: u32 = 0;
    let is_plain = is_plain(query) && query.number("limitOption") == Some(WITHOUT_TIES);
    let first = query.get("sortClause").items().first()?.object()?;
    let target = target(query, first.number("tleSortGroupRef")?)?;
    let is_shown = target.denies("resjunk");
    let entries = query.get("rtable").items();
    let (factor, _, column) = columns::of_table(target.get("expr"), entries, catalog)?;
    let is_in_every_row = !from_clause::nullable(query).contains(&factor);
    if column.is_generated || !(is_plain && is_shown && is_in_every_row) {
        return None;
    }
    let (class, is_descending) = order(first.number("sortop")?)?;
    let offset = match query.get("limitOffset") {
        TreeNode::Nothing => None,
        offset => Some(count(offset)?),
    };
    let rows = FirstRows {
        output: target.number::<usize>("resno")?.checked_sub(1)?,
        limit: count(query.get("limitCount"))?,
        offset,
        column: column.name.clone(),
        order: RowOrder {
            class,
            is_descending,
            nulls_first: first.is("nulls_first"),
        },
    };
    Some((factor, columns::place(column.number)?, rows))
}

/// Returns the references, from 0, of which a column of unique values is in ORDER BY, and of which
/// each row of the query has a row.
///
/// Counterexample: of rows that are equal in the order PostgreSQL takes any, and one more row
/// behind them, in the heap of a sort, may lead to others.
pub(super) fn unique_keys(query: &Object, catalog: &Catalog) -> Vec<usize> {
    // `<` and `>` of `uuid`.
    const OF_UUID: [u32; 2] = [2974, 2975];
    let entries = query.get("rtable").items();
    let nullable = from_clause::nullable(query);
    let terms = query.get("sortClause").items().iter();
    let keys = terms.filter_map(|term| {
        let term = term.object()?;
        let operator = term.number("sortop")?;
        let target = target(query, term.number("tleSortGroupRef")?)?;
        let (factor, table, column) = columns::of_table(target.get("expr"), entries, catalog)?;
        let is_exact = order(operator).is_some() || OF_UUID.contains(&operator);
        let is_table = matches!(table.kind, 'r' | 'p');
        let is_key = is_exact && is_table && catalog.is_unique(table, column.number);
        (is_key && !nullable.contains(&factor)).then_some(factor)
    });
    keys.collect()
}

/// Returns a number of rows. A constant is converted to `bigint`.
fn count(node: &TreeNode) -> Option<Operand> {
    // `int8(smallint)` and `int8(integer)`
    const TO_BIGINT: [u32; 2] = [754, 481];
    let object = node.object()?;
    let is_converted = object.name == "FUNCEXPR"
        && object
            .number("funcid")
            .is_some_and(|oid| TO_BIGINT.contains(&oid));
    match object.get("args").items() {
        [inner] if is_converted => constants::operand(inner),
        _ => constants::operand(node),
    }
    .map(|(operand, _)| operand)
}

/// True if each row of the FROM clause that meets the conditions gives a row of the result, which
/// no other row has a part in.
fn is_plain(query: &Object) -> bool {
    const SELECT: u32 = 1;
    let has_none = |field: &str| query.has(field) && *query.get(field) == TreeNode::Nothing;
    query.number("commandType") == Some(SELECT)
        && [
            "groupClause",
            "groupingSets",
            "havingQual",
            "windowClause",
            "distinctClause",
            "setOperations",
            "rowMarks",
        ]
        .into_iter()
        .all(has_none)
        && [
            "hasAggs",
            "hasWindowFuncs",
            "hasTargetSRFs",
            "hasDistinctOn",
        ]
        .into_iter()
        .all(|field| query.denies(field))
}

/// The column of the result, or of the order, with this number.
fn target(query: &Object, number: u32) -> Option<&Object> {
    let targets = query.get("targetList").items().iter();
    let mut targets = targets.filter_map(TreeNode::object);
    targets.find(|target| target.number("ressortgroupref") == Some(number))
}

/// Returns the class that an operator orders, and whether descending. The oids are in
/// `pg_operator.dat`, and the same in every version.
fn order(operator: u32) -> Option<(OrderClass, bool)> {
    Some(match operator {
        95 | 97 | 412 => (OrderClass::Integer, false),
        520 | 521 | 413 => (OrderClass::Integer, true),
        1095 => (OrderClass::Date, false),
        1097 => (OrderClass::Date, true),
        2062 => (OrderClass::Timestamp, false),
        2064 => (OrderClass::Timestamp, true),
        1322 => (OrderClass::TimestampTz, false),
        1324 => (OrderClass::TimestampTz, true),
        _ => return None,
    })
}
