//! Witnesses: queries of ours that find the values of a join key (coherence.md, rule 21).
//!
//! With `r.c = s.d`, where only some rows of `s` count, only those rows of `r` count whose `c` is
//! one of the values that `s.d` has in these rows. A witness asks for these values in the snapshot
//! of the read.

use std::ops::RangeInclusive;

use super::describe::compared;
use super::model::FactorColumn;
use super::values::{ColumnRestriction, MAX_VALUES, Operand, ValueClass, Values};
use crate::Value;
use crate::data_file::quoted;

/// A witness that finds more rows makes the whole table a dependency, and so does one without an
/// index of a table that has more. So a witness costs at most this many lookups in an index, or
/// looks at this many rows.
pub(crate) const MAX_ROWS: usize = 1_024;

/// A query for the values that `column` has in the rows of `table` that count.
#[derive(Debug, PartialEq)]
pub(crate) struct Witness {
    /// A table or a view, as the owner writes it.
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) class: ValueClass,
    /// The column that selects the rows of the table.
    pub(crate) key: String,
    /// The restriction of the table, on `key`. It refers only to witnesses before this one.
    pub(crate) rows: ColumnRestriction,
    pub(crate) sql: String,
    /// Text of `sql` behind FROM.
    pub(crate) tail: String,
    /// The values of the parameters of `sql`, in order.
    pub(crate) params: Vec<Operand>,
}

/// A database as far as it is asked by witnesses.
pub(crate) trait WitnessSource {
    /// How a table or view is named to it.
    type Table;

    /// Returns the names of a table and of two of its columns, the second of which selects rows;
    /// none if it may not be asked so.
    fn names(&self, table: &Self::Table, column: usize, key: usize) -> Option<WitnessedTable>;

    /// Returns the condition that a name is one of some values, or is without its case.
    fn is_one_of(&self, name: &str, values: AskedValues<'_>) -> String;

    /// Returns what follows FROM in a query for the first rows with this number, by `key` in SQL:
    /// at least those that are not behind the last one; and its parameters. Where the condition
    /// `is_large` holds, what it finds must not be taken for these.
    fn first(
        &self,
        source: &str,
        key: &str,
        rows: usize,
        is_large: Option<&str>,
    ) -> Option<(String, Vec<Operand>)>;

    /// True if the witness would not look at all rows of the table, which it asks by this column.
    fn seeks(&self, table: &Self::Table, key: usize, witness: &Witness) -> bool;

    /// True if the table has few rows at the moment, so that a witness may look at all of them.
    fn is_small(&self, table: &Self::Table) -> bool;
}

/// The names by which a witness reads a table.
pub(crate) struct WitnessedTable {
    /// As the owner writes it.
    pub(crate) table: String,
    /// As SQL.
    pub(crate) source: String,
    pub(crate) column: String,
    pub(crate) key: String,
}

/// Values that a witness looks for.
pub(crate) enum AskedValues<'a> {
    /// The items of the list that is the parameter with this number, from 1.
    List(usize),
    /// The parameters with these numbers.
    Parameters(RangeInclusive<usize>),
    /// As many parameters as this, and then as many of which the case is taken away by a function.
    Folded(usize, &'static str),
    /// The rows of a query.
    Rows(&'a str),
}

/// Why there is no witness for a column.
pub(crate) enum NoWitness {
    /// The table is not to be asked so.
    Unasked,
    /// The table, by its name, has no index by which the rows of this column are found.
    NoIndex(String, String),
}

/// Returns the number among the `known` witnesses of that for the values of `column` in these rows
/// of a table, which is added to them if it is new.
pub(crate) fn witness<S: WitnessSource>(
    source: &S,
    table: &S::Table,
    FactorColumn { column, class, .. }: FactorColumn,
    rows: &ColumnRestriction,
    known: &mut Vec<Witness>,
) -> Result<usize, NoWitness> {
    let names = source.names(table, column, rows.column);
    let names = names.ok_or(NoWitness::Unasked)?;
    let seeking = written(source, &names, class, rows, known, None);
    let seeking = seeking.ok_or(NoWitness::Unasked)?;
    if let Some(index) = known.iter().position(|known| *known == seeking) {
        return Ok(index);
    }
    let witness = if source.seeks(table, rows.column, &seeking) {
        seeking
    } else if source.is_small(table) {
        let is_large = format!(
            "(select count(*) from (select 1 from {} limit {}) c) > {MAX_ROWS}",
            names.source,
            MAX_ROWS + 1
        );
        let looking = written(source, &names, class, rows, known, Some(&is_large));
        looking.ok_or(NoWitness::Unasked)?
    } else {
        let key = compared(&seeking.key, rows.class);
        return Err(NoWitness::NoIndex(seeking.table, key));
    };
    let index = known.iter().position(|known| *known == witness);
    Ok(index.unwrap_or_else(|| {
        known.push(witness);
        known.len() - 1
    }))
}

/// Writes a witness. Where the condition `is_large` holds, which says that the table has too many
/// rows to be looked at, it gives more rows than it may, or none of first rows.
fn written<S: WitnessSource>(
    source: &S,
    names: &WitnessedTable,
    class: ValueClass,
    rows: &ColumnRestriction,
    known: &[Witness],
    is_large: Option<&str>,
) -> Option<Witness> {
    let by = quoted(&names.key);
    let tail = |condition: &str| {
        let condition = match is_large {
            Some(is_large) => format!("({condition} or {is_large})"),
            None => condition.to_owned(),
        };
        format!("{} where {condition} limit {}", names.source, MAX_ROWS + 1)
    };
    let (tail, params) = match &rows.values {
        Values::Given(operands) => {
            let is_value = |operand: &&Operand| !matches!(operand, Operand::Unless(..));
            let operands: Vec<Operand> = operands.iter().filter(is_value).cloned().collect();
            let operands = operands.as_slice();
            let function = rows.class.and_then(ValueClass::function);
            let (condition, params) = match function {
                Some(function) => folded(source, &by, operands, function),
                None => given(source, &by, operands),
            };
            (tail(&condition), params)
        }
        Values::Witnessed(index) => {
            let inner = known.get(*index)?;
            let condition = source.is_one_of(&by, AskedValues::Rows(&inner.sql));
            (tail(&condition), inner.params.clone())
        }
        Values::First(index) => source.first(&names.source, &by, *index, is_large)?,
    };
    Some(Witness {
        sql: format!("select {} from {tail}", quoted(&names.column)),
        table: names.table.clone(),
        column: names.column.clone(),
        class,
        key: names.key.clone(),
        rows: rows.clone(),
        tail,
        params,
    })
}

/// Returns the condition that a name is one of the operands, and these in the order of their
/// numbers.
fn given<S: WitnessSource>(source: &S, by: &str, operands: &[Operand]) -> (String, Vec<Operand>) {
    let is_list = |operand: &&Operand| matches!(operand, Operand::Items(_));
    let (lists, single): (Vec<&Operand>, Vec<&Operand>) = operands.iter().partition(is_list);
    let mut conditions: Vec<String> = (1..=lists.len())
        .map(|number| source.is_one_of(by, AskedValues::List(number)))
        .collect();
    if !single.is_empty() {
        let numbers = lists.len() + 1..=operands.len();
        conditions.push(source.is_one_of(by, AskedValues::Parameters(numbers)));
    }
    let params = lists.into_iter().chain(single).cloned().collect();
    match conditions.len() {
        1 => (conditions.remove(0), params),
        _ => (format!("({})", conditions.join(" or ")), params),
    }
}

/// Returns the condition that a name is one of the operands once a function has taken its case
/// away, whether the query does so with the operand or not: for `lower(name) = :v` as for
/// `lower(name) = lower(:v)`.
fn folded<S: WitnessSource>(
    source: &S,
    by: &str,
    operands: &[Operand],
    function: &'static str,
) -> (String, Vec<Operand>) {
    let condition = source.is_one_of(by, AskedValues::Folded(operands.len(), function));
    (condition, [operands, operands].concat())
}

/// Returns the distinct values that a witness has found; none if there are more rows than it may
/// give. Of more than [`MAX_VALUES`] values the rest is not looked at.
pub(crate) fn distinct(found: impl ExactSizeIterator<Item = Option<Value>>) -> Option<Vec<Value>> {
    if found.len() > MAX_ROWS {
        return None;
    }
    let mut distinct: Vec<Value> = Vec::new();
    for value in found {
        let value = value?;
        // Nothing equals NULL.
        let is_wanted = distinct.len() <= MAX_VALUES && value != Value::Null;
        if is_wanted && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    Some(distinct)
}
