//! Witnesses on PostgreSQL (coherence.md, rule 21): how they are written, and what those of an
//! execution have found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use millpond_store::Tag;
use tokio_postgres::types::Type;

use super::columns;
use super::first_rows::{Execution, FirstRows};
use super::restriction::{Restriction, RowsName};
use crate::Value;
use crate::data_file::quoted;
use crate::postgres::catalog::Catalog;
use crate::postgres::shape::Shape;
use crate::postgres::tags::ColumnName;
use crate::precision::values::given_tags;
use crate::precision::witness::{
    AskedValues, MAX_ROWS, Witness, WitnessSource, WitnessedTable, distinct,
};
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
    pub(super) first_rows: &'a [FirstRows],
}

/// Rows that a witness of first rows looks at beyond those that are asked for: conditions and joins
/// may leave rows out, so that the last one comes later.
pub(super) const ROWS_BEYOND: usize = 64;

impl WitnessSource for PostgresWitnesses<'_> {
    /// The oid.
    type Table = u32;

    fn names(&self, table: &u32, column: usize, key: usize) -> Option<WitnessedTable> {
        let table = self.catalog.relation(*table)?;
        Some(WitnessedTable {
            key: table.column(columns::number(key))?.name.clone(),
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
            AskedValues::Folded(count, function) => {
                let plain = (1..=count).map(|number| format!("${number}"));
                let folded = (count + 1..=2 * count)
                    .map(|number| format!("pg_catalog.{function}(${number})"));
                let all: Vec<String> = plain.chain(folded).collect();
                let values = format!("array[{}]", all.join(", "));
                return format!(
                    "pg_catalog.{function}({name}) operator(pg_catalog.=) any ({values})"
                );
            }
            AskedValues::Rows(sql) => sql.to_owned(),
        };
        format!("{name} operator(pg_catalog.=) any ({values})")
    }

    /// The last row is known when the statement has run, and a witness runs beside it. So it gives
    /// some rows more, and if none of them is behind the last row, not all may be there
    /// ([`FirstRows::that_count`]).
    fn first(
        &self,
        source: &str,
        key: &str,
        rows: usize,
        is_large: Option<&str>,
    ) -> Option<(String, Vec<Operand>)> {
        let rows = self.first_rows.get(rows)?;
        let params: Vec<Operand> = [Some(rows.limit.clone()), rows.offset.clone()]
            .into_iter()
            .flatten()
            .collect();
        // LEAST gives no null, which would be no limit.
        let counts = (1..=params.len()).map(|number| format!("least(${number}, {MAX_ROWS})"));
        let counts: Vec<String> = counts.collect();
        let direction = match rows.order.is_descending {
            true => "desc",
            false => "asc",
        };
        let nulls = match rows.order.nulls_first {
            true => "first",
            false => "last",
        };
        let filter = is_large.map(|is_large| format!("where not {is_large}"));
        let filter = filter.unwrap_or_default();
        let tail = format!(
            "{source} {filter} order by {key} {direction} nulls {nulls} limit {} + {ROWS_BEYOND}",
            counts.join(" + ")
        );
        Some((tail, params))
    }

    fn seeks(&self, table: &u32, key: usize, witness: &Witness) -> bool {
        let function = witness.rows.class.and_then(ValueClass::function);
        self.catalog
            .is_indexed(*table, columns::number(key), function)
    }

    fn is_small(&self, table: &u32) -> bool {
        let table = self.catalog.relation(*table);
        table.is_some_and(|table| table.is_small)
    }
}

/// Returns the type that is named for a parameter of a witness.
fn operand_type(operand: &Operand, class: ValueClass) -> Type {
    let is_list = matches!(operand, Operand::Items(_));
    match (class, is_list) {
        (ValueClass::Integer, false) => Type::INT8,
        (ValueClass::Integer, true) => Type::INT8_ARRAY,
        (ValueClass::Text | ValueClass::Folded(_), false) => Type::TEXT,
        (ValueClass::Text | ValueClass::Folded(_), true) => Type::TEXT_ARRAY,
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
    /// The values by which rows of the innermost table are selected, or numbers of rows.
    given: Vec<Operand>,
    class: ValueClass,
    /// The number of the witness within, if there is one.
    inner: Option<usize>,
    /// The first rows that it asks for.
    first: Option<FirstRows>,
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
        let mut of_places = BTreeSet::new();
        for restriction in restrictions {
            let mut values = &restriction.values;
            while let Values::Witnessed(index) = values {
                used.insert(*index);
                values = &asked.witnesses[*index].rows.values;
            }
            if let Values::First(index) = values {
                of_places.extend(asked.first_rows[*index].witness);
            }
        }
        let mut all: Vec<Self> = Vec::new();
        for index in of_places.iter().chain(used.difference(&of_places)).copied() {
            let prepared = Self::new(index, asked, &all);
            all.extend(prepared);
        }
        all
    }

    fn new(index: usize, asked: &Asked, before: &[Self]) -> Option<Self> {
        let witness = &asked.witnesses[index];
        let inner = match witness.rows.values {
            Values::Witnessed(inner) => Some(inner),
            _ => None,
        };
        let first = match witness.rows.values {
            Values::First(index) => Some(asked.first_rows.get(index)?.clone()),
            _ => None,
        };
        let key_class = match inner {
            Some(inner) => before.iter().find(|known| known.index == inner)?.key_class,
            // Numbers of rows.
            None if first.is_some() => ValueClass::Integer,
            None => witness.rows.class?,
        };
        let types = witness.params.iter();
        let types = types.map(|operand| operand_type(operand, key_class));
        let column = quoted(&witness.column);
        let (text, names) = match first {
            Some(_) => (
                format!(
                    "select w.value::text as value, w.place::text as place from (select {column} as value, {} as place from {}) w",
                    quoted(&witness.key),
                    witness.tail
                ),
                &["value", "place"][..],
            ),
            None => (
                format!("select w.{column}::text as value from ({}) w", witness.sql),
                &["value"][..],
            ),
        };
        Some(Self {
            index,
            key_class,
            operands: witness.params.clone(),
            given: match &witness.rows.values {
                Values::Given(operands) => operands.clone(),
                Values::Witnessed(_) | Values::First(_) => witness.params.clone(),
            },
            class: witness.class,
            inner,
            first,
            shape: Shape::own(&text, types.collect(), names),
        })
    }

    /// Returns the values of its parameters in an execution with these.
    pub(crate) fn params(&self, params: &[Value]) -> Option<Vec<Value>> {
        let values = self.operands.iter();
        values
            .map(|operand| operand.value(params).map(Cow::into_owned))
            .collect()
    }

    /// True if the values by which rows are selected in an execution with these parameters have
    /// tags.
    fn selects_by_tags(&self, params: &[Value]) -> bool {
        let name = ColumnName::new(0, "", self.key_class);
        let tag = |value: &Value| name.equal_to(value);
        self.inner.is_some() || given_tags(&self.given, self.key_class, params, tag).is_some()
    }

    fn value(&self, text: &Value) -> Option<Value> {
        let Value::Text(text) = text else {
            return matches!(text, Value::Null).then_some(Value::Null);
        };
        match self.class {
            ValueClass::Integer => text.parse().ok().map(Value::Integer),
            ValueClass::Boolean => text.parse().ok().map(Value::Boolean),
            ValueClass::Text | ValueClass::Folded(_) | ValueClass::Uuid => {
                Some(Value::Text(text.clone()))
            }
        }
    }
}

/// Values that the witnesses of one execution have found.
#[derive(Default)]
pub(crate) struct Found<'a> {
    /// For each witness its distinct values, or none if they are not all known.
    values: Vec<(usize, Option<Vec<Value>>)>,
    /// The rows of witnesses that have places.
    witnessed: Vec<(usize, Vec<Vec<Value>>)>,
    /// The rows of the result.
    rows: &'a [Vec<Value>],
}

impl<'a> Found<'a> {
    /// Nothing yet, but the rows of the result.
    pub(crate) const fn of_rows(rows: &'a [Vec<Value>]) -> Self {
        Self {
            values: Vec::new(),
            witnessed: Vec::new(),
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
        let rows = match &witness.first {
            Some(first) => {
                if first.witness == Some(witness.index) {
                    self.witnessed.push((witness.index, rows.to_vec()));
                }
                first.that_count(rows, self.execution(params))
            }
            None => Some(rows.iter().collect()),
        };
        let rows = rows.filter(|_| is_known);
        let values = rows.and_then(|rows: Vec<&Vec<Value>>| {
            distinct(rows.into_iter().map(|row| witness.value(row.first()?)))
        });
        self.values.push((witness.index, values));
    }

    fn execution<'e>(&'e self, given: &'e [Value]) -> Execution<'e> {
        Execution {
            rows: self.rows,
            given,
            witnessed: &self.witnessed,
        }
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
                let first = first_rows.get(*index)?;
                let last = first.last(name, self.execution(given))?;
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
