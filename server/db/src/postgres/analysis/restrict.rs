//! Finds the equalities that restrict a table reference (coherence.md, rule 10).
//!
//! Nothing here has to be complete, but everything has to be certain: a reference that is not
//! reported as restricted makes its table a dependency as a whole.
//!
//! The tree is PostgreSQL's own, with names resolved: an equality is an operator by its oid, a
//! column is the number of a reference and of a column, and every conversion is a node. So an
//! implicit cast, another collation or a column that a join has merged cannot be mistaken for the
//! column itself.
//!
//! Why an equality `t.c = v` in the conjunction of WHERE restricts for all joins: a row of `t` with
//! another value in `c` gives only combined rows for which the conjunction is not true; and where
//! its absence would make an outer join fill in NULLs, the comparison with NULL is not true either.
//! The same holds for an inner join's ON and everything below that join, since what the join gives
//! is all that the rest of the query sees; for a LEFT join's ON it holds for the right side only,
//! whose rows are not matched unless the condition is true, and for a RIGHT join's ON for the left
//! side.
//!
//! The same holds for `t.c = v OR t.c = w`, as for `t.c IN (v, w)`: a row with a third value makes
//! no branch true. In a branch that is a conjunction one equality is enough for that.
//!
//! An equality of two columns hands a restriction on: see [`EqualColumns`].
//!
//! None of this asks where the rows of a reference come from, so it holds for views and subqueries
//! as for tables. Which of their restrictions hold inside is said in [`super::derived`].

use std::collections::{BTreeSet, HashMap};

use super::carry::{Around, Carrier, Narrowed, SemiJoin};
use super::columns::{self, ReferenceColumn};
use super::constants::{self, Operand};
use super::derived::MovedEquality;
use super::first_rows::FirstRows;
use super::nodes::{Object, TreeNode};
use super::witness::Values;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::{Catalog, Relation, types};
use crate::postgres::interest::SelectedBy;
use crate::postgres::order::OrderName;
use crate::postgres::tags::{ColumnName, ValueClass};

/// Values in one `IN (…)`; a longer list makes the whole table a dependency.
pub(crate) const MAX_VALUES: usize = 64;

/// `column = value`, `column IN (values)` or `column = ANY (array)`, for a column of a reference:
/// only rows with one of the values count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnEquality {
    /// The column's number, from 1.
    pub(crate) column: i16,
    pub(crate) class: ValueClass,
    pub(crate) values: Values,
}

impl ColumnEquality {
    /// The equality with the values of this one and of another on the same column; none if they
    /// are too many, or not given one by one.
    fn or(&self, other: &Self) -> Option<Self> {
        let (Values::Given(left), Values::Given(right)) = (&self.values, &other.values) else {
            return None;
        };
        let mut values = left.clone();
        values.extend(right.iter().filter(|value| !left.contains(value)).cloned());
        let is_list = |value: &Operand| matches!(value, Operand::Items { .. });
        let is_known = values.len() <= MAX_VALUES && !values.iter().any(is_list);
        is_known.then(|| Self {
            values: Values::Given(values),
            ..self.clone()
        })
    }
}

/// The rows of a table to which a reference is restricted, by a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    pub(crate) column: String,
    pub(crate) rows: RestrictedRows,
    /// Whether the feed reports the column's old value.
    pub(crate) precise: bool,
}

impl Restriction {
    /// The values that select the rows, if values do.
    pub(super) fn values(&self) -> Option<&Values> {
        match &self.rows {
            RestrictedRows::Equal(_, values) => Some(values),
            RestrictedRows::First(..) => None,
        }
    }

    /// Counts only changes to these columns.
    pub(super) fn read(&mut self, family: u32, reads: &ColumnSet) {
        match &mut self.rows {
            RestrictedRows::Equal(name, _) => {
                *name = ColumnName::new(family, &self.column, name.class()).reading(reads);
            }
            RestrictedRows::First(name, _) => {
                *name = OrderName::new(family, &self.column, name.order, reads);
            }
        }
    }
}

/// Some rows of a table, with what names them in dependencies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RestrictedRows {
    Equal(ColumnName, Values),
    First(OrderName, FirstRows),
}

impl RestrictedRows {
    /// How the column selects the rows.
    pub(crate) const fn selected_by(&self) -> SelectedBy {
        match self {
            Self::Equal(name, _) => SelectedBy::Value(name.class()),
            Self::First(name, _) => SelectedBy::Order(name.order),
        }
    }
}

/// The restrictions of a query's references, by their number from 1; each one alone is sufficient.
/// `moved` are those on output columns of the query that hold inside.
pub(super) fn of<'t>(
    query: &'t Object,
    catalog: &Catalog,
    moved: &[MovedEquality<'_>],
    around: Around<'_, 't>,
) -> Narrowed<'t> {
    let mut search = RestrictionSearch::new(query, catalog, around);
    for equality in moved {
        search.moved(equality);
    }
    search.search(query);
    Carrier::new(search).narrow()
}

/// The restrictions of a reference to `table`, the best first.
pub(crate) fn of_table(
    equalities: Vec<ColumnEquality>,
    table: &Relation,
    catalog: &Catalog,
) -> Vec<Restriction> {
    let Some(family) = catalog.families.of(table.oid) else {
        return Vec::new();
    };
    let all = equalities.into_iter().filter_map(|equality| {
        let column = &table.column(equality.column)?.name;
        Some(Restriction {
            column: column.clone(),
            rows: RestrictedRows::Equal(
                ColumnName::new(family, column, equality.class),
                equality.values,
            ),
            precise: catalog.reports_old_values(table.oid, column),
        })
    });
    let mut all: Vec<Restriction> = all.collect();
    // A key selects one row, and the feed names the key's old value. The others are equal, so the
    // one that was found first is taken: what is compared outside selects before what a view says.
    // A parameter needs no witness.
    let has_parameter = |found: &Restriction| found.values().is_some_and(Values::has_parameter);
    all.sort_by_key(|found| (!has_parameter(found), !found.precise));
    all
}

/// Whether the query reads a system column that VACUUM FULL or a lock changes. `tableoid` does not.
pub(crate) fn uses_row_versions(query: &Object) -> bool {
    const TABLEOID: i16 = -6;
    fn search(node: &TreeNode) -> bool {
        match node {
            TreeNode::List(items) => items.iter().any(search),
            TreeNode::Object(object) => {
                let number = object.number::<i16>("varattno");
                (object.name == "VAR" && number.is_some_and(|n| n < 0 && n != TABLEOID))
                    || object.fields.iter().any(|(_, value)| search(value))
            }
            _ => false,
        }
    }
    ["targetList", "jointree", "havingQual"]
        .iter()
        .any(|field| search(query.get(field)))
}

/// All references in the FROM clause of a query.
pub(super) fn references(query: &Object) -> BTreeSet<usize> {
    join(query.get("jointree"), &mut Vec::new())
}

/// The conditions of the query's WHERE and ON that stand by themselves, each with the references
/// that it restricts.
pub(super) fn conditions(query: &Object) -> Vec<(&TreeNode, BTreeSet<usize>)> {
    let mut found = Vec::new();
    join(query.get("jointree"), &mut found);
    found
}

/// Looks into a part of the FROM clause; gives the references in it.
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
        "RANGETBLREF" => inside.extend(object.number::<usize>("rtindex")),
        "FROMEXPR" => {
            for item in object.get("fromlist").items() {
                inside.extend(join(item, found));
            }
            conjunction(object.get("quals"), &inside, found);
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
            conjunction(object.get("quals"), restricted, found);
        }
        _ => {}
    }
    inside
}

/// Takes a conjunction apart; a list is one too.
fn conjunction<'a>(
    node: &'a TreeNode,
    inside: &BTreeSet<usize>,
    found: &mut Vec<(&'a TreeNode, BTreeSet<usize>)>,
) {
    let items = match node.object() {
        Some(object)
            if object.name == "BOOLEXPR" && object.get("boolop").token() == Some("and") =>
        {
            object.get("args").items()
        }
        Some(_) => return found.push((node, inside.clone())),
        None => node.items(),
    };
    for item in items {
        conjunction(item, inside, found);
    }
}

/// `x.a = y.b`, where an equality of `y.b` with a value would restrict `y`. If only rows of `x`
/// with `a = v` count, only rows of `y` with `b = v` do: a row with another value meets the
/// condition only with rows of `x` that do not count.
#[derive(Clone)]
pub(super) struct EqualColumns {
    pub(super) from: LevelColumn,
    pub(super) to: ReferenceColumn,
    /// The references that the condition restricts.
    pub(super) inside: BTreeSet<usize>,
}

/// A column of this query (level 0), or of one around it (level 1 and up).
#[derive(Clone, Copy)]
pub(super) struct LevelColumn {
    pub(super) level: usize,
    pub(super) column: ReferenceColumn,
}

pub(super) struct RestrictionSearch<'a, 't> {
    pub(super) catalog: &'a Catalog,
    pub(super) entries: &'t [TreeNode],
    pub(super) around: Around<'a, 't>,
    pub(super) found: HashMap<usize, Vec<ColumnEquality>>,
    pub(super) equal_columns: Vec<EqualColumns>,
    pub(super) semi_joins: Vec<SemiJoin<'t>>,
}

impl<'a, 't> RestrictionSearch<'a, 't> {
    fn new(query: &'t Object, catalog: &'a Catalog, around: Around<'a, 't>) -> Self {
        Self {
            catalog,
            entries: query.get("rtable").items(),
            around,
            found: HashMap::new(),
            equal_columns: Vec::new(),
            semi_joins: Vec::new(),
        }
    }

    /// What is found in another query.
    pub(super) fn inside<'b, 'u>(
        &self,
        query: &'u Object,
        around: Around<'b, 'u>,
    ) -> RestrictionSearch<'b, 'u>
    where
        'a: 'b,
    {
        let mut search = RestrictionSearch::new(query, self.catalog, around);
        search.search(query);
        search
    }

    fn search(&mut self, query: &'t Object) {
        for (condition, inside) in conditions(query) {
            self.condition(condition, &inside);
        }
        self.spread();
    }

    /// A restriction of a reference that does not depend on other references.
    pub(super) fn independent(&self, reference: usize) -> Option<&ColumnEquality> {
        let mut known = self.found.get(&reference)?.iter();
        known.find(|known| known.values.has_parameter())
    }

    /// Takes an equality on an output column, if that is a column of a reference.
    fn moved(&mut self, equality: &MovedEquality<'_>) {
        if let Some(column) = self.any_column(equality.expression)
            && column.class == equality.class
        {
            self.add(column, equality.values.clone());
        }
    }

    /// Takes the equality on one of the references `inside`, if the condition is one.
    fn condition(&mut self, node: &'t TreeNode, inside: &BTreeSet<usize>) {
        let Some(object) = node.object() else {
            return;
        };
        let arguments = object.get("args").items();
        match object.name.as_str() {
            "BOOLEXPR" => match (object.get("boolop").token(), arguments) {
                (Some("not"), [column]) => self.truth(column, false, inside),
                (Some("or"), branches) => self.disjunction(branches, inside),
                _ => {}
            },
            "VAR" => self.truth(node, true, inside),
            "OPEXPR" => {
                if let [left, right] = arguments {
                    for (column, value) in [(left, right), (right, left)] {
                        let values = constants::operand(value).map(|value| vec![value]);
                        self.restrict(object, column, values, inside);
                        self.equal(object, column, value, inside);
                        self.first_row(object, column, value, inside);
                    }
                }
            }
            "SCALARARRAYOPEXPR" if object.is("useOr") => {
                if let [column, values] = arguments {
                    self.restrict(object, column, constants::operands(values), inside);
                }
            }
            "SUBLINK" => self.semi_join(object, inside),
            _ => {}
        }
    }

    /// Takes what all branches restrict: a column of a reference, to the values of each.
    fn disjunction(&mut self, branches: &'t [TreeNode], inside: &BTreeSet<usize>) {
        let mut branches = branches.iter().map(|branch| self.branch(branch, inside));
        let mut common = branches.next().unwrap_or_default();
        for branch in branches {
            for (reference, known) in &mut common {
                let others = branch.get(reference).map_or(&[][..], Vec::as_slice);
                let either = known.iter().filter_map(|one| {
                    let mut others = others.iter();
                    one.or(others.find(|other| other.column == one.column)?)
                });
                *known = either.collect();
            }
        }
        for (reference, known) in common {
            for equality in known {
                self.add_equality(reference, equality);
            }
        }
    }

    /// The equalities of a branch of OR, which is a conjunction.
    fn branch(
        &self,
        branch: &'t TreeNode,
        inside: &BTreeSet<usize>,
    ) -> HashMap<usize, Vec<ColumnEquality>> {
        let mut search = RestrictionSearch {
            found: HashMap::new(),
            equal_columns: Vec::new(),
            semi_joins: Vec::new(),
            ..*self
        };
        let mut conditions = Vec::new();
        conjunction(branch, inside, &mut conditions);
        for (condition, inside) in conditions {
            search.condition(condition, &inside);
        }
        search.found
    }

    /// `EXISTS (SELECT …)` or `column = ANY (SELECT …)`.
    fn semi_join(&mut self, sublink: &'t Object, inside: &BTreeSet<usize>) {
        // `SubLinkType`
        const EXISTS: u32 = 0;
        const ANY: u32 = 2;
        let column = match sublink.number("subLinkType") {
            Some(EXISTS) => None,
            Some(ANY) => {
                let Some(test) = sublink.get("testexpr").object() else {
                    return;
                };
                let [column, output] = test.get("args").items() else {
                    return;
                };
                let is_output = |output: &Object| output.name == "PARAM";
                let is_plain = columns::bare(output).is_some_and(is_output);
                let found = self.column(column, inside).filter(|_| is_plain);
                let found = found.filter(|column| {
                    test.name == "OPEXPR" && self.canonical_equality(test) == Some(column.class)
                });
                if found.is_none() {
                    return;
                }
                found
            }
            _ => return,
        };
        self.note_semi_join(sublink, column, true, inside);
    }

    /// `column = (SELECT …)`.
    fn first_row(
        &mut self,
        operator: &Object,
        column: &TreeNode,
        value: &'t TreeNode,
        inside: &BTreeSet<usize>,
    ) {
        const VALUE: u32 = 4;
        let sublink = columns::bare(value).filter(|sublink| sublink.name == "SUBLINK");
        let (Some(sublink), Some(column)) = (sublink, self.column(column, inside)) else {
            return;
        };
        if sublink.number("subLinkType") == Some(VALUE)
            && self.canonical_equality(operator) == Some(column.class)
        {
            self.note_semi_join(sublink, Some(column), false, inside);
        }
    }

    fn note_semi_join(
        &mut self,
        sublink: &'t Object,
        column: Option<ReferenceColumn>,
        takes_all: bool,
        inside: &BTreeSet<usize>,
    ) {
        if let Some(query) = sublink.get("subselect").object() {
            self.semi_joins.push(SemiJoin {
                column,
                query,
                takes_all,
                inside: inside.clone(),
            });
        }
    }

    /// A boolean column by itself.
    fn truth(&mut self, column: &TreeNode, truth: bool, inside: &BTreeSet<usize>) {
        if let Some(column) = self.column(column, inside)
            && column.class == ValueClass::Boolean
        {
            self.add(column, Values::Given(vec![Operand::truth(truth)]));
        }
    }

    fn restrict(
        &mut self,
        operator: &Object,
        column: &TreeNode,
        values: Option<Vec<Operand>>,
        inside: &BTreeSet<usize>,
    ) {
        let Some(values) = values.filter(|values| values.len() <= MAX_VALUES) else {
            return;
        };
        let Some(column) = self.column(column, inside) else {
            return;
        };
        let fits = self.canonical_equality(operator) == Some(column.class)
            && values.iter().all(|value| value.fits(column.class));
        if fits {
            self.add(column, Values::Given(values));
        }
    }

    /// Notes the equality of two columns, if it restricts the reference of the first.
    fn equal(
        &mut self,
        operator: &Object,
        to: &TreeNode,
        from: &TreeNode,
        inside: &BTreeSet<usize>,
    ) {
        let own = self.any_column(from);
        let from = match own.map(|column| LevelColumn { level: 0, column }) {
            Some(from) => Some(from),
            None => self.around.column(from, self.catalog),
        };
        let (Some(to), Some(from)) = (self.column(to, inside), from) else {
            return;
        };
        let equality = self.canonical_equality(operator);
        if equality == Some(to.class) && equality == Some(from.column.class) {
            self.equal_columns.push(EqualColumns {
                from,
                to,
                inside: inside.clone(),
            });
        }
    }

    /// The class whose equality the operator is, with a collation in which equal texts are the same
    /// bytes.
    fn canonical_equality(&self, operator: &Object) -> Option<ValueClass> {
        let collation = operator.number("inputcollid").unwrap_or(0);
        let class = operator.number("opno").and_then(equality)?;
        self.catalog.is_deterministic(collation).then_some(class)
    }

    /// Hands restrictions on along equal columns, behind those that are written down.
    fn spread(&mut self) {
        let equal_columns = self.equal_columns.clone();
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for EqualColumns { from, to, .. } in &equal_columns {
                let own = self.found.get(&from.column.reference);
                let own = own.into_iter().flatten().filter(|_| from.level == 0);
                let known = own.chain(self.around.known(*from));
                let known = known.filter(|known| known.column == from.column.number);
                let values: Vec<_> = known.map(|known| known.values.clone()).collect();
                for values in values {
                    has_changed |= self.add(*to, values);
                }
            }
        }
    }

    /// Notes a restriction; whether it is new.
    fn add(&mut self, column: ReferenceColumn, values: Values) -> bool {
        let equality = ColumnEquality {
            column: column.number,
            class: column.class,
            values,
        };
        self.add_equality(column.reference, equality)
    }

    fn add_equality(&mut self, reference: usize, equality: ColumnEquality) -> bool {
        let known = self.found.entry(reference).or_default();
        let is_new = !known.contains(&equality);
        if is_new {
            known.push(equality);
        }
        is_new
    }

    /// The column that an expression is, if its values have a canonical form and its reference is
    /// one of `inside`.
    fn column(&self, node: &TreeNode, inside: &BTreeSet<usize>) -> Option<ReferenceColumn> {
        let found = self.any_column(node)?;
        inside.contains(&found.reference).then_some(found)
    }

    pub(super) fn any_column(&self, node: &TreeNode) -> Option<ReferenceColumn> {
        columns::restrictable(node, self.entries, self.catalog)
    }
}

/// The class whose equality the operator is. The oids are in `pg_operator.dat`, and the same in
/// every version.
pub(super) fn equality(operator: u32) -> Option<ValueClass> {
    match operator {
        // Each of int2, int4 and int8 with each.
        94 | 532 | 1862 | 533 | 96 | 15 | 1868 | 416 | 410 => Some(ValueClass::Integer),
        98 => Some(ValueClass::Text),
        2972 => Some(ValueClass::Uuid),
        91 => Some(ValueClass::Boolean),
        _ => None,
    }
}

/// The types whose values an operand of the class may have.
pub(super) fn takes(class: ValueClass, type_oid: u32) -> bool {
    match class {
        ValueClass::Integer => matches!(type_oid, types::INT2 | types::INT4 | types::INT8),
        ValueClass::Text => matches!(type_oid, types::TEXT | types::VARCHAR),
        ValueClass::Uuid => type_oid == types::UUID,
        ValueClass::Boolean => type_oid == types::BOOL,
    }
}
