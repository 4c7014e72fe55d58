//! Bodies of iterators that are asked on the worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use bytes::Bytes;
use millpond_http::{BodyCut, BodySource, StreamedBody};

use super::{BegunStream, Pieces, ROW};

/// A piece of this length is sent as it is; smaller ones are copied together.
const LARGE: usize = ROW / 4;

/// What comes behind some pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    More,
    End,
    Cut,
}

/// The body, whole if it ends within [`ROW`] bytes.
pub(super) fn begin(mut pieces: Pieces) -> BegunStream {
    match gather(&mut pieces) {
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
    pieces: Pieces,
    /// What was made when the response was begun.
    first: Option<Bytes>,
    after: After,
}

impl BodySource for QuickPieces {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.after == After::More {
            let (bytes, after) = gather(&mut self.pieces);
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

/// Pieces together, about [`ROW`] bytes of them unless they end. A panic cuts the body.
fn gather(pieces: &mut Pieces) -> (Bytes, After) {
    let gathered = catch_unwind(AssertUnwindSafe(|| {
        let mut bytes = Vec::new();
        loop {
            match pieces.next() {
                Some(Ok(piece)) if bytes.is_empty() && piece.len() >= LARGE => {
                    return (piece, After::More);
                }
                Some(Ok(piece)) => bytes.extend_from_slice(&piece),
                Some(Err(BodyCut)) => return (bytes.into(), After::Cut),
                None => return (bytes.into(), After::End),
            }
            if bytes.len() >= ROW {
                return (bytes.into(), After::More);
            }
        }
    }));
    gathered.unwrap_or((Bytes::new(), After::Cut))
}
