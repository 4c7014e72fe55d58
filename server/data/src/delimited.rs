//! CSV and TSV: a line of names, then a row a line. Quotes as RFC 4180 has them.

use std::borrow::Cow;
use std::io::Read;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{FieldValue, RowWriter, nul};
use crate::source::{Source, failed, is_too_large, not_utf8, too_large};

/// Bytes that are read after the file: a record of its own, unless a quote is open.
const TAIL: &[u8] = b"\n\0\n";

pub(crate) fn read<R: Read>(
    source: &mut Source<R>,
    delimiter: u8,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    source.then(TAIL);
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(64 << 10)
        .from_reader(&mut *source);
    let mut record = ByteRecord::new();
    if !next(&mut reader, &mut record)? {
        return Ok(());
    }
    let place = place(&record, 0);
    let names = text(&record, 0)?;
    let mut columns = Vec::with_capacity(record.len());
    for (index, name) in fields(names, &record).enumerate() {
        if name.trim().is_empty() {
            let message = format!("the name of column {} is empty", index + 1);
            return Err(DataError::new(place, message)
                .remedy("the first line names the columns: give each of them a name")
                .into());
        }
        let column = rows.column(name, place)?;
        if columns.contains(&column) {
            let message = format!("the column {name:?} is there twice");
            return Err(DataError::new(place, message)
                .remedy("rename one of them")
                .into());
        }
        columns.push(column);
    }
    // After CR LF the reader stands between the two, so it counts the line with the next record.
    let inner = memchr::memchr_iter(b'\n', record.as_slice()).count() as u64;
    let late = u64::from(reader.position().line() == 1 + inner);
    while next(&mut reader, &mut record)? {
        row(&record, late, columns.len(), rows)?;
    }
    Ok(())
}

fn row(
    record: &ByteRecord,
    late: u64,
    columns: usize,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let place = place(record, late);
    if record.len() != columns {
        let remedy = if record.len() > columns {
            "a field with the separator in it stands in quotes: \"a, b\""
        } else {
            "give each column a field, empty if it has no value"
        };
        let message = format!(
            "the row has {} fields, and there are {columns} columns",
            record.len()
        );
        return Err(DataError::new(place, message).remedy(remedy).into());
    }
    let text = text(record, late)?;
    let value = |field| match field {
        "" => FieldValue::Null,
        field => FieldValue::Plain(Cow::Borrowed(field)),
    };
    let values: Vec<FieldValue<'_>> = fields(text, record).map(value).collect();
    rows.values(place, &values)
}

/// The next record; false at the end of the file.
fn next<R: Read>(
    reader: &mut Reader<&mut Source<R>>,
    record: &mut ByteRecord,
) -> Result<bool, ReadError> {
    reader.get_mut().begin_row();
    let begun = reader.position().line();
    let more = reader.read_byte_record(record).map_err(|error| {
        ReadError::Data(match error.into_kind() {
            ErrorKind::Io(error) if is_too_large(&error) => too_large(FilePlace::line(begun)),
            ErrorKind::Io(error) => failed(&error),
            _ => DataError::new(FilePlace::line(begun), "the row cannot be read"),
        })
    })?;
    // A line of the file may look as the tail does.
    let is_over = reader.position().byte() >= reader.get_ref().given() + TAIL.len() as u64;
    if !more || (is_over && record.as_slice() == b"\0") {
        return Ok(false);
    }
    if record.as_slice().ends_with(b"\n\0\n") || record.as_slice().ends_with(b"\n\0") {
        return Err(
            DataError::new(place(record, 0), "a quote is opened here and never closed")
                .remedy("close it; a quote within quotes is written twice: \"\"")
                .into(),
        );
    }
    Ok(true)
}

fn place(record: &ByteRecord, late: u64) -> FilePlace {
    FilePlace::line(record.position().map_or(1, csv::Position::line) + late)
}

/// The fields of a record without separators.
fn text(record: &ByteRecord, late: u64) -> Result<&str, ReadError> {
    let bytes = record.as_slice();
    let Ok(text) = str::from_utf8(bytes) else {
        return Err(not_utf8(place(record, late)).into());
    };
    if memchr::memchr(0, bytes).is_some() {
        let field = record.iter().position(|field| field.contains(&0));
        let name = format!("column {}", field.unwrap_or(0) + 1);
        return Err(nul(place(record, late), &name).into());
    }
    // A boundary of fields within a character: each half is no UTF-8.
    let mut end = 0;
    for field in record {
        end += field.len();
        if !text.is_char_boundary(end) {
            return Err(not_utf8(place(record, late)).into());
        }
    }
    Ok(text)
}

fn fields<'a>(text: &'a str, record: &'a ByteRecord) -> impl Iterator<Item = &'a str> {
    (0..record.len()).map(move |index| {
        let range = record.range(index).unwrap_or_default();
        text.get(range).unwrap_or_default()
    })
}
