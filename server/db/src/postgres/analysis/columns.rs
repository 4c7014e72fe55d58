//! Which column of which reference of a FROM clause an expression is.

use super::nodes::{Object, TreeNode};
use crate::postgres::catalog::{Catalog, CatalogColumn, Relation};
use crate::precision::ValueClass;
use crate::precision::model::FactorColumn;

/// `RTEKind`: a table, a view and their like.
pub(super) const RELATION: u32 = 0;
/// `RTEKind`: a subquery in FROM.
pub(super) const SUBQUERY: u32 = 1;
/// `RTEKind`: a reference to a common table expression.
pub(super) const COMMON: u32 = 6;

/// Returns the number of the column at this place of its reference.
pub(super) fn number(place: usize) -> i16 {
    i16::try_from(place + 1).unwrap_or(0)
}

/// Returns the place of the column with this number in its reference.
pub(super) fn place(number: i16) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Returns the column that an expression is, of the query around this one by `level`, whose
/// references are `entries`, if its equality has a canonical form.
///
/// Of a view, a subquery and a common table expression it is the type of the output column that
/// counts: the equality holds for what comes out, however it is computed. Whether it holds for a
/// column inside, too, is another question. What LATERAL and functions give is no column.
pub(super) fn restrictable(
    node: &TreeNode,
    level: usize,
    entries: &[TreeNode],
    catalog: &Catalog,
) -> Option<FactorColumn> {
    let (variable, factor, entry) = variable(node, level, entries)?;
    let number: i16 = variable.number("varattno")?;
    let class = class(variable, number, entry, catalog)?;
    Some(FactorColumn {
        factor,
        column: place(number)?,
        class,
    })
}

/// Returns the canonical form of equality with a column of an entry.
fn class(variable: &Object, number: i16, entry: &Object, catalog: &Catalog) -> Option<ValueClass> {
    let of_output = || {
        let collation = variable.number("varcollid")?;
        catalog.class_of(variable.number("vartype")?, collation)
    };
    match entry.number("rtekind")? {
        RELATION => {
            let relation = catalog.relation(entry.number("relid")?)?;
            if relation.kind == 'v' {
                return of_output();
            }
            catalog.families.of(relation.oid)?;
            catalog.class(relation.column(number)?)
        }
        SUBQUERY if entry.denies("lateral") => of_output(),
        COMMON => of_output(),
        _ => None,
    }
}

/// Returns the reference to a table, from 0, the table and the column that an expression is.
pub(super) fn of_table<'a>(
    node: &TreeNode,
    entries: &[TreeNode],
    catalog: &'a Catalog,
) -> Option<(usize, &'a Relation, &'a CatalogColumn)> {
    let (variable, factor, entry) = variable(node, 0, entries)?;
    if entry.number("rtekind") != Some(RELATION) {
        return None;
    }
    let table = catalog.relation(entry.number("relid")?)?;
    let column = table.column(variable.number("varattno")?)?;
    Some((factor, table, column))
}

/// Returns by how many levels the query lies outside of which an expression is a column, if it is
/// one.
pub(super) fn level(node: &TreeNode) -> Option<usize> {
    let object = bare(node).filter(|object| object.name == "VAR")?;
    object.number("varlevelsup")
}

/// Returns the variable of the query that an expression is, its reference's number from 0, and the
/// reference.
fn variable<'a>(
    node: &'a TreeNode,
    at: usize,
    entries: &'a [TreeNode],
) -> Option<(&'a Object, usize, &'a Object)> {
    let object = bare(node)?;
    if level(node) != Some(at) {
        return None;
    }
    let factor = object.number::<usize>("varno")?.checked_sub(1)?;
    let entry = entries.get(factor)?.object()?;
    // Since PostgreSQL 18 what a query is grouped by is an entry of its own.
    if let [_, ..] = entry.get("groupexprs").items() {
        let place = place(object.number("varattno")?)?;
        let grouped = entry.get("groupexprs").items().get(place)?;
        return variable(grouped, 0, entries);
    }
    Some((object, factor, entry))
}

/// Returns an expression without the changes of its type that leave its bytes as they are: from
/// `varchar` to `text`, from a domain to the type beneath. A collation is not taken off.
pub(super) fn bare(node: &TreeNode) -> Option<&Object> {
    let mut object = node.object()?;
    while object.name == "RELABELTYPE" {
        object = object.get("arg").object()?;
    }
    Some(object)
}
