//! Witnesses on SQLite (coherence.md, rule 21): how they are written, and what those of one
//! execution have found.

use std::borrow::Cow;

use millpond_store::Tag;

use super::first_rows::FirstRows;
use super::plans::Plans;
use super::references::Restriction;
use super::scope::{WitnessNames, resolved};
use crate::Value;
use crate::data_file::quoted;
use crate::order::OrderPlace;
use crate::precision::values::given_tags;
use crate::precision::witness::{
    AskedValues, MAX_ROWS, Witness, WitnessSource, WitnessedTable, distinct,
};
use crate::precision::{MAX_VALUES, Operand, Values};
use crate::sqlite::tags::{ColumnHash, StoredValue};

/// How witnesses ask SQLite.
pub(super) struct SqliteWitnesses<'a> {
    pub(super) plans: &'a Plans<'a>,
    pub(super) first_rows: &'a [FirstRows],
}

impl<'a> WitnessSource for SqliteWitnesses<'a> {
    type Table = WitnessNames<'a>;

    fn names(&self, table: &WitnessNames<'a>, column: usize, key: usize) -> Option<WitnessedTable> {
        Some(WitnessedTable {
            key: table.column(resolved(key))?,
            column: table.column(resolved(column))?,
            table: table.table.clone(),
            source: format!("main.{}", quoted(&table.table)),
        })
    }

    fn is_one_of(&self, name: &str, values: AskedValues<'_>) -> String {
        let values = match values {
            AskedValues::List(_) => "select value from json_each(?)".to_owned(),
            AskedValues::Parameters(numbers) => vec!["?"; numbers.count()].join(", "),
            AskedValues::Folded(count, function) => {
                let (plain, folded) = (vec!["?"; count], vec![format!("{function}(?)"); count]);
                let values = format!("{}, {}", plain.join(", "), folded.join(", "));
                return format!("{function}({name}) in ({values})");
            }
            AskedValues::Rows(sql) => sql.to_owned(),
        };
        format!("{name} in ({values})")
    }

    fn first(
        &self,
        source: &str,
        key: &str,
        rows: usize,
        is_large: Option<&str>,
    ) -> Option<(String, Vec<Operand>)> {
        let condition = self.first_rows.get(rows)?.condition(key);
        let condition = match is_large {
            Some(is_large) => format!("({condition} or {is_large})"),
            None => condition,
        };
        let tail = format!("{source} where {condition} limit {}", MAX_ROWS + 1);
        Some((tail, vec![Operand::Last(rows)]))
    }

    fn seeks(&self, _: &WitnessNames<'a>, _: usize, witness: &Witness) -> bool {
        self.plans.seeks(&witness.sql)
    }

    fn is_small(&self, table: &WitnessNames<'a>) -> bool {
        table.is_table() && self.plans.has_few_rows(&table.table)
    }
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
            Values::Given(operands) => {
                let tag = |value: &Value| restriction.name.equal_to(value);
                given_tags(operands, restriction.class?, self.params, tag)
            }
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
            given => given.value(self.params).map(Cow::into_owned),
        }
    }

    fn find(&mut self, index: usize) {
        if self.found[index].is_some() {
            return;
        }
        let witness = &self.witnesses[index];
        let source_is_known = match &witness.rows.values {
            Values::Given(operands) => witness.rows.class.is_some_and(|class| {
                let name = ColumnHash::new("", "", Some(class));
                given_tags(operands, class, self.params, |value| name.equal_to(value)).is_some()
            }),
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
        let found = (self.run)(&witness.sql, &params?)?.into_iter();
        // Bytes that are no UTF-8 may have been replaced, and the feed has the bytes.
        let is_exact = |value: &Value| !matches!(value, Value::Text(text) if text.contains(char::REPLACEMENT_CHARACTER));
        distinct(found.map(|value| Some(value).filter(is_exact)))
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
