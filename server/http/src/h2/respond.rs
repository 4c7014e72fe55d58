//! Responses, and what happens where there is none.

use std::rc::Rc;

use super::frame::ErrorCode;
use super::known::KnownResponse;
use super::response_head::push_head;
use super::session::Session;
use super::stream::{Http2Stream, StreamId};
use crate::response::{Body, Response};

impl Session {
    /// Takes the response to a request; its handler has ended. It is ignored if the stream is gone.
    /// To HEAD, and with a status that has none, no body is sent. `date` is what
    /// [`encode_fields`](super::encode_fields) has made of the date. Whether the response
    /// [closes](Response::closes) the connection is the driver's matter.
    pub(crate) fn respond_with(&mut self, stream: StreamId, response: &Response, date: &[u8]) {
        if let Some(stream) = self.begin_response(stream) {
            push_head(&mut stream.response.block, response);
            stream.response.block.extend_from_slice(date);
            stream.response.label = response.label();
            stream.set_response(response.status(), response.body().clone());
        }
    }

    /// Takes a response that was given before, as [`Session::respond_with`] takes a new one.
    pub(crate) fn repeat(&mut self, stream: StreamId, response: Rc<KnownResponse>, date: &[u8]) {
        if let Some(stream) = self.begin_response(stream) {
            for part in [&response.head, date] {
                stream.response.block.extend_from_slice(part);
            }
            stream.set_response(response.status, Body::Bytes(response.body.clone()));
            stream.repeated = Some(response);
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
