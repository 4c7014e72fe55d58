//! Translates the trees of PostgreSQL's queries into what both databases reason about
//! (coherence.md, rules 10 and 21).
//!
//! The tree is PostgreSQL's own, with names resolved: an equality is an operator by its oid, a
//! column is the number of a reference and of a column, and every conversion is a node. So an
//! implicit cast, another collation or a column that a join has merged cannot be mistaken for the
//! column itself.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::columns::{self, COMMON, RELATION, SUBQUERY};
use super::constants;
use super::first_rows;
use super::from_clause;
use super::nodes::{Object, TreeNode};
use super::operators::{equality, is_equality, takes};
use super::query_rows;
use super::witness::{Asked, PostgresWitnesses};
use crate::advice::Cause;
use crate::postgres::catalog::Catalog;
use crate::precision::model::{
    Block, BlockColumn, BlockId, BlockRows, Condition, Conjunct, Factor, FactorColumn,
    FirstOfFactor, InList, Mention, Side, Term,
};
use crate::precision::witness::witness;
use crate::precision::{
    self, ColumnRestriction, MAX_VALUES, Model, Moved, Narrowed, Operand, ValueClass, Values,
};

/// Common table expressions that read each other are looked through this deep.
const MAX_COMMON_DEPTH: usize = 32;

/// Whose text a tree is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeOf {
    /// The statement's.
    Statement,
    /// That of a view, which may be read with the rights of another role.
    View,
}

/// The blocks of a tree, narrowed.
pub(super) struct NarrowedTree {
    blocks: HashMap<*const Object, BlockId>,
    narrowed: Vec<Narrowed>,
    without_ties: HashSet<*const Object>,
}

impl NarrowedTree {
    /// Returns what was found out about a query of the tree.
    pub(super) fn of(&self, query: &Object) -> Option<&Narrowed> {
        self.narrowed
            .get(*self.blocks.get(&std::ptr::from_ref(query))?)
    }

    /// True if the ORDER BY of a query leaves no two rows equal.
    pub(super) fn has_no_ties(&self, query: &Object) -> bool {
        self.without_ties.contains(&std::ptr::from_ref(query))
    }
}

/// Narrows the queries of a tree, of whose rows only those count that have been `moved` into it.
pub(super) fn narrow(
    tree: &TreeNode,
    of: TreeOf,
    moved: &[Moved],
    catalog: &Catalog,
    asked: &mut Asked,
) -> NarrowedTree {
    let mut translation = Translation {
        catalog,
        of,
        asked,
        blocks: Vec::new(),
        of_query: HashMap::new(),
        scopes: Vec::new(),
        carries: true,
        without_ties: HashSet::new(),
        within_common: 0,
    };
    translation.subqueries(tree);
    let Translation {
        blocks,
        of_query,
        without_ties,
        ..
    } = translation;
    let model = Model { blocks };
    let source = PostgresWitnesses {
        catalog,
        first_rows: &asked.first_rows,
    };
    NarrowedTree {
        blocks: of_query,
        narrowed: precision::narrow(&model, moved.to_vec(), &source, &mut asked.witnesses),
        without_ties,
    }
}

/// A query around the current place.
#[derive(Clone, Copy)]
struct AroundQuery<'t> {
    query: &'t Object,
    block: BlockId,
}

struct Translation<'c, 't> {
    catalog: &'c Catalog,
    of: TreeOf,
    asked: &'c mut Asked,
    blocks: Vec<Block<u32>>,
    of_query: HashMap<*const Object, BlockId>,
    /// The queries around the current place, the innermost last.
    scopes: Vec<AroundQuery<'t>>,
    /// False in a recursive query.
    carries: bool,
    without_ties: HashSet<*const Object>,
    /// How many common table expressions read each other around the current place.
    within_common: usize,
}

impl<'t> Translation<'_, 't> {
    /// Translates the queries in a node that have not been translated.
    fn subqueries(&mut self, node: &'t TreeNode) {
        match node {
            TreeNode::List(items) => items.iter().for_each(|item| self.subqueries(item)),
            TreeNode::Object(object) if object.name == "QUERY" => {
                self.query(object);
            }
            TreeNode::Object(object) => {
                let carries = self.carries;
                if object.name == "COMMONTABLEEXPR" && object.is("cterecursive") {
                    self.carries = false;
                }
                for (_, value) in &object.fields {
                    self.subqueries(value);
                }
                self.carries = carries;
            }
            TreeNode::Nothing | TreeNode::Token(_) | TreeNode::Datum(_) => {}
        }
    }

    /// Translates a query, unless that is done.
    fn query(&mut self, query: &'t Object) -> BlockId {
        if let Some(known) = self.of_query.get(&std::ptr::from_ref(query)) {
            return *known;
        }
        let id = self.blocks.len();
        self.of_query.insert(std::ptr::from_ref(query), id);
        let parent = self.scopes.last().map(|scope| scope.block);
        self.scopes.push(AroundQuery { query, block: id });
        let entries = query.get("rtable").items();
        self.blocks.push(Block {
            parent,
            factors: entries
                .iter()
                .map(|entry| self.table_factor(entry))
                .collect(),
            from: from_clause::factors(query),
            conditions: Vec::new(),
            outputs: Vec::new(),
            rows: self.rows(query, entries),
            first: None,
            carries: self.carries,
            otherwise: otherwise(query),
        });
        self.blocks[id].outputs = self.outputs(query, entries);
        let conditions = from_clause::conditions(query);
        let conditions = conditions.into_iter().map(|(node, restricts)| Conjunct {
            condition: self.condition(node),
            restricts,
        });
        let conditions: Vec<Conjunct> = conditions.collect();
        self.blocks[id].conditions = conditions;
        for (place, entry) in entries.iter().enumerate() {
            if let Some((below, owns)) = self.block_of(entry) {
                let factor = &mut self.blocks[id].factors[place];
                (factor.block, factor.owns_block) = (Some(below), owns);
            }
        }
        if self.has_no_ties(query, id) {
            self.without_ties.insert(std::ptr::from_ref(query));
            if parent.is_none() && self.of == TreeOf::Statement {
                self.first_rows(query, id);
            }
        }
        // What reads a common table expression comes before it.
        let is_common = |field: &&(String, TreeNode)| field.0 == "cteList";
        let (common, others): (Vec<_>, Vec<_>) = query.fields.iter().partition(is_common);
        for (_, value) in others {
            self.subqueries(value);
        }
        // So does a later one, which may read those before it.
        for (_, value) in common {
            for one in value.items().iter().rev() {
                self.subqueries(one);
            }
        }
        self.scopes.pop();
        id
    }

    /// True if ORDER BY leaves no two rows equal: a unique column is in it, and each row of its
    /// table is in one row at most.
    fn has_no_ties(&self, query: &Object, id: BlockId) -> bool {
        let keys = first_rows::unique_keys(query, self.catalog);
        let mut keys = keys.into_iter();
        keys.any(|factor| self.blocks[id].has_a_row_each(id, factor))
    }

    fn first_rows(&mut self, query: &Object, id: BlockId) {
        let Some((factor, column, first)) = first_rows::of(query, self.catalog) else {
            return;
        };
        let rows = self.asked.first_rows.len();
        let unique = first.unique;
        self.asked.first_rows.push(first);
        if let Some(unique) = unique {
            let source = PostgresWitnesses {
                catalog: self.catalog,
                first_rows: &self.asked.first_rows,
            };
            let restriction = ColumnRestriction {
                column,
                class: None,
                values: Values::First(rows),
            };
            let table = self.blocks[id].factors[factor].table;
            let known = &mut self.asked.witnesses;
            let witness =
                table.and_then(|table| witness(&source, &table, unique, &restriction, known).ok());
            if witness.is_none() {
                self.asked.first_rows.pop();
                return;
            }
            self.asked.first_rows[rows].witness = witness;
        }
        self.blocks[id].first = Some(FirstOfFactor {
            factor,
            column,
            rows,
        });
    }

    /// Returns a reference, as far as it is a table.
    fn table_factor(&self, entry: &TreeNode) -> Factor<u32> {
        let mut factor = Factor {
            table: None,
            block: None,
            owns_block: false,
            unique: Vec::new(),
        };
        let entry = entry
            .object()
            .filter(|entry| entry.number("rtekind") == Some(RELATION));
        let Some(table) = entry.and_then(|entry| self.catalog.relation(entry.number("relid")?))
        else {
            return factor;
        };
        let is_table = matches!(table.kind, 'r' | 'p');
        // A witness has the rights and policies of the role that asks, a view those of its owner.
        let has_policies = || {
            let tables = self.catalog.tree(table.oid);
            let mut tables = tables
                .iter()
                .filter_map(|part| self.catalog.relation(*part));
            tables.any(|part| part.row_security)
        };
        let is_same = self.of == TreeOf::Statement || !has_policies();
        factor.table = (is_table && table.may_select && is_same).then_some(table.oid);
        let columns = table.columns.iter().map(|column| column.number);
        let unique = columns.filter(|number| is_table && self.catalog.is_unique(table, *number));
        factor.unique = unique.filter_map(columns::place).collect();
        factor
    }

    /// Translates the query whose rows a reference reads; returns its block, and whether no other
    /// reference reads it.
    fn block_of(&mut self, entry: &'t TreeNode) -> Option<(BlockId, bool)> {
        let entry = entry.object()?;
        match entry.number("rtekind")? {
            SUBQUERY => {
                let query = entry.get("subquery").object();
                let block = query.map(|query| (self.query(query), true));
                // What a LATERAL gives narrows nothing beside it, by whose rows it is narrowed.
                block.filter(|_| entry.denies("lateral"))
            }
            COMMON => self.common_block(entry),
            _ => None,
        }
    }

    /// Translates the query of a common table expression.
    fn common_block(&mut self, entry: &'t Object) -> Option<(BlockId, bool)> {
        let around = self
            .scopes
            .len()
            .checked_sub(entry.number("ctelevelsup")?)?;
        let owner = *self.scopes.get(around.checked_sub(1)?)?;
        let name = entry.get("ctename");
        let mut all = owner.query.get("cteList").items().iter();
        let mut all = all.by_ref().filter_map(TreeNode::object);
        let common = all.find(|common| common.get("ctename") == name)?;
        let is_plain = common.denies("cterecursive") && entry.denies("self_reference");
        let is_read_once = common.number::<u32>("cterefcount") == Some(1);
        let query = common.get("ctequery").object().filter(|_| is_plain)?;
        if let Some(known) = self.of_query.get(&std::ptr::from_ref(query)) {
            return Some((*known, false));
        }
        if self.within_common == MAX_COMMON_DEPTH {
            return None;
        }
        // It sees what is around the query that it stands in front of.
        let inner = self.scopes.split_off(around);
        self.within_common += 1;
        let block = self.query(query);
        self.within_common -= 1;
        self.scopes.extend(inner);
        if is_read_once {
            // What is read is within what reads it.
            self.blocks[block].parent = self.scopes.last().map(|scope| scope.block);
        }
        Some((block, is_read_once))
    }

    fn rows(&self, query: &Object, entries: &[TreeNode]) -> BlockRows {
        let chooses = query_rows::chooses(query);
        match query_rows::compared_as(query, self.catalog) {
            Some(classes) => BlockRows::Union { classes, chooses },
            None => BlockRows::Select {
                keys: query_rows::keys(query, |node| {
                    columns::restrictable(node, 0, entries, self.catalog)
                }),
                chooses,
            },
        }
    }

    fn outputs(&self, query: &Object, entries: &[TreeNode]) -> Vec<Option<FactorColumn>> {
        let outputs = query_rows::outputs(query);
        let columns = outputs.into_iter().map(|output| {
            let output = output?.get("expr");
            columns::restrictable(output, 0, entries, self.catalog)
        });
        columns.collect()
    }

    fn condition(&mut self, node: &'t TreeNode) -> Condition {
        // `NullTestType`
        const IS_NULL: u32 = 0;
        let other = |this: &Self| Condition::Other(this.mention(node));
        let Some(object) = node.object() else {
            return other(self);
        };
        let arguments = object.get("args").items();
        match (object.name.as_str(), arguments) {
            ("BOOLEXPR", [column]) if object.get("boolop").token() == Some("not") => {
                self.truth(column, false)
            }
            ("BOOLEXPR", branches) if object.get("boolop").token() == Some("or") => {
                let branches = branches.iter().map(|branch| {
                    let mut conditions = Vec::new();
                    from_clause::conjunction(branch, &mut conditions);
                    let conditions = conditions.into_iter();
                    conditions
                        .map(|condition| self.condition(condition))
                        .collect()
                });
                let branches = branches.collect();
                Condition::Or(branches, self.mention(node))
            }
            ("VAR", _) => self.truth(node, true),
            ("NULLTEST", _) if object.number("nulltesttype") == Some(IS_NULL) => {
                match constants::operand(object.get("arg")) {
                    Some((parameter @ Operand::Parameter(_), _)) => Condition::is_null(parameter),
                    _ => other(self),
                }
            }
            ("OPEXPR", [left, right]) if is_equal(object) => {
                let class = self.canonical(object);
                let folded = class
                    .filter(|class| *class == ValueClass::Text)
                    .and_then(|_| self.folded([left, right]));
                folded.unwrap_or_else(|| Condition::Equal {
                    sides: [left, right].map(|side| self.side(side, class)),
                    class,
                })
            }
            ("SCALARARRAYOPEXPR", [side, list]) if object.is("useOr") && is_equal(object) => {
                let class = self.canonical(object);
                Condition::In {
                    side: self.side(side, class),
                    list: self.list(list, class),
                    class,
                }
            }
            ("SUBLINK", _) => self.semi_join(object).unwrap_or_else(|| other(self)),
            _ => other(self),
        }
    }

    /// Returns the condition that a column equals a value but for the case of letters:
    /// `lower(column) = lower(value)`. Both functions leave that as it is.
    fn folded(&self, sides: [&'t TreeNode; 2]) -> Option<Condition> {
        let [left, right] = sides;
        let is_folded = |[column, value]: [&'t TreeNode; 2]| {
            let (fold, column) = constants::argument_without_case(column)?;
            let mut found = self.column(column)?;
            let value = match constants::argument_without_case(value) {
                Some((same, value)) if same == fold => value,
                Some(_) => return None,
                None => value,
            };
            let (operand, of) = constants::operand(value)?;
            let is_text = found.column.class == ValueClass::Text && takes(ValueClass::Text, of);
            found.column.class = ValueClass::Folded(fold);
            let terms = [Term::Column(found), Term::Value(operand)];
            is_text.then(|| Condition::folded(terms, found.column.class))
        };
        is_folded([left, right]).or_else(|| is_folded([right, left]))
    }

    /// Returns the condition that a column is true, or false.
    fn truth(&mut self, node: &'t TreeNode, truth: bool) -> Condition {
        let side = self.side(node, Some(ValueClass::Boolean));
        match side.term {
            Term::Column(_) => Condition::In {
                side,
                list: InList::Values(vec![Operand::Constant(truth.into())]),
                class: Some(ValueClass::Boolean),
            },
            _ => Condition::Other(side.mention),
        }
    }

    /// `EXISTS (SELECT …)` or `column = ANY (SELECT …)`.
    fn semi_join(&mut self, sublink: &'t Object) -> Option<Condition> {
        // `SubLinkType`
        const EXISTS: u32 = 0;
        const ANY: u32 = 2;
        let column = match sublink.number("subLinkType")? {
            EXISTS => None,
            ANY => {
                let test = sublink.get("testexpr").object()?;
                let [column, output] = test.get("args").items() else {
                    return None;
                };
                let is_output = columns::bare(output).is_some_and(|output| output.name == "PARAM");
                let column = self.own_column(column)?;
                let is_plain = test.name == "OPEXPR" && is_output;
                let class = self.canonical(test).filter(|_| is_plain);
                Some(column)
                    .filter(|column| class == Some(column.class))?
                    .into()
            }
            _ => return None,
        };
        let query = sublink.get("subselect").object()?;
        let mut mention = Mention {
            has_subquery: true,
            ..Mention::default()
        };
        for (_, value) in &sublink.fields {
            named(value, 0, &mut mention.factors);
        }
        Some(Condition::SemiJoin {
            column,
            block: self.query(query),
            mention,
        })
    }

    /// Returns one side of an equality of this class.
    fn side(&mut self, node: &'t TreeNode, class: Option<ValueClass>) -> Side {
        Side {
            term: self.term(node, class).unwrap_or(Term::Other),
            mention: self.mention(node),
        }
    }

    fn term(&mut self, node: &'t TreeNode, class: Option<ValueClass>) -> Option<Term> {
        const VALUE: u32 = 4;
        if let Some(column) = self.column(node) {
            return Some(Term::Column(column));
        }
        if let Some((operand, of)) = constants::operand(node) {
            return takes(class?, of).then_some(Term::Value(operand));
        }
        let sublink = columns::bare(node).filter(|object| object.name == "SUBLINK")?;
        if sublink.number("subLinkType") != Some(VALUE) {
            return None;
        }
        let query = sublink.get("subselect").object()?;
        Some(Term::Subquery(self.query(query)))
    }

    fn list(&self, node: &TreeNode, class: Option<ValueClass>) -> InList {
        let elements = node
            .object()
            .map_or(0, |list| list.get("elements").items().len());
        if elements > MAX_VALUES {
            return InList::TooLong;
        }
        let fits = |of: u32| class.is_some_and(|class| takes(class, of));
        let operands =
            constants::operands(node).filter(|operands| operands.iter().all(|(_, of)| fits(*of)));
        match operands {
            Some(operands) => {
                InList::Values(operands.into_iter().map(|(operand, _)| operand).collect())
            }
            None => InList::Other(self.mention(node)),
        }
    }

    /// Returns the class whose equality the operator is, with a collation in which equal texts are
    /// the same bytes.
    fn canonical(&self, operator: &Object) -> Option<ValueClass> {
        let collation = operator.number("inputcollid").unwrap_or(0);
        let class = operator.number("opno").and_then(equality)?;
        self.catalog.is_deterministic(collation).then_some(class)
    }

    /// Returns the column of this query, or of one around it, that an expression is.
    fn column(&self, node: &TreeNode) -> Option<BlockColumn> {
        let level = columns::level(node)?;
        let place = self.scopes.len().checked_sub(1 + level)?;
        let scope = self.scopes.get(place)?;
        let entries = scope.query.get("rtable").items();
        let column = columns::restrictable(node, level, entries, self.catalog)?;
        Some(BlockColumn {
            block: scope.block,
            column,
        })
    }

    fn own_column(&self, node: &TreeNode) -> Option<FactorColumn> {
        let own = self.scopes.last()?.block;
        let found = self.column(node)?;
        (found.block == own).then_some(found.column)
    }

    fn mention(&self, node: &TreeNode) -> Mention {
        let entries = self
            .scopes
            .last()
            .map(|scope| scope.query.get("rtable").items());
        let entries = entries.unwrap_or_default();
        let column = columns::of_table(node, entries, self.catalog);
        let mut factors = BTreeSet::new();
        named(node, 0, &mut factors);
        Mention {
            factors,
            has_subquery: node.contains(&|object| object.name == "SUBLINK"),
            is_column: columns::bare(node).is_some_and(|object| object.name == "VAR"),
            column: column.map(|(factor, _, column)| (factor, column.name.clone())),
        }
    }
}

fn is_equal(operator: &Object) -> bool {
    operator.number("opno").is_some_and(is_equality)
}

/// Returns why a reference without any condition counts as a whole.
fn otherwise(query: &Object) -> Cause {
    let has = |field: &str| !matches!(query.get(field), TreeNode::Nothing);
    if query.is("hasAggs") {
        Cause::Aggregate
    } else if has("limitCount") && has("sortClause") {
        Cause::First
    } else {
        Cause::Unconditional
    }
}

/// Finds the references of the query that an expression in it names, also within subqueries,
/// `depth` of which are around it.
fn named(node: &TreeNode, depth: u32, into: &mut BTreeSet<usize>) {
    match node {
        TreeNode::List(items) => items.iter().for_each(|item| named(item, depth, into)),
        TreeNode::Object(object) => {
            if object.name == "VAR" && object.number("varlevelsup") == Some(depth) {
                let number = object.number::<usize>("varno");
                into.extend(number.and_then(|number| number.checked_sub(1)));
            }
            let depth = depth + u32::from(object.name == "QUERY");
            for (_, value) in &object.fields {
                named(value, depth, into);
            }
        }
        _ => {}
    }
}
