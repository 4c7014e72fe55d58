//! CSV and TSV: a line of names, then a row a line. Quotes as RFC 4180 has them.
//!
//! A CSV file is divided by commas, semicolons or tabs: by what a line `sep=;` says, else by the
//! one that is most often in the line of names.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{FieldValue, RowWriter, nul};
use crate::source::{Source, failed, is_too_large, not_utf8, too_large};

/// Signs that may stand between the fields of a CSV file; of two that are there as often, the
/// first.
const SEPARATORS: [u8; 3] = *b",;\t";

/// Reads the rows; gives the separator. A TSV file has only tabs, and its quotes count at the
/// beginning of a field alone.
pub(crate) fn read<R: Read>(
    source: &mut Source<R>,
    is_tsv: bool,
    rows: &mut RowWriter<'_>,
) -> Result<u8, ReadError> {
    let mut lines = Lines::new(source, is_tsv)?;
    if !lines.next()? {
        return Ok(lines.separator);
    }
    let place = lines.place();
    let mut columns = Vec::new();
    for (index, name) in lines.fields()?.iter().enumerate() {
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
    while lines.next()? {
        row(&lines, columns.len(), rows)?;
    }
    Ok(lines.separator)
}

fn row<R: Read>(
    lines: &Lines<'_, R>,
    columns: usize,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let fields = lines.fields()?;
    if fields.len() != columns {
        let remedy = if fields.len() > columns {
            "a field with the separator in it stands in quotes: \"a, b\""
        } else {
            "give each column a field, empty if it has no value"
        };
        let message = format!(
            "the row has {} fields, and there are {columns} columns",
            fields.len()
        );
        return Err(DataError::new(lines.place(), message).remedy(remedy).into());
    }
    let values = fields.into_iter().map(|field| match field.is_empty() {
        true => FieldValue::Null,
        false => FieldValue::Plain(field),
    });
    let values: Vec<FieldValue<'_>> = values.collect();
    rows.values(lines.place(), &values)
}

/// The records of a file: lines, or more of them where a quote is open.
struct Lines<'s, R> {
    source: &'s mut Source<R>,
    separator: u8,
    is_tsv: bool,
    /// The sign at the end of a line: old programs write a CR alone.
    end: u8,
    /// The record without the sign at its end.
    record: Vec<u8>,
    /// The bytes of the record that were looked at for quotes, whether one is open behind them, and
    /// the last quote that closes a field.
    seen: usize,
    is_open: bool,
    closed: Option<usize>,
    /// The number of the record's first line, and of the line behind it.
    line: u64,
    following: u64,
}

impl<'s, R: Read> Lines<'s, R> {
    fn new(source: &'s mut Source<R>, is_tsv: bool) -> Result<Self, ReadError> {
        let start = source.fill_buf().map_err(|error| failed(&error))?;
        let mut is_quoted = false;
        let ends = |byte: &u8| {
            is_quoted ^= *byte == b'"';
            !is_quoted && matches!(byte, b'\r' | b'\n')
        };
        let end = match start.iter().position(ends) {
            Some(at) if start[at] == b'\r' && start.get(at + 1) != Some(&b'\n') => b'\r',
            _ => b'\n',
        };
        let mut lines = Self {
            source,
            separator: b'\t',
            is_tsv,
            end,
            record: Vec::new(),
            seen: 0,
            is_open: false,
            closed: None,
            line: 0,
            following: 1,
        };
        let first = lines.first_line()?;
        let named = first.strip_prefix(b"sep=");
        lines.separator = match named {
            Some([separator]) => *separator,
            _ if is_tsv => b'\t',
            _ => most_frequent(&first),
        };
        if named.is_some_and(|named| named.len() == 1) {
            lines.line()?;
        }
        Ok(lines)
    }

    /// The first line, which is not consumed.
    fn first_line(&mut self) -> Result<Vec<u8>, ReadError> {
        let start = self.source.fill_buf().map_err(|error| failed(&error))?;
        let line = start.split(|byte| *byte == self.end).next();
        let line = line.unwrap_or_default();
        Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    }

    /// Appends the next line to the record; false at the end of the file.
    fn line(&mut self) -> Result<bool, ReadError> {
        let place = FilePlace::line(self.line.max(1));
        let read = self.source.read_until(self.end, &mut self.record);
        let length = read.map_err(|error| match is_too_large(&error) {
            true => too_large(place),
            false => failed(&error),
        })?;
        self.following += u64::from(length > 0);
        Ok(length > 0)
    }

    /// Goes to the next record that is not empty; false at the end of the file.
    fn next(&mut self) -> Result<bool, ReadError> {
        loop {
            self.record.clear();
            (self.seen, self.is_open, self.closed) = (0, false, None);
            self.source.begin_row();
            self.line = self.following;
            if !self.line()? {
                return Ok(false);
            }
            while self.opens() {
                if !self.line()? {
                    let message = "a quote is opened here and never closed";
                    return Err(DataError::new(self.place(), message)
                        .remedy("close it; a quote within quotes is written twice: \"\"")
                        .into());
                }
            }
            for sign in [self.end, b'\r'] {
                self.record.pop_if(|last| *last == sign);
            }
            if !self.record.is_empty() {
                return Ok(true);
            }
        }
    }

    /// True if the record ends within quotes.
    fn opens(&mut self) -> bool {
        let from = std::mem::replace(&mut self.seen, self.record.len());
        for at in memchr::memchr_iter(b'"', &self.record[from..]).map(|at| from + at) {
            let before = at.checked_sub(1);
            let begins = before.is_none_or(|before| self.record[before] == self.separator);
            // A quote behind a closing one is the second half of a quote within the field.
            let reopens = before.is_some() && before == self.closed;
            if self.is_open {
                self.closed = Some(at);
            }
            self.is_open = !self.is_open && (begins || reopens);
        }
        self.is_open
    }

    fn place(&self) -> FilePlace {
        FilePlace::line(self.line)
    }

    /// The fields of the record.
    fn fields(&self) -> Result<Vec<Cow<'_, str>>, ReadError> {
        let Ok(record) = str::from_utf8(&self.record) else {
            return Err(not_utf8(self.place()).into());
        };
        let mut fields = Vec::new();
        let mut rest = Some(record);
        while let Some(text) = rest {
            let (field, behind) = self.field(text, record)?;
            if field.contains('\0') {
                let name = format!("column {}", fields.len() + 1);
                return Err(nul(self.place(), &name).into());
            }
            fields.push(field);
            rest = behind;
        }
        Ok(fields)
    }

    /// The first field of a text, and the text behind its separator.
    fn field<'t>(
        &self,
        text: &'t str,
        record: &str,
    ) -> Result<(Cow<'t, str>, Option<&'t str>), ReadError> {
        let separator = char::from(self.separator);
        let wrong = |at: usize, message: &str| {
            let before = &record.as_bytes()[..record.len() - text.len() + at];
            let lines = memchr::memchr_iter(self.end, before).count() as u64;
            DataError::new(FilePlace::line(self.line + lines), message)
                .remedy("a field with a quote in it stands in quotes, and the quote is written twice: \"12\"\" pipe\"")
        };
        let Some(quoted) = text.strip_prefix('"') else {
            let (field, behind) = match text.split_once(separator) {
                Some((field, behind)) => (field, Some(behind)),
                None => (text, None),
            };
            if let Some(at) = field.find('"').filter(|_| !self.is_tsv) {
                return Err(wrong(at, "there is a quote within a field without quotes").into());
            }
            if let Some(at) = field.find('\r') {
                return Err(
                    wrong(at, "there is a line break within a field without quotes").into(),
                );
            }
            return Ok((field.into(), behind));
        };
        let mut from = 0;
        while let Some(at) = quoted[from..].find('"').map(|at| from + at) {
            let behind = &quoted[at + 1..];
            if behind.starts_with('"') {
                from = at + 2;
                continue;
            }
            let field = match from {
                0 => Cow::Borrowed(&quoted[..at]),
                _ => Cow::Owned(quoted[..at].replace("\"\"", "\"")),
            };
            return match behind.strip_prefix(separator) {
                None if behind.is_empty() => Ok((field, None)),
                None => Err(wrong(at + 2, "there is text behind a closing quote").into()),
                behind => Ok((field, behind)),
            };
        }
        Err(wrong(0, "a quote is opened here and never closed").into())
    }
}

/// The separator that is most often in a line of names, without what is in quotes.
fn most_frequent(line: &[u8]) -> u8 {
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut is_quoted = false;
    for byte in line {
        is_quoted ^= *byte == b'"';
        if let Some(at) = SEPARATORS
            .iter()
            .position(|it| it == byte)
            .filter(|_| !is_quoted)
        {
            counts[at] += 1;
        }
    }
    let most = (0..SEPARATORS.len()).rev().max_by_key(|at| counts[*at]);
    SEPARATORS[most.unwrap_or(0)]
}
