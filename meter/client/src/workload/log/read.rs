//! A log, read from its first line to its last.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::LogError;
use super::line::{Lines, LogLine};

/// Counts of the lines of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogLines {
    /// All lines.
    pub all: u64,
    /// Lines that are in no known format.
    pub damaged: u64,
    /// The first of those, from 1.
    pub first_damaged: Option<u64>,
    /// Lines without a request that can be repeated: the client sent no HTTP, or requested no path.
    pub no_request: u64,
}

/// Calls `each` with the valid lines of a log. A file whose name ends in `.gz` is decompressed.
pub(super) fn read(
    path: &Path,
    mut each: impl FnMut(LogLine<'_>) -> Result<(), LogError>,
) -> Result<LogLines, LogError> {
    let cannot =
        |source: std::io::Error| LogError(format!("cannot read {}: {source}", path.display()));
    let file = BufReader::with_capacity(1 << 16, File::open(path).map_err(cannot)?);
    let mut input: Box<dyn BufRead> = if path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"))
    {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    };
    let (mut lines, mut found) = (Lines::default(), LogLines::default());
    while let Some(line) = lines.next(&mut *input).map_err(cannot)? {
        found.all += 1;
        match line {
            Some(line) => {
                found.no_request += u64::from(line.request.is_none());
                each(line)?;
            }
            None => {
                found.damaged += 1;
                found.first_damaged.get_or_insert(found.all);
            }
        }
    }
    match found.first_damaged {
        Some(line) if found.damaged * 2 >= found.all => Err(LogError(format!(
            "{}:{line}: not in the common or combined log format, as {} of {} lines",
            path.display(),
            found.damaged,
            found.all
        ))),
        _ => Ok(found),
    }
}
