//! Tables whose rows a query on another table may read.
//!
//! A query on a partitioned table reads its partitions, one on a parent its children; a publication
//! may report a change by the name of the partition or of the root. So all tables that inheritance
//! connects are one *family*, and what depends on one of them depends on the family.

use std::collections::HashMap;

/// Gives `table, oid, parent` (0 where there is none) of all tables that have rows, or whose
/// partitions have: one row for each parent. System tables are left out; they are not published.
/// And `type, oid, base` of domains, and of enums, where `base` is 0.
pub(crate) const TABLES: &str = "select 'table', c.oid, coalesce(i.inhparent, 0) from pg_catalog.pg_class c \
    left join pg_catalog.pg_inherits i on i.inhrelid = c.oid \
    where c.relkind in ('r', 'p') and c.oid >= 16384 \
    union all select 'type', oid, typbasetype from pg_catalog.pg_type \
    where typtype in ('d', 'e') and oid >= 16384";

/// Family to which each table belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Families {
    of: HashMap<u32, u32>,
}

impl Families {
    /// From the tables of [`TABLES`].
    pub(crate) fn new(rows: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut of: HashMap<u32, u32> = HashMap::new();
        for (table, parent) in rows {
            of.entry(table).or_insert(table);
            if parent != 0 {
                of.entry(parent).or_insert(parent);
                let (a, b) = (root(&mut of, table), root(&mut of, parent));
                of.insert(a.max(b), a.min(b));
            }
        }
        let tables: Vec<u32> = of.keys().copied().collect();
        for table in tables {
            let family = root(&mut of, table);
            of.insert(table, family);
        }
        Self { of }
    }

    /// The family's name, which is the least of its tables' oids; `None` for a table that was not
    /// there.
    pub(crate) fn of(&self, table: u32) -> Option<u32> {
        self.of.get(&table).copied()
    }
}

/// Follows the chain to its end, and shortens it (path halving; Tarjan and van Leeuwen 1984).
fn root(of: &mut HashMap<u32, u32>, mut table: u32) -> u32 {
    loop {
        let above = of[&table];
        if above == table {
            return table;
        }
        let next = of[&above];
        of.insert(table, next);
        table = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_inheritance_connects_is_one_family() {
        // 20 is a root with the partitions 30 and 10, and 31 below 30; 50 inherits from 40 and from
        // 41; 60 stands alone.
        let rows = [
            (30, 20),
            (10, 20),
            (31, 30),
            (20, 0),
            (50, 41),
            (50, 40),
            (40, 0),
            (41, 0),
            (60, 0),
        ];
        let families = Families::new(rows);
        for table in [10, 20, 30, 31] {
            assert_eq!(families.of(table), Some(10), "{table}");
        }
        for table in [40, 41, 50] {
            assert_eq!(families.of(table), Some(40), "{table}");
        }
        assert_eq!(families.of(60), Some(60));
        assert_eq!(families.of(61), None);
    }

    #[test]
    fn the_order_of_the_rows_makes_no_difference() {
        let chain: Vec<(u32, u32)> = (2..200).map(|table| (table, table - 1)).collect();
        let back = Families::new(chain.iter().rev().copied());
        assert_eq!(Families::new(chain), back);
        assert_eq!(back.of(199), Some(1));
    }
}
