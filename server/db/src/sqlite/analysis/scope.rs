//! The tables of one SELECT (or UPDATE, DELETE), and the resolution of column names among them.

use std::collections::BTreeSet;

use sqlparser::ast::{Expr, ObjectName, Select, TableFactor, TableWithJoins};

use crate::sqlite::catalog::{Catalog, CatalogTable, ResolvedColumn, TableKind};

/// One entry of a FROM clause.
pub(crate) struct Factor<'a> {
    /// The name that qualifies its columns, lower-case.
    alias: Option<String>,
    /// The table and its lower-case name; `None` for any other source, whose columns are unknown.
    table: Option<(String, &'a CatalogTable)>,
}

impl<'a> Factor<'a> {
    /// The stored table behind the factor.
    pub(crate) fn base(&self) -> Option<(&str, &'a CatalogTable)> {
        self.table
            .as_ref()
            .map(|(name, table)| (name.as_str(), *table))
    }

    /// A table named outside a FROM clause.
    pub(crate) fn named(name: &ObjectName, alias: Option<String>, catalog: &'a Catalog) -> Self {
        let table = base_name(name)
            .and_then(|name| Some((catalog.table(&name)?, name)))
            .map(|(table, name)| (name, table));
        let alias = alias.or_else(|| last_part(name));
        Self {
            alias,
            table: table
                .filter(|(_, table)| matches!(table.kind, TableKind::Table | TableKind::Shadow)),
        }
    }

    fn new(factor: &TableFactor, catalog: &'a Catalog, shadowed: &BTreeSet<String>) -> Self {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let alias = alias.as_ref().map(|alias| lower(&alias.name.value));
                let mut factor = Self::named(name, alias, catalog);
                factor.table = factor.table.filter(|(name, _)| !shadowed.contains(name));
                factor
            }
            TableFactor::Table { name, alias, .. } => Self {
                alias: alias
                    .as_ref()
                    .map(|alias| lower(&alias.name.value))
                    .or_else(|| last_part(name)),
                table: None,
            },
            TableFactor::Derived { alias, .. } => Self {
                alias: alias.as_ref().map(|alias| lower(&alias.name.value)),
                table: None,
            },
            _ => Self {
                alias: None,
                table: None,
            },
        }
    }
}

/// The FROM clause of one SELECT, in order.
pub(crate) struct Scope<'a> {
    pub(crate) factors: Vec<Factor<'a>>,
}

impl<'a> Scope<'a> {
    /// `shadowed` are the names of all common table expressions of the statement.
    pub(crate) fn of(select: &Select, catalog: &'a Catalog, shadowed: &BTreeSet<String>) -> Self {
        Self::from(&select.from, catalog, shadowed)
    }

    pub(crate) fn from(
        from: &[TableWithJoins],
        catalog: &'a Catalog,
        shadowed: &BTreeSet<String>,
    ) -> Self {
        let mut factors = Vec::new();
        for tables in from {
            factors.push(Factor::new(&tables.relation, catalog, shadowed));
            factors.extend(
                tables
                    .joins
                    .iter()
                    .map(|join| Factor::new(&join.relation, catalog, shadowed)),
            );
        }
        Self { factors }
    }

    /// The factor and column of an expression, if it is a bare column name without ambiguity.
    pub(crate) fn resolve(&self, expr: &Expr) -> Option<(usize, ResolvedColumn)> {
        match expr {
            Expr::Nested(inner) => self.resolve(inner),
            Expr::Identifier(column) => {
                let column = lower(&column.value);
                let mut hits = Vec::new();
                for (index, factor) in self.factors.iter().enumerate() {
                    // A factor with unknown columns might have this one.
                    let (_, table) = factor.base()?;
                    hits.extend(table.column(&column).map(|found| (index, found)));
                }
                if hits.len() == 1 { hits.pop() } else { None }
            }
            Expr::CompoundIdentifier(parts) => {
                let [alias, column] = parts.as_slice() else {
                    return None;
                };
                let (alias, column) = (lower(&alias.value), lower(&column.value));
                let mut named = self
                    .factors
                    .iter()
                    .enumerate()
                    .filter(|(_, factor)| factor.alias.as_ref() == Some(&alias));
                let (index, factor) = named.next()?;
                if named.next().is_some() {
                    return None;
                }
                factor.base()?.1.column(&column).map(|found| (index, found))
            }
            _ => None,
        }
    }
}

/// SQLite folds the case of ASCII letters only.
pub(crate) fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The table that `t` or `main.t` names.
pub(crate) fn base_name(name: &ObjectName) -> Option<String> {
    let part = |index: usize| {
        name.0
            .get(index)?
            .as_ident()
            .map(|ident| lower(&ident.value))
    };
    match name.0.len() {
        1 => part(0),
        2 => part(0)
            .filter(|schema| schema == "main")
            .and_then(|_| part(1)),
        _ => None,
    }
}

/// The name without its schema.
pub(crate) fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(|ident| lower(&ident.value))
}
