//! Views and subqueries in a FROM clause: which of their columns are columns of the tables below,
//! so that an equality on one restricts a reference inside (coherence.md, rule 10).
//!
//! An equality on such a column may be moved into the SELECT below if a row of the table with
//! another value gives only rows that do not count. That is not so behind LIMIT, which looks at all
//! rows, nor in an aggregate over all of them, nor in windows. Where rows are grouped, it is so for
//! the keys of the groups. What is not one plain SELECT is not looked through.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, JoinOperator, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, Visit, Visitor,
};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

use super::common_tables;
use super::functions;
use super::scope::{Scope, last_part, lower};
use crate::sqlite::catalog::ResolvedColumn;
use crate::sqlite::tags::EqualityClass;

/// A view or a subquery that is looked through.
pub(crate) struct Derived {
    /// The SELECT into which equalities may be moved; none if several references read it.
    pub(crate) select: Option<SelectId>,
    pub(crate) columns: Vec<DerivedColumn>,
}

/// Which SELECT of a tree that stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SelectId(*const Select);

impl SelectId {
    pub(crate) const fn of(select: &Select) -> Self {
        Self(std::ptr::from_ref(select))
    }
}

/// One of its columns.
#[derive(Clone, Debug)]
pub(crate) struct DerivedColumn {
    /// Lower-case; none if it is that of an expression.
    name: Option<String>,
    /// The factor and the column in the FROM clause of the SELECT, and the canonical form of
    /// equality, if an equality on it may be moved inside.
    pub(crate) below: Option<((usize, ResolvedColumn), EqualityClass)>,
}

/// The text of a view, as far as it is understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewText {
    /// What it selects, unless it has names that could be taken for tables.
    pub(crate) query: Option<Box<Query>>,
    /// All names of tables in it; none if it cannot be read.
    pub(crate) names: Option<BTreeSet<String>>,
}

impl ViewText {
    /// From the text of `CREATE VIEW`.
    pub(crate) fn of(sql: &str) -> Self {
        let statements = Parser::parse_sql(&SQLiteDialect {}, sql);
        let Some(Statement::CreateView(view)) = statements.ok().and_then(|mut all| all.pop())
        else {
            // The authorizer names all tables but those of which only such columns are read.
            let names = (!may_merge_columns(sql)).then(BTreeSet::new);
            return Self { query: None, names };
        };
        let names = common_tables::names_read(&view.query);
        let is_plain = !common_tables::has_any(&view.query);
        Self {
            query: is_plain.then_some(view.query),
            names: Some(names),
        }
    }
}

/// True if a text that is not understood may join by USING or NATURAL. SQLite's authorizer is not
/// asked for the columns of such a join.
pub(super) fn may_merge_columns(sql: &str) -> bool {
    let sql = lower(sql);
    ["using", "natural"].iter().any(|word| sql.contains(word))
}

/// The SELECT that a query is, if it does not choose among its rows.
pub(super) fn plain_select(query: &Query) -> Option<&Select> {
    let chooses = query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    match query.body.as_ref() {
        SetExpr::Select(select) if !chooses => Some(select),
        _ => None,
    }
}

impl Derived {
    /// The columns of `select`, whose FROM clause is `scope`; none if they are not all known.
    /// `names` are those that a view gives them.
    pub(super) fn new(
        select: &Select,
        scope: &Scope<'_>,
        names: Option<Vec<String>>,
    ) -> Option<Self> {
        let passes = Passage::of(select, scope);
        let mut columns = Vec::new();
        for item in &select.projection {
            columns.extend(columns_of(item, select, scope)?);
        }
        for column in &mut columns {
            column.below = column.below.filter(|(below, _)| passes.lets(*below));
        }
        if let Some(names) = names {
            if names.len() != columns.len() {
                return None;
            }
            for (column, name) in columns.iter_mut().zip(names) {
                column.name = Some(name);
            }
        }
        Some(Self {
            select: Some(SelectId::of(select)),
            columns,
        })
    }

    /// The place of the only column with this name. None: there are several, or perhaps another
    /// one.
    pub(super) fn find(&self, name: &str) -> Option<Option<ResolvedColumn>> {
        if matches!(name, "rowid" | "oid" | "_rowid_") {
            return None;
        }
        let mut named = self.columns.iter().enumerate();
        let mut named = named
            .by_ref()
            .filter(|(_, column)| column.name.as_deref() == Some(name));
        let first = named.next();
        match named.next() {
            Some(_) => None,
            None => Some(first.map(|(index, _)| ResolvedColumn::Column(index))),
        }
    }
}

/// The columns that an item of a SELECT list gives; none if they are not known.
fn columns_of(item: &SelectItem, select: &Select, scope: &Scope<'_>) -> Option<Vec<DerivedColumn>> {
    let one = |expr: &Expr, name| {
        let found = scope.resolve(expr);
        let below = found.and_then(|found| Some((found, scope.class(found)?)));
        Some(vec![DerivedColumn { name, below }])
    };
    match item {
        SelectItem::UnnamedExpr(expr) => {
            let name = match expr {
                Expr::Identifier(column) => Some(lower(&column.value)),
                Expr::CompoundIdentifier(parts) => parts.last().map(|part| lower(&part.value)),
                _ => None,
            };
            one(expr, name)
        }
        SelectItem::ExprWithAlias { expr, alias } => one(expr, Some(lower(&alias.value))),
        SelectItem::Wildcard(_) if merges_columns(select) => None,
        SelectItem::Wildcard(_) => {
            let mut all = Vec::new();
            for factor in 0..scope.factors.len() {
                all.extend(all_columns(scope, factor)?);
            }
            Some(all)
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            all_columns(scope, scope.named(&last_part(name)?)?)
        }
        _ => None,
    }
}

/// Whether a join gives only one of two columns.
pub(super) fn merges_columns(select: &Select) -> bool {
    let joins = select.from.iter().flat_map(|tables| &tables.joins);
    joins.into_iter().any(|join| match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => {
            !matches!(constraint, JoinConstraint::On(_) | JoinConstraint::None)
        }
        _ => true,
    })
}

fn all_columns(scope: &Scope<'_>, factor: usize) -> Option<Vec<DerivedColumn>> {
    let names: Vec<Option<String>> = match scope.factors[factor].derived() {
        Some(derived) => derived
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect(),
        None => {
            let (_, table) = scope.factors[factor].base()?;
            table
                .columns
                .iter()
                .map(|column| Some(column.name.clone()))
                .collect()
        }
    };
    let columns = names.into_iter().enumerate().map(|(index, name)| {
        let column = (factor, ResolvedColumn::Column(index));
        let below = scope.class(column).map(|class| (column, class));
        DerivedColumn { name, below }
    });
    Some(columns.collect())
}

/// True if a row of the SELECT shows that a row of its FROM clause meets its conditions.
pub(super) fn keeps_rows(select: &Select, scope: &Scope<'_>) -> bool {
    !matches!(Passage::of(select, scope), Passage::None)
}

/// True if each row of the FROM clause that meets the conditions gives a row of the SELECT, which
/// no other row has a part in. `order` are the terms of ORDER BY.
pub(super) fn gives_a_row_each<'e>(
    select: &Select,
    order: impl Iterator<Item = &'e Expr>,
    scope: &Scope<'_>,
) -> bool {
    let mut functions = FunctionSearch::default();
    order.for_each(|term| {
        let _ = term.visit(&mut functions);
    });
    let is_plain = !functions.has_window && !functions.may_aggregate && select.distinct.is_none();
    is_plain && matches!(Passage::of(select, scope), Passage::All)
}

/// Which columns let an equality pass into a SELECT.
enum Passage {
    All,
    None,
    /// Only the keys of its groups.
    Keys(Vec<(usize, ResolvedColumn)>),
}

impl Passage {
    fn of(select: &Select, scope: &Scope<'_>) -> Self {
        let mut functions = FunctionSearch::default();
        for item in &select.projection {
            let _ = item.visit(&mut functions);
        }
        let _ = select.having.visit(&mut functions);
        let keys = match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => keys,
            _ => return Self::None,
        };
        if functions.has_window || !select.named_window.is_empty() {
            return Self::None;
        }
        match keys.is_empty() {
            true if functions.may_aggregate || select.having.is_some() => Self::None,
            true => Self::All,
            false => Self::Keys(keys.iter().filter_map(|key| scope.resolve(key)).collect()),
        }
    }

    fn lets(&self, column: (usize, ResolvedColumn)) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Keys(keys) => keys.contains(&column),
        }
    }
}

/// Whether expressions have windows, or functions that might aggregate.
#[derive(Default)]
struct FunctionSearch {
    has_window: bool,
    may_aggregate: bool,
    /// How many subqueries are around the current place.
    depth: usize,
}

impl Visitor for FunctionSearch {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            let name = last_part(&function.name).unwrap_or_default();
            // The count of all rows is the subquery's own. With columns of this SELECT alone an
            // aggregate in a subquery would be this SELECT's.
            let is_of_subquery = self.depth > 0 && functions::counts_rows(function);
            self.has_window |= function.over.is_some();
            self.may_aggregate |= !functions::is_of_one_row(&name) && !is_of_subquery;
        }
        ControlFlow::Continue(())
    }
}
