//! Witnesses: queries of ours that find the values of a join key (coherence.md, rule 21).
//!
//! With `r.c = s.d`, where only some rows of `s` count, only those rows of `r` count whose `c` is
//! one of the values that `s.d` has in these rows. A witness asks for these values in the snapshot
//! of the read.

use std::fmt;
use std::sync::Arc;

use tokio_postgres::types::Type;

use super::constants::Operand;
use super::params;
use super::restrict::{MAX_VALUES, RestrictedRows, Restriction};
use crate::Value;
use crate::postgres::catalog::Relation;
use crate::postgres::shape::Shape;
use crate::postgres::tags::{ColumnName, ValueClass};
use millpond_store::Tag;

/// A witness that finds more rows makes the whole table a dependency. So a witness costs at most
/// this many lookups in an index.
const MAX_ROWS: usize = 1_024;

/// The values to which a column is restricted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Given(Vec<Operand>),
    /// Those that a witness finds.
    Witnessed(Arc<Witness>),
}

impl Values {
    pub(super) const fn are_witnessed(&self) -> bool {
        matches!(self, Self::Witnessed(_))
    }

    pub(super) fn are_constants(&self) -> bool {
        matches!(self, Self::Given(_)) && !self.has_parameter()
    }

    /// True if a parameter is among them. A constant often selects most rows.
    pub(super) fn has_parameter(&self) -> bool {
        let is_parameter = |operand: &Operand| !matches!(operand, Operand::Constant { .. });
        matches!(self, Self::Given(operands) if operands.iter().any(is_parameter))
    }
}

/// A query for the values that `column` has in the rows of `table` that count.
#[derive(Debug, PartialEq)]
pub(crate) struct Witness {
    /// The table as the owner writes it.
    pub(super) table: String,
    pub(super) column: String,
    class: ValueClass,
    /// The column that selects the rows of the table, and its values.
    pub(super) key: String,
    key_class: ValueClass,
    pub(super) rows: Values,
    sql: String,
    /// The values of the parameters of `sql`, `$1` first.
    params: Vec<Operand>,
}

impl Witness {
    /// For the values of `column` where `key` has one of the values `rows`.
    pub(super) fn new(
        table: &Relation,
        (column, class): (&str, ValueClass),
        (key, key_class): (&str, ValueClass),
        rows: Values,
    ) -> Self {
        let (condition, params) = match &rows {
            Values::Given(operands) => match operands.as_slice() {
                [Operand::Items { .. }] => ("$1".to_owned(), operands.clone()),
                _ => {
                    let marks = (1..=operands.len()).map(|number| format!("${number}"));
                    let marks: Vec<String> = marks.collect();
                    (format!("array[{}]", marks.join(", ")), operands.clone())
                }
            },
            Values::Witnessed(inner) => (inner.sql.clone(), inner.params.clone()),
        };
        let sql = format!(
            "select {column} from {} where {} operator(pg_catalog.=) any ({condition}) limit {}",
            table.quoted(),
            quoted(key),
            MAX_ROWS + 1,
            column = quoted(column),
        );
        Self {
            table: table.display(),
            column: column.to_owned(),
            class,
            key: key.to_owned(),
            key_class,
            rows,
            sql,
            params,
        }
    }

    /// As it is sent.
    fn shape(&self) -> Shape {
        let types = self.params.iter().map(operand_type).collect();
        let text = format!(
            "select w.\"{}\"::text as value from ({}) w",
            self.column.replace('"', "\"\""),
            self.sql
        );
        Shape::own(&text, types, &["value"])
    }

    /// True if the given values by which rows are selected have tags: `params` are those of the
    /// parameters of `sql`.
    fn selects_by_tags(&self, params: &[Value]) -> bool {
        if self.rows.are_witnessed() {
            return true;
        }
        let name = ColumnName::new(0, "", self.key_class);
        let has_tag = |value: &Value| name.equal_to(value).is_some();
        let mut operands = self.params.iter().zip(params);
        operands.all(|(operand, value)| match operand {
            Operand::Items { .. } => params::items(value, self.key_class)
                .is_some_and(|items| items.len() <= MAX_VALUES && items.iter().all(has_tag)),
            _ => has_tag(value),
        })
    }

    /// A value from its text.
    fn value(&self, text: &Value) -> Option<Value> {
        let Value::Text(text) = text else {
            return None;
        };
        match self.class {
            ValueClass::Integer => text.parse().ok().map(Value::Integer),
            ValueClass::Boolean => text.parse().ok().map(Value::Boolean),
            ValueClass::Text | ValueClass::Uuid => Some(Value::Text(text.clone())),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The type that is named for a parameter of a witness.
fn operand_type(operand: &Operand) -> Type {
    match operand {
        Operand::Parameter { type_oid, .. } | Operand::Constant { type_oid, .. } => {
            Type::from_oid(*type_oid).unwrap_or(Type::TEXT)
        }
        Operand::Items { type_oid, .. } => match Type::from_oid(*type_oid) {
            Some(Type::BOOL) => Type::BOOL_ARRAY,
            Some(Type::INT2) => Type::INT2_ARRAY,
            Some(Type::INT4) => Type::INT4_ARRAY,
            Some(Type::INT8) => Type::INT8_ARRAY,
            Some(Type::VARCHAR) => Type::VARCHAR_ARRAY,
            Some(Type::UUID) => Type::UUID_ARRAY,
            _ => Type::TEXT_ARRAY,
        },
    }
}

/// A witness of a statement, ready to be run.
pub(crate) struct PreparedWitness {
    witness: Arc<Witness>,
    pub(crate) shape: Shape,
}

impl PreparedWitness {
    /// All witnesses that the restrictions need, those within others too.
    pub(super) fn all<'a>(restrictions: impl Iterator<Item = &'a Restriction>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for restriction in restrictions {
            let mut values = restriction.values();
            while let Some(Values::Witnessed(witness)) = values {
                if !all.iter().any(|known| known.witness == *witness) {
                    all.push(Self {
                        witness: Arc::clone(witness),
                        shape: witness.shape(),
                    });
                }
                values = Some(&witness.rows);
            }
        }
        all
    }

    /// The values of its parameters in an execution with these.
    pub(crate) fn params(&self, params: &[Value]) -> Option<Vec<Value>> {
        let operands = self.witness.params.iter();
        let values = operands.map(|operand| match operand {
            Operand::Parameter { index, .. } | Operand::Items { index, .. } => {
                params.get(*index).cloned()
            }
            Operand::Constant { value, .. } => Some(value.clone()),
        });
        values.collect()
    }
}

impl fmt::Debug for PreparedWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.witness.fmt(f)
    }
}

/// What the witnesses of one execution have found.
#[derive(Default)]
pub(crate) struct Found<'a> {
    /// For each witness its distinct values, or none if they are not all known.
    values: Vec<(&'a Witness, Option<Vec<Value>>)>,
    /// The rows of the result.
    rows: &'a [Vec<Value>],
}

impl<'a> Found<'a> {
    /// Nothing yet, but the rows of the result.
    pub(crate) fn of_rows(rows: &'a [Vec<Value>]) -> Self {
        Self {
            values: Vec::new(),
            rows,
        }
    }

    /// Notes the rows that a witness has given with these parameters.
    pub(crate) fn add(
        &mut self,
        witness: &'a PreparedWitness,
        params: &[Value],
        rows: &[Vec<Value>],
    ) {
        let witness = &*witness.witness;
        let mut distinct = Vec::new();
        let mut is_known = rows.len() <= MAX_ROWS && witness.selects_by_tags(params);
        for row in rows {
            match row.first() {
                // Nothing equals NULL.
                Some(Value::Null) => {}
                // More values than these are not looked at.
                _ if distinct.len() > MAX_VALUES => break,
                Some(text) => match witness.value(text) {
                    Some(value) if distinct.contains(&value) => {}
                    Some(value) => distinct.push(value),
                    None => is_known = false,
                },
                None => is_known = false,
            }
        }
        self.values.push((witness, is_known.then_some(distinct)));
    }

    fn values(&self, witness: &Witness) -> Option<&[Value]> {
        // A part of the rows of the witness within is no answer.
        if let Values::Witnessed(inner) = &witness.rows {
            self.values(inner)?;
        }
        let mut found = self.values.iter();
        let (_, values) = found.find(|(known, _)| *known == witness)?;
        values.as_deref()
    }

    /// The tag of changes that do not report the column's old value, and those of the values; none
    /// if a value has no tag.
    pub(super) fn tags(&self, restriction: &Restriction, given: &[Value]) -> Option<Vec<Tag>> {
        let (name, values) = match &restriction.rows {
            RestrictedRows::Equal(name, values) => (*name, values),
            RestrictedRows::First(name, first) => {
                let last = first.last(*name, self.rows, given)?;
                return name.hash.up_to(last);
            }
        };
        let mut all = vec![name.unknown()];
        match values {
            Values::Given(operands) => {
                for operand in operands {
                    match operand {
                        Operand::Parameter { index, .. } => {
                            all.push(name.equal_to(given.get(*index)?)?);
                        }
                        Operand::Constant { value, .. } => all.push(name.equal_to(value)?),
                        Operand::Items { index, .. } => {
                            let items = params::items(given.get(*index)?, name.class())?;
                            if items.len() > MAX_VALUES {
                                return None;
                            }
                            for item in &items {
                                all.push(name.equal_to(item)?);
                            }
                        }
                    }
                }
            }
            Values::Witnessed(witness) => {
                let values = self.values(witness)?;
                if values.len() > MAX_VALUES {
                    return None;
                }
                for value in values {
                    all.push(name.equal_to(value)?);
                }
            }
        }
        Some(all)
    }
}
