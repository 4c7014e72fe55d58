//! The rows of a table to which a reference is restricted, with what names them in dependencies.

use super::first_rows::FirstRows;
use crate::column_set::ColumnSet;
use crate::postgres::catalog::{Catalog, Relation};
use crate::postgres::interest::SelectedBy;
use crate::postgres::order::OrderName;
use crate::postgres::tags::ColumnName;
use crate::precision::{ColumnRestriction, Values};

/// The rows of a table to which a reference is restricted, by a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    pub(crate) column: String,
    pub(crate) values: Values,
    pub(crate) name: RowsName,
    /// True if the feed reports the column's old value.
    pub(crate) precise: bool,
}

/// Name of some rows of a table in dependencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RowsName {
    Equal(ColumnName),
    First(OrderName),
}

impl Restriction {
    /// Returns how the column selects the rows.
    pub(crate) const fn selected_by(&self) -> SelectedBy {
        match &self.name {
            RowsName::Equal(name) => SelectedBy::Value(name.class()),
            RowsName::First(name) => SelectedBy::Order(name.order),
        }
    }

    /// Counts only changes to these columns.
    pub(super) fn read(&mut self, family: u32, reads: &ColumnSet) {
        match &mut self.name {
            RowsName::Equal(name) => {
                *name = ColumnName::new(family, &self.column, name.class()).reading(reads);
            }
            RowsName::First(name) => {
                *name = OrderName::new(family, &self.column, name.order, reads);
            }
        }
    }
}

/// Returns the restrictions of a reference to `table`, the best first.
pub(super) fn of_table(
    found: &[ColumnRestriction],
    table: &Relation,
    first_rows: &[FirstRows],
    catalog: &Catalog,
) -> Vec<Restriction> {
    let Some(family) = catalog.families.of(table.oid) else {
        return Vec::new();
    };
    let named = found.iter().filter_map(|found| {
        let number = super::columns::number(found.column);
        let column = table.column(number)?.name.clone();
        let name = match found.values {
            Values::First(index) => {
                let order = first_rows.get(index)?.order;
                RowsName::First(OrderName::new(family, &column, order, &ColumnSet::All))
            }
            _ => RowsName::Equal(ColumnName::new(family, &column, found.class?)),
        };
        let is_sure = found.values.has_parameter() || catalog.is_unique(table, number);
        let precise = catalog.reports_old_values(table.oid, &column);
        let restriction = Restriction {
            column,
            values: found.values.clone(),
            name,
            precise,
        };
        Some((is_sure, restriction))
    });
    let mut all: Vec<(bool, Restriction)> = named.collect();
    // A key selects one row, and the feed names the key's old value. The others are equal, so the
    // one that was found first is taken: what is compared outside selects before what a view says.
    // A parameter needs no witness.
    all.sort_by_key(|(is_sure, found)| {
        let is_first = matches!(found.values, Values::First(_));
        (!is_sure, !is_first, !found.precise)
    });
    all.into_iter().map(|(_, found)| found).collect()
}
