//! The FROM clause of a query and its conditions.

use std::collections::BTreeSet;

use super::nodes::{Object, TreeNode};

/// Returns all references in the FROM clause of a query, from 0.
pub(super) fn factors(query: &Object) -> BTreeSet<usize> {
    join(query.get("jointree"), &mut Vec::new())
}

/// Returns the conditions of the query's WHERE and ON that stand by themselves, each with the
/// references of which a row counts only if the condition is true for it.
pub(super) fn conditions(query: &Object) -> Vec<(&TreeNode, BTreeSet<usize>)> {
    let mut found = Vec::new();
    join(query.get("jointree"), &mut found);
    found
}

/// Returns the references, from 0, of which an outer join may give nulls in place of a row.
pub(super) fn nullable(query: &Object) -> BTreeSet<usize> {
    fn search(node: &TreeNode, into: &mut BTreeSet<usize>) {
        let Some(object) = node.object() else {
            return node.items().iter().for_each(|item| search(item, into));
        };
        let sides = [object.get("larg"), object.get("rarg")];
        if object.name == "JOINEXPR" {
            // `JoinType`: inner, left, full, right.
            let [left, right] = sides.map(|side| join(side, &mut Vec::new()));
            let nullable = match object.number::<u32>("jointype") {
                Some(0) => BTreeSet::new(),
                Some(1) => right,
                Some(3) => left,
                _ => left.union(&right).copied().collect(),
            };
            into.extend(nullable);
        }
        for below in sides.into_iter().chain([object.get("fromlist")]) {
            search(below, into);
        }
    }
    let mut found = BTreeSet::new();
    search(query.get("jointree"), &mut found);
    found
}

/// Looks into a part of the FROM clause; returns the references in it.
fn join<'a>(
    node: &'a TreeNode,
    found: &mut Vec<(&'a TreeNode, BTreeSet<usize>)>,
) -> BTreeSet<usize> {
    // `JoinType`
    const INNER: u32 = 0;
    const LEFT: u32 = 1;
    const RIGHT: u32 = 3;
    let mut inside = BTreeSet::new();
    let Some(object) = node.object() else {
        return inside;
    };
    match object.name.as_str() {
        "RANGETBLREF" => {
            let number = object.number::<usize>("rtindex");
            inside.extend(number.and_then(|number| number.checked_sub(1)));
        }
        "FROMEXPR" => {
            for item in object.get("fromlist").items() {
                inside.extend(join(item, found));
            }
            add(object.get("quals"), &inside, found);
        }
        "JOINEXPR" => {
            let left = join(object.get("larg"), found);
            let right = join(object.get("rarg"), found);
            inside.extend(left.union(&right));
            let restricted = match object.number("jointype") {
                Some(INNER) => &inside,
                Some(LEFT) => &right,
                Some(RIGHT) => &left,
                _ => &BTreeSet::new(),
            };
            add(object.get("quals"), restricted, found);
        }
        _ => {}
    }
    inside
}

fn add<'a>(
    node: &'a TreeNode,
    inside: &BTreeSet<usize>,
    found: &mut Vec<(&'a TreeNode, BTreeSet<usize>)>,
) {
    let mut all = Vec::new();
    conjunction(node, &mut all);
    found.extend(all.into_iter().map(|condition| (condition, inside.clone())));
}

/// Takes a conjunction apart; a list is one too.
pub(super) fn conjunction<'a>(node: &'a TreeNode, found: &mut Vec<&'a TreeNode>) {
    let items = match node.object() {
        Some(object)
            if object.name == "BOOLEXPR" && object.get("boolop").token() == Some("and") =>
        {
            object.get("args").items()
        }
        Some(_) => return found.push(node),
        None => node.items(),
    };
    for item in items {
        conjunction(item, found);
    }
}

/// True if the query reads a system column that VACUUM FULL or a lock changes. `tableoid` does not.
pub(super) fn uses_row_versions(query: &Object) -> bool {
    const TABLEOID: i16 = -6;
    let is_version = |object: &Object| {
        let number = object.number::<i16>("varattno");
        object.name == "VAR" && number.is_some_and(|number| number < 0 && number != TABLEOID)
    };
    ["targetList", "jointree", "havingQual"]
        .iter()
        .any(|field| query.get(field).contains(&is_version))
}
