//! Each type, there and back, held against what PostgreSQL itself writes.

use std::sync::Arc;

use millpond_db::{Value, ValueKind};

use super::Fixture;
use crate::support::{int, text};

fn json(document: serde_json::Value) -> Value {
    Value::Json(Arc::new(document))
}

/// Types that are text in PostgreSQL's own form, with values.
const AS_TEXT: &[(&str, &[&str])] = &[
    ("text", &["", "a", "ä\n'\"\\"]),
    ("varchar", &["x"]),
    ("char(4)", &["ab  "]),
    ("name", &["pg"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    (
        "numeric",
        &[
            "0",
            "0.00",
            "-1",
            "1.10",
            "10000",
            "100000000",
            "99999999999999999999999999.000000000000000001",
            "0.0000000000000000000001",
            "12345678.9",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e130000",
            "1e-1000",
        ],
    ),
    (
        "date",
        &[
            "2026-11-21",
            "0001-01-01",
            "0044-03-15 BC",
            "4713-01-01 BC",
            "5874897-12-31",
            "infinity",
            "-infinity",
            "2000-02-29",
        ],
    ),
    (
        "time",
        &["00:00:00", "24:00:00", "12:34:56.7", "23:59:59.999999"],
    ),
    ("timetz", &["12:34:56+02"]),
    (
        "timestamp",
        &[
            "2026-11-21 17:00:00.123456",
            "1999-12-31 23:59:59.5",
            "0044-03-15 12:00:00 BC",
            "294276-12-31 23:59:59.999999",
            "infinity",
            "-infinity",
        ],
    ),
    (
        "interval",
        &["1 year 2 mons 3 days 04:05:06.7", "-00:00:01"],
    ),
    (
        "inet",
        &[
            "10.0.0.0/8",
            "10.0.0.1",
            "::1",
            "::",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "2001:db8::1:0:0:1/64",
        ],
    ),
    ("cidr", &["10.0.0.0/8", "10.0.0.1/32", "2001:db8::/32"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("money", &["$1.50"]),
    ("point", &["(1,2)"]),
    ("int4range", &["[1,5)", "empty"]),
    ("tsvector", &["'a':1 'b':2"]),
    ("bit varying", &["10110"]),
    ("xml", &["<a>b</a>"]),
    ("mood", &["happy"]),
    ("postcode", &["12345"]),
    ("pair", &["(1,\"a b\")"]),
];

const TYPES: &str = "
create type mood as enum ('sad', 'happy');
create domain postcode as text check (value ~ '^[0-9]{5}$');
create type pair as (a integer, b text);
";

#[test]
fn types_without_a_kind_are_text_as_postgresql_writes_it() {
    let fixture = Fixture::new(TYPES);
    for (name, values) in AS_TEXT {
        let query = fixture.prepare(&format!(
            "select :v::{name}, :v::{name}::text, null::{name}"
        ));
        for value in *values {
            let read = fixture.try_read(&query, vec![text(value)]);
            let read = read.unwrap_or_else(|error| panic!("{name} {value}: {error}"));
            let row = &read.results[0].rows[0];
            // Their casts to text have another form than their output.
            if !["char(4)", "inet"].contains(name) {
                assert_eq!(row[0], row[1], "{name} {value}");
            }
            if *value != "1e130000" && *value != "1e-1000" {
                assert_eq!(row[0], text(value), "{name}");
            }
            assert_eq!(row[2], Value::Null, "{name}");
        }
    }
}

#[test]
fn moments_are_in_utc() {
    let fixture = Fixture::new("");
    let moment = |value: &str| fixture.value("select :v::timestamptz", vec![text(value)]);
    assert_eq!(
        moment("2026-11-21 19:00:00.123456+02"),
        text("2026-11-21T17:00:00.123456Z")
    );
    assert_eq!(moment("2026-11-21 17:00:00"), text("2026-11-21T17:00:00Z"));
    assert_eq!(moment("infinity"), text("infinity"));
    // What comes out goes in again.
    let ancient = moment("0044-03-15 12:00:00 BC");
    assert_eq!(ancient, text("0044-03-15T12:00:00Z BC"));
    assert_eq!(
        fixture.value("select :v::timestamptz", vec![ancient.clone()]),
        ancient
    );
}

#[test]
fn numbers_and_truths_have_kinds_of_their_own() {
    let fixture = Fixture::new("");
    for (sql, value) in [
        ("select :v::smallint", int(i16::MIN.into())),
        ("select :v::integer", int(i32::MAX.into())),
        ("select :v::bigint", int(i64::MIN)),
        ("select :v::oid", int(u32::MAX.into())),
        ("select :v::real", Value::Real(0.1)),
        ("select :v::double precision", Value::Real(1e-300)),
        ("select :v::double precision", Value::Real(f64::INFINITY)),
        ("select :v::boolean", Value::Boolean(true)),
        ("select :v::boolean", Value::Boolean(false)),
        ("select :v::bytea", Value::Blob([0, 1, 255].into())),
        ("select :v::bytea", Value::Blob([].into())),
        (
            "select :v::json",
            json(serde_json::json!({"b": [1, null], "a": "x"})),
        ),
        (
            "select :v::jsonb",
            json(serde_json::json!([1.5, {"a": {}}])),
        ),
        ("select :v::jsonb", json(serde_json::json!("word"))),
        ("select :v::integer", Value::Null),
    ] {
        assert_eq!(fixture.value(sql, vec![value.clone()]), value, "{sql}");
    }
    match fixture.value("select 'NaN'::double precision", vec![]) {
        Value::Real(number) => assert!(number.is_nan()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_fit_where_another_kind_is_meant() {
    let fixture = Fixture::new("");
    for (sql, value, expected) in [
        ("select :v::text", int(7), text("7")),
        ("select :v::integer", text(" 7 "), int(7)),
        ("select :v::integer", Value::Real(7.0), int(7)),
        ("select :v::integer", Value::Boolean(true), int(1)),
        ("select :v::boolean", int(1), Value::Boolean(true)),
        ("select :v::boolean", text("on"), Value::Boolean(true)),
        ("select :v::numeric", int(7), text("7")),
        ("select :v::numeric", Value::Real(0.1), text("0.1")),
        ("select :v::double precision", int(2), Value::Real(2.0)),
        ("select :v::text", Value::Boolean(true), text("true")),
        ("select :v::jsonb", int(1), json(1.into())),
    ] {
        assert_eq!(fixture.value(sql, vec![value]), expected, "{sql}");
    }
}

#[test]
fn arrays_are_lists() {
    let fixture = Fixture::new(TYPES);
    for (name, list) in [
        ("integer[]", serde_json::json!([1, null, -3])),
        ("integer[]", serde_json::json!([])),
        ("integer[]", serde_json::json!([[1, 2], [3, 4]])),
        (
            "text[]",
            serde_json::json!(["a", null, "NULL", "x\"y\\z,{}", ""]),
        ),
        ("boolean[]", serde_json::json!([true, false])),
        ("double precision[]", serde_json::json!([0.5, 1e300])),
        ("numeric[]", serde_json::json!(["1.10", "NaN"])),
        ("date[]", serde_json::json!(["2026-11-21"])),
        ("interval[]", serde_json::json!(["1 day", null])),
        ("mood[]", serde_json::json!(["sad"])),
        ("postcode[]", serde_json::json!(["12345"])),
        ("pair[]", serde_json::json!(["(1,a)"])),
        ("jsonb[]", serde_json::json!([{"a": [1]}, "word", 7])),
        (
            "uuid[][]",
            serde_json::json!([["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]]),
        ),
    ] {
        let sql = format!("select :v::{name}");
        let value = json(list);
        assert_eq!(fixture.value(&sql, vec![value.clone()]), value, "{sql}");
    }
    assert_eq!(
        fixture.value("select '[2:3]={7,8}'::integer[]", vec![]),
        json(serde_json::json!([7, 8]))
    );
    let by = fixture.value(
        "select count(*) from generate_series(1, 9) n where n = any(:list)",
        vec![json(serde_json::json!([2, 3, 77]))],
    );
    assert_eq!(by, int(2));
}

#[test]
fn parameters_have_the_servers_types() {
    let fixture = Fixture::new("create table t (i bigint, x real, b boolean, s text, d bytea)");
    let query = fixture.prepare("insert into t values (:i, :x, :b, :s, :d)");
    let kinds: Vec<_> = query.params().iter().map(|param| param.kind).collect();
    assert_eq!(
        kinds,
        [
            ValueKind::Integer,
            ValueKind::Real,
            ValueKind::Boolean,
            ValueKind::Text,
            ValueKind::Blob
        ]
        .map(Some)
    );
}
