//! What the feed reports of the changes between two states of some tables, by the feed's own code.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use millpond_store::Tag;

use super::property::{WatchedQuery, rows};
use super::support::AnalysisFixture;
use crate::postgres::catalog::Relation;
use crate::postgres::feed::pgoutput::{Field, OldRow, StreamColumn, StreamRelation, Tuple};
use crate::postgres::feed::relations::{FeedView, TableFamilies, TablePlan};
use crate::postgres::feed::touched::TouchedTags;
use crate::postgres::interest::RowInterest;

/// Rows by their table and their `id`, which is a column of each: where the row lies, and its
/// values.
pub(super) type Contents = BTreeMap<(String, String), (String, Vec<Option<String>>)>;

/// The rows of `tables`, and of those that inherit from them.
pub(super) fn contents(fixture: &AnalysisFixture, tables: &[&str]) -> Contents {
    let of = |table: &&str| {
        let place = "t.tableoid::regclass::text, t.id::text, concat(t.ctid, ' ', t.xmin)";
        let all = rows(fixture, &format!("select {place}, t.* from {table} t")).unwrap();
        all.into_iter().map(|mut row| {
            let values = row.split_off(3);
            let mut place = row.into_iter().flatten();
            let mut next = || place.next().unwrap();
            ((next(), next()), (next(), values))
        })
    };
    tables.iter().flat_map(of).collect()
}

/// Returns the rows that the feed reports of, for these queries.
pub(super) fn view(fixture: &AnalysisFixture, queries: &[WatchedQuery]) -> FeedView {
    let interest = RowInterest::default();
    interest.add(queries.iter().flat_map(|query| query.analysis.wanted()));
    let tables: Vec<(u32, u32)> = fixture
        .texts(&format!(
            "select concat(t.oid, ' ', t.parent) from ({}) t (kind, oid, parent) where kind = 'table'",
            crate::postgres::families::TABLES
        ))
        .iter()
        .filter_map(|row| row.split_once(' '))
        .map(|(oid, parent)| (oid.parse().unwrap(), parent.parse().unwrap()))
        .collect();
    FeedView {
        watch: interest.watch(),
        tables: Arc::new(TableFamilies::new(&tables, &[])),
    }
}

/// Returns the tags of the change from one state to another, with the replica identity FULL, or
/// with `id` as the key.
pub(super) fn touched(
    fixture: &AnalysisFixture,
    view: &FeedView,
    before: &Contents,
    after: &Contents,
    is_full: bool,
) -> HashSet<Tag> {
    let mut touched = TouchedTags::default();
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        if old == new {
            continue;
        }
        let oid = fixture.catalog_oid(&key.0).unwrap();
        let table = fixture.catalog.relation(oid).unwrap();
        let plan = TablePlan::new(view, oid, &relation(table, is_full)).unwrap();
        let new = new.map(|(_, values)| tuple(values));
        let old = old.map(|(_, values)| match (&new, is_full) {
            (_, true) => OldRow::Full(tuple(values)),
            (Some(_), false) => OldRow::Same,
            (None, false) => OldRow::Key(key_of(table, values)),
        });
        touched.row(&plan, old.as_ref(), new.as_ref());
    }
    touched.into_tags().0.into_iter().collect()
}

fn relation(table: &Relation, is_full: bool) -> StreamRelation {
    let column = |column: &crate::postgres::catalog::CatalogColumn| StreamColumn {
        name: column.name.clone(),
        key: is_full || column.name == "id",
        type_oid: column.type_oid,
    };
    StreamRelation {
        columns: table.columns.iter().map(column).collect(),
    }
}

fn tuple(values: &[Option<String>]) -> Tuple<'_> {
    let texts = values.iter().map(Option::as_ref);
    texts
        .map(|text| text.map_or(Field::Null, |text| Field::Text(text.as_bytes())))
        .collect()
}

fn key_of<'a>(table: &Relation, values: &'a [Option<String>]) -> Tuple<'a> {
    let named = table.columns.iter().zip(tuple(values));
    named
        .map(|(column, field)| match column.name.as_str() {
            "id" => field,
            _ => Field::Null,
        })
        .collect()
}
