//! Views and subqueries in a FROM clause: which equalities on their output columns hold inside
//! (coherence.md, rule 10).
//!
//! An equality on an output column may be moved into the query below if that column is a column of
//! one of its references, unchanged, and a row of the reference with another value gives only
//! output rows with another value, which do not count. So the moved equality restricts as if it
//! stood in the WHERE of the query below.
//!
//! That is not so behind LIMIT and OFFSET, which look at all rows, nor in windows, nor in an
//! aggregate over all rows, which gives a row of none, too. Where rows are grouped, or made
//! distinct, it is so for the keys: no row of one group takes part in another. Set operations let
//! nothing pass.

use super::nodes::{Object, TreeNode};
use super::restrict::ColumnEquality;
use super::witness::Values;
use crate::postgres::tags::ValueClass;

/// An equality on an output column, as one on the expression that computes the column.
pub(super) struct MovedEquality<'a> {
    /// The expression, in terms of the query's own references.
    pub(super) expression: &'a TreeNode,
    pub(super) class: ValueClass,
    pub(super) values: &'a Values,
}

/// Those of the equalities on output columns of `query` that may be moved into it.
pub(super) fn moved<'a>(
    query: &'a Object,
    equalities: &'a [ColumnEquality],
) -> Vec<MovedEquality<'a>> {
    if !keeps_keys_apart(query) {
        return Vec::new();
    }
    let passing = equalities.iter().filter_map(|equality| {
        let target = output(query, equality.column)?;
        is_key_throughout(query, target).then(|| MovedEquality {
            expression: target.get("expr"),
            class: equality.class,
            values: &equality.values,
        })
    });
    passing.collect()
}

/// Whether rows with other keys have no part in what the query makes of a row or of a group. Each
/// field is looked at by what it must be, so one that is missing refuses.
fn keeps_keys_apart(query: &Object) -> bool {
    const SELECT: u32 = 1;
    let lacks = |field: &str| query.has(field) && *query.get(field) == TreeNode::Nothing;
    let is_grouped = !query.get("groupClause").items().is_empty();
    query.number("commandType") == Some(SELECT)
        && ["limitCount", "limitOffset", "setOperations", "groupingSets"]
            .into_iter()
            .all(lacks)
        && query.denies("hasWindowFuncs")
        && query.denies("hasTargetSRFs")
        && (is_grouped || query.denies("hasAggs") && lacks("havingQual"))
}

/// Whether a row of the query shows that its conditions hold for rows of its references.
pub(super) fn keeps_rows(query: &Object) -> bool {
    let lacks = |field: &str| query.has(field) && *query.get(field) == TreeNode::Nothing;
    let is_grouped = !query.get("groupClause").items().is_empty();
    lacks("setOperations")
        && lacks("groupingSets")
        && (is_grouped || query.denies("hasAggs") && lacks("havingQual"))
}

/// The entry of the SELECT list that gives the output column.
pub(super) fn output(query: &Object, column: i16) -> Option<&Object> {
    let targets = query.get("targetList").items().iter();
    let mut targets = targets.filter_map(TreeNode::object);
    targets.find(|target| target.number("resno") == Some(column) && target.denies("resjunk"))
}

/// Whether the entry is among the keys by which rows are grouped, and among those by which they are
/// made distinct, if they are.
fn is_key_throughout(query: &Object, target: &Object) -> bool {
    let number = target.number::<u32>("ressortgroupref");
    ["groupClause", "distinctClause"].into_iter().all(|field| {
        let keys = query.get(field);
        let mut named = keys.items().iter().filter_map(TreeNode::object);
        match keys {
            TreeNode::Nothing => query.has(field),
            _ => {
                number.is_some_and(|number| number > 0)
                    && named.any(|key| key.number("tleSortGroupRef") == number)
            }
        }
    })
}
