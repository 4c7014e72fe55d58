//! How far the feed has come, for those who must not be given anything older (COHERENCE, rule 19).
//!
//! A position is the end of a commit record, in the log of one system and timeline. Once the feed of a node has applied
//! everything up to it, an ordinary look-up there shows what was committed at it: no entry without it is valid, and no flight that is
//! kept is without it. That is so for positions of the life that runs. A new life begins again at zero, since a server that was put back to an earlier
//! state gives out the same positions a second time; its first heartbeat brings it to the end of the log at once.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Position;

/// Shared by the feed's thread, which moves it, and all who ask.
pub(crate) struct Passed {
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    /// The system and its timeline; empty before the first life.
    source: Arc<str>,
    /// Everything before this has been applied.
    at: u64,
    is_up: bool,
}

impl State {
    fn has_passed(&self, position: &Position) -> bool {
        self.knows(position) && position.at() <= self.at
    }

    fn knows(&self, position: &Position) -> bool {
        !position.source().is_empty() && *self.source == *position.source()
    }
}

impl Default for Passed {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::default()),
        }
    }
}

impl Passed {
    /// A life of the feed begins, and its epoch has begun.
    pub(crate) fn began(&self, source: &str) {
        self.state.send_replace(State {
            source: source.into(),
            at: 0,
            is_up: true,
        });
    }

    /// The feed is lost: who waits for it need not wait any longer.
    pub(crate) fn lost(&self) {
        self.state.send_modify(|state| {
            state.is_up = false;
            state.at = 0;
        });
    }

    /// Everything before `at` has been applied.
    pub(crate) fn advance(&self, at: u64) {
        self.state.send_if_modified(|state| {
            let moves = state.at < at;
            state.at = state.at.max(at);
            moves
        });
    }

    /// How far it has come.
    pub(crate) fn reached(&self) -> Position {
        let state = self.state.borrow();
        Position::new(Arc::clone(&state.source), state.at)
    }

    /// How far it has come since it was at `position`. Never before that: another life may have begun meanwhile, which has come nowhere yet.
    pub(crate) fn since(&self, position: Position) -> Position {
        let now = self.reached();
        if now.source() == position.source() && now.at() > position.at() {
            now
        } else {
            position
        }
    }

    /// Whether it has come to `position`. Never for one of another system or timeline: it may be before or after this one's.
    pub(crate) fn has_passed(&self, position: &Position) -> bool {
        self.state.borrow().has_passed(position)
    }

    /// Waits until it has come there; false as soon as that is not to be expected.
    pub(crate) async fn until(&self, position: &Position) -> bool {
        let is_decided =
            |state: &State| !state.is_up || !state.knows(position) || state.has_passed(position);
        let mut told = self.state.subscribe();
        let decided = told.wait_for(is_decided).await;
        decided.is_ok_and(|state| state.has_passed(position))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const HERE: &str = "7, timeline 1";

    fn here(at: u64) -> Position {
        Position::new(HERE, at)
    }

    #[test]
    fn what_is_of_another_server_or_timeline_is_never_passed() {
        let passed = Passed::default();
        assert!(!passed.has_passed(&Position::unknown()), "before any life");
        passed.began(HERE);
        assert!(!passed.has_passed(&here(10)));
        passed.advance(20);
        assert!(passed.has_passed(&here(20)) && !passed.has_passed(&here(21)));
        passed.advance(10);
        assert_eq!(passed.reached(), here(20), "it does not go back");
        for other in ["7, timeline 2", "8, timeline 1", ""] {
            assert!(!passed.has_passed(&Position::new(other, 0)), "{other}");
        }
        assert!(!passed.has_passed(&here(u64::MAX)));
    }

    #[test]
    fn a_new_life_has_passed_nothing_yet() {
        let passed = Passed::default();
        passed.began(HERE);
        passed.advance(20);
        assert_eq!(passed.since(here(15)), here(20));
        passed.lost();
        assert!(
            !passed.has_passed(&here(20)),
            "nobody tells of what follows"
        );
        passed.began(HERE);
        assert_eq!(
            passed.since(here(15)),
            here(15),
            "a write of the life before"
        );
        assert!(
            !passed.has_passed(&here(1)),
            "the server may have been put back"
        );
    }

    fn poll(wait: &mut (impl Future<Output = bool> + Unpin)) -> Poll<bool> {
        Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_wait_ends_with_the_position_or_with_the_hope_for_it() {
        let passed = Passed::default();
        let (ten, twelve) = (here(10), here(12));
        let other = Position::new("8, timeline 1", 1);
        let until = |position| Box::pin(passed.until(position));
        assert_eq!(poll(&mut until(&ten)), Poll::Ready(false), "no feed");
        passed.began(HERE);
        assert_eq!(poll(&mut until(&other)), Poll::Ready(false));
        let mut first = until(&ten);
        assert_eq!(poll(&mut first), Poll::Pending);
        passed.advance(9);
        assert_eq!(poll(&mut first), Poll::Pending);
        passed.advance(11);
        assert_eq!(poll(&mut first), Poll::Ready(true));
        let mut second = until(&twelve);
        assert_eq!(poll(&mut second), Poll::Pending);
        passed.lost();
        assert_eq!(poll(&mut second), Poll::Ready(false));
    }
}
