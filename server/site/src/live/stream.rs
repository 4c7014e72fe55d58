//! The stream of one that looks at a live page: server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_http::{BodyCut, BodySource, Response, StreamedBody};

use super::board::{LivePage, Piece, StreamEnd, Ticket};
use crate::session::{CookieExpiry, Session};

/// Milliseconds after which a stream that ends is opened again, at the least.
const AGAIN: u32 = 1000;
/// The event for a browser whose page is not there, or not for its visitor any more.
const GONE: &str = "event: gone\ndata: 1\n\n";

/// The stream of one seat.
pub(crate) struct LiveStream {
    page: Arc<LivePage>,
    seat: u32,
    ticket: Ticket,
    version: u64,
    /// The first bytes.
    opening: Option<Box<str>>,
    session_end: Option<Box<CookieExpiry>>,
    is_over: bool,
}

impl LiveStream {
    /// The stream of a client to which the page was given with the tag `tag`, when `version` was
    /// told, and which has that with the tag `has`; none if the page is over.
    pub(crate) fn new(
        page: &Arc<LivePage>,
        ticket: Ticket,
        version: u64,
        (tag, has): (&str, &str),
        session: Option<&Session>,
    ) -> Option<Self> {
        let seat = page.sit(session.map(Session::mark))?;
        let opening = match tag == has {
            true => ": the newest\n\n".to_owned(),
            false if page.is_shared => format!("id: {tag}\ndata: 0\n\n"),
            false => "data: 0\n\n".to_owned(),
        };
        Some(Self {
            page: page.clone(),
            seat,
            ticket,
            version,
            opening: Some(opening.into()),
            session_end: session.map(|session| Box::new(session.expiry())),
            is_over: false,
        })
    }
}

impl BodySource for LiveStream {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(Ok(String::from(opening).into())));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = self
            .page
            .next(self.seat, &mut self.version, context.waker());
        let is_signed_out = || {
            let end = self.session_end.as_ref();
            end.is_some_and(|end| end.is_over(Boottime::now()))
        };
        let piece = match next {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Piece::Event(_)) if is_signed_out() => Piece::End(StreamEnd::Gone),
            Poll::Ready(piece) => piece,
        };
        let bytes = match piece {
            Piece::Event(event) => {
                let events = &self.ticket.board.events;
                events.fetch_add(1, Ordering::Relaxed);
                event
            }
            Piece::End(end) => {
                self.is_over = true;
                last(end)
            }
        };
        Poll::Ready(Some(Ok(bytes)))
    }
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        self.page.leave(self.seat);
    }
}

/// The last words of a stream.
fn last(end: StreamEnd) -> Bytes {
    match end {
        StreamEnd::Again => again(4 * AGAIN).into(),
        StreamEnd::Gone => Bytes::from_static(GONE.as_bytes()),
    }
}

/// The line by which a browser comes again after one second and up to `spread` milliseconds more.
/// Each call gives another time, so that those whose streams end together do not return together.
fn again(spread: u32) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Far apart also for those who come one after the other.
    let next = NEXT
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_mul(2_654_435_761);
    format!("retry: {}\n\n", AGAIN + next % spread)
}

/// An answer whose body is `source`.
pub(crate) fn streamed(source: impl BodySource + 'static) -> Response {
    head().streamed(StreamedBody::new(source))
}

/// The answer to a client that is to come again later: a browser gives up for ever on any status
/// but 200.
pub(crate) fn turned_away() -> Response {
    head().body(again(30 * AGAIN))
}

/// The answer to a client whose page is not there, or not for its visitor.
pub(crate) fn gone() -> Response {
    head().body(GONE)
}

fn head() -> millpond_http::Builder {
    Response::builder(200)
        .field("Content-Type", "text/event-stream")
        // A proxy that changes or collects it would keep events back. Private, also of a public
        // page: so a guard leaves it as it is.
        .field("Cache-Control", "private, no-cache, no-transform")
        .field("X-Accel-Buffering", "no")
        .field("X-Content-Type-Options", "nosniff")
}
