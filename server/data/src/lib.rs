//! Files of data as rows: CSV, TSV, JSON, NDJSON, TOML, YAML, XML, and Markdown with front matter.
//!
//! This crate knows the formats, and which types the values of a column have in common. It must not
//! know SQL, HTTP, or how a file's changes are noticed.
//!
//! [`read`] gives the rows of a file one after another. CSV, TSV, JSON arrays, NDJSON and XML are
//! streamed: memory is bounded by [`MAX_ROW`], however long the file is. TOML, YAML, Markdown and a
//! single JSON object are held as a whole, at most [`MAX_ROW`] bytes. What cannot be read is a
//! [`DataError`] with the line, the cause and the remedy.
//!
//! - `source`: the bytes of a file, with lines, limits and a digest;
//! - `delimited`, `json`, `toml_rows`, `yaml`, `xml`, `markdown`: a format each;
//! - `row`: columns and values; `name`: the names of columns; `infer`: types;
//! - `row_name`: what a file's name says of its row;
//! - `moment`: dates and times, also those of databases and of requests.

mod delimited;
mod error;
mod format;
mod infer;
mod json;
mod markdown;
mod moment;
mod name;
mod row;
mod row_name;
mod source;
#[cfg(test)]
mod tests;
mod toml_rows;
mod xml;
mod yaml;

use std::io::{self, Read};

use twox_hash::XxHash3_128;

pub use error::{DataError, FilePlace, ReadError};
pub use format::Format;
pub use infer::{Inference, InferredColumn, Kind};
pub use moment::{Clock, Moment};
pub use name::{MAX_NAME, table_name};
pub use row::{FieldValue, Row, Stop};
pub use row_name::{NameParts, RowName};

use row::RowWriter;
use source::Source;

/// The largest size of one row in its file, in bytes; also of a file that is held as a whole.
pub const MAX_ROW: u64 = 16 << 20;
/// The largest number of columns of a file.
pub const MAX_COLUMNS: usize = 500;
/// The deepest nesting of values.
pub const MAX_DEPTH: usize = 64;

/// Summary of a file that was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// A hash of the content: 128 bits of xxh3. It detects edits, not forgeries.
    pub hash: u128,
    /// The number of rows.
    pub rows: u64,
    /// The sign between the fields of a CSV or TSV file.
    pub separator: Option<u8>,
}

/// The hash of a file as [`Digest::hash`] has it, without a look at its rows.
///
/// # Errors
/// The file cannot be read.
pub fn hash(input: impl Read) -> io::Result<u128> {
    let mut input = input;
    let mut hash = XxHash3_128::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(hash.finish_128()),
            Ok(length) => hash.write(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a text that a person writes, such as a template: UTF-8, with or without a byte order mark,
/// which is no part of the text.
///
/// # Errors
/// The file cannot be read, or is not UTF-8; with the place.
pub fn text(input: impl Read) -> Result<String, DataError> {
    let mut source = Source::new(input);
    let text = source.skip_mark().and_then(|()| source.text());
    text.map_err(|error| match error {
        ReadError::Data(error) => error,
        ReadError::Stopped => DataError::new(FilePlace::default(), "the reading was stopped"),
    })
}

/// The line of a Markdown file where its front matter gives the value of a column, from 1; none if
/// it does not, and for other formats.
///
/// # Errors
/// None: a file that cannot be read has no such line.
pub fn field_line(format: Format, input: impl Read, column: &str) -> Option<u64> {
    if format != Format::Markdown {
        return None;
    }
    markdown::field_line(&text(input).ok()?, column)
}

/// Returns the byte at which the body of a Markdown file begins: behind its front matter. The end
/// of the file if the front matter has no end.
///
/// ```
/// assert_eq!(millpond_data::body_start("---\ntitle: A\n---\n\nText"), 18);
/// assert_eq!(millpond_data::body_start("Text"), 0);
/// ```
#[must_use]
pub fn body_start(text: &str) -> usize {
    let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The body is the end of the text.
    text.len() - markdown::body(unmarked).map_or(0, str::len)
}

/// The hash of some bytes: 128 bits of xxh3, the same in every version.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// Reads a file to its end, and calls `each` with every row in order. `name` gives fields of a
/// Markdown file, or of one that is one object, where the file does not give them itself.
///
/// # Errors
/// [`ReadError::Data`] if the file cannot be understood; [`ReadError::Stopped`] if `each` said so.
pub fn read(
    format: Format,
    input: impl Read,
    name: Option<&RowName>,
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), Stop>,
) -> Result<Digest, ReadError> {
    let mut source = Source::new(input);
    let mut rows = RowWriter::new(each);
    source.skip_mark()?;
    let mut separator = None;
    match format {
        Format::Csv | Format::Tsv => {
            let found = delimited::read(&mut source, format == Format::Tsv, &mut rows);
            found.map(|found| separator = Some(found))
        }
        Format::Json => json::read(&mut source, name, &mut rows),
        Format::Ndjson => json::read_lines(&mut source, &mut rows),
        Format::Toml => toml_rows::read(&source.text()?, name, &mut rows),
        Format::Yaml => yaml::read(&source.text()?, name, &mut rows),
        Format::Xml => {
            let element = name.and_then(|name| name.element.as_deref());
            xml::read(&mut source, element, &mut rows)
        }
        Format::Markdown => markdown::read(&source.text()?, name, &mut rows),
    }?;
    Ok(Digest {
        hash: source.finish()?,
        rows: rows.count(),
        separator,
    })
}
