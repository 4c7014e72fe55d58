//! Responses that may be given again, and header blocks that are known to ask for them.
//!
//! A connection remembers for a few header blocks which response is theirs: an equal block at an
//! unchanged dynamic table is an equal request, and is not decoded.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use base_clock::Boottime;
use bytes::Bytes;

use super::head::Http2Head;
use super::priority::Priority;
use super::response_head::encode_head;
use super::session::Session;
use super::stream::StreamId;
use crate::limits::REPEATED_ANSWER;
use crate::request_counts::SeriesId;
use crate::response::Response;
use crate::validity::Validity;

/// Header blocks that a connection remembers.
const KNOWN: usize = 16;
/// A body up to this length is copied for the worker: a count of references that all workers share
/// would move from core to core with each response.
const COPIED: usize = 16 << 10;

/// A response, and the request that it answers.
#[derive(Debug)]
pub(crate) struct KnownResponse {
    pub(super) request: Http2Head,
    pub(super) status: u16,
    /// The header block without its date.
    pub(super) head: Box<[u8]>,
    pub(super) body: Bytes,
    /// The series in which a hit counts.
    pub(super) series: SeriesId,
    validity: Validity,
    /// Set by each repetition, so that what connections repeat is not dropped first.
    is_used: Cell<bool>,
}

impl KnownResponse {
    /// Makes an entry of the response to the request of `stream`; none if it is too long or is a
    /// file.
    pub(crate) fn new(
        session: &Session,
        stream: StreamId,
        response: &Response,
        validity: Validity,
    ) -> Option<Self> {
        let body = response.body_in_memory()?;
        let head = encode_head(response);
        let is_short = head.len() + body.len() <= REPEATED_ANSWER;
        is_short.then_some(Self {
            request: session.streams.get(stream.0)?.head.clone(),
            status: response.status,
            head,
            // A part of a body would keep the whole body in memory.
            body: match body.len() <= COPIED || response.status == 206 {
                true => Bytes::copy_from_slice(body),
                false => body.clone(),
            },
            series: SeriesId::default(),
            validity,
            is_used: Cell::new(true),
        })
    }

    /// Counts its hits in this series.
    pub(crate) fn counted_in(self, series: SeriesId) -> Self {
        Self { series, ..self }
    }

    /// Returns whether it answers the request whose head has this [text](Session::repeatable_text).
    pub(crate) fn is_for(&self, text: &[u8]) -> bool {
        self.request.text() == text
    }

    /// Returns whether it may be given to a request that was received at `received`, which it then
    /// is.
    pub(crate) fn is_valid(&self, received: Boottime) -> bool {
        let is_valid = self.validity.is_valid(received);
        if is_valid {
            self.is_used.set(true);
        }
        is_valid
    }

    /// Returns whether it was given since this was asked.
    pub(crate) fn was_used(&self) -> bool {
        self.is_used.take()
    }

    /// Returns whether it will never be valid again.
    pub(crate) fn is_over(&self) -> bool {
        self.validity.is_over()
    }

    /// Returns the bytes of memory that it holds beside the struct itself, roughly.
    pub(crate) fn memory(&self) -> usize {
        self.request.text().len() + self.head.len() + self.body.len()
    }
}

/// The header blocks of one connection whose responses are known.
#[derive(Debug, Default)]
pub(super) struct KnownBlocks(VecDeque<KnownBlock>);

#[derive(Debug)]
struct KnownBlock {
    /// The state of the dynamic table, which the block has not changed: equal bytes at the same
    /// generation are the same request.
    generation: u64,
    block: Box<[u8]>,
    /// The priority that the request asks for.
    priority: Priority,
    /// Weak, so that the memory of the responses is bounded by the worker's cache.
    response: Weak<KnownResponse>,
}

impl KnownBlocks {
    /// Returns the response to a block that was received at `now`, with the priority of its
    /// request.
    pub(super) fn find(
        &self,
        generation: u64,
        block: &[u8],
        now: Boottime,
    ) -> Option<(Priority, Rc<KnownResponse>)> {
        let mut blocks = self.0.iter();
        let known = blocks.find(|it| it.generation == generation && *it.block == *block)?;
        let response = known.response.upgrade()?;
        response.is_valid(now).then_some((known.priority, response))
    }
}

impl Session {
    /// Returns all that the client has said in the head of a request, a line for each field, if an
    /// equal header block would mean the same request: only a GET without a body has one. Equal
    /// texts are equal requests, on all connections that are alike secured.
    pub(crate) fn repeatable_text(&self, stream: StreamId) -> Option<&[u8]> {
        let stream = self.streams.get(stream.0)?;
        stream.generation.map(|_| stream.head.text())
    }

    /// Remembers that the header block of `stream` asks for `response`.
    pub(crate) fn learn(&mut self, stream: StreamId, response: &Rc<KnownResponse>) {
        let Some(stream) = self.streams.get(stream.0) else {
            return;
        };
        let Some(generation) = stream.generation else {
            return;
        };
        let blocks = &mut self.known.0;
        blocks.retain(|known| known.generation == generation && *known.block != *stream.block);
        if blocks.len() >= KNOWN {
            blocks.pop_front();
        }
        blocks.push_back(KnownBlock {
            generation,
            block: stream.block[..].into(),
            priority: stream.priority,
            response: Rc::downgrade(response),
        });
    }
}
