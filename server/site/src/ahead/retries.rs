//! Retries of pages whose fills the fence refused.
//!
//! Another change came while the page was made, or the first change was not visible yet. An
//! immediate retry would keep the database busy for nothing if changes come faster than the page
//! can be made. So the pauses double, and after the last try the page is left to the next request.

use std::time::Duration;

use base_clock::Boottime;
use millpond_store::Degree;

/// Before the second try.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Tries of one page in all: the last about a third of a second after the first.
const TRIES: u32 = 5;
/// The most pages that wait for a retry. A further page is left to the next request.
const MAX_WAITING: usize = 256;

/// A page that is to be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefreshTask {
    pub(super) key: Box<[u8]>,
    /// How hot the value was that has ended.
    pub(super) degree: Degree,
    /// How often it was tried.
    pub(super) tries: u32,
}

impl RefreshTask {
    pub(super) fn new(key: Box<[u8]>, degree: Degree) -> Self {
        Self {
            key,
            degree,
            tries: 0,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Retries {
    waiting: Vec<(Boottime, RefreshTask)>,
}

impl Retries {
    /// Takes in a page that was refused at `now`.
    pub(super) fn refused(&mut self, mut task: RefreshTask, now: Boottime) {
        task.tries += 1;
        if task.tries < TRIES && self.waiting.len() < MAX_WAITING {
            let pause = FIRST_PAUSE * (1 << (task.tries - 1));
            self.waiting.push((now.plus(pause), task));
        }
    }

    /// The time until one is due.
    pub(super) fn rest(&self, now: Boottime) -> Option<Duration> {
        self.waiting.iter().map(|(due, _)| due.since(now)).min()
    }

    /// The one that is due first.
    pub(super) fn take(&mut self, now: Boottime) -> Option<RefreshTask> {
        let due = self.waiting.iter().enumerate();
        let (at, (first, _)) = due.min_by_key(|(_, (due, _))| *due)?;
        (*first <= now).then(|| self.waiting.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_page_is_tried_again_with_growing_pauses_and_then_left_alone() {
        let mut again = Retries::default();
        let mut now = Boottime::from_nanos(5);
        let mut task = RefreshTask::new((*b"key").into(), Degree::default());
        let mut pauses = Vec::new();
        loop {
            again.refused(task, now);
            let Some(rest) = again.rest(now) else { break };
            assert_eq!(again.take(now), None);
            now = now.plus(rest);
            pauses.push(rest.as_millis());
            task = again.take(now).unwrap();
        }
        assert_eq!(pauses, [20, 40, 80, 160]);
    }

    #[test]
    fn few_wait_at_a_time() {
        let mut again = Retries::default();
        for _ in 0..2 * MAX_WAITING {
            again.refused(
                RefreshTask::new(Box::default(), Degree::default()),
                Boottime::default(),
            );
        }
        assert_eq!(again.waiting.len(), MAX_WAITING);
    }
}
