//! The dependencies of a query as text for the owner, and what would reduce them.

use super::restrict::{Operand, Values};
use super::witness::Witness;
use super::{Analysis, TableDependency};
use crate::Value;
use crate::advice::{self, Advice, Cause};

impl Analysis {
    /// What would reduce the dependencies, or make the results cacheable.
    pub(crate) fn advice(&self) -> Vec<Advice> {
        if let Some(reason) = &self.uncacheable {
            return vec![advice::uncacheable(reason)];
        }
        let whole = self.depends.iter().filter(|dep| dep.references.is_empty());
        advice::of_whole(whole.map(|dep| {
            let cause = dep.cause.as_ref().unwrap_or(&Cause::Unconditional);
            (dep.table.clone(), cause)
        }))
    }

    /// One readable line for each dependency.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .uncacheable
            .iter()
            .map(|reason| format!("not cacheable: {reason}"))
            .collect();
        for TableDependency {
            table, references, ..
        } in &self.depends
        {
            if references.is_empty() {
                lines.push(format!("{table}: every change"));
            }
            for restriction in references
                .iter()
                .filter_map(|alternatives| alternatives.first())
            {
                let line = format!(
                    "{table}: rows with {} {}",
                    restriction.column,
                    self.describe_values(&restriction.values)
                );
                lines.push(line);
            }
        }
        lines.dedup();
        lines
    }

    /// `= :id`, `in (1, 2)`, or `= artist_id of album with id = :id`.
    fn describe_values(&self, values: &Values) -> String {
        match values {
            Values::Given(operands) => {
                let texts = operands.iter().map(|value| self.describe_operand(value));
                let texts: Vec<String> = texts.collect();
                match texts.as_slice() {
                    [value] => format!("= {value}"),
                    values => format!("in ({})", values.join(", ")),
                }
            }
            Values::Witnessed(index) => {
                let Witness {
                    table,
                    column,
                    key,
                    rows,
                    ..
                } = &self.witnesses[*index];
                let rows = self.describe_values(&rows.values);
                format!("= {column} of {table} with {key} {rows}")
            }
        }
    }

    fn describe_operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Parameter(index) => format!(":{}", self.params[*index].name),
            Operand::Constant(Value::Integer(integer)) => integer.to_string(),
            Operand::Constant(Value::Text(text)) => format!("'{}'", text.replace('\'', "''")),
            Operand::Constant(_) => "NULL".into(),
        }
    }
}
