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
//! - `row`: columns and values; `name`: the names of columns; `infer`: types.

mod delimited;
mod error;
mod format;
mod infer;
mod json;
mod markdown;
mod name;
mod row;
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
pub use infer::{Inference, InferredColumn, Kind, begins_with_day};
pub use name::{MAX_NAME, table_name};
pub use row::{FieldValue, Row, Stop};

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

/// The line of a Markdown file where its front matter gives the value of a column, from 1; none if
/// it does not, and for other formats.
///
/// # Errors
/// None: a file that cannot be read has no such line.
pub fn field_line(format: Format, input: impl Read, column: &str) -> Option<u64> {
    if format != Format::Markdown {
        return None;
    }
    let mut source = Source::new(input);
    source.skip_mark().ok()?;
    markdown::field_line(&source.text().ok()?, column)
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

/// Reads a file to its end, and calls `each` with every row in order. `path` is that of the
/// file below the folder of its table, without the ending. For a Markdown file, or one that is one
/// object, it is the value of the column `slug`, and what is in front of the last `/` that of
/// `folder`, where the file does not give them itself.
///
/// # Errors
/// [`ReadError::Data`] if the file cannot be understood; [`ReadError::Stopped`] if `each` said so.
pub fn read(
    format: Format,
    input: impl Read,
    path: Option<&str>,
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), Stop>,
) -> Result<Digest, ReadError> {
    let mut source = Source::new(input);
    let mut rows = RowWriter::new(each);
    source.skip_mark()?;
    match format {
        Format::Csv => delimited::read(&mut source, b',', &mut rows),
        Format::Tsv => delimited::read(&mut source, b'\t', &mut rows),
        Format::Json => json::read(&mut source, path, &mut rows),
        Format::Ndjson => json::read_lines(&mut source, &mut rows),
        Format::Toml => toml_rows::read(&source.text()?, path, &mut rows),
        Format::Yaml => yaml::read(&source.text()?, path, &mut rows),
        Format::Xml => xml::read(&mut source, &mut rows),
        Format::Markdown => markdown::read(&source.text()?, path, &mut rows),
    }?;
    Ok(Digest {
        hash: source.finish()?,
        rows: rows.count(),
    })
}
