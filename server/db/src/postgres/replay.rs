//! How far a replica must have replayed the log before what it reads may stand in for the primary's
//! (coherence.md, rule 18).
//!
//! Which transactions a standby takes for running is its own affair, so what was read there is
//! judged by a place in the log alone: a standby that has replayed up to `at` shows every commit
//! whose record ends there or before. That place must be no less than three others, all of which
//! are noted here as the feed brings them:
//!
//! * the end of every change that was applied, and of every write of a node: the store may have
//!   forgotten them, because the primary shows them to all;
//! * the first heartbeat that was sent after the latest *hold*: what an epoch begins for, and what
//!   was found out about statements, is in no change that the feed brings, but it was committed
//!   before that heartbeat. One in whose snapshot a transaction is open that the feed may never
//!   tell of (rule 7) does not count;
//! * a heartbeat no older than the bound: what a replica gives is as fresh as what the promise asks
//!   for, also where it is not kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::Mutex;

/// A replica may lag by no more than this, however generous the bound is.
pub(super) const LONGEST_LAG: Duration = Duration::from_secs(2);

/// Progress of the feed. Nothing before [`Replay::began`]: a feed by triggers knows no places in
/// the log.
#[derive(Default)]
pub(crate) struct Replay {
    state: Mutex<ReplayState>,
    reads: AtomicU64,
}

#[derive(Default)]
struct ReplayState {
    /// System identifier and timeline of the feed's server.
    source: Option<Arc<str>>,
    at: u64,
    /// Heartbeats that were sent by then tell nothing of what the hold was for.
    held: Boottime,
    /// When they were sent, and their ends; those since the hold, of the last [`LONGEST_LAG`].
    beats: VecDeque<(Boottime, u64)>,
}

/// Requirements on a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    /// System identifier and timeline.
    pub(crate) source: Arc<str>,
    /// The place in their log that must have been replayed.
    pub(crate) at: u64,
}

impl Replay {
    /// A life of the feed begins on `source`.
    pub(crate) fn began(&self, source: &str) {
        let mut state = self.state.lock();
        *state = ReplayState {
            source: Some(source.into()),
            held: Boottime::now(),
            ..ReplayState::default()
        };
    }

    /// The feed is lost: the position that a replica needs is unknown.
    pub(crate) fn lost(&self) {
        *self.state.lock() = ReplayState::default();
    }

    /// Something has happened on the primary that no change reports; replicas wait for the next
    /// heartbeat.
    pub(crate) fn hold(&self) {
        self.hold_at(Boottime::now());
    }

    fn hold_at(&self, now: Boottime) {
        let mut state = self.state.lock();
        state.held = state.held.max(now);
        state.beats.clear();
    }

    /// A change is applied, or a write told of, whose commit record ends at `end`.
    pub(crate) fn must_have(&self, end: u64) {
        let mut state = self.state.lock();
        state.at = state.at.max(end);
    }

    /// A heartbeat is back: what was committed before `sent` lies before `end`, and so does the end
    /// of every transaction that the feed may never report
    /// ([`may_keep`](super::link::FeedLink::may_keep) of its snapshot).
    pub(crate) fn beat(&self, sent: Boottime, end: u64) {
        let mut state = self.state.lock();
        if state.source.is_none() || sent <= state.held {
            return;
        }
        if state.beats.is_empty() {
            state.at = state.at.max(end);
        }
        state.beats.push_back((sent, end));
        while let Some((first, _)) = state.beats.front()
            && sent.since(*first) > LONGEST_LAG
        {
            state.beats.pop_front();
        }
    }

    /// A replica has answered a read.
    pub(super) fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// How many reads replicas have answered.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the requirements of a read that begins `now` on a replica that may lag by `lag`;
    /// `None` if only the primary will do.
    pub(crate) fn needed(&self, now: Boottime, lag: Duration) -> Option<Needed> {
        let state = self.state.lock();
        let fresh = |beat: &&(Boottime, u64)| now.since(beat.0) <= lag;
        let (_, end) = state.beats.iter().find(fresh)?;
        Some(Needed {
            source: Arc::clone(state.source.as_ref()?),
            at: state.at.max(*end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// This number of milliseconds after the start of the test.
    fn at(start: Boottime, millis: u64) -> Boottime {
        start.plus(Duration::from_millis(millis))
    }

    fn begun() -> (Replay, Boottime) {
        let replay = Replay::default();
        replay.began("7, timeline 1");
        (replay, Boottime::now().plus(SECOND))
    }

    fn needed(replay: &Replay, now: Boottime) -> Option<u64> {
        replay.needed(now, SECOND).map(|needed| needed.at)
    }

    #[test]
    fn every_change_and_a_heartbeat_within_the_bound_must_be_there() {
        let (replay, start) = begun();
        assert_eq!(needed(&replay, start), None, "nothing is known yet");
        replay.beat(start, 10);
        assert_eq!(needed(&replay, at(start, 1)), Some(10));
        replay.must_have(15);
        replay.beat(at(start, 500), 20);
        assert_eq!(
            needed(&replay, at(start, 600)),
            Some(15),
            "the older will do"
        );
        assert_eq!(needed(&replay, at(start, 1_200)), Some(20));
        assert_eq!(
            needed(&replay, at(start, 1_600)),
            None,
            "the feed is silent"
        );
    }

    #[test]
    fn an_unreported_commit_is_there_after_a_later_heartbeat() {
        let (replay, start) = begun();
        replay.beat(start, 10);
        replay.hold_at(at(start, 100));
        assert_eq!(needed(&replay, at(start, 100)), None);
        replay.beat(at(start, 100), 20);
        assert_eq!(needed(&replay, at(start, 110)), None, "sent before");
        replay.beat(at(start, 101), 30);
        assert_eq!(needed(&replay, at(start, 110)), Some(30));
        assert_eq!(needed(&replay, at(start, 1_000)), Some(30));
    }

    #[test]
    fn each_life_of_the_feed_begins_with_nothing() {
        let (replay, start) = begun();
        replay.beat(start, 10);
        replay.lost();
        replay.beat(start, 10);
        assert_eq!(needed(&replay, start), None);
        replay.began("7, timeline 2");
        replay.beat(Boottime::default(), 10);
        assert_eq!(needed(&replay, start), None, "of the life before");
        replay.beat(start, 5);
        let needed = replay.needed(start, SECOND).unwrap();
        assert_eq!((&*needed.source, needed.at), ("7, timeline 2", 5));
    }

    #[test]
    fn no_bound_is_so_generous_that_a_replica_may_lag_for_long() {
        let (replay, start) = begun();
        for (millis, end) in [(0, 10), (1_500, 20), (3_000, 30)] {
            replay.beat(at(start, millis), end);
        }
        replay.must_have(1);
        let needed = replay.needed(at(start, 3_100), LONGEST_LAG);
        assert_eq!(needed.unwrap().at, 20);
    }
}
