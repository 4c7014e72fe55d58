//! When to look at which connection again: a timing wheel (Varghese and Lauck, 1987) whose entries
//! are lists through an array.
//!
//! Each number is in one list at most, so what is kept does not grow with what was asked for. An
//! entry that is due says only "look": deadlines are pushed back far more often than they are
//! reached, and a look that finds a later one puts the entry there.

use base_clock::Boottime;

/// Nanoseconds of one slot, as a power of two: 16.8 ms.
const TICK_BITS: u32 = 24;
/// 68.7 seconds in all; what is due later is looked at then, and once more.
const SLOTS: usize = 4096;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct TimerLink {
    before: u32,
    after: u32,
    /// Its slot; [`NONE`] if it is in none.
    slot: u32,
}

const LOOSE: TimerLink = TimerLink {
    before: NONE,
    after: NONE,
    slot: NONE,
};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Timers {
    first: Box<[u32]>,
    links: Vec<TimerLink>,
    /// Everything up to here has been given out.
    tick: u64,
    /// Nothing is due before this; `u64::MAX` if nothing is.
    earliest: u64,
}

impl Timers {
    pub(crate) fn new(now: Boottime) -> Self {
        Self {
            first: vec![NONE; SLOTS].into(),
            links: Vec::new(),
            tick: now.as_nanos() >> TICK_BITS,
            earliest: u64::MAX,
        }
    }

    /// Looks at `index` at `at` or before.
    pub(crate) fn schedule(&mut self, index: u32, at: Boottime) {
        // Rounded up, so that the entry is due at that tick.
        let tick = (at.as_nanos() >> TICK_BITS) + 1;
        let tick = tick.clamp(self.tick + 1, self.tick + SLOTS as u64 - 1);
        let links = index as usize + 1;
        if self.links.len() < links {
            self.links.resize(links, LOOSE);
        }
        let slot = self.links[index as usize].slot;
        if slot != NONE {
            if self.tick_of(slot) <= tick {
                return;
            }
            self.forget(index);
        }
        self.link(index, (tick % SLOTS as u64) as u32);
        self.earliest = self.earliest.min(tick);
    }

    /// Does not look at `index` any more.
    pub(crate) fn forget(&mut self, index: u32) {
        let Some(&TimerLink {
            before,
            after,
            slot,
        }) = self.links.get(index as usize)
        else {
            return;
        };
        if slot == NONE {
            return;
        }
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => self.first[slot as usize] = after,
        }
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = before;
        }
        self.links[index as usize] = LOOSE;
    }

    /// Moves the entries that are due by `now` to `due`.
    pub(crate) fn due(&mut self, now: Boottime, due: &mut Vec<u32>) {
        let now = now.as_nanos() >> TICK_BITS;
        if now < self.earliest {
            self.tick = self.tick.max(now);
            return;
        }
        let from = self.earliest.max(self.tick + 1);
        for tick in from..=now.min(from + SLOTS as u64) {
            let slot = (tick % SLOTS as u64) as usize;
            let mut index = std::mem::replace(&mut self.first[slot], NONE);
            while index != NONE {
                due.push(index);
                let link = std::mem::replace(&mut self.links[index as usize], LOOSE);
                index = link.after;
            }
        }
        self.tick = self.tick.max(now);
        self.earliest = (self.tick + 1..self.tick + SLOTS as u64)
            .find(|tick| self.first[(tick % SLOTS as u64) as usize] != NONE)
            .unwrap_or(u64::MAX);
    }

    /// The earliest time at which an entry may be due; none if there is no entry.
    pub(crate) fn earliest(&self) -> Option<Boottime> {
        (self.earliest != u64::MAX).then(|| Boottime::from_nanos(self.earliest << TICK_BITS))
    }

    fn link(&mut self, index: u32, slot: u32) {
        let after = std::mem::replace(&mut self.first[slot as usize], index);
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = index;
        }
        self.links[index as usize] = TimerLink {
            before: NONE,
            after,
            slot,
        };
    }

    /// The tick of a slot that is not empty: within one turn of the wheel after what was given
    /// out.
    fn tick_of(&self, slot: u32) -> u64 {
        let slots = SLOTS as u64;
        self.tick + (u64::from(slot) + slots - self.tick % slots) % slots
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Do {
        LookAt(u32, u64),
        Forget(u32),
        Pass(u64),
    }

    fn doing() -> impl Strategy<Value = Do> {
        prop_oneof![
            4 => (0..20_u32, 0..100_000_u64).prop_map(|(index, ms)| Do::LookAt(index, ms)),
            1 => (0..20_u32).prop_map(Do::Forget),
            3 => (0..40_000_u64).prop_map(Do::Pass),
        ]
    }

    const TICK: u64 = 1 << TICK_BITS;
    const HORIZON: u64 = (SLOTS as u64 - 1) * TICK;

    proptest! {
        #[test]
        fn who_is_asked_for_is_looked_at_in_time(steps in prop::collection::vec(doing(), 1..200)) {
            let start = 5_000_000_000_u64;
            let mut now = start;
            let mut timers = Timers::new(Boottime::from_nanos(now));
            // Who waits, and since and until when.
            let mut waiting = BTreeMap::<u32, u64>::new();
            for step in steps {
                match step {
                    Do::LookAt(index, ms) => {
                        let at = now + ms * 1_000_000;
                        timers.schedule(index, Boottime::from_nanos(at));
                        let by = at.min(now + HORIZON);
                        waiting.entry(index).and_modify(|old| *old = by.min(*old)).or_insert(by);
                    }
                    Do::Forget(index) => {
                        timers.forget(index);
                        waiting.remove(&index);
                    }
                    Do::Pass(ms) => {
                        let earliest = timers.earliest().map_or(u64::MAX, Boottime::as_nanos);
                        for by in waiting.values() {
                            prop_assert!(earliest <= by + 2 * TICK);
                        }
                        now += ms * 1_000_000;
                        let mut due = Vec::new();
                        timers.due(Boottime::from_nanos(now), &mut due);
                        for index in due {
                            prop_assert!(waiting.remove(&index).is_some(), "{} was not asked for", index);
                        }
                        for (index, by) in &waiting {
                            prop_assert!(now < by + 2 * TICK, "{} is late", index);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_is_looked_at_too_early_within_the_wheel() {
        let start = Boottime::from_nanos(123_456_789_012);
        let mut timers = Timers::new(start);
        for ms in (0..60_000).step_by(700) {
            let at = start.plus(Duration::from_millis(ms));
            let mut due = Vec::new();
            timers.schedule(7, at);
            timers.due(at, &mut due);
            assert_eq!(due, [0_u32; 0]);
            timers.due(at.plus(Duration::from_nanos(2 * TICK)), &mut due);
            assert_eq!(due, [7]);
            timers = Timers::new(start);
        }
    }
}
