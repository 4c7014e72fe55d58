//! Translates statements into what both databases reason about (coherence.md, rules 10 and 21).

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, Query, Select, Statement, TableFactor, Visitor,
};

use super::common_tables::CommonTables;
use super::derived::{self, SelectId, keeps_rows, outputs, plain_select};
use super::first_rows::{FirstRows, OrderedQuery};
use super::functions::aggregates;
use super::joins::{self, JoinCondition};
use super::operands::{argument_without_case, items, operand, parts, row_count};
use super::plans::Plans;
use super::scope::{Scope, Sources, WitnessNames, base_name, last_part, place};
use super::walk::{walk, walk_expressions};
use crate::advice::Cause;
use crate::precision::model::{
    Block, BlockColumn, BlockId, BlockRows, Condition, Conjunct, Factor, FactorColumn,
    FirstOfFactor, InList, Mention, Side, Term,
};
use crate::precision::{MAX_VALUES, Operand, ValueClass};
use crate::sqlite::catalog::{Catalog, ResolvedColumn};
use crate::sqlite::tags::ROWID;

/// A statement as blocks.
pub(super) struct Translated<'a> {
    pub(super) blocks: Vec<Block<WitnessNames<'a>>>,
    /// The FROM clause of each block that is a SELECT.
    pub(super) scopes: Vec<Option<Scope<'a>>>,
    /// The number of references to each table, by its lower-case name without a schema.
    pub(super) named: HashMap<String, usize>,
    /// The number of references to each view that were looked through.
    pub(super) views: HashMap<String, usize>,
    pub(super) first_rows: Vec<FirstRows>,
}

pub(super) struct Translation<'a, 'c> {
    catalog: &'a Catalog,
    parameters: &'c HashMap<String, usize>,
    plans: &'c Plans<'c>,
    common: &'c CommonTables,
    /// The statement, if it takes the first rows of an order.
    ordered: Option<OrderedQuery<'c>>,
    done: Translated<'a>,
    /// The blocks of the SELECTs of the current text: the statement's, or that of a view.
    of_select: HashMap<SelectId, BlockId>,
    /// Queries around the current place in which names may have a meaning, the innermost last.
    around: Vec<Around>,
    /// The SELECTs around the current place, those around a view too.
    within: Vec<BlockId>,
    /// True if the current query takes the first rows in some order.
    takes_first: bool,
}

/// A query around the current place.
#[derive(Clone, Copy)]
enum Around {
    /// Names that are not found further inside may be columns of this SELECT.
    Select(BlockId),
    /// It is unknown which SELECT gives names a meaning here.
    Unknown,
}

impl<'a, 'c> Translation<'a, 'c> {
    pub(super) fn new(
        catalog: &'a Catalog,
        parameters: &'c HashMap<String, usize>,
        plans: &'c Plans<'c>,
        common: &'c CommonTables,
    ) -> Self {
        Self {
            catalog,
            parameters,
            plans,
            common,
            ordered: None,
            done: Translated {
                blocks: Vec::new(),
                scopes: Vec::new(),
                named: HashMap::new(),
                views: HashMap::new(),
                first_rows: Vec::new(),
            },
            of_select: HashMap::new(),
            around: Vec::new(),
            within: Vec::new(),
            takes_first: false,
        }
    }

    pub(super) fn statement(mut self, tree: &'c Statement) -> Translated<'a> {
        if let Statement::Query(query) = tree {
            self.ordered = OrderedQuery::of(query, &|expr| row_count(expr, self.parameters));
        }
        let _ = walk(tree, &mut self);
        self.done
    }

    const fn sources(&self) -> Sources<'a, 'c> {
        Sources {
            catalog: self.catalog,
            common: self.common,
        }
    }

    /// Returns the block of a SELECT of the current text, which may be translated later.
    fn block_of(&mut self, select: SelectId) -> BlockId {
        if let Some(known) = self.of_select.get(&select) {
            return *known;
        }
        let id = self.new_block();
        self.of_select.insert(select, id);
        id
    }

    fn new_block(&mut self) -> BlockId {
        self.done.blocks.push(Block {
            parent: None,
            factors: Vec::new(),
            from: BTreeSet::new(),
            conditions: Vec::new(),
            outputs: Vec::new(),
            rows: BlockRows::Select {
                keys: None,
                chooses: true,
            },
            first: None,
            carries: true,
            otherwise: Cause::Unconditional,
        });
        self.done.scopes.push(None);
        self.done.blocks.len() - 1
    }

    fn select(&mut self, select: &Select) -> BlockId {
        let id = self.block_of(SelectId::of(select));
        let scope = Scope::of(select, self.sources());
        let factors = scope.factors.len();
        let conditions = self.conditions(select, (id, &scope));
        let first = self.first_rows(select, &scope);
        let block = &mut self.done.blocks[id];
        // What reads a common table expression is known before.
        block.parent = block.parent.or(self.within.last().copied());
        block.factors = (0..factors)
            .map(|factor| table_factor(&scope, factor, self.catalog))
            .collect();
        block.from = (0..factors).collect();
        block.conditions = conditions;
        block.outputs = outputs(select, &scope);
        block.rows = BlockRows::Select {
            // The outputs are those alone that are among all keys.
            keys: keeps_rows(select, &scope).then(Vec::new),
            chooses: false,
        };
        block.first = first;
        block.otherwise = match (aggregates(select), self.takes_first) {
            (true, _) => Cause::Aggregate,
            (false, true) => Cause::First,
            (false, false) => Cause::Unconditional,
        };
        for factor in 0..factors {
            self.look_into(&scope, (id, factor));
        }
        self.done.scopes[id] = Some(scope);
        id
    }

    /// Finds the block that gives the rows of a factor.
    fn look_into(&mut self, scope: &Scope<'a>, (block, factor): (BlockId, usize)) {
        let source = &scope.factors[factor];
        let Some(derived) = source.derived() else {
            return;
        };
        let (selects, owns) = match &source.view {
            Some(view) => (self.look_through(view, block), true),
            None => {
                let selects = derived.selects.iter();
                let blocks = selects.map(|select| self.block_of(*select)).collect();
                (blocks, derived.is_read_once)
            }
        };
        let below = match selects.as_slice() {
            [] => return,
            [only] => *only,
            arms => {
                let classes = derived.columns.iter().map(|column| column.class).collect();
                self.union(arms, classes, owns)
            }
        };
        if owns {
            self.done.blocks[below].parent = Some(block);
        }
        let factor = &mut self.done.blocks[block].factors[factor];
        (factor.block, factor.owns_block) = (Some(below), owns);
    }

    /// Returns a block for a set operation.
    fn union(&mut self, arms: &[BlockId], classes: Vec<Option<ValueClass>>, owns: bool) -> BlockId {
        let id = self.new_block();
        let factors = arms.iter().map(|arm| Factor {
            table: None,
            block: Some(*arm),
            owns_block: owns,
            unique: Vec::new(),
        });
        self.done.blocks[id].factors = factors.collect();
        self.done.blocks[id].rows = BlockRows::Union {
            classes,
            chooses: false,
        };
        for arm in arms.iter().filter(|_| owns) {
            self.done.blocks[*arm].parent = Some(id);
        }
        id
    }

    /// Translates the text of a view that a block reads; returns the blocks of its SELECTs.
    fn look_through(&mut self, view: &str, block: BlockId) -> Vec<BlockId> {
        let catalog = self.catalog;
        let query = catalog.table(view).and_then(|view| view.query.as_deref());
        let Some(query) = query else {
            return Vec::new();
        };
        *self.done.views.entry(view.to_owned()).or_default() += 1;
        let takes_first = self.takes_first;
        // No name in a view means a column of the query that uses the view.
        let around = std::mem::take(&mut self.around);
        let of_select = std::mem::take(&mut self.of_select);
        self.within.push(block);
        let _ = walk(query, self);
        self.within.pop();
        let inner = std::mem::replace(&mut self.of_select, of_select);
        self.around = around;
        self.takes_first = takes_first;
        let selects = derived::selects(query).unwrap_or_default();
        let blocks = selects.into_iter();
        let blocks = blocks.map(|select| inner.get(&SelectId::of(select)).copied());
        blocks.collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the first rows of an order, if the SELECT takes these.
    fn first_rows(&mut self, select: &Select, scope: &Scope<'_>) -> Option<FirstOfFactor> {
        let ordered = self
            .ordered
            .as_ref()
            .filter(|ordered| ordered.is_of(select))?;
        let prepare = |sql: &str| self.plans.in_order(sql, self.parameters);
        let ((factor, column), rows) = ordered.first_rows(scope, &prepare)?;
        self.done.first_rows.push(rows);
        Some(FirstOfFactor {
            factor,
            column: place(column),
            rows: self.done.first_rows.len() - 1,
        })
    }

    fn conditions(&mut self, select: &Select, at: (BlockId, &Scope<'a>)) -> Vec<Conjunct> {
        let (_, scope) = at;
        let factors = scope.factors.len();
        let mut all = Vec::new();
        let mut add = |conditions: Vec<Condition>, restricts: BTreeSet<usize>| {
            all.extend(conditions.into_iter().map(|condition| Conjunct {
                condition,
                restricts: restricts.clone(),
            }));
        };
        if let Some(selection) = &select.selection {
            add(self.conjunction(selection, at), (0..factors).collect());
        }
        for (condition, restricts) in joins::conditions(select, factors) {
            let conditions = match condition {
                JoinCondition::On(on) => self.conjunction(on, at),
                JoinCondition::Using(factor) => using(scope, at.0, factor),
            };
            add(conditions, restricts);
        }
        all
    }

    /// Takes a conjunction apart.
    fn conjunction(&mut self, expr: &Expr, at: (BlockId, &Scope<'a>)) -> Vec<Condition> {
        let parts = parts(expr, &BinaryOperator::And).into_iter();
        parts.map(|part| self.condition(part, at)).collect()
    }

    fn condition(&mut self, expr: &Expr, at: (BlockId, &Scope<'a>)) -> Condition {
        let (_, scope) = at;
        let other = || Condition::Other(mention(scope, expr));
        match expr {
            Expr::BinaryOp {
                op: BinaryOperator::Or,
                ..
            } => {
                let branches = parts(expr, &BinaryOperator::Or).into_iter();
                let branches = branches.map(|branch| self.conjunction(branch, at));
                Condition::Or(branches.collect(), mention(scope, expr))
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                if let Some(folded) = self.folded([left.as_ref(), right.as_ref()], at) {
                    return folded;
                }
                let sides = [left, right].map(|side| self.side(side, at));
                equality(sides)
            }
            Expr::IsNull(inner) => match operand(inner, self.parameters) {
                Some(parameter @ Operand::Parameter(_)) => Condition::is_null(parameter),
                _ => other(),
            },
            Expr::InList {
                expr: side,
                list,
                negated: false,
            } => self.in_list(side, list, at),
            Expr::InSubquery {
                expr: column,
                subquery,
                negated: false,
            } => {
                let items = items(subquery, self.parameters);
                let items = items.filter(|_| self.sources().has_own_lists());
                match (items, factor_column(scope, column), plain_select(subquery)) {
                    (Some(items), Some(found), _) => Condition::In {
                        side: self.side(column, at),
                        list: InList::Values(vec![items]),
                        class: Some(found.class),
                    },
                    (None, Some(found), Some(select)) => Condition::SemiJoin {
                        column: Some(found),
                        block: self.block_of(SelectId::of(select)),
                        mention: mention(scope, expr),
                    },
                    _ => other(),
                }
            }
            Expr::Exists {
                subquery,
                negated: false,
            } => match plain_select(subquery) {
                Some(select) => Condition::SemiJoin {
                    column: None,
                    block: self.block_of(SelectId::of(select)),
                    mention: mention(scope, expr),
                },
                None => other(),
            },
            _ => other(),
        }
    }

    /// Returns the condition that a column equals a value but for the case of letters:
    /// `lower(column) = lower(value)`. Both functions leave that as it is.
    fn folded(
        &self,
        sides: [&Expr; 2],
        (block, scope): (BlockId, &Scope<'a>),
    ) -> Option<Condition> {
        let [left, right] = sides;
        let is_folded = |[column, value]: [&Expr; 2]| {
            let (fold, column) = argument_without_case(column)?;
            let column = factor_column(scope, column)?;
            let value = match argument_without_case(value) {
                Some((same, value)) if same == fold => value,
                Some(_) => return None,
                None => value,
            };
            let value = operand(value, self.parameters)?;
            let class = match column.class {
                ValueClass::Text => ValueClass::Folded(fold),
                // Texts that are equal without their case are so by NOCASE.
                same @ ValueClass::Folded(_) => same,
                _ => return None,
            };
            let column = FactorColumn { class, ..column };
            let column = BlockColumn { block, column };
            let terms = [Term::Column(column), Term::Value(value)];
            Some(Condition::folded(terms, class))
        };
        is_folded([left, right]).or_else(|| is_folded([right, left]))
    }

    fn in_list(&self, side: &Expr, list: &[Expr], at: (BlockId, &Scope<'a>)) -> Condition {
        let values = list.iter().map(|value| operand(value, self.parameters));
        let values: Option<Vec<Operand>> = values.collect();
        let list = match values {
            _ if list.len() > MAX_VALUES => InList::TooLong,
            Some(values) => InList::Values(values),
            None => {
                let mentions = list.iter().map(|value| mention(at.1, value));
                InList::Other(mentions.fold(Mention::default(), |all, one| Mention {
                    has_subquery: all.has_subquery || one.has_subquery,
                    is_column: all.is_column || one.is_column,
                    ..all
                }))
            }
        };
        Condition::In {
            class: factor_column(at.1, side).map(|column| column.class),
            side: self.column_side(side, at),
            list,
        }
    }

    /// Returns one side of an equality.
    fn side(&mut self, expr: &Expr, at: (BlockId, &Scope<'a>)) -> Side {
        if let Expr::Subquery(subquery) = expr
            && let Some(select) = plain_select(subquery)
        {
            return Side {
                term: Term::Subquery(self.block_of(SelectId::of(select))),
                mention: mention(at.1, expr),
            };
        }
        self.column_side(expr, at)
    }

    /// Returns one side of an equality that is no subquery.
    fn column_side(&self, expr: &Expr, (block, scope): (BlockId, &Scope<'a>)) -> Side {
        let own = factor_column(scope, expr).map(|column| BlockColumn { block, column });
        let column = own.or_else(|| self.find_outside(scope, expr));
        let value = operand(expr, self.parameters);
        let term = column.map(Term::Column).or(value.map(Term::Value));
        Side {
            term: term.unwrap_or(Term::Other),
            mention: mention(scope, expr),
        }
    }

    /// Returns the column of a SELECT around this one that an expression names.
    fn find_outside(&self, scope: &Scope<'_>, expr: &Expr) -> Option<BlockColumn> {
        if scope.resolve(expr).is_some() || !scope.lacks(expr) {
            return None;
        }
        for around in self.around.iter().rev().skip(1) {
            let Around::Select(block) = *around else {
                return None;
            };
            let scope = self.done.scopes[block].as_ref()?;
            if scope.resolve(expr).is_some() {
                let column = factor_column(scope, expr)?;
                return Some(BlockColumn { block, column });
            }
            if !scope.lacks(expr) {
                return None;
            }
        }
        None
    }
}

impl Visitor for Translation<'_, '_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = base_name(relation)
            .or_else(|| last_part(relation))
            .unwrap_or_default();
        *self.done.named.entry(name).or_default() += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.takes_first = query.order_by.is_some() && query.limit_clause.is_some();
        self.around.push(Around::Unknown);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let block = self.select(select);
        self.within.push(block);
        if let Some(innermost) = self.around.last_mut() {
            *innermost = Around::Select(block);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.within.pop();
        if let Some(innermost) = self.around.last_mut() {
            *innermost = Around::Unknown;
        }
        ControlFlow::Continue(())
    }

    /// A subquery in FROM does not see the other tables there.
    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.around.push(Around::Unknown);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

/// Returns a factor as far as it is a table or a view.
fn table_factor<'a>(
    scope: &Scope<'a>,
    factor: usize,
    catalog: &'a Catalog,
) -> Factor<WitnessNames<'a>> {
    let source = &scope.factors[factor];
    let rowid = source.base().map(|(_, table)| match table.rowid_column {
        Some(index) => ResolvedColumn::Column(index),
        None => ResolvedColumn::Rowid,
    });
    Factor {
        table: source.names_for_witness(catalog),
        block: None,
        owns_block: false,
        unique: rowid.map(place).into_iter().collect(),
    }
}

/// Returns the column that an expression names, if its equality has a canonical form.
pub(super) fn factor_column(scope: &Scope<'_>, expr: &Expr) -> Option<FactorColumn> {
    scope.factor_column(scope.resolve(expr)?)
}

/// Returns an equality, with its canonical form if both sides have one.
fn equality(sides: [Side; 2]) -> Condition {
    let class = |side: &Side| match &side.term {
        Term::Column(found) => Some(found.column.class),
        _ => None,
    };
    let class = match (class(&sides[0]), class(&sides[1])) {
        (Some(left), Some(right)) => (left == right).then_some(left),
        (left, right) => left.or(right),
    };
    Condition::Equal { sides, class }
}

/// Returns the equalities of a join by USING, whose right side is `factor`.
fn using(scope: &Scope<'_>, block: BlockId, factor: usize) -> Vec<Condition> {
    let side = |column| {
        let column = scope.factor_column(column)?;
        Some(Side {
            term: Term::Column(BlockColumn { block, column }),
            mention: Mention::default(),
        })
    };
    let pairs = scope.merged_columns(factor).into_iter();
    let pairs = pairs.filter_map(|(left, right)| Some(equality([side(left)?, side(right)?])));
    pairs.collect()
}

fn mention(scope: &Scope<'_>, expr: &Expr) -> Mention {
    let mut factors = BTreeSet::new();
    let mut has_subquery = false;
    let _ = walk_expressions(expr, |inner| {
        factors.extend(scope.resolve(inner).map(|(factor, _)| factor));
        has_subquery |= matches!(
            inner,
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. }
        );
        ControlFlow::Continue(())
    });
    let column = scope.resolve(expr).and_then(|(factor, column)| {
        let (_, table) = scope.factors[factor].base()?;
        let name = match column {
            ResolvedColumn::Column(index) => table.columns[index].name.clone(),
            ResolvedColumn::Rowid => ROWID.to_owned(),
        };
        Some((factor, name))
    });
    Mention {
        factors,
        has_subquery,
        is_column: is_column(expr),
        column,
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_column(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}
