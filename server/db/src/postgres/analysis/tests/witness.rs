//! Changes that a witness must not hide: of two references neither is narrowed by the other.

use super::changes;
use super::property::{WatchedQuery, deps, rows};
use super::support::AnalysisFixture;
use crate::Value;
use crate::column_set::ColumnSet;
use crate::postgres::tags::broad_reading;
use crate::query::QueryAnalysis as _;

const TABLES: [&str; 5] = ["w", "x", "y", "z", "s"];

fn schema(identity: &str) -> String {
    let table = |name: &str| {
        let indexes =
            ["a", "b", "k", "q"].map(|column| format!("create index on {name} ({column});"));
        format!(
            "create table {name} (id int primary key, a int, b int, k int, q int);
            alter table {name} replica identity {identity};{}",
            indexes.join("")
        )
    };
    TABLES.map(table).join("")
}

/// Runs `change` on tables with the rows of `setup`: it must change the result of `sql`, where
/// `$1` is `value`, and touch what that depends on.
fn ends(setup: &str, sql: &str, value: i64, change: &str) {
    for identity in ["full", "default"] {
        let fixture = AnalysisFixture::new(&schema(identity));
        fixture.run(setup);
        let query = [WatchedQuery {
            sql: sql.replace("$1", &value.to_string()),
            analysis: fixture.analyse(sql).unwrap(),
            params: vec![Value::Integer(value)],
        }];
        let view = changes::view(&fixture, &query);
        let [query] = query;
        let contents = || changes::contents(&fixture, &TABLES);
        let (answer, before) = (rows(&fixture, &query.sql), contents());
        let deps = deps(&fixture, &query);
        fixture.run(change);
        assert_ne!(
            rows(&fixture, &query.sql),
            answer,
            "{change} changes nothing of {sql}"
        );
        let tags = changes::touched(&fixture, &view, &before, &contents(), identity == "full");
        assert!(
            deps.uncacheable.is_some() || deps.tags.iter().any(|tag| tags.contains(tag)),
            "after {change}, identity {identity}, is stale: {sql}\n{:?}",
            query.analysis.describe()
        );
    }
}

#[test]
fn of_two_references_neither_narrows_the_other() {
    let s = "insert into s (id, a) values (1, 9)";
    let x = "insert into x (id, a) values (1, 9)";
    for sql in [
        "select * from (select * from y where k = $1) d join s on s.a = d.id",
        "select * from (select * from (select * from y) e where k = $1) d join s on s.a = d.id",
    ] {
        ends(s, sql, 5, "insert into y (id, k) values (9, 5)");
    }
    for sql in [
        "select * from x where exists (select from y where y.id = x.a and y.k = $1)",
        "select * from x where x.a in (select y.id from y where y.k = $1 and y.id = x.a)",
        "select * from x where exists (select from (select * from y where y.k = $1 and y.id = x.a) d where d.id = x.a)",
    ] {
        ends(x, sql, 5, "insert into y (id, k) values (9, 5)");
    }
    ends(
        "insert into y (id, k, a, b) values (1, 4, 6, 6)",
        "select * from (select * from y where k = $1) d where d.a = d.b",
        5,
        "insert into y (id, k, a, b) values (2, 5, 7, 7)",
    );
    let distinct = "select distinct on (b) b, k from y order by b, id";
    for (setup, sql) in [
        (
            s,
            format!(
                "select * from (select * from ({distinct}) e where k = $1) d join s on s.a = d.b"
            ),
        ),
        (
            x,
            format!(
                "select * from x where exists (select from ({distinct}) d where d.k = $1 and d.b = x.a)"
            ),
        ),
        (
            s,
            format!("select * from ({distinct}) d join s on s.a = d.b where d.k = $1"),
        ),
    ] {
        ends(setup, &sql, 5, "insert into y (id, k, b) values (1, 5, 9)");
    }
}

#[test]
fn the_first_arm_of_a_union_is_not_all_of_it() {
    ends(
        "insert into z (id, a) values (1, 7)",
        "select * from (select id, a from y union all select id, a from z) d join s on s.b = d.a where d.id = $1",
        1,
        "insert into s (id, b) values (3, 7)",
    );
}

#[test]
fn a_column_belongs_to_the_query_of_its_level() {
    ends(
        "insert into w (id) values (1); insert into x (id) values (2); insert into y (id, k, b) values (1, 2, 5)",
        "select w.id, (select count(*) from x where exists (select 1 from (select y.b, y.k from y where y.k = x.id) d \
         join z on z.q = d.b)) from w where w.id = $1",
        1,
        "insert into z (id, q) values (1, 5)",
    );
}

#[test]
fn a_witness_by_values_without_tags_is_none() {
    let fixture = AnalysisFixture::new(&schema("full"));
    let sql = "select * from s where exists (select from y where y.id = s.a and y.k = any ($1))";
    let analysis = fixture.analyse(sql).unwrap();
    let tags = |count: i64| {
        let list: Vec<i64> = (1..=count).collect();
        let params = [Value::Json(std::sync::Arc::new(serde_json::json!(list)))];
        let mut found = crate::postgres::analysis::Found::default();
        for witness in analysis.witnesses() {
            found.add(witness, &witness.params(&params).unwrap(), &[]);
        }
        analysis.deps(&params, &found).tags
    };
    let family = |table, columns: &[&str]| {
        let oid = fixture.catalog_oid(table).unwrap();
        let columns = columns.iter().map(|column| (*column).to_owned());
        let family = fixture.catalog.families.of(oid).unwrap();
        broad_reading(family, &ColumnSet::of(columns))
    };
    let (s, y) = (
        family("s", &["id", "a", "b", "k", "q"]),
        family("y", &["id", "k"]),
    );
    assert!(!tags(64).contains(&s));
    assert!(tags(65).contains(&s) && tags(65).contains(&y));
}
