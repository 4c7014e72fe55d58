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
    Http2 {
        response: Rc<KnownResponse>,
        is_used: bool,
    },
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
                Self::Http2 { response, .. } => response.memory(),
            }
    }

    /// Returns whether the response will never be valid again.
    fn is_over(&self) -> bool {
        match self {
            Self::Http1(response) => response.is_over(),
            Self::Http2 { response, .. } => response.is_over(),
        }
    }

    /// Returns whether a request hit the entry since this was asked.
    fn was_used(&mut self) -> bool {
        std::mem::take(match self {
            Self::Http1(response) => &mut response.is_used,
            Self::Http2 { is_used, .. } => is_used,
        })
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
    /// Whether the request has this length: a request behind empty lines does not have the bytes
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
            Some(CacheEntry::Http2 { response, .. }) => response.is_for(text),
            _ => false,
        };
        let entry = self.sets[hash.set()].find(hash, is_for)?;
        if let Some(CacheEntry::Http2 { response, is_used }) = entry
            && response.is_valid(received)
        {
            *is_used = true;
            return Some(Rc::clone(response));
        }
        self.bytes -= entry.take().map_or(0, |old| old.weight());
        None
    }

    /// Whether the request appeared before; remembers that it appeared.
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
        let entry = CacheEntry::Http2 {
            response: Rc::clone(response),
            is_used: true,
        };
        self.insert_entry(hash, entry);
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
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use bytes::Bytes;

    use super::super::cached_response::{RepeatedResponse, ResponseParts};
    use super::super::output::COPIED;
    use super::*;
    use crate::h1::{Decoder, Event};
    use crate::h2::StreamId;
    use crate::h2::frame::END_STREAM;
    use crate::h2::tests::support::{GET, TestClient};
    use crate::limits::REPEATED_ANSWER;
    use crate::validity::{Validity, ValidityCheck};
    use crate::{Limits, Response};

    struct Switch(Rc<Cell<bool>>);

    impl ValidityCheck for Switch {
        fn is_valid(&self, _received: Boottime) -> bool {
            self.0.get()
        }

        fn is_over(&self) -> bool {
            !self.0.get()
        }
    }

    const NOW: Boottime = Boottime::from_nanos(1);
    const TAIL: &[u8] = b"Date: 1\r\n\r\n";

    fn keep(cache: &mut ResponseCache, request: &str, body: Bytes, is_valid: &Rc<Cell<bool>>) {
        let hash = missed(cache, request);
        let mut decoder = Decoder::new();
        let limits = Limits::default();
        decoder.space(&limits)[..request.len()].copy_from_slice(request.as_bytes());
        decoder.received(request.len());
        let Event::Request(head, _) = decoder.next(&limits) else {
            panic!("{request:?}");
        };
        let parts = ResponseParts {
            status: 200,
            head: [b"head\r\n", b""],
            tail: TAIL,
            body,
        };
        let validity = Validity::Check(Box::new(Switch(Rc::clone(is_valid))));
        if let Some(response) = CachedResponse::new(&decoder, &head, parts, validity) {
            cache.insert(hash, response);
        }
    }

    /// The response that the cache has, as it is sent.
    fn get(cache: &mut ResponseCache, request: &str, tail: &[u8]) -> Option<RepeatedResponse> {
        let hash = cache.hash(request.as_bytes());
        let found = cache.get(hash, request.as_bytes(), NOW, tail);
        found.map(|response| response.repeat(false))
    }

    fn text(response: &RepeatedResponse) -> &str {
        std::str::from_utf8(response.text()).unwrap()
    }

    fn missed(cache: &mut ResponseCache, request: &str) -> RequestHash {
        assert!(get(cache, request, TAIL).is_none());
        cache.hash_alone(request.as_bytes()).unwrap()
    }

    fn asking(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    fn counted(cache: &ResponseCache) -> usize {
        let kept = cache.sets.iter().flat_map(|set| &set.responses).flatten();
        kept.map(|kept| kept.weight()).sum()
    }

    #[test]
    fn a_response_is_given_for_as_long_as_it_is_valid() {
        let mut cache = ResponseCache::default();
        let is_valid = Rc::new(Cell::new(true));
        let request = asking("/");
        keep(&mut cache, &request, "body".into(), &is_valid);
        let answer = get(&mut cache, &request, b"Date: 2\r\n\r\n").unwrap();
        assert_eq!(text(&answer), "head\r\nDate: 2\r\n\r\nbody");
        let later = get(&mut cache, &request, b"Date: 3\r\n\r\n").unwrap();
        assert_eq!(text(&later), "head\r\nDate: 3\r\n\r\nbody");
        assert_eq!(text(&answer), "head\r\nDate: 2\r\n\r\nbody", "on its way");
        assert!(get(&mut cache, &asking("/?"), TAIL).is_none());
        is_valid.set(false);
        assert!(get(&mut cache, &request, TAIL).is_none());
        is_valid.set(true);
        assert!(get(&mut cache, &request, TAIL).is_none(), "forgotten");
        assert_eq!((cache.bytes, counted(&cache)), (0, 0));
    }

    #[test]
    fn only_what_comes_twice_appeared_before() {
        let mut cache = ResponseCache::default();
        let request = asking("/");
        let first = missed(&mut cache, &request);
        assert!(!cache.appeared_before(first));
        let second = missed(&mut cache, &request);
        assert!(cache.appeared_before(second));
        // A thousand in turn are not in each other's way.
        let mut wanted = |target: usize| {
            let hash = missed(&mut cache, &asking(&target.to_string()));
            cache.appeared_before(hash)
        };
        assert_eq!((0..1000).filter(|n| wanted(*n)).count(), 0);
        assert!((0..1000).filter(|n| wanted(*n)).count() > 990);
    }

    #[test]
    fn requests_of_one_set_that_arrive_in_turn_are_remembered() {
        let mut cache = ResponseCache::default();
        let hashes = (1..=WAYS as u64).map(|number| RequestHash {
            value: number << 40 | 7 << 20,
            len: 0,
        });
        for round in 0..3 {
            for hash in hashes.clone() {
                assert_eq!(cache.appeared_before(hash), round > 0, "{hash:?}, {round}");
            }
        }
    }

    /// Keeps a response of HTTP/2; the hash and the text of its request.
    fn keep_http2(
        cache: &mut ResponseCache,
        target: &str,
        body: Bytes,
        is_valid: &Rc<Cell<bool>>,
    ) -> (RequestHash, Vec<u8>) {
        let mut client = TestClient::new();
        let mut head = GET;
        head[2].1 = target;
        client.head(1, END_STREAM, &head);
        let stream = StreamId::of_client(1).unwrap();
        let validity = Validity::Check(Box::new(Switch(Rc::clone(is_valid))));
        let response = Response::builder(200).body(body);
        let known = KnownResponse::new(&client.session, stream, &response, validity).unwrap();
        let text = client.session.repeatable_text(stream).unwrap();
        let hash = cache.hash(text);
        cache.insert_http2(hash, &Rc::new(known));
        (hash, text.to_vec())
    }

    #[test]
    fn a_response_of_http2_is_given_for_as_long_as_it_is_valid() {
        let mut cache = ResponseCache::default();
        let is_valid = Rc::new(Cell::new(true));
        let (hash, text) = keep_http2(&mut cache, "/", "body".into(), &is_valid);
        assert!(cache.get_http2(hash, &text, NOW).is_some());
        assert!(cache.get_http2(hash, b"another", NOW).is_none());
        assert!(
            cache.get(hash, &text, NOW, TAIL).is_none(),
            "another encoding"
        );
        is_valid.set(false);
        assert!(cache.get_http2(hash, &text, NOW).is_none());
        is_valid.set(true);
        assert!(cache.get_http2(hash, &text, NOW).is_none(), "forgotten");
        assert_eq!((cache.bytes, counted(&cache)), (0, 0));
    }

    #[test]
    fn the_bytes_are_bounded_and_counted() {
        let mut cache = ResponseCache::default();
        let is_valid = Rc::new(Cell::new(true));
        let body = Bytes::from(vec![b'x'; REPEATED_ANSWER / 2]);
        for n in 0..3 * REPEATED_BYTES / body.len() {
            let target = format!("/{n}");
            if n % 2 == 0 {
                keep(&mut cache, &asking(&target), body.clone(), &is_valid);
            } else {
                keep_http2(&mut cache, &target, body.clone(), &is_valid);
            }
            assert!(cache.bytes <= REPEATED_BYTES);
        }
        assert_eq!(cache.bytes, counted(&cache));
        assert!(cache.bytes > REPEATED_BYTES / 2);
        let large = asking("/large");
        keep(
            &mut cache,
            &large,
            vec![0; REPEATED_ANSWER + 1].into(),
            &is_valid,
        );
        assert!(get(&mut cache, &large, TAIL).is_none());
    }

    #[test]
    fn what_is_over_does_not_stay_until_it_is_asked_for() {
        let mut cache = ResponseCache::default();
        let over = Rc::new(Cell::new(true));
        for n in 0..500 {
            let target = format!("/old/{n}");
            keep(&mut cache, &asking(&target), "old".into(), &over);
            keep_http2(&mut cache, &target, "old".into(), &over);
        }
        over.set(false);
        let is_valid = Rc::new(Cell::new(true));
        for n in 0..SETS / SWEPT {
            keep(
                &mut cache,
                &asking(&format!("/{n}")),
                "new".into(),
                &is_valid,
            );
        }
        assert_eq!(Rc::strong_count(&over), 1);
        assert_eq!(cache.bytes, counted(&cache));
    }

    #[test]
    fn a_head_ends_where_an_empty_line_is() {
        let cache = ResponseCache::default();
        assert_eq!(cache.head(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        let two = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2";
        assert_eq!(cache.head(two), Some(&two[..two.len() - 6]));
    }

    #[test]
    fn one_body_serves_its_source_and_all_workers() {
        let source = Bytes::from(vec![b'x'; COPIED + 1]);
        let is_valid = Rc::new(Cell::new(true));
        let request = asking("/");
        let mut workers = [ResponseCache::default(), ResponseCache::default()];
        for cache in &mut workers {
            keep(cache, &request, source.clone(), &is_valid);
            for _ in 0..3 {
                let response = get(cache, &request, TAIL).unwrap();
                assert_eq!(text(&response), "head\r\nDate: 1\r\n\r\n");
                assert_eq!(response.body().as_ptr(), source.as_ptr(), "no copy");
            }
            // The body counts for each worker, which may keep it longer than its source does.
            assert!(cache.bytes > source.len());
        }
        assert!(!source.is_unique());
        is_valid.set(false);
        for cache in &mut workers {
            assert!(get(cache, &request, TAIL).is_none());
        }
        assert!(source.is_unique(), "no worker keeps a reference");
    }

    #[test]
    fn a_part_of_a_body_does_not_keep_the_whole() {
        let source = Bytes::from(vec![b'x'; 1 << 20]);
        let mut decoder = Decoder::new();
        let limits = Limits::default();
        let request = asking("/");
        decoder.space(&limits)[..request.len()].copy_from_slice(request.as_bytes());
        decoder.received(request.len());
        let Event::Request(head, _) = decoder.next(&limits) else {
            panic!("{request:?}");
        };
        let parts = ResponseParts {
            status: 206,
            head: [b"head\r\n", b""],
            tail: TAIL,
            body: source.slice(..COPIED + 1),
        };
        let validity = Validity::Check(Box::new(Switch(Rc::new(Cell::new(true)))));
        let part = CachedResponse::new(&decoder, &head, parts, validity).unwrap();
        assert!(source.is_unique());
        assert_eq!(part.repeat(false).body().len(), COPIED + 1);
    }
}
