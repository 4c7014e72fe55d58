//! Histories of events, without a server.

use std::collections::HashSet;

use super::*;
use crate::Value;
use crate::postgres::feed::messages::heartbeat;
use crate::postgres::feed::pgoutput::{Field, StreamColumn};
use crate::postgres::feed::relations::TableFamilies;
use crate::postgres::interest::{RowInterest, WatchedRows};
use crate::postgres::tags::{ColumnName, broad};
use crate::precision::ValueClass;

const TABLE: u32 = 16_400;

fn view() -> FeedView {
    let interest = RowInterest::default();
    interest.add([WatchedRows::by(TABLE, "id", ValueClass::Integer)]);
    FeedView {
        watch: interest.watch(),
        tables: Arc::new(TableFamilies::new(&[(TABLE, 0)], &[])),
    }
}

fn id() -> ColumnName {
    ColumnName::new(TABLE, "id", ValueClass::Integer)
}

fn equal(value: i64) -> Tag {
    id().equal_to(&Value::Integer(value)).unwrap()
}

fn relation() -> Event<'static> {
    let name = "id".to_owned();
    let columns = vec![StreamColumn {
        name,
        key: true,
        type_oid: 23,
    }];
    Event::Relation(TABLE, StreamRelation { columns })
}

fn insert(text: &str) -> Event<'_> {
    Event::Insert {
        relation: TABLE,
        new: vec![Field::Text(text.as_bytes())],
    }
}

/// The last event's outcome.
fn take(transactions: &mut Transactions, events: Vec<Event<'_>>) -> Option<Committed> {
    let mut last = None;
    for event in events {
        last = transactions.take(event, view).unwrap();
    }
    last
}

fn tags(committed: &Committed) -> HashSet<Tag> {
    committed.tags.iter().copied().collect()
}

#[test]
fn a_transaction_is_its_changes_and_its_notes() {
    let mut transactions = Transactions::new("0a");
    let message = heartbeat("0a", 3);
    let note = |transactional| Event::Message {
        transactional,
        prefix: "millpond",
        content: message.as_bytes(),
    };
    let committed = take(
        &mut transactions,
        vec![
            Event::Begin { transaction: 733 },
            relation(),
            insert("1"),
            insert("1"),
            note(true),
            note(false),
            Event::Commit { end: 90 },
        ],
    )
    .unwrap();
    assert_eq!((committed.transaction, committed.end), (733, 90));
    assert_eq!(tags(&committed), HashSet::from([broad(TABLE), equal(1)]));
    assert_eq!(committed.tags.len(), 2);
    assert_eq!(committed.notes, [Note::Heartbeat(3)]);
    assert!(!transactions.is_amid());
}

#[test]
fn streamed_transactions_stay_separate_until_they_end() {
    let mut transactions = Transactions::new("0a");
    let start = |transaction| Event::StreamStart { transaction };
    let commit = |transaction| Event::StreamCommit {
        transaction,
        end: 90,
    };
    take(
        &mut transactions,
        vec![
            start(733),
            relation(),
            insert("1"),
            Event::StreamStop,
            start(734),
            relation(),
            insert("2"),
            Event::StreamStop,
            start(733),
            insert("3"),
            Event::StreamStop,
            // A part is rolled back: what it touched stays.
            Event::StreamAbort {
                transaction: 733,
                part: 740,
            },
            Event::StreamAbort {
                transaction: 734,
                part: 734,
            },
        ],
    );
    assert_eq!(
        transactions.take(commit(734), view).err(),
        Some(MalformedTransaction("a commit of no streamed transaction"))
    );
    let committed = take(&mut transactions, vec![commit(733)]).unwrap();
    let expected = HashSet::from([broad(TABLE), equal(1), equal(3)]);
    assert_eq!(tags(&committed), expected);
    // What was described within the stream block holds for all, now that it is committed.
    let begin = Event::Begin { transaction: 735 };
    assert!(take(&mut transactions, vec![begin, insert("4")]).is_none());
}

#[test]
fn a_relation_in_a_stream_block_is_private_to_it() {
    let mut transactions = Transactions::new("0a");
    let block = vec![
        Event::StreamStart { transaction: 733 },
        relation(),
        Event::StreamStop,
        Event::Begin { transaction: 734 },
    ];
    take(&mut transactions, block);
    let unknown = MalformedTransaction("a change in a table that was not described");
    assert_eq!(transactions.take(insert("1"), view).err(), Some(unknown));
}

#[test]
fn many_values_are_all_rows() {
    let mut transactions = Transactions::new("0a");
    take(
        &mut transactions,
        vec![Event::Begin { transaction: 733 }, relation()],
    );
    for value in 0..5_000 {
        let text = value.to_string();
        transactions.take(insert(&text), view).unwrap();
    }
    let committed = take(&mut transactions, vec![Event::Commit { end: 90 }]).unwrap();
    let expected = HashSet::from([broad(TABLE), id().unknown()]);
    assert_eq!(tags(&committed), expected);
    assert_eq!(committed.anything, None);
}

#[test]
fn a_truncated_table_is_all_rows_and_an_unknown_one_anything() {
    let mut transactions = Transactions::new("0a");
    let truncate = |table| {
        vec![
            Event::Begin { transaction: 733 },
            relation(),
            Event::Relation(TABLE + 1, StreamRelation { columns: vec![] }),
            Event::Truncate {
                relations: vec![table],
            },
            Event::Commit { end: 90 },
        ]
    };
    let known = take(&mut transactions, truncate(TABLE)).unwrap();
    assert_eq!(tags(&known), HashSet::from([broad(TABLE), id().unknown()]));
    assert_eq!(known.anything, None);
    let unknown = take(&mut transactions, truncate(TABLE + 1)).unwrap();
    assert!(unknown.tags.is_empty() && unknown.anything.is_some());
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let begin = || Event::Begin { transaction: 1 };
    let start = || Event::StreamStart { transaction: 2 };
    for events in [
        vec![begin(), begin()],
        vec![begin(), start()],
        vec![start(), start()],
        vec![Event::StreamStop],
        vec![Event::Commit { end: 1 }],
        vec![relation(), insert("1")],
        vec![begin(), insert("1")],
    ] {
        let mut transactions = Transactions::new("0a");
        let failed = events
            .into_iter()
            .any(|event| transactions.take(event, view).is_err());
        assert!(failed);
    }
}

#[test]
fn streamed_transactions_are_bounded() {
    let mut transactions = Transactions::new("0a");
    for transaction in 0..MAX_STREAMED as u32 {
        let block = vec![Event::StreamStart { transaction }, Event::StreamStop];
        take(&mut transactions, block);
    }
    let again = Event::StreamStart { transaction: 0 };
    assert!(transactions.take(again, view).is_ok());
    take(&mut transactions, vec![Event::StreamStop]);
    let more = Event::StreamStart {
        transaction: u32::MAX,
    };
    assert!(transactions.take(more, view).is_err());
}
