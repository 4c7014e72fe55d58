//! How hot an entry is, in two bytes.
//!
//! A hit counts twice in one byte: for the eviction policy (two bits, up to [`MAX_VISITS`]) and for the heat (four bits, up to
//! [`MAX_ASKS`]), and sets a bit that says that somebody has asked since the value was made. Once all are full a hit writes nothing, so
//! the measure costs a hit what the policy's count cost it before. The other byte belongs to the ledger's lock: what was left of
//! the heat when the counts were last [folded](Heat::fold) in, and two marks.
//!
//! Folded now and then, the heat is what was asked lately: each fold halves what was before. It is handed on from a value to the
//! one that replaces it, halved too; so each value that was made for nothing halves the chance of the next.

use crate::{
    policy::MAX_VISITS,
    sync::atomic::{AtomicU8, Ordering},
};

/// Hits count for the heat up to here.
const MAX_ASKS: u8 = 15;
/// What one of them counts.
const ASK: u8 = 2;
/// From here on an entry is hot: asked for three times since the last fold, or twice before each of the last two.
pub(crate) const HOT: u8 = 6;

const VISITS: u8 = 0b000_0011;
const ASKS: u8 = 0b011_1100;
const ASKED: u8 = 0b100_0000;
const FULL: u8 = VISITS | ASKS | ASKED;

const REST: u8 = 0b0011_1111;
/// Its end has been looked at.
const ENDED: u8 = 0b0100_0000;
/// It cannot be made again from its key alone.
const UNIQUE: u8 = 0b1000_0000;

/// The two bytes. Hits race with each other and with a fold: a lost visit costs nothing but a visit. That it has become hot is not lost:
/// who counts looks at the rest afterwards, and who changes the rest looks at the counts afterwards, in one order for all (`SeqCst`).
pub(crate) struct Heat {
    counts: AtomicU8,
    rest: AtomicU8,
}

/// What an entry came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// How hot it was.
    pub(crate) degree: u8,
    /// Whether anybody has asked for it.
    pub(crate) asked: bool,
}

impl Heat {
    /// Of a value that somebody has `asked` for, or that was made ahead of that; `renewable` says whether it can be made again from
    /// its key.
    pub(crate) fn new(asked: bool, renewable: bool) -> Self {
        let counts = if asked { ASKED | 1 << 2 } else { 0 };
        Self {
            counts: AtomicU8::new(counts),
            rest: AtomicU8::new(if renewable { 0 } else { UNIQUE }),
        }
    }

    /// Notes a hit; writes nothing once the counts are full. Whether it has become hot by this one.
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

    /// Takes over from the value in whose place this one is: its visits stay, for what was hot before a change is hot after it.
    pub(crate) fn inherit(&self, old: &Self) {
        self.set_visits(old.visits());
        let marks = self.rest.load(Ordering::Relaxed) & !REST;
        self.rest.store(marks | old.degree(), Ordering::SeqCst);
    }

    /// The same from a value that had another key and this `degree`, unless it is hotter by itself.
    pub(crate) fn take_over(&self, degree: u8) {
        let rest = self.rest.load(Ordering::Relaxed);
        let before = (rest & REST).max(degree.min(REST));
        self.rest.store(rest & !REST | before, Ordering::SeqCst);
    }

    /// How hot it is.
    pub(crate) fn degree(&self) -> u8 {
        self.degree_with(self.counts.load(Ordering::SeqCst))
    }

    fn degree_with(&self, counts: u8) -> u8 {
        let asks = (counts & ASKS) >> 2;
        const { assert!(MAX_ASKS * ASK + REST / 2 <= REST && ASKS >> 2 == MAX_ASKS) };
        (self.rest.load(Ordering::SeqCst) & REST) / 2 + asks * ASK
    }

    /// Whether its end is of interest: it has not been looked at, and what has ended could be made again and is hot, or was made
    /// ahead and nobody has asked for it.
    pub(crate) fn is_watched(&self) -> bool {
        let asked = self.counts.load(Ordering::Relaxed) & ASKED != 0;
        let is_of_interest = self.rest.load(Ordering::Relaxed) & (ENDED | UNIQUE) == 0;
        is_of_interest && (self.degree() >= HOT || !asked)
    }

    /// Whether it can be made again from its key.
    pub(crate) fn is_renewable(&self) -> bool {
        self.rest.load(Ordering::Relaxed) & UNIQUE == 0
    }

    /// Counts from anew, and halves what was before.
    pub(crate) fn fold(&self) {
        let marks = self.rest.load(Ordering::Relaxed) & !REST;
        let counts = self.counts.fetch_and(!ASKS, Ordering::SeqCst);
        self.rest
            .store(marks | self.degree_with(counts), Ordering::SeqCst);
    }

    /// What it came to, asked when it is over: once, and never of what cannot be made again.
    pub(crate) fn end(&self) -> Option<End> {
        let rest = self.rest.load(Ordering::Relaxed);
        if rest & (ENDED | UNIQUE) != 0 {
            return None;
        }
        self.rest.store(rest | ENDED, Ordering::Relaxed);
        Some(End {
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
        // Nobody asks any more.
        (0..2).for_each(|_| twice.fold());
        assert!(twice.degree() < HOT);
    }

    #[test]
    fn the_hit_that_makes_it_hot_says_so() {
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
    fn each_value_that_nobody_asks_for_halves_the_chance_of_the_next() {
        let mut heat = visited(1000);
        let mut made = 0;
        while heat.degree() >= HOT {
            let next = Heat::new(false, true);
            next.inherit(&heat);
            assert_eq!(next.degree(), heat.degree() / 2);
            (heat, made) = (next, made + 1);
        }
        assert_eq!(made, 3);
        // The policy's own count is no part of that.
        assert_eq!(heat.visits(), MAX_VISITS);
    }

    #[test]
    fn what_is_handed_on_to_another_key_is_halved_and_cools_nothing() {
        let next = Heat::new(false, false);
        next.take_over(visited(1000).degree());
        assert_eq!(next.degree(), visited(1000).degree() / 2);
        next.take_over(2);
        assert_eq!(next.degree(), visited(1000).degree() / 2);
        next.take_over(u8::MAX);
        assert!(next.degree() <= REST && !next.is_renewable());
    }

    #[test]
    fn an_end_is_told_once_and_says_whether_anybody_asked() {
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
