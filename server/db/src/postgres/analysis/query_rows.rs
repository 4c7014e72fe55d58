//! Rows that a query makes of those of its references. Each field of the tree must have the value
//! that is known, so one that is missing refuses.

use super::nodes::{Object, TreeNode};
use super::operators::equality;
use crate::postgres::catalog::Catalog;
use crate::precision::ValueClass;
use crate::precision::model::FactorColumn;

/// `CmdType`
const SELECT: u32 = 1;

/// True if the field is there, and is nothing.
fn lacks(query: &Object, field: &str) -> bool {
    query.has(field) && *query.get(field) == TreeNode::Nothing
}

/// True if rows are chosen by their number, or made from others.
pub(super) fn chooses(query: &Object) -> bool {
    let takes_all = ["limitCount", "limitOffset", "groupingSets"]
        .into_iter()
        .all(|field| lacks(query, field));
    query.number("commandType") != Some(SELECT) || !takes_all || !query.denies("hasTargetSRFs")
}

/// Returns the lists of columns by which rows are kept apart: the keys of groups, those of
/// DISTINCT, and those of each window. None if one row is made of all, or if that is not known.
pub(super) fn keys(
    query: &Object,
    column: impl Fn(&TreeNode) -> Option<FactorColumn>,
) -> Option<Vec<Vec<FactorColumn>>> {
    let is_grouped = !query.get("groupClause").items().is_empty();
    let keeps_rows = query.number("commandType") == Some(SELECT)
        && lacks(query, "setOperations")
        && lacks(query, "groupingSets")
        && (is_grouped || query.denies("hasAggs") && lacks(query, "havingQual"));
    if !keeps_rows {
        return None;
    }
    let key_column = |key: &Object| {
        let target = target(query, key.number("tleSortGroupRef")?)?;
        let column = column(target.get("expr"))?;
        // Counterexample: `partition by title::bpchar`, which holds `a` and `a ` equal.
        let compared_as = key.number("eqop").and_then(equality);
        (compared_as == Some(column.class)).then_some(column)
    };
    let columns = |clause: &TreeNode| {
        let keys = clause.items().iter().filter_map(TreeNode::object);
        keys.filter_map(key_column).collect()
    };
    let clauses = ["groupClause", "distinctClause"].into_iter();
    let clauses = clauses.filter(|field| !lacks(query, field));
    let mut lists: Vec<Vec<FactorColumn>> =
        clauses.map(|field| columns(query.get(field))).collect();
    let windows = query.get("windowClause").items();
    if !query.denies("hasWindowFuncs") {
        let partition = |window: &TreeNode| {
            let window = window.object()?;
            Some(columns(window.get("partitionClause")))
        };
        let all: Option<Vec<_>> = windows.iter().map(partition).collect();
        // A window that is not known keeps nothing apart.
        let none = windows.is_empty().then(Vec::new);
        lists.extend(all?.into_iter().chain(none));
    }
    Some(lists)
}

/// Returns the entry of the SELECT list with this number.
fn target(query: &Object, number: u32) -> Option<&Object> {
    let targets = query.get("targetList").items().iter();
    let mut targets = targets.filter_map(TreeNode::object);
    targets.find(|target| number > 0 && target.number("ressortgroupref") == Some(number))
}

/// Returns the entries of the SELECT list that are output columns, in order.
pub(super) fn outputs(query: &Object) -> Vec<Option<&Object>> {
    let targets = query.get("targetList").items().iter();
    let targets = targets.filter_map(TreeNode::object);
    let mut outputs = Vec::new();
    for target in targets.filter(|target| target.denies("resjunk")) {
        let place = target
            .number::<usize>("resno")
            .and_then(|number| number.checked_sub(1));
        if let Some(place) = place {
            outputs.resize(outputs.len().max(place + 1), None);
            outputs[place] = Some(target);
        }
    }
    outputs
}

/// Returns the canonical form by which each output column of a set operation is compared, if all
/// that stand in it compare it so; none if the query is none.
pub(super) fn compared_as(query: &Object, catalog: &Catalog) -> Option<Vec<Option<ValueClass>>> {
    let operation = query.get("setOperations").object()?;
    let mut all = of_operation(operation, catalog)?;
    let below = ["larg", "rarg"].map(|side| operation.get(side).object());
    let mut waiting: Vec<&Object> = below.into_iter().flatten().collect();
    while let Some(node) = waiting.pop() {
        let others = match node.name.as_str() {
            "RANGETBLREF" => continue,
            "SETOPERATIONSTMT" => of_operation(node, catalog),
            _ => None,
        };
        let others = others.unwrap_or_default();
        for (place, class) in all.iter_mut().enumerate() {
            let other = others.get(place).copied().flatten();
            *class = class.filter(|class| other == Some(*class));
        }
        let below = ["larg", "rarg"].map(|side| node.get(side).object());
        waiting.extend(below.into_iter().flatten());
    }
    Some(all)
}

fn of_operation(operation: &Object, catalog: &Catalog) -> Option<Vec<Option<ValueClass>>> {
    let oids = |field: &str| -> Vec<u32> {
        // A list of oids begins with the letter `o`.
        let items = operation.get(field).items().iter();
        let oids = items.filter_map(|item| item.token()?.parse().ok());
        oids.collect()
    };
    let is_known = operation.name == "SETOPERATIONSTMT";
    let (types, collations) = (oids("colTypes"), oids("colCollations"));
    let columns = types.into_iter().zip(collations);
    let classes = columns.map(|(of, collation)| catalog.class_of(of, collation));
    is_known.then(|| classes.collect())
}
