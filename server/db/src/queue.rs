//! A bounded queue between the callers and the threads that own connections.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Why a job was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// As many jobs as are allowed are waiting.
    Full,
    /// The queue is closed.
    Closed,
}

/// What a worker finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    Job(T),
    /// Nothing came within the time.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

struct State<T> {
    jobs: VecDeque<T>,
    closed: bool,
}

/// First in, first out; many on both sides.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    capacity: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                closed: false,
            }),
            ready: Condvar::new(),
            capacity,
        }
    }

    /// Hands a job over, or says at once why not: a caller never waits here.
    pub(crate) fn push(&self, job: T) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.jobs.len() >= self.capacity {
            return Err(Refused::Full);
        }
        state.jobs.push_back(job);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Waits for a job, at most `patience` if that is given.
    pub(crate) fn pop(&self, patience: Option<Duration>) -> Next<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Next::Job(job);
            }
            if state.closed {
                return Next::Closed;
            }
            match patience {
                None => self.ready.wait(&mut state),
                Some(patience) => {
                    if self.ready.wait_for(&mut state, patience).timed_out() {
                        return state.jobs.pop_front().map_or(Next::Idle, Next::Job);
                    }
                }
            }
        }
    }

    /// Jobs that wait.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// Takes no more jobs; what it took is still given.
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
        assert_eq!(queue.pop(None), Next::Job(1));
        assert_eq!(queue.pop(None), Next::Job(2));
        assert_eq!(queue.pop(Some(Duration::ZERO)), Next::Idle);
    }

    #[test]
    fn refuses_beyond_its_capacity() {
        let queue = Queue::new(1);
        queue.push(1).unwrap();
        assert_eq!(queue.push(2), Err(Refused::Full));
        assert_eq!(queue.pop(None), Next::Job(1));
        assert_eq!(queue.push(3), Ok(()));
    }

    #[test]
    fn gives_what_it_took_before_it_closed() {
        let queue = Queue::new(2);
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(Refused::Closed));
        assert_eq!(queue.pop(None), Next::Job(1));
        assert_eq!(queue.pop(None), Next::Closed);
    }
}
