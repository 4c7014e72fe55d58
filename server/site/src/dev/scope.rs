//! Values as an error page shows them: short, and without secrets.

use std::{borrow::Cow, sync::Arc};

use millpond_db::Value;
use millpond_http::Request;
use serde_json::{Value as Json, json};

use millpond_site_compile::object::{self, QueryResult};
use millpond_site_format::{params::Param, secret_names::is_secret};

/// Characters of a value.
const LONGEST: usize = 240;
/// Rows of a query.
const ROWS: usize = 3;
/// Columns of a row.
const COLUMNS: usize = 24;

/// How a password's hash begins.
const HASHES: [&str; 5] = ["$argon2", "$2a$", "$2b$", "$2y$", "$scrypt$"];

/// A value under a name.
pub(super) fn named(name: &str, value: &Value) -> Json {
    let (kind, text) = if is_secret(name) {
        ("hidden", Cow::from("hidden"))
    } else {
        shown(value)
    };
    json!({ "name": name, "kind": kind, "value": short(&text) })
}

/// A text of the request under a name.
pub(super) fn named_text(name: &str, text: &str) -> Json {
    named(name, &Value::Text(text.into()))
}

fn shown(value: &Value) -> (&'static str, Cow<'_, str>) {
    match value {
        Value::Null => ("null", "null".into()),
        Value::Integer(integer) => ("integer", integer.to_string().into()),
        Value::Real(real) => ("integer", real.to_string().into()),
        Value::Boolean(truth) => ("boolean", truth.to_string().into()),
        Value::Blob(bytes) => ("bytes", format!("{} bytes", bytes.len()).into()),
        Value::Text(text) if HASHES.iter().any(|start| text.starts_with(start)) => {
            ("hidden", "hidden".into())
        }
        Value::Text(text) => ("text", Cow::from(&**text)),
        Value::Json(_) => ("json", object::json(value).to_string().into()),
    }
}

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The parameters, by their declaration.
pub(super) fn params(params: &[Param], values: &[Value]) -> Json {
    let params = params.iter().zip(values);
    params
        .map(|(param, value)| named(&param.name, value))
        .collect()
}

/// The number of rows of a result, its columns and its first rows.
pub(super) fn rows(result: &Arc<QueryResult>) -> Json {
    let columns = &result.data.columns;
    let row = |row: &Vec<Value>| -> Json {
        let cells = columns.iter().zip(row).take(COLUMNS);
        cells.map(|(name, value)| named(name, value)).collect()
    };
    let first = result.data.rows.iter().take(ROWS).map(row);
    let names = columns.iter().take(COLUMNS).map(ToString::to_string);
    json!({
        "count": result.data.rows.len(),
        "columns": names.collect::<Vec<_>>(),
        "first": first.collect::<Vec<_>>(),
    })
}

/// Describes the request, without its body, cookies and other secrets.
pub(super) fn request(request: &Request<'_>, path: &str) -> Json {
    let mut all = vec![
        named_text("method", request.method),
        named_text("path", path),
        named_text("host", request.host().unwrap_or_default()),
    ];
    let pairs = form_urlencoded::parse(request.query.unwrap_or_default().as_bytes());
    all.extend(pairs.map(|(name, value)| {
        let mut pair = named_text(&name, &value);
        pair["name"] = short(&format!("query.{name}")).into();
        pair
    }));
    let fields = request.fields.iter();
    all.extend(fields.map(|(name, value)| {
        let text = String::from_utf8_lossy(value);
        // The query of another page may have secrets.
        let text = match name.eq_ignore_ascii_case("referer") {
            true => text.split('?').next().unwrap_or_default(),
            false => &text,
        };
        let mut field = named_text(name, text);
        field["name"] = short(&format!("headers.{}", name.to_ascii_lowercase())).into();
        field
    }));
    Json::Array(all)
}
