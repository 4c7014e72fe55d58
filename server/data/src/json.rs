//! JSON: an array of objects is rows, one object is one row. NDJSON: an object on each line.

use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, Read};

use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Error, Map, Number, Value as Json};

use crate::MAX_DEPTH;
use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{RowWriter, too_deep};
use crate::row_name::{RowName, with_name};
use crate::source::{Source, failed, is_too_large, not_utf8, too_large};

pub(crate) fn read<R: Read>(
    source: &mut Source<R>,
    name: Option<&RowName>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let first = source.first_byte()?;
    let start = source.place();
    match first {
        Some(b'[') => {
            let mut stopped = None;
            let row_bytes = source.row_bytes();
            let mut json = Deserializer::from_reader(&mut *source);
            let outcome = json
                .deserialize_seq(RowsVisitor {
                    rows,
                    row_bytes: &row_bytes,
                    stopped: &mut stopped,
                })
                .and_then(|()| json.end());
            match (outcome, stopped) {
                (_, Some(stopped)) => Err(stopped),
                (Ok(()), None) => Ok(()),
                (Err(error), None) => Err(place_error(&error, start).into()),
            }
        }
        Some(b'{') => {
            let mut json = Deserializer::from_reader(&mut *source);
            let fields = FieldsSeed.deserialize(&mut json);
            let fields = fields.and_then(|fields| json.end().map(|()| fields));
            let fields = fields.map_err(|error| place_error(&error, start))?;
            rows.named(
                FilePlace::line(start.line.unwrap_or(1)),
                with_name(name, fields),
            )
        }
        _ => Err(DataError::new(
            start,
            "the file is neither an array of objects nor an object",
        )
        .remedy("write [{\"name\": \"value\"}]")
        .into()),
    }
}

pub(crate) fn read_lines<R: Read>(
    source: &mut Source<R>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let place = FilePlace::line(number);
        source.begin_row();
        match source.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_too_large(&error) => return Err(too_large(place).into()),
            Err(error) => return Err(failed(&error).into()),
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if str::from_utf8(&line).is_err() {
            return Err(not_utf8(place).into());
        }
        let mut json = Deserializer::from_slice(line.trim_ascii_end());
        let fields = FieldsSeed
            .deserialize(&mut json)
            .and_then(|fields| json.end().map(|()| fields))
            .map_err(|error| place_error(&error, FilePlace::at(number, 1)))?;
        rows.named(place, with_name(None, fields))?;
    }
}

/// An error with its place in the file, in which the JSON begins at `start`.
fn place_error(error: &Error, start: FilePlace) -> DataError {
    let line = error.line().max(1) as u64;
    let first = start.line.unwrap_or(1);
    let column = error.column() as u64
        + match line {
            1 => start.column.unwrap_or(1) - 1,
            _ => 0,
        };
    let place = FilePlace::at(first + line - 1, column);
    let said = error.to_string();
    if error.is_io() {
        return if said.contains("larger than a row") {
            too_large(place)
        } else {
            DataError::new(place, format!("the file cannot be read: {said}"))
        };
    }
    let sentence = said
        .rsplit_once(" at line ")
        .map_or(&*said, |(said, _)| said);
    if sentence.contains("recursion limit") || sentence.contains(DEEP) {
        return too_deep(place);
    }
    if sentence.ends_with(TWICE) {
        return DataError::new(place, sentence.to_owned()).remedy("take one of them out");
    }
    if sentence.ends_with(LARGE) || sentence.ends_with(ROUNDED) {
        return DataError::new(place, sentence.to_owned()).remedy("put it in quotes");
    }
    let (message, remedy) = plain_words(sentence);
    DataError::new(place, message).remedy(remedy)
}

/// A fault of JSON in words for the author of the file, and a remedy.
fn plain_words(said: &str) -> (String, &'static str) {
    const ROW: &str = "each row is an object: {\"name\": \"value\"}";
    const WORDS: [(&str, &str, &str); 12] = [
        ("expected an object", "a row is no object", ROW),
        (
            "unicode",
            "the file is no JSON: it is not UTF-8",
            "save it as UTF-8",
        ),
        (
            "trailing comma",
            "a comma stands behind the last value",
            "take the comma out",
        ),
        (
            "trailing characters",
            "there is more behind the end of the value",
            ROW,
        ),
        ("key must be a string", "a name stands without quotes", ROW),
        ("expected `:`", "there is no : behind a name", ROW),
        (
            "expected `,`",
            "there is no , between two values",
            "put a comma between them",
        ),
        (
            "EOF",
            "the file ends within a value",
            "look for a bracket or quote that is never closed",
        ),
        (
            "number out of range",
            "a number is too large for any database",
            "put it in quotes",
        ),
        (
            "number",
            "this is no number of JSON",
            "put it in quotes, or see https://www.json.org",
        ),
        (
            "escape",
            "a \\ in a text stands before no sign that it may",
            "write \\\\ for a \\ itself",
        ),
        (
            "control character",
            "a text has a line break or a tab in it",
            "write \\n or \\t",
        ),
    ];
    let known = WORDS.iter().find(|(sign, ..)| said.contains(sign));
    let (message, remedy) = known.map_or(
        (
            "a value is expected here: a text in quotes, a number, true, false, null, [ or {",
            ROW,
        ),
        |(_, message, remedy)| (*message, *remedy),
    );
    (message.to_owned(), remedy)
}

/// Ends the message about a name that is given twice.
const TWICE: &str = " is given twice";
/// Ends the message about an integer that no database keeps.
const LARGE: &str = " has more than 64 bits";
/// Ends the message about a number within a value of which digits may be lost.
const ROUNDED: &str = " is a number whose last digits are lost";
/// Up to this number a double has each integer: 2 to the power of 53.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Marks a value that is nested too deep.
const DEEP: &str = "values are nested too deep";

/// The objects of an array, one after another.
struct RowsVisitor<'v, 'a> {
    rows: &'v mut RowWriter<'a>,
    row_bytes: &'v Cell<u64>,
    /// Why the rows end before the array.
    stopped: &'v mut Option<ReadError>,
}

impl<'de> Visitor<'de> for RowsVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(fields) = seq.next_element_seed(FieldsSeed)? {
            self.row_bytes.set(0);
            let place = self.rows.place();
            if let Err(stopped) = self.rows.named(place, with_name(None, fields)) {
                *self.stopped = Some(stopped);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// An object as a list of its members; no name twice.
struct FieldsSeed;

impl<'de> DeserializeSeed<'de> for FieldsSeed {
    type Value = Vec<(String, Json)>;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed {
    type Value = Vec<(String, Json)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields: Map<String, Json> = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(NestedSeed { depth: 1 })?;
            insert(&mut fields, name, value)?;
        }
        Ok(fields.into_iter().collect())
    }
}

fn insert<E: serde::de::Error>(
    map: &mut Map<String, Json>,
    name: String,
    value: Json,
) -> Result<(), E> {
    match map.entry(name) {
        serde_json::map::Entry::Vacant(free) => {
            free.insert(value);
            Ok(())
        }
        serde_json::map::Entry::Occupied(taken) => {
            Err(E::custom(format_args!("{:?}{TWICE}", taken.key())))
        }
    }
}

/// A value as it is, with a bound on its depth; no name twice.
#[derive(Clone, Copy)]
struct NestedSeed {
    depth: usize,
}

impl NestedSeed {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(DEEP));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for NestedSeed {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Json, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestedSeed {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Json, E> {
        match i64::try_from(number) {
            Ok(number) => Ok(number.into()),
            // JSON in JSON stays as it is.
            Err(_) if self.depth > 1 => Ok(number.into()),
            Err(_) => Err(E::custom(format_args!("{number}{LARGE}"))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Json, E> {
        // What is in a value stays as it is; how many digits the file has is not known here.
        if self.depth > 1 && number.abs() >= EXACT {
            return Err(E::custom(format_args!("{number}{ROUNDED}")));
        }
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(inner)? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(inner)?;
            insert(&mut object, name, value)?;
        }
        Ok(object.into())
    }
}
