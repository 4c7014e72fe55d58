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
//! An equality of two columns hands a restriction on: see [`EqualColumns`].

use std::collections::{BTreeSet, HashMap};

use super::constants::{self, Operand};
use super::nodes::{Object, TreeNode};
use crate::postgres::catalog::{Catalog, CatalogColumn, Relation, types};
use crate::postgres::tags::{ColumnName, ValueClass};

/// Values in one `IN (…)`; a longer list makes the whole table a dependency.
pub(crate) const MAX_VALUES: usize = 64;

/// `column = value`, `column IN (values)` or `column = ANY (array)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    pub(crate) column: String,
    pub(crate) class: ValueClass,
    pub(crate) name: ColumnName,
    pub(crate) values: Vec<Operand>,
    /// Whether the feed reports the column's old value.
    pub(crate) precise: bool,
}

/// The restrictions of a query's references, by their number from 1.
pub(crate) fn of(query: &Object, catalog: &Catalog) -> HashMap<usize, Vec<Restriction>> {
    let mut search = RestrictionSearch {
        catalog,
        entries: query.get("rtable").items(),
        found: HashMap::new(),
        equal_columns: Vec::new(),
    };
    for (condition, inside) in conditions(query) {
        search.condition(condition, &inside);
    }
    search.spread();
    let mut found = search.found;
    for alternatives in found.values_mut() {
        // A key selects one row, and the feed names the key's old value. The others are equal, so
        // the one that was written first is taken.
        alternatives.sort_by_key(|restriction| !restriction.precise);
    }
    found
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
struct EqualColumns {
    from: (usize, Restriction),
    to: (usize, Restriction),
}

struct RestrictionSearch<'a> {
    catalog: &'a Catalog,
    entries: &'a [TreeNode],
    found: HashMap<usize, Vec<Restriction>>,
    equal_columns: Vec<EqualColumns>,
}

impl RestrictionSearch<'_> {
    /// Takes the equality on one of the references `inside`, if the condition is one.
    fn condition(&mut self, node: &TreeNode, inside: &BTreeSet<usize>) {
        let Some(object) = node.object() else {
            return;
        };
        let arguments = object.get("args").items();
        match object.name.as_str() {
            "BOOLEXPR" => {
                if let (Some("not"), [column]) = (object.get("boolop").token(), arguments) {
                    self.truth(column, false, inside);
                }
            }
            "VAR" => self.truth(node, true, inside),
            "OPEXPR" => {
                if let [left, right] = arguments {
                    for (column, value) in [(left, right), (right, left)] {
                        let values = constants::operand(value).map(|value| vec![value]);
                        self.restrict(object, column, values, inside);
                        self.equal(object, column, value, inside);
                    }
                }
            }
            "SCALARARRAYOPEXPR" if object.is("useOr") => {
                if let [column, values] = arguments {
                    self.restrict(object, column, constants::operands(values), inside);
                }
            }
            _ => {}
        }
    }

    /// A boolean column by itself.
    fn truth(&mut self, column: &TreeNode, truth: bool, inside: &BTreeSet<usize>) {
        if let Some((reference, restriction)) = self.column(column, inside)
            && restriction.class == ValueClass::Boolean
        {
            let values = vec![Operand::truth(truth)];
            self.found.entry(reference).or_default().push(Restriction {
                values,
                ..restriction
            });
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
        let Some((reference, restriction)) = self.column(column, inside) else {
            return;
        };
        let collation = operator.number("inputcollid").unwrap_or(0);
        let equality = operator.number("opno").and_then(equality);
        let fits = equality == Some(restriction.class)
            && self.catalog.is_deterministic(collation)
            && values.iter().all(|value| value.fits(restriction.class));
        if fits {
            self.found.entry(reference).or_default().push(Restriction {
                values,
                ..restriction
            });
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
        let (Some(to), Some(from)) = (self.column(to, inside), self.any_column(from)) else {
            return;
        };
        let collation = operator.number("inputcollid").unwrap_or(0);
        let equality = operator.number("opno").and_then(equality);
        if equality == Some(to.1.class)
            && equality == Some(from.1.class)
            && self.catalog.is_deterministic(collation)
        {
            self.equal_columns.push(EqualColumns { from, to });
        }
    }

    /// Hands restrictions on along equal columns, behind those that are written down.
    fn spread(&mut self) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for EqualColumns { from, to } in &self.equal_columns {
                let known = self.found.get(&from.0).into_iter().flatten();
                let known = known.filter(|known| known.column == from.1.column);
                let handed_on: Vec<Restriction> = known
                    .map(|known| Restriction {
                        values: known.values.clone(),
                        ..to.1.clone()
                    })
                    .collect();
                if handed_on.is_empty() {
                    continue;
                }
                let found = self.found.entry(to.0).or_default();
                for restriction in handed_on {
                    if !found.contains(&restriction) {
                        found.push(restriction);
                        has_changed = true;
                    }
                }
            }
        }
    }

    /// The reference and the column that an expression is, if its values have a canonical form and
    /// the reference is one of `inside`.
    fn column(&self, node: &TreeNode, inside: &BTreeSet<usize>) -> Option<(usize, Restriction)> {
        let found = self.any_column(node)?;
        inside.contains(&found.0).then_some(found)
    }

    fn any_column(&self, node: &TreeNode) -> Option<(usize, Restriction)> {
        let (reference, table, column) = column(node, self.entries, self.catalog)?;
        let class = self.catalog.class(column)?;
        let family = self.catalog.families.of(table.oid)?;
        let restriction = Restriction {
            column: column.name.clone(),
            class,
            name: ColumnName::new(family, &column.name, class),
            values: Vec::new(),
            precise: self.catalog.reports_old_values(table.oid, &column.name),
        };
        Some((reference, restriction))
    }
}

/// The reference to a table, the table and the column that an expression is.
pub(super) fn column<'a>(
    node: &TreeNode,
    entries: &[TreeNode],
    catalog: &'a Catalog,
) -> Option<(usize, &'a Relation, &'a CatalogColumn)> {
    let object = bare(node)?;
    if object.name != "VAR" || object.number("varlevelsup") != Some(0_u32) {
        return None;
    }
    let reference: usize = object.number("varno")?;
    let entry = entries.get(reference.checked_sub(1)?)?.object()?;
    if entry.number("rtekind") != Some(0_u32) {
        return None;
    }
    let table = catalog.relation(entry.number("relid")?)?;
    let column = table.column(object.number("varattno")?)?;
    Some((reference, table, column))
}

/// An expression without the changes of its type that leave its bytes as they are: from `varchar`
/// to `text`, from a domain to the type beneath. A collation is not taken off.
pub(super) fn bare(node: &TreeNode) -> Option<&Object> {
    let mut object = node.object()?;
    while object.name == "RELABELTYPE" {
        object = object.get("arg").object()?;
    }
    Some(object)
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
