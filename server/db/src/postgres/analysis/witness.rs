//! Witnesses on PostgreSQL (coherence.md, rule 21): how they are written, and what those of an
//! execution have found.

use std::collections::BTreeSet;
use std::fmt;

use millpond_store::Tag;
use tokio_postgres::types::Type;

use super::columns;
use super::first_rows::FirstRows;
use super::restriction::{Restriction, RowsName};
use crate::Value;
use crate::data_file::quoted;
use crate::postgres::catalog::Catalog;
use crate::postgres::shape::Shape;
use crate::postgres::tags::ColumnName;
use crate::precision::values::given_tags;
use crate::precision::witness::{AskedValues, Witness, WitnessSource, WitnessedTable, distinct};
use crate::precision::{MAX_VALUES, Operand, ValueClass, Values};

/// Questions asked besides the statement itself: restrictions refer to them by number.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// A witness refers only to those before it.
    pub(crate) witnesses: Vec<Witness>,
    pub(crate) first_rows: Vec<FirstRows>,
}

/// How witnesses ask PostgreSQL.
pub(super) struct PostgresWitnesses<'a> {
    pub(super) catalog: &'a Catalog,
}

impl WitnessSource for PostgresWitnesses<'_> {
    /// The oid.
    type Table = u32;

    fn names(&self, table: &u32, column: usize, key: usize) -> Option<WitnessedTable> {
        let table = self.catalog.relation(*table)?;
        let key = columns::number(key);
        let is_indexed = self.catalog.is_indexed(table.oid, key);
        Some(WitnessedTable {
            key: table.column(key).filter(|_| is_indexed)?.name.clone(),
            column: table.column(columns::number(column))?.name.clone(),
            table: table.display(),
            source: table.quoted(),
        })
    }

    fn is_one_of(&self, name: &str, values: AskedValues<'_>) -> String {
        let values = match values {
            AskedValues::List(number) => format!("${number}"),
            AskedValues::Parameters(numbers) => {
                let marks: Vec<String> = numbers.map(|number| format!("${number}")).collect();
                format!("array[{}]", marks.join(", "))
            }
            AskedValues::Rows(sql) => sql.to_owned(),
        };
        format!("{name} operator(pg_catalog.=) any ({values})")
    }

    /// The last row is known when the statement has run, and a witness runs beside it.
    fn is_among_first(&self, _: &str, _: usize) -> Option<String> {
        None
    }

    /// True, as only columns with an index are asked by.
    fn seeks(&self, _: &Witness) -> bool {
        true
    }
}

/// Returns the type that is named for a parameter of a witness.
fn operand_type(operand: &Operand, class: ValueClass) -> Type {
    let is_list = matches!(operand, Operand::Items(_));
    match (class, is_list) {
        (ValueClass::Integer, false) => Type::INT8,
        (ValueClass::Integer, true) => Type::INT8_ARRAY,
        (ValueClass::Text, false) => Type::TEXT,
        (ValueClass::Text, true) => Type::TEXT_ARRAY,
        (ValueClass::Uuid, false) => Type::UUID,
        (ValueClass::Uuid, true) => Type::UUID_ARRAY,
        (ValueClass::Boolean, false) => Type::BOOL,
        (ValueClass::Boolean, true) => Type::BOOL_ARRAY,
    }
}

/// A witness of a statement, ready to be run.
pub(crate) struct PreparedWitness {
    /// Its number among what is asked.
    index: usize,
    /// The form of the values by which the rows of the innermost table are selected.
    key_class: ValueClass,
    /// The values of its parameters.
    operands: Vec<Operand>,
    class: ValueClass,
    /// The number of the witness within, if there is one.
    inner: Option<usize>,
    pub(crate) shape: Shape,
}

impl fmt::Debug for PreparedWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.text.fmt(f)
    }
}

impl PreparedWitness {
    /// Returns the witnesses that the restrictions need, those within others too, these first.
    pub(super) fn all<'a>(
        restrictions: impl Iterator<Item = &'a Restriction>,
        asked: &Asked,
    ) -> Vec<Self> {
        let mut used = BTreeSet::new();
        for restriction in restrictions {
            let mut values = &restriction.values;
            while let Values::Witnessed(index) = values {
                used.insert(*index);
                values = &asked.witnesses[*index].rows.values;
            }
        }
        let mut all: Vec<Self> = Vec::new();
        for index in used {
            let prepared = Self::new(index, &asked.witnesses[index], &all);
            all.extend(prepared);
        }
        all
    }

    fn new(index: usize, witness: &Witness, before: &[Self]) -> Option<Self> {
        let inner = match witness.rows.values {
            Values::Witnessed(inner) => Some(inner),
            _ => None,
        };
        let key_class = match inner {
            Some(inner) => before.iter().find(|known| known.index == inner)?.key_class,
            None => witness.rows.class?,
        };
        let types = witness.params.iter();
        let types = types.map(|operand| operand_type(operand, key_class));
        let text = format!(
            "select w.{}::text as value from ({}) w",
            quoted(&witness.column),
            witness.sql
        );
        Some(Self {
            index,
            key_class,
            operands: witness.params.clone(),
            class: witness.class,
            inner,
            shape: Shape::own(&text, types.collect(), &["value"]),
        })
    }

    /// Returns the values of its parameters in an execution with these.
    pub(crate) fn params(&self, params: &[Value]) -> Option<Vec<Value>> {
        let values = self.operands.iter();
        values
            .map(|operand| operand.value(params).cloned())
            .collect()
    }

    /// True if the values by which rows are selected in an execution with these parameters have
    /// tags.
    fn selects_by_tags(&self, params: &[Value]) -> bool {
        let name = ColumnName::new(0, "", self.key_class);
        let tag = |value: &Value| name.equal_to(value);
        self.inner.is_some() || given_tags(&self.operands, self.key_class, params, tag).is_some()
    }

    fn value(&self, text: &Value) -> Option<Value> {
        let Value::Text(text) = text else {
            return matches!(text, Value::Null).then_some(Value::Null);
        };
        match self.class {
            ValueClass::Integer => text.parse().ok().map(Value::Integer),
            ValueClass::Boolean => text.parse().ok().map(Value::Boolean),
            ValueClass::Text | ValueClass::Uuid => Some(Value::Text(text.clone())),
        }
    }
}

/// Values that the witnesses of one execution have found.
#[derive(Default)]
pub(crate) struct Found<'a> {
    /// For each witness its distinct values, or none if they are not all known.
    values: Vec<(usize, Option<Vec<Value>>)>,
    /// The rows of the result.
    rows: &'a [Vec<Value>],
}

impl<'a> Found<'a> {
    /// Nothing yet, but the rows of the result.
    pub(crate) const fn of_rows(rows: &'a [Vec<Value>]) -> Self {
        Self {
            values: Vec::new(),
            rows,
        }
    }

    /// Notes the rows that a witness has given in an execution with these parameters.
    pub(crate) fn add(&mut self, witness: &PreparedWitness, params: &[Value], rows: &[Vec<Value>]) {
        // A part of the rows of the witness within is no answer.
        let is_inner_known = witness
            .inner
            .is_none_or(|inner| self.values(inner).is_some());
        let is_known = is_inner_known && witness.selects_by_tags(params);
        let values = rows.iter().map(|row| witness.value(row.first()?));
        let values = is_known.then(|| distinct(values)).flatten();
        self.values.push((witness.index, values));
    }

    fn values(&self, witness: usize) -> Option<&[Value]> {
        let mut found = self.values.iter();
        let (_, values) = found.find(|(index, _)| *index == witness)?;
        values.as_deref()
    }

    /// Returns the tag of changes that do not report the column's old value, and those of the
    /// values; none if a value has no tag.
    pub(super) fn tags(
        &self,
        restriction: &Restriction,
        given: &[Value],
        first_rows: &[FirstRows],
    ) -> Option<Vec<Tag>> {
        let name = match (restriction.name, &restriction.values) {
            (RowsName::Equal(name), _) => name,
            (RowsName::First(name), Values::First(index)) => {
                let last = first_rows.get(*index)?.last(name, self.rows, given)?;
                return name.hash.up_to(last);
            }
            (RowsName::First(_), _) => return None,
        };
        let mut all = match &restriction.values {
            Values::Given(operands) => {
                given_tags(operands, name.class(), given, |value| name.equal_to(value))?
            }
            Values::Witnessed(witness) => {
                let values = self.values(*witness)?;
                let is_few = values.len() <= MAX_VALUES;
                let tags = values.iter().filter(|_| is_few);
                let tags: Vec<Tag> = tags
                    .map(|value| name.equal_to(value))
                    .collect::<Option<_>>()?;
                is_few.then_some(tags)?
            }
            Values::First(_) => return None,
        };
        all.push(name.unknown());
        Some(all)
    }
}
