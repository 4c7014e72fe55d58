//! TOML: an array of tables is rows, one table is one row.

use serde_json::{Map, Value as Json};
use toml::{Table, Value as Toml};

use crate::MAX_DEPTH;
use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{RowWriter, too_deep};
use crate::row_name::{RowName, with_name};

pub(crate) fn read(
    text: &str,
    name: Option<&RowName>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let table = parse(text)?;
    let mut entries = table.into_iter();
    let first = entries.next();
    match (first, entries.len()) {
        (Some((_, Toml::Array(list))), 0)
            if !list.is_empty() && list.iter().all(Toml::is_table) =>
        {
            for row in list {
                let place = rows.place();
                let Toml::Table(table) = row else { continue };
                rows.named(place, with_name(None, fields(table, place)?))?;
            }
            Ok(())
        }
        (first, _) => {
            let table: Table = first.into_iter().chain(entries).collect();
            let place = FilePlace::line(1);
            rows.named(place, with_name(name, fields(table, place)?))
        }
    }
}

/// The members of a document.
pub(crate) fn object(text: &str) -> Result<Vec<(String, Json)>, DataError> {
    fields(parse(text)?, FilePlace::line(1))
}

fn parse(text: &str) -> Result<Table, DataError> {
    text.parse::<Table>().map_err(|error| {
        let place = error.span().map_or(FilePlace::line(1), |span| {
            FilePlace::in_text(text, span.start)
        });
        DataError::new(place, error.message().replace('\n', " "))
            .remedy("see https://toml.io for the format")
    })
}

fn fields(table: Table, place: FilePlace) -> Result<Vec<(String, Json)>, DataError> {
    let fields = table.into_iter();
    fields
        .map(|(name, value)| Ok((name, json(value, 0, place)?)))
        .collect()
}

fn json(value: Toml, depth: usize, place: FilePlace) -> Result<Json, DataError> {
    if depth > MAX_DEPTH {
        return Err(too_deep(place));
    }
    Ok(match value {
        Toml::String(text) => text.into(),
        Toml::Integer(number) => number.into(),
        Toml::Float(number) => serde_json::Number::from_f64(number)
            .map(Json::Number)
            .ok_or_else(|| no_number(place, &number.to_string()))?,
        Toml::Boolean(truth) => truth.into(),
        Toml::Datetime(moment) => moment.to_string().into(),
        Toml::Array(list) => {
            let list = list.into_iter().map(|value| json(value, depth + 1, place));
            list.collect::<Result<Vec<_>, _>>()?.into()
        }
        Toml::Table(table) => {
            let mut object = Map::new();
            for (name, value) in table {
                object.insert(name, json(value, depth + 1, place)?);
            }
            object.into()
        }
    })
}

/// Infinity, or no number.
pub(crate) fn no_number(place: FilePlace, text: &str) -> DataError {
    DataError::new(place, format!("{text} is a number that no database keeps"))
        .remedy("leave the value out, or put it in quotes")
}
