//! What a query depends on, in the owner's words, and what would make that less.

use millpond_store::Tag;

use super::first_rows::FirstRows;
use super::restriction::Restriction;
use super::{Analysis, FamilyDep};
use crate::advice::{self, Advice, Cause};
use crate::postgres::catalog::{Catalog, Identity};
use crate::postgres::tags;
use crate::precision::Described;
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
        self.lines(whole, |tables, Restriction { column, values, .. }| {
            format!(
                "{tables}: rows {}",
                self.described(|all| all.rows(column, values))
            )
        })
    }

    fn ends(&self) -> Vec<String> {
        let whole = |tables: &str| format!("any {tables}");
        self.lines(whole, |tables, Restriction { column, values, .. }| {
            self.described(|all| all.ends(tables, column, values))
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

    fn described(&self, say: impl Fn(&Described<'_>) -> String) -> String {
        say(&Described {
            params: &self.facts.params,
            witnesses: &self.asked.witnesses,
            first_rows: &|index| {
                let FirstRows {
                    limit,
                    offset,
                    column,
                    order,
                    ..
                } = &self.asked.first_rows[index];
                let direction = if order.is_descending { " desc" } else { "" };
                (limit, offset.as_ref(), format!("{column}{direction}"))
            },
        })
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
