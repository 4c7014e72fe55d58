//! Bodies of iterators that are asked on the worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use bytes::Bytes;
use millpond_http::{BodyCut, BodySource, StreamedBody};

use super::BegunStream;
use super::row::{After, Pieces};

/// The body, whole if it ends within a row.
pub(super) fn begin(mut pieces: Box<dyn Pieces>) -> BegunStream {
    match next_row(&mut *pieces) {
        (bytes, After::End) => BegunStream::Whole(bytes),
        (_, After::Cut) => BegunStream::Failed,
        (first, After::More) => BegunStream::Streamed(StreamedBody::new(QuickPieces {
            pieces,
            first: Some(first),
            after: After::More,
        })),
    }
}

struct QuickPieces {
    pieces: Box<dyn Pieces>,
    /// Piece that was made when the response was begun.
    first: Option<Bytes>,
    after: After,
}

impl BodySource for QuickPieces {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.after == After::More {
            let (bytes, after) = next_row(&mut *self.pieces);
            self.after = after;
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(bytes)));
            }
        }
        Poll::Ready(match self.after {
            After::Cut => Some(Err(BodyCut)),
            After::More | After::End => None,
        })
    }
}

/// A panic cuts the body.
fn next_row(pieces: &mut dyn Pieces) -> (Bytes, After) {
    let row = catch_unwind(AssertUnwindSafe(|| pieces.next_row(None)));
    row.unwrap_or((Bytes::new(), After::Cut))
}
