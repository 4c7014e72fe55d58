//! Bodies that a service takes as they arrive, instead of with the request.
//!
//! A service says so when it sees the head ([`Service::body_begins`](crate::Service::body_begins)).
//! The connection then gives it every piece that arrives and reads no more while the service has no
//! room: the window of TCP, or of the HTTP/2 stream, fills up, and the client waits. A client that
//! is slow has the deadlines of every other body; the time in which the service has no room does
//! not count. If the client goes away, is too slow, or sends what is no body, the receiver is
//! dropped without [`BodyReceiver::finish`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use crate::request::Request;
use crate::response::{Reply, Response};

/// Decision about the body of a request.
pub enum BodyHandling {
    /// It is kept, up to [`Limits::body`](crate::Limits::body), and given with the request.
    Whole,
    /// It is not wanted: the request is answered now. A connection of HTTP/1 is closed afterwards,
    /// because the body cannot be told from what follows without reading it.
    Refused(Response),
    /// It is given to this receiver piece by piece.
    Streamed(Box<dyn BodyReceiver>),
}

/// Takes a body while it arrives. Runs on the worker's event loop: it must not block.
pub trait BodyReceiver {
    /// The most bytes that the body may have: beyond it 413, at once if the client says the length.
    fn limit(&self) -> u64;

    /// Returns ready if there is room for more. If there is none, the waker is woken when there is
    /// some, from any thread.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Takes a piece, which has at most some kilobytes beyond what
    /// [ready](BodyReceiver::poll_ready) promised room for.
    ///
    /// # Errors
    /// The response to a body that is not wanted any more; the connection drops the rest of it.
    fn receive(&mut self, piece: &[u8]) -> Result<(), Response>;

    /// The body is complete: answers the request, whose own body is empty.
    fn finish(self: Box<Self>, request: &Request<'_>) -> Reply;
}

/// Gives `receiver` a piece of a body.
///
/// # Errors
/// The response that ends the request; none if the receiver panicked.
pub(crate) fn give(receiver: &mut dyn BodyReceiver, piece: &[u8]) -> Result<(), Option<Response>> {
    match catch_unwind(AssertUnwindSafe(|| receiver.receive(piece))) {
        Ok(received) => received.map_err(Some),
        Err(_) => Err(None),
    }
}

/// Returns whether `receiver` has room: nearly always, so a waker is made only if it has none.
pub(crate) fn poll_room(
    receiver: &mut dyn BodyReceiver,
    waker: impl FnOnce() -> Waker,
) -> Poll<()> {
    let mut context = Context::from_waker(Waker::noop());
    if receiver.poll_ready(&mut context).is_ready() {
        return Poll::Ready(());
    }
    receiver.poll_ready(&mut Context::from_waker(&waker()))
}

impl std::fmt::Debug for BodyHandling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole => "Whole",
            Self::Refused(_) => "Refused",
            Self::Streamed(_) => "Streamed",
        })
    }
}
