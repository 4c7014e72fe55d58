//! What a query depends on, in the owner's words.

use super::constants::Operand;
use super::restrict::Restriction;
use super::{Analysis, FamilyDep};
use crate::Value;
use crate::postgres::catalog::{Catalog, Identity};

/// What the feed tells about rows of a table as they were.
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
}

impl Analysis {
    /// One readable line for each dependency.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .uncacheable
            .iter()
            .map(|reason| format!("not cacheable: {reason}"))
            .collect();
        for dep in &self.depends {
            let tables = dep.tables.join(", ");
            if dep.references.is_empty() {
                lines.push(format!("{tables}: every change"));
            }
            for restriction in dep
                .references
                .iter()
                .filter_map(|alternatives| alternatives.first())
            {
                lines.push(format!(
                    "{tables}: rows with {}{}",
                    self.condition(restriction),
                    dep.cost(restriction)
                ));
            }
        }
        lines.dedup();
        lines
    }

    fn condition(&self, restriction: &Restriction) -> String {
        let column = &restriction.column;
        let values: Vec<String> = restriction
            .values
            .iter()
            .map(|value| self.operand(value))
            .collect();
        match (restriction.values.as_slice(), values.as_slice()) {
            ([Operand::Items { .. }], [value]) => format!("{column} = any ({value})"),
            (_, [value]) => format!("{column} = {value}"),
            _ => format!("{column} in ({})", values.join(", ")),
        }
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Parameter { index, .. } | Operand::Items { index, .. } => {
                self.params.get(*index).map_or_else(
                    || format!("${}", index + 1),
                    |param| format!(":{}", param.name),
                )
            }
            Operand::Constant { value, .. } => match value {
                Value::Integer(integer) => integer.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
                _ => "NULL".into(),
            },
        }
    }
}

impl FamilyDep {
    /// What makes the dependency less exact than it reads, and the remedy.
    fn cost(&self, restriction: &Restriction) -> String {
        if restriction.precise {
            return String::new();
        }
        let why = match self.precision.identity {
            Identity::None => "without a replica identity no old values are told",
            Identity::Columns | Identity::Full => {
                "REPLICA IDENTITY DEFAULT tells the old values of keys only"
            }
        };
        format!(
            " (updates and deletions elsewhere in the table count too: {why}; \
             \"alter table {} replica identity full\" makes it exact, and the log a little larger)",
            self.precision.quoted
        )
    }
}
