//! The budget of wasted work of a connection.
//!
//! A frame that brings no request and no response forward costs the client next to nothing and the
//! server its time. Each such frame is charged to one budget; completed responses fill the budget
//! again, and so does time, slowly, for the pings of a connection that rests. A client that has
//! spent the budget is told to calm down, and its connection ends (RFC 9113 section 10.5).

use base_clock::Boottime;

/// Waste that is charged, in the order of the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waste {
    /// A frame that changes nothing: of an unknown kind, for a stream that is gone, with a
    /// priority, with few bytes or a small window.
    Frame,
    /// One that has to be answered, or a further piece of a header block.
    Answer,
    /// The client gives up a stream, or opens one more than it may. Its request was decoded, and
    /// perhaps answered.
    Reset,
    /// A mistake of the client for which the server gives up a stream. To make one on purpose is to
    /// reset the stream oneself, without being seen to do so.
    Fault,
}

impl Waste {
    const fn price(self) -> u32 {
        match self {
            Self::Frame => 1,
            Self::Answer => 2,
            Self::Reset => 4,
            Self::Fault => 8,
        }
    }
}

/// Budget that a connection begins with, and has at most: a browser that leaves a page gives up a
/// hundred streams at once.
const FULL: u32 = 2000;
/// Worth of a completed response: two resets.
const EARNED: u32 = 8;
/// Costs that a connection may spend before others have their turn, each request counting as one.
const FOR_A_TURN: u32 = 128;
/// A DATA frame with fewer bytes that is not the last one of its request is charged.
pub(crate) const TINY_DATA: u32 = 64;
/// A window that is opened by fewer bytes is charged.
pub(crate) const SMALL_WINDOW: u32 = 1 << 10;

/// Rest of a budget. One unit is earned in each second besides.
#[derive(Debug)]
pub(crate) struct WasteBudget {
    left: u32,
    /// Until when the seconds are counted.
    since: Boottime,
    spent_in_turn: u32,
}

impl WasteBudget {
    pub(crate) const fn new(now: Boottime) -> Self {
        Self {
            left: FULL,
            since: now,
            spent_in_turn: 0,
        }
    }

    /// Charges something that happened at `now`; false if the budget is spent.
    pub(crate) fn charge(&mut self, waste: Waste, now: Boottime) -> bool {
        let seconds = now.since(self.since).as_secs();
        if seconds > 0 {
            self.since = now;
            self.earn(u32::try_from(seconds).unwrap_or(FULL));
        }
        self.spent_in_turn += waste.price();
        let left = self.left.checked_sub(waste.price());
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    pub(crate) const fn begin_turn(&mut self) {
        self.spent_in_turn = 0;
    }

    /// A request that is to be answered.
    pub(crate) const fn note_request(&mut self) {
        self.spent_in_turn += 1;
    }

    /// True if others should have their turn.
    pub(crate) const fn is_turn_over(&self) -> bool {
        self.spent_in_turn >= FOR_A_TURN
    }

    /// A response was sent in full.
    pub(crate) fn completed(&mut self) {
        self.earn(EARNED);
    }

    fn earn(&mut self, amount: u32) {
        self.left = self.left.saturating_add(amount).min(FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Boottime {
        Boottime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_budget_is_spent_and_completed_responses_fill_it() {
        let mut budget = WasteBudget::new(at(1));
        for _ in 0..FULL / Waste::Reset.price() {
            assert!(budget.charge(Waste::Reset, at(1)));
        }
        assert!(!budget.charge(Waste::Frame, at(1)));
        budget.completed();
        assert!(budget.charge(Waste::Fault, at(1)));
        assert!(!budget.charge(Waste::Frame, at(1)));
    }

    #[test]
    fn pings_of_a_connection_that_rests_are_free() {
        let mut budget = WasteBudget::new(at(0));
        for second in 0..100_000 {
            assert!(budget.charge(Waste::Answer, at(second * 2)));
        }
    }
}
