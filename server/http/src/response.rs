//! What a service gives back: a response whose head is already rendered, now or later.

use std::any::Any;
use std::fs::File;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::body_source::StreamedBody;
use crate::request::Request;
use crate::status::{is_bodiless, reason_phrase};
use crate::streamed::BodyHandling;
use crate::syntax::{is_field_value, is_token};
use crate::validity::Validity;

/// Turns requests into replies. One value per worker; it is never called from two threads.
///
/// A panic in [`Service::call`] or in the future of a [`Reply::Later`] is answered with 500 and
/// closes that connection; the worker goes on.
pub trait Service: 'static {
    /// Answers one request. Runs on the worker's event loop: it must not block. No async runtime is
    /// running on this thread: a [`Reply::Later`] must be woken by its waker, from any thread.
    fn call(&self, request: &Request<'_>) -> Reply;

    /// The head of a request with a body has arrived: says what becomes of the body. Runs on the
    /// worker's event loop, as [`Service::call`] does. Unless the body is
    /// [streamed](BodyHandling::Streamed), `call` gets the request once the body is there.
    fn body_begins(&self, _request: &Request<'_>) -> BodyHandling {
        BodyHandling::Whole
    }

    /// True if [`Service::done`] would do anything now. Asked before each notification, so that an
    /// unwanted one costs nothing.
    fn wants_done(&self) -> bool {
        true
    }

    /// The response was handed to the socket, `body_bytes` of its body at least (fewer than its
    /// length if the client went away). `label` is that of the response, unless it counts in no
    /// series of its own. For the access log; the request's body is already gone.
    fn done(&self, _request: &Request<'_>, _status: u16, _body_bytes: u64, _label: u32) {}

    /// A request was refused with `status` before it could be given to [`Service::call`].
    fn refused(&self, _peer: SocketAddr, _status: u16) {}
}

/// An answer, now or later.
pub enum Reply {
    /// Written together with all other responses that are ready: no allocation, no task switch.
    Ready(Response),
    /// Written together with all other responses that are ready; besides, the response answers
    /// later requests with the very same head for as long as the validity says so. The connections
    /// keep it only if the request [asked](Request::wants_validity) for a validity. In a box,
    /// because few replies are and every reply is moved.
    Reusable(Box<(Response, Validity)>),
    /// Awaited on the worker; later requests of the same connection wait for it, other connections
    /// do not.
    Later(Pin<Box<dyn Future<Output = Response>>>),
}

impl Reply {
    /// A reply that is computed by `future`.
    pub fn later(future: impl Future<Output = Response> + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// A reply that is ready, with its validity if it has one.
    #[inline]
    #[must_use]
    pub fn reusable(response: Response, validity: Option<Validity>) -> Self {
        match validity {
            Some(validity) => Self::Reusable(Box::new((response, validity))),
            None => Self::Ready(response),
        }
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::Ready(response)
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(response) => f.debug_tuple("Ready").field(response).finish(),
            Self::Reusable(reply) => f.debug_tuple("Reusable").field(&reply.0).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// The content of a response.
#[derive(Clone, Debug, Default)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// Content in memory.
    Bytes(Bytes),
    /// Part of an open file, sent by the kernel without passing through the process. Reading a file
    /// that is not in the page cache holds up the worker.
    File {
        /// The open file; its own position is not used.
        file: Arc<File>,
        /// First byte to send.
        offset: u64,
        /// How many bytes to send. If the file turns out to be shorter, the connection is cut.
        len: u64,
    },
    /// Content that is made while it is sent. Only in responses: a
    /// [`Prepared`](crate::Prepared) has none.
    Streamed(StreamedBody),
}

impl Body {
    /// Its length in bytes; 0 for a streamed one, whose length is not known.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty | Self::Streamed(_) => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// True if it has no bytes. A streamed one may have some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && !matches!(self, Self::Streamed(_))
    }
}

/// A response with its head rendered, but for Date, Connection and the final empty line, which the
/// connection adds.
#[derive(Clone, Debug)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) head: Bytes,
    pub(crate) extra: Bytes,
    pub(crate) body: Body,
    pub(crate) close: bool,
    pub(crate) label: u32,
    /// In a box of its own, as few responses have one and every response is moved.
    pub(crate) note: Option<Box<Arc<dyn Any + Send + Sync>>>,
}

impl Response {
    /// A response whose head is made field by field.
    #[must_use]
    pub fn builder(status: u16) -> Builder {
        let mut head = Vec::with_capacity(256);
        status_line(&mut head, status);
        Builder {
            status,
            head,
            extra: Bytes::new(),
            close: false,
        }
    }

    /// A short plain-text response, such as an error.
    #[must_use]
    pub fn text(status: u16, text: &str) -> Self {
        Self::builder(status)
            .field("Content-Type", "text/plain; charset=utf-8")
            .field("X-Content-Type-Options", "nosniff")
            .body(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// A response whose head was rendered before. `head` is the status line and field lines, each
    /// ending with CRLF, without Date, Connection and the final empty line, and with the
    /// Content-Length of `body` (unless the status has no content); `extra` is more such field
    /// lines, or empty. Costs no allocation.
    #[must_use]
    pub fn prepared(status: u16, head: Bytes, extra: Bytes, body: Body) -> Self {
        debug_assert!(head.ends_with(b"\r\n") && (extra.is_empty() || extra.ends_with(b"\r\n")));
        Self {
            status,
            head,
            extra,
            body,
            close: false,
            label: 0,
            note: None,
        }
    }

    /// Replaces the extra field lines by `extra` (each line ending with CRLF).
    #[must_use]
    pub fn with_extra(mut self, extra: Bytes) -> Self {
        debug_assert!(extra.is_empty() || extra.ends_with(b"\r\n"));
        self.extra = extra;
        self
    }

    /// Replaces the label by which the request is [counted](crate::WorkerGroup::requests); what it
    /// means is the service's matter. The label is not sent.
    #[must_use]
    pub fn with_label(mut self, label: u32) -> Self {
        self.label = label;
        self
    }

    /// Replaces the label in place.
    #[inline]
    pub fn set_label(&mut self, label: u32) {
        self.label = label;
    }

    /// The label; 0 if there is none.
    #[must_use]
    pub const fn label(&self) -> u32 {
        self.label
    }

    /// Replaces the note for those through whom the response passes on its way to the connection,
    /// such as why it is what it is. The note is not sent.
    #[must_use]
    pub fn with_note<T: Any + Send + Sync>(mut self, note: Arc<T>) -> Self {
        self.note = Some(Box::new(note));
        self
    }

    /// Returns the note, if it is one of this type.
    #[must_use]
    pub fn note<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let note = Arc::clone(self.note.as_ref()?);
        note.downcast().ok()
    }

    /// Closes the connection after the response.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The status code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The status line and field lines, each ending with CRLF.
    #[must_use]
    pub const fn head(&self) -> &Bytes {
        &self.head
    }

    /// Further field lines, each ending with CRLF.
    #[must_use]
    pub const fn extra(&self) -> &Bytes {
        &self.extra
    }

    /// The content.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the content if it is in memory, empty with a status that has none.
    pub(crate) fn body_in_memory(&self) -> Option<&Bytes> {
        static EMPTY: Bytes = Bytes::new();
        match &self.body {
            _ if is_bodiless(self.status) => Some(&EMPTY),
            Body::Empty => Some(&EMPTY),
            Body::Bytes(bytes) => Some(bytes),
            Body::File { .. } | Body::Streamed(_) => None,
        }
    }

    /// True if the connection is closed after it.
    #[must_use]
    pub const fn closes(&self) -> bool {
        self.close
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        [&self.head, &self.extra]
            .into_iter()
            .filter_map(|part| std::str::from_utf8(part).ok())
            .find_map(|part| {
                let mut fields = part.split("\r\n").filter_map(|line| line.split_once(':'));
                fields
                    .find(|(found, _)| found.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.trim_ascii())
            })
    }
}

/// Makes a [`Response`]; the last call gives the body and with it Content-Length.
#[derive(Clone, Debug)]
pub struct Builder {
    status: u16,
    head: Vec<u8>,
    extra: Bytes,
    close: bool,
}

impl Builder {
    /// Adds a field line. Bytes that a value cannot have become spaces (RFC 9110 section 5.5), so
    /// that no value can begin another line; a name that is not a token is a mistake of the caller
    /// and is left out.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        field_line(&mut self.head, name, value);
        self
    }

    /// Adds field lines that are already rendered, each ending with CRLF.
    #[must_use]
    pub fn extra(mut self, extra: Bytes) -> Self {
        self.extra = extra;
        self
    }

    /// Closes the connection after the response.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.close = true;
        self
    }

    /// A body in memory.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Response {
        self.finish(Body::Bytes(body.into()))
    }

    /// `len` bytes of a file from `offset` on.
    #[must_use]
    pub fn file(self, file: Arc<File>, offset: u64, len: u64) -> Response {
        self.finish(Body::File { file, offset, len })
    }

    /// A body that is made while it is sent.
    #[must_use]
    pub fn streamed(self, body: StreamedBody) -> Response {
        self.finish(Body::Streamed(body))
    }

    /// No body.
    #[must_use]
    pub fn empty(self) -> Response {
        self.finish(Body::Empty)
    }

    fn finish(mut self, body: Body) -> Response {
        // RFC 9110 section 15.3.6: a 205 has no content, but unlike 204 it is framed as if it could
        // have some.
        let body = if self.status == 205 {
            Body::Empty
        } else {
            body
        };
        // RFC 9110 section 8.6: no Content-Length where the status has no content.
        if !is_bodiless(self.status) && !matches!(body, Body::Streamed(_)) {
            length_line(&mut self.head, body.len());
        }
        Response {
            status: self.status,
            head: self.head.into(),
            extra: self.extra,
            body,
            close: self.close,
            label: 0,
            note: None,
        }
    }
}

/// `HTTP/1.1 200 OK` and CRLF.
pub(crate) fn status_line(head: &mut Vec<u8>, status: u16) {
    debug_assert!((100..1000).contains(&status));
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    head.push(b' ');
    head.extend_from_slice(reason_phrase(status).as_bytes());
    head.extend_from_slice(b"\r\n");
}

/// `name: value` and CRLF, made safe as [`Builder::field`] says.
pub(crate) fn field_line(head: &mut Vec<u8>, name: &str, value: &str) {
    if name.is_empty() || !name.bytes().all(is_token) {
        debug_assert!(false, "{name:?} is not a field name");
        return;
    }
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    let start = head.len();
    head.extend_from_slice(value.as_bytes());
    for byte in &mut head[start..] {
        if !is_field_value(*byte) {
            *byte = b' ';
        }
    }
    head.extend_from_slice(b"\r\n");
}

/// `Content-Length` and CRLF.
pub(crate) fn length_line(head: &mut Vec<u8>, len: u64) {
    head.extend_from_slice(b"Content-Length: ");
    head.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_begin_another_line() {
        let response = Response::builder(303)
            .field("Location", "/a\r\nSet-Cookie: x")
            .empty();
        assert_eq!(
            &response.head[..],
            b"HTTP/1.1 303 See Other\r\nLocation: /a  Set-Cookie: x\r\nContent-Length: 0\r\n"
        );
    }

    #[test]
    fn a_status_without_content_has_no_length() {
        assert_eq!(
            &Response::builder(204).empty().head[..],
            b"HTTP/1.1 204 No Content\r\n"
        );
        assert_eq!(
            Response::text(404, "none").field("content-length"),
            Some("4")
        );
        let reset = Response::builder(205).body("not sent");
        assert_eq!(reset.field("content-length"), Some("0"));
        assert!(reset.body().is_empty());
    }
}
