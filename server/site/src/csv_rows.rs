//! The rows of a query as CSV (RFC 4180): a line of the columns' names, then a line for each row.

use millpond_db::{ResultRows, Value};

use crate::object::json;

/// The text of the rows. A column without a value is an empty field.
pub(crate) fn csv(data: &ResultRows) -> Vec<u8> {
    let mut out = String::new();
    push_line(&mut out, data.columns.iter().map(|name| name.to_string()));
    for row in &data.rows {
        push_line(&mut out, row.iter().map(field));
    }
    out.into_bytes()
}

/// Appends a line. A field stands in quotes if a reader would take it for two, or for none: the one
/// field of an empty line.
fn push_line(out: &mut String, fields: impl ExactSizeIterator<Item = String>) {
    let is_single = fields.len() == 1;
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\r', '\n']) || is_single && field.is_empty() {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&field);
        }
    }
    out.push_str("\r\n");
}

/// A value as JSON has it, but a text without its quotes.
fn field(value: &Value) -> String {
    match json(value) {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_value_is_one_field() {
        let data = ResultRows {
            columns: ["id", "na\"me", "x"].map(Arc::from).into(),
            rows: vec![
                vec![1.into(), "a,b\r\nc \"d\"".into(), Value::Null],
                vec![Value::Real(2.5), "".into(), true.into()],
                vec![
                    (-7).into(),
                    " =1+1".into(),
                    serde_json::json!({ "a": [1] }).into(),
                ],
            ],
        };
        assert_eq!(
            String::from_utf8(csv(&data)).unwrap(),
            "id,\"na\"\"me\",x\r\n1,\"a,b\r\nc \"\"d\"\"\",\r\n2.5,,true\r\n-7, =1+1,\"{\"\"a\"\":[1]}\"\r\n"
        );
    }
}
