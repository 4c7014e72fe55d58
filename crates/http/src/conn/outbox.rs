//! The outbox of a worker: responses that are ready are sent together at the end of the event loop's turn.
//!
//! A send wakes the client if it sleeps, which the kernel does in the server's time: on another core, an interrupt of half a
//! microsecond. While requests are answered one by one, a quick client sleeps again between any two; when all answers of a
//! turn follow each other it is woken once. The turn ends when no connection has anything to do, just before the thread
//! would wait for events, or when [`FULL`] responses wait, and nothing that may take long begins before what waits is
//! sent. So a response that is alone in its turn waits for nothing.

use std::cell::RefCell;
use std::rc::Rc;

use super::line::Line;
use crate::response::Service;
use crate::worker::Worker;

/// Responses that wait at most: the first of them waits for the others.
const FULL: usize = 16;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Outbox {
    lines: RefCell<Vec<Rc<Line>>>,
}

impl Outbox {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.borrow().is_empty()
    }

    /// Adds a line that has a post; true if that fills the outbox.
    pub(super) fn add(&self, line: Rc<Line>) -> bool {
        let mut lines = self.lines.borrow_mut();
        lines.push(line);
        lines.len() >= FULL
    }
}

impl<S: Service> Worker<S> {
    /// Sends what waits, in the order in which it was posted. What a socket does not take goes back to its connection.
    pub(crate) fn send_posts(&self) {
        if self.outbox.is_empty() {
            return;
        }
        let mut lines = self.outbox.lines.take();
        for line in lines.drain(..) {
            self.send_post(&line);
        }
        // Its memory is kept for the next turn.
        self.outbox.lines.replace(lines);
    }

    fn send_post(&self, line: &Line) {
        let Some((mut exchange, now)) = line.posted() else {
            return;
        };
        if let Ok(sent) = line.send(&exchange.output) {
            exchange.output.wrote(sent);
            self.counters.bytes_out.add(sent as u64);
        }
        if exchange.output.is_written() {
            self.tell_done(&mut exchange, line.peer, now);
            exchange.decoder.reclaim();
            self.pool.put(exchange);
        } else {
            line.hand_back(exchange);
        }
    }
}

/// Something to do before a worker's thread waits for events.
pub(crate) trait BeforeSleep {
    /// Does it.
    fn before_sleep(&self);
}

impl<S: Service> BeforeSleep for Worker<S> {
    fn before_sleep(&self) {
        self.send_posts();
    }
}

thread_local! {
    static WORKER: RefCell<Option<Rc<dyn BeforeSleep>>> = const { RefCell::new(None) };
}

/// The runtime calls this on the worker's thread when no task can go on.
pub(crate) fn before_sleep() {
    WORKER.with_borrow(|worker| {
        if let Some(worker) = worker {
            worker.before_sleep();
        }
    });
}

/// While it lives, [`before_sleep`] on this thread is the worker's.
pub(crate) struct AtSleep;

impl AtSleep {
    pub(crate) fn call(worker: Rc<dyn BeforeSleep>) -> Self {
        WORKER.set(Some(worker));
        Self
    }
}

impl Drop for AtSleep {
    fn drop(&mut self) {
        WORKER.set(None);
    }
}
