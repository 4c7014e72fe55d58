//! The pieces of a stream, and rows of them that are sent together.

use std::fmt::{self, Write};
use std::time::Duration;

use base_clock::Deadline;
use bytes::Bytes;
use millpond_http::BodyCut;

/// Pieces that are made in a row: up to this length.
pub(super) const ROW: usize = 16 << 10;
/// A piece of this length is sent as it is; smaller ones are copied together.
const LARGE: usize = ROW / 4;

/// A piece of a [`Stream`](crate::Stream): bytes, a text, what a value [shows](Shown), two or three
/// of these together, an [`Option`], which may be nothing, or a [`Result`], whose error ends the
/// response so that the client sees that it is not complete.
pub trait Piece {
    #[doc(hidden)]
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut>;
}

/// A piece that is what a value displays, written where it is sent from: no text is made for it.
///
/// ```
/// use millpond::{Shown, Stream};
///
/// let lines = (0..1000).map(|n| (Shown(n * n), "\n"));
/// let stream = Stream::quick(lines);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<T>(pub T);

impl<T: fmt::Display> Piece for Shown<T> {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        write!(row, "{}", self.0).map_err(|_| BodyCut)
    }
}

impl Piece for Bytes {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        if row.is_empty() && self.len() >= LARGE {
            row.large = self;
        } else {
            row.add(&self);
        }
        Ok(())
    }
}

impl Piece for Vec<u8> {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        if row.is_empty() && self.len() >= LARGE {
            row.large = self.into();
        } else {
            row.add(&self);
        }
        Ok(())
    }
}

impl Piece for String {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        self.into_bytes().add_to(row)
    }
}

impl Piece for &'static str {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        if self.len() >= LARGE {
            return Bytes::from_static(self.as_bytes()).add_to(row);
        }
        row.add(self.as_bytes());
        Ok(())
    }
}

impl<A: Piece, B: Piece> Piece for (A, B) {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        self.0.add_to(row)?;
        self.1.add_to(row)
    }
}

impl<A: Piece, B: Piece, C: Piece> Piece for (A, B, C) {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        self.0.add_to(row)?;
        self.1.add_to(row)?;
        self.2.add_to(row)
    }
}

impl<T: Piece> Piece for Option<T> {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        self.map_or(Ok(()), |piece| piece.add_to(row))
    }
}

impl<T: Piece, E> Piece for Result<T, E> {
    fn add_to(self, row: &mut PieceRow) -> Result<(), BodyCut> {
        self.map_err(|_| BodyCut)?.add_to(row)
    }
}

/// Pieces that were copied together, or one that is large.
#[derive(Default)]
pub struct PieceRow {
    bytes: Vec<u8>,
    large: Bytes,
}

impl PieceRow {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.large.is_empty()
    }

    fn add(&mut self, bytes: &[u8]) {
        if !self.large.is_empty() {
            self.bytes = std::mem::take(&mut self.large).into();
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn is_full(&self) -> bool {
        !self.large.is_empty() || self.bytes.len() >= ROW
    }

    fn into_bytes(self) -> Bytes {
        if self.large.is_empty() {
            self.bytes.into()
        } else {
            self.large
        }
    }
}

impl Write for PieceRow {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// Text behind a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    More,
    End,
    Cut,
}

/// An iterator of pieces. One call makes a row, so that pieces need none of their own.
pub(super) trait Pieces: Send {
    /// The next row: about [`ROW`] bytes, unless the pieces end or have taken longer than `time`.
    fn next_row(&mut self, time: Option<Duration>) -> (Bytes, After);
}

impl<I: Iterator<Item: Piece> + Send> Pieces for I {
    fn next_row(&mut self, time: Option<Duration>) -> (Bytes, After) {
        let deadline = time.map(Deadline::after);
        let mut row = PieceRow::default();
        let after = loop {
            match self.next().map(|piece| piece.add_to(&mut row)) {
                Some(Ok(())) => {}
                Some(Err(BodyCut)) => break After::Cut,
                None => break After::End,
            }
            if row.is_full() || deadline.is_some_and(Deadline::is_past) {
                break After::More;
            }
        };
        (row.into_bytes(), after)
    }
}
