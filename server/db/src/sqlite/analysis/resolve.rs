//! Which tables a statement reads: the feed reports their changes.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::TableDependency;
use super::references::References;
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::sqlite::catalog::{Catalog, TableKind};
use crate::sqlite::recorder::{AuthorizerRecord, Recorder, StatementPolicy};
use crate::sqlite::triggers::is_own_table;

/// Resolves what a statement reads to tables whose changes the feed reports.
pub(super) struct TableResolver<'a> {
    connection: &'a Connection,
    recorder: &'a Recorder,
    catalog: &'a Catalog,
    /// Tables that are dependencies as a whole, for any text.
    whole: BTreeMap<String, Cause>,
    /// Tables whose dependency the text may narrow.
    tables: BTreeSet<String>,
    /// The names of common table expressions.
    common_table_expressions: BTreeSet<String>,
    /// Views of which the text shows which rows are read.
    looked_through: BTreeSet<String>,
    /// Why the results must not be kept.
    pub(super) objection: Option<String>,
}

/// True for tables of SQLite that exist without being in the schema. A common table expression may
/// have the same name, and then it is unknown which of the two was read.
fn is_eponymous(name: &str) -> bool {
    name.starts_with("sqlite_")
        || name.starts_with("pragma_")
        || matches!(
            name,
            "dbstat"
                | "bytecode"
                | "tables_used"
                | "fts3tokenize"
                | "generate_series"
                | "completion"
        )
}

impl<'a> TableResolver<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        recorder: &'a Recorder,
        catalog: &'a Catalog,
        references: &References,
    ) -> Self {
        Self {
            connection,
            recorder,
            catalog,
            whole: BTreeMap::new(),
            tables: BTreeSet::new(),
            common_table_expressions: references.common.names.clone(),
            looked_through: references.looked_through(),
            objection: None,
        }
    }

    pub(super) fn resolve_all(&mut self, recorded: &AuthorizerRecord) {
        if let Some(name) = recorded.outside_main.iter().next() {
            self.set_objection(format!("{name} is outside the main database"));
        }
        for name in recorded.reads.keys() {
            if is_own_table(name) {
                self.set_objection(format!("{name} records changes, and no feed has its own"));
            }
            match self.catalog.table(name).map(|table| &table.kind) {
                Some(TableKind::Table | TableKind::Shadow) => {
                    self.tables.insert(name.clone());
                }
                Some(TableKind::View) if self.looked_through.contains(name) => {}
                kind => {
                    let what = match kind {
                        Some(TableKind::View) => "view",
                        _ => "index",
                    };
                    self.add_underlying(name, &Cause::Behind(format!("the {what} {name}")), 0);
                }
            }
        }
    }

    /// Adds the tables behind a view or a virtual table.
    fn add_underlying(&mut self, name: &str, cause: &Cause, depth: usize) {
        // SQLite refuses views that are nested more than a hundred deep. An index over a view over
        // an index is at most as deep.
        const MAX_DEPTH: usize = 16;
        let catalog = self.catalog;
        let Some(table) = catalog.table(name) else {
            return self.resolve_unknown(name);
        };
        if depth > MAX_DEPTH {
            return self.set_objection(format!("{name} is nested too deeply"));
        }
        match &table.kind {
            TableKind::Table | TableKind::Shadow => {
                self.whole.insert(name.to_owned(), cause.clone());
            }
            TableKind::View => {
                let quoted = name.replace('"', "\"\"");
                let (prepared, recorded) = self.recorder.record(StatementPolicy::Own, || {
                    self.connection
                        .prepare(&format!("SELECT * FROM \"{quoted}\""))
                        .map(drop)
                });
                if prepared.is_err() {
                    return self.set_objection(format!("the view {name} cannot be expanded"));
                }
                // Its functions and other databases were recorded when the statement itself was
                // prepared.
                for inner in recorded.reads.keys().filter(|inner| inner.as_str() != name) {
                    if catalog
                        .table(inner)
                        .is_some_and(|table| table.kind == TableKind::View)
                    {
                        // Its tables are in the list already: the authorizer reports all levels.
                        continue;
                    }
                    self.add_underlying(inner, cause, depth + 1);
                }
                self.add_tables_named(name, table.names.as_ref(), cause, depth);
            }
            TableKind::Virtual(virtual_table) => {
                // Only modules that are known to store all their rows in their shadow tables.
                const KEPT_IN_SHADOWS: [&str; 5] = ["fts3", "fts4", "fts5", "rtree", "rtree_i32"];
                if virtual_table.shadows.is_empty()
                    || !KEPT_IN_SHADOWS.contains(&virtual_table.module.as_str())
                {
                    return self.set_objection(format!(
                        "{name} is a virtual table ({}) whose changes cannot be seen",
                        virtual_table.module
                    ));
                }
                let shadows = virtual_table.shadows.iter().cloned();
                self.whole
                    .extend(shadows.map(|shadow| (shadow, cause.clone())));
                if let Some(content) = &virtual_table.content {
                    self.add_underlying(content, cause, depth + 1);
                }
            }
        }
    }

    /// Adds what the text of a view names. The authorizer does not name a table of which a join
    /// reads nothing but the columns of USING or NATURAL.
    fn add_tables_named(
        &mut self,
        view: &str,
        names: Option<&BTreeSet<String>>,
        cause: &Cause,
        depth: usize,
    ) {
        let Some(names) = names else {
            return self.set_objection(format!("the text of the view {view} is not understood"));
        };
        for name in names.iter().filter(|name| *name != view) {
            // Other names are those of common table expressions and of functions.
            if self.catalog.table(name).is_some() {
                self.add_underlying(name, cause, depth + 1);
            }
        }
    }

    /// Adds the tables behind the views of these names that are not looked through, also where the
    /// authorizer names none of their columns.
    pub(super) fn add_views_named(&mut self, is_named: impl Fn(&str) -> bool) {
        let catalog = self.catalog;
        for (name, table) in &catalog.tables {
            let is_view = table.kind == TableKind::View && is_named(name);
            if is_view && !self.looked_through.contains(name) {
                self.add_underlying(name, &Cause::Behind(format!("the view {name}")), 0);
            }
        }
    }

    fn resolve_unknown(&mut self, name: &str) {
        match name {
            // These depend on their arguments alone.
            "json_each" | "json_tree" | "jsonb_each" | "jsonb_tree" => {}
            // A recursive table expression is reported to read itself; its sources are in the list
            // too.
            _ if self.common_table_expressions.contains(name) && !is_eponymous(name) => {}
            _ if name.starts_with("sqlite_") => self.set_objection(format!(
                "changes to SQLite's own table {name} cannot be seen"
            )),
            _ => self.set_objection(format!("{name} is not a table whose changes can be seen")),
        }
    }

    pub(super) fn set_objection(&mut self, reason: String) {
        self.objection.get_or_insert(reason);
    }

    pub(super) fn dependencies(self, mut references: References) -> Vec<TableDependency> {
        let mut depends = BTreeMap::new();
        for (table, cause) in self.whole {
            depends.insert(table, (Vec::new(), Some(cause)));
        }
        for table in self.tables {
            let named = references.named.get(&table).copied().unwrap_or(0);
            let restricted = references.restricted.remove(&table).unwrap_or_default();
            // Narrow only if every reference in the text is restricted, and the name can mean
            // nothing else.
            let is_shadowed = references.common.names.contains(&table);
            let narrow = named > 0 && restricted.len() == named && !is_shadowed;
            let cause = if is_shadowed {
                Some(Cause::Shadowed)
            } else {
                references.causes.remove(&table)
            };
            depends.entry(table).or_insert(if narrow {
                (restricted, None)
            } else {
                (Vec::new(), cause)
            });
        }
        // A name in the text that the authorizer did not report is a table that was optimised away,
        // or is not a table. A dependency on the former costs little.
        for name in references.named.keys() {
            let is_table = self
                .catalog
                .table(name)
                .is_some_and(|table| matches!(table.kind, TableKind::Table | TableKind::Shadow));
            if is_table {
                let cause = references
                    .common
                    .names
                    .contains(name)
                    .then_some(Cause::Shadowed);
                depends.entry(name.clone()).or_insert((Vec::new(), cause));
            }
        }
        depends
            .into_iter()
            .map(|(table, (references, cause))| TableDependency {
                table,
                reads: ColumnSet::All,
                references,
                cause,
            })
            .collect()
    }
}
