//! Answers to requests that come again byte for byte.
//!
//! Most requests for a page or a file are the bytes of another: clients of one kind, proxies and programs send the same head
//! each time. Such a head needs no second parsing, no second route and no second look-up: its answer lies here in one piece, head and body, and
//! is sent as it is, once whoever gave it has said that it [stands](Standing). What is not known, or does not stand
//! any more, goes the usual way; so nothing is answered here that would not be answered there.
//!
//! Only complete heads of GET without content are kept, at their second appearance, so that heads that come once cost a hash
//! and no memory.

use std::rc::Rc;

use memchr::memmem::Finder;
use twox_hash::XxHash3_64;

use crate::limits::{REPEATED_ANSWER, REPEATED_BYTES};
use crate::response::Standing;
use millpond_store::clock::Boottime;

const SETS: usize = 1024;
const WAYS: usize = 4;
/// Heads that were seen once.
const SEEN: usize = 4096;
/// The head and what stands around it in memory, roughly.
const OVERHEAD: usize = 256;

/// One request and its answer.
struct Kept {
    request: Box<[u8]>,
    answer: Rc<[u8]>,
    /// Where the end of the head is, which tells the date.
    tail_at: usize,
    standing: Box<dyn Standing>,
    /// Asked for since the set was last looked through for room.
    is_used: bool,
}

impl Kept {
    fn weight(&self) -> usize {
        self.request.len() + self.answer.len() + OVERHEAD
    }
}

#[derive(Default)]
struct Set {
    tags: [u32; WAYS],
    kept: [Option<Box<Kept>>; WAYS],
}

/// See the [module](self).
pub(crate) struct Repeats {
    sets: Box<[Set]>,
    seen: Box<[u32]>,
    seed: u64,
    bytes: usize,
    /// The set that is the next to make room.
    next: usize,
    end_of_head: Finder<'static>,
}

/// Names a request that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown(u64);

impl Repeats {
    /// Nothing yet. The seed keeps clients from choosing requests that share a place.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            sets: (0..SETS).map(|_| Set::default()).collect(),
            seen: vec![0; SEEN].into(),
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

    /// The answer to `request`, which was received then; `tail` is the end of a head in this second.
    pub(super) fn find(
        &mut self,
        request: &[u8],
        received: Boottime,
        tail: &[u8],
    ) -> Result<Rc<[u8]>, Unknown> {
        let hash = XxHash3_64::oneshot_with_seed(self.seed, request);
        let Set { tags, kept } = &mut self.sets[set_of(hash)];
        for (known, slot) in tags.iter().zip(kept) {
            let Some(kept) = slot.as_mut().filter(|_| *known == tag_of(hash)) else {
                continue;
            };
            if *kept.request != *request {
                continue;
            }
            if kept.standing.stands(received) && kept.set_tail(tail) {
                kept.is_used = true;
                return Ok(Rc::clone(&kept.answer));
            }
            // It was asked for often enough to be kept again as soon as it is made.
            self.bytes -= kept.weight();
            *slot = None;
        }
        Err(Unknown(hash))
    }

    /// Whether `request` has been asked for before.
    pub(super) fn is_wanted(&mut self, request: Unknown) -> bool {
        let seen = &mut self.seen[(request.0 >> 20) as usize % SEEN];
        std::mem::replace(seen, tag_of(request.0)) == tag_of(request.0)
    }

    /// Keeps `answer`, whose head ends with a tail that begins at `tail_at`, for as long as it stands.
    pub(super) fn keep(
        &mut self,
        unknown: Unknown,
        request: &[u8],
        answer: Rc<[u8]>,
        tail_at: usize,
        standing: Box<dyn Standing>,
    ) {
        let kept = Box::new(Kept {
            request: request.into(),
            answer,
            tail_at,
            standing,
            is_used: true,
        });
        if kept.answer.len() > REPEATED_ANSWER {
            return;
        }
        while self.bytes + kept.weight() > REPEATED_BYTES {
            self.make_room();
        }
        self.bytes += kept.weight();
        let set = &mut self.sets[set_of(unknown.0)];
        let way = set.way();
        set.tags[way] = tag_of(unknown.0);
        if let Some(old) = set.kept[way].replace(kept) {
            self.bytes -= old.weight();
        }
    }

    /// Forgets what of one set was not asked for since it was last its turn.
    fn make_room(&mut self) {
        for kept in &mut self.sets[self.next].kept {
            if let Some(old) = kept.take_if(|kept| !std::mem::take(&mut kept.is_used)) {
                self.bytes -= old.weight();
            }
        }
        self.next = (self.next + 1) % SETS;
    }
}

impl Set {
    /// The place for another: a free one, or that of one that was not asked for lately.
    fn way(&mut self) -> usize {
        let free = self.kept.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            let unused = |kept: &mut Option<Box<Kept>>| {
                kept.as_mut()
                    .is_some_and(|kept| !std::mem::take(&mut kept.is_used))
            };
            self.kept.iter_mut().position(unused).unwrap_or(0)
        })
    }
}

impl Kept {
    /// Makes the answer say `tail`, false if it cannot. An answer that is still being sent keeps the tail it has.
    fn set_tail(&mut self, tail: &[u8]) -> bool {
        let place = self.tail_at..self.tail_at + tail.len();
        if self.answer.get(place.clone()) == Some(tail) {
            return true;
        }
        let is_tail = |old: &[u8]| old.ends_with(b"\r\n\r\n");
        if !self.answer.get(place.clone()).is_some_and(is_tail) {
            return false;
        }
        if Rc::get_mut(&mut self.answer).is_none() {
            self.answer = Rc::from(&self.answer[..]);
        }
        Rc::get_mut(&mut self.answer).is_some_and(|answer| {
            answer[place].copy_from_slice(tail);
            true
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

    use super::*;

    struct Switch(Rc<Cell<bool>>);

    impl Standing for Switch {
        fn stands(&self, _received: Boottime) -> bool {
            self.0.get()
        }
    }

    const NOW: Boottime = Boottime::from_nanos(1);
    const TAIL: &[u8] = b"Date: 1\r\n\r\n";

    fn keep(repeats: &mut Repeats, request: &str, body: &[u8], stands: &Rc<Cell<bool>>) {
        let unknown = repeats.find(request.as_bytes(), NOW, TAIL).unwrap_err();
        let answer = [b"head\r\n", TAIL, body].concat();
        repeats.keep(
            unknown,
            request.as_bytes(),
            answer.into(),
            "head\r\n".len(),
            Box::new(Switch(Rc::clone(stands))),
        );
    }

    fn counted(repeats: &Repeats) -> usize {
        let kept = repeats.sets.iter().flat_map(|set| &set.kept).flatten();
        kept.map(|kept| kept.weight()).sum()
    }

    #[test]
    fn an_answer_is_given_for_as_long_as_it_stands() {
        let mut repeats = Repeats::new(7);
        let stands = Rc::new(Cell::new(true));
        keep(&mut repeats, "GET / ...", b"body", &stands);
        let answer = repeats.find(b"GET / ...", NOW, b"Date: 2\r\n\r\n").unwrap();
        assert_eq!(&answer[..], b"head\r\nDate: 2\r\n\r\nbody");
        let later = repeats.find(b"GET / ...", NOW, b"Date: 3\r\n\r\n").unwrap();
        assert_eq!(&later[..], b"head\r\nDate: 3\r\n\r\nbody");
        assert_eq!(&answer[..], b"head\r\nDate: 2\r\n\r\nbody", "on its way");
        assert!(repeats.find(b"GET / ..,", NOW, TAIL).is_err());
        stands.set(false);
        assert!(repeats.find(b"GET / ...", NOW, TAIL).is_err());
        stands.set(true);
        assert!(repeats.find(b"GET / ...", NOW, TAIL).is_err(), "forgotten");
        assert_eq!((repeats.bytes, counted(&repeats)), (0, 0));
    }

    #[test]
    fn only_what_comes_twice_is_wanted() {
        let mut repeats = Repeats::new(7);
        let unknown = |repeats: &mut Repeats| repeats.find(b"GET / ...", NOW, TAIL).unwrap_err();
        let first = unknown(&mut repeats);
        assert!(!repeats.is_wanted(first));
        let second = unknown(&mut repeats);
        assert!(repeats.is_wanted(second));
    }

    #[test]
    fn the_bytes_are_bounded_and_counted() {
        let mut repeats = Repeats::new(7);
        let stands = Rc::new(Cell::new(true));
        let body = vec![b'x'; REPEATED_ANSWER / 2];
        for n in 0..3 * REPEATED_BYTES / body.len() {
            keep(&mut repeats, &format!("GET /{n} ..."), &body, &stands);
            assert!(repeats.bytes <= REPEATED_BYTES);
        }
        assert_eq!(repeats.bytes, counted(&repeats));
        assert!(repeats.bytes > REPEATED_BYTES / 2);
        keep(
            &mut repeats,
            "GET /large",
            &vec![0; REPEATED_ANSWER + 1],
            &stands,
        );
        assert!(repeats.find(b"GET /large", NOW, TAIL).is_err());
    }

    #[test]
    fn a_head_ends_where_an_empty_line_is() {
        let repeats = Repeats::new(7);
        assert_eq!(repeats.head(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        let two = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2";
        assert_eq!(repeats.head(two), Some(&two[..two.len() - 6]));
    }
}
