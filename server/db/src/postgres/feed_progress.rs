//! The position up to which the feed was applied, for readers that must not see older data
//! (coherence.md, rule 19).
//!
//! A position is the end of a commit record, in the log of one system and timeline. Once the feed
//! of a node has applied everything up to it, an ordinary look-up there shows what was committed at
//! it: no entry without it is valid, and no flight that is kept is without it. Where triggers tell,
//! it is a transaction id, and the feed has passed it when it has applied all that has an id below
//! it ([`super::feed::triggers`]). That is so for positions of the life that runs. A new life
//! begins again at zero, since a server that was put back to an earlier state gives out the same
//! positions a second time; its first heartbeat brings it to the end of the log at once.
//!
//! The position of a write may be unknown: the feed was lost while the write waited for it. Or the
//! place is in another history: a standby has become the primary, or the other node's feed is of
//! another kind. Or a transaction from before it stays open. Then the number of the answer helps
//! ([`SeenWrites`]): a heartbeat that was sent after the visitor came has everything that the
//! visitor was shown before it. That is all that a fresh read would show him. It is noted anew in
//! each life. Counterexample: *a heartbeat of the server that was the primary says nothing of what
//! the next one has.*

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base_clock::Boottime;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Position;
use crate::feed::Transactions;
use crate::seen_writes::SeenWrites;

/// Shared by the feed's thread, which moves it, and all who ask.
#[derive(Default)]
pub(crate) struct FeedProgress {
    state: watch::Sender<ProgressState>,
    /// Numbers of answers, those of this node too.
    seen_writes: Mutex<SeenWrites>,
    /// How many answers this node has given.
    answers: AtomicU64,
    /// This node's name, once it has given an answer.
    node: OnceLock<Arc<str>>,
    /// The life that was lost, until the next begins.
    last: Mutex<Option<LostLife>>,
}

/// How far a life had come when it was lost, for the answers that this node gave in it: pages from
/// memory have these writes for as long as they are given. Counterexample: *Any position up to that
/// one. A server that was put back gives out the same positions again, and another node that
/// follows it hands them on.*
struct LostLife {
    source: Arc<str>,
    at: u64,
    /// Answers with lower numbers were given before the loss.
    answers: u64,
    node: Arc<str>,
}

impl LostLife {
    fn has_passed(&self, position: &Position) -> bool {
        *self.source == *position.source()
            && position.at() <= self.at
            && *self.node == *position.node()
            && position.number() < self.answers
    }
}

#[derive(Default)]
struct ProgressState {
    /// The system and its timeline; empty before the first life.
    source: Arc<str>,
    /// Everything before this has been applied.
    at: u64,
    /// Nothing from here on has been applied. The same place, but for transaction ids: some of
    /// those between are open.
    reached: u64,
    is_up: bool,
}

impl ProgressState {
    fn has_passed(&self, position: &Position) -> bool {
        self.is_same_history(position) && position.at() <= self.at
    }

    fn is_same_history(&self, position: &Position) -> bool {
        !position.source().is_empty() && *self.source == *position.source()
    }

    /// True if it is in the future of this history: the server that is followed here may be one
    /// that others have left behind.
    fn is_behind(&self, position: &Position) -> bool {
        const TIMELINE: &str = ", timeline ";
        let parts = |source: &str| {
            let (system, timeline) = source.split_once(TIMELINE)?;
            // What stands behind the number says of what kind the places are.
            let digits = timeline.split(|letter: char| !letter.is_ascii_digit());
            Some((
                system.to_owned(),
                digits.into_iter().next()?.parse::<u64>().ok()?,
            ))
        };
        let (own, other) = (parts(&self.source), parts(position.source()));
        own.zip(other)
            .is_some_and(|(own, other)| own.0 == other.0 && own.1 < other.1)
    }

    /// True if there is nothing to wait for. What lies beyond open transactions is passed when they
    /// end, and the time of their end is unknown.
    fn is_decided(&self, position: &Position) -> bool {
        !self.is_up || !self.is_same_history(position) || position.at() <= self.reached
    }
}

impl FeedProgress {
    /// A life of the feed begins, and its epoch has begun.
    pub(crate) fn began(&self, source: &str) {
        *self.last.lock() = None;
        self.state.send_replace(ProgressState {
            source: source.into(),
            at: 0,
            reached: 0,
            is_up: true,
        });
    }

    /// The feed is lost: who waits for it need not wait any longer. Nothing is passed but what this
    /// node itself has answered before.
    pub(crate) fn lost(&self) {
        let mut last = self.last.lock();
        self.state.send_modify(|state| {
            *last = state.is_up.then(|| LostLife {
                source: Arc::clone(&state.source),
                at: state.at,
                answers: self.answers.load(Ordering::SeqCst),
                node: self.node.get().map_or_else(Arc::default, Arc::clone),
            });
            state.is_up = false;
            state.at = 0;
            state.reached = 0;
        });
        *self.seen_writes.lock() = SeenWrites::default();
    }

    /// A heartbeat is back that was sent at `sent`: what was committed before has been applied.
    pub(crate) fn heard(&self, sent: Boottime) {
        self.seen_writes.lock().heartbeat_sent(sent);
    }

    /// The position of a commit with this node's name and the number of the answer.
    pub(crate) fn with_write_number(&self, position: Position, node: &str) -> Position {
        self.node.get_or_init(|| node.into());
        let number = self.answers.fetch_add(1, Ordering::SeqCst);
        position.with_write_number(node, number)
    }

    /// Everything before `at` has been applied.
    pub(crate) fn advance(&self, at: u64) {
        self.raise(at, at);
    }

    /// Everything that `seen` sees has been applied.
    pub(crate) fn advance_to_snapshot(&self, seen: &Transactions) {
        self.raise(seen.xmin(), seen.xmax());
    }

    fn raise(&self, at: u64, reached: u64) {
        self.state.send_if_modified(|state| {
            let moves = state.at < at || state.reached < reached;
            state.at = state.at.max(at);
            state.reached = state.reached.max(reached);
            moves
        });
    }

    /// The feed's position: a node that has passed it has applied everything that this node has.
    pub(crate) fn position(&self) -> Position {
        let state = self.state.borrow();
        Position::new(Arc::clone(&state.source), state.reached)
    }

    /// The position reached since it was at `position`. Never before that: another life may have
    /// begun meanwhile, which has reached no position yet.
    pub(crate) fn since(&self, position: Position) -> Position {
        let now = self.position();
        if now.source() == position.source() && now.at() > position.at() {
            now
        } else {
            position
        }
    }

    /// True if it has reached `position` at `now`. One of another system or timeline may be before
    /// or after this one's: there, a heartbeat that is sent after `now` must have come back.
    /// Counterexample: *That of a primary that goes on although there is another on a later
    /// timeline, which has the write.*
    pub(crate) fn has_passed(&self, position: &Position, now: Boottime) -> bool {
        let is_up = {
            let state = self.state.borrow();
            if state.has_passed(position) {
                return true;
            }
            state.is_up && !state.is_behind(position)
        };
        if self
            .last
            .lock()
            .as_ref()
            .is_some_and(|last| last.has_passed(position))
        {
            return true;
        }
        let (node, number) = (position.node(), position.number());
        is_up && !node.is_empty() && self.seen_writes.lock().has_passed(node, number, now)
    }

    /// True if it is worth waiting for.
    pub(crate) fn may_reach(&self, position: &Position) -> bool {
        !self.state.borrow().is_decided(position)
    }

    /// True if a caller waits for a position.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.state.receiver_count() > 0
    }

    /// Waits until it has reached the position; false as soon as that is not to be expected. It is
    /// waited for from now on, not from the first poll on.
    pub(crate) fn until(&self, position: Position) -> impl Future<Output = bool> + use<> {
        let mut changed = self.state.subscribe();
        async move {
            let decided = changed.wait_for(|state| state.is_decided(&position)).await;
            decided.is_ok_and(|state| state.has_passed(&position))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const HERE: &str = "7, timeline 1";

    fn at(nanos: u64) -> Boottime {
        Boottime::from_nanos(nanos)
    }

    fn here(at: u64) -> Position {
        Position::new(HERE, at)
    }

    #[test]
    fn what_is_of_another_server_or_timeline_is_never_passed() {
        let passed = FeedProgress::default();
        assert!(
            !passed.has_passed(&Position::new("", 0), at(1)),
            "before any life"
        );
        passed.began(HERE);
        assert!(!passed.has_passed(&here(10), at(1)));
        passed.advance(20);
        assert!(passed.has_passed(&here(20), at(1)) && !passed.has_passed(&here(21), at(1)));
        passed.advance(10);
        assert_eq!(passed.position(), here(20), "it does not go back");
        for other in ["7, timeline 2", "8, timeline 1", ""] {
            assert!(
                !passed.has_passed(&Position::new(other, 0), at(1)),
                "{other}"
            );
        }
        assert!(!passed.has_passed(&here(u64::MAX), at(1)));
    }

    #[test]
    fn a_new_life_has_passed_nothing_yet() {
        let passed = FeedProgress::default();
        passed.began(HERE);
        passed.advance(20);
        assert_eq!(passed.since(here(15)), here(20));
        passed.lost();
        assert!(
            !passed.has_passed(&here(20), at(1)),
            "nobody tells of what follows"
        );
        passed.began(HERE);
        assert_eq!(
            passed.since(here(15)),
            here(15),
            "a write of the life before"
        );
        assert!(
            !passed.has_passed(&here(1), at(1)),
            "the server may have been put back"
        );
    }

    /// Counterexample: *if the position of a write is unknown, its visitor bypasses the cache until
    /// the cookie expires.*
    #[test]
    fn a_write_without_a_position_is_passed_by_a_heartbeat_sent_after_it_was_seen() {
        let passed = FeedProgress::default();
        let nowhere = || passed.with_write_number(Position::new("", 0), "a");
        let (first, second) = (nowhere(), nowhere());
        passed.began(HERE);
        passed.advance(20);
        assert!(!passed.has_passed(&second, at(10)));
        passed.heard(at(9));
        assert!(!passed.has_passed(&second, at(11)), "sent before");
        passed.heard(at(10));
        assert!(passed.has_passed(&second, at(12)));
        assert!(passed.has_passed(&first, at(12)), "it was told before");
        let elsewhere = passed.with_write_number(Position::new("8, timeline 2", 1), "a");
        assert!(!passed.has_passed(&elsewhere, at(13)));
        assert!(!passed.may_reach(&elsewhere), "a read costs less");
        passed.heard(at(14));
        assert!(passed.has_passed(&elsewhere, at(15)));
        assert!(passed.has_passed(&here(20), at(15)));
    }

    /// Counterexample: *A heartbeat of the old primary, which has not heard that there is another,
    /// would let pass what only the new one has.*
    #[test]
    fn no_heartbeat_passes_what_is_on_a_later_timeline() {
        let passed = FeedProgress::default();
        let written = passed.with_write_number(Position::new("7, timeline 12", 1), "a");
        passed.began("7, timeline 9");
        assert!(!passed.has_passed(&written, at(10)));
        passed.heard(at(11));
        assert!(!passed.has_passed(&written, at(12)));
    }

    #[test]
    fn a_write_seen_in_another_life_is_seen_again() {
        let passed = FeedProgress::default();
        let written = passed.with_write_number(Position::new("8, timeline 2", 1), "a");
        passed.began(HERE);
        assert!(!passed.has_passed(&written, at(10)));
        passed.heard(at(11));
        assert!(passed.has_passed(&written, at(12)));
        passed.lost();
        assert!(!passed.has_passed(&written, at(13)), "nobody tells");
        passed.began("7, timeline 3");
        assert!(!passed.has_passed(&written, at(14)));
        passed.heard(at(15));
        assert!(passed.has_passed(&written, at(16)));
    }

    /// Counterexample: *While the server is away, who has written before is refused the pages that
    /// have his write.*
    #[test]
    fn what_this_node_answered_before_the_loss_stays_passed_until_the_next_life() {
        let passed = FeedProgress::default();
        passed.began(HERE);
        passed.advance(20);
        let written = passed.with_write_number(here(20), "a");
        let beyond = passed.with_write_number(here(21), "a");
        let unknown = passed.with_write_number(Position::new("", 0), "a");
        passed.lost();
        let later = passed.with_write_number(here(20), "a");
        let elsewhere = here(20).with_write_number("b", 0);
        assert!(passed.has_passed(&written, at(1)));
        for other in [&beyond, &unknown, &later, &elsewhere] {
            assert!(!passed.has_passed(other, at(1)), "{other:?}");
        }
        passed.began(HERE);
        assert!(!passed.has_passed(&written, at(2)));
    }

    fn poll(wait: &mut (impl Future<Output = bool> + Unpin)) -> Poll<bool> {
        Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_wait_ends_with_the_position_or_with_the_hope_for_it() {
        let passed = FeedProgress::default();
        let other = Position::new("8, timeline 1", 1);
        let until = |position| Box::pin(passed.until(position));
        assert_eq!(poll(&mut until(here(10))), Poll::Ready(false), "no feed");
        passed.began(HERE);
        assert_eq!(poll(&mut until(other)), Poll::Ready(false));
        let mut first = until(here(10));
        assert_eq!(poll(&mut first), Poll::Pending);
        passed.advance(9);
        assert_eq!(poll(&mut first), Poll::Pending);
        passed.advance(11);
        assert_eq!(poll(&mut first), Poll::Ready(true));
        let mut second = until(here(12));
        assert_eq!(poll(&mut second), Poll::Pending);
        passed.lost();
        assert_eq!(poll(&mut second), Poll::Ready(false));
    }

    /// Counterexample: *By the lower bound: of two writes that a browser has made at once, 10 and
    /// 5, the answer that comes last would have 8, while 8 is open, and a node that has seen 5 and
    /// not 10 passes that.*
    #[test]
    fn a_snapshot_is_covered_by_its_upper_bound_and_passes_its_lower() {
        let passed = FeedProgress::default();
        let look = |text| passed.advance_to_snapshot(&Transactions::parse(text).unwrap());
        passed.began(HERE);
        look("8:11:8");
        assert_eq!(passed.since(here(6)), here(11));
        assert!(passed.has_passed(&here(8), at(1)) && !passed.has_passed(&here(9), at(1)));
        // Who waits for what was open a moment ago is better off with a read of his own.
        assert!(!passed.may_reach(&here(11)) && passed.may_reach(&here(12)));
        assert_eq!(
            poll(&mut Box::pin(passed.until(here(11)))),
            Poll::Ready(false)
        );
        let mut waiting = Box::pin(passed.until(here(12)));
        assert_eq!(poll(&mut waiting), Poll::Pending);
        look("11:11:");
        assert!(passed.has_passed(&here(11), at(1)));
        assert_eq!(poll(&mut waiting), Poll::Pending);
        look("13:13:");
        assert_eq!(poll(&mut waiting), Poll::Ready(true));
    }
}
