//! A cached response: the request, the response, and the response's validity.
//!
//! The body is shared with its source. The store, and every worker that keeps the response, hold
//! one reference each to the same bytes. A worker counts its reference when it keeps the response
//! and when it drops the response. A hit counts only references that belong to the worker, because
//! a count that several workers write would move from core to core.

use std::rc::Rc;

use base_clock::Boottime;
use bytes::Bytes;

use super::output::COPIED;
use crate::h1::{Decoder, Head, request};
use crate::limits::REPEATED_ANSWER;
use crate::peer::Peer;
use crate::prefetch::prefetch;
use crate::request::Request;
use crate::request_counts::{CountedRequest, SeriesId};
use crate::response::Response;
use crate::syntax::FieldSpan;
use crate::validity::Validity;

/// The part of an entry that not every hit reads.
#[derive(Debug)]
#[repr(C)]
pub(super) struct CachedExchange {
    /// A body that is too long to be copied behind the head, else empty. First, so that the body
    /// lies in one line of memory with the counts of the `Rc`.
    pub(super) body: Bytes,
    request: Box<[u8]>,
    head: Head,
    fields: Box<[FieldSpan]>,
}

impl CachedExchange {
    /// The request, as received from `peer` at `received`.
    pub(super) fn request(&self, peer: &Peer, received: Boottime) -> Request<'_> {
        let (bytes, fields) = (&self.request, &self.fields);
        request(&self.head, bytes, fields, Bytes::new(), peer, received)
    }
}

/// One request and its response. With thousands of different responses, the cost of a look-up is
/// the lines of memory that are in no cache, above all those that lead to each other. An entry is
/// one such line, in the table itself. The request lies before the response's head, which every
/// hit reads.
#[repr(align(64))]
pub(super) struct CachedResponse {
    /// The request, the response's head, and a body of at most [`COPIED`] bytes.
    bytes: Rc<[u8]>,
    request_len: u16,
    /// The length of the response's head.
    head_len: u16,
    /// Index in `bytes` at which the tail of the response's head begins.
    tail_at: u32,
    exchange: Rc<CachedExchange>,
    validity: Validity,
    /// The series in which a hit counts.
    series: SeriesId,
    status: u16,
    /// True if a request hit the entry since the last sweep of its set.
    pub(super) is_used: bool,
    /// True if the body is in `exchange`.
    has_shared_body: bool,
}

impl CachedResponse {
    /// The response to the request with `head`, whose own head ends with `tail`; none if the
    /// response is too long, or has no body in memory.
    pub(super) fn new(
        decoder: &Decoder,
        head: &Head,
        response: &Response,
        tail: &[u8],
        validity: Validity,
    ) -> Option<Self> {
        let (lines, extra) = (&response.head[..], &response.extra[..]);
        let body = response.body_in_memory()?;
        let (request, fields) = decoder.parts_of(head);
        let tail_at = lines.len() + extra.len();
        let head_len = tail_at + tail.len();
        if head_len + body.len() > REPEATED_ANSWER {
            return None;
        }
        let (copied, shared) = match body.len() {
            ..=COPIED => (&body[..], Bytes::new()),
            // A part of a body would keep the whole body in memory.
            _ if response.status == 206 => (&[][..], Bytes::copy_from_slice(body)),
            _ => (&[][..], body.clone()),
        };
        Some(Self {
            bytes: [request, lines, extra, tail, copied].concat().into(),
            request_len: request.len().try_into().ok()?,
            tail_at: (request.len() + tail_at).try_into().ok()?,
            head_len: head_len.try_into().ok()?,
            has_shared_body: !shared.is_empty(),
            exchange: Rc::new(CachedExchange {
                body: shared,
                request: request.into(),
                head: *head,
                fields: fields.into(),
            }),
            validity,
            series: SeriesId::default(),
            status: response.status,
            is_used: true,
        })
    }

    /// Counts its hits in this series.
    pub(super) fn counted_in(self, series: SeriesId) -> Self {
        Self { series, ..self }
    }

    /// True if the response may be given to a request that was received at `received`; then its
    /// head ends with `tail`.
    #[inline]
    pub(super) fn is_valid(&mut self, received: Boottime, tail: &[u8]) -> bool {
        self.validity.is_valid(received) && self.set_tail(tail)
    }

    /// True if the response will never be valid again.
    pub(super) fn is_over(&self) -> bool {
        self.validity.is_over()
    }

    /// Returns the bytes of memory that the entry may hold beside itself. A shared body counts in
    /// full, because the entry keeps the body in memory after its source has dropped it.
    pub(super) fn memory(&self) -> usize {
        let CachedExchange {
            body,
            request,
            fields,
            ..
        } = &*self.exchange;
        // The request is also in `bytes`.
        let exchange = body.len() + request.len() + size_of_val(&**fields);
        exchange + self.bytes.len()
    }

    /// Asks for the memory of the request, of the end of the response's head, and of what leads to
    /// a shared body.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.bytes[0]);
        prefetch(&self.bytes[self.tail_at as usize]);
        if self.has_shared_body {
            prefetch(&*self.exchange);
        }
    }

    /// True if the entry is for the request with these bytes.
    #[inline]
    pub(super) fn is_for(&self, request: &[u8]) -> bool {
        self.bytes.get(..self.request_len as usize) == Some(request)
    }

    /// The response, to be sent. With `is_reported`, the service is notified when it is sent.
    #[inline]
    pub(super) fn repeat(&self, is_reported: bool) -> RepeatedResponse {
        let needs_exchange = is_reported || self.has_shared_body;
        RepeatedResponse {
            bytes: Rc::clone(&self.bytes),
            from: u32::from(self.request_len),
            head_len: u32::from(self.head_len),
            series: self.series,
            status: self.status,
            is_reported,
            exchange: needs_exchange.then(|| Rc::clone(&self.exchange)),
        }
    }

    /// Makes the response's head end with `tail`, false if that is impossible. A response that is
    /// still being sent keeps its tail.
    #[inline]
    fn set_tail(&mut self, tail: &[u8]) -> bool {
        let start = self.tail_at as usize;
        let range = start..start + tail.len();
        if self.bytes.get(range.clone()) == Some(tail) {
            return true;
        }
        let is_tail = |old: &[u8]| old.ends_with(b"\r\n\r\n");
        if !self.bytes.get(range.clone()).is_some_and(is_tail) {
            return false;
        }
        if Rc::get_mut(&mut self.bytes).is_none() {
            self.bytes = Rc::from(&self.bytes[..]);
        }
        Rc::get_mut(&mut self.bytes).is_some_and(|bytes| {
            bytes[range].copy_from_slice(tail);
            true
        })
    }
}

/// A cached response on its way to a client.
#[derive(Debug)]
pub(super) struct RepeatedResponse {
    bytes: Rc<[u8]>,
    /// Index in `bytes` at which the response begins.
    from: u32,
    pub(super) head_len: u32,
    series: SeriesId,
    pub(super) status: u16,
    pub(super) is_reported: bool,
    /// None if the service is not notified and the body is in `bytes`.
    pub(super) exchange: Option<Rc<CachedExchange>>,
}

impl RepeatedResponse {
    /// The head, and a body that is copied behind it.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[self.from as usize..]
    }

    /// Returns where it counts as the response to a request that was received at this moment.
    #[inline]
    pub(super) const fn counted(&self, received: Boottime) -> CountedRequest {
        CountedRequest {
            series: self.series,
            received,
        }
    }

    /// The length of the request, which lies before the response.
    #[inline]
    pub(super) const fn request_len(&self) -> usize {
        self.from as usize
    }

    /// A body that is shared with its source, else empty.
    #[inline]
    pub(super) fn body(&self) -> &[u8] {
        self.exchange
            .as_ref()
            .map_or(&[], |exchange| &exchange.body)
    }
}

const _: () = assert!(
    size_of::<Option<CachedResponse>>() == 64,
    "one line of memory"
);
