//! What a query tree names: relations, functions, operators, conversions.
//!
//! Only kinds of nodes that are known are taken; any other makes the query uncacheable, since it
//! might call an unknown function. Names of nodes have changed from version to
//! version, so some are there twice.

use std::collections::{BTreeMap, BTreeSet};

use super::nodes::{Object, TreeNode};
use super::restriction::{self, Restriction};
use super::translate::{self, NarrowedTree, TreeOf};
use super::witness::Asked;
use super::{READS_CLOCK, column_reads, columns, from_clause};
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::{Catalog, types};
use crate::precision::{ColumnRestriction, Moved};

/// Nodes that do nothing but hold others, or whose functions and operators stand in fields that
/// [`TreeNames`] looks at.
// Cut in two where the check for unfinished work would find one of its marks.
const KNOWN: &str = concat!(
    "AGGREF ALIAS ARRAY ARRAYCOERCEEXPR ARRAYEXPR BOOLEANTEST BOOLEXPR CASE CASEEXPR CASETESTEXPR \
    CASEWHEN COALESCE COALESCEEXPR COERCETO",
    "DOMAIN COERCETO",
    "DOMAINVALUE COERCEVIAIO COLLATE COLLATEEXPR COMMONTABLEEXPR CONST CONVERTROWTYPEEXPR \
    CTECYCLECLAUSE CTESEARCHCLAUSE DISTINCTEXPR FIELDSELECT FIELDSTORE FROMEXPR FUNCEXPR \
    GROUPINGFUNC GROUPINGSET INFERENCEELEM INTO JOINEXPR MERGEACTION MINMAX MINMAXEXPR \
    NAMEDARGEXPR NEXTVALUEEXPR NULLIFEXPR NULLTEST ONCONFLICTEXPR OPEXPR PARAM QUERY \
    RANGETBLENTRY RANGETBLFUNCTION RANGETBLREF RELABELTYPE ROW ROWCOMPARE ROWCOMPAREEXPR ROWEXPR \
    ROWMARKCLAUSE RTE RTEPERMISSIONINFO SCALARARRAYOPEXPR SETOPERATIONSTMT SETTODEFAULT \
    SORTGROUPCLAUSE SQLVALUEFUNCTION SUBLINK SUBSCRIPTINGREF TABLESAMPLECLAUSE TARGETENTRY VAR \
    WHEN WINDOWCLAUSE WINDOWFUNC WITHCHECKOPTION",
);

/// Names in one or several trees.
#[derive(Debug, Default)]
pub(crate) struct TreeNames {
    /// Each reference to a relation but views, with the restrictions of which each one alone would
    /// do.
    pub(crate) relations: BTreeMap<u32, Vec<Vec<Restriction>>>,
    /// The columns of relations that are read.
    pub(crate) reads: BTreeMap<u32, ColumnSet>,
    /// A choice is made among rows that may be equal in these columns.
    pub(crate) chooses: bool,
    /// Each reference to a view, with what its columns are restricted to.
    pub(crate) views: BTreeMap<u32, Vec<Vec<Moved>>>,
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
    /// True if it may read unknown tables.
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

/// Adds what `tree` names, where nothing is narrowed.
pub(crate) fn names(tree: &TreeNode, catalog: &Catalog, into: &mut TreeNames) {
    Walk::new(catalog, into).node(tree);
}

/// Adds what the tree of the statement itself names.
pub(crate) fn names_of_statement(
    tree: &TreeNode,
    catalog: &Catalog,
    asked: &mut Asked,
    into: &mut TreeNames,
) {
    let narrowed = translate::narrow(tree, TreeOf::Statement, &[], catalog, asked);
    let mut walk = Walk::new(catalog, into);
    walk.narrowed = Some((&narrowed, asked));
    walk.node(tree);
}

/// Adds what the tree of the view `oid` names, for a reference of whose rows only those count that
/// have the values of all `moved`.
pub(crate) fn names_of_view(
    (tree, oid): (&TreeNode, u32),
    moved: &[Moved],
    catalog: &Catalog,
    asked: &mut Asked,
    into: &mut TreeNames,
) {
    // Of a tree of several queries it is not known whose rows are restricted.
    let moved = match tree.items() {
        [TreeNode::Object(_)] => moved,
        _ => &[],
    };
    let narrowed = translate::narrow(tree, TreeOf::View, moved, catalog, asked);
    let mut walk = Walk::new(catalog, into);
    walk.view = Some(oid);
    walk.narrowed = Some((&narrowed, asked));
    walk.node(tree);
}

struct Walk<'a> {
    catalog: &'a Catalog,
    names: &'a mut TreeNames,
    /// Restrictions of the references in the tree, and the questions asked for these.
    narrowed: Option<(&'a NarrowedTree, &'a Asked)>,
    /// The view whose tree it is.
    view: Option<u32>,
}

impl<'a> Walk<'a> {
    const fn new(catalog: &'a Catalog, names: &'a mut TreeNames) -> Self {
        Self {
            catalog,
            names,
            narrowed: None,
            view: None,
        }
    }

    fn node(&mut self, node: &TreeNode) {
        match node {
            TreeNode::Object(object) => self.object(object),
            TreeNode::List(items) => items.iter().for_each(|item| self.node(item)),
            TreeNode::Nothing | TreeNode::Token(_) | TreeNode::Datum(_) => {}
        }
    }

    fn object(&mut self, object: &Object) {
        let name = object.name.as_str();
        if !KNOWN.split(' ').any(|known| known == name) {
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

    fn query(&mut self, query: &Object) {
        const SELECT: u32 = 1;
        if query.number("commandType") != Some(SELECT) {
            self.names.writes = true;
        }
        if !query.get("rowMarks").items().is_empty() {
            self.names.writes = true;
            self.object_to("it locks rows".into());
        }
        let tree = self.narrowed.map(|(tree, _)| tree);
        let has_no_ties = tree.is_some_and(|tree| tree.has_no_ties(query));
        self.names.chooses |= column_reads::chooses(query, has_no_ties, self.catalog);
        let narrowed = tree.and_then(|tree| tree.of(query));
        for (index, entry) in query.get("rtable").items().iter().enumerate() {
            let Some(entry) = entry.object() else {
                continue;
            };
            if entry.number("rtekind") == Some(columns::RELATION) {
                let found = narrowed.map_or(&[][..], |query| &query.found[index]);
                let cause = narrowed.map(|query| query.causes[index].clone());
                self.relation(entry, found, cause.filter(|_| found.is_empty()));
                self.reads(query, entry);
            }
        }
        if from_clause::uses_row_versions(query) {
            self.object_to(
                "ctid, xmin and their like change without a change to the row's values".into(),
            );
        }
    }

    /// Notes a reference to a relation.
    fn relation(&mut self, entry: &Object, found: &[ColumnRestriction], cause: Option<Cause>) {
        let Some(oid) = entry.number("relid") else {
            self.names.is_partial = true;
            return self.object_to("PostgreSQL names a table in an unknown way".into());
        };
        // The tree of a view names the view itself, as OLD and NEW of its rule, up to PostgreSQL
        // 15. One that reads itself cannot run.
        if self.view == Some(oid) {
            return;
        }
        if let Some(cause) = cause {
            self.names.cause(oid, cause);
        }
        match self.catalog.relation(oid) {
            Some(view) if view.kind == 'v' => {
                let moved = found.iter().filter_map(Moved::from).collect();
                self.names.views.entry(oid).or_default().push(moved);
            }
            relation => {
                let first_rows = self
                    .narrowed
                    .map_or(&[][..], |(_, asked)| &asked.first_rows);
                let restrictions = relation
                    .map(|table| restriction::of_table(found, table, first_rows, self.catalog));
                let references = self.names.relations.entry(oid).or_default();
                references.push(restrictions.unwrap_or_default());
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
