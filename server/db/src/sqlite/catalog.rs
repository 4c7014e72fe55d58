//! Tables and columns of the schema, as far as dependencies need them.

mod load;

use std::collections::{BTreeSet, HashMap};

use sqlparser::ast::Query;

use crate::ValueKind;
use crate::precision::ValueClass;
use crate::sqlite::tags::ROWID;

/// Identifies one state of the schema: the file (which can be replaced at run time) and the version
/// of its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SchemaKey {
    pub(crate) generation: u64,
    pub(crate) version: i64,
}

/// The kind of object that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// A table with its own rows, which the preupdate hook reports.
    Table,
    View,
    /// A table that stores a part of a virtual table; its rows are reported like those of any other
    /// table.
    Shadow,
    Virtual(VirtualTable),
}

/// Tables in which a virtual table keeps its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VirtualTable {
    /// The module, lower-case.
    pub(crate) module: String,
    /// Its shadow tables, lower-case.
    pub(crate) shadows: Vec<String>,
    /// The table or view that supplies the columns of an external-content index, lower-case.
    pub(crate) content: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct CatalogColumn {
    /// Lower-case.
    pub(crate) name: String,
    /// The kind of its declared type; `None` if SQLite accepts any value.
    pub(crate) kind: Option<ValueKind>,
    /// The canonical form of equality with the column, if there is one.
    pub(crate) class: Option<ValueClass>,
    /// True if it was declared NOT NULL.
    pub(crate) is_never_null: bool,
    /// True if texts in it are ordered by their bytes, in UTF-8.
    pub(crate) has_binary_order: bool,
}

/// One table, view or virtual table.
#[derive(Clone, Debug)]
pub(crate) struct CatalogTable {
    pub(crate) kind: TableKind,
    pub(crate) columns: Vec<CatalogColumn>,
    /// The column that is an alias of the rowid.
    pub(crate) rowid_column: Option<usize>,
    /// True if rows have a rowid that can be selected.
    pub(crate) has_rowid: bool,
    /// True if equalities on its columns may make narrow dependencies.
    pub(crate) can_narrow: bool,
    /// Query of a view, if it is understood.
    pub(crate) query: Option<Box<Query>>,
    /// All names of tables in the text of a view; none if it cannot be read.
    pub(crate) names: Option<BTreeSet<String>>,
    /// The date function by which a view reads the clock, if its text shows one.
    pub(crate) clock: Option<String>,
}

impl CatalogTable {
    /// The column that a name in a statement refers to, including `rowid` and its two other names.
    pub(crate) fn column(&self, name: &str) -> Option<ResolvedColumn> {
        if let Some(index) = self.columns.iter().position(|column| column.name == name) {
            return Some(ResolvedColumn::Column(index));
        }
        if !self.has_rowid || !matches!(name, "rowid" | "oid" | "_rowid_") {
            return None;
        }
        Some(
            self.rowid_column
                .map_or(ResolvedColumn::Rowid, ResolvedColumn::Column),
        )
    }

    /// The canonical name and class of the column, if equality with it can narrow a dependency.
    pub(crate) fn narrowing(&self, found: ResolvedColumn) -> Option<(String, ValueClass)> {
        if !self.can_narrow {
            return None;
        }
        match found {
            ResolvedColumn::Column(index) => self.columns[index]
                .class
                .map(|class| (self.columns[index].name.clone(), class)),
            ResolvedColumn::Rowid => Some((self.rowid_name()?, ValueClass::Integer)),
        }
    }

    /// The canonical name of the column, if the first rows in its order can be a dependency.
    pub(crate) fn ordering(&self, found: ResolvedColumn) -> Option<String> {
        match found {
            ResolvedColumn::Column(index) => {
                let column = &self.columns[index];
                (self.can_narrow && column.has_binary_order).then(|| column.name.clone())
            }
            ResolvedColumn::Rowid => self.rowid_name().filter(|_| self.can_narrow),
        }
    }

    /// True if the column is the rowid, which is never null.
    pub(crate) fn is_rowid(&self, found: ResolvedColumn) -> bool {
        match found {
            ResolvedColumn::Column(index) => self.rowid_column == Some(index),
            ResolvedColumn::Rowid => true,
        }
    }

    /// True if the column has no nulls.
    pub(crate) fn is_never_null(&self, found: ResolvedColumn) -> bool {
        let is_declared = match found {
            ResolvedColumn::Column(index) => self.columns[index].is_never_null,
            ResolvedColumn::Rowid => false,
        };
        is_declared || self.is_rowid(found)
    }

    /// The name of the rowid, unless a column has it.
    fn rowid_name(&self) -> Option<String> {
        let is_free = self.columns.iter().all(|column| column.name != ROWID);
        is_free.then(|| ROWID.to_owned())
    }

    /// The kind of a parameter that is compared with the column.
    pub(crate) fn kind_of(&self, found: ResolvedColumn) -> Option<ValueKind> {
        match found {
            ResolvedColumn::Column(index) => self.columns[index].kind,
            ResolvedColumn::Rowid => Some(ValueKind::Integer),
        }
    }
}

/// A resolved column name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedColumn {
    Column(usize),
    /// The rowid of a table in which no column is an alias of it.
    Rowid,
}

/// The schema of the main database.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) key: SchemaKey,
    /// By lower-case name.
    pub(crate) tables: HashMap<String, CatalogTable>,
}

impl Catalog {
    pub(crate) fn table(&self, name: &str) -> Option<&CatalogTable> {
        self.tables.get(name)
    }

    /// The tables with rows of their own, lower-case.
    pub(crate) fn stored_tables(&self) -> impl Iterator<Item = &str> {
        let is_stored =
            |table: &CatalogTable| matches!(table.kind, TableKind::Table | TableKind::Shadow);
        let stored = self
            .tables
            .iter()
            .filter(move |(_, table)| is_stored(table));
        stored.map(|(name, _)| name.as_str())
    }
}
