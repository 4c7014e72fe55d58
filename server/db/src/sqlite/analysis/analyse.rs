//! Analyses a statement: puts together what SQLite reports of it and what its text says.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::Connection;
use sqlparser::ast::Statement;

use super::plans::Plans;
use super::references::References;
use super::resolve::TableResolver;
use super::{
    Analysis, TableDependency, column_reads, defaults, derived, documents, functions,
    parameter_kinds, scope, written,
};
use crate::SqlError;
use crate::query::{Param, QueryFacts, strip_sigil};
use crate::sqlite::catalog::Catalog;
use crate::sqlite::hint;
use crate::sqlite::recorder::{AuthorizerRecord, Recorder, StatementPolicy};
use crate::sqlite::triggers::is_own_table;

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
    let prepared = prepared.map_err(|error| hint::explain(&error, sql, &recorded, catalog))?;
    if prepared.readonly && prepared.columns.is_empty() {
        return Err(SqlError::no_query("there is no statement here"));
    }
    let statement = RecordedStatement {
        connection,
        recorder,
        catalog,
        sql,
        indexes: prepared.indexes(),
        prepared,
        recorded,
        tree: scope::parse(sql),
    };
    Ok(statement.analysis())
}

/// A statement that SQLite has accepted, and what it has reported of it.
struct RecordedStatement<'a> {
    connection: &'a Connection,
    recorder: &'a Recorder,
    catalog: &'a Catalog,
    sql: &'a str,
    prepared: PreparedFacts,
    /// The places of the parameters.
    indexes: HashMap<String, usize>,
    recorded: AuthorizerRecord,
    /// None if the text is not understood.
    tree: Option<Statement>,
}

impl RecordedStatement<'_> {
    fn analysis(&self) -> Analysis {
        let mut references = self.references();
        let mut resolver = self.resolver(&references);
        let (uncacheable, reads_clock_alone) = self.objection(resolver.objection.take());
        let clock_view = clock_view(self.catalog, |name| self.names(&references, name));
        let tree = self.tree.as_ref();
        let are_all_named = tree.is_some_and(|tree| {
            column_reads::are_all_named(tree, &references.common, self.catalog)
        });
        let witnesses = std::mem::take(&mut references.witnesses);
        let first_rows = std::mem::take(&mut references.first_rows);
        let mut depends = resolver.dependencies(references);
        for dep in &mut depends {
            let columns = self.recorded.reads.get(&dep.table);
            let TableDependency { table, .. } = &dep;
            let read = column_reads::of_table(table, columns, are_all_named, self.catalog);
            dep.read(read);
        }
        Analysis {
            key: self.catalog.key,
            facts: self.facts(reads_clock_alone),
            depends,
            witnesses,
            first_rows,
            uncacheable: uncacheable.map(Arc::from),
            clock_view,
        }
    }

    /// Finds the references that the text restricts; none if it is not understood.
    fn references(&self) -> References {
        let plans = Plans {
            connection: self.connection,
            recorder: self.recorder,
        };
        let tree = self.tree.as_ref();
        let found = tree.map(|tree| References::of(tree, self.catalog, &self.indexes, &plans));
        found.unwrap_or_default()
    }

    /// Resolves what is read, by the authorizer and by the names in the text.
    fn resolver(&self, references: &References) -> TableResolver<'_> {
        let mut resolver =
            TableResolver::new(self.connection, self.recorder, self.catalog, references);
        resolver.resolve_all(&self.recorded);
        resolver.add_views_named(|name| self.names(references, name));
        if self.tree.is_none() && derived::may_merge_columns(self.sql) {
            resolver.set_objection("the text of the query is not understood".into());
        }
        resolver
    }

    /// Returns whether the text names this table, or may do so where it is not understood.
    fn names(&self, references: &References, name: &str) -> bool {
        match &self.tree {
            Some(_) => references.named.contains_key(name),
            None => scope::lower(self.sql).contains(name),
        }
    }

    /// Returns why the results must not be kept, and whether it is nothing but the clock.
    /// `resolved` is what the tables that are read say.
    fn objection(&self, resolved: Option<String>) -> (Option<String>, bool) {
        let of_functions = |called| {
            let recorded = (&self.recorded, called);
            defaults::objection(self.connection, self.sql, recorded, self.prepared.readonly)
        };
        let explain = "EXPLAIN tells about the plan, not about rows";
        let other = resolved.or_else(|| self.prepared.explain.then(|| explain.to_owned()));
        let called = &self.recorded.functions;
        let reads_clock_alone =
            other.is_none() && of_functions(functions::without_clock(called)).is_none();
        let clock = self.tree.as_ref().and_then(functions::reads_clock);
        let objection = clock.or_else(|| of_functions(called.clone())).or(other);
        (objection, reads_clock_alone)
    }

    fn facts(&self, reads_clock_alone: bool) -> QueryFacts {
        let tree = self.tree.as_ref();
        let recorded = &self.recorded;
        let readonly = self.prepared.readonly;
        let named = recorded.reads.keys().chain(&recorded.writes);
        let own = |name: &&String| !name.starts_with("sqlite_") && !is_own_table(name);
        let tables: BTreeSet<&String> = named.filter(own).collect();
        let written = recorded.writes.iter().filter(|_| !readonly);
        QueryFacts {
            params: self.params(),
            documents: documents::documents(tree, self.prepared.columns.len()),
            columns: self.prepared.columns.clone(),
            readonly,
            tables: tables.into_iter().cloned().collect(),
            written: written::schema(self.connection, written),
            reads_clock_alone,
        }
    }

    fn params(&self) -> Arc<[Param]> {
        let names = &self.prepared.parameters;
        let tree = self.tree.as_ref();
        let kinds = tree.map(|tree| {
            parameter_kinds::parameter_kinds(tree, self.catalog, &self.indexes, names.len())
        });
        let param = |(index, name): (usize, &String)| Param {
            name: strip_sigil(name).to_owned(),
            kind: kinds.as_ref().and_then(|kinds| kinds[index]),
        };
        names.iter().enumerate().map(param).collect()
    }
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

/// A prepared statement as SQLite reports it.
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

    fn indexes(&self) -> HashMap<String, usize> {
        let numbered = self.parameters.iter().enumerate();
        numbered
            .map(|(index, name)| (name.clone(), index))
            .collect()
    }
}
