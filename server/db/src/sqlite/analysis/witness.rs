//! Witnesses: queries of ours that find the values of a join key (coherence.md, rule 21).
//!
//! With `r.c = s.d`, where only some rows of `s` count, only those rows of `r` count whose `c` is
//! one of the values that `s.d` has in these rows. A witness asks for these values in the snapshot
//! of the read.

use millpond_store::Tag;

use super::first_rows::FirstRows;
use super::restrict::{MAX_VALUES, Operand, Restriction, Values};
use crate::Value;
use crate::order::OrderPlace;
use crate::sqlite::tags::{EqualityClass, StoredValue};

/// A witness that finds more rows makes the whole table a dependency. So a witness costs at most
/// this many lookups in an index.
const MAX_ROWS: usize = 1_024;

/// A query for the values that `column` has in the rows of `table` that count.
#[derive(Debug, PartialEq)]
pub(crate) struct Witness {
    /// A table or a view, lower-case.
    pub(crate) table: String,
    pub(crate) column: String,
    /// The column of `table` that selects its rows.
    pub(crate) key: String,
    /// The restriction of `table`, on `key`.
    pub(crate) rows: Restriction,
    pub(crate) sql: String,
    /// The values of the parameters of `sql`, in order.
    params: Vec<Operand>,
}

impl Witness {
    /// `witnesses` are those that `rows` may refer to.
    pub(super) fn new(
        table: String,
        column: String,
        key: String,
        rows: Restriction,
        witnesses: &[Self],
        first_rows: &[FirstRows],
    ) -> Self {
        let by = quoted(&key);
        let (condition, params) = match &rows.values {
            Values::Given(operands) => given(&by, operands),
            Values::Witnessed(index) => {
                let inner = &witnesses[*index];
                (format!("{by} IN ({})", inner.sql), inner.params.clone())
            }
            Values::First(index) => (
                first_rows[*index].condition(&by),
                vec![Operand::Last(*index)],
            ),
        };
        let sql = format!(
            "SELECT {} FROM main.{} WHERE {condition} LIMIT {}",
            quoted(&column),
            quoted(&table),
            MAX_ROWS + 1
        );
        Self {
            table,
            column,
            key,
            rows,
            sql,
            params,
        }
    }
}

/// The condition that the column is one of the operands, and the operands in their order there.
fn given(by: &str, operands: &[Operand]) -> (String, Vec<Operand>) {
    let is_list = |operand: &&Operand| matches!(operand, Operand::Items(_));
    let (lists, single): (Vec<&Operand>, Vec<&Operand>) = operands.iter().partition(is_list);
    let mut conditions = vec![format!("{by} IN (SELECT value FROM json_each(?))"); lists.len()];
    if !single.is_empty() {
        let marks = vec!["?"; single.len()];
        conditions.push(format!("{by} IN ({})", marks.join(", ")));
    }
    let params = lists.into_iter().chain(single).cloned().collect();
    match conditions.len() {
        1 => (conditions.remove(0), params),
        _ => (format!("({})", conditions.join(" OR ")), params),
    }
}

/// The tags of the rows in which the column is one of the operands; none if one of them has no
/// canonical form, or if there are too many.
fn given_tags(
    restriction: &Restriction,
    operands: &[Operand],
    params: &[Value],
) -> Option<Vec<Tag>> {
    let mut tags = Vec::with_capacity(operands.len());
    for operand in operands {
        let value = operand.value(params)?;
        match operand {
            Operand::Items(_) => {
                for item in items(value, restriction.class?)? {
                    tags.push(restriction.name.equal_to(&item)?);
                }
            }
            _ => tags.push(restriction.name.equal_to(value)?),
        }
    }
    (tags.len() <= MAX_VALUES).then_some(tags)
}

/// The items of a list as values that are equal to those of a column of this class, byte for byte;
/// none if SQLite might convert one of them. Some of its versions end a text of JSON at a character
/// of code zero.
fn items(list: &Value, class: EqualityClass) -> Option<Vec<Value>> {
    use serde_json::Value as Json;
    let list = match list {
        Value::Null => return Some(vec![Value::Null]),
        Value::Json(json) => json.as_array()?,
        _ => return None,
    };
    // No row equals an item of an empty list: like NULL.
    let nothing = list.is_empty().then_some(Some(Value::Null));
    let item = |item: &Json| match (class, item) {
        (EqualityClass::Integer, Json::Number(number)) => number.as_i64().map(Value::Integer),
        (EqualityClass::Text, Json::String(text)) if !text.contains('\0') => {
            Some(text.as_str().into())
        }
        _ => None,
    };
    list.iter().map(item).chain(nothing).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Runs a witness with these parameters, and gives the value of each row; none if it fails.
pub(crate) type RunWitness<'r> = dyn FnMut(&str, &[Value]) -> Option<Vec<Value>> + 'r;

/// The witnesses of one execution. Each is run when it is first needed.
pub(super) struct WitnessRun<'a, 'r> {
    witnesses: &'a [Witness],
    first_rows: &'a [FirstRows],
    params: &'a [Value],
    /// The rows of the result.
    rows: &'a [Vec<Value>],
    run: &'a mut RunWitness<'r>,
    /// For each witness that was run its distinct values, or none if they are not all known.
    found: Vec<Option<Option<Vec<Value>>>>,
    /// For each of the first rows that were looked for the value of the last, or none if it is
    /// not known.
    last: Vec<Option<Option<Value>>>,
}

impl<'a, 'r> WitnessRun<'a, 'r> {
    pub(super) fn new(
        witnesses: &'a [Witness],
        first_rows: &'a [FirstRows],
        (params, rows): (&'a [Value], &'a [Vec<Value>]),
        run: &'a mut RunWitness<'r>,
    ) -> Self {
        Self {
            witnesses,
            first_rows,
            params,
            rows,
            run,
            found: vec![None; witnesses.len()],
            last: vec![None; first_rows.len()],
        }
    }

    /// The narrow tags of the rows to which a reference is restricted; none if they are not known.
    pub(super) fn tags(&mut self, restriction: &Restriction) -> Option<Vec<Tag>> {
        match &restriction.values {
            Values::Given(operands) => given_tags(restriction, operands, self.params),
            Values::Witnessed(index) => {
                self.find(*index);
                let values = self.found[*index].as_ref()?.as_ref()?;
                if values.len() > MAX_VALUES {
                    return None;
                }
                let tags = values.iter();
                tags.map(|value| restriction.name.equal_to(value)).collect()
            }
            Values::First(index) => {
                let ascending = place(self.last(*index)?)?;
                let is_descending = self.first_rows[*index].is_descending;
                let order = restriction.name.in_order(is_descending);
                order.up_to(order.place(ascending))
            }
        }
    }

    /// The value of the last of the first rows; none if it is not known, or if there are fewer.
    fn last(&mut self, index: usize) -> Option<&Value> {
        if self.last[index].is_none() {
            let first_rows = &self.first_rows[index];
            self.last[index] = Some(first_rows.last(self.params, self.rows, self.run));
        }
        self.last[index].as_ref()?.as_ref()
    }

    fn operand(&mut self, operand: &Operand) -> Option<Value> {
        match operand {
            Operand::Last(index) => self.last(*index).cloned(),
            given => given.value(self.params).cloned(),
        }
    }

    fn find(&mut self, index: usize) {
        if self.found[index].is_some() {
            return;
        }
        let witness = &self.witnesses[index];
        let source_is_known = match &witness.rows.values {
            Values::Given(_) => self.tags(&witness.rows).is_some(),
            Values::Witnessed(inner) => {
                self.find(*inner);
                matches!(self.found[*inner], Some(Some(_)))
            }
            Values::First(rows) => self.last(*rows).is_some(),
        };
        let values = source_is_known.then(|| self.values(witness)).flatten();
        self.found[index] = Some(values);
    }

    fn values(&mut self, witness: &Witness) -> Option<Vec<Value>> {
        let params = witness.params.iter();
        let params: Option<Vec<Value>> = params.map(|operand| self.operand(operand)).collect();
        let found = (self.run)(&witness.sql, &params?)?;
        if found.len() > MAX_ROWS {
            return None;
        }
        let mut distinct: Vec<Value> = Vec::new();
        for value in found {
            // Bytes that are no UTF-8 may have been replaced, and the feed has the bytes.
            if matches!(&value, Value::Text(text) if text.contains(char::REPLACEMENT_CHARACTER)) {
                return None;
            }
            // More than these are not looked at. Nothing equals NULL.
            let wanted = distinct.len() <= MAX_VALUES && value != Value::Null;
            if wanted && !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        Some(distinct)
    }
}

/// The place of the value of a last row where rows are ordered by it, ascending.
fn place(value: &Value) -> Option<OrderPlace> {
    let stored = match value {
        Value::Integer(integer) => StoredValue::Integer(*integer),
        Value::Real(real) => StoredValue::Real(*real),
        Value::Text(text) => StoredValue::Text(text.as_bytes()),
        _ => return None,
    };
    Some(stored.place())
}
