//! Views and subqueries in a FROM clause: which of their columns are columns of the tables below,
//! so that an equality on one restricts a reference inside (coherence.md, rule 10).
//!
//! An equality on such a column may be moved into the SELECT below if a row of the table with
//! another value gives only rows that do not count. That is not so behind LIMIT, which looks at all
//! rows, nor in an aggregate over all of them. Where rows are grouped, or have windows, it is so
//! for the columns that are a key of the groups and of each window.
//!
//! A set operation decides by equal rows alone, so rows with other values in one column have no
//! part in those that count, in whichever SELECT they are. An equality is moved into each of its
//! SELECTs that lets it pass, if all of them give columns of one canonical form: SQLite compares
//! with the affinity of one of them, which it does not say.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, JoinConstraint, JoinOperator, NamedWindowDefinition,
    NamedWindowExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    SetQuantifier, Statement, TableFactor, Visitor, WindowType,
};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

use super::common_tables;
use super::functions;
use super::literals::has_odd_literal;
use super::scope::{FactorColumn, Scope, last_part, lower};
use super::walk::{walk, walk_expressions};
use crate::ValueKind;
use crate::precision::{ValueClass, model};
use crate::sqlite::catalog::ResolvedColumn;

/// A view or a subquery that is looked through.
pub(crate) struct Derived {
    /// The SELECTs that give its rows.
    pub(crate) selects: Vec<SelectId>,
    /// True if no other reference reads these.
    pub(super) is_read_once: bool,
    pub(crate) columns: Vec<DerivedColumn>,
}

/// Identity of a SELECT in a tree that stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SelectId(*const Select);

impl SelectId {
    pub(crate) const fn of(select: &Select) -> Self {
        Self(std::ptr::from_ref(select))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DerivedColumn {
    /// Lower-case; none if it is not certain.
    name: Option<String>,
    /// The canonical form of equality, if an equality on it may be moved into a SELECT.
    pub(crate) class: Option<ValueClass>,
    /// The kind of a parameter that is compared with it.
    pub(crate) kind: Option<ValueKind>,
    /// For each SELECT the factor and the column in its FROM clause, if an equality may be moved
    /// there.
    pub(crate) below: Vec<Option<FactorColumn>>,
}

impl DerivedColumn {
    fn new(name: Option<String>, column: Option<FactorColumn>, scope: &Scope<'_>) -> Self {
        let class = column.and_then(|column| scope.class(column));
        Self {
            name,
            class,
            kind: column.and_then(|column| scope.kind(column)),
            below: vec![column.filter(|_| class.is_some())],
        }
    }
}

/// The text of a view, as far as it is understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewText {
    /// Its query, unless that has names that could be taken for tables.
    pub(crate) query: Option<Box<Query>>,
    /// All names of tables in it; none if it cannot be read.
    pub(crate) names: Option<BTreeSet<String>>,
    /// The date function by which it reads the clock, if one is seen to.
    pub(crate) clock: Option<String>,
}

impl ViewText {
    /// From the text of `CREATE VIEW`.
    pub(crate) fn of(sql: &str) -> Self {
        let statements = Parser::parse_sql(&SQLiteDialect {}, sql);
        let Some(Statement::CreateView(view)) = statements.ok().and_then(|mut all| all.pop())
        else {
            // The authorizer names all tables but those of which only such columns are read.
            let names = (!may_merge_columns(sql)).then(BTreeSet::new);
            return Self {
                names,
                ..Self::default()
            };
        };
        let names = common_tables::names_read(&view.query);
        let is_plain = !common_tables::has_any(&view.query);
        Self {
            clock: functions::clock_function(&view.query),
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
    match selects(query)?.as_slice() {
        [select] => Some(select),
        _ => None,
    }
}

/// The SELECTs whose rows a query gives or compares by set operations, if it does not choose among
/// its rows. An ORDER BY might bring another collation into the comparison.
pub(super) fn selects(query: &Query) -> Option<Vec<&Select>> {
    let chooses = query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    let mut found = Vec::new();
    let compares = arms(&query.body, &mut found)?;
    let is_ordered = compares && query.order_by.is_some();
    (!chooses && !is_ordered).then_some(found)
}

/// Adds the SELECTs of a set operation. Gives whether it compares rows; none if there is anything
/// but SELECTs.
fn arms<'q>(body: &'q SetExpr, into: &mut Vec<&'q Select>) -> Option<bool> {
    match body {
        SetExpr::Select(select) => {
            into.push(select);
            Some(false)
        }
        SetExpr::SetOperation {
            left,
            set_quantifier,
            right,
            ..
        } => {
            let compares = arms(left, into)? | arms(right, into)?;
            Some(compares || *set_quantifier != SetQuantifier::All)
        }
        _ => None,
    }
}

impl Derived {
    /// The columns of SELECTs, each with its FROM clause; none if they are not all known. `names`
    /// are those that a view gives them.
    pub(super) fn new(
        selects: &[(&Select, Scope<'_>)],
        names: Option<Vec<String>>,
    ) -> Option<Self> {
        let mut all = selects.iter();
        let (select, scope) = all.next()?;
        let mut columns = columns_of_select(select, scope)?;
        for (select, scope) in all {
            let others = columns_of_select(select, scope)?;
            if others.len() != columns.len() {
                return None;
            }
            for (column, other) in columns.iter_mut().zip(others) {
                column.class = column.class.filter(|_| column.class == other.class);
                column.kind = column.kind.filter(|_| column.kind == other.kind);
                column.below.extend(other.below);
            }
        }
        for column in &mut columns {
            let passes = column.below.iter().any(Option::is_some);
            column.class = column.class.filter(|_| passes);
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
            selects: selects.iter().map(|(one, _)| SelectId::of(one)).collect(),
            is_read_once: true,
            columns,
        })
    }

    /// The place of the only column with this name. None: there are several, or there may be
    /// another one.
    ///
    /// Counterexample: the first column of `SELECT (n), id AS n` is called `n`.
    pub(super) fn find(&self, name: &str) -> Option<Option<ResolvedColumn>> {
        let are_all_named = self.columns.iter().all(|column| column.name.is_some());
        if matches!(name, "rowid" | "oid" | "_rowid_") || !are_all_named {
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

/// The columns of a SELECT; none if they are not all known.
fn columns_of_select(select: &Select, scope: &Scope<'_>) -> Option<Vec<DerivedColumn>> {
    let keys = key_lists(select, scope);
    let is_key = |column: &FactorColumn| {
        let mut lists = keys.iter().flatten();
        keys.is_some() && lists.all(|keys| keys.contains(column))
    };
    let mut columns = Vec::new();
    for item in &select.projection {
        columns.extend(columns_of(item, select, scope)?);
    }
    for below in columns.iter_mut().flat_map(|column| &mut column.below) {
        *below = below.filter(is_key);
    }
    Some(columns)
}

/// Returns the columns of the FROM clause that the columns of a SELECT are, if they are known and
/// are among all keys by which it keeps rows apart.
pub(super) fn outputs(select: &Select, scope: &Scope<'_>) -> Vec<Option<model::FactorColumn>> {
    let columns = columns_of_select(select, scope).unwrap_or_default();
    let columns = columns.iter().map(|column| *column.below.first()?);
    columns.map(|below| scope.factor_column(below?)).collect()
}

/// The columns that an item of a SELECT list gives; none if they are not known.
fn columns_of(item: &SelectItem, select: &Select, scope: &Scope<'_>) -> Option<Vec<DerivedColumn>> {
    let one = |expr: &Expr, name| {
        let column = scope.resolve(expr);
        Some(vec![DerivedColumn::new(name, column, scope)])
    };
    match item {
        SelectItem::UnnamedExpr(expr) => one(expr, name_of(expr)),
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

/// The name that SQLite gives to a column without one: that of a column, or the text. None if it
/// may be another.
fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => name_of(inner),
        Expr::Identifier(column) => Some(lower(&column.value)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| lower(&part.value)),
        Expr::Function(function) => {
            let name = last_part(&function.name)?;
            let is_text = !matches!(name.as_str(), "likely" | "unlikely" | "likelihood");
            is_text.then(|| lower(&expr.to_string()))
        }
        Expr::Value(_) if has_odd_literal(expr) => None,
        Expr::Value(_)
        | Expr::BinaryOp { .. }
        | Expr::Case { .. }
        | Expr::Cast { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_) => Some(lower(&expr.to_string())),
        _ => None,
    }
}

/// True if a join gives only one of two columns.
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
        DerivedColumn::new(name, Some(column), scope)
    });
    Some(columns.collect())
}

/// True if a row of the SELECT shows that a row of its FROM clause meets its conditions.
pub(super) fn keeps_rows(select: &Select, scope: &Scope<'_>) -> bool {
    key_lists(select, scope).is_some()
}

/// True if each row of the FROM clause that meets the conditions gives a row of the SELECT, which
/// no other row has a part in. `order` are the terms of ORDER BY.
pub(super) fn gives_a_row_each<'e>(
    select: &Select,
    order: impl Iterator<Item = &'e Expr>,
    scope: &Scope<'_>,
) -> bool {
    let mut functions = FunctionSearch::new(select, scope);
    order.for_each(|term| {
        let _ = walk(term, &mut functions);
    });
    let is_plain = functions.lists.is_empty() && !functions.may_aggregate;
    let keeps_none_apart = || key_lists(select, scope).is_some_and(|lists| lists.is_empty());
    is_plain && select.distinct.is_none() && keeps_none_apart()
}

/// The columns by which a SELECT keeps rows apart: the keys of its groups, if it groups, and those
/// of each window. A row with another value in a column that is in each of the lists has no part
/// in the rows with this value. None if the SELECT makes one row of all.
fn key_lists(select: &Select, scope: &Scope<'_>) -> Option<Vec<Vec<FactorColumn>>> {
    let mut functions = FunctionSearch::new(select, scope);
    for item in &select.projection {
        let _ = walk(item, &mut functions);
    }
    let _ = walk(&select.having, &mut functions);
    // An aggregate in the window's ORDER BY makes one row of all.
    let _ = walk(&select.named_window, &mut functions);
    let FunctionSearch {
        mut lists,
        may_aggregate,
        ..
    } = functions;
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => keys,
        _ => return None,
    };
    match keys.is_empty() {
        true if may_aggregate || select.having.is_some() => return None,
        true => {}
        false => lists.push(columns_among(keys, scope)),
    }
    Some(lists)
}

fn columns_among(keys: &[Expr], scope: &Scope<'_>) -> Vec<FactorColumn> {
    keys.iter().filter_map(|key| scope.resolve(key)).collect()
}

/// The names of the tables that a SELECT reads from, in lower case; none of another query.
fn names_read(query: &Query) -> BTreeSet<String> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return BTreeSet::new();
    };
    let joined = select.from.iter().flat_map(|from| {
        let joins = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joins)
    });
    let name = |factor: &TableFactor| match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(lower(&alias.name.value)),
            None => last_part(name),
        },
        _ => None,
    };
    joined.filter_map(name).collect()
}

/// The keys of the windows in expressions, and whether there are functions that might aggregate.
struct FunctionSearch<'s, 'a> {
    windows: &'s [NamedWindowDefinition],
    scope: &'s Scope<'a>,
    lists: Vec<Vec<FactorColumn>>,
    may_aggregate: bool,
    /// Of each subquery around the current place, the names of what it reads from.
    inner: Vec<BTreeSet<String>>,
}

impl<'s, 'a> FunctionSearch<'s, 'a> {
    fn new(select: &'s Select, scope: &'s Scope<'a>) -> Self {
        Self {
            windows: &select.named_window,
            scope,
            lists: Vec::new(),
            may_aggregate: false,
            inner: Vec::new(),
        }
    }

    /// True if a function is a subquery's own, so that it aggregates no rows of this SELECT: the
    /// count of all rows, or one that is given a column of what a subquery reads from. With
    /// columns of this SELECT alone an aggregate in a subquery would be this SELECT's.
    /// Counterexample: a table of a subquery has the name of one of this SELECT's, and has not the
    /// column; the column is then the outer one.
    fn is_of_subquery(&self, function: &Function) -> bool {
        if self.inner.is_empty() {
            return false;
        }
        let is_inner = |name: &str| {
            self.inner.iter().any(|names| names.contains(name)) && !self.scope.has_factor(name)
        };
        let mut has_inner = false;
        let nested = walk_expressions(&function.args, |expr| match expr {
            // Its names may be of what it reads itself.
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                ControlFlow::Break(())
            }
            Expr::CompoundIdentifier(parts) => {
                has_inner |= parts.len() == 2 && is_inner(&lower(&parts[0].value));
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        });
        functions::counts_rows(function) || has_inner && nested.is_continue()
    }

    /// The expressions by which a window partitions.
    fn partition<'w>(&self, window: &'w WindowType) -> &'w [Expr]
    where
        's: 'w,
    {
        match window {
            WindowType::NamedWindow(name) => self.named(name).unwrap_or_default(),
            WindowType::WindowSpec(window) => match &window.window_name {
                Some(name) => self.named(name).unwrap_or_default(),
                None => &window.partition_by,
            },
        }
    }

    /// Returns the expressions by which the only window with this name partitions.
    fn named(&self, name: &Ident) -> Option<&'s [Expr]> {
        let is_named =
            |window: &&NamedWindowDefinition| lower(&window.0.value) == lower(&name.value);
        let mut windows = self.windows.iter().filter(is_named);
        match (windows.next()?, windows.next()) {
            (NamedWindowDefinition(_, NamedWindowExpr::WindowSpec(window)), None)
                if window.window_name.is_none() =>
            {
                Some(&window.partition_by)
            }
            _ => None,
        }
    }
}

impl Visitor for FunctionSearch<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.inner.push(names_read(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.inner.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            let name = last_part(&function.name).unwrap_or_default();
            let is_of_subquery = self.is_of_subquery(function);
            match &function.over {
                Some(window) => {
                    let keys = columns_among(self.partition(window), self.scope);
                    self.lists.push(keys);
                }
                None => {
                    self.may_aggregate |= !functions::is_of_one_row(&name) && !is_of_subquery;
                }
            }
        }
        ControlFlow::Continue(())
    }
}
