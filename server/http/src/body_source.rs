//! Bodies that are made while they are sent.
//!
//! The connection asks the source for a piece when it has sent the pieces before. So a client that
//! reads slowly holds a piece or two and no thread. HTTP/1.1 sends the body in chunks (RFC 9112
//! section 7.1), HTTP/2 in DATA frames. An HTTP/1.0 client gets the bytes as they are, and the end
//! of the connection is the end of the body.
//!
//! If the client goes away, reads too slowly, or the server ends, the source is dropped before its
//! end.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;

/// Makes a body piece by piece. Runs on the worker's event loop: it must not block.
pub trait BodySource: Send {
    /// The next piece, or none at the end of the body. Empty pieces are left out. If there is no
    /// piece yet, the waker is woken when there is, from any thread.
    ///
    /// [`BodyCut`] or a panic ends the response in a way that the client notices: the connection of
    /// HTTP/1 is closed without the last chunk, the stream of HTTP/2 is reset.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>>;
}

/// The rest of a body cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyCut;

/// A source in a [`Body`](crate::Body). Copies are of one and the same source, and one of them is
/// sent.
#[derive(Clone)]
pub struct StreamedBody(Arc<Mutex<Option<Box<dyn BodySource>>>>);

impl StreamedBody {
    /// A body that `source` makes.
    #[must_use]
    pub fn new(source: impl BodySource + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(source)))))
    }

    /// Takes the source, to send it or to put it into another. None if it was taken before.
    #[must_use]
    pub fn take(&self) -> Option<Box<dyn BodySource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamedBody").finish_non_exhaustive()
    }
}

/// Result of one call of [`next_piece`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextPiece {
    Bytes(Bytes),
    Pending,
    End,
    /// The source failed, or panicked.
    Cut {
        is_panic: bool,
    },
}

/// Asks `source` for its next piece. Empty pieces are [pending](NextPiece::Pending) and wake the
/// waker, so that a source with nothing else does not hold up the worker.
pub(crate) fn next_piece(source: &mut dyn BodySource, context: &mut Context<'_>) -> NextPiece {
    let poll = std::panic::AssertUnwindSafe(|| source.poll_piece(context));
    match std::panic::catch_unwind(poll) {
        Ok(Poll::Ready(Some(Ok(bytes)))) if bytes.is_empty() => {
            context.waker().wake_by_ref();
            NextPiece::Pending
        }
        Ok(Poll::Ready(Some(Ok(bytes)))) => NextPiece::Bytes(bytes),
        Ok(Poll::Ready(Some(Err(BodyCut)))) => NextPiece::Cut { is_panic: false },
        Ok(Poll::Ready(None)) => NextPiece::End,
        Ok(Poll::Pending) => NextPiece::Pending,
        Err(_) => NextPiece::Cut { is_panic: true },
    }
}
