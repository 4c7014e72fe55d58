//! How hot an entry is, in two bytes.
//!
//! A hit counts twice in one byte: for the eviction policy (two bits, up to [`MAX_VISITS`]) and for
//! the heat (four bits, up to [`MAX_ASKS`]). The hit also sets a bit: a request has asked since the
//! value was made. Once all are full a hit writes nothing, so the heat adds nothing to what the
//! policy's count costs a hit. The ledger's lock guards the other byte: the heat that was left when
//! the counts were last [folded](Heat::fold) in, and two marks.
//!
//! The heat measures recent requests, because each fold at an interval halves the older heat. A
//! value that replaces another inherits half of its heat. So each value that is made without being
//! used halves the chance of the next.

use crate::{
    policy::MAX_VISITS,
    sync::atomic::{AtomicU8, Ordering},
};

/// The most hits that count for the heat.
const MAX_ASKS: u8 = 15;
/// The heat that one hit adds.
const ASK: u8 = 2;
/// The least heat of a hot entry: three requests since the last fold, or two before each of the
/// last two folds.
pub(crate) const HOT: u8 = 6;

const VISITS: u8 = 0b000_0011;
const ASKS: u8 = 0b011_1100;
const ASKED: u8 = 0b100_0000;
const FULL: u8 = VISITS | ASKS | ASKED;

const REST: u8 = 0b0011_1111;
/// The entry's end has been examined.
const ENDED: u8 = 0b0100_0000;
/// The entry cannot be made again from its key alone.
const UNIQUE: u8 = 0b1000_0000;

/// The two bytes. Hits race with each other and with a fold; a lost visit is harmless. The moment
/// when an entry becomes hot is not lost: a hit counts and then looks at the rest, a fold changes
/// the rest and then looks at the counts, in one order for all threads (`SeqCst`).
pub(crate) struct Heat {
    counts: AtomicU8,
    rest: AtomicU8,
}

/// Heat of an entry when the entry ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinalHeat {
    /// How hot the entry was.
    pub(crate) degree: u8,
    /// True if a request has asked for the entry.
    pub(crate) asked: bool,
}

impl Heat {
    /// The heat of a new value. `asked`: a request has asked for it, so it was not made ahead.
    /// `renewable`: it can be made again from its key.
    pub(crate) fn new(asked: bool, renewable: bool) -> Self {
        let counts = if asked { ASKED | 1 << 2 } else { 0 };
        Self {
            counts: AtomicU8::new(counts),
            rest: AtomicU8::new(if renewable { 0 } else { UNIQUE }),
        }
    }

    /// Notes a hit; writes nothing once the counts are full. True if this hit made the entry hot.
    pub(crate) fn visit(&self) -> bool {
        let counts = self.counts.load(Ordering::Relaxed);
        counts != FULL && self.count(counts)
    }

    #[cold]
    fn count(&self, counts: u8) -> bool {
        let visits = ((counts & VISITS) + 1).min(MAX_VISITS);
        let asks = ((counts & ASKS) + 4).min(ASKS);
        let after = ASKED | asks | visits;
        let counted =
            self.counts
                .compare_exchange(counts, after, Ordering::SeqCst, Ordering::Relaxed);
        counted.is_ok() && self.degree_with(counts) < HOT && self.degree_with(after) >= HOT
    }

    /// Hits since the policy last looked.
    pub(crate) fn visits(&self) -> u8 {
        self.counts.load(Ordering::Relaxed) & VISITS
    }

    pub(crate) fn set_visits(&self, visits: u8) {
        let counts = self.counts.load(Ordering::Relaxed);
        let counts = counts & !VISITS | visits.min(MAX_VISITS);
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// Takes over the heat of the value that this one replaces. The visits stay: an entry that was
    /// hot before a change is hot after it.
    pub(crate) fn inherit(&self, old: &Self) {
        self.set_visits(old.visits());
        let marks = self.rest.load(Ordering::Relaxed) & !REST;
        self.rest.store(marks | old.degree(), Ordering::SeqCst);
    }

    /// Takes over the heat `degree` of a value under another key, unless this entry is hotter.
    pub(crate) fn raise_to(&self, degree: u8) {
        let rest = self.rest.load(Ordering::Relaxed);
        let before = (rest & REST).max(degree.min(REST));
        self.rest.store(rest & !REST | before, Ordering::SeqCst);
    }

    /// How hot the entry is.
    pub(crate) fn degree(&self) -> u8 {
        self.degree_with(self.counts.load(Ordering::SeqCst))
    }

    fn degree_with(&self, counts: u8) -> u8 {
        let asks = (counts & ASKS) >> 2;
        const { assert!(MAX_ASKS * ASK + REST / 2 <= REST && ASKS >> 2 == MAX_ASKS) };
        (self.rest.load(Ordering::SeqCst) & REST) / 2 + asks * ASK
    }

    /// True if the entry's end matters: its end was not examined yet, and the entry can be made
    /// again and is hot, or was made ahead and no request has asked for it.
    pub(crate) fn is_watched(&self) -> bool {
        let asked = self.counts.load(Ordering::Relaxed) & ASKED != 0;
        let is_of_interest = self.rest.load(Ordering::Relaxed) & (ENDED | UNIQUE) == 0;
        is_of_interest && (self.degree() >= HOT || !asked)
    }

    /// True if the entry can be made again from its key.
    pub(crate) fn is_renewable(&self) -> bool {
        self.rest.load(Ordering::Relaxed) & UNIQUE == 0
    }

    /// Halves the older heat, adds the counts to it and resets the counts.
    pub(crate) fn fold(&self) {
        let marks = self.rest.load(Ordering::Relaxed) & !REST;
        let counts = self.counts.fetch_and(!ASKS, Ordering::SeqCst);
        self.rest
            .store(marks | self.degree_with(counts), Ordering::SeqCst);
    }

    /// The heat when the entry ends. Given once, and never for an entry that cannot be made again.
    pub(crate) fn end(&self) -> Option<FinalHeat> {
        let rest = self.rest.load(Ordering::Relaxed);
        if rest & (ENDED | UNIQUE) != 0 {
            return None;
        }
        self.rest.store(rest | ENDED, Ordering::Relaxed);
        Some(FinalHeat {
            degree: self.degree(),
            asked: self.counts.load(Ordering::Relaxed) & ASKED != 0,
        })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn visited(times: usize) -> Heat {
        let heat = Heat::new(true, true);
        (0..times).for_each(|_| _ = heat.visit());
        heat
    }

    #[test]
    fn what_is_asked_for_three_times_lately_is_hot() {
        assert!(visited(1).degree() < HOT);
        assert!(visited(2).degree() >= HOT);
        let twice = visited(1);
        twice.fold();
        assert!(twice.degree() < HOT);
        (0..2).for_each(|_| _ = twice.visit());
        assert!(twice.degree() >= HOT);
        // No request asks any more.
        (0..2).for_each(|_| twice.fold());
        assert!(twice.degree() < HOT);
    }

    #[test]
    fn the_hit_that_makes_an_entry_hot_reports_it() {
        let heat = Heat::new(true, true);
        assert_eq!(
            [heat.visit(), heat.visit(), heat.visit()],
            [false, true, false]
        );
        (0..4).for_each(|_| heat.fold());
        assert_eq!(
            [heat.visit(), heat.visit(), heat.visit()],
            [false, false, true]
        );
        assert!(heat.is_watched() && Heat::new(false, true).is_watched());
        assert!(!Heat::new(true, true).is_watched() && !Heat::new(false, false).is_watched());
    }

    #[test]
    fn the_counts_are_full_and_stay_so() {
        let heat = visited(1000);
        assert_eq!((heat.visits(), heat.degree()), (MAX_VISITS, MAX_ASKS * ASK));
        assert_eq!(heat.counts.load(Ordering::Relaxed), FULL);
        for _ in 0..100 {
            heat.fold();
            (0..100).for_each(|_| _ = heat.visit());
        }
        assert!(heat.degree() <= REST);
        heat.set_visits(1);
        assert_eq!(heat.visits(), 1);
        assert!(heat.degree() > 2 * MAX_ASKS);
    }

    #[test]
    fn each_unused_value_halves_the_chance_of_the_next() {
        let mut heat = visited(1000);
        let mut made = 0;
        while heat.degree() >= HOT {
            let next = Heat::new(false, true);
            next.inherit(&heat);
            assert_eq!(next.degree(), heat.degree() / 2);
            (heat, made) = (next, made + 1);
        }
        assert_eq!(made, 3);
        // The policy's own count stays.
        assert_eq!(heat.visits(), MAX_VISITS);
    }

    #[test]
    fn what_is_handed_on_to_another_key_is_halved_and_cools_nothing() {
        let next = Heat::new(false, false);
        next.raise_to(visited(1000).degree());
        assert_eq!(next.degree(), visited(1000).degree() / 2);
        next.raise_to(2);
        assert_eq!(next.degree(), visited(1000).degree() / 2);
        next.raise_to(u8::MAX);
        assert!(next.degree() <= REST && !next.is_renewable());
    }

    #[test]
    fn an_end_is_reported_once_with_whether_a_request_asked() {
        let ended = |heat: &Heat| heat.end().map(|end| end.asked);
        let made_ahead = Heat::new(false, true);
        assert_eq!(
            (ended(&made_ahead), ended(&made_ahead)),
            (Some(false), None)
        );
        let asked = Heat::new(false, true);
        asked.visit();
        asked.fold();
        assert_eq!(ended(&asked), Some(true));
        assert_eq!(ended(&visited(0)), Some(true));
        assert_eq!(ended(&Heat::new(true, false)), None);
    }
}
