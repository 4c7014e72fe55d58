//! Dependencies of a query in the owner's words.

use super::values::{Operand, ValueClass, Values};
use super::witness::Witness;
use crate::Value;
use crate::query::Param;

/// The names by which the rows of a statement are described.
pub(crate) struct Described<'a> {
    pub(crate) params: &'a [Param],
    pub(crate) witnesses: &'a [Witness],
    /// The first rows that it takes: limit, offset, and the column with its direction.
    pub(crate) first_rows: &'a dyn Fn(usize) -> (&'a Operand, Option<&'a Operand>, String),
}

/// A table with the rows of it that a query depends on.
pub(crate) struct DescribedTable<'a> {
    pub(crate) name: String,
    /// For each reference the column that selects its rows, its values, and a remark; none if all
    /// rows count.
    pub(crate) references: Vec<(String, &'a Values, &'a str)>,
}

/// Returns a column as it is compared.
pub(crate) fn compared(column: &str, class: Option<ValueClass>) -> String {
    match class.and_then(ValueClass::function) {
        Some(function) => format!("{function}({column})"),
        None => column.to_owned(),
    }
}

impl Described<'_> {
    /// Returns a line for each table of which all rows count, and for each reference to some rows:
    /// what they are, or in `short` what a change must have to end the results.
    pub(crate) fn lines<'t>(
        &self,
        tables: impl Iterator<Item = DescribedTable<'t>>,
        short: bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for DescribedTable { name, references } in tables {
            if references.is_empty() {
                lines.push(match short {
                    true => format!("any {name}"),
                    false => format!("{name}: every change"),
                });
            }
            lines.extend(references.into_iter().map(|(column, values, remark)| {
                let line = match short {
                    true => self.ends(&name, &column, values),
                    false => format!("{name}: rows {}", self.rows(&column, values)),
                };
                line + remark
            }));
        }
        lines
    }

    /// Returns `with id = :id`, or `among the first 8 by at desc`.
    fn rows(&self, column: &str, values: &Values) -> String {
        match values {
            Values::First(index) => self.first(*index),
            Values::Given(operands) => format!("with {column} {}", self.given(operands)),
            Values::Witnessed(index) => {
                let witness = &self.witnesses[*index];
                let key = compared(&witness.key, witness.rows.class);
                let rows = self.rows(&key, &witness.rows.values);
                format!(
                    "with {column} = {} of {} {rows}",
                    witness.column, witness.table
                )
            }
        }
    }

    /// Returns what a change to a table must have to end the results, in short.
    fn ends(&self, table: &str, column: &str, values: &Values) -> String {
        match values {
            Values::Witnessed(index) => {
                let witness = &self.witnesses[*index];
                format!("{table} by {}.{}", witness.table, witness.column)
            }
            values => format!("{table} {}", self.rows(column, values)),
        }
    }

    /// Returns `among the first 8 by at desc`.
    fn first(&self, index: usize) -> String {
        let (limit, offset, order) = (self.first_rows)(index);
        let offset =
            offset.map_or_else(String::new, |offset| format!(" + {}", self.operand(offset)));
        format!("among the first {}{offset} by {order}", self.operand(limit))
    }

    /// Returns `= :id`, `in (1, 2)`, or `in (:ids)` for the items of a list.
    fn given(&self, operands: &[Operand]) -> String {
        let is_unless = |operand: &&Operand| matches!(operand, Operand::Unless(..));
        let (unless, operands): (Vec<&Operand>, Vec<&Operand>) =
            operands.iter().partition(is_unless);
        let given = match operands[..] {
            [one] if !matches!(one, Operand::Items(_)) => format!("= {}", self.operand(one)),
            _ => {
                let texts = operands.iter().map(|value| self.operand(value));
                let texts: Vec<String> = texts.collect();
                format!("in ({})", texts.join(", "))
            }
        };
        let unless = unless
            .iter()
            .map(|one| format!(" unless {}", self.operand(one)));
        given + &unless.collect::<String>()
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Parameter(index) | Operand::Items(index) => {
                let param = self.params.get(*index);
                param.map_or_else(
                    || format!("${}", index + 1),
                    |param| format!(":{}", param.name),
                )
            }
            Operand::Constant(Value::Integer(integer)) => integer.to_string(),
            Operand::Constant(Value::Boolean(truth)) => truth.to_string(),
            Operand::Constant(Value::Text(text)) => format!("'{}'", text.replace('\'', "''")),
            Operand::Constant(_) | Operand::Last(_) => "NULL".into(),
            Operand::Unless(index, Value::Null) => {
                format!("{} is null", self.operand(&Operand::Parameter(*index)))
            }
            Operand::Unless(index, constant) => format!(
                "{} = {}",
                self.operand(&Operand::Parameter(*index)),
                self.operand(&Operand::Constant(constant.clone()))
            ),
            Operand::Computed(by, sides) => {
                let [left, right] = [&sides[0], &sides[1]].map(|side| match side {
                    Operand::Computed(..) => format!("({})", self.operand(side)),
                    _ => self.operand(side),
                });
                format!("{left} {} {right}", by.sign())
            }
        }
    }
}
