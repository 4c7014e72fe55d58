//! Dependencies of a query in the owner's words, and what would reduce them.

use millpond_store::Tag;

use super::restriction::{Restriction, RowsName};
use super::{Analysis, FamilyDep};
use crate::advice::{self, Advice, Cause};
use crate::postgres::catalog::{Catalog, Identity};
use crate::postgres::tags;
use crate::precision::{Described, DescribedTable, compared};
use crate::query::{QueryAnalysis, QueryFacts};

/// Old values of a table's rows that the feed reports.
#[derive(Debug)]
pub(crate) struct Precision {
    identity: Identity,
    /// The statement by which they are, if there is one.
    full_identity: Option<String>,
}

impl Precision {
    pub(crate) fn of(catalog: &Catalog, table: u32) -> Self {
        let relation = catalog.relation(table);
        Self {
            identity: relation.map_or(Identity::None, |relation| relation.identity),
            full_identity: relation.and_then(|relation| catalog.full_identity([relation])),
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

    /// Returns the families, each as one.
    fn sources(&self) -> Vec<(String, Tag)> {
        let depends = self.depends.iter();
        let named = depends.map(|dep| (dep.tables.join(", "), tags::broad(dep.family)));
        named.collect()
    }

    fn describe(&self) -> Vec<String> {
        self.lines(false)
    }

    fn ends(&self) -> Vec<String> {
        self.lines(true)
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
            let precision = &dep.precision;
            let statement = precision.full_identity.clone();
            advice::old_values(&dep.tables.join(", "), statement, precision.unreported())
        }));
        all
    }
}

impl Analysis {
    fn lines(&self, short: bool) -> Vec<String> {
        let reason = self.uncacheable.iter();
        let mut lines: Vec<String> = reason
            .map(|reason| format!("not cacheable: {reason}"))
            .collect();
        let described = Described {
            params: &self.facts.params,
            witnesses: &self.asked.witnesses,
            first_rows: &|index| {
                let rows = &self.asked.first_rows[index];
                let direction = match rows.order.is_descending {
                    true => " desc",
                    false => "",
                };
                let order = format!("{}{direction}", rows.column);
                (&rows.limit, rows.offset.as_ref(), order)
            },
        };
        let families = self.depends.iter().map(|dep| {
            let best = dep.best();
            let best = best.map(|found| {
                let class = match found.name {
                    RowsName::Equal(name) => Some(name.class()),
                    RowsName::First(_) => None,
                };
                let column = compared(&found.column, class);
                (column, &found.values, found.remark())
            });
            DescribedTable {
                name: dep.tables.join(", "),
                references: best.collect(),
            }
        });
        lines.extend(described.lines(families, short));
        lines.dedup();
        lines
    }
}

impl FamilyDep {
    /// Returns the restriction of each reference that is looked at first.
    fn best(&self) -> impl Iterator<Item = &Restriction> {
        self.references
            .iter()
            .filter_map(|alternatives| alternatives.first())
    }
}

impl Restriction {
    /// Returns what makes the dependency less exact than it reads.
    const fn remark(&self) -> &'static str {
        match self.precise {
            true => "",
            false => " (and updates and deletions elsewhere in the table)",
        }
    }
}
