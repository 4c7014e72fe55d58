//! Which rows of its tables a query depends on: the reasoning that both databases share
//! (coherence.md, rules 10 and 21).
//!
//! Each database translates a statement into a [`Model`] of blocks, each a SELECT or a set
//! operation, and [`narrow`] finds the rows that each reference is restricted to. A translation may
//! leave out what it does not understand, and may state only what is certain: a reference that
//! is not reported as restricted makes its table a dependency as a whole.
//!
//! * [`model`]: the query as it is reasoned about.
//! * `equalities`: the restrictions that the conditions of one block state.
//! * `carry`: chooses among them, and carries them on along keys by witnesses.
//! * `narrow`: all blocks, from the outermost inwards.
//! * `causes`: why a reference is not restricted, for advice.
//! * `describe`: what was found, in the owner's words.
//! * [`witness`]: queries of ours for the values of a join key, and what they have found.

mod carry;
mod causes;
mod describe;
mod equalities;
pub(crate) mod model;
mod narrow;
pub(crate) mod values;
pub(crate) mod witness;

pub(crate) use describe::{Described, DescribedTable, compared};
pub(crate) use model::Model;
pub(crate) use narrow::{Moved, Narrowed, narrow};
pub(crate) use values::{
    Arithmetic, CaseFold, ColumnRestriction, MAX_VALUES, Operand, ValueClass, Values,
};
