//! The threads on which handlers may block: a bounded number, with a bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

/// Work for one thread.
pub(crate) type PoolJob = Box<dyn FnOnce() + Send>;

/// The queue is full, or the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;

/// Threads that are started when they are needed first.
pub(crate) struct BlockingPool {
    max_threads: usize,
    max_waiting: usize,
    state: Mutex<PoolState>,
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    waiting: VecDeque<PoolJob>,
    /// The next pieces of streams that have begun: at most one for each stream.
    continued: VecDeque<PoolJob>,
    /// True if the last job taken was a piece of a stream.
    was_continued: bool,
    threads: usize,
    idle: usize,
    /// Jobs that wait for clients: they read a body while it arrives, or write an answer.
    held_by_clients: usize,
    is_stopped: bool,
}

impl PoolState {
    fn jobs(&self) -> usize {
        self.waiting.len() + self.continued.len()
    }

    /// The next job. Streams and what has not begun take turns, so that neither keeps the other
    /// waiting, however many there are.
    fn take(&mut self) -> Option<PoolJob> {
        let is_turn_of_stream = !self.was_continued || self.waiting.is_empty();
        let continued = match is_turn_of_stream {
            true => self.continued.pop_front(),
            false => None,
        };
        self.was_continued = continued.is_some();
        continued.or_else(|| self.waiting.pop_front())
    }
}

impl BlockingPool {
    pub(crate) fn new(max_threads: usize, max_waiting: usize) -> Arc<Self> {
        Arc::new(Self {
            max_threads: max_threads.max(1),
            max_waiting,
            state: Mutex::default(),
            work: Condvar::new(),
        })
    }

    /// Runs `job` on a thread, at once or when one is free.
    pub(crate) fn submit(self: &Arc<Self>, job: PoolJob) -> Result<(), PoolFull> {
        let mut state = self.state.lock();
        let is_free = state.idle > state.jobs() || state.threads < self.max_threads;
        let has_room = is_free || state.waiting.len() < self.max_waiting;
        if state.is_stopped || !has_room || !self.notify(&mut state) {
            drop(state);
            return Err(PoolFull);
        }
        state.waiting.push_back(job);
        Ok(())
    }

    /// Runs the next piece of a stream that has begun, for which there is always room.
    pub(crate) fn submit_next(self: &Arc<Self>, job: PoolJob) -> Result<(), PoolFull> {
        let mut state = self.state.lock();
        if state.is_stopped || !self.notify(&mut state) {
            drop(state);
            return Err(PoolFull);
        }
        state.continued.push_back(job);
        Ok(())
    }

    /// Wakes a thread for one more job, or starts one. False if there is none and none can be
    /// started.
    fn notify(self: &Arc<Self>, state: &mut PoolState) -> bool {
        if state.jobs() >= state.idle && state.threads < self.max_threads {
            let pool = Arc::clone(self);
            let name = format!("blocking-{}", state.threads);
            let spawned = thread::Builder::new().name(name).spawn(move || pool.run());
            state.threads += usize::from(spawned.is_ok());
        }
        // It takes the job once the lock is released.
        self.work.notify_one();
        state.threads > 0
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            let Some(job) = state.take() else {
                if state.is_stopped {
                    state.threads -= 1;
                    return;
                }
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
                continue;
            };
            drop(state);
            // What the job owned is dropped in a panic, and so its request learns of it.
            let _ = catch_unwind(AssertUnwindSafe(job));
            state = self.state.lock();
        }
    }

    /// Counts a job that waits for a client, which sends a body or takes an answer. Only half of
    /// the threads may do this; none if they do.
    pub(crate) fn hold_for_client(self: &Arc<Self>) -> Option<ClientPermit> {
        let mut state = self.state.lock();
        if state.held_by_clients >= self.max_threads.div_ceil(2) {
            return None;
        }
        state.held_by_clients += 1;
        Some(ClientPermit(Arc::clone(self)))
    }

    /// Drops what waits, and lets the threads end after their present jobs.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        let continued = std::mem::take(&mut state.continued);
        drop(state);
        self.work.notify_all();
        drop((waiting, continued));
    }

    /// Threads that have not ended.
    #[cfg(test)]
    pub(crate) fn threads(&self) -> usize {
        self.state.lock().threads
    }
}

/// Counts a job that waits for a client, until it is dropped.
pub(crate) struct ClientPermit(Arc<BlockingPool>);

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.0.state.lock().held_by_clients -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_full_pool_refuses_at_once_and_a_panic_costs_no_thread() {
        let pool = BlockingPool::new(2, 1);
        let (go, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (begun, begins) = mpsc::channel();
        for _ in 0..2 {
            let (gate, begun) = (Arc::clone(&gate), begun.clone());
            let job = Box::new(move || {
                begun.send(()).unwrap();
                gate.lock().recv().unwrap();
                panic!("asked for");
            });
            pool.submit(job).unwrap();
            begins.recv().unwrap();
        }
        let (done, ends) = mpsc::channel();
        let last = done.clone();
        pool.submit(Box::new(move || done.send(1).unwrap()))
            .unwrap();
        assert_eq!(pool.submit(Box::new(|| ())), Err(PoolFull));
        pool.submit_next(Box::new(move || last.send(2).unwrap()))
            .unwrap();
        go.send(()).unwrap();
        go.send(()).unwrap();
        let mut order = [ends.recv().unwrap(), ends.recv().unwrap()];
        order.sort_unstable();
        assert_eq!(order, [1, 2]);
        assert_eq!(pool.threads(), 2);
        pool.stop();
        assert_eq!(pool.submit(Box::new(|| ())), Err(PoolFull));
        while pool.threads() > 0 {
            thread::yield_now();
        }
    }

    /// One thread; each piece of a stream asks for the next one before it ends.
    #[test]
    fn streams_without_end_and_handlers_take_turns() {
        fn piece(pool: &Arc<BlockingPool>, done: &mpsc::Sender<&'static str>) {
            let (next, sender) = (Arc::clone(pool), done.clone());
            // The pool has ended when it is full.
            let _ = pool.submit_next(Box::new(move || {
                let _ = sender.send("piece");
                piece(&next, &sender);
            }));
        }
        let pool = BlockingPool::new(1, 100);
        let (go, gate) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let hold = move || {
            begun.send(()).unwrap();
            gate.recv().unwrap();
        };
        pool.submit(Box::new(hold)).unwrap();
        begins.recv().unwrap();
        let (done, ends) = mpsc::channel();
        (0..3).for_each(|_| piece(&pool, &done));
        for _ in 0..4 {
            let done = done.clone();
            let handler = Box::new(move || done.send("handler").unwrap());
            pool.submit(handler).unwrap();
        }
        go.send(()).unwrap();
        let order: Vec<_> = ends.iter().take(10).collect();
        let turns = ["piece", "handler"].repeat(4);
        assert_eq!(order, [&turns[..], &["piece", "piece"]].concat());
        pool.stop();
    }
}
