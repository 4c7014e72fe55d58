//! The equalities that restrict the factors of one block (coherence.md, rule 10).
//!
//! Why an equality `t.c = v` in the conjunction of WHERE restricts for all joins: a row of `t` with
//! another value in `c` gives only combined rows for which the conjunction is not true; and where
//! its absence would make an outer join fill in NULLs, the comparison with NULL is not true either.
//! The same holds for an inner join's ON and everything below that join, since what the join gives
//! is all that the rest of the query sees; for a LEFT join's ON it holds for the right side only,
//! whose rows are not matched unless the condition is true, and for a RIGHT join's ON for the left
//! side. Which factors a condition restricts is the translation's to say.
//!
//! The same holds for `t.c = v OR t.c = w`, as for `t.c IN (v, w)`: a row with a third value makes
//! no branch true. In a branch that is a conjunction one equality is enough for that.
//!
//! An equality of two columns hands a restriction on: see [`EqualColumns`].
//!
//! None of this asks where the rows of a factor come from, so it holds for views and subqueries as
//! for tables. Which of their restrictions hold inside is said by [`Block::passes`].
//!
//! [`Block::passes`]: super::model::Block

use std::collections::BTreeSet;

use super::model::{BlockColumn, BlockId, Condition, FactorColumn, InList, Model, Side, Term};
use super::values::{ColumnRestriction, MAX_VALUES, Operand, ValueClass, Values};

/// `x.a = y.b`, where an equality of `y.b` with a value would restrict `y`. If only rows of `x`
/// with `a = v` count, only rows of `y` with `b = v` do: a row with another value meets the
/// condition only with rows of `x` that do not count. Both have one canonical form.
#[derive(Clone, Copy)]
pub(super) struct EqualColumns<'m> {
    /// A column of this block, or of one around it.
    pub(super) from: BlockColumn,
    pub(super) to: FactorColumn,
    /// The factors that the condition restricts.
    pub(super) restricts: &'m BTreeSet<usize>,
}

/// `x.a IN (SELECT …)`, `x.a = (SELECT …)` or `EXISTS (SELECT …)`, which stands where an equality
/// would restrict.
#[derive(Clone, Copy)]
pub(super) struct SemiJoin<'m> {
    /// The column in front.
    pub(super) column: Option<FactorColumn>,
    pub(super) block: BlockId,
    /// True if all rows of the block are compared, not only the first.
    pub(super) takes_all: bool,
    /// The factors that the condition restricts.
    pub(super) restricts: &'m BTreeSet<usize>,
}

/// The equalities of one block.
pub(super) struct Equalities<'m> {
    block: BlockId,
    /// For each factor, restrictions of which each one alone is sufficient.
    pub(super) found: Vec<Vec<ColumnRestriction>>,
    pub(super) equal_columns: Vec<EqualColumns<'m>>,
    pub(super) semi_joins: Vec<SemiJoin<'m>>,
}

impl<'m> Equalities<'m> {
    /// Returns those that the conditions of the block state, beside the restrictions that hold for
    /// its columns anyway.
    pub(super) fn of<T>(
        model: &'m Model<T>,
        id: BlockId,
        anyway: impl IntoIterator<Item = (FactorColumn, Values)>,
    ) -> Self {
        let block = &model.blocks[id];
        let mut found = Self::none(id, block.factors.len());
        for (column, values) in anyway {
            found.add(column, values);
        }
        for conjunct in &block.conditions {
            found.condition(&conjunct.condition, &conjunct.restricts);
        }
        found
    }

    fn none(block: BlockId, factors: usize) -> Self {
        Self {
            block,
            found: vec![Vec::new(); factors],
            equal_columns: Vec::new(),
            semi_joins: Vec::new(),
        }
    }

    fn condition(&mut self, condition: &'m Condition, restricts: &'m BTreeSet<usize>) {
        match condition {
            Condition::Equal {
                sides: [left, right],
                class: Some(class),
            } => {
                for (column, other) in [(left, right), (right, left)] {
                    let column = self.own(column, restricts);
                    if let Some(column) = column.filter(|column| column.class == *class) {
                        self.equal(column, other, restricts);
                    }
                }
            }
            Condition::In {
                side,
                list: InList::Values(values),
                class: Some(class),
            } if values.len() <= MAX_VALUES => {
                let column = self.own(side, restricts);
                if let Some(column) = column.filter(|column| column.class == *class) {
                    self.add(column, Values::Given(values.clone()));
                }
            }
            Condition::Or(branches, _) => self.disjunction(branches, restricts),
            Condition::SemiJoin { column, block, .. } => {
                let is_restricted = column.is_none_or(|column| restricts.contains(&column.factor));
                if is_restricted {
                    self.semi_joins.push(SemiJoin {
                        column: *column,
                        block: *block,
                        takes_all: true,
                        restricts,
                    });
                }
            }
            Condition::Equal { .. } | Condition::In { .. } | Condition::Other(_) => {}
        }
    }

    /// Returns the column of a factor of this block that a side is, if the condition restricts it.
    fn own(&self, side: &Side, restricts: &BTreeSet<usize>) -> Option<FactorColumn> {
        match &side.term {
            Term::Column(found) if found.block == self.block => {
                Some(found.column).filter(|column| restricts.contains(&column.factor))
            }
            _ => None,
        }
    }

    fn equal(&mut self, to: FactorColumn, other: &Side, restricts: &'m BTreeSet<usize>) {
        match &other.term {
            Term::Value(value) => {
                self.add(to, Values::Given(vec![value.clone()]));
            }
            Term::Column(from) if from.column.class == to.class => {
                self.equal_columns.push(EqualColumns {
                    from: *from,
                    to,
                    restricts,
                });
            }
            Term::Subquery(block) => self.semi_joins.push(SemiJoin {
                column: Some(to),
                block: *block,
                takes_all: false,
                restricts,
            }),
            Term::Column(_) | Term::Other => {}
        }
    }

    /// Takes what all branches restrict: a column of a factor, to the values of each. A branch that
    /// is known to be false before the query runs restricts nothing: `:genre is null`, where it is
    /// not.
    fn disjunction(&mut self, branches: &'m [Vec<Condition>], restricts: &'m BTreeSet<usize>) {
        let factors = self.found.len();
        let unless: Vec<Operand> = branches
            .iter()
            .filter_map(|one| of_parameter(one))
            .collect();
        let others = branches.iter().filter(|one| of_parameter(one).is_none());
        let mut branches = others.map(|conditions| {
            let mut branch = Self::none(self.block, factors);
            for condition in conditions {
                branch.condition(condition, restricts);
            }
            branch.found
        });
        let mut common = branches.next().unwrap_or_default();
        for branch in branches {
            for (known, others) in common.iter_mut().zip(&branch) {
                let either = known.iter().filter_map(|one| {
                    let mut others = others.iter();
                    let is_same = |other: &&ColumnRestriction| {
                        (other.column, other.class) == (one.column, one.class)
                    };
                    one.or(others.find(is_same)?)
                });
                *known = either.collect();
            }
        }
        for (factor, known) in common.into_iter().enumerate() {
            for mut restriction in known {
                if let Values::Given(values) = &mut restriction.values {
                    values.extend(unless.iter().cloned());
                }
                self.add_new(factor, restriction);
            }
        }
    }

    /// Hands restrictions on along equal columns, behind those that are written down. `around`
    /// gives those of a factor of a block around this one.
    pub(super) fn spread<'k>(
        &mut self,
        around: impl Fn(BlockColumn) -> Vec<&'k ColumnRestriction>,
    ) {
        let equal_columns = self.equal_columns.clone();
        let mut grows = true;
        while grows {
            grows = false;
            for EqualColumns { from, to, .. } in &equal_columns {
                let is_of_column = |known: &&ColumnRestriction| {
                    let known_as = (known.column, known.class);
                    known_as == (from.column.column, Some(from.column.class))
                };
                let known: Vec<Values> = match from.block == self.block {
                    true => {
                        let known = self.found[from.column.factor].iter();
                        known
                            .filter(is_of_column)
                            .map(|one| one.values.clone())
                            .collect()
                    }
                    false => {
                        let known = around(*from).into_iter();
                        known
                            .filter(is_of_column)
                            .map(|one| one.values.clone())
                            .collect()
                    }
                };
                for values in known {
                    grows |= self.add(*to, values);
                }
            }
        }
    }

    /// Notes a restriction; returns whether it is new.
    fn add(&mut self, column: FactorColumn, values: Values) -> bool {
        let restriction = ColumnRestriction {
            column: column.column,
            class: Some(column.class),
            values,
        };
        self.add_new(column.factor, restriction)
    }

    fn add_new(&mut self, factor: usize, restriction: ColumnRestriction) -> bool {
        let known = &mut self.found[factor];
        let is_new = !known.contains(&restriction);
        if is_new {
            known.push(restriction);
        }
        is_new
    }
}

/// Returns when a branch is true, if it asks for a parameter and nothing else.
///
/// Counterexample: *`:owner = '00000000-0000-0000-0000-000000000000' or owner = :owner`. Equal
/// UUIDs are written in several ways, so it is not known here when the first branch is true.*
fn of_parameter(branch: &[Condition]) -> Option<Operand> {
    let [Condition::Equal { sides, class }] = branch else {
        return None;
    };
    if !matches!(class, None | Some(ValueClass::Integer | ValueClass::Text)) {
        return None;
    }
    match sides.each_ref().map(|side| &side.term) {
        [
            Term::Value(Operand::Parameter(index)),
            Term::Value(Operand::Constant(value)),
        ]
        | [
            Term::Value(Operand::Constant(value)),
            Term::Value(Operand::Parameter(index)),
        ] => Some(Operand::Unless(*index, value.clone())),
        _ => None,
    }
}
