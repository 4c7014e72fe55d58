//! All writes, and what a page must therefore show.
//!
//! Every thing has versions, given out under its row's lock. So their order is that of the commits,
//! for any order of the acknowledgements. A version is noted before its COMMIT is sent: everything
//! that a reader can see is in the log. The moment of an acknowledgement is taken under the log's
//! lock, so a check that does not find the acknowledgement came before it.
//!
//! Entries older than any bound are [forgotten](Log::forget), except the last state before them: so
//! a scenario may last for any time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::coherence::schema::{Thing, first_place, things};
use base_clock::Boottime;

/// One version of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) thing: Thing,
    pub(crate) version: u64,
    /// Place of the thing from then on; none if the write left it where it was.
    pub(crate) place: Option<String>,
}

/// Outcomes of the writes, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// The client was told that it is committed.
    pub acknowledged: u64,
    /// Rolled back, by writer or server.
    pub undone: u64,
    /// The connection was lost during COMMIT.
    pub unknown: u64,
    /// Acknowledged forms, each through a node.
    pub forms: u64,
}

/// The log of one scenario.
#[derive(Debug)]
pub(crate) struct Log(Mutex<LogState>);

#[derive(Debug, Default)]
struct LogState {
    writes: u64,
    /// Changes that open writes have noted so far.
    open: HashMap<u64, Vec<Change>>,
    undone: HashSet<u64>,
    /// In the order of their ends.
    undone_at: VecDeque<(Boottime, u64)>,
    things: HashMap<Thing, History>,
    /// Writes through each node.
    own: HashMap<(usize, Thing), Vec<(Boottime, u64)>>,
    fates: Fates,
    /// Things that forms are moving, each with the moment at which its form failed.
    moving: Vec<(Thing, Option<Boottime>)>,
}

/// After this time, no transaction is open that was when a form failed.
const SETTLED: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
struct History {
    /// In the order of acknowledgement.
    acknowledged: VecDeque<Acknowledged>,
    /// Versions that a reader may see and that no writer has been promised: (write, version,
    /// place).
    possible: Vec<(u64, u64, Option<String>)>,
    /// Versions that were only possible when a later one was acknowledged, with the moment of that
    /// acknowledgement, and the place of the thing if they were committed.
    passed: Vec<(Boottime, u64, String)>,
}

#[derive(Debug)]
struct Acknowledged {
    at: Boottime,
    version: u64,
    place: Option<String>,
    /// The highest version up to here.
    newest: u64,
    /// The highest version of those up to here that have a place, and that place.
    placed: Option<(u64, String)>,
}

impl Log {
    /// With the schema in its first state, as of now.
    pub(crate) fn new() -> Self {
        let mut state = LogState::default();
        let now = Boottime::now();
        for thing in things() {
            let place = first_place(thing);
            state.acknowledge(
                now,
                Change {
                    thing,
                    version: 0,
                    place,
                },
            );
        }
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new write.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state();
        state.writes += 1;
        let write = state.writes;
        state.open.insert(write, Vec::new());
        write
    }

    /// The changes of a write that holds the row's lock, before any reader can see them.
    pub(crate) fn note(&self, write: u64, change: Change) {
        let mut state = self.state();
        let history = state.things.entry(change.thing).or_default();
        // Versions are given out again only when those who had them were rolled back.
        history
            .possible
            .retain(|(_, version, _)| *version < change.version);
        history
            .possible
            .push((write, change.version, change.place.clone()));
        state.open.entry(write).or_default().push(change);
    }

    /// COMMIT was answered.
    pub(crate) fn acknowledged(&self, write: u64) {
        let mut state = self.state();
        let now = Boottime::now();
        state.fates.acknowledged += 1;
        for change in state.open.remove(&write).unwrap_or_default() {
            state.acknowledge(now, change);
        }
    }

    /// The write was certainly rolled back: no page may ever show it.
    pub(crate) fn undone(&self, write: u64) {
        let mut state = self.state();
        state.fates.undone += 1;
        state.undone.insert(write);
        state.undone_at.push_back((Boottime::now(), write));
        for change in state.open.remove(&write).unwrap_or_default() {
            let history = state.things.entry(change.thing).or_default();
            history.possible.retain(|(other, ..)| *other != write);
        }
    }

    /// The fate is unknown: a page may show the write or not.
    pub(crate) fn unknown(&self, write: u64) {
        let mut state = self.state();
        state.fates.unknown += 1;
        state.open.remove(&write);
    }

    /// A form that moves a thing is about to be sent: its place is not known until
    /// [`Self::move_ended`].
    pub(crate) fn move_begins(&self, thing: Thing) {
        self.state().moving.push((thing, None));
    }

    /// The form was answered, or has failed and may have moved the thing.
    pub(crate) fn move_ended(&self, thing: Thing, has_failed: bool) {
        let mut state = self.state();
        let at = state.moving.iter().position(|open| *open == (thing, None));
        if let Some(at) = at {
            state.moving.swap_remove(at);
        }
        if has_failed {
            state.moving.push((thing, Some(Boottime::now())));
        }
    }

    /// A form was answered by a node, which made this version and perhaps put the thing somewhere.
    pub(crate) fn posted(&self, node: usize, thing: Thing, version: u64, place: Option<String>) {
        let mut state = self.state();
        let now = Boottime::now();
        state.fates.forms += 1;
        let own = state.own.entry((node, thing)).or_default();
        let newest = own.last().map_or(version, |last| last.1.max(version));
        own.push((now, newest));
        state.acknowledge(
            now,
            Change {
                thing,
                version,
                place,
            },
        );
    }

    /// The version that a page must have reached: acknowledged before `before`, or by this node
    /// before `sent`.
    pub(crate) fn due(&self, thing: Thing, before: Boottime, node: usize, sent: Boottime) -> u64 {
        let state = self.state();
        let history = state.things.get(&thing);
        let told = history.and_then(|history| history.last_before(before));
        let own = state.own.get(&(node, thing)).map_or(&[][..], Vec::as_slice);
        let own = own[..own.partition_point(|(at, _)| *at < sent)].last();
        told.map_or(0, |entry| entry.newest)
            .max(own.map_or(0, |own| own.1))
    }

    /// The moment when the first version above the one shown was acknowledged, if that was before
    /// the request was sent.
    pub(crate) fn unseen_since(
        &self,
        thing: Thing,
        shown: u64,
        sent: Boottime,
    ) -> Option<Boottime> {
        let state = self.state();
        let entries = &state.things.get(&thing)?.acknowledged;
        let first = entries.get(entries.partition_point(|entry| entry.newest <= shown))?;
        (first.at < sent).then_some(first.at)
    }

    /// True if in every state that a page may show the thing is in this place.
    pub(crate) fn must_be_at(&self, thing: Thing, place: &str, before: Boottime) -> bool {
        let state = self.state();
        let is_moving = state.moving.iter().any(|(other, _)| *other == thing);
        !is_moving
            && state.things.get(&thing).is_some_and(|history| {
                let due = history.last_before(before);
                due.and_then(|entry| entry.placed.as_ref())
                    .is_some_and(|due| history.stays(due, place))
            })
    }

    /// Forgets what no page requested from now on can be compared with, if no page may be older
    /// than `moment`.
    pub(crate) fn forget(&self, moment: Boottime) {
        let mut state = self.state();
        let state = &mut *state;
        for history in state.things.values_mut() {
            let old = history
                .acknowledged
                .partition_point(|entry| entry.at < moment);
            history.acknowledged.drain(..old.saturating_sub(1));
            history.passed.retain(|(at, ..)| *at >= moment);
        }
        for own in state.own.values_mut() {
            let old = own.partition_point(|(at, _)| *at < moment);
            own.drain(..old.saturating_sub(1));
        }
        while let Some((_, write)) = state.undone_at.pop_front_if(|(at, _)| *at < moment) {
            state.undone.remove(&write);
        }
    }

    /// How many things it remembers.
    pub(crate) fn size(&self) -> usize {
        let state = self.state();
        let things = state.things.values();
        let things = things.map(|history| {
            history.acknowledged.len() + history.possible.len() + history.passed.len()
        });
        let own = state.own.values().map(Vec::len);
        things.chain(own).sum::<usize>() + state.undone.len() + state.open.len()
    }

    /// True if a write was rolled back.
    pub(crate) fn is_undone(&self, write: u64) -> bool {
        self.state().undone.contains(&write)
    }

    /// Counts the outcomes of all writes.
    pub(crate) fn fates(&self) -> Fates {
        self.state().fates
    }
}

impl LogState {
    fn acknowledge(&mut self, at: Boottime, change: Change) {
        if change.place.is_some() {
            let is_settled =
                |failed: Option<Boottime>| failed.is_some_and(|failed| at.since(failed) > SETTLED);
            self.moving
                .retain(|(thing, failed)| *thing != change.thing || !is_settled(*failed));
        }
        let history = self.things.entry(change.thing).or_default();
        // A possible write may have happened and have moved the thing. *Counterexample: a COMMIT is
        // lost and rolled back, and a form, which notes nothing, is given its version: the thing
        // has not moved.* So the place of the thing is unknown until a write puts the thing
        // somewhere.
        let passed = history
            .possible
            .extract_if(.., |(_, version, _)| *version <= change.version);
        let passed = passed.filter(|(_, version, _)| *version < change.version);
        let passed: Vec<(u64, String)> = passed
            .filter_map(|(_, version, place)| Some((version, place?)))
            .collect();
        let entries = &mut history.acknowledged;
        let newest = entries.back().map_or(0, |last| last.newest);
        let placed = entries.back().and_then(|last| last.placed.clone());
        let earlier = history.passed.iter().map(|(_, version, _)| version);
        let last = earlier
            .chain(passed.iter().map(|(version, _)| version))
            .max();
        let is_known = |(at, _): &(u64, String)| last.is_none_or(|last| last <= at);
        let own = change.place.clone().map(|place| (change.version, place));
        let placed = placed.into_iter().chain(own);
        let placed = placed.max_by_key(|(version, _)| *version).filter(is_known);
        let moved = passed
            .into_iter()
            .map(|(version, place)| (at, version, place));
        history.passed.extend(moved);
        entries.push_back(Acknowledged {
            at,
            version: change.version,
            place: change.place,
            newest: newest.max(change.version),
            placed,
        });
    }
}

impl History {
    fn last_before(&self, moment: Boottime) -> Option<&Acknowledged> {
        let count = self.acknowledged.partition_point(|entry| entry.at < moment);
        self.acknowledged.get(count.checked_sub(1)?)
    }

    /// True if the thing is in this place from a version on that had this place then.
    fn stays(&self, (first, at_first): &(u64, String), place: &str) -> bool {
        let told = self.acknowledged.iter();
        let told = told.map(|entry| (entry.version, &entry.place));
        let possible = self.possible.iter().map(|(_, version, at)| (*version, at));
        let passed = self.passed.iter();
        at_first == place
            && passed
                .filter(|(_, version, _)| version >= first)
                .all(|(_, _, at)| at == place)
            && told
                .chain(possible)
                .filter(|(version, _)| version >= first)
                .all(|(_, at)| at.as_deref().is_none_or(|at| at == place))
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Log};
    use crate::coherence::schema::{Thing, ThingKind, first_place};
    use base_clock::Boottime;

    const ITEM: Thing = Thing(ThingKind::Item, 1);

    fn change(version: u64, place: &str) -> Change {
        Change {
            thing: ITEM,
            version,
            place: Some(place.to_owned()),
        }
    }

    #[test]
    fn an_acknowledged_version_is_due() {
        let log = Log::new();
        let write = log.begin();
        log.note(write, change(1, "2"));
        let before = Boottime::now();
        log.acknowledged(write);
        let after = Boottime::now();
        assert_eq!(log.due(ITEM, before, 0, before), 0);
        assert_eq!(log.due(ITEM, after, 0, after), 1);
        assert!(log.unseen_since(ITEM, 0, after).is_some());
        assert_eq!(log.unseen_since(ITEM, 0, before), None);
        assert_eq!(log.unseen_since(ITEM, 1, after), None);
    }

    #[test]
    fn versions_give_the_order_not_acknowledgements() {
        let log = Log::new();
        let (first, second) = (log.begin(), log.begin());
        log.note(first, change(1, "0"));
        log.note(second, change(2, "2"));
        log.acknowledged(second);
        log.acknowledged(first);
        let now = Boottime::now();
        assert_eq!(log.due(ITEM, now, 0, now), 2);
        assert!(log.must_be_at(ITEM, "2", now));
        assert!(!log.must_be_at(ITEM, "0", now));
    }

    #[test]
    fn a_possibly_moved_thing_has_no_due_place() {
        let log = Log::new();
        let start = Boottime::now();
        assert!(log.must_be_at(ITEM, "1", start));
        let open = log.begin();
        log.note(open, change(1, "2"));
        assert!(!log.must_be_at(ITEM, "1", start));
        log.undone(open);
        assert!(log.must_be_at(ITEM, "1", start) && log.is_undone(open));
        let lost = log.begin();
        log.note(lost, change(1, "0"));
        log.unknown(lost);
        assert!(!log.must_be_at(ITEM, "1", start));
        // The version is given out again: the lost write was rolled back.
        let next = log.begin();
        log.note(next, change(1, "1"));
        assert!(log.must_be_at(ITEM, "1", start));
    }

    #[test]
    fn a_lost_move_leaves_no_due_place_until_the_next_move() {
        let log = Log::new();
        let start = Boottime::now();
        let lost = log.begin();
        log.note(lost, change(1, "2"));
        log.unknown(lost);
        // The write was committed, or its version was given to a form, which notes nothing.
        let next = log.begin();
        let stays = Change {
            place: None,
            ..change(2, "")
        };
        log.note(next, stays);
        log.acknowledged(next);
        let now = Boottime::now();
        for (place, before) in [("1", start), ("1", now), ("2", now)] {
            assert!(!log.must_be_at(ITEM, place, before), "{place}");
        }
        let put = log.begin();
        log.note(put, change(3, "0"));
        log.acknowledged(put);
        let now = Boottime::now();
        assert!(log.must_be_at(ITEM, "0", now) && !log.must_be_at(ITEM, "1", start));
        log.forget(now);
        assert!(log.must_be_at(ITEM, "0", now));
    }

    #[test]
    fn a_lost_commit_whose_version_a_form_has_moves_nothing() {
        let log = Log::new();
        let account = Thing(ThingKind::Account, 1);
        let first = first_place(account).unwrap();
        let lost = log.begin();
        let place = Some("elsewhere".to_owned());
        let change = Change {
            thing: account,
            version: 1,
            place,
        };
        log.note(lost, change);
        log.unknown(lost);
        log.posted(0, account, 1, None);
        let now = Boottime::now();
        assert!(!log.must_be_at(account, "elsewhere", now));
        assert!(log.must_be_at(account, &first, now));
    }

    #[test]
    fn what_a_form_moves_has_no_due_place_until_it_is_answered() {
        let log = Log::new();
        let start = Boottime::now();
        log.move_begins(ITEM);
        assert!(!log.must_be_at(ITEM, "1", start));
        log.posted(0, ITEM, 1, Some("2".to_owned()));
        log.move_ended(ITEM, false);
        let now = Boottime::now();
        assert!(log.must_be_at(ITEM, "2", now) && !log.must_be_at(ITEM, "1", start));
        log.move_begins(ITEM);
        log.move_ended(ITEM, true);
        log.posted(0, ITEM, 3, Some("0".to_owned()));
        assert!(!log.must_be_at(ITEM, "0", Boottime::now()), "it may follow");
    }

    #[test]
    fn forgotten_versions_stay_due() {
        let log = Log::new();
        let mut last = Boottime::now();
        for version in 1..=50 {
            let write = log.begin();
            let place = if version < 40 { "2" } else { "0" };
            log.note(write, change(version, place));
            log.acknowledged(write);
            log.undone(log.begin());
            last = Boottime::now();
        }
        log.posted(0, Thing(ThingKind::Account, 1), 7, None);
        let before = log.size();
        let now = Boottime::now();
        log.forget(now);
        assert!(log.size() + 90 < before, "{} of {before}", log.size());
        assert_eq!(log.due(ITEM, now, 0, now), 50);
        assert_eq!(
            log.due(
                Thing(ThingKind::Account, 1),
                Boottime::from_nanos(0),
                0,
                now
            ),
            7
        );
        assert!(log.must_be_at(ITEM, "0", now) && !log.must_be_at(ITEM, "2", now));
        assert!(log.unseen_since(ITEM, 49, now).is_some_and(|at| at < last));
    }

    #[test]
    fn a_form_is_due_at_once_on_its_own_node() {
        let log = Log::new();
        let account = Thing(ThingKind::Account, 1);
        log.posted(1, account, 1, None);
        let (long_ago, sent) = (Boottime::from_nanos(0), Boottime::now());
        assert_eq!(log.due(account, long_ago, 1, sent), 1);
        assert_eq!(log.due(account, long_ago, 0, sent), 0);
        assert!(log.must_be_at(account, "bob", sent));
    }
}
