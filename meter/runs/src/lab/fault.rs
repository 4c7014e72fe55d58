//! A mistake in an experiment, with its position in the file.

use std::fmt;
use std::ops::Range;

/// One mistake in an experiment, displayed as `LINE:COLUMN: sentence`, to be put after the name of
/// the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Message with the fault and the remedy.
    pub message: String,
}

impl Fault {
    /// The mistake at a place of `text`, in bytes.
    pub(super) fn at(text: &str, place: &Range<usize>, message: impl Into<String>) -> Self {
        // A position past the end or within a character is moved back to the last valid one.
        let end = (0..=place.start.min(text.len()))
            .rev()
            .find(|&end| text.is_char_boundary(end));
        let before = &text[..end.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let text = "a = 1\nä = 2\n";
        let fault = |place| Fault::at(text, &place, "x").to_string();
        assert_eq!(fault(0..1), "1:1: x");
        assert_eq!(fault(8..9), "2:2: x");
        assert_eq!(fault(7..8), "2:1: x");
        assert_eq!(fault(900..901), "3:1: x");
    }
}
