//! From what was recorded to what a transaction has touched.

use std::collections::{BTreeSet, HashMap};

use millpond_store::Tag;
use serde_json::{Map, Value as Json};

use super::super::pgoutput::{Field, OldRow, StreamColumn, StreamRelation, Tuple};
use super::super::relations::{FeedView, TablePlan};
use super::super::touched::TouchedTags;
use super::poll::RecordedChange;

/// Table that the recorded rows are compared with.
struct RecordedTable {
    plan: TablePlan,
    columns: Vec<String>,
}

/// The tables of one look.
pub(super) struct RowPlans<'a> {
    view: &'a FeedView,
    /// `None` for a table that was not there when the feed last looked.
    tables: HashMap<u32, Option<RecordedTable>>,
}

impl<'a> RowPlans<'a> {
    pub(super) fn new(view: &'a FeedView) -> Self {
        Self {
            view,
            tables: HashMap::new(),
        }
    }

    /// All tags of a transaction, and why they are not all.
    pub(super) fn tags(&mut self, recorded: &[RecordedChange]) -> (Vec<Tag>, Option<&'static str>) {
        let mut touched = TouchedTags::default();
        for row in recorded {
            let view = self.view;
            let table = self.tables.entry(row.table);
            match table.or_insert_with(|| RecordedTable::new(view, row.table)) {
                Some(watched) => watched.row(row.content.as_deref(), &mut touched),
                None => touched.anything("a table has changed that was not there before"),
            }
        }
        touched.into_tags()
    }
}

impl RecordedTable {
    fn new(view: &FeedView, table: u32) -> Option<Self> {
        let family = view.tables.families.of(table)?;
        let watched = view.watch.get(&family);
        let keys = watched.into_iter().flat_map(|watched| &watched.keys);
        let orders = watched.into_iter().flat_map(|watched| &watched.orders);
        let columns = keys.map(|key| &key.column);
        let columns = columns.chain(orders.map(|order| &order.column));
        let columns: BTreeSet<String> = columns.cloned().collect();
        let columns: Vec<String> = columns.into_iter().collect();
        let named = |name: &String| StreamColumn {
            name: name.clone(),
            key: false,
            type_oid: 0,
        };
        let relation = StreamRelation {
            columns: columns.iter().map(named).collect(),
        };
        let plan = TablePlan::new(view, table, &relation)?.trusting();
        Some(Self { plan, columns })
    }

    /// A row that came or went touches the same. An update is two records, of which it is not known
    /// that they belong together, so it counts for all columns (coherence.md, rule 22).
    fn row(&self, content: Option<&str>, touched: &mut TouchedTags) {
        let content = content.and_then(|text| serde_json::from_str::<Map<String, Json>>(text).ok());
        let Some(content) = content else {
            return touched.all_rows(&self.plan);
        };
        let texts: Vec<Option<JsonValue>> = self
            .columns
            .iter()
            .map(|column| content.get(column).map(JsonValue::of))
            .collect();
        let row: Tuple<'_> = texts.iter().map(field).collect();
        touched.row(&self.plan, Some(&OldRow::Full(row)), None);
    }
}

enum JsonValue {
    Null,
    /// As the type's output function writes it.
    Text(String),
    /// Nothing that is recorded.
    Other,
}

impl JsonValue {
    fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::String(text) => Self::Text(text.clone()),
            _ => Self::Other,
        }
    }
}

/// A value that is not there was too long to be recorded.
fn field(known: &Option<JsonValue>) -> Field<'_> {
    match known {
        Some(JsonValue::Null) => Field::Null,
        Some(JsonValue::Text(text)) => Field::Text(text.as_bytes()),
        Some(JsonValue::Other) | None => Field::Binary,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::Value;
    use crate::postgres::feed::relations::TableFamilies;
    use crate::postgres::interest::{RowInterest, WatchedRows};
    use crate::postgres::tags::{ColumnName, broad};
    use crate::precision::ValueClass;

    const TABLE: u32 = 16_400;
    /// It has a child, so it is a parent.
    const CHILD: u32 = 16_401;

    fn view() -> FeedView {
        let interest = RowInterest::default();
        let wanted = |(column, class)| WatchedRows::by(TABLE, column, class);
        let columns = [
            ("id", ValueClass::Integer),
            ("word", ValueClass::Text),
            ("open", ValueClass::Boolean),
        ];
        interest.add(columns.map(wanted));
        FeedView {
            watch: interest.watch(),
            tables: Arc::new(TableFamilies::new(&[(TABLE, 0), (CHILD, TABLE)], &[])),
        }
    }

    fn id() -> ColumnName {
        ColumnName::new(TABLE, "id", ValueClass::Integer)
    }

    fn word() -> ColumnName {
        ColumnName::new(TABLE, "word", ValueClass::Text)
    }

    fn open() -> ColumnName {
        ColumnName::new(TABLE, "open", ValueClass::Boolean)
    }

    fn check(table: u32, content: Option<&str>, expected: &[Tag]) {
        let recorded = RecordedChange {
            table,
            content: content.map(str::to_owned),
        };
        let view = view();
        let (tags, why) = RowPlans::new(&view).tags(&[recorded]);
        assert_eq!(why, None);
        let tags: HashSet<Tag> = tags.into_iter().collect();
        let mut expected: HashSet<Tag> = expected.iter().copied().collect();
        expected.insert(broad(TABLE));
        assert_eq!(tags, expected, "{content:?}");
    }

    #[test]
    fn values_touch_what_equals_them() {
        let seven = id().equal_to(&Value::Integer(7)).unwrap();
        let a = word().equal_to(&"a".into()).unwrap();
        let shut = open().equal_to(&false.into()).unwrap();
        let row = r#"{"id": "7", "word": "a", "open": "f", "other": "b"}"#;
        check(TABLE, Some(row), &[seven, a, shut]);
        check(CHILD, Some(row), &[seven, a, shut]);
        let nulls = r#"{"id": "7", "word": null, "open": null}"#;
        check(TABLE, Some(nulls), &[seven]);
        let large = r#"{"id": "-9223372036854775808", "word": "\"ä\n", "open": null}"#;
        let least = id().equal_to(&Value::Integer(i64::MIN)).unwrap();
        let odd = word().equal_to(&"\"ä\n".into()).unwrap();
        check(TABLE, Some(large), &[least, odd]);
    }

    #[test]
    fn what_is_missing_or_odd_may_be_any_value() {
        let seven = id().equal_to(&Value::Integer(7)).unwrap();
        let unknown = [id(), word(), open()].map(ColumnName::unknown);
        check(
            TABLE,
            Some(r#"{"id": "7"}"#),
            &[seven, unknown[1], unknown[2]],
        );
        let odd = r#"{"id": "7.5", "word": {"a": 1}, "open": false}"#;
        check(TABLE, Some(odd), &unknown);
        check(TABLE, None, &unknown);
        check(TABLE, Some("{"), &unknown);
        check(TABLE, Some("[1]"), &unknown);
    }

    #[test]
    fn an_unknown_table_may_be_anything() {
        let view = view();
        let recorded = RecordedChange {
            table: 7,
            content: None,
        };
        let (tags, why) = RowPlans::new(&view).tags(&[recorded]);
        assert!(tags.is_empty() && why.is_some());
    }
}
