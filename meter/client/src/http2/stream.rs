//! The answer on one stream, from its request to its end.

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

/// A request on its way, and as much of its answer as has come. Dropped before its end, it is cancelled with RST_STREAM.
pub(super) struct Stream {
    pub(super) request: Pending,
    part: ResponsePhase,
    status: StatusCode,
    /// What `content-length` says, where a body has to be that long.
    announced: Option<u64>,
    /// Bytes of DATA so far.
    length: u64,
}

enum ResponsePhase {
    /// The head is to come.
    Head(ResponseFuture),
    /// The rest is.
    Body(RecvStream),
}

/// How a stream ended without an answer.
pub(super) enum StreamFailure {
    /// It is an error of this kind.
    Failed(Fault),
    /// The server has not looked at the request (RFC 9113, section 6.8): it may be sent again.
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

    /// Takes what has come, and gives its room in the windows back to the server: the status once the answer is complete.
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
                    // Only fails for more than has come.
                    let _ = body.flow_control().release_capacity(data.len());
                    self.length += data.len() as u64;
                    if let Some(sink) = &mut sink {
                        sink.body(&data);
                    }
                }
            }
        }
    }

    /// Whether an answer of this status has no body, whatever its fields say.
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
        // `h2` counts as well, and says no more than that a rule was broken.
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
