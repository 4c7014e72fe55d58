//! The dependencies of a query as text for the owner, and what would reduce them.

use millpond_store::Tag;

use super::restrict::{Operand, Restriction, Values};
use super::witness::Witness;
use super::{Analysis, TableDependency};
use crate::Value;
use crate::advice::{self, Advice, Cause};
use crate::query::{QueryAnalysis, QueryFacts};
use crate::sqlite::tags;

impl QueryAnalysis for Analysis {
    fn facts(&self) -> &QueryFacts {
        &self.facts
    }

    fn sources(&self) -> Vec<(String, Tag)> {
        let depends = self.depends.iter();
        let named = depends.map(|dep| (dep.table.clone(), tags::broad(&dep.table)));
        named.collect()
    }

    fn advice(&self) -> Vec<Advice> {
        if let Some(reason) = &self.uncacheable {
            return vec![advice::uncacheable(reason)];
        }
        let whole = self.depends.iter().filter(|dep| dep.references.is_empty());
        advice::of_whole(whole.map(|dep| {
            let cause = dep.cause.as_ref().unwrap_or(&Cause::Unconditional);
            (dep.table.clone(), cause)
        }))
    }

    fn describe(&self) -> Vec<String> {
        let whole = |table: &str| format!("{table}: every change");
        self.lines(whole, |table, restriction| {
            format!("{table}: rows {}", self.describe_rows(restriction))
        })
    }

    fn ends(&self) -> Vec<String> {
        let whole = |table: &str| format!("any {table}");
        self.lines(whole, |table, restriction| match &restriction.values {
            Values::Witnessed(index) => {
                let witness = &self.witnesses[*index];
                format!("{table} by {}.{}", witness.table, witness.column)
            }
            values @ Values::Given(_) => {
                let values = self.describe_values(values);
                format!("{table} with {} {values}", restriction.column)
            }
            Values::First(index) => format!("{table} among {}", self.describe_first(*index)),
        })
    }
}

impl Analysis {
    /// A line for each table of which all rows count, and for each reference to some rows.
    fn lines(
        &self,
        whole: impl Fn(&str) -> String,
        some: impl Fn(&str, &Restriction) -> String,
    ) -> Vec<String> {
        let mut lines: Vec<String> = self
            .uncacheable
            .iter()
            .map(|reason| format!("not cacheable: {reason}"))
            .collect();
        let clock = self.clock_view.iter().filter(|_| lines.is_empty());
        let clock = clock.map(|(view, function)| {
            format!("not kept where it reads the clock ({function}() in the view {view})")
        });
        lines.extend(clock.collect::<Vec<_>>());
        for TableDependency {
            table, references, ..
        } in &self.depends
        {
            if references.is_empty() {
                lines.push(whole(table));
            }
            for restriction in references
                .iter()
                .filter_map(|alternatives| alternatives.first())
            {
                lines.push(some(table, restriction));
            }
        }
        lines.dedup();
        lines
    }

    /// `with id = :id`, or `among the first 8 by at desc`.
    fn describe_rows(&self, Restriction { column, values, .. }: &Restriction) -> String {
        match values {
            Values::First(index) => format!("among {}", self.describe_first(*index)),
            values => format!("with {column} {}", self.describe_values(values)),
        }
    }

    /// `the first 8 by at desc`.
    fn describe_first(&self, index: usize) -> String {
        let rows = &self.first_rows[index];
        let limit = self.describe_operand(&rows.limit);
        let offset = match &rows.offset {
            Some(offset) => format!(" + {}", self.describe_operand(offset)),
            None => String::new(),
        };
        let direction = if rows.is_descending { " desc" } else { "" };
        format!("the first {limit}{offset} by {}{direction}", rows.column)
    }

    /// `= :id`, `in (1, 2)`, or `= artist_id of album with id = :id`.
    fn describe_values(&self, values: &Values) -> String {
        match values {
            Values::Given(operands) => {
                let texts = operands.iter().map(|value| self.describe_operand(value));
                let texts: Vec<String> = texts.collect();
                match texts.as_slice() {
                    [value] if !matches!(operands[0], Operand::Items(_)) => format!("= {value}"),
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
                let rows = match &rows.values {
                    Values::First(index) => format!("among {}", self.describe_first(*index)),
                    values => format!("with {key} {}", self.describe_values(values)),
                };
                format!("= {column} of {table} {rows}")
            }
            Values::First(index) => format!("of {}", self.describe_first(*index)),
        }
    }

    fn describe_operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Parameter(index) | Operand::Items(index) => {
                format!(":{}", self.facts.params[*index].name)
            }
            Operand::Constant(Value::Integer(integer)) => integer.to_string(),
            Operand::Constant(Value::Text(text)) => format!("'{}'", text.replace('\'', "''")),
            Operand::Constant(_) | Operand::Last(_) => "NULL".into(),
        }
    }
}
