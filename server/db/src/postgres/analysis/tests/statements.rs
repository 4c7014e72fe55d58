//! Statements, their parameters and the values for them.

use expect_test::expect;

use super::schema::{SCHEMA, check};
use super::support::AnalysisFixture;
use crate::postgres::analysis::Found;
use crate::{Value, ValueKind};

#[test]
fn statements_that_write_and_those_that_are_none() {
    check(
        &[
            "insert into comment values ($1, $2)",
            "update comment set body = $1 where id = $2",
            "delete from comment where id = $1 returning id",
            "insert into comment values (1) on conflict (id) do update set body = excluded.body",
            "",
            "-- nothing",
            "select 1; -- a comment",
            "select 1 -- a comment",
            "set search_path = other",
            "begin",
            "create table x ()",
            "select 1; select 2",
            "select * from nowhere",
        ],
        &expect![[r#"
            insert into comment values ($1, $2)
                comment: every change
                writes
            update comment set body = $1 where id = $2
                comment: rows with id = :b
                writes
            delete from comment where id = $1 returning id
                comment: rows with id = :a
                writes
            insert into comment values (1) on conflict (id) do update set body = excluded.body
                comment: every change
                writes

                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE)
            -- nothing
                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE)
            select 1; -- a comment
            select 1 -- a comment
            set search_path = other
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            begin
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            create table x ()
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            select 1; select 2
                error: cannot insert multiple commands into a prepared statement
            select * from nowhere
                error: relation "nowhere" does not exist
        "#]],
    );
}

#[test]
fn parameters_and_columns_are_known() {
    let fixture = AnalysisFixture::new(SCHEMA);
    let analysis = fixture
        .analyse("select id, title as t from article a where id = $1 and topic = $2 and published = $3 and score = $4 and slug = $5 limit $6")
        .unwrap();
    let kinds: Vec<_> = analysis
        .facts
        .params
        .iter()
        .map(|param| param.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            Some(ValueKind::Integer),
            Some(ValueKind::Text),
            Some(ValueKind::Boolean),
            Some(ValueKind::Other),
            Some(ValueKind::Text),
            Some(ValueKind::Integer)
        ]
    );
    assert_eq!(analysis.facts.params[0].name, "a");
    assert_eq!(&*analysis.facts.columns, ["id".into(), "t".into()]);
    assert_eq!(analysis.facts.tables, ["article"]);
    let view = fixture.analyse("select * from recent").unwrap();
    assert_eq!(view.facts.tables, ["recent"]);
    assert_eq!(view.reads().count(), 2);
}

#[test]
fn values_decide_at_each_execution() {
    let fixture = AnalysisFixture::new(SCHEMA);
    let by_key = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    // The rows by the key, and all rows.
    assert_eq!(by_key.wanted().count(), 2);
    assert_eq!(
        by_key
            .deps(&[Value::Integer(7)], &Found::default())
            .tags
            .len(),
        2
    );
    // Not the type that the server asked for: all rows count, however the server converts it.
    assert_eq!(by_key.deps(&["7".into()], &Found::default()).tags.len(), 1);
    let any = fixture
        .analyse("select * from author where id = any ($1)")
        .unwrap();
    let list =
        |json: serde_json::Value| any.deps(&[Value::from(json)], &Found::default()).tags.len();
    assert_eq!(list(serde_json::json!([1, 2, 3])), 4);
    assert_eq!(list(serde_json::json!([])), 2);
    assert_eq!(list(serde_json::json!((0..65).collect::<Vec<_>>())), 1);
    let clock = fixture
        .analyse("select * from article where at > $1")
        .unwrap();
    assert_eq!(
        clock
            .deps(&["2026-01-01".into()], &Found::default())
            .uncacheable,
        None
    );
    assert!(
        clock
            .deps(&["now".into()], &Found::default())
            .uncacheable
            .is_some()
    );
}
