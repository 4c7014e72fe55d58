//! Views and subqueries in a FROM clause: which equalities on their output columns hold inside
//! (coherence.md, rule 10).
//!
//! An equality on an output column may be moved into the query below if that column is a column of
//! one of its references, unchanged, and a row of the reference with another value gives only
//! output rows with another value, which do not count. So the moved equality restricts as if it
//! stood in the WHERE of the query below.
//!
//! That is not so behind LIMIT and OFFSET, which look at all rows, nor in an aggregate over all
//! rows, which gives a row of none, too. Where rows are grouped, made distinct or put into windows,
//! it is so for the columns that are a key of each: no row of one group takes part in another.
//!
//! A set operation decides by equal rows alone, so rows with other values in one column have no
//! part in those that count, in whichever arm they are. An equality goes into each of its arms,
//! which are subqueries, unless a set operation in it compares the column by another equality.

use super::nodes::{Object, TreeNode};
use super::restrict::ColumnEquality;
use super::witness::Values;
use crate::postgres::catalog::Catalog;
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
    if !keeps_keys_apart(query) || !lacks(query, "setOperations") {
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

/// Those of the equalities on output columns of a set operation that may be moved into its arms,
/// each with the number of an arm's reference.
pub(super) fn moved_into_arms(
    query: &Object,
    equalities: &[ColumnEquality],
    catalog: &Catalog,
) -> Vec<(usize, ColumnEquality)> {
    let Some(operation) = query.get("setOperations").object() else {
        return Vec::new();
    };
    if !keeps_keys_apart(query) {
        return Vec::new();
    }
    let mut moved = Vec::new();
    for equality in equalities {
        let mut references = Vec::new();
        if arms(operation, equality, catalog, &mut references).is_some() {
            moved.extend(references.into_iter().map(|arm| (arm, equality.clone())));
        }
    }
    moved
}

/// Adds the references to the arms of a set operation; none if one in it compares the column of
/// the equality otherwise. *Counterexample: where `a` is `A`, either of them is shown.*
fn arms(
    node: &Object,
    equality: &ColumnEquality,
    catalog: &Catalog,
    into: &mut Vec<usize>,
) -> Option<()> {
    match node.name.as_str() {
        "RANGETBLREF" => into.push(node.number("rtindex")?),
        "SETOPERATIONSTMT" => {
            let place = usize::try_from(equality.column).ok()?.checked_sub(1)?;
            let at = |field: &str| oids(node.get(field)).nth(place);
            let class = catalog.class_of(at("colTypes")?, at("colCollations")?);
            class.filter(|class| *class == equality.class)?;
            for side in ["larg", "rarg"] {
                arms(node.get(side).object()?, equality, catalog, into)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// The numbers in a list of them, which begins with the letter `o`.
fn oids(list: &TreeNode) -> impl Iterator<Item = u32> + '_ {
    let items = list.items().iter();
    items.filter_map(|item| item.token()?.parse().ok())
}

/// Whether the field is there, and is nothing.
fn lacks(query: &Object, field: &str) -> bool {
    query.has(field) && *query.get(field) == TreeNode::Nothing
}

/// Whether rows with other keys have no part in what the query makes of a row or of a group. Each
/// field is looked at by what it must be, so one that is missing refuses.
fn keeps_keys_apart(query: &Object) -> bool {
    const SELECT: u32 = 1;
    let is_grouped = !query.get("groupClause").items().is_empty();
    query.number("commandType") == Some(SELECT)
        && ["limitCount", "limitOffset", "groupingSets"]
            .into_iter()
            .all(|field| lacks(query, field))
        && query.denies("hasTargetSRFs")
        && (is_grouped || query.denies("hasAggs") && lacks(query, "havingQual"))
}

/// Whether a row of the query shows that its conditions hold for rows of its references.
pub(super) fn keeps_rows(query: &Object) -> bool {
    let is_grouped = !query.get("groupClause").items().is_empty();
    lacks(query, "setOperations")
        && lacks(query, "groupingSets")
        && (is_grouped || query.denies("hasAggs") && lacks(query, "havingQual"))
}

/// The entry of the SELECT list that gives the output column.
pub(super) fn output(query: &Object, column: i16) -> Option<&Object> {
    let targets = query.get("targetList").items().iter();
    let mut targets = targets.filter_map(TreeNode::object);
    targets.find(|target| target.number("resno") == Some(column) && target.denies("resjunk"))
}

/// Whether the entry is among the keys by which rows are grouped, among those by which they are
/// made distinct, and among those of each window, if there are such.
fn is_key_throughout(query: &Object, target: &Object) -> bool {
    let number = target.number::<u32>("ressortgroupref");
    let is_key = |keys: &TreeNode| {
        let mut named = keys.items().iter().filter_map(TreeNode::object);
        number.is_some_and(|number| number > 0)
            && named.any(|key| key.number("tleSortGroupRef") == number)
    };
    let is_key_if_any = |field: &str| lacks(query, field) || is_key(query.get(field));
    let windows = query.get("windowClause").items();
    let partitions = |window: &TreeNode| {
        let window = window.object();
        window.is_some_and(|window| is_key(window.get("partitionClause")))
    };
    let is_key_of_windows = !windows.is_empty() && windows.iter().all(partitions);
    is_key_if_any("groupClause")
        && is_key_if_any("distinctClause")
        && (query.denies("hasWindowFuncs") || is_key_of_windows)
}
