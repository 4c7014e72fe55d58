//! Responses to requests that come again over HTTP/2.
//!
//! A worker keeps the encoded responses by the text of the request's head, which is the same on all
//! connections.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::rc::Rc;

use base_clock::Boottime;
use foldhash::fast::RandomState;

use crate::h2::KnownResponse;
use crate::limits::REPEATED_BYTES;

/// Memory that an entry takes beside its bytes, roughly.
const OVERHEAD: usize = 512;
/// Sets of marks of requests that came once. Each remembers its last few requests, because two
/// requests of one set that arrive in turn would otherwise each be new every time.
const MARKED: usize = 4096;
const WAYS: usize = 4;

/// The responses of a worker.
#[derive(Default)]
pub(crate) struct Http2Cache {
    hasher: RandomState,
    entries: HashMap<u64, Rc<KnownResponse>, RandomState>,
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
    pub(super) fn get(
        &mut self,
        hash: u64,
        text: &[u8],
        now: Boottime,
    ) -> Option<Rc<KnownResponse>> {
        let found = self.entries.get(&hash)?;
        if !found.is_for(text) {
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
    pub(super) fn insert(&mut self, hash: u64, cached: KnownResponse) -> Rc<KnownResponse> {
        self.remove(hash);
        let cached = Rc::new(cached);
        self.bytes += weight(&cached);
        self.order.push_back(hash);
        self.entries.insert(hash, Rc::clone(&cached));
        while self.bytes > REPEATED_BYTES || self.order.len() > 2 * self.entries.len() + 16 {
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
            self.bytes -= weight(&old);
        }
    }
}

fn weight(response: &KnownResponse) -> usize {
    response.memory() + OVERHEAD
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
