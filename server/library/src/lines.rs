//! The lines of a body, each of them bounded.

use std::io::BufRead as _;

use crate::failure::Failure;
use crate::reading::BodyReader;

/// The lines of a body while it arrives, of [`BodyReader::lines_up_to`]. After an error there are
/// no more.
#[derive(Debug)]
pub struct BodyLines {
    body: BodyReader,
    /// Bytes that a line may have, without its end.
    limit: usize,
    /// The number of the line that was begun last, from 1.
    number: u64,
    is_over: bool,
}

impl BodyReader {
    /// The lines of the body, as texts without their ends (`\n` or `\r\n`). A line has at most
    /// `limit` bytes, and no more than about twice that is held, however long a line the client
    /// sends.
    ///
    /// The error of a line is a 400 that has the number of the line: it is longer, or it is not
    /// UTF-8. What the handler returns after a client has gone away is not sent.
    ///
    /// ```
    /// use millpond::{BodyReader, Failure, Request, Routes, reading};
    ///
    /// let mut routes = Routes::new();
    /// routes.post("/longest", reading(1 << 30, |_: &Request, body: BodyReader| {
    ///     let mut longest = 0;
    ///     for line in body.lines_up_to(1000) {
    ///         longest = longest.max(line?.len());
    ///     }
    ///     Ok::<_, Failure>(longest.to_string())
    /// }));
    /// ```
    #[must_use]
    pub fn lines_up_to(self, limit: usize) -> BodyLines {
        BodyLines {
            body: self,
            limit,
            number: 0,
            is_over: false,
        }
    }
}

impl BodyLines {
    /// The next line without its end; none at the end of the body.
    fn read(&mut self) -> Result<Option<String>, Failure> {
        self.number += 1;
        let mut line = Vec::new();
        loop {
            let piece = self.body.fill_buf();
            let piece = piece.map_err(|error| Failure::bad_request(error.to_string()))?;
            if piece.is_empty() {
                if line.is_empty() {
                    return Ok(None);
                }
                break;
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            // The carriage return of an end is no part of the line.
            if line.len() + part.len() > self.limit.saturating_add(1) {
                return Err(self.too_long());
            }
            line.extend_from_slice(part);
            let read = part.len() + usize::from(end.is_some());
            self.body.consume(read);
            if end.is_some() {
                line.pop_if(|last| *last == b'\r');
                break;
            }
        }
        if line.len() > self.limit {
            return Err(self.too_long());
        }
        let text = String::from_utf8(line);
        let number = self.number;
        text.map(Some)
            .map_err(|_| Failure::bad_request(format!("line {number} is not UTF-8")))
    }

    fn too_long(&self) -> Failure {
        let Self { limit, number, .. } = self;
        Failure::bad_request(format!("line {number} is longer than {limit} bytes"))
    }
}

impl Iterator for BodyLines {
    type Item = Result<String, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let line = self.read().transpose();
        self.is_over = !matches!(line, Some(Ok(_)));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &'static [u8], limit: usize) -> Vec<Result<String, String>> {
        let lines = BodyReader::whole(body.into()).lines_up_to(limit);
        lines
            .map(|line| line.map_err(|failure| failure.message().to_owned()))
            .collect()
    }

    #[test]
    fn lines_end_as_those_of_the_standard_library() {
        for body in ["", "\n", "a", "a\n", "a\n\nbc\r\n\r\n", "a\rb\n\rc", "a\r"] {
            let expected = std::io::BufRead::lines(body.as_bytes());
            let expected: Vec<_> = expected.map(|line| Ok(line.unwrap())).collect();
            assert_eq!(lines(body.as_bytes(), 10), expected, "{body:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_the_last() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(
            lines(b"abc\nabc\r\nabc", 3),
            [ok("abc"), ok("abc"), ok("abc")]
        );
        let long = Err("line 2 is longer than 3 bytes".to_owned());
        for body in [
            b"a\nabcd\nb".as_slice(),
            b"a\nabcd",
            b"a\nabc\r",
            b"a\nabcd\r\n",
        ] {
            assert_eq!(lines(body, 3), [ok("a"), long.clone()], "{body:?}");
        }
        let no_text = Err("line 1 is not UTF-8".to_owned());
        assert_eq!(lines(b"\xff\nb", 3), [no_text]);
    }
}
