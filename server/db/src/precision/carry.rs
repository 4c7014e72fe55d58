//! Chooses among the restrictions of one block's factors, and carries them on along keys by
//! witnesses (coherence.md, rule 21).

use super::equalities::{EqualColumns, Equalities, SemiJoin};
use super::model::{BlockColumn, BlockId, FactorColumn, Model};
use super::narrow::{Moved, Narrowed};
use super::values::{ColumnRestriction, ValueClass, Values};
use super::witness::{NoWitness, Witness, WitnessSource, witness};
use crate::advice::Cause;

/// Queries whose rows are narrowed by those of another in them are looked into this deep.
const MAX_DEPTH: usize = 3;

/// How much a restriction is worth, the best first. Restrictions up to [`Rank::Parameter`] do not
/// depend on other factors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// By values of a column that are in one row each.
    Unique,
    Parameter,
    Witness,
    /// By values that say nothing where a parameter is not given.
    Optional,
    /// Such a value often selects most rows: `published = 1`.
    Constants,
}

/// Chooses the restrictions of the factors of one block.
///
/// A factor is narrowed by a witness only if nothing was chosen for it before, and only by factors
/// for which something was, or by the inside of a factor that is not narrowed afterwards. What a
/// semi-join narrows by its rows narrows nothing inside it. So no two references are each narrowed
/// by the other.
pub(super) struct Carrier<'m, 'w, W: WitnessSource> {
    pub(super) model: &'m Model<W::Table>,
    pub(super) block: BlockId,
    /// The blocks before this one.
    pub(super) before: &'w [Option<Narrowed>],
    pub(super) equalities: Equalities<'m>,
    /// True within a semi-join by whose rows a factor around it is narrowed.
    pub(super) is_source: bool,
    pub(super) source: &'w W,
    pub(super) witnesses: &'w mut Vec<Witness>,
    pub(super) chosen: Vec<Option<ColumnRestriction>>,
    /// Factors by whose inside others are narrowed.
    pub(super) closed: Vec<bool>,
    /// The blocks of semi-joins by whose rows factors are narrowed.
    pub(super) sources: Vec<BlockId>,
    /// How many queries are looked into at the moment for the rows of another in them.
    pub(super) depth: usize,
    /// Factors that an index would narrow, each with the cause that says which.
    pub(super) unindexed: Vec<(usize, Cause)>,
}

impl<'m, W: WitnessSource> Carrier<'m, '_, W> {
    /// Narrows all factors of the block.
    pub(super) fn choose(&mut self) {
        let (model, block) = (self.model, self.block);
        for (factor, known) in self.equalities.found.iter_mut().enumerate() {
            known.sort_by_key(|restriction| rank(model, block, factor, restriction));
        }
        let best: Vec<Option<ColumnRestriction>> = self
            .equalities
            .found
            .iter()
            .map(|known| known.first().cloned())
            .collect();
        let chosen = best.iter().enumerate().map(|(factor, best)| {
            let best = best.as_ref();
            best.filter(|best| rank(model, block, factor, best) < Rank::Optional)
                .cloned()
        });
        self.chosen = chosen.collect();
        self.carry_on();
        let first = model.blocks[block].first.as_ref();
        if let Some(first) = first.filter(|first| self.is_open(first.factor)) {
            let restriction = ColumnRestriction {
                column: first.column,
                class: None,
                values: Values::First(first.rows),
            };
            self.take(first.factor, restriction);
            let found = &mut self.equalities.found[first.factor];
            found.sort_by_key(|restriction| !restriction.values.are_optional());
            self.carry_on();
        }
        for (chosen, best) in self.chosen.iter_mut().zip(best) {
            *chosen = chosen.take().or(best);
        }
        self.carry_on();
    }

    /// Narrows factors by those that are chosen, and chooses them, as far as that leads.
    fn carry_on(&mut self) {
        if !self.model.blocks[self.block].carries {
            return;
        }
        let equal_columns = self.equalities.equal_columns.clone();
        let semi_joins = self.equalities.semi_joins.clone();
        let mut grows = true;
        while grows {
            grows = false;
            for EqualColumns { from, to, .. } in &equal_columns {
                let is_own = from.block == self.block;
                let is_same = is_own && from.column.factor == to.factor;
                if is_same || !self.is_open(to.factor) {
                    continue;
                }
                let mut lacks = None;
                let Some(values) = self.values_of(*from, &mut lacks) else {
                    self.unindexed.extend(lacks.map(|cause| (to.factor, cause)));
                    continue;
                };
                if is_own && self.chosen[from.column.factor].is_none() {
                    self.closed[from.column.factor] = true;
                }
                self.take_values(*to, values);
                grows = true;
            }
            for semi_join in &semi_joins {
                grows |= self.semi_join(semi_join);
            }
        }
    }

    /// Names the index that is missing for a factor as the cause for what its rows find, too.
    pub(super) fn pass_causes_on(&mut self) {
        let mut next = 0;
        while let Some((factor, cause)) = self.unindexed.get(next).cloned() {
            next += 1;
            for EqualColumns { from, to, .. } in &self.equalities.equal_columns {
                let is_found_by = from.block == self.block && from.column.factor == factor;
                let mut known = self.unindexed.iter();
                let is_known = known.any(|(known, _)| *known == to.factor);
                if is_found_by && !is_known && self.chosen[to.factor].is_none() {
                    self.unindexed.push((to.factor, cause.clone()));
                }
            }
        }
    }

    /// Restricts a factor for which nothing was chosen, and chooses that.
    fn take(&mut self, factor: usize, restriction: ColumnRestriction) {
        self.equalities.found[factor].insert(0, restriction.clone());
        self.chosen[factor] = Some(restriction);
    }

    fn take_values(&mut self, column: FactorColumn, values: Values) {
        let restriction = ColumnRestriction {
            column: column.column,
            class: Some(column.class),
            values,
        };
        self.take(column.factor, restriction);
    }

    /// True if a witness may narrow the factor.
    fn is_open(&self, factor: usize) -> bool {
        self.chosen[factor].is_none() && !self.closed[factor]
    }

    /// Returns the values that a column has in the rows of its factor that count. `lacks` is set if
    /// there are none for the lack of an index.
    fn values_of(&mut self, from: BlockColumn, lacks: &mut Option<Cause>) -> Option<Values> {
        let is_own = from.block == self.block;
        let chosen = match is_own {
            true => &self.chosen,
            false => &self.before[from.block].as_ref()?.chosen,
        };
        let rows = chosen[from.column.factor].clone();
        let are_witnessed = rows
            .as_ref()
            .is_some_and(|rows| rows.values.are_witnessed());
        if !is_own && self.is_source && are_witnessed {
            return None;
        }
        let found = self.values(from.block, from.column, rows.as_ref(), lacks);
        if found.is_some() || lacks.is_none() {
            return found;
        }
        // A row that counts meets every condition, so what else is given selects it too.
        let known = match is_own {
            true => &self.equalities.found,
            false => &self.before[from.block].as_ref()?.found,
        };
        let is_other = |other: &&ColumnRestriction| {
            let values = &other.values;
            values.has_parameter() && !values.are_optional() && Some(*other) != rows.as_ref()
        };
        let others = known[from.column.factor].iter().filter(is_other);
        let others: Vec<ColumnRestriction> = others.cloned().collect();
        others
            .iter()
            .find_map(|other| self.values(from.block, from.column, Some(other), &mut None))
    }

    /// Returns the values that a column has in rows of its factor that are restricted so.
    fn values(
        &mut self,
        block: BlockId,
        column: FactorColumn,
        rows: Option<&ColumnRestriction>,
        lacks: &mut Option<Cause>,
    ) -> Option<Values> {
        // Of values that are equal by another class it is not known which they are.
        let is_same = |rows: &&ColumnRestriction| {
            (rows.column, rows.class) == (column.column, Some(column.class))
        };
        if let Some(rows) = rows.filter(is_same) {
            return Some(rows.values.clone());
        }
        let factor = &self.model.blocks[block].factors[column.factor];
        if let (Some(table), Some(rows)) = (&factor.table, rows) {
            match witness(self.source, table, column, rows, self.witnesses) {
                Ok(witness) => return Some(Values::Witnessed(witness)),
                // By a constant there are mostly more rows than a witness may give.
                Err(NoWitness::NoIndex(table, key)) if !rows.values.are_constants() => {
                    *lacks = Some(Cause::Index(table, key));
                }
                Err(NoWitness::NoIndex(..)) => {}
                Err(NoWitness::Unasked) => {}
            }
        }
        self.values_inside(factor.block?, column, rows, lacks)
    }

    /// Returns the values that an output column of a block has, by the rows of the factor inside
    /// whose column it is.
    fn values_inside(
        &mut self,
        block: BlockId,
        column: FactorColumn,
        rows: Option<&ColumnRestriction>,
        lacks: &mut Option<Cause>,
    ) -> Option<Values> {
        let inner = &self.model.blocks[block];
        if !inner.keeps_rows() {
            return None;
        }
        let below = inner.output(column.column)?;
        if below.class != column.class {
            return None;
        }
        let moved = rows.and_then(|rows| {
            let key = inner.output(rows.column)?;
            let is_same = key.factor == below.factor && Some(key.class) == rows.class;
            is_same.then(|| ColumnRestriction {
                column: key.column,
                ..rows.clone()
            })
        });
        let rows = match moved {
            Some(moved) => Some(moved),
            None => self.rows_inside(block, below.factor, lacks),
        };
        self.values(block, below, Some(&rows?), lacks)
    }

    /// Returns what restricts a factor of another block there: what it states, or the values that
    /// another factor of it has.
    fn rows_inside(
        &mut self,
        block: BlockId,
        factor: usize,
        lacks: &mut Option<Cause>,
    ) -> Option<ColumnRestriction> {
        let inside = self.inside(block);
        if let Some(rows) = independent(self.model, block, &inside, factor) {
            return Some(rows);
        }
        // Nothing outside may narrow what this stands on.
        let is_alone = inside
            .equal_columns
            .iter()
            .all(|equal| equal.from.block == block);
        if !self.model.blocks[block].carries || !is_alone || self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut equal = inside.equal_columns.iter();
        let found = equal.find_map(|EqualColumns { from, to, .. }| {
            if to.factor != factor || from.column.factor == factor {
                return None;
            }
            let known = independent(self.model, block, &inside, from.column.factor);
            let values = match known {
                Some(known) => self.values(block, from.column, Some(&known), lacks),
                None => {
                    let below = self.model.blocks[block].factors[from.column.factor].block;
                    self.values_inside(below?, from.column, None, lacks)
                }
            };
            Some(ColumnRestriction {
                column: to.column,
                class: Some(to.class),
                values: values?,
            })
        });
        self.depth -= 1;
        found
    }

    /// Returns what the conditions of another block state, without what restricts it from outside.
    fn inside(&self, block: BlockId) -> Equalities<'m> {
        let mut inside = Equalities::of(self.model, block, []);
        inside.spread(|_| Vec::new());
        inside
    }

    /// Narrows factors by the rows of a factor inside of a semi-join.
    fn semi_join(&mut self, semi_join: &SemiJoin<'_>) -> bool {
        let block = semi_join.block;
        if !self.model.blocks[block].keeps_rows() {
            return false;
        }
        let mut found = Vec::new();
        let inside = self.inside(block);
        for (from, to) in self.pairs(semi_join, &inside) {
            let is_open = self.is_open(to.factor) && semi_join.restricts.contains(&to.factor);
            if is_open && from.class == to.class {
                let rows = independent(self.model, block, &inside, from.factor);
                found.extend(rows.map(|rows| (from, to, rows)));
            }
        }
        let mut grows = false;
        for (from, to, rows) in found {
            let mut lacks = None;
            if !self.is_open(to.factor) {
                continue;
            }
            let Some(values) = self.values(block, from, Some(&rows), &mut lacks) else {
                self.unindexed.extend(lacks.map(|cause| (to.factor, cause)));
                continue;
            };
            self.take_values(to, values);
            self.sources.push(block);
            grows = true;
        }
        grows
    }

    /// Returns the columns inside of a semi-join, each with the column outside that must be equal
    /// to it.
    fn pairs(
        &self,
        semi_join: &SemiJoin<'_>,
        inside: &Equalities<'_>,
    ) -> Vec<(FactorColumn, FactorColumn)> {
        let block = &self.model.blocks[semi_join.block];
        if let Some(to) = semi_join.column {
            let from = block.output(0);
            return from.map(|from| (from, to)).into_iter().collect();
        }
        // Only what must be equal for every row.
        let outward = inside
            .equal_columns
            .iter()
            .filter(|equal| equal.from.block == self.block && *equal.restricts == block.from);
        outward.map(|equal| (equal.to, equal.from.column)).collect()
    }

    /// Returns what the semi-joins restrict inside, each with its block: where only some rows of
    /// `x` count in `x.a IN (SELECT y.b …)`, only rows count whose first column is one of the
    /// values of `a` in these.
    pub(super) fn moved_into_semi_joins(&mut self) -> Vec<(BlockId, Moved)> {
        let mut moved = Vec::new();
        for semi_join in self.equalities.semi_joins.clone() {
            // Of two references each narrowed by the other, neither would be narrowed.
            let moves = semi_join.takes_all && !self.sources.contains(&semi_join.block);
            let Some(column) = semi_join.column.filter(|_| moves) else {
                continue;
            };
            let known = self.equalities.found[column.factor].iter();
            let known = known
                .filter(|known| (known.column, known.class) == (column.column, Some(column.class)));
            let mut all: Vec<Values> = known.map(|known| known.values.clone()).collect();
            let block = self.block;
            all.extend(self.values_of(BlockColumn { block, column }, &mut None));
            moved.extend(all.into_iter().map(|values| {
                let class = column.class;
                let output = 0;
                (
                    semi_join.block,
                    Moved {
                        output,
                        class,
                        values,
                    },
                )
            }));
        }
        moved
    }
}

/// Returns the best restriction of a factor, if it does not depend on other factors.
fn independent<T>(
    model: &Model<T>,
    block: BlockId,
    equalities: &Equalities<'_>,
    factor: usize,
) -> Option<ColumnRestriction> {
    let rank = |rows: &&ColumnRestriction| rank(model, block, factor, rows);
    let best = equalities.found[factor].iter().min_by_key(rank)?;
    (rank(&best) <= Rank::Parameter).then(|| best.clone())
}

fn rank<T>(
    model: &Model<T>,
    block: BlockId,
    factor: usize,
    restriction: &ColumnRestriction,
) -> Rank {
    let factor = &model.blocks[block].factors[factor];
    match &restriction.values {
        Values::Witnessed(_) | Values::First(_) => Rank::Witness,
        values if values.are_optional() => Rank::Optional,
        Values::Given(_)
            if factor.unique.contains(&restriction.column)
                && !matches!(restriction.class, Some(ValueClass::Folded(_))) =>
        {
            Rank::Unique
        }
        values if values.has_parameter() => Rank::Parameter,
        Values::Given(_) => Rank::Constants,
    }
}
