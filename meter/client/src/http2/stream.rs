//! The response on one stream, from its request to its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};

use super::faults;
use crate::body::BodySink;
use crate::outcome::{FailureKind, Fault};
use crate::recorder::Pending;
use crate::sink::Sink as _;

/// A request in flight, and the received part of its response. If dropped before its end, it is
/// cancelled with RST_STREAM.
pub(super) struct Stream {
    pub(super) request: Pending,
    part: ResponsePhase,
    status: StatusCode,
    /// `content-length`, if a body must have that length.
    announced: Option<u64>,
    /// Bytes of DATA so far.
    length: u64,
}

enum ResponsePhase {
    /// Waiting for the head.
    Head(ResponseFuture),
    /// Waiting for the body.
    Body(RecvStream),
}

/// How a stream ended without a response.
pub(super) enum StreamFailure {
    /// With this fault.
    Failed(Fault),
    /// The server has not processed the request (RFC 9113, section 6.8): it may be sent again.
    Unseen,
}

impl Stream {
    pub(super) fn new(request: Pending, response: ResponseFuture) -> Self {
        Self {
            request,
            part: ResponsePhase::Head(response),
            status: StatusCode::OK,
            announced: None,
            length: 0,
        }
    }

    /// Reads the received data and gives the flow-control windows back to the server. Returns the
    /// status once the response is complete.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        is_head: bool,
        mut sink: Option<&mut BodySink>,
    ) -> Poll<Result<u16, StreamFailure>> {
        loop {
            match &mut self.part {
                ResponsePhase::Head(response) => {
                    let response = match ready!(Pin::new(response).poll(context)) {
                        Ok(response) => response,
                        Err(error) => return Poll::Ready(Err(self.lost(&error))),
                    };
                    let (head, body) = response.into_parts();
                    self.status = head.status;
                    self.announced =
                        announced(&head.headers).filter(|_| !is_head && !self.is_empty());
                    self.part = ResponsePhase::Body(body);
                }
                ResponsePhase::Body(body) => {
                    let data = match ready!(body.poll_data(context)) {
                        Some(Ok(data)) => data,
                        Some(Err(error)) => return Poll::Ready(Err(self.lost(&error))),
                        None => {
                            return match ready!(body.poll_trailers(context)) {
                                Ok(_) => Poll::Ready(self.complete()),
                                Err(error) => Poll::Ready(Err(self.lost(&error))),
                            };
                        }
                    };
                    // Fails only for more bytes than were received.
                    let _ = body.flow_control().release_capacity(data.len());
                    self.length += data.len() as u64;
                    if let Some(sink) = &mut sink {
                        sink.body(&data);
                    }
                }
            }
        }
    }

    /// True if a response with this status has no body, regardless of its fields.
    fn is_empty(&self) -> bool {
        matches!(
            self.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
    }

    fn complete(&self) -> Result<u16, StreamFailure> {
        match self.announced {
            Some(announced) if announced != self.length => Err(OTHER_LENGTH),
            _ => Ok(self.status.as_u16()),
        }
    }

    fn lost(&self, error: &h2::Error) -> StreamFailure {
        if error.is_go_away() && error.is_remote() {
            return StreamFailure::Unseen;
        }
        // `h2` checks the length too, but only reports a protocol error.
        let counted = error.is_library() && error.is_reset();
        match self.announced {
            Some(announced) if counted && announced != self.length => OTHER_LENGTH,
            _ => StreamFailure::Failed(faults::of_stream(error)),
        }
    }
}

const OTHER_LENGTH: StreamFailure = StreamFailure::Failed((
    FailureKind::BadResponse,
    Some("DATA of another length than content-length says"),
));

fn announced(fields: &HeaderMap) -> Option<u64> {
    fields.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
