//! `-- until:` lines: the moments at which a page ends by itself.
//!
//! ```sql
//! -- until: performance.starts_at - 1h, offer.ends_at
//! ```

use super::bytes::{ColumnName, column};
use crate::{
    access::{DirectiveLine, LineFault},
    duration,
};

/// One of the columns of an `-- until:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntilLine {
    pub column: ColumnName,
    /// The seconds by which the page ends later than the column says.
    pub shift: i64,
    pub line: DirectiveLine,
}

const EXAMPLE: &str = "for example: -- until: performance.starts_at - 1h";

/// Reads what stands behind `-- until:`.
pub(super) fn until(rest: &str, line: &DirectiveLine) -> Result<Vec<UntilLine>, LineFault> {
    let parts = rest.split(',').map(str::trim);
    parts.map(|part| one(part, line)).collect()
}

fn one(part: &str, line: &DirectiveLine) -> Result<UntilLine, LineFault> {
    let fault = |word: &str, message: String| (word.to_owned(), message, EXAMPLE.to_owned());
    let end = part.find(|c: char| c.is_whitespace() || matches!(c, '+' | '-'));
    let (name, shift) = part.split_at(end.unwrap_or(part.len()));
    let Some(column) = column(name) else {
        return Err(fault(name, format!("`{name}` is no column of a query")));
    };
    let shift = match shift.trim() {
        "" => 0,
        shift => {
            let (sign, span) = match (shift.strip_prefix('-'), shift.strip_prefix('+')) {
                (Some(span), _) => (-1, span),
                (None, Some(span)) => (1, span),
                (None, None) => {
                    let message = format!("`{shift}` stands behind the column");
                    return Err(fault(shift, message));
                }
            };
            let span = duration::parse(span).map_err(|why| fault(span.trim(), why))?;
            let seconds = i64::try_from(span.as_secs()).ok();
            let seconds = seconds.filter(|_| span.subsec_nanos() == 0);
            let Some(seconds) = seconds else {
                let message = format!("`{shift}` is no whole number of seconds");
                return Err(fault(shift, message));
            };
            sign * seconds
        }
    };
    Ok(UntilLine {
        column,
        shift,
        line: line.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_shifted() {
        let read = |rest| {
            let lines = until(rest, &DirectiveLine::default())?;
            let shown = lines.into_iter().map(|line| {
                format!(
                    "{}.{} {}",
                    line.column.query, line.column.column, line.shift
                )
            });
            Ok::<_, LineFault>(shown.collect::<Vec<_>>().join("; "))
        };
        for (rest, expected) in [
            ("a.at", "a.at 0"),
            ("a.at - 1h", "a.at -3600"),
            ("a.at-15min,b.at + 2 d", "a.at -900; b.at 172800"),
        ] {
            assert_eq!(read(rest).as_deref(), Ok(expected), "{rest}");
        }
        for (rest, word) in [
            ("", ""),
            ("at", "at"),
            ("a.at,", ""),
            ("a.at 1h", "1h"),
            ("a.at - soon", "soon"),
            ("a.at - 10ms", "- 10ms"),
        ] {
            assert_eq!(read(rest).unwrap_err().0, word, "{rest}");
        }
    }
}
