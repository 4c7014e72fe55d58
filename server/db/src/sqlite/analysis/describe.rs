//! Dependencies of a query as text for the owner, and what would reduce them.

use millpond_store::Tag;

use super::Analysis;
use super::references::Restriction;
use crate::advice::{self, Advice, Cause};
use crate::precision::{Described, DescribedTable, compared};
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
        self.lines(false)
    }

    fn ends(&self) -> Vec<String> {
        self.lines(true)
    }
}

impl Analysis {
    fn lines(&self, short: bool) -> Vec<String> {
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
        let described = Described {
            params: &self.facts.params,
            witnesses: &self.witnesses,
            first_rows: &|index| {
                let rows = &self.first_rows[index];
                let direction = if rows.is_descending { " desc" } else { "" };
                let order = format!("{}{direction}", rows.column);
                (&rows.limit, rows.offset.as_ref(), order)
            },
        };
        let tables = self.depends.iter().map(|dep| {
            let best = dep.references.iter().filter_map(|all| all.first());
            let best = best.map(|found| {
                let Restriction { column, values, .. } = found;
                (compared(column, found.class), values, "")
            });
            DescribedTable {
                name: dep.table.clone(),
                references: best.collect(),
            }
        });
        lines.extend(described.lines(tables, short));
        lines.dedup();
        lines
    }
}
