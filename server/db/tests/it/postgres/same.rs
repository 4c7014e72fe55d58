//! What a batch reads is what the driver reads, which runs the same queries in writes.

use millpond_db::{Bind, Call, Expect, Value, WriteStep};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Fixture;
use crate::support::{int, text, wait};

/// A type with a text of one of its values, or none for null.
fn value() -> impl Strategy<Value = (&'static str, Option<String>)> {
    let number = |kind, low: i64, high: i64| {
        (low..=high)
            .prop_map(move |n| (kind, Some(n.to_string())))
            .boxed()
    };
    let words = |kind: &'static str, pattern: &'static str| {
        pattern.prop_map(move |text| (kind, Some(text))).boxed()
    };
    let float = any::<f64>().prop_filter("numbers equal themselves", |n| !n.is_nan());
    let some = prop_oneof![
        number("smallint", i16::MIN.into(), i16::MAX.into()),
        number("integer", i32::MIN.into(), i32::MAX.into()),
        number("bigint", i64::MIN, i64::MAX),
        float.prop_map(|n| ("double precision", Some(format!("{n:?}")))),
        any::<f32>()
            .prop_filter("as above", |n| n.is_finite())
            .prop_map(|n| ("real", Some(format!("{n:?}")))),
        any::<bool>().prop_map(|truth| ("boolean", Some(truth.to_string()))),
        words("numeric", "-?[0-9]{1,30}(\\.[0-9]{1,30})?"),
        words("text", "\\PC{0,40}"),
        words("bytea", "\\\\x([0-9a-f]{2}){0,20}"),
        words("uuid", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        words(
            "date",
            "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
        ),
        words("time", "([01][0-9]|2[0-3])(:[0-5][0-9]){2}\\.[0-9]{6}"),
        words(
            "timestamptz",
            "[12][0-9]{3}-0[1-9]-1[0-9] 1[0-9]:00:00\\.[0-9]{6}\\+02"
        ),
        words(
            "jsonb",
            "\\{\"[a-z]{0,5}\": \\[[1-9][0-9]{0,17}, \"[a-z ]{0,9}\", null\\]\\}"
        ),
        words("integer[]", "\\{[0-9]{1,9}(,NULL|,[0-9]{1,9}){0,6}\\}"),
        words("text[]", "\\{\"[a-z ,]{0,9}\"(,NULL|,[a-z]{1,4}){0,3}\\}"),
        words("interval", "[1-9][0-9]{0,3} days [0-9]{2} seconds"),
        words("inet", "10\\.[0-9]\\.[1-9][0-9]\\.1(/24)?"),
        words("int4range", "\\[[0-9]{1,3},[1-9][0-9]{3}\\)"),
    ];
    (some, any::<proptest::sample::Index>()).prop_map(|((kind, text), nothing)| {
        // One in eight is null.
        (kind, text.filter(|_| nothing.index(8) > 0))
    })
}

#[test]
fn results_are_those_of_the_driver() {
    let fixture = Fixture::with("", |options| options.pool = 1);
    let columns = proptest::collection::vec(value(), 1..9);
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let check = |(columns, rows): (Vec<(&'static str, Option<String>)>, i64)| {
        let selected: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(index, (kind, _))| format!("(:p{index}::text)::{kind} as c{index}"))
            .collect();
        let query = fixture.prepare(&format!(
            "select {}, n from generate_series(1, :rows::integer) n order by n",
            selected.join(", ")
        ));
        let mut params: Vec<Value> = columns
            .iter()
            .map(|(_, value)| value.as_deref().map_or(Value::Null, text))
            .collect();
        params.push(int(rows));
        let step = WriteStep {
            query: query.clone(),
            bind: params.iter().cloned().map(Bind::Value).collect(),
            expect: Expect::Many,
        };
        let expected = wait(fixture.database.write(vec![step])).unwrap().results;
        // Parsed in the batch, known to the connection, and beside others.
        let several = vec![Call { query, params }; 2];
        for calls in [vec![several[0].clone()], several[..1].to_vec(), several] {
            let read = wait(fixture.database.read(calls)).unwrap();
            for rows in &read.results {
                prop_assert_eq!(&rows.rows, &expected[0].rows);
                prop_assert_eq!(&rows.columns, &expected[0].columns);
            }
        }
        Ok(())
    };
    TestRunner::new(config)
        .run(&(columns, 0_i64..30), check)
        .unwrap();
}
