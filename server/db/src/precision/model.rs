//! A query as it is reasoned about: blocks, their references, conditions and outputs.

use std::collections::BTreeSet;

use super::values::{Operand, ValueClass};
use crate::Value;
use crate::advice::Cause;

/// The number of a block in its [`Model`].
pub(crate) type BlockId = usize;

/// The blocks of a statement or of a view, the outermost first. `T` names a table to witnesses.
pub(crate) struct Model<T> {
    pub(crate) blocks: Vec<Block<T>>,
}

/// A SELECT, or a set operation whose factors are its arms.
pub(crate) struct Block<T> {
    /// The block around this one, or the one that reads it.
    pub(crate) parent: Option<BlockId>,
    pub(crate) factors: Vec<Factor<T>>,
    /// Factors that stand in its FROM clause.
    pub(crate) from: BTreeSet<usize>,
    /// The conjunction of WHERE and ON.
    pub(crate) conditions: Vec<Conjunct>,
    /// The columns of factors that its output columns are; none for what is computed.
    pub(crate) outputs: Vec<Option<FactorColumn>>,
    pub(crate) rows: BlockRows,
    /// The first rows in an order that it takes of one factor.
    pub(crate) first: Option<FirstOfFactor>,
    /// False where nothing is carried on by witnesses: in a recursive query.
    pub(crate) carries: bool,
    /// Why a factor without any condition counts as a whole.
    pub(crate) otherwise: Cause,
}

/// Rows that a block makes of those of its factors.
pub(crate) enum BlockRows {
    /// Rows are filtered, and perhaps kept apart by keys.
    Select {
        /// The lists of columns by which rows are kept apart: the keys of groups, those of
        /// DISTINCT, those of each window. None if one row is made of all.
        keys: Option<Vec<Vec<FactorColumn>>>,
        /// True if rows are chosen by their number, by LIMIT and OFFSET, or made from others.
        chooses: bool,
    },
    /// A set operation: the canonical form by which each output column is compared, if it is that
    /// of all arms.
    Union {
        classes: Vec<Option<ValueClass>>,
        chooses: bool,
    },
}

/// An entry of a FROM clause, or an arm of a set operation.
pub(crate) struct Factor<T> {
    /// The table or view by which a witness may read it.
    pub(crate) table: Option<T>,
    /// The block that gives its rows.
    pub(crate) block: Option<BlockId>,
    /// True if no other factor reads that block.
    pub(crate) owns_block: bool,
    /// Columns of which each value is in one row at most.
    pub(crate) unique: Vec<usize>,
}

/// A column of a factor, whose equality has a canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FactorColumn {
    pub(crate) factor: usize,
    /// The column's place, from 0.
    pub(crate) column: usize,
    pub(crate) class: ValueClass,
}

/// A column of a factor of some block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockColumn {
    pub(crate) block: BlockId,
    pub(crate) column: FactorColumn,
}

/// The first rows that a block takes of a factor.
pub(crate) struct FirstOfFactor {
    pub(crate) factor: usize,
    pub(crate) column: usize,
    /// Their number among the first rows of the statement.
    pub(crate) rows: usize,
}

/// A condition that must be true for every row of the block, as far as it restricts.
pub(crate) struct Conjunct {
    pub(crate) condition: Condition,
    /// The factors of which a row counts only if the condition is true for it.
    pub(crate) restricts: BTreeSet<usize>,
}

/// A condition, as far as it is understood.
pub(crate) enum Condition {
    /// `left = right`.
    Equal {
        sides: [Side; 2],
        /// The canonical form of the equality, if it has one.
        class: Option<ValueClass>,
    },
    /// `side IN (list)`.
    In {
        side: Side,
        list: InList,
        class: Option<ValueClass>,
    },
    /// Alternatives, each a conjunction.
    Or(Vec<Vec<Condition>>, Mention),
    /// `column IN (SELECT …)` or `EXISTS (SELECT …)`.
    SemiJoin {
        column: Option<FactorColumn>,
        block: BlockId,
        mention: Mention,
    },
    /// Anything else.
    Other(Mention),
}

impl Condition {
    /// Returns the condition that a parameter is null.
    pub(crate) fn is_null(parameter: Operand) -> Self {
        let terms = [parameter, Operand::Constant(Value::Null)];
        Self::Equal {
            sides: terms.map(|value| Side {
                term: Term::Value(value),
                mention: Mention::default(),
            }),
            class: None,
        }
    }

    /// Returns the equality of a column of this class and a value, without regard to case.
    pub(crate) fn folded(terms: [Term; 2], class: ValueClass) -> Self {
        Self::Equal {
            sides: terms.map(|term| Side {
                term,
                mention: Mention::default(),
            }),
            class: Some(class),
        }
    }
}

/// One side of an equality.
pub(crate) struct Side {
    pub(crate) term: Term,
    pub(crate) mention: Mention,
}

/// Meaning of an expression.
pub(crate) enum Term {
    Column(BlockColumn),
    Value(Operand),
    /// `(SELECT …)`
    Subquery(BlockId),
    Other,
}

/// The right side of IN.
pub(crate) enum InList {
    Values(Vec<Operand>),
    TooLong,
    Other(Mention),
}

/// Names in an expression. Only advice depends on them.
#[derive(Default)]
pub(crate) struct Mention {
    /// The factors that it names.
    pub(crate) factors: BTreeSet<usize>,
    pub(crate) has_subquery: bool,
    /// True if it is a column, of this query or of another.
    pub(crate) is_column: bool,
    /// The factor and the name of the column of a table that it is.
    pub(crate) column: Option<(usize, String)>,
}

impl<T> Block<T> {
    /// True if a row of the block shows that its conditions hold for rows of its factors.
    pub(super) const fn keeps_rows(&self) -> bool {
        matches!(self.rows, BlockRows::Select { keys: Some(_), .. })
    }

    /// True if each row of a factor has a part in one row of the FROM clause at most: every other
    /// factor has a column of unique values that must be equal to a value, to a column of a block
    /// around this one, which is `id`, or to a column of a factor of which that is known.
    pub(crate) fn has_a_row_each(&self, id: BlockId, factor: usize) -> bool {
        let mut known = BTreeSet::from([factor]);
        while known.len() < self.from.len() {
            let mut others = self.from.difference(&known);
            let Some(next) = others.find(|other| self.is_found_by(id, **other, &known)) else {
                return false;
            };
            known.insert(*next);
        }
        known == self.from
    }

    /// True if a row of the factor is found by its key, given those of the `known` factors.
    fn is_found_by(&self, id: BlockId, factor: usize, known: &BTreeSet<usize>) -> bool {
        let is_given = |side: &Side| match &side.term {
            Term::Value(_) => true,
            Term::Column(found) => found.block != id || known.contains(&found.column.factor),
            Term::Subquery(_) | Term::Other => false,
        };
        let is_key = |side: &Side| {
            matches!(&side.term, Term::Column(found) if found.block == id
                && found.column.factor == factor
                && !matches!(found.column.class, ValueClass::Folded(_))
                && self.factors[factor].unique.contains(&found.column.column))
        };
        self.conditions.iter().any(|conjunct| {
            let Condition::Equal {
                sides: [left, right],
                class: Some(_),
            } = &conjunct.condition
            else {
                return false;
            };
            let are_equal = is_key(left) && is_given(right) || is_key(right) && is_given(left);
            conjunct.restricts.contains(&factor) && are_equal
        })
    }

    pub(super) fn output(&self, place: usize) -> Option<FactorColumn> {
        self.outputs.get(place).copied().flatten()
    }

    /// Returns the column of a factor into which an equality of this class on an output column may
    /// be moved: a row of the factor with another value gives only output rows with another value,
    /// which do not count.
    ///
    /// That is not so behind LIMIT and OFFSET, which look at all rows, nor in an aggregate over all
    /// rows, which gives a row of none, too. Where rows are grouped, made distinct or put into
    /// windows, it is so for the columns that are a key of each: no row of one group takes part in
    /// another.
    pub(super) fn passes(&self, place: usize, class: ValueClass) -> Option<FactorColumn> {
        let BlockRows::Select {
            keys: Some(lists),
            chooses: false,
        } = &self.rows
        else {
            return None;
        };
        let column = self.output(place)?;
        let is_key = lists.iter().all(|keys| keys.contains(&column));
        // Texts that differ without their case differ.
        let is_folded = column.class == ValueClass::Text && matches!(class, ValueClass::Folded(_));
        let is_passed = is_key && (column.class == class || is_folded);
        is_passed.then_some(FactorColumn { class, ..column })
    }

    /// True if an equality of this class on an output column of a set operation may be moved into
    /// its arms.
    ///
    /// A set operation decides by equal rows alone, so rows with other values in one column have no
    /// part in those that count, in whichever arm they are; unless it compares the column by
    /// another equality. *Counterexample: where `a` is `A`, either of them is shown.*
    pub(super) fn passes_arms(&self, place: usize, class: ValueClass) -> bool {
        match &self.rows {
            BlockRows::Union {
                classes,
                chooses: false,
            } => classes.get(place).copied().flatten() == Some(class),
            _ => false,
        }
    }
}
