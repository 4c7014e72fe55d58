//! The answer on one stream, from its request to its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};

use super::words;
use crate::body::BodySink;
use crate::outcome::{Fault, Kind};
use crate::recorder::Pending;
use crate::sink::Sink as _;

/// A request on its way, and as much of its answer as has come. Dropped before its end, it is cancelled with RST_STREAM.
pub(super) struct Stream {
    pub(super) request: Pending,
    part: Part,
    status: StatusCode,
    /// What `content-length` says, where a body has to be that long.
    announced: Option<u64>,
    /// Bytes of DATA so far.
    length: u64,
}

enum Part {
    /// The head is to come.
    Head(ResponseFuture),
    /// The rest is.
    Body(RecvStream),
}

/// How a stream ended without an answer.
pub(super) enum Lost {
    /// It is an error of this kind.
    Failed(Fault),
    /// The server has not looked at the request (RFC 9113, section 6.8): it may be sent again.
    Unseen,
}

impl Stream {
    pub(super) fn new(request: Pending, response: ResponseFuture) -> Self {
        Self {
            request,
            part: Part::Head(response),
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
    ) -> Poll<Result<u16, Lost>> {
        loop {
            match &mut self.part {
                Part::Head(response) => {
                    let response = match ready!(Pin::new(response).poll(context)) {
                        Ok(response) => response,
                        Err(error) => return Poll::Ready(Err(self.lost(&error))),
                    };
                    let (head, body) = response.into_parts();
                    self.status = head.status;
                    self.announced =
                        announced(&head.headers).filter(|_| !is_head && !self.is_empty());
                    self.part = Part::Body(body);
                }
                Part::Body(body) => {
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

    fn complete(&self) -> Result<u16, Lost> {
        match self.announced {
            Some(announced) if announced != self.length => Err(OTHER_LENGTH),
            _ => Ok(self.status.as_u16()),
        }
    }

    fn lost(&self, error: &h2::Error) -> Lost {
        if error.is_go_away() && error.is_remote() {
            return Lost::Unseen;
        }
        // `h2` counts as well, and says no more than that a rule was broken.
        let counted = error.is_library() && error.is_reset();
        match self.announced {
            Some(announced) if counted && announced != self.length => OTHER_LENGTH,
            _ => Lost::Failed(words::of_stream(error)),
        }
    }
}

const OTHER_LENGTH: Lost = Lost::Failed((
    Kind::BadResponse,
    Some("DATA of another length than content-length says"),
));

fn announced(fields: &HeaderMap) -> Option<u64> {
    fields.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
