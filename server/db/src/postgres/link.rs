//! What the feed and those who read and write share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base_clock::Boottime;
use parking_lot::Mutex;

use super::feed_progress::FeedProgress;
use super::interest::{RowInterest, WatchedRows};
use super::pending_writes::PendingWrites;
use super::replay::Replay;
use super::wake::Wake;
use crate::feed::{Delivery, Transactions};
use crate::health::Failures;

/// No transaction id: nothing may be kept.
const NONE: u64 = u64::MAX;

/// Between the feed's thread and the connections that read and write.
pub(crate) struct FeedLink {
    pub(crate) delivery: Delivery,
    pub(crate) interest: RowInterest,
    pub(crate) pending: PendingWrites,
    pub(crate) passed: FeedProgress,
    pub(crate) replay: Replay,
    pub(crate) wake: Wake,
    floor: AtomicU64,
    /// True if what the last life has let keep may still be given.
    outlives: AtomicBool,
    /// When the feed's server was started, while there is a feed: it tells that server from all
    /// others.
    server: Mutex<Option<Arc<str>>>,
    schema: AtomicU64,
    times: Mutex<FeedTimes>,
    registering: Mutex<()>,
    pub(super) failures: Failures,
}

/// Since when there is no feed, and when it last began.
#[derive(Default)]
struct FeedTimes {
    lost: Option<Boottime>,
    began: Option<Boottime>,
}

impl Default for FeedLink {
    fn default() -> Self {
        Self {
            delivery: Delivery::default(),
            interest: RowInterest::default(),
            pending: PendingWrites::default(),
            passed: FeedProgress::default(),
            replay: Replay::default(),
            wake: Wake::default(),
            floor: AtomicU64::new(NONE),
            outlives: AtomicBool::new(false),
            server: Mutex::default(),
            schema: AtomicU64::new(0),
            times: Mutex::default(),
            registering: Mutex::default(),
            failures: Failures::default(),
        }
    }
}

impl FeedLink {
    /// True if a result that was read in `snapshot` may be kept at all (coherence.md, rule 7):
    /// every transaction that may have written its commit record before the feed began must have
    /// ended in it. Never while there is no feed.
    pub(crate) fn may_keep(&self, snapshot: &Transactions) -> bool {
        snapshot.xmin() >= self.floor.load(Ordering::SeqCst)
    }

    /// True if there is a feed now.
    pub(crate) fn has_feed(&self) -> bool {
        self.floor.load(Ordering::SeqCst) != NONE
    }

    /// The feed has begun, and `transaction` was begun after that. The epoch is new: a fill from
    /// before must not be measured by the new floor, so the floor is there before the epoch is.
    pub(crate) fn began(&self, transaction: u64, started: &str, reason: &str) {
        *self.server.lock() = Some(started.into());
        self.floor.store(transaction, Ordering::SeqCst);
        self.new_epoch(reason);
        self.pending.restored();
        *self.times.lock() = FeedTimes {
            lost: None,
            began: Some(Boottime::now()),
        };
    }

    /// The server can be reached again, and can be read, whether or not its feed begins: what was
    /// kept when it was lost need not be given any longer.
    pub(crate) fn reached(&self) {
        if self.outlives.swap(false, Ordering::SeqCst) {
            self.new_epoch("the server can be reached again");
        }
    }

    /// A feed is wanted from now on.
    pub(crate) fn awaited_from(&self, now: Boottime) {
        self.times.lock().lost = Some(now);
    }

    /// True if a feed is wanted and there is none.
    pub(crate) fn awaits_feed(&self) -> bool {
        self.times.lock().lost.is_some()
    }

    /// Since when there is no feed although one is wanted, and when it last began.
    pub(crate) fn feed_times(&self) -> (Option<Boottime>, Option<Boottime>) {
        let times = self.times.lock();
        (times.lost, times.began)
    }

    /// The feed is lost: nothing is kept until there is another, and no caller waits for it. What
    /// was kept is given until the bound is over (coherence.md, rule 6) or the server [can be
    /// reached](Self::reached), if only the connection has ended, and else not any more.
    pub(crate) fn lost(&self, reason: &str, is_disconnection: bool) {
        // Before another server may be read from.
        self.floor.store(NONE, Ordering::SeqCst);
        *self.server.lock() = None;
        self.awaited_from(Boottime::now());
        self.replay.lost();
        if is_disconnection {
            self.outlives.store(true, Ordering::SeqCst);
        } else {
            self.new_epoch(reason);
        }
        self.pending.lost();
        self.passed.lost();
    }

    /// True if a caller waits for the feed: a write of this node, or a visitor who comes from
    /// another.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.pending.len() > 0 || self.passed.is_waited_for()
    }

    /// A feed by triggers has applied everything that `seen` sees.
    pub(crate) fn seen(&self, seen: &Arc<Transactions>) {
        self.passed.advance_to_snapshot(seen);
        self.pending.seen(seen, self.passed.position());
    }

    /// A write was committed, and no feed says that its change was applied: there was no feed to
    /// wait for ([`PendingWrites::expect`]), or it was lost meanwhile. What a feed before it or
    /// after it has let keep may lack the write.
    pub(crate) fn committed_unawaited(&self) {
        self.new_epoch("a write was committed while there was no feed");
    }

    /// Something was missed, or is not told: nothing that was kept is given any more, and no
    /// replica is read until a heartbeat that was sent later arrives.
    pub(crate) fn new_epoch(&self, reason: &str) {
        self.replay.hold();
        self.delivery.new_epoch(reason);
    }

    /// Moves whenever tables, views, functions or policies may have changed; what was found out
    /// about a statement is good for one of its values.
    pub(crate) fn schema(&self) -> u64 {
        self.schema.load(Ordering::SeqCst)
    }

    /// True if a connection to the server that was started then reads what the feed reports about
    /// (coherence.md, rule 18). A standby, and another primary under the same name, may be behind
    /// or beside it. While there is no feed, any primary will do: nothing is kept.
    pub(crate) fn is_feeds_server(&self, started: &str) -> bool {
        self.server
            .lock()
            .as_deref()
            .is_none_or(|server| server == started)
    }

    /// As [`FeedLink::schema_changed`], and what was under way when the feed found it out, whose
    /// ids are below `transaction`, may never be told: tables that are published from now on were
    /// not before.
    pub(crate) fn schema_changed_below(&self, transaction: u64, reason: &str) {
        self.floor.store(transaction, Ordering::SeqCst);
        self.schema_changed(reason);
    }

    /// The catalog has changed, in a way that the feed does not report (coherence.md, rule 9).
    pub(crate) fn schema_changed(&self, reason: &str) {
        // First: who knows the number asks a replica for what came before it.
        self.replay.hold();
        self.schema.fetch_add(1, Ordering::SeqCst);
        self.new_epoch(reason);
    }

    /// Registers rows that a statement selects, with the columns that it reads. Must come before
    /// dependencies on them are returned to any caller.
    ///
    /// One at a time, epoch included: a caller that finds them registered already must not go on
    /// before the epoch has begun.
    pub(crate) fn take_interest(&self, wanted: impl IntoIterator<Item = WatchedRows>) {
        let _one_at_a_time = self.registering.lock();
        if self.interest.add(wanted) {
            self.new_epoch("a query reads columns that were not watched");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;

    use super::*;

    #[test]
    fn nothing_is_kept_without_a_feed_nor_from_before_it() {
        let link = FeedLink::default();
        let snapshot = |xmin| Transactions::new(xmin, xmin + 10, Vec::new());
        assert!(!link.may_keep(&snapshot(100)));
        link.began(100, "noon", "a test");
        assert!(!link.may_keep(&snapshot(99)));
        assert!(link.may_keep(&snapshot(100)));
        assert!(link.is_feeds_server("noon") && !link.is_feeds_server("one"));
        link.schema_changed_below(110, "a test");
        assert!(!link.may_keep(&snapshot(109)) && link.may_keep(&snapshot(110)));
        link.lost("a test", false);
        assert!(!link.may_keep(&snapshot(1_000)));
        assert!(link.is_feeds_server("one"));
    }

    #[test]
    fn it_is_waited_for_while_a_write_or_a_visitor_waits() {
        let link = FeedLink::default();
        link.began(1, "noon", "a test");
        link.passed.began("here");
        assert!(!link.is_waited_for());
        let (token, arrival) = link.pending.expect().unwrap();
        assert!(link.is_waited_for());
        link.pending.forget(token);
        drop(arrival);
        assert!(!link.is_waited_for());
        let position = crate::Position::new("here", 10);
        let mut visitor = Box::pin(link.passed.until(position));
        assert!(link.is_waited_for(), "before it is first polled");
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(visitor.as_mut().poll(&mut context).is_pending());
        link.passed.advance(10);
        assert!(visitor.as_mut().poll(&mut context).is_ready());
        drop(visitor);
        assert!(!link.is_waited_for());
    }
}
