//! Responses, and what happens where there is none.

use super::frame::ErrorCode;
use super::response_head::push_head;
use super::session::Session;
use super::stream::{Http2Stream, StreamId};
use crate::response::{Body, Response};

/// A response whose head is encoded.
#[derive(Clone, Debug)]
pub(crate) struct EncodedResponse<'a> {
    pub(crate) status: u16,
    /// What [`encode_head`](super::encode_head) has made of the response.
    pub(crate) head: &'a [u8],
    /// What [`encode_fields`](super::encode_fields) has made of the date, or nothing.
    pub(crate) date: &'a [u8],
    pub(crate) body: Body,
}

impl Session {
    /// The response to a request; its handler has ended. It is ignored if the stream is gone.
    /// To HEAD, and with a status that has none, no body is sent.
    pub(crate) fn respond(&mut self, stream: StreamId, response: EncodedResponse<'_>) {
        if let Some(stream) = self.begin_response(stream) {
            for part in [response.head, response.date] {
                stream.response.block.extend_from_slice(part);
            }
            stream.set_response(response.status, response.body);
        }
    }

    /// The same with a response whose head is encoded now. Whether it
    /// [closes](Response::closes) the connection is the driver's matter.
    pub(crate) fn respond_with(&mut self, stream: StreamId, response: &Response, date: &[u8]) {
        if let Some(stream) = self.begin_response(stream) {
            push_head(&mut stream.response.block, response);
            stream.response.block.extend_from_slice(date);
            stream.set_response(response.status(), response.body().clone());
        }
    }

    /// The stream whose handler has ended, if it takes a response.
    fn begin_response(&mut self, stream: StreamId) -> Option<&mut Http2Stream> {
        let at = self.streams.place(stream.number())?;
        let stream = self.streams.at(at);
        stream.has_handler = false;
        stream.lent = 0;
        if stream.is_reset {
            self.retire(at);
            return None;
        }
        debug_assert!(stream.status().is_none(), "a second response");
        if stream.status().is_some() {
            return None;
        }
        stream.owes_continue = false;
        Some(self.streams.at(at))
    }

    /// The handler of a request has ended without a response, or after its stream was reset.
    pub(crate) fn handler_is_gone(&mut self, stream: StreamId) {
        let Some(at) = self.streams.place(stream.number()) else {
            return;
        };
        let stream = self.streams.at(at);
        stream.has_handler = false;
        stream.lent = 0;
        if stream.is_reset {
            self.retire(at);
        } else if stream.response.status == 0 {
            self.reset_at(at, ErrorCode::InternalError);
        }
    }

    /// Gives up a stream. Its handler may go on; the driver says when it ends.
    #[cfg(test)]
    pub(crate) fn reset(&mut self, stream: StreamId, error: ErrorCode) {
        if let Some(at) = self.streams.place(stream.number())
            && !self.streams.at(at).is_reset
        {
            self.reset_at(at, error);
        }
    }
}

impl Http2Stream {
    fn set_response(&mut self, status: u16, body: Body) {
        let is_bodiless = crate::status::is_bodiless(status) || self.head.method() == b"HEAD";
        self.response.status = status;
        self.response.body = match body {
            _ if is_bodiless => Body::Empty,
            Body::Streamed(_) => {
                self.response.is_open = true;
                Body::Empty
            }
            body => body,
        };
    }
}
