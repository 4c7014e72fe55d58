//! What came nearest to a restriction, for those references that have none: the owner is told why,
//! and what would help.
//!
//! Nothing depends on it but the advice, so it may be wrong where a query is odd; `restrict` alone
//! decides.

use std::collections::{BTreeSet, HashMap};

use super::columns;
use super::constants;
use super::nodes::{Object, TreeNode};
use super::restrict::{self, MAX_VALUES};
use crate::advice::Cause;
use crate::postgres::catalog::{Catalog, CatalogColumn};

/// The causes for a query's references that are not among the `restricted`, by their number from 1.
pub(crate) fn causes<T>(
    query: &Object,
    catalog: &Catalog,
    restricted: &HashMap<usize, T>,
) -> HashMap<usize, Cause> {
    let entries = query.get("rtable").items();
    let mut search = CauseSearch {
        catalog,
        entries,
        found: HashMap::new(),
    };
    for (condition, inside) in restrict::conditions(query) {
        search.condition(condition, &inside);
    }
    let mut found = search.found;
    let has = |field: &str| !matches!(query.get(field), TreeNode::Nothing);
    let other = if query.is("hasAggs") {
        Cause::Aggregate
    } else if has("limitCount") && has("sortClause") {
        Cause::First
    } else {
        Cause::Unconditional
    };
    for reference in 1..=entries.len() {
        found.entry(reference).or_insert_with(|| other.clone());
    }
    found.retain(|reference, _| !restricted.contains_key(reference));
    found
}

struct CauseSearch<'a> {
    catalog: &'a Catalog,
    entries: &'a [TreeNode],
    found: HashMap<usize, Cause>,
}

impl<'a> CauseSearch<'a> {
    /// Looks at a condition that restricts no more than the references `inside`.
    fn condition(&mut self, node: &TreeNode, inside: &BTreeSet<usize>) {
        let Some(object) = node.object() else {
            return;
        };
        let arguments = object.get("args").items();
        match (object.name.as_str(), arguments) {
            ("OPEXPR", [left, right]) if is_equality(object) => {
                self.equality(left, right, inside);
                self.equality(right, left, inside);
            }
            ("SCALARARRAYOPEXPR", [left, list]) if object.is("useOr") && is_equality(object) => {
                let count = list
                    .object()
                    .map_or(0, |list| list.get("elements").items().len());
                if count > MAX_VALUES {
                    self.all(node, &Cause::TooMany);
                } else {
                    self.equality(left, list, inside);
                }
            }
            ("BOOLEXPR", _) if object.get("boolop").token() == Some("or") => {
                self.all(node, &Cause::Or);
            }
            _ if has_subquery(node) => self.all(node, &Cause::Subquery),
            _ => self.all(node, &Cause::NoEquality),
        }
    }

    /// Looks at `side`, which is to equal `other`.
    fn equality(&mut self, side: &TreeNode, other: &TreeNode, inside: &BTreeSet<usize>) {
        let Some((reference, column)) = self.column(side) else {
            let cause = if has_subquery(side) {
                Cause::Subquery
            } else {
                Cause::Computed
            };
            return self.all(side, &cause);
        };
        let name = column.name.clone();
        let cause = if has_subquery(other) {
            Cause::Subquery
        } else if is_column(other) {
            Cause::Join(name)
        } else if self.catalog.class(column).is_none() {
            Cause::Type(name)
        } else if !inside.contains(&reference) && constants::operand(other).is_some() {
            Cause::Outer(name)
        } else {
            Cause::Value(name)
        };
        self.note(reference, cause);
    }

    fn column(&self, node: &TreeNode) -> Option<(usize, &'a CatalogColumn)> {
        let (reference, _, column) = columns::of_table(node, self.entries, self.catalog)?;
        Some((reference, column))
    }

    /// Notes the cause for every reference that is named in `node`.
    fn all(&mut self, node: &TreeNode, cause: &Cause) {
        let mut named = BTreeSet::new();
        references(node, 0, &mut named);
        for reference in named {
            self.note(reference, cause.clone());
        }
    }

    fn note(&mut self, reference: usize, cause: Cause) {
        let known = self.found.entry(reference).or_insert_with(|| cause.clone());
        if *known < cause {
            *known = cause;
        }
    }
}

/// Whether the operator is `=` of a common type. The oids are in `pg_operator.dat`, and the same in
/// every version.
fn is_equality(operator: &Object) -> bool {
    operator.number("opno").is_some_and(|operator| {
        restrict::equality(operator).is_some() || OTHERS.contains(&operator)
    })
}

/// Of `name`, float4, float8, `char(n)`, date, time, timestamptz, numeric, bytea, timestamp and
/// enums.
pub(super) const OTHERS: [u32; 11] = [93, 620, 670, 1054, 1093, 1108, 1320, 1752, 1955, 2060, 3516];

/// Whether an expression is the column of some table, of this query or of one around it.
fn is_column(node: &TreeNode) -> bool {
    columns::bare(node).is_some_and(|object| object.name == "VAR")
}

fn has_subquery(node: &TreeNode) -> bool {
    match node {
        TreeNode::List(items) => items.iter().any(has_subquery),
        TreeNode::Object(object) => {
            object.name == "SUBLINK" || object.fields.iter().any(|(_, value)| has_subquery(value))
        }
        _ => false,
    }
}

/// The references of the query that an expression in it names, also within subqueries, `depth` of
/// which are around it.
fn references(node: &TreeNode, depth: u32, into: &mut BTreeSet<usize>) {
    match node {
        TreeNode::List(items) => items.iter().for_each(|item| references(item, depth, into)),
        TreeNode::Object(object) => {
            if object.name == "VAR" && object.number("varlevelsup") == Some(depth) {
                into.extend(object.number::<usize>("varno"));
            }
            let depth = depth + u32::from(object.name == "QUERY");
            for (_, value) in &object.fields {
                references(value, depth, into);
            }
        }
        _ => {}
    }
}
