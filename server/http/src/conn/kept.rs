//! What is kept of an answer: the request, the whole of what was sent, and its validity.

use std::net::SocketAddr;
use std::rc::Rc;

use base_clock::Boottime;
use bytes::Bytes;

use crate::h1::{Decoder, FieldSpan, Head, request};
use crate::limits::REPEATED_ANSWER;
use crate::prefetch::prefetch;
use crate::request::Request;
use crate::validity::Validity;

/// What stands around it in memory, roughly.
const OVERHEAD: usize = 512;

/// A request that was answered, for whoever is told of it when it comes again.
#[derive(Debug)]
pub(super) struct Known {
    bytes: Box<[u8]>,
    head: Head,
    fields: Box<[FieldSpan]>,
    /// The length of the answer's head.
    pub(super) answer_head: usize,
}

impl Known {
    pub(super) fn new(decoder: &Decoder, head: &Head, answer_head: usize) -> Self {
        let (bytes, fields) = decoder.parts_of(head);
        Self {
            bytes: bytes.into(),
            head: *head,
            fields: fields.into(),
            answer_head,
        }
    }

    /// The request as it came from `peer` this time.
    pub(super) fn request(&self, peer: SocketAddr, received: Boottime) -> Request<'_> {
        let none = Bytes::new();
        request(&self.head, &self.bytes, &self.fields, none, peer, received)
    }
}

/// One request and its answer. Where a thousand answers are in turn, what a look-up costs is lines of memory that are in no cache, and
/// most of all those that lead to each other: this is one, in the table itself, and the request lies before its answer, which
/// has to be read anyway.
#[repr(align(64))]
pub(super) struct Kept {
    /// The bytes of the request, then those of the answer.
    both: Rc<[u8]>,
    request_len: u32,
    /// Where in both the end of the answer's head is, which tells the date.
    tail_at: u32,
    known: Rc<Known>,
    validity: Validity,
    /// The length of the answer's head.
    answer_head: u32,
    status: u16,
    /// Asked for since the set was last looked through for room.
    pub(super) is_used: bool,
}

impl Kept {
    /// An answer to a request, whose head ends with a tail that begins at `tail_at`; none if it is too long.
    pub(super) fn new(
        known: Known,
        status: u16,
        answer: &[&[u8]],
        tail_at: usize,
        validity: Validity,
    ) -> Option<Self> {
        let request: &[u8] = &known.bytes;
        let both = [&[request], answer].concat().concat();
        let request_len = request.len();
        if both.len() - request_len > REPEATED_ANSWER {
            return None;
        }
        Some(Self {
            both: both.into(),
            request_len: request_len.try_into().ok()?,
            tail_at: (request_len + tail_at).try_into().ok()?,
            answer_head: known.answer_head.try_into().ok()?,
            known: Rc::new(known),
            validity,
            status,
            is_used: true,
        })
    }

    /// Whether the response may be given to a request that was received at `received`; then its
    /// head ends with `tail`.
    #[inline]
    pub(super) fn is_valid(&mut self, received: Boottime, tail: &[u8]) -> bool {
        self.validity.is_valid(received) && self.set_tail(tail)
    }

    /// Whether the response will never be valid again.
    pub(super) fn is_over(&self) -> bool {
        self.validity.is_over()
    }

    /// Bytes of memory that it takes, roughly.
    pub(super) fn weight(&self) -> usize {
        // The request is in two places.
        let known = self.known.bytes.len() + size_of_val(&*self.known.fields);
        known + self.both.len() + OVERHEAD
    }

    /// Asks for the memory of the request and of the end of the answer's head.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.both[0]);
        prefetch(&self.both[self.tail_at as usize]);
    }

    /// Whether it answers these bytes.
    #[inline]
    pub(super) fn is_for(&self, request: &[u8]) -> bool {
        self.both.get(..self.request_len as usize) == Some(request)
    }

    /// The answer, to be sent; `is_told` if somebody wants to be told of the request when that is done.
    #[inline]
    pub(super) fn answer(&self, is_told: bool) -> Again {
        Again {
            both: Rc::clone(&self.both),
            from: self.request_len,
            answer_head: self.answer_head,
            status: self.status,
            told: is_told.then(|| Rc::clone(&self.known)),
        }
    }

    /// Makes the answer say `tail`, false if it cannot. An answer that is still being sent keeps the tail it has.
    #[inline]
    fn set_tail(&mut self, tail: &[u8]) -> bool {
        let start = self.tail_at as usize;
        let place = start..start + tail.len();
        if self.both.get(place.clone()) == Some(tail) {
            return true;
        }
        let is_tail = |old: &[u8]| old.ends_with(b"\r\n\r\n");
        if !self.both.get(place.clone()).is_some_and(is_tail) {
            return false;
        }
        if Rc::get_mut(&mut self.both).is_none() {
            self.both = Rc::from(&self.both[..]);
        }
        Rc::get_mut(&mut self.both).is_some_and(|both| {
            both[place].copy_from_slice(tail);
            true
        })
    }
}

/// An answer that is given again.
#[derive(Debug)]
pub(super) struct Again {
    /// It begins at `from`.
    pub(super) both: Rc<[u8]>,
    pub(super) from: u32,
    /// The length of its head.
    pub(super) answer_head: u32,
    pub(super) status: u16,
    /// The request, for whoever wants to be told of it.
    pub(super) told: Option<Rc<Known>>,
}

impl Again {
    /// Head and body.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.both[self.from as usize..]
    }
}

const _: () = assert!(size_of::<Option<Kept>>() == 64, "one line of memory");
