//! The dependencies of a statement (coherence.md, rules 9 to 14).
//!
//! The authority is SQLite's authorizer: it lists the tables that the prepared statement reads,
//! through views and virtual tables. Each of them is a dependency as a whole, unless the
//! statement's text shows that every reference to it is restricted to rows with certain values. So
//! text that is not understood only widens.

mod column_reads;
mod common_tables;
mod defaults;
mod derived;
mod describe;
mod documents;
mod equalities;
mod first_rows;
mod functions;
mod literals;
mod narrowed;
mod parameter_kinds;
mod plans;
mod restrict;
mod scope;
mod widening;
mod witness;
mod written;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::Connection;
use sqlparser::ast::Statement;
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::query::{Deps, Param};
use crate::sqlite::catalog::{Catalog, SchemaKey, TableKind};
use crate::sqlite::hint;
use crate::sqlite::interest::{SelectedRows, Selection};
use crate::sqlite::recorder::{AuthorizerRecord, Recorder, StatementPolicy};
use crate::sqlite::tags;
use crate::sqlite::triggers::is_own_table;
use crate::{SqlError, Value, WrittenSchema};
pub(crate) use derived::ViewText;
use first_rows::FirstRows;
use plans::Plans;
use restrict::{References, Restriction, Values};
pub(crate) use witness::RunWitness;
use witness::{Witness, WitnessRun};

/// The analysis of one statement, for one state of the schema.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) key: SchemaKey,
    pub(crate) params: Arc<[Param]>,
    pub(crate) columns: Arc<[Arc<str>]>,
    /// The places of the columns whose texts are JSON documents.
    pub(crate) documents: Box<[usize]>,
    pub(crate) readonly: bool,
    /// The names of the tables that it reads and writes.
    pub(crate) tables: Vec<String>,
    depends: Vec<TableDependency>,
    witnesses: Vec<Witness>,
    first_rows: Vec<FirstRows>,
    uncacheable: Option<Arc<str>>,
    /// Nothing but the clock is why.
    reads_clock_alone: bool,
    /// A view behind the query that reads the clock in a column, and the function. Whether the
    /// query reads that column is known when it runs.
    clock_view: Option<(String, String)>,
    /// Of a statement that writes.
    pub(crate) written: WrittenSchema,
}

/// A table that a query depends on.
#[derive(Debug)]
struct TableDependency {
    table: String,
    /// The columns that the query reads.
    reads: ColumnSet,
    /// One entry for each reference to the table, each with alternatives. An empty list means the
    /// whole table.
    references: Vec<Vec<Restriction>>,
    /// Why the dependency is the whole table, if it is.
    cause: Option<Cause>,
}

/// Prepares `sql` on `connection`, whose schema is `catalog`, and determines its dependencies.
pub(crate) fn analyse(
    connection: &Connection,
    recorder: &Recorder,
    catalog: &Catalog,
    sql: &str,
) -> Result<Analysis, SqlError> {
    let (prepared, recorded) = recorder.record(StatementPolicy::Owner, || {
        PreparedFacts::prepare(connection, sql)
    });
    let facts = prepared.map_err(|error| hint::explain(&error, sql, &recorded, catalog))?;
    if facts.readonly && facts.columns.is_empty() {
        return Err(SqlError {
            message: "there is no statement here".into(),
            offset: None,
            hint: Some("write one SELECT, INSERT, UPDATE or DELETE".into()),
        });
    }
    let tree = parse(sql);
    let indexes: HashMap<String, usize> = facts
        .parameters
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), index))
        .collect();
    let kinds = tree.as_ref().map(|tree| {
        parameter_kinds::parameter_kinds(tree, catalog, &indexes, facts.parameters.len())
    });
    let kind = |index: usize| kinds.as_ref().and_then(|kinds| kinds[index]);
    let params = facts
        .parameters
        .iter()
        .enumerate()
        .map(|(index, name)| Param {
            name: strip_sigil(name).to_owned(),
            kind: kind(index),
        })
        .collect();

    let mut references = tree
        .as_ref()
        .map(|tree| {
            let plans = Plans {
                connection,
                recorder,
            };
            restrict::references(tree, catalog, &indexes, &plans)
        })
        .unwrap_or_default();
    let mut resolver = TableResolver {
        common_table_expressions: references.common.names.clone(),
        looked_through: references.looked_through(),
        connection,
        recorder,
        catalog,
        whole: BTreeMap::new(),
        tables: BTreeSet::new(),
        objection: None,
    };
    resolver.resolve_all(&recorded);
    match &tree {
        Some(_) => resolver.add_views_named(|name| references.named.contains_key(name)),
        None => {
            let text = scope::lower(sql);
            resolver.add_views_named(|name| text.contains(name));
            if derived::may_merge_columns(sql) {
                resolver.set_objection("the text of the query is not understood".into());
            }
        }
    }
    let clock = tree.as_ref().and_then(functions::reads_clock);
    let is_named = |name: &str| match &tree {
        Some(_) => references.named.contains_key(name),
        None => scope::lower(sql).contains(name),
    };
    let clock_view = clock_view(catalog, is_named);
    let functions =
        |called| defaults::objection(connection, sql, (&recorded, called), facts.readonly);
    let other = resolver.objection.take().or_else(|| {
        facts
            .explain
            .then(|| "EXPLAIN tells about the plan, not about rows".to_owned())
    });
    let reads_clock_alone =
        other.is_none() && functions(functions::without_clock(&recorded.functions)).is_none();
    let objection = clock
        .or_else(|| functions(recorded.functions.clone()))
        .or(other);
    let are_all_named = tree
        .as_ref()
        .is_some_and(|tree| column_reads::are_all_named(tree, &references.common, catalog));
    let witnesses = std::mem::take(&mut references.witnesses);
    let first_rows = std::mem::take(&mut references.first_rows);
    let mut depends = resolver.dependencies(references);
    for dep in &mut depends {
        let columns = recorded.reads.get(&dep.table);
        dep.read(column_reads::of_table(
            &dep.table,
            columns,
            are_all_named,
            catalog,
        ));
    }
    let tables = recorded
        .reads
        .keys()
        .chain(&recorded.writes)
        .filter(|name| !name.starts_with("sqlite_") && !is_own_table(name))
        .cloned()
        .collect::<BTreeSet<String>>();
    let written = recorded.writes.iter().filter(|_| !facts.readonly);
    let written = written::schema(connection, written);
    Ok(Analysis {
        written,
        key: catalog.key,
        params,
        documents: documents::documents(tree.as_ref(), facts.columns.len()),
        columns: facts.columns,
        readonly: facts.readonly,
        tables: tables.into_iter().collect(),
        depends,
        witnesses,
        first_rows,
        uncacheable: objection.map(Arc::from),
        reads_clock_alone,
        clock_view,
    })
}

/// The first view that reads the clock, of those that a statement names and those behind them.
fn clock_view(catalog: &Catalog, is_named: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let named = catalog.tables.keys().filter(|name| is_named(name));
    let mut waiting: Vec<&String> = named.collect();
    waiting.sort();
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some(table) = catalog.tables.get(name).filter(|_| seen.insert(name)) else {
            continue;
        };
        if let Some(function) = &table.clock {
            return Some((name.clone(), function.clone()));
        }
        waiting.extend(table.names.iter().flatten());
    }
    None
}

/// What SQLite reports about a prepared statement.
struct PreparedFacts {
    /// The parameter names as they are written, `:id`.
    parameters: Vec<String>,
    columns: Arc<[Arc<str>]>,
    readonly: bool,
    explain: bool,
}

impl PreparedFacts {
    fn prepare(connection: &Connection, sql: &str) -> rusqlite::Result<Self> {
        // Not from the cache: SQLite calls the authorizer only when it compiles a statement.
        let statement = connection.prepare(sql)?;
        let parameters = (1..=statement.parameter_count())
            .map(|index| {
                statement
                    .parameter_name(index)
                    .map(str::to_owned)
                    .ok_or_else(|| rusqlite::Error::InvalidParameterName("?".into()))
            })
            .collect::<Result<_, _>>()?;
        let columns = statement.column_names().map(Arc::from).collect();
        Ok(Self {
            parameters,
            columns,
            readonly: statement.readonly(),
            explain: statement.is_explain() != 0,
        })
    }
}

fn parse(sql: &str) -> Option<Statement> {
    let mut statements = Parser::parse_sql(&SQLiteDialect {}, sql).ok()?;
    if statements.len() == 1 {
        statements.pop()
    } else {
        None
    }
}

/// The name of a parameter without its leading `:`, `@`, `$` or `?`.
pub(crate) fn strip_sigil(name: &str) -> &str {
    name.strip_prefix([':', '@', '$', '?']).unwrap_or(name)
}

/// Resolves what a statement reads to tables whose changes the feed reports.
struct TableResolver<'a> {
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
    objection: Option<String>,
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

impl TableResolver<'_> {
    fn resolve_all(&mut self, recorded: &AuthorizerRecord) {
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
    fn add_views_named(&mut self, is_named: impl Fn(&str) -> bool) {
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

    fn set_objection(&mut self, reason: String) {
        self.objection.get_or_insert(reason);
    }

    fn dependencies(self, mut references: References) -> Vec<TableDependency> {
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

impl Analysis {
    /// What the feed must report for these dependencies.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Selection> + '_ {
        // Results of a statement that writes are not kept.
        let depends = self.depends.iter().filter(|_| self.readonly);
        depends.flat_map(|dep| {
            let selection = |rows| Selection {
                table: dep.table.clone(),
                rows,
                reads: dep.reads.clone(),
            };
            let restrictions = dep.references.iter().flatten();
            let some = restrictions.filter_map(|found| self.rows_of(found));
            // Also a reference that is restricted may come to depend on all rows. That anything has
            // changed is always reported.
            let all = (dep.reads != ColumnSet::All).then_some(SelectedRows::All);
            some.chain(all).map(selection)
        })
    }

    fn rows_of(&self, restriction: &Restriction) -> Option<SelectedRows> {
        let column = restriction.column.clone();
        Some(match &restriction.values {
            Values::First(index) => SelectedRows::First {
                column,
                is_descending: self.first_rows[*index].is_descending,
            },
            Values::Given(_) | Values::Witnessed(_) => {
                SelectedRows::Equal(column, restriction.class?)
            }
        })
    }

    /// The tables that its results are read from, each with the tag that every change to it
    /// touches.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (String, millpond_store::Tag)> + '_ {
        let depends = self.depends.iter();
        depends.map(|dep| (dep.table.clone(), tags::broad(&dep.table)))
    }

    /// The dependencies of one execution, which has given these rows. `run` runs a witness in its
    /// snapshot.
    pub(crate) fn deps(
        &self,
        params: &[Value],
        rows: &[Vec<Value>],
        clock_was_read: bool,
        run: &mut RunWitness<'_>,
    ) -> Deps {
        let mut all = Vec::with_capacity(self.depends.len() * 2);
        let mut witnesses = WitnessRun::new(&self.witnesses, &self.first_rows, (params, rows), run);
        for dep in &self.depends {
            dep.tags(&mut witnesses, &mut all);
        }
        let clock = || {
            clock_was_read.then(|| Arc::from("a date function was given 'now' and read the clock"))
        };
        Deps {
            tags: all,
            uncacheable: self.uncacheable.clone().or_else(clock),
            reads_clock_alone: self.reads_clock_alone,
        }
    }

    /// Whether no reason but the clock keeps a result from being kept.
    pub(crate) fn may_end_by_clock(&self) -> bool {
        self.reads_clock_alone
    }
}

impl TableDependency {
    /// Counts only changes to these columns.
    fn read(&mut self, columns: ColumnSet) {
        for restriction in self.references.iter_mut().flatten() {
            restriction.name = restriction.name.reading(&columns);
        }
        self.reads = columns;
    }

    fn tags(&self, witnesses: &mut WitnessRun<'_, '_>, into: &mut Vec<millpond_store::Tag>) {
        let narrow = self.narrow_tags(witnesses);
        if narrow.is_some() || self.reads != ColumnSet::All {
            // Also touched by a transaction that began before the feed knew of these tags.
            into.push(tags::bulk(&self.table));
        }
        match narrow {
            Some(narrow) => into.extend(narrow),
            None => into.push(tags::broad_reading(&self.table, &self.reads)),
        }
    }

    /// The tags of the rows that count; none if every row does.
    fn narrow_tags(&self, witnesses: &mut WitnessRun<'_, '_>) -> Option<Vec<millpond_store::Tag>> {
        let mut narrow = Vec::new();
        for alternatives in &self.references {
            // A value without a canonical form ('07' for an integer column) excludes an
            // alternative.
            let tags = alternatives
                .iter()
                .find_map(|restriction| witnesses.tags(restriction));
            narrow.extend(tags?);
        }
        (!self.references.is_empty()).then_some(narrow)
    }
}
