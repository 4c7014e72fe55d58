//! Rows of a file on their way to their table: a few are held, more are kept in a file without a
//! name. So a file is read once, by its own thread, and takes no more memory than a small one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::data_file::RowSource;
use crate::{Error, Value};

/// The size of the buffer in bytes.
const BUFFER: usize = 256 << 10;

/// Rows that were read and not yet applied.
pub struct StoredRows {
    /// Empty once there is a file.
    held: Vec<Vec<Value>>,
    kept: Option<BufWriter<File>>,
    count: u64,
    bytes: usize,
    limits: StoredLimits,
    refused: RefusedRow,
    stopped: Arc<AtomicBool>,
}

/// How much is held in memory, and where the rest goes.
#[derive(Clone, Copy)]
pub struct StoredLimits {
    /// Rows.
    pub rows: usize,
    /// Bytes of their values.
    pub bytes: usize,
    /// Makes an empty file, which has no name.
    pub file: fn() -> io::Result<File>,
}

/// The row that the database has refused.
#[derive(Clone, Debug, Default)]
pub struct RefusedRow(Arc<AtomicU64>);

impl RefusedRow {
    /// Returns its number among the rows of its file, from 1, if a row was refused.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let number = self.0.load(Ordering::Relaxed);
        (number > 0).then_some(number)
    }
}

impl StoredRows {
    /// Makes an empty list. Once `stopped` is set, its rows end with an error.
    #[must_use]
    pub fn new(limits: StoredLimits, stopped: Arc<AtomicBool>) -> Self {
        Self {
            held: Vec::new(),
            kept: None,
            count: 0,
            bytes: 0,
            limits,
            refused: RefusedRow::default(),
            stopped,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There is no room on the disk.
    pub fn push(&mut self, values: &[Value]) -> io::Result<()> {
        self.count += 1;
        let sizes = values.iter().map(|it| size_of::<Value>() + it.heap_size());
        self.bytes += sizes.sum::<usize>();
        if let Some(kept) = &mut self.kept {
            return write_row(kept, values);
        }
        self.held.push(values.to_vec());
        if self.held.len() <= self.limits.rows && self.bytes <= self.limits.bytes {
            return Ok(());
        }
        let mut kept = BufWriter::with_capacity(BUFFER, (self.limits.file)()?);
        for values in std::mem::take(&mut self.held) {
            write_row(&mut kept, &values)?;
        }
        self.kept = Some(kept);
        Ok(())
    }

    /// The number of rows.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the rows and the bytes that are held; the limits for rows in a file.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        match self.kept {
            None => (self.held.len(), self.bytes),
            Some(_) => (self.limits.rows, self.limits.bytes),
        }
    }

    /// Says later which of the rows was refused.
    #[must_use]
    pub fn refused(&self) -> RefusedRow {
        self.refused.clone()
    }
}

impl RowSource for StoredRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        self.refused.0.store(0, Ordering::Relaxed);
        let mut number = 0;
        let mut give = |values: &[Value]| {
            number += 1;
            if self.stopped.load(Ordering::Relaxed) {
                return Err(Error::unavailable("the site stops"));
            }
            each(values).inspect_err(|_| self.refused.0.store(number, Ordering::Relaxed))
        };
        let Some(kept) = &mut self.kept else {
            return self.held.iter().try_for_each(|values| give(values));
        };
        let lost = |error: io::Error| Error::unavailable(format!("the rows are lost: {error}"));
        kept.flush().map_err(lost)?;
        kept.get_ref().rewind().map_err(lost)?;
        let mut input = BufReader::with_capacity(BUFFER, kept.get_ref());
        let mut values = Vec::new();
        for _ in 0..self.count {
            read_row(&mut input, &mut values).map_err(lost)?;
            give(&values)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut impl Write, values: &[Value]) -> io::Result<()> {
    out.write_all(&(values.len() as u64).to_le_bytes())?;
    values.iter().try_for_each(|value| write_value(out, value))
}

fn write_value(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let mut put = |kind: u8, bytes: &[u8]| {
        out.write_all(&[kind])?;
        out.write_all(bytes)
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Integer(integer) => put(1, &integer.to_le_bytes()),
        Value::Real(real) => put(2, &real.to_le_bytes()),
        Value::Boolean(truth) => put(3, &[u8::from(*truth)]),
        Value::Text(text) => write_bytes(out, 4, text.as_bytes()),
        Value::Json(json) => write_bytes(out, 5, json.to_string().as_bytes()),
        Value::Blob(blob) => write_bytes(out, 6, blob),
    }
}

fn write_bytes(out: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[kind])?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

fn read_row(input: &mut impl Read, values: &mut Vec<Value>) -> io::Result<()> {
    values.clear();
    let width = u64::from_le_bytes(read_array(input)?);
    for _ in 0..width {
        values.push(read_value(input)?);
    }
    Ok(())
}

fn read_value(input: &mut impl Read) -> io::Result<Value> {
    let [kind] = read_array(input)?;
    Ok(match kind {
        0 => Value::Null,
        1 => Value::Integer(i64::from_le_bytes(read_array(input)?)),
        2 => Value::Real(f64::from_le_bytes(read_array(input)?)),
        3 => Value::Boolean(read_array(input)? == [1]),
        4 => Value::Text(Arc::from(read_text(input)?)),
        5 => Value::Json(Arc::new(serde_json::from_str(&read_text(input)?)?)),
        _ => Value::Blob(Arc::from(read_bytes(input)?)),
    })
}

fn read_array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = u64::from_le_bytes(read_array(input)?);
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_text(input: &mut impl Read) -> io::Result<String> {
    String::from_utf8(read_bytes(input)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(rows: usize) -> StoredRows {
        let limits = StoredLimits {
            rows,
            bytes: 1 << 20,
            file: tempfile::tempfile,
        };
        StoredRows::new(limits, Arc::default())
    }

    fn row(number: i64) -> Vec<Value> {
        vec![
            number.into(),
            Value::Null,
            Value::Real(0.5),
            true.into(),
            "é\n".into(),
            serde_json::json!({"a": [1, null]}).into(),
            Value::Blob(Arc::from([0, 255])),
        ]
    }

    #[test]
    fn rows_come_back_as_they_went_in_from_memory_and_from_a_file() {
        for limit in [0, 2, 9] {
            let mut rows = stored(limit);
            (1..=3).for_each(|number| rows.push(&row(number)).unwrap());
            // They may be asked for once more.
            for _ in 0..2 {
                let mut seen = Vec::new();
                let done = rows.rows(&mut |values| {
                    seen.push(values.to_vec());
                    Ok(())
                });
                done.unwrap();
                assert_eq!(seen, [row(1), row(2), row(3)]);
            }
            assert_eq!(rows.size().0, limit.min(3));
        }
    }

    #[test]
    fn the_row_that_is_refused_is_known_by_its_number() {
        for limit in [0, 9] {
            let mut rows = stored(limit);
            (1..=3).for_each(|number| rows.push(&row(number)).unwrap());
            let refused = rows.refused();
            let second = Value::from(2_i64);
            let outcome = rows.rows(&mut |values| match values[0] == second {
                true => Err(Error::unavailable("no")),
                false => Ok(()),
            });
            assert!(outcome.is_err());
            assert_eq!(refused.number(), Some(2));
            rows.rows(&mut |_| Ok(())).unwrap();
            assert_eq!(refused.number(), None);
        }
    }

    #[test]
    fn rows_end_when_the_site_stops() {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut rows = StoredRows::new(stored(9).limits, Arc::clone(&stopped));
        (1..=3).for_each(|number| rows.push(&row(number)).unwrap());
        let mut count = 0;
        let outcome = rows.rows(&mut |_| {
            count += 1;
            stopped.store(true, Ordering::Relaxed);
            Ok(())
        });
        assert!(outcome.is_err());
        assert_eq!((count, rows.refused().number()), (1, None));
    }
}
