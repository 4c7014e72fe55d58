//! Responses to requests that come again over HTTP/2.
//!
//! A worker keeps the encoded responses by the text of the request's head, which is the same on all
//! connections. Each connection remembers for a few header blocks which of these responses is
//! theirs: an equal block at an unchanged dynamic table is an equal request, and is not decoded.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use base_clock::Boottime;
use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::h2::{Http2Head, KnownRequests, Priority, Session, StreamId, encode_head};
use crate::limits::{REPEATED_ANSWER, REPEATED_BYTES};
use crate::request::Request;
use crate::response::{Body, Response};
use crate::status::is_bodiless;
use crate::validity::Validity;

/// Header blocks that a connection remembers.
const KNOWN: usize = 16;
/// A body up to this length is copied for the worker: a count of references that all workers share
/// would move from core to core with each response.
const COPIED: usize = 16 << 10;
/// Memory that an entry takes beside its bytes, roughly.
const OVERHEAD: usize = 512;
/// Sets of marks of requests that came once. Each remembers its last few requests, because two
/// requests of one set that arrive in turn would otherwise each be new every time.
const MARKED: usize = 4096;
const WAYS: usize = 4;

/// A response, and the request that it answers.
pub(super) struct CachedHttp2 {
    head_of_request: Http2Head,
    pub(super) status: u16,
    /// The header block without its date.
    pub(super) head: Box<[u8]>,
    pub(super) body: Body,
    validity: Validity,
}

impl CachedHttp2 {
    /// The response to the request of `stream`; none if it is too long or is a file.
    pub(super) fn new(
        session: &Session,
        stream: StreamId,
        response: &Response,
        validity: Validity,
    ) -> Option<Self> {
        let body = match &response.body {
            _ if is_bodiless(response.status) => Body::Empty,
            Body::Empty => Body::Empty,
            Body::Bytes(bytes) if bytes.len() <= COPIED => {
                Body::Bytes(Bytes::copy_from_slice(bytes))
            }
            // A part of a body would keep the whole body in memory.
            Body::Bytes(bytes) if response.status != 206 => Body::Bytes(bytes.clone()),
            Body::Bytes(_) | Body::File { .. } | Body::Streamed(_) => return None,
        };
        let head = encode_head(response);
        let is_short = head.len() as u64 + body.len() <= REPEATED_ANSWER as u64;
        is_short.then_some(Self {
            head_of_request: session.head(stream)?.clone(),
            status: response.status,
            head,
            body,
            validity,
        })
    }

    /// The request, as received from `peer` at `received`.
    pub(super) fn request(&self, peer: SocketAddr, received: Boottime) -> Request<'_> {
        self.head_of_request.request(Bytes::new(), peer, received)
    }

    fn is_valid(&self, received: Boottime) -> bool {
        self.validity.is_valid(received)
    }

    /// Bytes of memory that the entry may hold, roughly.
    fn weight(&self) -> usize {
        let body = usize::try_from(self.body.len()).unwrap_or(usize::MAX);
        self.head_of_request.text().len() + self.head.len() + body + OVERHEAD
    }
}

/// The responses of a worker.
#[derive(Default)]
pub(crate) struct Http2Cache {
    hasher: RandomState,
    entries: HashMap<u64, Rc<CachedHttp2>, RandomState>,
    /// The hashes in the order in which they came in.
    order: VecDeque<u64>,
    bytes: usize,
    marks: Box<[[u32; WAYS]]>,
}

impl Http2Cache {
    /// The hash of a request's head.
    pub(super) fn hash(&self, text: &[u8]) -> u64 {
        self.hasher.hash_one(text)
    }

    /// The response to the request with this head, received at `now`, if it is still valid.
    pub(super) fn get(&mut self, hash: u64, text: &[u8], now: Boottime) -> Option<Rc<CachedHttp2>> {
        let found = self.entries.get(&hash)?;
        if found.head_of_request.text() != text {
            return None;
        }
        if found.is_valid(now) {
            return Some(Rc::clone(found));
        }
        self.remove(hash);
        None
    }

    /// Whether a request with this hash came before. The first time the answer is no.
    pub(super) fn appeared_before(&mut self, hash: u64) -> bool {
        if self.marks.is_empty() {
            self.marks = vec![[0; WAYS]; MARKED].into();
        }
        let marks = &mut self.marks[hash as usize % MARKED];
        let mark = (hash >> 32) as u32 | 1;
        if marks.contains(&mark) {
            return true;
        }
        marks.rotate_right(1);
        marks[0] = mark;
        false
    }

    /// Keeps a response; the oldest ones make room.
    pub(super) fn insert(&mut self, hash: u64, cached: CachedHttp2) -> Rc<CachedHttp2> {
        self.remove(hash);
        let cached = Rc::new(cached);
        self.bytes += cached.weight();
        self.order.push_back(hash);
        self.entries.insert(hash, Rc::clone(&cached));
        while self.bytes > REPEATED_BYTES || self.order.len() > 2 * self.entries.len() + KNOWN {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            // A hash that was put in again stands further back as well.
            if self.bytes > REPEATED_BYTES || !self.order.contains(&oldest) {
                self.remove(oldest);
            }
        }
        cached
    }

    fn remove(&mut self, hash: u64) {
        if let Some(old) = self.entries.remove(&hash) {
            self.bytes -= old.weight();
        }
    }
}

/// The header blocks of one connection whose responses are known.
#[derive(Default)]
pub(super) struct KnownBlocks {
    blocks: VecDeque<KnownBlock>,
    /// Responses to the blocks that were found, in the order of their events.
    found: VecDeque<Rc<CachedHttp2>>,
    /// Requests whose streams have no head of their own, for the access log.
    noted: Vec<(StreamId, Rc<CachedHttp2>)>,
    /// When the bytes were received.
    pub(super) now: Boottime,
}

struct KnownBlock {
    generation: u64,
    block: Box<[u8]>,
    priority: Priority,
    /// Weak, so that the memory of the responses is bounded by the worker's cache.
    response: Weak<CachedHttp2>,
}

impl KnownBlocks {
    /// Remembers that the header block of `stream` asks for `cached`.
    pub(super) fn learn(&mut self, session: &Session, stream: StreamId, cached: &Rc<CachedHttp2>) {
        let Some(block) = session.repeatable(stream) else {
            return;
        };
        self.blocks
            .retain(|known| known.generation == block.generation && *known.block != *block.bytes);
        if self.blocks.len() >= KNOWN {
            self.blocks.pop_front();
        }
        self.blocks.push_back(KnownBlock {
            generation: block.generation,
            block: block.bytes.into(),
            priority: block.priority,
            response: Rc::downgrade(cached),
        });
    }

    /// The response to the next block that was found.
    pub(super) fn take_found(&mut self) -> Option<Rc<CachedHttp2>> {
        self.found.pop_front()
    }

    /// Remembers the request of a stream until it has ended.
    pub(super) fn note(&mut self, stream: StreamId, cached: &Rc<CachedHttp2>) {
        self.noted.push((stream, Rc::clone(cached)));
    }

    /// The request of a stream that has ended, if it was noted.
    pub(super) fn forget(&mut self, stream: StreamId) -> Option<Rc<CachedHttp2>> {
        let at = self.noted.iter().position(|(noted, _)| *noted == stream)?;
        Some(self.noted.swap_remove(at).1)
    }
}

impl KnownRequests for KnownBlocks {
    fn find(&mut self, generation: u64, block: &[u8]) -> Option<Priority> {
        let known = self
            .blocks
            .iter()
            .find(|known| known.generation == generation && *known.block == *block)?;
        let response = known.response.upgrade()?;
        if !response.is_valid(self.now) {
            return None;
        }
        self.found.push_back(response);
        Some(known.priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_set_that_arrive_in_turn_are_remembered() {
        let mut cache = Http2Cache::default();
        let hashes = (1..=WAYS as u64).map(|number| number << 40 | 7);
        for round in 0..3 {
            for hash in hashes.clone() {
                assert_eq!(cache.appeared_before(hash), round > 0, "{hash:x}, {round}");
            }
        }
    }
}
