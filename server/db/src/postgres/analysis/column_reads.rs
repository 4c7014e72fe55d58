//! Which columns of its tables a query reads (coherence.md, rule 22).
//!
//! PostgreSQL's parser names them, for it asks for the right to read each. They are all that the
//! result depends on only where no choice is made among rows that are equal in these columns: by
//! LIMIT, by one row for a group, by the order in which an aggregate takes its rows. PostgreSQL
//! writes a changed row to another place, so any change may lead to another choice.

use super::nodes::{Object, TreeNode};
use super::walk::type_of;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::Catalog;

/// The number of a column's bit in a set of columns is the column's own, less that of the lowest
/// system column, less one (`FirstLowInvalidHeapAttributeNumber`).
const FIRST_BIT: i16 = 7;

/// The columns of the table of a reference that the query reads; all, if that is not known.
///
/// All columns count where row security decides which rows are read, and where one is generated,
/// since its bases are not named.
pub(super) fn of_reference(query: &Object, entry: &Object, catalog: &Catalog) -> ColumnSet {
    let table = entry.number("relid").and_then(|oid| catalog.relation(oid));
    let (Some(table), Some(numbers)) = (table, selected(query, entry)) else {
        return ColumnSet::All;
    };
    let tables = catalog.tree(table.oid);
    let mut tables = tables.iter().filter_map(|part| catalog.relation(*part));
    if tables.any(|part| part.row_security) {
        return ColumnSet::All;
    }
    let column = |number| table.column(number).filter(|found| !found.is_generated);
    let names = numbers
        .into_iter()
        .map(|number| Some(column(number)?.name.clone()));
    let names: Option<Vec<String>> = names.collect();
    names.map_or(ColumnSet::All, ColumnSet::of)
}

/// The numbers of the columns of a reference that the query asks to read. From PostgreSQL 16 on
/// they stand beside the references.
pub(super) fn selected(query: &Object, entry: &Object) -> Option<Vec<i16>> {
    let of = match entry.has("selectedCols") {
        true => entry,
        false => {
            let place = entry.number::<usize>("perminfoindex")?.checked_sub(1)?;
            query.get("rteperminfos").items().get(place)?.object()?
        }
    };
    let (first, bits) = of.get("selectedCols").items().split_first()?;
    // A set of numbers begins with the letter `b`.
    if first.token() != Some("b") {
        return None;
    }
    let number = |bit: &TreeNode| Some(bit.token()?.parse::<i16>().ok()? - FIRST_BIT);
    bits.iter().map(number).collect()
}

/// True if the query makes a choice among rows that may be equal in all that it reads. Each field
/// is looked at by what it must be, so one that is missing makes a choice. `has_no_ties`: its ORDER
/// BY leaves no two rows equal.
pub(super) fn chooses(query: &Object, has_no_ties: bool, catalog: &Catalog) -> bool {
    const SELECT: u32 = 1;
    let lacks = |field: &str| query.has(field) && *query.get(field) == TreeNode::Nothing;
    let takes_all = || ["limitCount", "limitOffset"].into_iter().all(lacks);
    let is_plain = query.number("commandType") == Some(SELECT)
        && (takes_all() || has_no_ties)
        && ["groupingSets", "windowClause"].into_iter().all(lacks)
        && [
            "hasWindowFuncs",
            "hasTargetSRFs",
            "hasDistinctOn",
            "hasRecursive",
            "hasForUpdate",
        ]
        .into_iter()
        .all(|field| query.denies(field))
        && ["groupClause", "distinctClause"]
            .into_iter()
            .all(|field| query.has(field) && has_exact_keys(query, field, catalog))
        && query.has("setOperations")
        && is_exact_operation(query.get("setOperations"), catalog)
        && (lacks("constraintDeps") || has_single_keys(query, catalog));
    let entries = query.get("rtable").items();
    !is_plain || !entries.iter().all(is_known_source)
}

/// True for a table, a view, a subquery, a join, a function, values, a common table expression, no
/// row source at all, or what the query is grouped by (an entry since PostgreSQL 18).
fn is_known_source(entry: &TreeNode) -> bool {
    // `RTEKind`
    const KNOWN: [u32; 8] = [0, 1, 2, 3, 5, 6, 8, 9];
    let kind = entry.object().and_then(|entry| entry.number("rtekind"));
    kind.is_some_and(|kind| KNOWN.contains(&kind))
}

/// True if rows with equal keys of GROUP BY, or of DISTINCT, have the same keys.
fn has_exact_keys(query: &Object, field: &str, catalog: &Catalog) -> bool {
    let targets = || {
        let targets = query.get("targetList").items().iter();
        targets.filter_map(TreeNode::object)
    };
    query.get(field).items().iter().all(|key| {
        let key = key
            .object()
            .and_then(|key| key.number::<u32>("tleSortGroupRef"));
        let target = targets().find(|target| target.number("ressortgroupref") == key);
        let expression = target.and_then(|target| target.get("expr").object());
        key.is_some() && expression.is_some_and(|expression| is_exact(expression, catalog))
    })
}

/// True if a set operation makes no choice among rows that it holds equal: it keeps all, or rows
/// that it holds equal are the same.
fn is_exact_operation(node: &TreeNode, catalog: &Catalog) -> bool {
    const UNION: u32 = 1;
    let Some(operation) = node.object().filter(|node| node.name == "SETOPERATIONSTMT") else {
        let is_leaf = node.object().is_some_and(|node| node.name == "RANGETBLREF");
        return is_leaf || *node == TreeNode::Nothing;
    };
    // A list of oids begins with the letter `o`.
    let oids = |field: &str| {
        let items = operation.get(field).items().get(1..).unwrap_or_default();
        let oids = items.iter().map(|oid| oid.token()?.parse().ok());
        oids.collect::<Option<Vec<u32>>>()
    };
    let are_exact = || {
        let (types, collations) = (oids("colTypes")?, oids("colCollations")?);
        let mut columns = types.iter().zip(&collations);
        let are_paired = !types.is_empty() && types.len() == collations.len();
        Some(are_paired && columns.all(|(of, collation)| is_exact_type(*of, *collation, catalog)))
    };
    let keeps_all = operation.number("op") == Some(UNION) && operation.is("all");
    (keeps_all || are_exact() == Some(true))
        && ["larg", "rarg"]
            .into_iter()
            .all(|arm| is_exact_operation(operation.get(arm), catalog))
}

/// True if a primary key is one of all rows that a reference reads. Counterexample: *`select id,
/// name from place group by id`, where rows of `place` and of a child have the same `id`.*
fn has_single_keys(query: &Object, catalog: &Catalog) -> bool {
    let entries = query.get("rtable").items().iter();
    let oids = entries.filter_map(|entry| entry.object()?.number::<u32>("relid"));
    let mut tables = oids
        .filter(|oid| *oid != 0)
        .map(|oid| (oid, catalog.relation(oid)));
    tables.all(|(oid, table)| {
        table.is_some_and(|table| table.kind == 'p') || catalog.tree(oid).len() == 1
    })
}

/// True if an aggregate gives the same for its rows in any order.
///
/// Counterexamples: the sum of `real` numbers; the greatest of `1.0` and `1.00`; `string_agg`.
pub(super) fn ignores_order(aggregate: &Object, catalog: &Catalog) -> bool {
    // `count`; `avg` and `sum` of integers; `max` and `min` of integers, `date`, `timestamp` and
    // `timestamptz`; `bool_and`, `bool_or`, `every`. The oids are in `pg_proc.dat`, and the same in
    // every version.
    const ALWAYS: [u32; 23] = [
        2147, 2803, 2100, 2101, 2102, 2107, 2108, 2109, 2115, 2116, 2117, 2122, 2126, 2127, 2131,
        2132, 2133, 2138, 2142, 2143, 2517, 2518, 2519,
    ];
    // `max` and `min` of texts, in a collation in which equal texts are the same.
    const OF_TEXTS: [u32; 2] = [2129, 2145];
    let Some(function) = aggregate.number("aggfnoid") else {
        return false;
    };
    let is_deterministic = || {
        let collation = aggregate.number("inputcollid");
        collation.is_some_and(|collation| catalog.is_deterministic(collation))
    };
    ALWAYS.contains(&function) || OF_TEXTS.contains(&function) && is_deterministic()
}

/// True for `(SELECT …)`, which has one row or fails, and for the tests of a subquery's rows:
/// EXISTS, ALL, ANY and comparisons of rows. Not for ARRAY, whose items have an order.
pub(super) fn takes_any_order(sublink: &Object) -> bool {
    // `SubLinkType`
    const KNOWN: [u32; 5] = [0, 1, 2, 3, 4];
    let kind = sublink.number("subLinkType");
    kind.is_some_and(|kind| KNOWN.contains(&kind))
}

/// True if equal values of an expression are the same value.
fn is_exact(expression: &Object, catalog: &Catalog) -> bool {
    const COLLATIONS: [&str; 11] = [
        "varcollid",
        "constcollid",
        "paramcollid",
        "funccollid",
        "opcollid",
        "resultcollid",
        "casecollid",
        "coalescecollid",
        "minmaxcollid",
        "aggcollid",
        "collOid",
    ];
    let collation = COLLATIONS.iter().find_map(|field| expression.number(field));
    // Equal texts of an unknown collation may differ.
    let (Some(of), Some(collation)) = (type_of(expression), collation) else {
        return false;
    };
    is_exact_type(of, collation, catalog)
}

fn is_exact_type(of: u32, collation: u32, catalog: &Catalog) -> bool {
    // date, timestamp, timestamptz
    const TIMES: [u32; 3] = [1082, 1114, 1184];
    catalog.class_of(of, collation).is_some() || TIMES.contains(&catalog.base_type(of))
}
