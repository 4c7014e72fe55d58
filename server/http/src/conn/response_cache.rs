//! Responses to requests that arrive again byte for byte.
//!
//! Most requests for a page or a file have the same bytes as an earlier one: clients of one kind,
//! proxies and programs send the same head each time. Such a head needs no second parsing, routing
//! or look-up. The cache has the response, head and body, and sends it as it is, once its
//! [validity](crate::Validity) has confirmed it. A request that has no entry, or whose entry is not
//! valid, is parsed and given to the service; so the cache gives no response that the service would
//! not give.
//!
//! Only complete heads of GET without content are cached, at their second appearance, so that heads
//! that arrive once cost a hash and no memory.
//!
//! HTTP/2 has the same cache with another encoding. Its request is the text of the head, which is
//! the same on all connections.

use std::hash::{BuildHasher as _, Hasher as _};
use std::rc::Rc;

use base_clock::Boottime;
use foldhash::quality::RandomState;
use memchr::memmem::Finder;

use super::cached_response::CachedResponse;
use crate::h2::KnownResponse;
use crate::limits::REPEATED_BYTES;
use crate::prefetch::prefetch;

/// With this number, a thousand different responses seldom meet in one set.
const SETS: usize = 2048;
const WAYS: usize = 4;
/// Sets of heads that appeared once. Each remembers its last few heads, because two heads of one
/// set that arrive in turn would otherwise each be new every time.
const SEEN: usize = 4096;

#[derive(Default)]
#[repr(align(64))]
struct CacheSet {
    tags: [u32; WAYS],
    responses: [Option<CacheEntry>; WAYS],
}

/// A response as its protocol encodes it.
enum CacheEntry {
    Http1(CachedResponse),
    Http2(Rc<KnownResponse>),
}

const _: () = assert!(size_of::<Option<CacheEntry>>() == 64, "one line of memory");

/// Memory that one entry takes beside its bytes, roughly.
const OVERHEAD: usize = 512;

impl CacheEntry {
    /// Returns the bytes of memory that the entry may hold, roughly.
    fn weight(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Http1(response) => response.memory(),
                Self::Http2(response) => response.memory(),
            }
    }

    /// Returns whether the response will never be valid again.
    fn is_over(&self) -> bool {
        match self {
            Self::Http1(response) => response.is_over(),
            Self::Http2(response) => response.is_over(),
        }
    }

    /// Returns whether a request hit the entry since this was asked.
    fn was_used(&mut self) -> bool {
        match self {
            Self::Http1(response) => std::mem::take(&mut response.is_used),
            Self::Http2(response) => response.was_used(),
        }
    }
}

/// See the [module](self).
pub(crate) struct ResponseCache {
    sets: Box<[CacheSet]>,
    seen: Box<[[u32; WAYS]]>,
    /// Seeded at random, so that requests that fall into one set are hard to choose. They would
    /// only displace each other.
    hasher: RandomState,
    bytes: usize,
    /// The set that the next sweep looks through.
    next: usize,
    end_of_head: Finder<'static>,
    /// The length of the last head of a pipeline that had a response, on any connection.
    pub(super) last_len: usize,
}

/// The end of a head.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";

/// Sets that are searched for entries that are over, each time a response is cached.
const SWEPT: usize = 16;

/// The hash and the length of a request's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHash {
    value: u64,
    len: usize,
}

impl RequestHash {
    /// True if the request has this length: a request behind empty lines does not have the bytes
    /// that were hashed.
    pub(super) const fn has_len(self, len: usize) -> bool {
        self.len == len
    }

    const fn set(self) -> usize {
        (self.value as usize) % SETS
    }

    /// Never the tag of an empty way.
    const fn tag(self) -> u32 {
        (self.value >> 32) as u32 | 1
    }
}

impl Default for ResponseCache {
    /// An empty cache.
    fn default() -> Self {
        Self {
            sets: (0..SETS).map(|_| CacheSet::default()).collect(),
            seen: vec![[0; WAYS]; SEEN].into(),
            hasher: RandomState::default(),
            bytes: 0,
            next: 0,
            end_of_head: Finder::new(EMPTY_LINE),
            last_len: 0,
        }
    }
}

impl ResponseCache {
    /// The head with which `input` begins, if it is complete.
    pub(super) fn head<'i>(&self, input: &'i [u8]) -> Option<&'i [u8]> {
        self.end_of_head
            .find(input)
            .map(|at| &input[..at + EMPTY_LINE.len()])
    }

    /// Bytes that are probably the head with which `input` begins, found without a search: the
    /// heads of a pipeline are often of one length. They may be several heads; then they have no
    /// response, because the request of an entry is exactly one head.
    #[inline]
    pub(super) fn guess<'i>(&self, input: &'i [u8]) -> Option<&'i [u8]> {
        let head = input.get(..self.last_len)?;
        head.ends_with(EMPTY_LINE).then_some(head)
    }

    /// The hash of `input` if it ends like a head. It may be several heads, which have no entry.
    /// Prefetches the set.
    #[inline]
    pub(super) fn hash_alone(&self, input: &[u8]) -> Option<RequestHash> {
        input.ends_with(EMPTY_LINE).then(|| {
            let hash = self.hash(input);
            prefetch(&self.sets[hash.set()]);
            hash
        })
    }

    /// The hash of a request whose head is complete.
    #[inline]
    pub(super) fn hash(&self, request: &[u8]) -> RequestHash {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(request);
        RequestHash {
            value: hasher.finish(),
            len: request.len(),
        }
    }

    /// Prefetches the entry. Called before [`ResponseCache::prefetch_response`], with other work in
    /// between.
    pub(super) fn prefetch_entry(&self, hash: RequestHash) {
        if let Some(entry) = self.sets[hash.set()].likely(hash) {
            prefetch(entry);
        }
    }

    /// Prefetches the response. Called before the look-up, with other work in between.
    pub(super) fn prefetch_response(&self, hash: RequestHash) {
        if let Some(Some(CacheEntry::Http1(response))) = self.sets[hash.set()].likely(hash) {
            response.prefetch();
        }
    }

    /// The response to `request`, which was received at `received`; `tail` is the end of a head in
    /// this second. Drops a response that is not valid.
    pub(super) fn get(
        &mut self,
        hash: RequestHash,
        request: &[u8],
        received: Boottime,
        tail: &[u8],
    ) -> Option<&CachedResponse> {
        let is_for = |entry: &Option<CacheEntry>| match entry {
            Some(CacheEntry::Http1(response)) => response.is_for(request),
            _ => false,
        };
        let entry = self.sets[hash.set()].find(hash, is_for)?;
        if let Some(CacheEntry::Http1(response)) = entry {
            response.is_used = response.is_valid(received, tail);
            if !response.is_used {
                // The request was seen often enough for its next response to be cached at once.
                self.bytes -= entry.take().map_or(0, |old| old.weight());
            }
        }
        match entry {
            Some(CacheEntry::Http1(response)) => Some(response),
            _ => None,
        }
    }

    /// Returns the response to the request of HTTP/2 with this text, as [`ResponseCache::get`]
    /// does.
    pub(super) fn get_http2(
        &mut self,
        hash: RequestHash,
        text: &[u8],
        received: Boottime,
    ) -> Option<Rc<KnownResponse>> {
        let is_for = |entry: &Option<CacheEntry>| match entry {
            Some(CacheEntry::Http2(response)) => response.is_for(text),
            _ => false,
        };
        let entry = self.sets[hash.set()].find(hash, is_for)?;
        if let Some(CacheEntry::Http2(response)) = entry
            && response.is_valid(received)
        {
            return Some(Rc::clone(response));
        }
        self.bytes -= entry.take().map_or(0, |old| old.weight());
        None
    }

    /// True if the request appeared before; remembers that it appeared.
    pub(super) fn appeared_before(&mut self, request: RequestHash) -> bool {
        let seen = &mut self.seen[(request.value >> 20) as usize % SEEN];
        let tag = request.tag();
        if seen.contains(&tag) {
            return true;
        }
        seen.rotate_right(1);
        seen[0] = tag;
        false
    }

    /// Caches the response to the request with this hash, for as long as it is valid.
    pub(super) fn insert(&mut self, hash: RequestHash, response: CachedResponse) {
        self.insert_entry(hash, CacheEntry::Http1(response));
    }

    /// Caches a response of HTTP/2.
    pub(super) fn insert_http2(&mut self, hash: RequestHash, response: &Rc<KnownResponse>) {
        self.insert_entry(hash, CacheEntry::Http2(Rc::clone(response)));
    }

    fn insert_entry(&mut self, hash: RequestHash, entry: CacheEntry) {
        // A response that is over may hold memory that its source has dropped.
        (0..SWEPT).for_each(|_| self.sweep(|old| old.is_over()));
        while self.bytes + entry.weight() > REPEATED_BYTES {
            // Drops the responses that no request hit since the last sweep of their set.
            self.sweep(|old| !old.was_used());
        }
        self.bytes += entry.weight();
        let set = &mut self.sets[hash.set()];
        let way = set.way();
        set.tags[way] = hash.tag();
        if let Some(old) = set.responses[way].replace(entry) {
            self.bytes -= old.weight();
        }
    }

    /// Drops the responses of the next set for which `is_dropped` is true.
    fn sweep(&mut self, mut is_dropped: impl FnMut(&mut CacheEntry) -> bool) {
        for response in &mut self.sets[self.next].responses {
            if let Some(old) = response.take_if(&mut is_dropped) {
                self.bytes -= old.weight();
            }
        }
        self.next = (self.next + 1) % SETS;
    }
}

impl CacheSet {
    /// Returns the first entry with the tag of `hash` for which `is_for` is true.
    #[inline]
    fn find(
        &mut self,
        hash: RequestHash,
        is_for: impl Fn(&Option<CacheEntry>) -> bool,
    ) -> Option<&mut Option<CacheEntry>> {
        let is_match = |way: &usize| self.tags[*way] == hash.tag() && is_for(&self.responses[*way]);
        let way = (0..WAYS).find(is_match)?;
        Some(&mut self.responses[way])
    }

    /// The first entry with the tag of `hash`: nearly always that of the request, if it has one.
    fn likely(&self, hash: RequestHash) -> Option<&Option<CacheEntry>> {
        let way = (0..WAYS).find(|way| self.tags[*way] == hash.tag())?;
        Some(&self.responses[way])
    }

    /// The way for another response: an empty one, or one whose response was not used lately.
    fn way(&mut self) -> usize {
        let empty = self.responses.iter().position(Option::is_none);
        empty.unwrap_or_else(|| {
            let is_unused = |entry: &mut Option<CacheEntry>| {
                entry.as_mut().is_some_and(|entry| !entry.was_used())
            };
            self.responses.iter_mut().position(is_unused).unwrap_or(0)
        })
    }
}

#[cfg(test)]
#[path = "response_cache_tests.rs"]
mod tests;
