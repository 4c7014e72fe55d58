//! The tables of one SELECT (or UPDATE, DELETE), and the resolution of column names among them.

use std::collections::BTreeSet;

use sqlparser::ast::{Expr, ObjectName, Select, TableFactor, TableWithJoins};

use super::derived::{Derived, plain_select};
use crate::sqlite::catalog::{Catalog, CatalogTable, ResolvedColumn, TableKind};
use crate::sqlite::tags::EqualityClass;

/// Views and subqueries are looked through this deep.
const DEEPEST: usize = 8;

/// One entry of a FROM clause.
pub(crate) struct Factor<'a> {
    /// The name that qualifies its columns, lower-case.
    alias: Option<String>,
    /// The table and its lower-case name; `None` for any other source.
    table: Option<(String, &'a CatalogTable)>,
    /// The SELECT of a view or subquery, if its columns are known.
    derived: Option<Derived>,
    /// The name of the view.
    pub(crate) view: Option<String>,
}

impl<'a> Factor<'a> {
    /// The stored table behind the factor.
    pub(crate) fn base(&self) -> Option<(&str, &'a CatalogTable)> {
        self.table
            .as_ref()
            .map(|(name, table)| (name.as_str(), *table))
    }

    /// The view or subquery that the factor is, if it is looked through.
    pub(crate) const fn derived(&self) -> Option<&Derived> {
        self.derived.as_ref()
    }

    /// The column with this name. None: it is unknown whether there is one.
    fn find(&self, name: &str) -> Option<Option<ResolvedColumn>> {
        match (self.base(), &self.derived) {
            (Some((_, table)), _) => Some(table.column(name)),
            (None, Some(derived)) => derived.find(name),
            (None, None) => None,
        }
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
            derived: None,
            view: None,
        }
    }

    /// A source without known columns.
    const fn unknown(alias: Option<String>) -> Self {
        Self {
            alias,
            table: None,
            derived: None,
            view: None,
        }
    }

    /// Looks through the view with this name, if it is one.
    fn look_through_view(&mut self, name: String, sources: Sources<'a, '_>, depth: usize) {
        let Some(view) = sources.catalog.table(&name) else {
            return;
        };
        let select = view.query.as_deref().and_then(plain_select);
        let Some(select) = select.filter(|_| depth < DEEPEST) else {
            return;
        };
        let scope = Scope::at_depth(&select.from, sources, depth + 1);
        let names = view.columns.iter().map(|column| column.name.clone());
        self.derived = Derived::new(select, &scope, Some(names.collect()));
        self.view = Some(name).filter(|_| self.derived.is_some());
    }

    fn new(factor: &TableFactor, sources: Sources<'a, '_>, depth: usize) -> Self {
        let Sources { catalog, shadowed } = sources;
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
                let view = base_name(name).filter(|name| !shadowed.contains(name));
                if let Some(view) = view.filter(|_| factor.table.is_none()) {
                    factor.look_through_view(view, sources, depth);
                }
                factor
            }
            TableFactor::Table { name, alias, .. } => Self::unknown(
                alias
                    .as_ref()
                    .map(|alias| lower(&alias.name.value))
                    .or_else(|| last_part(name)),
            ),
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                ..
            } => {
                let name = alias.as_ref().map(|alias| lower(&alias.name.value));
                let mut factor = Self::unknown(name);
                if let Some(select) = plain_select(subquery).filter(|_| depth < DEEPEST) {
                    let scope = Scope::at_depth(&select.from, sources, depth + 1);
                    factor.derived = Derived::new(select, &scope, None);
                }
                factor
            }
            _ => Self::unknown(None),
        }
    }
}

/// Where the names of a FROM clause are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a, 's> {
    pub(crate) catalog: &'a Catalog,
    /// The names of all common table expressions of the statement.
    pub(crate) shadowed: &'s BTreeSet<String>,
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
        Self::at_depth(from, Sources { catalog, shadowed }, 0)
    }

    fn at_depth(from: &[TableWithJoins], sources: Sources<'a, '_>, depth: usize) -> Self {
        let mut factors = Vec::new();
        for tables in from {
            factors.push(Factor::new(&tables.relation, sources, depth));
            factors.extend(
                tables
                    .joins
                    .iter()
                    .map(|join| Factor::new(&join.relation, sources, depth)),
            );
        }
        Self { factors }
    }

    /// The only factor with this name.
    pub(crate) fn named(&self, alias: &str) -> Option<usize> {
        let factors = self.factors.iter().enumerate();
        let mut named = factors.filter(|(_, factor)| factor.alias.as_deref() == Some(alias));
        let (index, _) = named.next()?;
        named.next().is_none().then_some(index)
    }

    /// The canonical form of equality with a column, if it restricts.
    pub(crate) fn class(&self, (factor, column): (usize, ResolvedColumn)) -> Option<EqualityClass> {
        let factor = &self.factors[factor];
        match (factor.base(), factor.derived(), column) {
            (Some((_, table)), ..) => table.narrowing(column).map(|(_, class)| class),
            (None, Some(derived), ResolvedColumn::Column(index)) => {
                derived.columns[index].below.map(|(_, class)| class)
            }
            _ => None,
        }
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
                    hits.extend(factor.find(&column)?.map(|found| (index, found)));
                }
                if hits.len() == 1 { hits.pop() } else { None }
            }
            Expr::CompoundIdentifier(parts) => {
                let [alias, column] = parts.as_slice() else {
                    return None;
                };
                let index = self.named(&lower(&alias.value))?;
                let found = self.factors[index].find(&lower(&column.value))??;
                Some((index, found))
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
