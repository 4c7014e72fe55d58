//! Carries restrictions on along keys, by witnesses (coherence.md, rule 21).

use std::collections::{BTreeSet, HashMap};

use super::columns::{self, RELATION, ReferenceColumn, SUBQUERY};
use super::derived;
use super::nodes::{Object, TreeNode};
use super::restrict::{self, ColumnEquality, EqualColumns, LevelColumn, RestrictionSearch};
use super::witness::{Values, Witness};
use crate::postgres::catalog::Catalog;
use std::sync::Arc;

/// A query with the restrictions of its references, by their number from 1.
#[derive(Default)]
pub(super) struct Narrowed<'t> {
    entries: &'t [TreeNode],
    /// Each one alone is sufficient.
    pub(super) found: HashMap<usize, Vec<ColumnEquality>>,
    /// The restriction that other references may be narrowed by.
    chosen: HashMap<usize, ColumnEquality>,
    /// What restricts the output columns of subqueries in conditions.
    pub(super) moved: Vec<(&'t Object, Vec<ColumnEquality>)>,
    /// Those subqueries in conditions by whose rows a reference is narrowed.
    sources: Vec<*const Object>,
}

impl Narrowed<'_> {
    /// True for a subquery in a condition by whose rows a reference is narrowed.
    pub(super) fn is_narrowed_by(&self, query: &Object) -> bool {
        self.sources.contains(&std::ptr::from_ref(query))
    }
}

/// The queries around the current one, the innermost last.
#[derive(Clone, Copy)]
pub(super) struct Around<'w, 't> {
    pub(super) queries: &'w [Narrowed<'t>],
    pub(super) place: QueryPlace,
    /// True within a subquery by whose rows a reference around it is narrowed.
    pub(super) is_source: bool,
}

/// Where a query stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryPlace {
    /// In the statement itself.
    Statement,
    /// In a view, which may be read with the rights of another role.
    View,
    /// In a recursive query, where nothing is carried on.
    Recursion,
}

impl<'w, 't> Around<'w, 't> {
    /// The query around the current one by this level, from 1.
    fn at(&self, level: usize) -> Option<&'w Narrowed<'t>> {
        self.queries.get(self.queries.len().checked_sub(level)?)
    }

    /// The column of a query around the current one that an expression is.
    pub(super) fn column(&self, node: &TreeNode, catalog: &Catalog) -> Option<LevelColumn> {
        let level = columns::level(node)?;
        let entries = self.at(level)?.entries;
        let column = columns::restrictable_at(node, level, entries, catalog)?;
        Some(LevelColumn { level, column })
    }

    /// The restrictions of the reference of a column around the current query that may narrow
    /// what is in it.
    pub(super) fn known(&self, side: LevelColumn) -> impl Iterator<Item = &'w ColumnEquality> {
        let known = self.at(side.level);
        let known = known.and_then(|query| query.found.get(&side.column.reference));
        let is_source = self.is_source;
        let known = known.into_iter().flatten();
        known.filter(move |known| !is_source || !known.values.are_witnessed())
    }
}

/// `x.a = ANY (SELECT …)`, `x.a = (SELECT …)` or `EXISTS (SELECT …)`, which stands where an
/// equality would restrict.
#[derive(Clone)]
pub(super) struct SemiJoin<'t> {
    /// The column in front.
    pub(super) column: Option<ReferenceColumn>,
    pub(super) query: &'t Object,
    /// True if all rows of the subquery are compared, not only the first.
    pub(super) takes_all: bool,
    /// The references that the condition restricts.
    pub(super) inside: BTreeSet<usize>,
}

/// Chooses the restrictions of the references of one query.
///
/// A reference is narrowed by a witness only if nothing was chosen for it before, and only by
/// references for which something was, or by the inside of a subquery that is not narrowed
/// afterwards. What a subquery in a condition narrows by its rows narrows nothing inside it. So no
/// two references are each narrowed by the other.
pub(super) struct Carrier<'s, 't> {
    search: RestrictionSearch<'s, 't>,
    chosen: HashMap<usize, ColumnEquality>,
    /// Subqueries in FROM by whose inside other references are narrowed.
    closed: BTreeSet<usize>,
    /// Those semi-joins by whose rows a reference is narrowed.
    sources: Vec<*const Object>,
}

impl<'s, 't> Carrier<'s, 't> {
    pub(super) fn new(search: RestrictionSearch<'s, 't>) -> Self {
        Self {
            search,
            chosen: HashMap::new(),
            closed: BTreeSet::new(),
            sources: Vec::new(),
        }
    }

    pub(super) fn narrow(mut self) -> Narrowed<'t> {
        self.choose(|values| values.has_parameter() || matches!(values, Values::Witnessed(_)));
        self.carry_on();
        self.choose(|_| true);
        self.carry_on();
        let semi_joins = std::mem::take(&mut self.search.semi_joins);
        let moved = semi_joins
            .iter()
            .filter_map(|semi_join| Some((semi_join.query, self.moved_into(semi_join)?)));
        Narrowed {
            moved: moved.collect(),
            sources: self.sources,
            entries: self.search.entries,
            found: self.search.found,
            chosen: self.chosen,
        }
    }

    /// Chooses the first restriction of each reference that is worth it, those by parameters
    /// first.
    fn choose(&mut self, is_worth: impl Fn(&Values) -> bool) {
        for (reference, known) in &self.search.found {
            if self.chosen.contains_key(reference) {
                continue;
            }
            let by_parameter = known.iter().find(|known| known.values.has_parameter());
            let first = known.iter().find(|known| is_worth(&known.values));
            self.chosen.extend(
                by_parameter
                    .or(first)
                    .map(|best| (*reference, best.clone())),
            );
        }
    }

    /// Narrows references by those that are chosen, and chooses them, as far as that leads.
    fn carry_on(&mut self) {
        if self.search.around.place == QueryPlace::Recursion {
            return;
        }
        let equal_columns = self.search.equal_columns.clone();
        let semi_joins = self.search.semi_joins.clone();
        let mut grows = true;
        while grows {
            grows = false;
            for EqualColumns { from, to, .. } in &equal_columns {
                let is_same = from.level == 0 && from.column.reference == to.reference;
                if is_same || !self.is_open(to.reference) {
                    continue;
                }
                let values = self.values_of(*from);
                if self.take(*to, values) {
                    grows = true;
                    if from.level == 0 && !self.chosen.contains_key(&from.column.reference) {
                        self.closed.insert(from.column.reference);
                    }
                }
            }
            for semi_join in &semi_joins {
                grows |= self.semi_join(semi_join);
            }
        }
    }

    /// Restricts a column of a reference for which nothing was chosen, and chooses that.
    fn take(&mut self, column: ReferenceColumn, values: Option<Values>) -> bool {
        let Some(values) = values.filter(|_| self.is_open(column.reference)) else {
            return false;
        };
        let equality = ColumnEquality {
            column: column.number,
            class: column.class,
            values,
        };
        let known = self.search.found.entry(column.reference).or_default();
        known.insert(0, equality.clone());
        self.chosen.insert(column.reference, equality);
        true
    }

    /// True if a witness may narrow the reference.
    fn is_open(&self, reference: usize) -> bool {
        !self.chosen.contains_key(&reference) && !self.closed.contains(&reference)
    }

    /// The values that a column has in the rows of its reference that count.
    fn values_of(&self, side: LevelColumn) -> Option<Values> {
        let (entries, chosen) = match side.level {
            0 => (self.search.entries, &self.chosen),
            level => {
                let query = self.search.around.at(level)?;
                (query.entries, &query.chosen)
            }
        };
        let rows = chosen.get(&side.column.reference);
        let is_barred = side.level > 0 && self.search.around.is_source;
        if is_barred && rows.is_some_and(|rows| rows.values.are_witnessed()) {
            return None;
        }
        self.values(entries, side.column, rows)
    }

    /// The same, of a reference whose rows are restricted by `rows`.
    fn values(
        &self,
        entries: &[TreeNode],
        column: ReferenceColumn,
        rows: Option<&ColumnEquality>,
    ) -> Option<Values> {
        if let Some(rows) = rows.filter(|rows| rows.column == column.number) {
            return Some(rows.values.clone());
        }
        let entry = entries.get(column.reference.checked_sub(1)?)?.object()?;
        match entry.number("rtekind")? {
            RELATION => self.witness(entry, column, rows?),
            SUBQUERY => self.values_inside(entry, column, rows),
            _ => None,
        }
    }

    /// A witness for the values of a table's column in rows that are restricted.
    fn witness(
        &self,
        entry: &Object,
        column: ReferenceColumn,
        rows: &ColumnEquality,
    ) -> Option<Values> {
        let catalog = self.search.catalog;
        let table = catalog.relation(entry.number("relid")?)?;
        let is_plain = matches!(table.kind, 'r' | 'p') && table.may_select;
        // A witness has the rights and policies of the role that asks, a view those of its owner.
        let has_policies = || {
            let tables = catalog.tree(table.oid);
            let mut tables = tables.iter().filter_map(|table| catalog.relation(*table));
            tables.any(|table| table.row_security)
        };
        let is_same = self.search.around.place == QueryPlace::Statement || !has_policies();
        if !is_plain || !is_same || !catalog.is_indexed(table.oid, rows.column) {
            return None;
        }
        let name = &table.column(column.number)?.name;
        let key = &table.column(rows.column)?.name;
        let (column, key) = ((name.as_str(), column.class), (key.as_str(), rows.class));
        let witness = Witness::new(table, column, key, rows.values.clone());
        Some(Values::Witnessed(Arc::new(witness)))
    }

    /// The values that a subquery's output column has, by the rows of the table inside whose
    /// column it is.
    fn values_inside(
        &self,
        entry: &Object,
        column: ReferenceColumn,
        rows: Option<&ColumnEquality>,
    ) -> Option<Values> {
        let query = entry.get("subquery").object()?;
        if !derived::keeps_rows(query) {
            return None;
        }
        let nothing = Around {
            queries: &[],
            ..self.search.around
        };
        let inside = self.search.inside(query, nothing);
        let below = inside.any_column(derived::output(query, column.number)?.get("expr"))?;
        if below.class != column.class {
            return None;
        }
        let moved = rows.and_then(|rows| {
            let target = derived::output(query, rows.column)?;
            let key = inside.any_column(target.get("expr"))?;
            (key.reference == below.reference && key.class == rows.class).then(|| ColumnEquality {
                column: key.number,
                class: key.class,
                values: rows.values.clone(),
            })
        });
        let rows = moved.or_else(|| inside.independent(below.reference).cloned())?;
        self.values(inside.entries, below, Some(&rows))
    }

    /// Narrows references by the rows of a table inside of a semi-join.
    fn semi_join(&mut self, semi_join: &SemiJoin<'t>) -> bool {
        let query = semi_join.query;
        if !derived::keeps_rows(query) {
            return false;
        }
        let this = Narrowed {
            entries: self.search.entries,
            ..Narrowed::default()
        };
        let around = Around {
            queries: std::slice::from_ref(&this),
            ..self.search.around
        };
        let inside = self.search.inside(query, around);
        let mut found = Vec::new();
        for (from, to) in pairs(semi_join, &inside) {
            let is_open = semi_join.inside.contains(&to.reference) && from.class == to.class;
            if let Some(rows) = inside.independent(from.reference).filter(|_| is_open) {
                found.push((to, self.values(inside.entries, from, Some(rows))));
            }
        }
        let mut grows = false;
        for (to, values) in found {
            if self.take(to, values) {
                self.sources.push(std::ptr::from_ref(query));
                grows = true;
            }
        }
        grows
    }

    /// What `x.a = ANY (SELECT y.b …)` restricts in the subquery: where only some rows of `x`
    /// count, only rows count whose first column is one of the values of `a` in these.
    fn moved_into(&self, semi_join: &SemiJoin<'t>) -> Option<Vec<ColumnEquality>> {
        // Of two references each narrowed by the other, neither would be narrowed.
        let is_source = self.sources.contains(&std::ptr::from_ref(semi_join.query));
        let moves = semi_join.takes_all && !is_source;
        let column = semi_join.column.filter(|_| moves)?;
        let known = self
            .search
            .found
            .get(&column.reference)
            .into_iter()
            .flatten();
        let known = known.filter(|known| known.column == column.number);
        let known = known.map(|known| known.values.clone());
        let witnessed = self.values_of(LevelColumn { level: 0, column });
        let all = known.chain(witnessed).map(|values| ColumnEquality {
            column: 1,
            class: column.class,
            values,
        });
        Some(all.collect())
    }
}

/// The columns inside of a semi-join, each with the column outside that must be equal to it.
fn pairs(
    semi_join: &SemiJoin<'_>,
    inside: &RestrictionSearch<'_, '_>,
) -> Vec<(ReferenceColumn, ReferenceColumn)> {
    if let Some(to) = semi_join.column {
        let output = derived::output(semi_join.query, 1);
        let from = output.and_then(|output| inside.any_column(output.get("expr")));
        return from.map(|from| (from, to)).into_iter().collect();
    }
    let everywhere = restrict::references(semi_join.query);
    let outward = inside
        .equal_columns
        .iter()
        .filter(|equal| equal.from.level == 1 && equal.inside == everywhere);
    outward.map(|equal| (equal.to, equal.from.column)).collect()
}
