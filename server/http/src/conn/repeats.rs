//! Answers to requests that come again byte for byte.
//!
//! Most requests for a page or a file are the bytes of another: clients of one kind, proxies and programs send the same head
//! each time. Such a head needs no second parsing, no second route and no second look-up: its answer lies here in one piece, head and body, and
//! is sent as it is, once its [validity](Validity) has said that it is valid. What is not known, or is not valid
//! any more, goes the usual way; so nothing is answered here that would not be answered there.
//!
//! Only complete heads of GET without content are kept, at their second appearance, so that heads that come once cost a hash
//! and no memory.

use base_clock::Boottime;
use memchr::memmem::Finder;
use twox_hash::XxHash3_64;

use super::kept::{Kept, Known};
use crate::limits::REPEATED_BYTES;
use crate::prefetch::prefetch;
use crate::validity::Validity;

/// So many that a thousand answers in turn are seldom too many for one set.
const SETS: usize = 2048;
const WAYS: usize = 4;
/// Sets of heads that were seen once: each remembers the last few, since two that shared one place and came in turn would each
/// be new for ever.
const SEEN: usize = 4096;

#[derive(Default)]
#[repr(align(64))]
struct Set {
    tags: [u32; WAYS],
    kept: [Option<Kept>; WAYS],
}

/// See the [module](self).
pub(crate) struct Repeats {
    sets: Box<[Set]>,
    seen: Box<[[u32; WAYS]]>,
    seed: u64,
    bytes: usize,
    /// The set that is the next to make room.
    next: usize,
    end_of_head: Finder<'static>,
}

/// Sets that are looked through for answers that are over, whenever one is kept.
const SWEPT: usize = 16;

/// Names a request by its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    hash: u64,
    len: usize,
}

impl Named {
    /// Whether it may be one of this length: a request behind empty lines is not the bytes that were looked for.
    pub(super) const fn has_len(self, len: usize) -> bool {
        self.len == len
    }
}

impl Repeats {
    /// Nothing yet. The seed keeps clients from choosing requests that share a place.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            sets: (0..SETS).map(|_| Set::default()).collect(),
            seen: vec![[0; WAYS]; SEEN].into(),
            seed,
            bytes: 0,
            next: 0,
            end_of_head: Finder::new(b"\r\n\r\n"),
        }
    }

    /// The head with which `input` begins, if all of it is there.
    pub(super) fn head<'i>(&self, input: &'i [u8]) -> Option<&'i [u8]> {
        self.end_of_head
            .find(input)
            .map(|at| &input[..at + b"\r\n\r\n".len()])
    }

    /// The name of the request that is all of `input`; none if it is anything else than one whole head. What is kept of it may be asked for
    /// soon.
    pub(super) fn name(&self, input: &[u8]) -> Option<Named> {
        let is_alone = self.head(input)?.len() == input.len();
        is_alone.then(|| {
            let named = self.named(input);
            prefetch(&self.sets[set_of(named.hash)]);
            named
        })
    }

    /// The name of this request, of which the whole head is there.
    #[inline]
    pub(super) fn named(&self, request: &[u8]) -> Named {
        Named {
            hash: XxHash3_64::oneshot_with_seed(self.seed, request),
            len: request.len(),
        }
    }

    /// Before [`Repeats::prefetch_answer`], with something else in between.
    pub(super) fn prefetch_kept(&self, named: Named) {
        let set = &self.sets[set_of(named.hash)];
        if let Some(place) = set.likely(named.hash) {
            prefetch(place);
        }
    }

    /// Before the answer is looked for, with something else in between.
    pub(super) fn prefetch_answer(&self, named: Named) {
        let set = &self.sets[set_of(named.hash)];
        if let Some(Some(kept)) = set.likely(named.hash) {
            kept.prefetch();
        }
    }

    /// The answer to `request`, which was received then; `tail` is the end of a head in this second.
    pub(super) fn find(
        &mut self,
        named: Named,
        request: &[u8],
        received: Boottime,
        tail: &[u8],
    ) -> Result<&Kept, Named> {
        let set = &mut self.sets[set_of(named.hash)];
        let is_it = |way: &usize| {
            let kept = set.kept[*way].as_ref();
            set.tags[*way] == tag_of(named.hash) && kept.is_some_and(|kept| kept.is_for(request))
        };
        let slot = (0..WAYS).find(is_it).map(|way| &mut set.kept[way]);
        let is_invalid = |kept: &mut Kept| {
            kept.is_used = kept.is_valid(received, tail);
            !kept.is_used
        };
        match slot {
            Some(slot) => {
                // It was asked for often enough to be kept again as soon as it is made.
                if let Some(old) = slot.take_if(is_invalid) {
                    self.bytes -= old.weight();
                }
                slot.as_ref().ok_or(named)
            }
            None => Err(named),
        }
    }

    /// Whether `request` has been asked for before.
    pub(super) fn is_wanted(&mut self, request: Named) -> bool {
        let seen = &mut self.seen[(request.hash >> 20) as usize % SEEN];
        let tag = tag_of(request.hash);
        if seen.contains(&tag) {
            return true;
        }
        seen.rotate_right(1);
        seen[0] = tag;
        false
    }

    /// Keeps `answer` to a request, whose head ends with a tail that begins at `tail_at`, for as long as it is valid.
    pub(super) fn keep(
        &mut self,
        unknown: Named,
        known: Known,
        status: u16,
        answer: &[&[u8]],
        tail_at: usize,
        validity: Validity,
    ) {
        let Some(kept) = Kept::new(known, status, answer, tail_at, validity) else {
            return;
        };
        // What is over may hold memory that its source has given up.
        (0..SWEPT).for_each(|_| self.sweep(|kept| kept.is_over()));
        while self.bytes + kept.weight() > REPEATED_BYTES {
            // What was not asked for since it was last its turn.
            self.sweep(|kept| !std::mem::take(&mut kept.is_used));
        }
        self.bytes += kept.weight();
        let set = &mut self.sets[set_of(unknown.hash)];
        let way = set.way();
        set.tags[way] = tag_of(unknown.hash);
        if let Some(old) = set.kept[way].replace(kept) {
            self.bytes -= old.weight();
        }
    }

    /// Forgets what `goes` of the next set.
    fn sweep(&mut self, mut goes: impl FnMut(&mut Kept) -> bool) {
        for kept in &mut self.sets[self.next].kept {
            if let Some(old) = kept.take_if(&mut goes) {
                self.bytes -= old.weight();
            }
        }
        self.next = (self.next + 1) % SETS;
    }
}

impl Set {
    /// The first place with the tag of `hash`: nearly always that of the request, if there is one.
    fn likely(&self, hash: u64) -> Option<&Option<Kept>> {
        let way = (0..WAYS).find(|way| self.tags[*way] == tag_of(hash))?;
        Some(&self.kept[way])
    }

    /// The place for another: a free one, or that of one that was not asked for lately.
    fn way(&mut self) -> usize {
        let free = self.kept.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            let unused = |kept: &mut Option<Kept>| {
                kept.as_mut()
                    .is_some_and(|kept| !std::mem::take(&mut kept.is_used))
            };
            self.kept.iter_mut().position(unused).unwrap_or(0)
        })
    }
}

const fn set_of(hash: u64) -> usize {
    (hash as usize) % SETS
}

/// Never that of an empty place.
const fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::Limits;
    use crate::h1::{Decoder, Event};
    use crate::limits::REPEATED_ANSWER;
    use crate::validity::ValidityCheck;

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

    fn keep(repeats: &mut Repeats, request: &str, body: &[u8], is_valid: &Rc<Cell<bool>>) {
        let unknown = unknown(repeats, request);
        let mut decoder = Decoder::new();
        let limits = Limits::default();
        decoder.space(&limits)[..request.len()].copy_from_slice(request.as_bytes());
        decoder.received(request.len());
        let Event::Request(head, _) = decoder.next(&limits) else {
            panic!("{request:?}");
        };
        let known = Known::new(&decoder, &head, 0);
        repeats.keep(
            unknown,
            known,
            200,
            &[b"head\r\n", TAIL, body],
            "head\r\n".len(),
            Validity::Check(Box::new(Switch(Rc::clone(is_valid)))),
        );
    }

    /// What is found, as it is held for sending.
    fn find(repeats: &mut Repeats, request: &str, tail: &[u8]) -> Option<(Rc<[u8]>, usize)> {
        let named = repeats.named(request.as_bytes());
        let found = repeats.find(named, request.as_bytes(), NOW, tail).ok()?;
        let again = found.answer(false);
        Some((again.both, again.from as usize))
    }

    fn shown((both, from): &(Rc<[u8]>, usize)) -> &str {
        std::str::from_utf8(&both[*from..]).unwrap()
    }

    fn unknown(repeats: &mut Repeats, request: &str) -> Named {
        assert!(find(repeats, request, TAIL).is_none());
        repeats.name(request.as_bytes()).unwrap()
    }

    fn asking(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    fn counted(repeats: &Repeats) -> usize {
        let kept = repeats.sets.iter().flat_map(|set| &set.kept).flatten();
        kept.map(|kept| kept.weight()).sum()
    }

    #[test]
    fn a_response_is_given_for_as_long_as_it_is_valid() {
        let mut repeats = Repeats::new(7);
        let is_valid = Rc::new(Cell::new(true));
        let request = asking("/");
        keep(&mut repeats, &request, b"body", &is_valid);
        let answer = find(&mut repeats, &request, b"Date: 2\r\n\r\n").unwrap();
        assert_eq!(shown(&answer), "head\r\nDate: 2\r\n\r\nbody");
        let later = find(&mut repeats, &request, b"Date: 3\r\n\r\n").unwrap();
        assert_eq!(shown(&later), "head\r\nDate: 3\r\n\r\nbody");
        assert_eq!(shown(&answer), "head\r\nDate: 2\r\n\r\nbody", "on its way");
        assert!(find(&mut repeats, &asking("/?"), TAIL).is_none());
        is_valid.set(false);
        assert!(find(&mut repeats, &request, TAIL).is_none());
        is_valid.set(true);
        assert!(find(&mut repeats, &request, TAIL).is_none(), "forgotten");
        assert_eq!((repeats.bytes, counted(&repeats)), (0, 0));
    }

    #[test]
    fn only_what_comes_twice_is_wanted() {
        let mut repeats = Repeats::new(7);
        let request = asking("/");
        let first = unknown(&mut repeats, &request);
        assert!(!repeats.is_wanted(first));
        let second = unknown(&mut repeats, &request);
        assert!(repeats.is_wanted(second));
        // A thousand in turn are not in each other's way.
        let mut wanted = |target: usize| {
            let unknown = unknown(&mut repeats, &asking(&target.to_string()));
            repeats.is_wanted(unknown)
        };
        assert_eq!((0..1000).filter(|n| wanted(*n)).count(), 0);
        assert!((0..1000).filter(|n| wanted(*n)).count() > 990);
    }

    #[test]
    fn the_bytes_are_bounded_and_counted() {
        let mut repeats = Repeats::new(7);
        let is_valid = Rc::new(Cell::new(true));
        let body = vec![b'x'; REPEATED_ANSWER / 2];
        for n in 0..3 * REPEATED_BYTES / body.len() {
            keep(&mut repeats, &asking(&format!("/{n}")), &body, &is_valid);
            assert!(repeats.bytes <= REPEATED_BYTES);
        }
        assert_eq!(repeats.bytes, counted(&repeats));
        assert!(repeats.bytes > REPEATED_BYTES / 2);
        let large = asking("/large");
        keep(
            &mut repeats,
            &large,
            &vec![0; REPEATED_ANSWER + 1],
            &is_valid,
        );
        assert!(find(&mut repeats, &large, TAIL).is_none());
    }

    #[test]
    fn what_is_over_does_not_stay_until_it_is_asked_for() {
        let mut repeats = Repeats::new(7);
        let over = Rc::new(Cell::new(true));
        for n in 0..500 {
            keep(&mut repeats, &asking(&format!("/old/{n}")), b"old", &over);
        }
        over.set(false);
        let is_valid = Rc::new(Cell::new(true));
        for n in 0..SETS / SWEPT {
            keep(&mut repeats, &asking(&format!("/{n}")), b"new", &is_valid);
        }
        assert_eq!(Rc::strong_count(&over), 1);
        assert_eq!(repeats.bytes, counted(&repeats));
    }

    #[test]
    fn a_head_ends_where_an_empty_line_is() {
        let repeats = Repeats::new(7);
        assert_eq!(repeats.head(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        let two = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2";
        assert_eq!(repeats.head(two), Some(&two[..two.len() - 6]));
    }
}
