//! Parameters: what they hold, and when their values read the clock.

use std::sync::Arc;

use tokio_postgres::types::{Kind as Shape, Type};

use crate::postgres::catalog::Catalog;
use crate::query::Param;
use crate::{Value, ValueKind};

/// Words that PostgreSQL reads as a time near the present.
const CLOCK_WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// True if a text may be read as such a time.
pub(crate) fn mentions_clock(text: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphabetic())
        .any(|word| {
            CLOCK_WORDS
                .iter()
                .any(|clock| word.eq_ignore_ascii_case(clock))
        })
}

/// The parameters with their names and kinds.
pub(crate) fn all(types: &[Type], names: &[String], catalog: &Catalog) -> Arc<[Param]> {
    types
        .iter()
        .enumerate()
        .map(|(index, param)| Param {
            name: names
                .get(index)
                .cloned()
                .unwrap_or_else(|| (index + 1).to_string()),
            kind: kind(param, catalog),
        })
        .collect()
}

/// The kind of value that a type's values are given as.
fn kind(param: &Type, catalog: &Catalog) -> Option<ValueKind> {
    let base = Type::from_oid(catalog.base_type(param.oid()));
    let base = base.as_ref().unwrap_or(param);
    Some(match *base {
        Type::BOOL => ValueKind::Boolean,
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => ValueKind::Integer,
        Type::FLOAT4 | Type::FLOAT8 => ValueKind::Real,
        Type::BYTEA => ValueKind::Blob,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => ValueKind::Text,
        _ => ValueKind::Other,
    })
}

/// The parameters of types whose values are read from texts that may say `now`: dates, times, and
/// types that may contain them.
#[derive(Debug)]
pub(crate) struct ClockWords(Vec<TimeDependence>);

#[derive(Debug)]
struct TimeDependence {
    index: usize,
    /// True if any value depends on the day: that of a zone is today's, for a time without a date.
    always: bool,
}

impl ClockWords {
    pub(crate) fn of(types: &[Type]) -> Self {
        Self(
            types
                .iter()
                .enumerate()
                .filter(|(_, param)| !is_timeless(param))
                .map(|(index, param)| TimeDependence {
                    index,
                    always: matches!(*param, Type::TIMETZ | Type::TIMETZ_ARRAY),
                })
                .collect(),
        )
    }

    /// Why a result must not be kept, if one of the values says such a word.
    pub(crate) fn in_any(&self, values: &[Value], params: &[Param]) -> Option<Arc<str>> {
        let found = self
            .0
            .iter()
            .find(|timely| match values.get(timely.index) {
                Some(Value::Text(text)) => timely.always || mentions_clock(text),
                Some(Value::Json(json)) => timely.always || mentions_clock(&json.to_string()),
                _ => false,
            })?;
        let name = &params.get(found.index)?.name;
        Some(format!("the parameter {name} is read by the clock").into())
    }
}

fn is_timeless(param: &Type) -> bool {
    match param.kind() {
        Shape::Array(of) => is_timeless(of),
        Shape::Enum(_) => true,
        _ => matches!(
            *param,
            Type::BOOL
                | Type::BPCHAR
                | Type::BYTEA
                | Type::CHAR
                | Type::FLOAT4
                | Type::FLOAT8
                | Type::INET
                | Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::INTERVAL
                | Type::JSON
                | Type::JSONB
                | Type::NAME
                | Type::NUMERIC
                | Type::OID
                | Type::TEXT
                | Type::TSQUERY
                | Type::TS_VECTOR
                | Type::UUID
                | Type::VARCHAR
        ),
    }
}

/// True if a statement of which PostgreSQL tells nothing more changes nothing, by its words. A
/// read-only transaction has the last word.
pub(crate) fn seems_readonly(sql: &str) -> bool {
    let mut words = sql
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty());
    !words.any(|word| {
        ["insert", "update", "delete", "merge"]
            .iter()
            .any(|write| word.eq_ignore_ascii_case(write))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_present_are_seen() {
        for text in [
            "now",
            "Today 12:00",
            "'tomorrow'",
            "12:00 yesterday",
            "[\"NOW\"]",
        ] {
            assert!(mentions_clock(text), "{text}");
        }
        for text in ["2026-11-21", "known", "infinity", "epoch"] {
            assert!(!mentions_clock(text), "{text}");
        }
        let types = [Type::TEXT, Type::TIMESTAMPTZ, Type::DATE_ARRAY];
        let words = ClockWords::of(&types);
        let params = all(
            &types,
            &["a".into(), "b".into(), "c".into()],
            &Catalog::default(),
        );
        assert_eq!(words.in_any(&["now".into()], &params), None);
        assert!(words.in_any(&["x".into(), "now".into()], &params).is_some());
        let list = Value::from(serde_json::json!(["2026-01-01", "today"]));
        assert!(
            words
                .in_any(&["x".into(), Value::Null, list], &params)
                .is_some()
        );
    }
}
