//! The tables of one SELECT (or UPDATE, DELETE), and the resolution of column names among them.

use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, Statement, TableFactor,
    TableWithJoins,
};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

use super::common_tables::CommonTables;
use super::derived::{Derived, selects};
use crate::ValueKind;
use crate::precision::{ValueClass, model};
use crate::sqlite::catalog::{Catalog, CatalogTable, ResolvedColumn, TableKind};
use crate::sqlite::tags::ROWID;

/// Views and subqueries are looked through this deep.
const DEEPEST: usize = 8;

/// A factor of a FROM clause, and one of its columns.
pub(super) type FactorColumn = (usize, ResolvedColumn);

/// Returns the number by which a column is reasoned about.
pub(super) const fn place(column: ResolvedColumn) -> usize {
    match column {
        ResolvedColumn::Column(index) => index,
        ResolvedColumn::Rowid => usize::MAX,
    }
}

/// Returns the column with this number.
pub(super) const fn resolved(place: usize) -> ResolvedColumn {
    match place {
        usize::MAX => ResolvedColumn::Rowid,
        index => ResolvedColumn::Column(index),
    }
}

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

    /// The names by which a witness reads the factor, unless it is a subquery.
    pub(super) fn names_for_witness(&self, catalog: &'a Catalog) -> Option<WitnessNames<'a>> {
        let (table, source, is_view) = match (self.base(), &self.view) {
            (Some((name, table)), _) => (name, table, false),
            (None, Some(view)) => (view.as_str(), catalog.table(view)?, true),
            (None, None) => return None,
        };
        Some(WitnessNames {
            table: table.to_owned(),
            source,
            is_view,
        })
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
        let names = view.columns.iter().map(|column| column.name.clone());
        let query = view.query.as_deref();
        self.derived =
            query.and_then(|query| look_through(query, Some(names.collect()), sources, depth));
        self.view = Some(name).filter(|_| self.derived.is_some());
    }

    /// Looks through the common table expression with this name, if it is a plain one.
    fn look_through_common_table(&mut self, name: &str, sources: Sources<'a, '_>, depth: usize) {
        let Some(table) = sources.common.plain.get(name) else {
            return;
        };
        self.derived = look_through(table.query(), table.columns.clone(), sources, depth);
        if let Some(derived) = &mut self.derived {
            derived.selects.clone_from(&table.selects);
            derived.is_read_once = table.is_read_once;
        }
    }

    fn new(factor: &TableFactor, sources: Sources<'a, '_>, depth: usize) -> Self {
        let Sources { catalog, common } = sources;
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let alias = alias.as_ref().map(|alias| lower(&alias.name.value));
                let mut factor = Self::named(name, alias, catalog);
                let is_common = |name: &String| common.names.contains(name);
                factor.table = factor.table.filter(|(name, _)| !is_common(name));
                match base_name(name) {
                    Some(name) if is_common(&name) => {
                        factor.look_through_common_table(&name, sources, depth);
                    }
                    Some(view) if factor.table.is_none() => {
                        factor.look_through_view(view, sources, depth);
                    }
                    _ => {}
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
                Self {
                    derived: look_through(subquery, None, sources, depth),
                    ..Self::unknown(name)
                }
            }
            _ => Self::unknown(None),
        }
    }
}

/// The columns of a query in a FROM clause, if they are known. `names` are those that a view gives
/// them.
fn look_through(
    query: &Query,
    names: Option<Vec<String>>,
    sources: Sources<'_, '_>,
    depth: usize,
) -> Option<Derived> {
    let selects = selects(query).filter(|_| depth < DEEPEST)?;
    let selects = selects.into_iter().map(|select| {
        let scope = Scope::at_depth(&select.from, sources, depth + 1);
        (select, scope)
    });
    Derived::new(&selects.collect::<Vec<_>>(), names)
}

/// Catalog and tables in which the names of a FROM clause are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a, 's> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) common: &'s CommonTables,
}

impl Sources<'_, '_> {
    /// True if `json_each` is SQLite's own, and no table or table expression of the owner.
    pub(super) fn has_own_lists(&self) -> bool {
        const LISTS: &str = "json_each";
        self.catalog.table(LISTS).is_none() && !self.common.names.contains(LISTS)
    }
}

/// The FROM clause of one SELECT, in order.
pub(crate) struct Scope<'a> {
    pub(crate) factors: Vec<Factor<'a>>,
    /// The columns that a join by USING has merged into those of the same name on its left, each
    /// with its factor. Empty if there is a RIGHT or FULL join, which may give either of the two.
    merged: Vec<(usize, String)>,
}

impl<'a> Scope<'a> {
    /// True if this lower-case name qualifies columns of one of the tables.
    pub(crate) fn has_factor(&self, name: &str) -> bool {
        let mut factors = self.factors.iter();
        factors.any(|factor| factor.alias.as_deref() == Some(name))
    }

    pub(crate) fn of(select: &Select, sources: Sources<'a, '_>) -> Self {
        Self::from(&select.from, sources)
    }

    pub(crate) fn from(from: &[TableWithJoins], sources: Sources<'a, '_>) -> Self {
        Self::at_depth(from, sources, 0)
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
        Self {
            factors,
            merged: merged(from).unwrap_or_default(),
        }
    }

    /// A FROM clause of these factors, without joins.
    pub(crate) const fn without_joins(factors: Vec<Factor<'a>>) -> Self {
        Self {
            factors,
            merged: Vec::new(),
        }
    }

    /// The pairs of columns, left and right, of the join by USING whose right side is `factor`.
    pub(super) fn merged_columns(&self, factor: usize) -> Vec<(FactorColumn, FactorColumn)> {
        let merged = self.merged.iter().filter(|(right, _)| *right == factor);
        let pairs = merged.filter_map(|(right, name)| {
            let mut factors = self.factors[..*right].iter().enumerate();
            // SQLite takes the leftmost column of this name.
            let left = factors.find_map(|(left, factor)| match factor.find(name) {
                Some(None) => None,
                Some(Some(found)) => Some(Some((left, found))),
                None => Some(None),
            });
            let right = (*right, self.factors[*right].find(name)??);
            Some((left??, right))
        });
        pairs.collect()
    }

    /// True if an expression certainly names no column here, but perhaps one of a SELECT around
    /// this one.
    pub(super) fn lacks(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.lacks(inner),
            Expr::CompoundIdentifier(parts) if parts.len() == 2 => {
                let wanted = lower(&parts[0].value);
                let mut names = self.factors.iter().map(|factor| factor.alias.as_ref());
                names.all(|name| name.is_some_and(|name| *name != wanted))
            }
            _ => false,
        }
    }

    /// The only factor with this name.
    pub(crate) fn named(&self, alias: &str) -> Option<usize> {
        let factors = self.factors.iter().enumerate();
        let mut named = factors.filter(|(_, factor)| factor.alias.as_deref() == Some(alias));
        let (index, _) = named.next()?;
        named.next().is_none().then_some(index)
    }

    /// The canonical form of equality with a column, if it restricts.
    pub(crate) fn class(&self, (factor, column): (usize, ResolvedColumn)) -> Option<ValueClass> {
        let factor = &self.factors[factor];
        match (factor.base(), factor.derived(), column) {
            (Some((_, table)), ..) => table.narrowing(column).map(|(_, class)| class),
            (None, Some(derived), ResolvedColumn::Column(index)) => derived.columns[index].class,
            _ => None,
        }
    }

    /// The column as it is reasoned about, if equality with it has a canonical form.
    pub(super) fn factor_column(&self, column: FactorColumn) -> Option<model::FactorColumn> {
        Some(model::FactorColumn {
            factor: column.0,
            column: place(column.1),
            class: self.class(column)?,
        })
    }

    /// The kind of a parameter that is compared with a column.
    pub(super) fn kind(&self, (factor, column): FactorColumn) -> Option<ValueKind> {
        let factor = &self.factors[factor];
        match (factor.base(), factor.derived(), column) {
            (Some((_, table)), ..) => table.kind_of(column),
            (None, Some(derived), ResolvedColumn::Column(index)) => derived.columns[index].kind,
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
                let is_merged = |factor: usize| self.merged.contains(&(factor, column.clone()));
                hits.retain(|(factor, _)| !is_merged(*factor));
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

/// The columns that joins by USING merge; none if a join may give either of two columns.
fn merged(from: &[TableWithJoins]) -> Option<Vec<(usize, String)>> {
    let mut merged = Vec::new();
    let mut index = 0;
    for tables in from {
        for join in &tables.joins {
            index += 1;
            let (JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)) = &join.join_operator
            else {
                return None;
            };
            match constraint {
                JoinConstraint::Using(names) => {
                    let names = names.iter().filter_map(last_part);
                    merged.extend(names.map(|name| (index, name)));
                }
                JoinConstraint::Natural => return None,
                _ => {}
            }
        }
        index += 1;
    }
    Some(merged)
}

/// How a witness names the columns of a factor.
pub(crate) struct WitnessNames<'a> {
    /// The name of the table or view.
    pub(super) table: String,
    source: &'a CatalogTable,
    is_view: bool,
}

impl WitnessNames<'_> {
    pub(super) const fn is_table(&self) -> bool {
        !self.is_view
    }

    pub(super) fn column(&self, column: ResolvedColumn) -> Option<String> {
        match column {
            ResolvedColumn::Column(index) => Some(self.source.columns[index].name.clone()),
            ResolvedColumn::Rowid => {
                // A column may have the same name.
                let mut columns = self.source.columns.iter();
                let is_hidden = columns.any(|column| column.name == ROWID);
                (!is_hidden && !self.is_view).then(|| ROWID.to_owned())
            }
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

/// Reads a text that is one statement.
pub(super) fn parse(sql: &str) -> Option<Statement> {
    let mut statements = Parser::parse_sql(&SQLiteDialect {}, sql).ok()?;
    if statements.len() == 1 {
        statements.pop()
    } else {
        None
    }
}
