//! A bounded queue between the callers and the threads that own connections.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Why the queue did not take a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueRefusal {
    /// The queue holds as many jobs as it may.
    Full,
    /// The queue is closed.
    Closed,
}

/// Item that a worker gets from the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueItem<T> {
    Job(T),
    /// No job arrived in time.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

struct QueueState<T> {
    jobs: VecDeque<T>,
    closed: bool,
}

/// First in, first out, with any number of producers and consumers.
pub(crate) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    ready: Condvar,
    capacity: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(QueueState {
                jobs: VecDeque::new(),
                closed: false,
            }),
            ready: Condvar::new(),
            capacity,
        }
    }

    /// Adds a job, or returns at once why not: the caller never waits.
    pub(crate) fn push(&self, job: T) -> Result<(), QueueRefusal> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(QueueRefusal::Closed);
        }
        if state.jobs.len() >= self.capacity {
            return Err(QueueRefusal::Full);
        }
        state.jobs.push_back(job);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Waits for a job, at most `patience` if it is given.
    pub(crate) fn pop(&self, patience: Option<Duration>) -> QueueItem<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return QueueItem::Job(job);
            }
            if state.closed {
                return QueueItem::Closed;
            }
            match patience {
                None => self.ready.wait(&mut state),
                Some(patience) => {
                    if self.ready.wait_for(&mut state, patience).timed_out() {
                        return state
                            .jobs
                            .pop_front()
                            .map_or(QueueItem::Idle, QueueItem::Job);
                    }
                }
            }
        }
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// Refuses further jobs; jobs that are already queued are still handed out.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_jobs_in_order() {
        let queue = Queue::new(2);
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        assert_eq!(queue.pop(None), QueueItem::Job(1));
        assert_eq!(queue.pop(None), QueueItem::Job(2));
        assert_eq!(queue.pop(Some(Duration::ZERO)), QueueItem::Idle);
    }

    #[test]
    fn refuses_beyond_its_capacity() {
        let queue = Queue::new(1);
        queue.push(1).unwrap();
        assert_eq!(queue.push(2), Err(QueueRefusal::Full));
        assert_eq!(queue.pop(None), QueueItem::Job(1));
        assert_eq!(queue.push(3), Ok(()));
    }

    #[test]
    fn gives_what_it_took_before_it_closed() {
        let queue = Queue::new(2);
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(QueueRefusal::Closed));
        assert_eq!(queue.pop(None), QueueItem::Job(1));
        assert_eq!(queue.pop(None), QueueItem::Closed);
    }
}
