//! A log, read from its first line to its last.

use std::path::Path;

use base_logs::{LogBlock, LogEntry, LogInput, LogParser};

use super::LogError;

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

/// Calls `each` with the valid lines of a log, which may be compressed.
pub(super) fn read(
    path: &Path,
    mut each: impl FnMut(LogEntry<'_>) -> Result<(), LogError>,
) -> Result<LogLines, LogError> {
    let cannot =
        |source: std::io::Error| LogError(format!("cannot read {}: {source}", path.display()));
    let mut input = LogInput::open(path).map_err(cannot)?;
    let (mut block, mut parser) = (LogBlock::default(), LogParser::default());
    let mut found = LogLines::default();
    while input.next_block(&mut block).map_err(cannot)? {
        for (number, line) in block.lines() {
            found.all += 1;
            match parser.parse(line) {
                Some(entry) => {
                    found.no_request += u64::from(entry.request().is_none());
                    each(entry)?;
                }
                None => {
                    found.damaged += 1;
                    found.first_damaged.get_or_insert(number);
                }
            }
        }
    }
    match found.first_damaged {
        Some(line) if found.damaged * 2 >= found.all => Err(LogError(format!(
            "{}:{line}: not in the common, combined or a JSON log format, as {} of {} lines",
            path.display(),
            found.damaged,
            found.all
        ))),
        _ => Ok(found),
    }
}
