//! The bytes of a file: lines are counted, each row has a limit, and all of it is hashed.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use twox_hash::XxHash3_128;

use crate::MAX_ROW;
use crate::error::{DataError, FilePlace, ReadError};

/// The size of the buffer in bytes.
const BUFFER: usize = 256 << 10;

/// The message of the error that ends a row without an end.
const TOO_LARGE: &str = "a row is larger than a row may be";

/// A file as it is read.
pub(crate) struct Source<R> {
    input: BufReader<Hashed<R>>,
    /// The number of the current line, from 1.
    line: u64,
    /// Bytes of the current line that were consumed.
    column: u64,
    /// Bytes since the row began.
    row: Rc<Cell<u64>>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(
                BUFFER,
                Hashed {
                    input,
                    hash: XxHash3_128::new(),
                },
            ),
            line: 1,
            column: 0,
            row: Rc::default(),
        }
    }

    /// Skips the mark of UTF-8 at the beginning; other marks are errors.
    pub(crate) fn skip_mark(&mut self) -> Result<(), ReadError> {
        let start = self.input.fill_buf().map_err(|error| failed(&error))?;
        if start.starts_with(b"\xef\xbb\xbf") {
            self.input.consume(3);
        } else if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
            let message = "the file is UTF-16";
            return Err(DataError::new(FilePlace::line(1), message)
                .remedy("save it as UTF-8")
                .into());
        }
        Ok(())
    }

    /// A new row begins here.
    pub(crate) fn begin_row(&mut self) {
        self.row.set(0);
    }

    /// The bytes of the row so far, for a reader that holds the source.
    pub(crate) fn row_bytes(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.row)
    }

    /// The place up to which bytes were consumed.
    pub(crate) fn place(&self) -> FilePlace {
        FilePlace::at(self.line, self.column + 1)
    }

    /// The whole file as text.
    pub(crate) fn text(&mut self) -> Result<String, ReadError> {
        let mut bytes = Vec::new();
        let read = self
            .input
            .by_ref()
            .take(MAX_ROW + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MAX_ROW {
            let message = format!("the file has more than {} MiB", MAX_ROW >> 20);
            return Err(DataError::new(FilePlace::default(), message)
                .remedy("use CSV, NDJSON or a JSON array, which are read in pieces")
                .into());
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            let text = str::from_utf8(&bytes[..valid]).unwrap_or_default();
            not_utf8(FilePlace::in_text(text, valid)).into()
        })
    }

    /// Reads what is left, and gives the hash of the whole file.
    pub(crate) fn finish(mut self) -> Result<u128, ReadError> {
        loop {
            let length = self.input.fill_buf().map_err(|error| failed(&error))?.len();
            if length == 0 {
                return Ok(self.input.get_ref().hash.finish_128());
            }
            self.input.consume(length);
        }
    }

    /// Skips white space; gives the next byte without consuming it.
    pub(crate) fn first_byte(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            let bytes = self.fill_buf().map_err(|error| failed(&error))?;
            let blank = bytes
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            if bytes.is_empty() {
                return Ok(None);
            }
            let next = bytes.get(blank).copied();
            self.consume(blank);
            self.row.set(0);
            if next.is_some() {
                return Ok(next);
            }
        }
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.row.get() > MAX_ROW {
            return Err(io::Error::other(TOO_LARGE));
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        let buffer = self.input.buffer();
        let taken = &buffer[..amount.min(buffer.len())];
        self.line += memchr::memchr_iter(b'\n', taken).count() as u64;
        self.column = match memchr::memrchr(b'\n', taken) {
            Some(last) => (taken.len() - last - 1) as u64,
            None => self.column + taken.len() as u64,
        };
        self.row.set(self.row.get() + taken.len() as u64);
        self.input.consume(amount);
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        self.consume(length);
        Ok(length)
    }
}

struct Hashed<R> {
    input: R,
    hash: XxHash3_128,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(out)?;
        self.hash.write(&out[..length]);
        Ok(length)
    }
}

/// A file that cannot be read on.
pub(crate) fn failed(error: &io::Error) -> DataError {
    if is_too_large(error) {
        too_large(FilePlace::default())
    } else {
        DataError::new(
            FilePlace::default(),
            format!("the file cannot be read: {error}"),
        )
    }
}

/// True if a row has no end within its limit.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.to_string() == TOO_LARGE
}

/// A row without an end.
pub(crate) fn too_large(place: FilePlace) -> DataError {
    DataError::new(place, format!("a row has more than {} MiB", MAX_ROW >> 20))
        .remedy("look for a quote or a bracket that is never closed")
}

/// Bytes that are no UTF-8.
pub(crate) fn not_utf8(place: FilePlace) -> DataError {
    let remedy =
        "save it as UTF-8; spreadsheets call it \"CSV UTF-8\", and often write Windows-1252";
    DataError::new(place, "the file is not UTF-8").remedy(remedy)
}
