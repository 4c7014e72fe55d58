//! The first rows of an order (coherence.md, rule 23): `ORDER BY c LIMIT n` of the statement.
//!
//! Only those rows of the table with `c` count whose `c` is not behind that of the last row of the
//! result. That row says it, if `c` is one of the columns of the result; if not, a column of unique
//! values says which row of the table it is, and a witness has the `c` of this.

use super::columns;
use super::constants;
use super::from_clause;
use super::nodes::{Object, TreeNode};
use super::operators::arithmetic;
use super::query_rows;
use super::witness::ROWS_BEYOND;
use crate::Value;
use crate::column_set::ColumnSet;
use crate::order::OrderPlace;
use crate::postgres::catalog::Catalog;
use crate::postgres::order::{OrderClass, OrderName, RowOrder};
use crate::precision::Operand;
use crate::precision::model::FactorColumn;
use crate::precision::witness::MAX_ROWS;

/// The first rows of an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstRows {
    /// The column of the result that they are ordered by, from 0, or one of unique values.
    output: usize,
    /// The column of unique values, if that by which rows are ordered is not shown.
    pub(super) unique: Option<FactorColumn>,
    /// The witness that gives the values of this column with their places.
    pub(super) witness: Option<usize>,
    pub(super) limit: Operand,
    pub(super) offset: Option<Operand>,
    /// The name of the column.
    pub(super) column: String,
    pub(super) order: RowOrder,
}

/// An execution: the rows that it has given, its parameters, and the rows that witnesses found.
#[derive(Clone, Copy)]
pub(super) struct Execution<'a> {
    pub(super) rows: &'a [Vec<Value>],
    pub(super) given: &'a [Value],
    pub(super) witnessed: &'a [(usize, Vec<Vec<Value>>)],
}

impl FirstRows {
    /// The place of the last row; none if there may be room for more rows.
    pub(super) fn last(&self, name: OrderName, of: Execution<'_>) -> Option<OrderPlace> {
        let is_full = self.limit.integer(of.given)? == of.rows.len() as i64;
        let last = of.rows.last().filter(|_| is_full)?.get(self.output)?;
        if self.unique.is_none() {
            return name.place_of(last);
        }
        let last = match last {
            Value::Integer(integer) => integer.to_string(),
            Value::Text(text) => text.to_string(),
            _ => return None,
        };
        let is_last =
            |row: &&Vec<Value>| matches!(row.first(), Some(Value::Text(text)) if **text == *last);
        let mut found = of.witnessed.iter();
        let (_, rows) = found.find(|(index, _)| Some(*index) == self.witness)?;
        match rows.iter().find(is_last)?.get(1)? {
            Value::Text(place) => name.place_as_written(place),
            _ => None,
        }
    }

    /// Returns those of the rows of a witness that are not behind the last row of the result; none
    /// if there may be more. A witness gives rows in this order, of each the place second.
    pub(super) fn that_count<'w>(
        &self,
        witness: &'w [Vec<Value>],
        of: Execution<'_>,
    ) -> Option<Vec<&'w Vec<Value>>> {
        let name = OrderName::new(0, &self.column, self.order, &ColumnSet::All);
        let last = self.last(name, of)?;
        let place = |row: &Vec<Value>| match row.get(1) {
            Some(Value::Text(text)) => name.place_of_text(text.as_bytes()),
            _ => name.place_of_null(),
        };
        let count = self.limit_of_witness(of.given)?;
        let is_behind = |row: &Vec<Value>| place(row) > last;
        // The last row is one of those asked for, unless these were too many to be looked at.
        let has_last = witness.iter().any(|row| place(row) == last);
        let are_all = witness.len() < count || witness.last().is_some_and(is_behind);
        (has_last && are_all).then(|| witness.iter().filter(|row| place(row) <= last).collect())
    }

    /// Returns how many rows the witness gives at most.
    fn limit_of_witness(&self, given: &[Value]) -> Option<usize> {
        let count = |operand: &Operand| match *operand.value(given)? {
            Value::Integer(count) => Some(usize::try_from(count).ok()?.min(MAX_ROWS)),
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
    let entries = query.get("rtable").items();
    let (factor, table, column) = columns::of_table(target.get("expr"), entries, catalog)?;
    let (output, unique) = match target.denies("resjunk") {
        true => (target.number::<usize>("resno")?.checked_sub(1)?, None),
        false => {
            let mut outputs = query_rows::outputs(query).into_iter().enumerate();
            let (output, column) = outputs.find_map(|(place, output)| {
                let output = output?.get("expr");
                let column = columns::restrictable(output, 0, entries, catalog)?;
                let is_unique = catalog.is_unique(table, columns::number(column.column));
                (column.factor == factor && is_unique).then_some((place, column))
            })?;
            (output, Some(column))
        }
    };
    let is_in_every_row = !from_clause::nullable(query).contains(&factor);
    if column.is_generated || !(is_plain && is_in_every_row) {
        return None;
    }
    let (class, is_descending) = order(first.number("sortop")?)?;
    let offset = match query.get("limitOffset") {
        TreeNode::Nothing => None,
        offset => Some(count(offset)?),
    };
    let rows = FirstRows {
        output,
        unique,
        witness: None,
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

/// Returns a number of rows: a parameter, a constant, or what is computed of such, converted to
/// `bigint`. PostgreSQL refuses what does not fit into the type in which it computes, so where
/// there is a result it is that of whole numbers.
fn count(node: &TreeNode) -> Option<Operand> {
    // `int8(smallint)` and `int8(integer)`
    const TO_BIGINT: [u32; 2] = [754, 481];
    let object = node.object()?;
    match (object.name.as_str(), object.get("args").items()) {
        ("FUNCEXPR", [inner]) if TO_BIGINT.contains(&object.number("funcid")?) => count(inner),
        ("OPEXPR", [left, right]) => {
            let by = arithmetic(object.number("opno")?)?;
            let sides = [count(left)?, count(right)?];
            Some(Operand::Computed(by, Box::new(sides)))
        }
        _ => constants::operand(node).map(|(operand, _)| operand),
    }
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
        1754 => (OrderClass::Numeric, false),
        1756 => (OrderClass::Numeric, true),
        _ => return None,
    })
}
