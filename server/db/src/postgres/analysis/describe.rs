//! What a query depends on, in the owner's words, and what would make that less.

use millpond_store::Tag;

use super::first_rows::FirstRows;
use super::restriction::{RestrictedRows, Restriction};
use super::{Analysis, FamilyDep};
use crate::Value;
use crate::advice::{self, Advice, Cause};
use crate::postgres::catalog::{Catalog, Identity};
use crate::postgres::tags;
use crate::precision::{Operand, Values};
use crate::query::{QueryAnalysis, QueryFacts};

/// What the feed reports about rows of a table as they were.
#[derive(Debug)]
pub(crate) struct Precision {
    identity: Identity,
    /// The table as SQL.
    quoted: String,
}

impl Precision {
    pub(crate) fn of(catalog: &Catalog, table: u32) -> Self {
        let relation = catalog.relation(table);
        Self {
            identity: relation.map_or(Identity::None, |relation| relation.identity),
            quoted: relation.map_or_else(String::new, |relation| relation.display_quoted()),
        }
    }

    /// Why old values are not reported.
    fn unreported(&self) -> &'static str {
        match self.identity {
            Identity::None => "without a replica identity no old values are reported",
            Identity::Columns | Identity::Full => {
                "REPLICA IDENTITY DEFAULT reports the old values of keys only"
            }
        }
    }
}

impl QueryAnalysis for Analysis {
    fn facts(&self) -> &QueryFacts {
        &self.facts
    }

    /// Those of one family are told as one.
    fn sources(&self) -> Vec<(String, Tag)> {
        let depends = self.depends.iter();
        let named = depends.map(|dep| (dep.tables.join(", "), tags::broad(dep.family)));
        named.collect()
    }

    fn describe(&self) -> Vec<String> {
        let whole = |tables: &str| format!("{tables}: every change");
        self.lines(whole, |tables, restriction| {
            format!("{tables}: rows {}", self.condition(restriction))
        })
    }

    fn ends(&self) -> Vec<String> {
        let whole = |tables: &str| format!("any {tables}");
        self.lines(whole, |tables, restriction| match restriction.values() {
            Some(Values::Witnessed(index)) => {
                let witness = &self.asked.witnesses[*index];
                format!("{tables} by {}.{}", witness.table, witness.column)
            }
            _ => format!("{tables} {}", self.condition(restriction)),
        })
    }

    fn advice(&self) -> Vec<Advice> {
        if let Some(reason) = &self.uncacheable {
            return vec![advice::uncacheable(reason)];
        }
        let whole = self.depends.iter().filter(|dep| dep.references.is_empty());
        let mut all = advice::of_whole(whole.map(|dep| {
            let cause = dep.cause.as_ref().unwrap_or(&Cause::Unconditional);
            (dep.tables.join(", "), cause)
        }));
        let is_loose = |dep: &&FamilyDep| dep.best().any(|restriction| !restriction.precise);
        all.extend(self.depends.iter().filter(is_loose).map(|dep| {
            let Precision { quoted, .. } = &dep.precision;
            advice::old_values(&dep.tables.join(", "), quoted, dep.precision.unreported())
        }));
        all
    }
}

impl Analysis {
    /// A line for each family of which all rows count, and for each reference to some rows.
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
        for dep in &self.depends {
            let tables = dep.tables.join(", ");
            if dep.references.is_empty() {
                lines.push(whole(&tables));
            }
            for restriction in dep.best() {
                let line = some(&tables, restriction);
                lines.push(format!("{line}{}", dep.beside(restriction)));
            }
        }
        lines.dedup();
        lines
    }

    /// `with id = :id`, or `among the first 8 by at desc`.
    fn condition(&self, restriction: &Restriction) -> String {
        let column = &restriction.column;
        match &restriction.rows {
            RestrictedRows::First(_, index) => self.first(column, &self.asked.first_rows[*index]),
            RestrictedRows::Equal(_, values) => format!("with {column} {}", self.values(values)),
        }
    }

    fn first(&self, column: &str, first: &FirstRows) -> String {
        let limit = self.operand(&first.limit);
        let offset = first.offset.iter();
        let offset: String = offset
            .map(|offset| format!(" + {}", self.operand(offset)))
            .collect();
        let direction = if first.order.is_descending {
            " desc"
        } else {
            ""
        };
        format!("among the first {limit}{offset} by {column}{direction}")
    }

    /// `= :id`, `in (1, 2)`, or `= artist_id of album with id = :id`.
    fn values(&self, values: &Values) -> String {
        match values {
            Values::Given(operands) => {
                let texts: Vec<String> = operands.iter().map(|value| self.operand(value)).collect();
                match (operands.as_slice(), texts.as_slice()) {
                    ([Operand::Items(_)], [value]) => format!("= any ({value})"),
                    (_, [value]) => format!("= {value}"),
                    _ => format!("in ({})", texts.join(", ")),
                }
            }
            Values::Witnessed(index) => {
                let witness = &self.asked.witnesses[*index];
                let rows = self.values(&witness.rows.values);
                let (table, column, key) = (&witness.table, &witness.column, &witness.key);
                format!("= {column} of {table} with {key} {rows}")
            }
            Values::First(index) => self.first("", &self.asked.first_rows[*index]),
        }
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Parameter(index) | Operand::Items(index) => {
                self.facts.params.get(*index).map_or_else(
                    || format!("${}", index + 1),
                    |param| format!(":{}", param.name),
                )
            }
            Operand::Constant(value) => match value {
                Value::Integer(integer) => integer.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
                _ => "NULL".into(),
            },
            Operand::Last(_) => "NULL".into(),
        }
    }
}

impl FamilyDep {
    /// The restriction of each reference that is looked at first.
    fn best(&self) -> impl Iterator<Item = &Restriction> {
        self.references
            .iter()
            .filter_map(|alternatives| alternatives.first())
    }

    /// What makes the dependency less exact than it reads.
    fn beside(&self, restriction: &Restriction) -> &'static str {
        if restriction.precise {
            ""
        } else {
            " (and updates and deletions elsewhere in the table)"
        }
    }
}
