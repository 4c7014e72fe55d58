//! Columns and values, and the way of the rows to the caller.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value as Json;

use crate::error::{DataError, FilePlace, ReadError};
use crate::name::{MAX_NAME, column_name};
use crate::{MAX_COLUMNS, MAX_DEPTH};

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// No value: an empty field, a missing key, `null`.
    Null,
    /// True or false.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A double that is finite.
    Real(f64),
    /// Text of a format that has types: it is text even if it looks like a number.
    Text(Cow<'a, str>),
    /// Text of a format without types (CSV, TSV, XML): what it means follows from the column.
    Plain(Cow<'a, str>),
    /// A list or an object.
    Json(Json),
}

impl FieldValue<'_> {
    fn has_nul(&self) -> bool {
        match self {
            Self::Text(text) | Self::Plain(text) => text.contains('\0'),
            Self::Json(json) => json_has_nul(json),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::Real(_) => false,
        }
    }
}

fn json_has_nul(json: &Json) -> bool {
    match json {
        Json::String(text) => text.contains('\0'),
        Json::Array(list) => list.iter().any(json_has_nul),
        Json::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains('\0') || json_has_nul(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// A JSON value as a value of a row: a list or an object stays JSON.
pub(crate) fn of_json(json: Json) -> FieldValue<'static> {
    match json {
        Json::Null => FieldValue::Null,
        Json::Bool(truth) => FieldValue::Boolean(truth),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => FieldValue::Integer(integer),
            None => number.as_f64().map_or(FieldValue::Null, FieldValue::Real),
        },
        Json::String(text) => FieldValue::Text(text.into()),
        nested => FieldValue::Json(nested),
    }
}

/// The caller wants no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// One row of a file.
#[derive(Debug)]
pub struct Row<'a> {
    /// Place of the row.
    pub place: FilePlace,
    /// The names of the columns that have come so far, each once. A later row may have more; the
    /// order stays.
    pub names: &'a [String],
    /// A value for each of them.
    pub values: &'a [FieldValue<'a>],
}

/// The rows on their way to the caller.
pub(crate) struct RowWriter<'a> {
    each: &'a mut dyn FnMut(&Row<'_>) -> Result<(), Stop>,
    names: Vec<String>,
    /// The column of each name as it is written in the file.
    known: HashMap<String, usize>,
    count: u64,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(each: &'a mut dyn FnMut(&Row<'_>) -> Result<(), Stop>) -> Self {
        Self {
            each,
            names: Vec::new(),
            known: HashMap::new(),
            count: 0,
        }
    }

    /// The number of rows so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The place of the next row, where lines are not known.
    pub(crate) fn place(&self) -> FilePlace {
        FilePlace::row(self.count + 1)
    }

    /// The column of a name as the file has it.
    pub(crate) fn column(&mut self, written: &str, place: FilePlace) -> Result<usize, DataError> {
        if let Some(column) = self.known.get(written) {
            return Ok(*column);
        }
        let name = column_name(written).ok_or_else(|| {
            DataError::new(place, format!("the column {written:?} has no name"))
                .remedy("give it a name with a letter")
        })?;
        if name.len() > MAX_NAME {
            let message = format!("the name of the column {written:?} has more than 63 bytes");
            return Err(DataError::new(place, message).remedy("shorten it"));
        }
        let other = self.known.iter().find(|(_, at)| self.names[**at] == name);
        if let Some((other, column)) = other {
            if other.to_lowercase() == written.to_lowercase() {
                return Ok(*column);
            }
            let message = format!("the columns {other:?} and {written:?} are both named {name}");
            return Err(DataError::new(place, message).remedy("rename one of them"));
        }
        if self.names.len() == MAX_COLUMNS {
            let message = format!("there are more than {MAX_COLUMNS} columns");
            return Err(DataError::new(place, message)
                .remedy("put what belongs together into one nested value"));
        }
        self.known.insert(written.to_owned(), self.names.len());
        self.names.push(name);
        Ok(self.names.len() - 1)
    }

    /// Gives a row of one value for each column, in the order of the columns.
    pub(crate) fn values(
        &mut self,
        place: FilePlace,
        values: &[FieldValue<'_>],
    ) -> Result<(), ReadError> {
        self.count += 1;
        (self.each)(&Row {
            place,
            names: &self.names,
            values,
        })
        .map_err(ReadError::from)
    }

    /// Gives a row of named values.
    pub(crate) fn named(
        &mut self,
        place: FilePlace,
        fields: Vec<(String, FieldValue<'_>)>,
    ) -> Result<(), ReadError> {
        let mut values = vec![FieldValue::Null; self.names.len()];
        let mut is_given = vec![false; self.names.len()];
        for (written, value) in fields {
            if value.has_nul() {
                return Err(nul(place, &written).into());
            }
            let column = self.column(&written, place)?;
            if column >= values.len() {
                values.resize(column + 1, FieldValue::Null);
                is_given.resize(column + 1, false);
            }
            if std::mem::replace(&mut is_given[column], true) {
                let message = format!("{written:?} is given twice");
                return Err(DataError::new(place, message)
                    .remedy("take one of them out")
                    .into());
            }
            values[column] = value;
        }
        self.values(place, &values)
    }
}

/// A text with a character that no database keeps.
pub(crate) fn nul(place: FilePlace, name: &str) -> DataError {
    DataError::new(
        place,
        format!("the value of {name:?} has a character of code zero"),
    )
    .remedy("take it out: a database keeps no such text")
}

/// A value that is nested too deep.
pub(crate) fn too_deep(place: FilePlace) -> DataError {
    DataError::new(
        place,
        format!("values are nested more than {MAX_DEPTH} deep"),
    )
    .remedy("make the file flatter")
}
