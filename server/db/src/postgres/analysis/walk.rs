//! What a query tree names: relations, functions, operators, conversions.
//!
//! Only kinds of nodes that are known are taken; any other makes the query uncacheable, since it
//! might call an unknown function. Names of nodes have changed from version to
//! version, so some are there twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::carry::{self, Around, Narrowed};
use super::nodes::{Object, TreeNode};
use super::restrict::{self, ColumnEquality, Restriction};
use super::witness::Values;
use super::{READS_CLOCK, column_reads, columns, derived, first_rows, nearest};
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::{Catalog, types};

/// Nodes that do nothing but hold others, or whose functions and operators stand in fields that
/// [`TreeNames`] looks at.
const KNOWN: &[&str] = &[
    "AGGREF",
    "ALIAS",
    "ARRAY",
    "ARRAYCOERCEEXPR",
    "ARRAYEXPR",
    "BOOLEANTEST",
    "BOOLEXPR",
    "CASE",
    "CASEEXPR",
    "CASETESTEXPR",
    "CASEWHEN",
    "COALESCE",
    "COALESCEEXPR",
    // In halves, as the check for unfinished work finds one of its marks in them.
    concat!("COERCETO", "DOMAIN"),
    concat!("COERCETO", "DOMAINVALUE"),
    "COERCEVIAIO",
    "COLLATE",
    "COLLATEEXPR",
    "COMMONTABLEEXPR",
    "CONST",
    "CONVERTROWTYPEEXPR",
    "CTECYCLECLAUSE",
    "CTESEARCHCLAUSE",
    "DISTINCTEXPR",
    "FIELDSELECT",
    "FIELDSTORE",
    "FROMEXPR",
    "FUNCEXPR",
    "GROUPINGFUNC",
    "GROUPINGSET",
    "INFERENCEELEM",
    "INTO",
    "JOINEXPR",
    "MERGEACTION",
    "MINMAX",
    "MINMAXEXPR",
    "NAMEDARGEXPR",
    "NEXTVALUEEXPR",
    "NULLIFEXPR",
    "NULLTEST",
    "ONCONFLICTEXPR",
    "OPEXPR",
    "PARAM",
    "QUERY",
    "RANGETBLENTRY",
    "RANGETBLFUNCTION",
    "RANGETBLREF",
    "RELABELTYPE",
    "ROW",
    "ROWCOMPARE",
    "ROWCOMPAREEXPR",
    "ROWEXPR",
    "ROWMARKCLAUSE",
    "RTE",
    "RTEPERMISSIONINFO",
    "SCALARARRAYOPEXPR",
    "SETOPERATIONSTMT",
    "SETTODEFAULT",
    "SORTGROUPCLAUSE",
    "SQLVALUEFUNCTION",
    "SUBLINK",
    "SUBSCRIPTINGREF",
    "TABLESAMPLECLAUSE",
    "TARGETENTRY",
    "VAR",
    "WHEN",
    "WINDOWCLAUSE",
    "WINDOWFUNC",
    "WITHCHECKOPTION",
];

/// What one or several trees name.
#[derive(Debug, Default)]
pub(crate) struct TreeNames {
    /// Each reference to a relation but views, with the restrictions of which each one alone would
    /// do.
    pub(crate) relations: BTreeMap<u32, Vec<Vec<Restriction>>>,
    /// The columns of relations that are read.
    pub(crate) reads: BTreeMap<u32, ColumnSet>,
    /// A choice is made among rows that may be equal in these columns.
    pub(crate) chooses: bool,
    /// Each reference to a view, with the equalities on its columns.
    pub(crate) views: BTreeMap<u32, Vec<Vec<ColumnEquality>>>,
    /// Why a reference to a relation has no restriction, of those that have none.
    pub(crate) causes: BTreeMap<u32, Cause>,
    pub(crate) functions: BTreeSet<u32>,
    pub(crate) operators: BTreeSet<u32>,
    /// Types whose values are read from text.
    pub(crate) inputs: BTreeSet<u32>,
    /// Types whose values are written as text.
    pub(crate) outputs: BTreeSet<u32>,
    /// Why the result must not be kept.
    pub(crate) objections: Vec<String>,
    /// Whether it may read unknown tables.
    pub(crate) is_partial: bool,
    /// It writes, or locks rows.
    pub(crate) writes: bool,
    /// A date or time stands in it as a constant.
    pub(crate) has_time_constant: bool,
}

impl TreeNames {
    /// Of several causes the one that says most.
    fn cause(&mut self, relation: u32, cause: Cause) {
        let known = self.causes.entry(relation).or_insert_with(|| cause.clone());
        if *known < cause {
            *known = cause;
        }
    }
}

/// Adds what `tree` names.
pub(crate) fn names(tree: &TreeNode, catalog: &Catalog, into: &mut TreeNames) {
    Walk::new(catalog, into).node(tree);
}

/// Adds what the tree of the statement itself names.
pub(crate) fn names_of_statement(tree: &TreeNode, catalog: &Catalog, into: &mut TreeNames) {
    let mut walk = Walk::new(catalog, into);
    walk.is_outermost = true;
    walk.node(tree);
}

/// Adds what the tree of the view `oid` names, for a reference of whose rows only those count that
/// meet all `equalities`.
pub(crate) fn names_of_view(
    tree: &TreeNode,
    oid: u32,
    equalities: &[ColumnEquality],
    catalog: &Catalog,
    into: &mut TreeNames,
) {
    let mut outer = HashMap::new();
    if let [TreeNode::Object(query)] = tree.items() {
        outer.insert(QueryId::of(query), equalities.to_vec());
    }
    let mut walk = Walk::new(catalog, into);
    walk.view = Some(oid);
    walk.outer = outer;
    walk.place = carry::QueryPlace::View;
    walk.node(tree);
}

/// Which query of a tree that stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct QueryId(*const Object);

impl QueryId {
    const fn of(query: &Object) -> Self {
        Self(std::ptr::from_ref(query))
    }
}

struct Walk<'a, 't> {
    catalog: &'a Catalog,
    names: &'a mut TreeNames,
    /// The queries around the current place, the innermost last.
    around: Vec<Narrowed<'t>>,
    /// How many of these a name may not mean here.
    hidden: usize,
    place: carry::QueryPlace,
    /// True within a subquery by whose rows a reference around it is narrowed.
    is_source: bool,
    /// True for the query that gives the rows of the statement.
    is_outermost: bool,
    /// The view whose tree it is.
    view: Option<u32>,
    /// The equalities on output columns of queries further in.
    outer: HashMap<QueryId, Vec<ColumnEquality>>,
}

impl<'a, 't> Walk<'a, 't> {
    fn new(catalog: &'a Catalog, names: &'a mut TreeNames) -> Self {
        Self {
            catalog,
            names,
            around: Vec::new(),
            hidden: 0,
            place: carry::QueryPlace::Statement,
            is_source: false,
            is_outermost: false,
            view: None,
            outer: HashMap::new(),
        }
    }

    fn node(&mut self, node: &'t TreeNode) {
        match node {
            TreeNode::Object(object) => self.object(object),
            TreeNode::List(items) => items.iter().for_each(|item| self.node(item)),
            TreeNode::Nothing | TreeNode::Token(_) | TreeNode::Datum(_) => {}
        }
    }

    fn object(&mut self, object: &'t Object) {
        let (place, hidden, is_source) = (self.place, self.hidden, self.is_source);
        let name = object.name.as_str();
        if KNOWN.binary_search(&name).is_err() {
            self.names.is_partial = true;
            self.object_to(format!(
                "Millpond does not know what {} depends on",
                name.to_ascii_lowercase()
            ));
        }
        self.oids(object);
        match name {
            "QUERY" => self.query(object),
            "AGGREF" => self.names.chooses |= !column_reads::ignores_order(object, self.catalog),
            "SUBLINK" => self.names.chooses |= !column_reads::takes_any_order(object),
            "COMMONTABLEEXPR" if object.is("cterecursive") => {
                self.place = carry::QueryPlace::Recursion;
            }
            // What LATERAL brings in is not carried on.
            "RTE" | "RANGETBLENTRY" if object.is("lateral") => self.hidden = self.around.len(),
            "TABLESAMPLECLAUSE" => self.object_to("TABLESAMPLE takes other rows each time".into()),
            "SQLVALUEFUNCTION" => self.value_function(object),
            "NEXTVALUEEXPR" => self.object_to("no feed reports a sequence's changes".into()),
            "COERCEVIAIO" => self.conversion(object),
            "CONST" => {
                // date, time, timestamp, timestamptz
                const TIMES: [u32; 4] = [1082, 1083, 1114, 1184];
                const TIMETZ: u32 = 1266;
                let of: u32 = object.number("consttype").unwrap_or(0);
                self.names.has_time_constant |= TIMES.contains(&of);
                if of == TIMETZ {
                    self.object_to(
                        "a time with a zone and without a date depends on today's".into(),
                    );
                }
            }
            _ => {}
        }
        for (_, value) in &object.fields {
            self.node(value);
        }
        if name == "QUERY" {
            self.around.pop();
        }
        (self.place, self.hidden, self.is_source) = (place, hidden, is_source);
    }

    /// Functions and operators, wherever they are named.
    fn oids(&mut self, object: &Object) {
        for (field, value) in &object.fields {
            let into = match field.as_str() {
                "funcid" | "aggfnoid" | "winfnoid" | "startInRangeFunc" | "endInRangeFunc" => {
                    &mut self.names.functions
                }
                "opno" | "eqop" | "sortop" | "opnos" | "cycle_mark_neop" => {
                    &mut self.names.operators
                }
                _ => continue,
            };
            let numbers = std::slice::from_ref(value).iter().chain(value.items());
            // A list of oids begins with the letter `o`.
            into.extend(
                numbers
                    .filter_map(|node| node.token()?.parse::<u32>().ok())
                    .filter(|oid| *oid != 0),
            );
        }
    }

    fn query(&mut self, query: &'t Object) {
        const SELECT: u32 = 1;
        if query.number("commandType") != Some(SELECT) {
            self.names.writes = true;
        }
        if !query.get("rowMarks").items().is_empty() {
            self.names.writes = true;
            self.object_to("it locks rows".into());
        }
        self.names.chooses |= column_reads::chooses(query, self.catalog);
        let outer = self.outer.remove(&QueryId::of(query)).unwrap_or_default();
        let moved = derived::moved(query, &outer);
        let mut around = self.around.iter();
        self.is_source |= around.any(|around| around.is_narrowed_by(query));
        let around = Around {
            queries: &self.around[self.hidden..],
            place: self.place,
            is_source: self.is_source,
        };
        let mut narrowed = restrict::of(query, self.catalog, &moved, around);
        for (subquery, equalities) in std::mem::take(&mut narrowed.moved) {
            self.outer.insert(QueryId::of(subquery), equalities);
        }
        let mut restrictions = narrowed.found.clone();
        for (arm, equality) in derived::moved_into_arms(query, &outer, self.catalog) {
            restrictions.entry(arm).or_default().push(equality);
        }
        self.around.push(narrowed);
        let mut first = std::mem::take(&mut self.is_outermost)
            .then(|| first_rows::of(query, self.catalog))
            .flatten();
        let mut causes = nearest::causes(query, self.catalog, &restrictions);
        for (index, entry) in query.get("rtable").items().iter().enumerate() {
            let Some(entry) = entry.object() else {
                continue;
            };
            let equalities = restrictions.remove(&(index + 1)).unwrap_or_default();
            let first = first.take_if(|(reference, _)| *reference == index + 1);
            match entry.number("rtekind") {
                Some(columns::RELATION) => {
                    let first = first.map(|(_, first)| first);
                    self.relation(entry, equalities, first, causes.remove(&(index + 1)));
                    self.reads(query, entry);
                }
                Some(columns::SUBQUERY) => {
                    if let Some(inner) = entry.get("subquery").object() {
                        self.outer.insert(QueryId::of(inner), equalities);
                    }
                }
                _ => {}
            }
        }
        if restrict::uses_row_versions(query) {
            self.object_to(
                "ctid, xmin and their like change without a change to the row's values".into(),
            );
        }
    }

    /// Notes a reference to a relation.
    fn relation(
        &mut self,
        entry: &Object,
        equalities: Vec<ColumnEquality>,
        first: Option<Restriction>,
        cause: Option<Cause>,
    ) {
        let Some(oid) = entry.number("relid") else {
            self.names.is_partial = true;
            return self.object_to("PostgreSQL names a table in an unknown way".into());
        };
        // The tree of a view names the view itself, as OLD and NEW of its rule, up to PostgreSQL
        // 15. One that reads itself cannot run.
        if self.view == Some(oid) {
            return;
        }
        if let Some(cause) = cause.filter(|_| first.is_none()) {
            self.names.cause(oid, cause);
        }
        let catalog = self.catalog;
        match catalog.relation(oid) {
            Some(view) if view.kind == 'v' => {
                self.names.views.entry(oid).or_default().push(equalities);
            }
            relation => {
                let mut restrictions = relation
                    .map(|table| restrict::of_table(equalities, table, catalog))
                    .unwrap_or_default();
                // A constant often selects most rows.
                let best = restrictions.first().and_then(Restriction::values);
                if best.is_none_or(Values::are_constants) {
                    restrictions.splice(0..0, first);
                }
                self.names
                    .relations
                    .entry(oid)
                    .or_default()
                    .push(restrictions);
            }
        }
    }

    /// Notes the columns that are read of a reference.
    fn reads(&mut self, query: &Object, entry: &Object) {
        if let Some(oid) = entry.number("relid") {
            let read = column_reads::of_reference(query, entry, self.catalog);
            let reads = &mut self.names.reads;
            let all = reads
                .get(&oid)
                .map_or(read.clone(), |known| known.union(&read));
            reads.insert(oid, all);
        }
    }

    fn value_function(&mut self, object: &Object) {
        // `SQLValueFunctionOp`: nine for the time, then five for who and where.
        const LAST_TIME: u32 = 8;
        let reads_clock = object.number::<u32>("op").is_none_or(|op| op <= LAST_TIME);
        self.object_to(if reads_clock {
            format!("it{READS_CLOCK}")
        } else {
            "the result depends on who asks".into()
        });
    }

    fn conversion(&mut self, object: &Object) {
        match (
            object.get("arg").object().and_then(type_of),
            object.number("resulttype"),
        ) {
            (Some(from), Some(to)) => {
                self.names.outputs.insert(from);
                self.names.inputs.insert(to);
            }
            _ => self.object_to(
                "it converts a value by way of text, of which the type is not known".into(),
            ),
        }
    }

    fn object_to(&mut self, reason: String) {
        if !self.names.objections.contains(&reason) {
            self.names.objections.push(reason);
        }
    }
}

/// The type of an expression, where its node says it.
pub(crate) fn type_of(expression: &Object) -> Option<u32> {
    const FIELDS: [&str; 16] = [
        "vartype",
        "consttype",
        "paramtype",
        "funcresulttype",
        "opresulttype",
        "aggtype",
        "wintype",
        "resulttype",
        "casetype",
        "coalescetype",
        "minmaxtype",
        "array_typeid",
        "row_typeid",
        "refrestype",
        "typeId",
        "type",
    ];
    match expression.name.as_str() {
        "BOOLEXPR" | "NULLTEST" | "BOOLEANTEST" | "SCALARARRAYOPEXPR" => Some(types::BOOL),
        "COLLATE" | "COLLATEEXPR" | "NAMEDARGEXPR" => {
            expression.get("arg").object().and_then(type_of)
        }
        "SUBLINK" => {
            const VALUE: u32 = 4;
            if expression.number("subLinkType") != Some(VALUE) {
                return None;
            }
            let query = expression.get("subselect").object()?;
            let first = query.get("targetList").items().first()?.object()?;
            first.get("expr").object().and_then(type_of)
        }
        _ => FIELDS.iter().find_map(|field| expression.number(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(KNOWN.is_sorted());
    }
}
