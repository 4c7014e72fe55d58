//! Which column of which reference of a FROM clause an expression is.

use super::nodes::{Object, TreeNode};
use crate::postgres::catalog::{Catalog, CatalogColumn, Relation};
use crate::postgres::tags::ValueClass;

/// `RTEKind`: a table, a view and their like.
pub(super) const RELATION: u32 = 0;
/// `RTEKind`: a subquery in FROM.
pub(super) const SUBQUERY: u32 = 1;

/// A column of a table, a view or a subquery, whose equality has a canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReferenceColumn {
    /// The number of the reference, from 1.
    pub(super) reference: usize,
    /// The number of the column, from 1.
    pub(super) number: i16,
    pub(super) class: ValueClass,
}

/// The column that an expression is, if its equality has a canonical form.
///
/// Of a view and a subquery it is the type of the output column that counts: the equality holds for
/// what comes out, however it is computed. Whether it holds for a column inside, too, is another
/// question: see [`super::derived`]. What LATERAL, functions and common table expressions give is
/// no column.
pub(super) fn restrictable(
    node: &TreeNode,
    entries: &[TreeNode],
    catalog: &Catalog,
) -> Option<ReferenceColumn> {
    restrictable_at(node, 0, entries, catalog)
}

/// The same for a column of the query around this one by `level`, whose references are `entries`.
pub(super) fn restrictable_at(
    node: &TreeNode,
    level: usize,
    entries: &[TreeNode],
    catalog: &Catalog,
) -> Option<ReferenceColumn> {
    let (variable, reference, entry) = variable(node, level, entries)?;
    let number: i16 = variable.number("varattno").filter(|number| *number > 0)?;
    let of_output = || {
        let collation = variable.number("varcollid")?;
        catalog.class_of(variable.number("vartype")?, collation)
    };
    let class = match entry.number("rtekind")? {
        RELATION => {
            let relation = catalog.relation(entry.number("relid")?)?;
            if relation.kind == 'v' {
                of_output()?
            } else {
                catalog.families.of(relation.oid)?;
                catalog.class(relation.column(number)?)?
            }
        }
        SUBQUERY if entry.denies("lateral") => of_output()?,
        _ => return None,
    };
    Some(ReferenceColumn {
        reference,
        number,
        class,
    })
}

/// The reference to a table, the table and the column that an expression is.
pub(super) fn of_table<'a>(
    node: &TreeNode,
    entries: &[TreeNode],
    catalog: &'a Catalog,
) -> Option<(usize, &'a Relation, &'a CatalogColumn)> {
    let (variable, reference, entry) = variable(node, 0, entries)?;
    if entry.number("rtekind") != Some(RELATION) {
        return None;
    }
    let table = catalog.relation(entry.number("relid")?)?;
    let column = table.column(variable.number("varattno")?)?;
    Some((reference, table, column))
}

/// By how many levels the query lies outside of which an expression is a column, if it is one.
pub(super) fn level(node: &TreeNode) -> Option<usize> {
    let object = bare(node).filter(|object| object.name == "VAR")?;
    object.number("varlevelsup")
}

/// The variable of the query that an expression is, the number of its reference and the reference.
fn variable<'a>(
    node: &'a TreeNode,
    at: usize,
    entries: &'a [TreeNode],
) -> Option<(&'a Object, usize, &'a Object)> {
    let object = bare(node)?;
    if level(node) != Some(at) {
        return None;
    }
    let reference: usize = object.number("varno")?;
    let entry = entries.get(reference.checked_sub(1)?)?.object()?;
    Some((object, reference, entry))
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
