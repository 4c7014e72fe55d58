//! By which rows each factor of a FROM clause is narrowed: chooses among its restrictions, and
//! carries them on along keys by witnesses (coherence.md, rule 21).

use std::collections::HashMap;

use sqlparser::ast::{Expr, Select, SelectItem, TableFactor};

use super::derived::{Derived, SelectId, keeps_rows, plain_select};
use super::equalities::{
    Equalities, EqualitySearch, FactorColumn, FindOutside, LevelColumn, SemiJoin, restriction,
};
use super::first_rows::FirstRows;
use super::plans::Plans;
use super::restrict::{Operand, Restriction, Values};
use super::scope::{Scope, Sources, base_name};
use super::witness::Witness;
use crate::sqlite::catalog::ResolvedColumn;

/// The FROM clause of a SELECT with its restrictions.
pub(super) struct Narrowed<'a> {
    pub(super) scope: Scope<'a>,
    /// For each factor, the best first. Each one alone is sufficient.
    pub(super) restrictions: Vec<Vec<Restriction>>,
    /// For each factor, the restriction that other factors may be narrowed by.
    chosen: Vec<Option<Restriction>>,
    /// Views and subqueries by whose inside other factors are narrowed.
    is_source: Vec<bool>,
    /// The semi-joins by which factors are narrowed.
    semi_joins: Vec<SelectId>,
}

impl Narrowed<'_> {
    /// True for the SELECT of a semi-join by whose rows a factor is narrowed.
    pub(super) fn is_narrowed_by(&self, select: &Select) -> bool {
        self.semi_joins.contains(&SelectId::of(select))
    }

    /// What is known of a column: its name and class as a restriction without values, and the
    /// restrictions of its factor.
    pub(super) fn known(&self, column: FactorColumn) -> Option<(Restriction, Vec<Restriction>)> {
        let name = restriction(&self.scope, column, Values::Given(Vec::new()))?;
        Some((name, self.restrictions[column.0].clone()))
    }
}

/// How much a restriction is worth, the best first. Restrictions up to [`Rank::Parameter`] do not
/// depend on other references.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Rowid,
    Parameter,
    Witness,
    /// Such a value often selects most rows: `published = 1`.
    Constants,
}

impl Rank {
    fn of(scope: &Scope<'_>, factor: usize, restriction: &Restriction) -> Self {
        let table = scope.factors[factor].base().map(|(_, table)| table);
        let rowid = table.and_then(|table| {
            let index = table.rowid_column?;
            Some(table.columns[index].name.as_str())
        });
        match &restriction.values {
            Values::Witnessed(_) | Values::First(_) => Self::Witness,
            Values::Given(_) if rowid == Some(restriction.column.as_str()) => Self::Rowid,
            Values::Given(values) => {
                let is_parameter =
                    |value: &Operand| matches!(value, Operand::Parameter(_) | Operand::Items(_));
                match values.iter().any(is_parameter) {
                    true => Self::Parameter,
                    false => Self::Constants,
                }
            }
        }
    }
}

/// Chooses the restrictions of the factors of one SELECT.
///
/// A factor is narrowed by a witness only if it was not chosen before, and only by factors that
/// were, or by the inside of a factor that is not narrowed afterwards. What a semi-join narrows by
/// its rows narrows nothing inside the semi-join. So no two references are each narrowed by the
/// other.
pub(super) struct SourceChoice<'c, 'a> {
    pub(super) sources: Sources<'a, 'c>,
    pub(super) parameters: &'c HashMap<String, usize>,
    pub(super) plans: &'c Plans<'c>,
    /// The factor whose first rows the SELECT takes.
    pub(super) first_rows: Option<(usize, Restriction)>,
    pub(super) witnesses: &'c mut Vec<Witness>,
    pub(super) all_first_rows: &'c [FirstRows],
    /// True within a semi-join by whose rows a factor around it is narrowed.
    pub(super) is_source: bool,
    /// The SELECTs around this one, by their level.
    pub(super) around: &'c dyn Fn(usize) -> Option<&'c Narrowed<'a>>,
}

impl<'c, 'a> SourceChoice<'c, 'a> {
    pub(super) fn choose(
        &mut self,
        select: &Select,
        scope: Scope<'a>,
        mut equalities: Equalities<'_>,
    ) -> Narrowed<'a> {
        for (factor, restrictions) in equalities.of_factors.iter_mut().enumerate() {
            restrictions.sort_by_key(|restriction| Rank::of(&scope, factor, restriction));
        }
        let best = equalities.of_factors.iter().map(|all| all.first().cloned());
        let best: Vec<Option<Restriction>> = best.collect();
        let is_selective =
            |factor: usize, best: &Restriction| Rank::of(&scope, factor, best) < Rank::Constants;
        let chosen = best.iter().enumerate().map(|(factor, best)| {
            let best = best.as_ref();
            best.filter(|best| is_selective(factor, best)).cloned()
        });
        let mut narrowed = Narrowed {
            chosen: chosen.collect(),
            restrictions: std::mem::take(&mut equalities.of_factors),
            is_source: vec![false; scope.factors.len()],
            semi_joins: Vec::new(),
            scope,
        };
        self.carry_on(select, &mut narrowed, &equalities);
        if let Some((factor, first)) = self.first_rows.take()
            && narrowed.is_open(factor)
        {
            narrowed.restrictions[factor].insert(0, first.clone());
            narrowed.chosen[factor] = Some(first);
            self.carry_on(select, &mut narrowed, &equalities);
        }
        for (chosen, best) in narrowed.chosen.iter_mut().zip(best) {
            *chosen = chosen.take().or(best);
        }
        self.carry_on(select, &mut narrowed, &equalities);
        narrowed
    }

    /// Narrows factors by those that are chosen, and chooses them, as far as that leads.
    fn carry_on(
        &mut self,
        select: &Select,
        narrowed: &mut Narrowed<'a>,
        equalities: &Equalities<'_>,
    ) {
        let mut grows = true;
        while grows {
            grows = false;
            for equal in &equalities.equal_columns {
                for (from, to) in equal.directions() {
                    if !narrowed.is_open(to.0) {
                        continue;
                    }
                    let values = self.values_of(narrowed, from, to);
                    if narrowed.narrow(to, values) {
                        grows = true;
                        continue;
                    }
                    let values = self.values_inside(select, narrowed, from, to);
                    if narrowed.narrow(to, values) {
                        narrowed.is_source[from.column.0] = true;
                        grows = true;
                    }
                }
            }
            for semi_join in &equalities.semi_joins {
                grows |= self.semi_join(narrowed, semi_join);
            }
        }
    }

    /// The values of column `from`, if they may restrict the column `to` that is equal to it.
    fn values_of(
        &mut self,
        narrowed: &Narrowed<'a>,
        from: LevelColumn,
        to: FactorColumn,
    ) -> Option<Values> {
        let source = match from.level {
            0 => narrowed,
            level => (self.around)(level)?,
        };
        if source.scope.class(from.column) != narrowed.scope.class(to) {
            return None;
        }
        let rows = source.chosen[from.column.0].as_ref()?;
        let may_narrow = from.level == 0 || !self.is_source || !rows.values.are_witnessed();
        may_narrow.then(|| self.values(&source.scope, from.column, rows))?
    }

    /// The values that a column has in these rows of its factor.
    fn values(
        &mut self,
        scope: &Scope<'_>,
        column: FactorColumn,
        rows: &Restriction,
    ) -> Option<Values> {
        let itself = restriction(scope, column, Values::Given(Vec::new()))?;
        if itself.column == rows.column && !matches!(rows.values, Values::First(_)) {
            return Some(rows.values.clone());
        }
        let names = scope.factors[column.0].names_for_witness(self.sources.catalog)?;
        let column = names.column(column.1)?;
        let key = names.restricted(rows)?;
        let table = names.table.to_owned();
        let known = &*self.witnesses;
        let witness = Witness::new(table, column, key, rows.clone(), known, self.all_first_rows);
        if let Some(index) = self.witnesses.iter().position(|known| *known == witness) {
            return Some(Values::Witnessed(index));
        }
        if !self.plans.seeks(&witness.sql) {
            return None;
        }
        self.witnesses.push(witness);
        Some(Values::Witnessed(self.witnesses.len() - 1))
    }

    /// The values of a column of a view or subquery in FROM, by the rows of the table inside.
    fn values_inside(
        &mut self,
        select: &Select,
        narrowed: &Narrowed<'a>,
        from: LevelColumn,
        to: FactorColumn,
    ) -> Option<Values> {
        let (0, (factor, ResolvedColumn::Column(index))) = (from.level, from.column) else {
            return None;
        };
        if factor == to.0 {
            return None;
        }
        let derived = narrowed.scope.factors[factor].derived()?;
        let below = derived.columns[index].below_only()?;
        if derived.columns[index].class != narrowed.scope.class(to) {
            return None;
        }
        let query = self.query_of_factor(select, &narrowed.scope, factor)?;
        let inside = Scope::of(query, self.sources);
        let equalities = self.equalities(&inside, query, &|_| None);
        let moved = narrowed.chosen[factor].as_ref().and_then(|rows| {
            let column = derived.columns[rows.of_derived?].below_only()?;
            let rows = restriction(&inside, column, rows.values.clone());
            rows.filter(|_| column.0 == below.0)
        });
        let rows = moved.or_else(|| independent(&inside, &equalities, below.0).cloned());
        self.values(&inside, below, &rows?)
    }

    /// The equalities of another SELECT, without what restricts it from outside.
    fn equalities<'s>(
        &self,
        scope: &Scope<'_>,
        select: &'s Select,
        find_outside: &FindOutside<'_>,
    ) -> Equalities<'s> {
        let search = EqualitySearch {
            scope,
            parameters: self.parameters,
            has_own_lists: self.sources.has_own_lists(),
            find_outside,
        };
        let mut equalities = search.search(select);
        equalities.spread(scope, &|_| None);
        equalities
    }

    /// The SELECT of a view, a subquery in FROM or a common table expression.
    fn query_of_factor<'s>(
        &self,
        select: &'s Select,
        scope: &Scope<'_>,
        factor: usize,
    ) -> Option<&'s Select>
    where
        'a: 's,
        'c: 's,
    {
        let mut factors = select.from.iter().flat_map(|tables| {
            let joined = tables.joins.iter().map(|join| &join.relation);
            std::iter::once(&tables.relation).chain(joined)
        });
        match (factors.nth(factor)?, &scope.factors[factor].view) {
            (_, Some(view)) => {
                let view = self.sources.catalog.table(view)?;
                plain_select(view.query.as_deref()?)
            }
            (TableFactor::Derived { subquery, .. }, None) => plain_select(subquery),
            (TableFactor::Table { name, .. }, None) => {
                let common = self.sources.common.plain.get(&base_name(name)?)?;
                plain_select(common.query())
            }
            _ => None,
        }
    }

    /// Narrows factors by the rows of a table inside of a semi-join.
    fn semi_join(&mut self, narrowed: &mut Narrowed<'a>, semi_join: &SemiJoin<'_>) -> bool {
        let inside = Scope::of(semi_join.select, self.sources);
        if !keeps_rows(semi_join.select, &inside) {
            return false;
        }
        let mut found = Vec::new();
        {
            let outside = |expr: &Expr| {
                let column = narrowed.scope.resolve(expr)?;
                Some(LevelColumn { level: 1, column })
            };
            let equalities = self.equalities(&inside, semi_join.select, &outside);
            for (from, to) in pairs(semi_join, &inside, &equalities) {
                let free = narrowed.is_open(to.0) && semi_join.restricts(to.0);
                let rows = independent(&inside, &equalities, from.0);
                if let Some(rows) = rows.filter(|_| free) {
                    found.push((from, to, rows.clone()));
                }
            }
        }
        let mut grows = false;
        for (from, to, rows) in found {
            if inside.class(from) == narrowed.scope.class(to) {
                let values = self.values(&inside, from, &rows);
                if narrowed.narrow(to, values) {
                    narrowed.semi_joins.push(SelectId::of(semi_join.select));
                    grows = true;
                }
            }
        }
        grows
    }

    /// The restrictions that `x.a IN (SELECT y.b …)` moves into the SELECT: where only some rows of
    /// `x` count, only rows of `y` count whose `b` is one of the values of `a` in these.
    pub(super) fn moved_into(
        &mut self,
        narrowed: &Narrowed<'a>,
        semi_join: &SemiJoin<'_>,
    ) -> Vec<(FactorColumn, Values)> {
        let select = semi_join.select;
        // Of two references each narrowed by the other, neither would be narrowed.
        let moves = semi_join.takes_all && !narrowed.is_narrowed_by(select);
        let Some(column) = semi_join.column.filter(|_| moves) else {
            return Vec::new();
        };
        let inside = Scope::of(select, self.sources);
        let derived = Derived::new(&[(select, inside)], None);
        let Some(output) = derived.as_ref().and_then(|derived| derived.columns.first()) else {
            return Vec::new();
        };
        let same = output.class == narrowed.scope.class(column);
        let Some(below) = output.below_only().filter(|_| same) else {
            return Vec::new();
        };
        let mut moved = narrowed.values_of_column(column);
        if let Some(rows) = &narrowed.chosen[column.0] {
            moved.extend(self.values(&narrowed.scope, column, rows));
        }
        moved.into_iter().map(|values| (below, values)).collect()
    }
}

/// The best restriction of a factor, if it does not depend on other references.
fn independent<'e>(
    scope: &Scope<'_>,
    equalities: &'e Equalities<'_>,
    factor: usize,
) -> Option<&'e Restriction> {
    let rank = |rows: &&Restriction| Rank::of(scope, factor, rows);
    let best = equalities.of_factors[factor].iter().min_by_key(rank);
    best.filter(|rows| rank(rows) <= Rank::Parameter)
}

/// The columns inside of a semi-join, each with the column outside that must be equal to it.
fn pairs(
    semi_join: &SemiJoin<'_>,
    inside: &Scope<'_>,
    equalities: &Equalities<'_>,
) -> Vec<(FactorColumn, FactorColumn)> {
    let item = match semi_join.select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => Some(expr),
        _ => None,
    };
    let of_in = semi_join.column.and_then(|to| {
        let from = inside.resolve(item?)?;
        Some((from, to))
    });
    let of_exists = equalities.outward().filter(|_| semi_join.column.is_none());
    of_in.into_iter().chain(of_exists).collect()
}

impl Narrowed<'_> {
    /// Restricts the column of a factor that is not chosen, and chooses it. False: it is chosen.
    fn narrow(&mut self, column: FactorColumn, values: Option<Values>) -> bool {
        let is_open = self.is_open(column.0);
        let Some(found) = values
            .filter(|_| is_open)
            .and_then(|values| restriction(&self.scope, column, values))
        else {
            return false;
        };
        self.restrictions[column.0].insert(0, found.clone());
        self.chosen[column.0] = Some(found);
        true
    }

    /// True if a witness may narrow the factor.
    fn is_open(&self, factor: usize) -> bool {
        self.chosen[factor].is_none() && !self.is_source[factor]
    }

    /// The values to which a column is known to be equal.
    pub(super) fn values_of_column(&self, column: FactorColumn) -> Vec<Values> {
        let Some((name, known)) = self.known(column) else {
            return Vec::new();
        };
        let known = known.into_iter().filter(|known| {
            known.column == name.column && !matches!(known.values, Values::First(_))
        });
        known.map(|known| known.values).collect()
    }
}
