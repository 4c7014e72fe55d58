//! What all connections of a worker share. Code that gets a [`Host`] and one connection cannot
//! reach the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use base_clock::Boottime;

use super::exchange::{Exchange, Pool};
use super::response_cache::ResponseCache;
use super::{Connection, Stage};
use crate::body_file::BodyFile;
use crate::date::Tails;
use crate::event::Mailbox;
use crate::h2::{SharedBuffers, encode_fields};
use crate::limits::{DRAIN_GRACE, Limits, OUTPUT, Proxies, READ_BUFFER};
use crate::request_budgets::RequestBudgets;
use crate::request_counts::RequestCounter;
use crate::response::Service;
use crate::worker_group::{Counters, WorkerGroup};

/// See the [module](self).
pub(crate) struct Host<S> {
    pub(crate) service: S,
    pub(crate) limits: Limits,
    /// The proxies of the limits.
    pub(crate) proxies: Rc<Proxies>,
    pub(crate) group: Arc<WorkerGroup>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) requests: RequestCounter,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(super) tails: Tails,
    pub(super) pool: Pool,
    pub(super) response_cache: ResponseCache,
    pub(super) http2_buffers: SharedBuffers,
    /// Bytes of HTTP/2 as they are received and sent, of one connection at a time.
    pub(super) http2_input: Vec<u8>,
    pub(super) http2_output: Vec<u8>,
    pub(crate) budgets: RequestBudgets,
    /// Output of a connection beyond which others have their turn.
    pub(crate) most_output: usize,
    /// When the shutdown of the worker began.
    pub(crate) draining: Option<Boottime>,
}

impl<S: Service> Host<S> {
    /// Makes what the connections of one listener share, which end their heads with the lines of
    /// `fields`; `is_secured` if they speak TLS.
    pub(crate) fn new(
        service: S,
        limits: Limits,
        group: Arc<WorkerGroup>,
        (counters, requests): (Arc<Counters>, RequestCounter),
        mailbox: Arc<Mailbox>,
        fields: String,
        is_secured: bool,
    ) -> Self {
        Self {
            budgets: RequestBudgets::new(&limits),
            service,
            proxies: Rc::new(limits.proxies.clone()),
            limits,
            group,
            counters,
            requests,
            mailbox,
            tails: Tails::new(fields, encode_fields),
            pool: Pool::new(is_secured),
            response_cache: ResponseCache::default(),
            http2_buffers: SharedBuffers::default(),
            http2_input: vec![0; READ_BUFFER],
            http2_output: Vec::new(),
            most_output: OUTPUT,
            draining: None,
        }
    }

    /// Calls a notification of the service; a panic there must not affect other connections.
    pub(crate) fn notify(&self, notification: impl FnOnce(&S)) {
        if catch_unwind(AssertUnwindSafe(|| notification(&self.service))).is_err() {
            self.counters.panics.add(1);
        }
    }

    /// Begins the time in which the connection may be idle.
    pub(super) fn become_idle(&self, connection: &mut Connection, now: Boottime) {
        connection.stage = Stage::Idle;
        connection.deadline = self.idle_until(now);
    }

    /// Begins the time in which the first request of a connection may come.
    pub(super) fn await_first(&self, connection: &mut Connection, now: Boottime) {
        self.become_idle(connection, now);
        connection.deadline = self.first_until().unwrap_or(connection.deadline);
    }

    /// Returns until when a drain, if there is one, waits for a connection to bring its first
    /// request: as long as for the rest of a head.
    pub(super) fn first_until(&self) -> Option<Boottime> {
        let since = self.draining?;
        Some(since.plus(self.limits.head_timeout))
    }

    /// Returns the deadline of a connection that became idle at `now`.
    pub(crate) fn idle_until(&self, now: Boottime) -> Boottime {
        let until = now.plus(self.limits.idle_timeout);
        match self.draining {
            Some(since) => until.min(since.plus(DRAIN_GRACE)),
            None => until,
        }
    }

    /// Takes back an exchange that is over, with all bytes that it has received.
    pub(super) fn give_back(&mut self, mut exchange: Box<Exchange>) {
        exchange.release(&mut self.budgets);
        self.pool.put(exchange);
    }

    /// Creates a file for a body, unless too many are open.
    pub(super) fn create_body_file(&mut self) -> Option<BodyFile> {
        if self.budgets.are_files_taken() {
            return None;
        }
        let file = BodyFile::create().ok();
        match &file {
            Some(_) => self.counters.bodies_in_files.add(1),
            None => self.budgets.do_without_files(),
        }
        file
    }
}
