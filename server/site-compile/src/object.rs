//! The result of one query: stored, shown to templates, written as JSON.

use std::sync::Arc;

use millpond_db as db;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

use millpond_site_format::script::Rows;

/// The rows of one query. Templates read them in place; nothing is copied for a render.
#[derive(Debug)]
pub struct QueryResult {
    pub rows: Rows,
    pub data: Arc<db::ResultRows>,
}

impl QueryResult {
    pub fn weight(&self) -> usize {
        let values: usize = self
            .data
            .rows
            .iter()
            .flatten()
            .map(|value| size_of::<db::Value>() + 16 + value.heap_size())
            .sum();
        size_of::<Self>() + size_of::<db::ResultRows>() + self.data.rows.len() * 24 + values
    }

    /// True if the page does not exist: a `:one` without a row.
    pub fn is_missing(&self) -> bool {
        self.rows == Rows::One && self.data.rows.is_empty()
    }

    /// The whole number in a column of the first row.
    pub fn whole_number(&self, column: &str) -> Option<i64> {
        let at = self
            .data
            .columns
            .iter()
            .position(|name| **name == *column)?;
        match self.data.rows.first()?.get(at)? {
            db::Value::Integer(number) => Some(*number),
            // PostgreSQL adds up large numbers as `numeric`, which comes as text.
            db::Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the value that a template sees under the query's name.
    pub fn value(&self) -> Value {
        match self.rows {
            Rows::Many | Rows::Exec => Value::from_object(ResultTable(self.data.clone())),
            Rows::One | Rows::Optional if self.data.rows.is_empty() => Value::from(()),
            Rows::One | Rows::Optional => Value::from_object(ResultRow {
                data: self.data.clone(),
                at: 0,
            }),
        }
    }

    /// Returns the value that an endpoint without a template gives under the query's name.
    pub fn json(&self) -> serde_json::Value {
        let row = |row: &Vec<db::Value>| {
            let fields = self
                .data
                .columns
                .iter()
                .zip(row)
                .map(|(name, value)| (name.to_string(), json(value)));
            serde_json::Value::Object(fields.collect())
        };
        match self.rows {
            Rows::Many | Rows::Exec => self.data.rows.iter().map(row).collect(),
            Rows::One | Rows::Optional => {
                self.data.rows.first().map_or(serde_json::Value::Null, row)
            }
        }
    }
}

pub fn json(value: &db::Value) -> serde_json::Value {
    match value {
        db::Value::Null => serde_json::Value::Null,
        db::Value::Integer(integer) => (*integer).into(),
        db::Value::Real(real) => match serde_json::Number::from_f64(*real) {
            Some(number) => number.into(),
            // As PostgreSQL's own JSON has it, and as lists do.
            None if real.is_nan() => "NaN".into(),
            None if *real > 0.0 => "Infinity".into(),
            None => "-Infinity".into(),
        },
        db::Value::Text(text) => text.to_string().into(),
        db::Value::Blob(bytes) => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
            .into(),
        db::Value::Boolean(truth) => (*truth).into(),
        db::Value::Json(json) => json.as_ref().clone(),
    }
}

/// A database value in a template.
pub fn template_value(value: &db::Value) -> Value {
    match value {
        db::Value::Null => Value::from(()),
        db::Value::Integer(integer) => Value::from(*integer),
        db::Value::Real(real) => Value::from(*real),
        db::Value::Text(text) => Value::from(text.clone()),
        db::Value::Blob(bytes) => Value::from_bytes(bytes.to_vec()),
        db::Value::Boolean(truth) => Value::from(*truth),
        db::Value::Json(json) => document(json),
    }
}

/// A document in a template: lists and maps as such.
fn document(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(truth) => Value::from(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(list) => list.iter().map(document).collect(),
        Json::Object(map) => {
            let fields = map.iter().map(|(key, item)| (key.clone(), document(item)));
            Value::from_object(Fields(fields.collect()))
        }
    }
}

/// A JSON object, with its keys in their order.
#[derive(Debug)]
struct Fields(Vec<(String, Value)>);

impl Object for Fields {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let field = self.0.iter().find(|(name, _)| name == key)?;
        Some(field.1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.0.iter().map(|(name, _)| Value::from(name.as_str()));
        Enumerator::Values(names.collect())
    }
}

#[derive(Debug)]
struct ResultTable(Arc<db::ResultRows>);

impl Object for ResultTable {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = key.as_usize().filter(|&at| at < self.0.rows.len())?;
        Some(Value::from_object(ResultRow {
            data: self.0.clone(),
            at,
        }))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.rows.len())
    }
}

#[derive(Debug)]
struct ResultRow {
    data: Arc<db::ResultRows>,
    at: usize,
}

impl Object for ResultRow {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let column = self.data.columns.iter().position(|name| **name == *key)?;
        self.data.rows[self.at].get(column).map(template_value)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.data
                .columns
                .iter()
                .map(|name| Value::from(name.clone()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_an_end_is_a_text_as_in_a_list() {
        let written = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(|real| json(&real.into()));
        assert_eq!(written, ["Infinity", "-Infinity", "NaN"]);
    }

    #[test]
    fn templates_and_json_see_truths_and_documents_as_such() {
        let given = serde_json::json!({ "tags": ["a", "b"], "n": { "x": 1.5, "none": null }, "big": u64::MAX });
        let data = db::ResultRows {
            columns: ["open", "shape"].map(Arc::from).into(),
            rows: vec![vec![true.into(), given.clone().into()]],
        };
        let result = QueryResult {
            rows: Rows::One,
            data: Arc::new(data),
        };
        assert_eq!(
            result.json(),
            serde_json::json!({ "open": true, "shape": given })
        );
        let template = "{% if row.open is true %}open{% endif %} {{ row.shape.tags | join('+') }} \
                        {{ row.shape.n.x + 1 }} {{ row.shape.n.none is none }} {{ row.shape.big }}";
        let rendered = minijinja::Environment::new()
            .render_str(
                template,
                std::collections::BTreeMap::from([("row", result.value())]),
            )
            .unwrap();
        assert_eq!(rendered, "open a+b 2.5 True 18446744073709551615");
    }
}
