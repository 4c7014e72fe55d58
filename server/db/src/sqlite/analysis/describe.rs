//! The dependencies of a query as text for the owner, and what would reduce them.

use millpond_store::Tag;

use super::references::Restriction;
use super::{Analysis, TableDependency};
use crate::advice::{self, Advice, Cause};
use crate::precision::Described;
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
        self.lines(whole, |table, Restriction { column, values, .. }| {
            format!(
                "{table}: rows {}",
                self.described(|all| all.rows(column, values))
            )
        })
    }

    fn ends(&self) -> Vec<String> {
        let whole = |table: &str| format!("any {table}");
        self.lines(whole, |table, Restriction { column, values, .. }| {
            self.described(|all| all.ends(table, column, values))
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

    fn described(&self, say: impl Fn(&Described<'_>) -> String) -> String {
        say(&Described {
            params: &self.facts.params,
            witnesses: &self.witnesses,
            first_rows: &|index| {
                let rows = &self.first_rows[index];
                let direction = if rows.is_descending { " desc" } else { "" };
                let order = format!("{}{direction}", rows.column);
                (&rows.limit, rows.offset.as_ref(), order)
            },
        })
    }
}
