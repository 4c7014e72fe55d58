//! From the tables of the stream to what a change in them touches.
//!
//! Which values a row had before is known as far as its table's replica identity goes. Where it is
//! not known, [`ColumnName::unknown`] stands in (coherence.md, rule 12).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_store::Tag;

use super::pgoutput::{Field, OldRow, StreamColumn, StreamRelation, Tuple};
use crate::column_set::ColumnMask;
use crate::order::{OrderHash, OrderPlace};
use crate::postgres::families::Families;
use crate::postgres::interest::{WatchedColumn, WatchedFamilies};
use crate::postgres::order::OrderName;
use crate::postgres::tags::{ColumnName, broad};
use crate::postgres::types::has_exact_text;

/// Tables of the catalog as the feed knows them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TableFamilies {
    pub(crate) families: Families,
    /// Tables that others are partitions or children of.
    parents: HashSet<u32>,
    /// The base of each domain, and 0 for each enum.
    types: HashMap<u32, u32>,
}

impl TableFamilies {
    /// From the tables and the types of [`crate::postgres::families::TABLES`].
    pub(crate) fn new(tables: &[(u32, u32)], types: &[(u32, u32)]) -> Self {
        Self {
            families: Families::new(tables.iter().copied()),
            parents: tables.iter().map(|(_, parent)| *parent).collect(),
            types: types.iter().copied().collect(),
        }
    }

    /// True if equal texts of the type are the same value: a domain writes what its base writes, an
    /// enum its labels.
    fn has_exact_text(&self, mut type_oid: u32) -> bool {
        while let Some(base) = self.types.get(&type_oid) {
            if *base == 0 {
                return true;
            }
            type_oid = *base;
        }
        has_exact_text(type_oid)
    }
}

/// Knowledge that tags are made from: the same for all changes of one transaction, so that it can
/// be said at its end whether they are complete.
#[derive(Clone)]
pub(crate) struct FeedView {
    pub(crate) watch: Arc<WatchedFamilies>,
    pub(crate) tables: Arc<TableFamilies>,
}

/// Tags that a change in one table touches.
pub(crate) struct TablePlan {
    pub(crate) family: u32,
    pub(crate) broad: Tag,
    keys: Vec<WatchedPosition<ColumnName>>,
    orders: Vec<WatchedPosition<OrderName>>,
    /// The tags of all rows for queries that read certain columns.
    whole: Vec<(Tag, ColumnMask)>,
    columns: Vec<ComparedColumn>,
    /// True if what comes of old rows can be believed. A change in a partition may come under the
    /// name of its root, with the columns of the root's replica identity, but it was logged with
    /// those of the partition's. Counterexample: Root FULL, partition DEFAULT: the stream has nulls
    /// where it should have old values.
    trusted: bool,
}

/// How the values of a column before and after a change are compared.
struct ComparedColumn {
    /// True if it is part of the replica identity.
    key: bool,
    /// True if equal texts are the same value.
    has_exact_text: bool,
}

/// A watched column in a table.
struct WatchedPosition<N> {
    name: N,
    /// Its place; `None` if the table had no such column then.
    at: Option<usize>,
    /// The columns that the queries read.
    reads: ColumnMask,
}

/// Tags that a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Touched {
    Tag(Tag),
    /// A place in an order.
    Place(OrderHash, OrderPlace),
}

/// Knowledge of one value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownValue<'a> {
    Null,
    Text(&'a [u8]),
    Unknown,
}

impl<N: Copy> WatchedColumn<N> {
    fn at(&self, place: impl Fn(&str) -> Option<usize>) -> WatchedPosition<N> {
        WatchedPosition {
            name: self.name,
            at: place(&self.column),
            reads: ColumnMask::of(&self.reads, place),
        }
    }
}

impl TablePlan {
    /// `None` if the table was not there when the feed last looked.
    pub(crate) fn new(view: &FeedView, table: u32, relation: &StreamRelation) -> Option<Self> {
        let family = view.tables.families.of(table)?;
        let place = |column: &str| relation.columns.iter().position(|own| own.name == column);
        let compared = |column: &StreamColumn| ComparedColumn {
            key: column.key,
            has_exact_text: view.tables.has_exact_text(column.type_oid),
        };
        let watched = view.watch.get(&family);
        let keys = watched.into_iter().flat_map(|watched| &watched.keys);
        let orders = watched.into_iter().flat_map(|watched| &watched.orders);
        let whole = watched.into_iter().flat_map(|watched| &watched.whole);
        Some(Self {
            family,
            broad: broad(family),
            keys: keys.map(|key| key.at(place)).collect(),
            orders: orders.map(|order| order.at(place)).collect(),
            whole: whole
                .map(|(tag, reads)| (*tag, ColumnMask::of(reads, place)))
                .collect(),
            columns: relation.columns.iter().map(compared).collect(),
            trusted: !view.tables.parents.contains(&table),
        })
    }

    /// Trusts old rows: they come from the table itself, not by way of a replica identity.
    pub(crate) fn trusting(self) -> Self {
        Self {
            trusted: true,
            ..self
        }
    }

    /// All rows, beside the tag of every change.
    pub(crate) fn all(&self) -> impl Iterator<Item = Touched> {
        let whole = self.whole.iter().map(|(tag, _)| *tag);
        let keys = self.keys.iter().map(|key| key.name.unknown());
        let orders = self.orders.iter();
        let orders = orders.map(|order| Touched::Place(order.name.hash, OrderPlace::FIRST));
        keys.chain(whole).map(Touched::Tag).chain(orders)
    }

    /// Adds the tags of a row that was added, changed or removed, beside the tag of every change.
    pub(crate) fn row(
        &self,
        old: Option<&OldRow<'_>>,
        new: Option<&Tuple<'_>>,
        mut touch: impl FnMut(Touched),
    ) {
        let changed = self.changed(old, new);
        for (tag, reads) in &self.whole {
            if reads.meets(changed) {
                touch(Touched::Tag(*tag));
            }
        }
        let values = |at| {
            let before = old.map(|old| self.before(at, old, new));
            let after = new.map(|new| after(at, before, new));
            [before, after].into_iter().flatten()
        };
        for key in self.keys.iter().filter(|key| key.reads.meets(changed)) {
            for value in values(key.at) {
                let tag = match value {
                    // Nothing equals NULL.
                    KnownValue::Null => continue,
                    KnownValue::Text(text) => key.name.touched_by(text),
                    KnownValue::Unknown => None,
                };
                touch(Touched::Tag(tag.unwrap_or(key.name.unknown())));
            }
        }
        let orders = self.orders.iter();
        for order in orders.filter(|order| order.reads.meets(changed)) {
            for value in values(order.at) {
                let place = match value {
                    KnownValue::Null => order.name.place_of_null(),
                    KnownValue::Text(text) => order.name.place_of_text(text),
                    KnownValue::Unknown => OrderPlace::FIRST,
                };
                touch(Touched::Place(order.name.hash, place));
            }
        }
    }

    /// The columns that have another value after the change, or may have.
    fn changed(&self, old: Option<&OldRow<'_>>, new: Option<&Tuple<'_>>) -> ColumnMask {
        let (Some(old), Some(new), true) = (old, new, self.trusted) else {
            return ColumnMask::All;
        };
        // No mask has a higher place.
        let places = 0..self.columns.len().min(128);
        let changed = places.filter(|place| !self.is_unchanged(*place, old, new));
        ColumnMask::Some(changed.fold(0, |mask, place| mask | 1 << place))
    }

    fn is_unchanged(&self, place: usize, old: &OldRow<'_>, new: &Tuple<'_>) -> bool {
        let column = &self.columns[place];
        match (old, new.get(place)) {
            (_, Some(Field::Unchanged)) => true,
            (OldRow::Same, _) => column.key,
            _ => {
                let before = self.before(Some(place), old, Some(new));
                let is_known = before != KnownValue::Unknown && column.has_exact_text;
                is_known && before == known(new, place)
            }
        }
    }

    fn before<'a>(
        &self,
        at: Option<usize>,
        old: &OldRow<'a>,
        new: Option<&Tuple<'a>>,
    ) -> KnownValue<'a> {
        let Some(at) = at.filter(|_| self.trusted) else {
            return KnownValue::Unknown;
        };
        let key = self.columns[at].key;
        match (old, new) {
            (OldRow::Full(row), _) => known(row, at),
            // A column of a replica identity is not null.
            (OldRow::Key(row), _) if key => match known(row, at) {
                KnownValue::Null => KnownValue::Unknown,
                value => value,
            },
            (OldRow::Same, Some(new)) if key => known(new, at),
            _ => KnownValue::Unknown,
        }
    }
}

fn after<'a>(at: Option<usize>, before: Option<KnownValue<'a>>, new: &Tuple<'a>) -> KnownValue<'a> {
    match at {
        // What was not changed and not sent is what it was, if that is known.
        Some(at) if new.get(at) == Some(&Field::Unchanged) => before.unwrap_or(KnownValue::Unknown),
        Some(at) => known(new, at),
        None => KnownValue::Unknown,
    }
}

fn known<'a>(row: &Tuple<'a>, at: usize) -> KnownValue<'a> {
    match row.get(at) {
        Some(Field::Null) => KnownValue::Null,
        Some(Field::Text(text)) => KnownValue::Text(text),
        Some(Field::Unchanged | Field::Binary) | None => KnownValue::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::column_set::ColumnSet;
    use crate::postgres::interest::{RowInterest, WatchedRows};
    use crate::postgres::tags::broad_reading;
    use crate::precision::ValueClass;

    const TABLE: u32 = 16_400;

    fn column(name: &str, key: bool) -> StreamColumn {
        StreamColumn {
            name: name.to_owned(),
            key,
            type_oid: 23,
        }
    }

    fn name(column: &str) -> ColumnName {
        ColumnName::new(TABLE, column, ValueClass::Integer)
    }

    fn equal(column: &str, value: i64) -> Tag {
        name(column).equal_to(&Value::Integer(value)).unwrap()
    }

    /// `id` is the key, `author` is not; both are watched.
    fn plan(rows: &[(u32, u32)]) -> TablePlan {
        let interest = RowInterest::default();
        interest.add(
            ["id", "author"].map(|column| WatchedRows::by(TABLE, column, ValueClass::Integer)),
        );
        let view = FeedView {
            watch: interest.watch(),
            tables: Arc::new(TableFamilies::new(
                rows,
                &[(20_000, 20_001), (20_001, 23), (20_002, 0)],
            )),
        };
        let columns = vec![
            column("id", true),
            column("title", false),
            column("author", false),
        ];
        TablePlan::new(&view, TABLE, &StreamRelation { columns }).unwrap()
    }

    fn row(id: &'static str, author: &'static str) -> Tuple<'static> {
        let field = |text: &'static str| match text {
            "" => Field::Null,
            "?" => Field::Unchanged,
            text => Field::Text(text.as_bytes()),
        };
        vec![field(id), Field::Text(b"title"), field(author)]
    }

    fn check(
        old: Option<&OldRow<'_>>,
        new: Option<&Tuple<'_>>,
        expected: &[Tag],
        rows: &[(u32, u32)],
    ) {
        let mut touched = HashSet::new();
        plan(rows).row(old, new, |found| match found {
            Touched::Tag(tag) => {
                touched.insert(tag);
            }
            Touched::Place(..) => {}
        });
        let expected: HashSet<Tag> = expected.iter().copied().collect();
        assert_eq!(touched, expected, "{old:?} {new:?}");
    }

    #[test]
    fn old_values_are_known_as_far_as_the_replica_identity_goes() {
        let unknown = name("author").unknown();
        let one = equal("id", 1);
        let alone = &[(TABLE, 0)];
        let row_tags = &[one, equal("author", 7)];
        check(None, Some(&row("1", "7")), row_tags, alone);
        check(None, Some(&row("1", "")), &[one], alone);
        let updated = &[one, unknown, equal("author", 7)];
        check(Some(&OldRow::Same), Some(&row("1", "7")), updated, alone);
        let moved = &[one, equal("id", 2), unknown, equal("author", 7)];
        let key = OldRow::Key(row("1", ""));
        check(Some(&key), Some(&row("2", "7")), moved, alone);
        check(Some(&key), None, &[one, unknown], alone);
        let full = OldRow::Full(row("1", "6"));
        let both = &[one, equal("author", 6), equal("author", 7)];
        check(Some(&full), Some(&row("1", "7")), both, alone);
        check(Some(&full), None, &[one, equal("author", 6)], alone);
    }

    #[test]
    fn what_is_unchanged_and_not_sent_is_what_it_was_or_unknown() {
        let alone = &[(TABLE, 0)];
        let unsent = row("1", "?");
        let unknown = &[equal("id", 1), name("author").unknown()];
        check(Some(&OldRow::Same), Some(&unsent), unknown, alone);
        check(None, Some(&unsent), unknown, alone);
        let full = OldRow::Full(row("1", "7"));
        let same = &[equal("id", 1), equal("author", 7)];
        check(Some(&full), Some(&unsent), same, alone);
    }

    #[test]
    fn old_values_under_the_name_of_a_root_are_not_believed() {
        let root = &[(TABLE, 0), (TABLE + 1, TABLE)];
        let tags = &[
            equal("id", 1),
            name("id").unknown(),
            equal("author", 7),
            name("author").unknown(),
        ];
        let full = OldRow::Full(row("1", ""));
        check(Some(&full), Some(&row("1", "7")), tags, root);
        check(Some(&OldRow::Same), Some(&row("1", "7")), tags, root);
    }

    /// Lists the queries that are touched, of those that read `id`, `title`, `author` or no column.
    fn touched_readers(
        old: Option<&OldRow<'_>>,
        new: Option<&Tuple<'_>>,
        rows: &[(u32, u32)],
        type_oid: u32,
    ) -> Vec<&'static str> {
        let readers = ["id", "title", "author", ""];
        let reads = |name: &str| {
            let names = name.split_whitespace().map(str::to_owned);
            ColumnSet::of(names)
        };
        let interest = RowInterest::default();
        interest.add(readers.map(|name| WatchedRows {
            family: TABLE,
            key: None,
            reads: reads(name),
        }));
        let view = FeedView {
            watch: interest.watch(),
            tables: Arc::new(TableFamilies::new(
                rows,
                &[(20_000, 20_001), (20_001, 23), (20_002, 0)],
            )),
        };
        let columns = ["id", "title", "author"].map(|name| StreamColumn {
            type_oid,
            ..column(name, name == "id")
        });
        let relation = StreamRelation {
            columns: columns.to_vec(),
        };
        let mut touched = HashSet::new();
        TablePlan::new(&view, TABLE, &relation)
            .unwrap()
            .row(old, new, |tag| {
                touched.insert(tag);
            });
        let is_touched =
            |name: &&str| touched.contains(&Touched::Tag(broad_reading(TABLE, &reads(name))));
        readers.into_iter().filter(is_touched).collect()
    }

    #[test]
    fn a_change_touches_what_reads_a_column_that_it_changes() {
        let alone = &[(TABLE, 0)];
        let root = &[(TABLE, 0), (TABLE + 1, TABLE)];
        let all = vec!["id", "title", "author", ""];
        let full = OldRow::Full(row("1", "7"));
        let key = |id| OldRow::Key(vec![Field::Text(id), Field::Null, Field::Null]);
        let cases: [(Option<OldRow<'_>>, Option<Tuple<'_>>, &[&str]); 10] = [
            (Some(full.clone()), Some(row("1", "8")), &["author"]),
            (Some(full.clone()), Some(row("1", "")), &["author"]),
            (Some(full.clone()), Some(row("2", "?")), &["id"]),
            (Some(full.clone()), Some(row("1", "7")), &[]),
            (Some(full.clone()), None, &all),
            (None, Some(row("1", "7")), &all),
            (
                Some(OldRow::Same),
                Some(row("1", "7")),
                &["title", "author"],
            ),
            (Some(OldRow::Same), Some(row("1", "?")), &["title"]),
            (Some(key(b"2")), Some(row("1", "?")), &["id", "title"]),
            (Some(key(b"1")), Some(row("1", "")), &["title", "author"]),
        ];
        for (old, new, expected) in cases {
            let touched = touched_readers(old.as_ref(), new.as_ref(), alone, 23);
            assert_eq!(touched, expected, "{old:?} {new:?}");
        }
        let same = row("1", "7");
        assert_eq!(
            touched_readers(Some(&full), Some(&same), root, 23),
            all,
            "old rows under the name of a root"
        );
        // A domain over a domain over integers, and an enum; a type of another kind.
        for (type_oid, expected) in [(20_000, 0), (20_002, 0), (20_003, 3)] {
            let touched = touched_readers(Some(&full), Some(&same), alone, type_oid);
            assert_eq!(touched.len(), expected, "{type_oid}");
        }
    }

    #[test]
    fn a_value_that_is_no_integer_and_a_column_that_is_missing_are_all_rows() {
        let alone = &[(TABLE, 0)];
        let odd = &[name("id").unknown(), equal("author", 7)];
        check(None, Some(&row("x", "7")), odd, alone);
        let short = vec![Field::Text(b"1")];
        let missing = &[equal("id", 1), name("author").unknown()];
        check(None, Some(&short), missing, alone);
    }
}
