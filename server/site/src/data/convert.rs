//! A value of a file as the column of a table takes it.

use std::{fmt::Write as _, sync::Arc};

use millpond_data::FieldValue as FileValue;
use millpond_db::{TableColumn, TableColumnKind as Kind, Value};

use super::{
    columns::FilledColumns,
    declared::{held, moment},
    hiding::{DRAFT, is_hidden},
};
use millpond_site_format::{text_format::TextFormat, time_zone::SiteZone};

/// Up to this number a double has each integer: 2 to the power of 53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that does not fit its column.
#[derive(Debug)]
pub(super) struct Misfit {
    /// The column's name.
    pub(super) column: String,
    /// A sentence with the column and the value.
    pub(super) message: String,
}

/// The values of a row for the filled columns.
///
/// # Errors
/// The first value that does not fit.
pub(super) fn row(
    filled: &FilledColumns,
    values: &[FileValue<'_>],
    out: &mut Vec<Value>,
) -> Result<(), Misfit> {
    out.clear();
    for (column, from) in filled.columns.iter().zip(&filled.from) {
        out.push(value_of(filled, column, *from, values)?);
    }
    if let Some(key) = filled.content_key {
        out[key] = content_hash(&filled.file, out, key);
    }
    Ok(())
}

/// The value of a column.
fn value_of(
    filled: &FilledColumns,
    column: &TableColumn,
    from: Option<usize>,
    values: &[FileValue<'_>],
) -> Result<Value, Misfit> {
    let misfit = |message| Misfit {
        column: column.name.clone(),
        message,
    };
    let value = from.and_then(|from| values.get(from));
    let is_hidden = match filled.hiding.is_empty() || !column.name.eq_ignore_ascii_case(DRAFT) {
        true => false,
        false => is_hidden(&filled.hiding, values)?,
    };
    let value = match is_hidden {
        true => &FileValue::Boolean(true),
        false => value.unwrap_or(&FileValue::Null),
    };
    convert(value, column, filled.zone).map_err(misfit)
}

/// The values of a row for more columns than it was read for.
pub(super) fn widen(
    own: &FilledColumns,
    filled: &FilledColumns,
    values: &[Value],
    out: &mut Vec<Value>,
) {
    out.clear();
    for column in &filled.columns {
        let at = own.columns.iter().position(|it| it.name == column.name);
        let known = at.and_then(|at| values.get(at)).cloned();
        let none = || convert(&FileValue::Null, column, filled.zone).unwrap_or(Value::Null);
        out.push(known.unwrap_or_else(none));
    }
    if let Some(key) = filled.content_key {
        out[key] = content_hash(&filled.file, out, key);
    }
}

/// The key of a row, though other columns may not fit; none if it has none.
pub(super) fn key(filled: &FilledColumns, values: &[FileValue<'_>]) -> Option<Vec<Value>> {
    let columns = filled.columns.iter().zip(&filled.from);
    let keys = columns.filter(|(column, _)| column.is_key);
    let value = |(column, from): (&TableColumn, &Option<usize>)| {
        let value = from.and_then(|from| values.get(from));
        convert(value.unwrap_or(&FileValue::Null), column, filled.zone).ok()
    };
    match filled.missing_key {
        Some(_) => None,
        None => keys.map(value).collect(),
    }
}

/// All values of a row that do not fit.
pub(super) fn misfits(filled: &FilledColumns, values: &[FileValue<'_>]) -> Vec<Misfit> {
    let columns = filled.columns.iter().zip(&filled.from);
    let values = columns.map(|(column, from)| value_of(filled, column, *from, values));
    values.filter_map(Result::err).collect()
}

fn convert(value: &FileValue<'_>, column: &TableColumn, zone: SiteZone) -> Result<Value, String> {
    let converted = match (value, column.kind) {
        (FileValue::Text(text) | FileValue::Plain(text), Kind::Boolean | Kind::Integer)
            if old_truth(text).is_some() =>
        {
            let truth = old_truth(text) == Some(true);
            match column.kind {
                Kind::Boolean => Some(truth.into()),
                _ => Some(i64::from(truth).into()),
            }
        }
        (FileValue::Null, Kind::Text) if column.not_null => Some("".into()),
        (FileValue::Null, _) => Some(Value::Null),
        (FileValue::Boolean(truth), Kind::Boolean) => Some((*truth).into()),
        (FileValue::Boolean(truth), Kind::Integer) => Some(i64::from(*truth).into()),
        (FileValue::Integer(integer), Kind::Integer) => Some((*integer).into()),
        (FileValue::Integer(integer), Kind::Real) => Some(Value::Real(*integer as f64)),
        (FileValue::Integer(0 | 1), Kind::Boolean) => {
            Some((*value == FileValue::Integer(1)).into())
        }
        (FileValue::Real(real), Kind::Real) => Some(Value::Real(*real)),
        (FileValue::Real(real), Kind::Integer) => whole(*real).map(Value::from),
        (FileValue::Plain(text) | FileValue::Text(text), Kind::Moment) => moment(text, zone),
        (FileValue::Plain(text), kind) => plain(text, kind),
        (FileValue::Text(text), Kind::Text | Kind::Other) => Some(Value::from(&**text)),
        (FileValue::Json(json), Kind::Text) => Some(Value::from(&*json.to_string())),
        (FileValue::Json(json), Kind::Json) => Some(json.clone().into()),
        (FileValue::Text(text), Kind::Json) => Some(serde_json::Value::from(&**text).into()),
        (value, Kind::Json) => scalar_json(value).map(Value::from),
        (value, Kind::Text | Kind::Other) => scalar_text(value).map(|text| Value::from(&*text)),
        _ => None,
    };
    let refused = |what: &str| format!("{} is {}, not {what}", column.name, shown(value));
    let converted = converted.map(|value| held(&column.type_name, value));
    let held = converted.transpose().map_err(|wanted| refused(&wanted))?;
    held.ok_or_else(|| {
        let what = match column.kind {
            Kind::Integer => "an integer",
            Kind::Real => "a number",
            Kind::Boolean => "true or false",
            Kind::Json => "JSON",
            Kind::Moment => TextFormat::DateTime.wanted(),
            Kind::Text | Kind::Other => "text",
        };
        let is_rounded = matches!(value, FileValue::Real(real) if real.abs() >= EXACT);
        if is_rounded && column.kind != Kind::Boolean {
            return format!(
                "{} is {}, a number whose last digits are lost: put it in quotes",
                column.name,
                shown(value)
            );
        }
        refused(what)
    })
}

/// YAML 1.1 had more words for the truth, and people write them.
pub(super) fn old_truth(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match (
        is_one_of(["yes", "on", "true"]),
        is_one_of(["no", "off", "false"]),
    ) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Text of a format without types.
fn plain(text: &str, kind: Kind) -> Option<Value> {
    match kind {
        Kind::Text | Kind::Other => Some(text.into()),
        Kind::Moment => None,
        Kind::Integer => match text.trim() {
            "true" => Some(1.into()),
            "false" => Some(0.into()),
            text => text.parse::<i64>().ok().map(Value::from),
        },
        Kind::Real => {
            let real = text.trim().parse::<f64>().ok();
            real.filter(|real| real.is_finite()).map(Value::Real)
        }
        Kind::Boolean => match text.trim() {
            "true" | "1" => Some(true.into()),
            "false" | "0" => Some(false.into()),
            _ => None,
        },
        Kind::Json => serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .map(Value::from),
    }
}

fn whole(real: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (real.trunc() == real && (-LIMIT..LIMIT).contains(&real)).then_some(real as i64)
}

fn scalar_text(value: &FileValue<'_>) -> Option<String> {
    match value {
        FileValue::Boolean(truth) => Some(truth.to_string()),
        FileValue::Integer(integer) => Some(integer.to_string()),
        // Of a larger number it is not known whether the file has more digits.
        FileValue::Real(real) => (real.abs() < EXACT).then(|| real.to_string()),
        FileValue::Json(json) => Some(json.to_string()),
        FileValue::Null | FileValue::Text(_) | FileValue::Plain(_) => None,
    }
}

fn scalar_json(value: &FileValue<'_>) -> Option<serde_json::Value> {
    match value {
        FileValue::Boolean(truth) => Some((*truth).into()),
        FileValue::Integer(integer) => Some((*integer).into()),
        FileValue::Real(real) => Some((*real).into()),
        _ => None,
    }
}

/// A value for a message: its beginning, if it is long.
pub(super) fn shown(value: &FileValue<'_>) -> String {
    let text = match value {
        FileValue::Text(text) | FileValue::Plain(text) => format!("{text:?}"),
        FileValue::Real(real) => real.to_string(),
        other => scalar_text(other).unwrap_or_else(|| "null".to_owned()),
    };
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// A text that is equal for rows of one file with equal values.
fn content_hash(file: &str, values: &[Value], key: usize) -> Value {
    let mut bytes = format!("{}:{file};", file.len());
    for (index, value) in values.iter().enumerate() {
        if index == key {
            continue;
        }
        let written = match value {
            Value::Null => write!(bytes, "n;"),
            Value::Integer(integer) => write!(bytes, "i{integer};"),
            Value::Real(real) => write!(bytes, "r{real};"),
            Value::Boolean(truth) => write!(bytes, "b{truth};"),
            Value::Text(text) => write!(bytes, "t{}:{text}", text.len()),
            Value::Json(json) => write!(bytes, "j{json};"),
            Value::Blob(blob) => write!(bytes, "x{};", blob.len()),
        };
        // A text takes all that is written.
        let _ = written;
    }
    let hash = millpond_data::hash_bytes(bytes.as_bytes());
    Value::Text(Arc::from(format!("{hash:032x}")))
}
