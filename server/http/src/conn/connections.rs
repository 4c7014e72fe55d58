//! All connections of a worker: which one acts, and what it does with the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use base_clock::Boottime;

use super::host::Host;
use super::read_batch::ReadBatch;
use super::table::Table;
use super::write_batch::WriteBatch;
use super::{Connection, NextAction, Stage};
use crate::event::{Ready, SocketEnd, StreamToken, Token};
use crate::limits::{CONTINUED, CONTINUED_FOR_EACH, EVENTS_PER_HANDSHAKE};
use crate::response::Service;

/// The connections of a worker, and what they share. A connection that acts is taken out of the
/// table, so that the others can act for it: their responses are sent before what takes long, and
/// their unfinished requests end when a budget is full.
pub(crate) struct Connections<S> {
    pub(crate) host: Host<S>,
    pub(crate) table: Table,
    pub(super) read_batch: ReadBatch,
    pub(crate) write_batch: WriteBatch,
}

impl<S: Service> Connections<S> {
    /// Makes a worker's connections, of which there are none yet.
    pub(crate) fn new(host: Host<S>) -> Self {
        Self {
            host,
            table: Table::new(Boottime::now()),
            read_batch: ReadBatch::default(),
            write_batch: WriteBatch::default(),
        }
    }

    /// Advances a connection as far as possible now, unless it pauses.
    pub(super) fn drive(&mut self, connection: &mut Connection) -> NextAction {
        if connection.is_paced {
            connection.is_queued = true;
            return NextAction::Wait;
        }
        let next = self.drive_stages(connection);
        self.pace(connection, next)
    }

    fn drive_stages(&mut self, connection: &mut Connection) -> NextAction {
        let mut exchange = connection.exchange.take();
        if connection.stage == Stage::Streaming && exchange.is_none() {
            exchange = connection.waken(&mut self.host);
        }
        loop {
            let step = match (connection.stage, &mut exchange) {
                (Stage::ProxyHeader, _) => self.read_proxy_header(connection),
                (Stage::Handshake | Stage::Idle, none) => self.first_bytes(connection, none),
                (Stage::Lingering(left), _) => self.linger(connection, left),
                (Stage::Reading, Some(exchange)) => exchange.read_and_answer(self, connection),
                (Stage::Answering, Some(exchange)) => {
                    // It may take long, and responses that are ready do not wait for it.
                    self.send_before_more();
                    exchange.await_answer(&mut self.host, connection)
                }
                (Stage::Storing, Some(exchange)) => {
                    exchange.await_room(&self.host.mailbox, connection)
                }
                (Stage::Sending(after), Some(exchange)) => {
                    if exchange.output.ends_with_file() {
                        self.send_before_more();
                    }
                    exchange.send(&mut self.host, connection, after)
                }
                (Stage::Streaming, Some(exchange)) => {
                    self.send_before_more();
                    exchange.stream_response(&mut self.host, connection)
                }
                (Stage::Batched, _) => Some(NextAction::Wait),
                (Stage::Http2, _) => self.drive_http2(connection),
                // No other stage is without an exchange.
                (_, None) => Some(NextAction::Close),
            };
            let has_exchange = !matches!(
                connection.stage,
                Stage::ProxyHeader | Stage::Handshake | Stage::Idle | Stage::Lingering(_)
            );
            if has_exchange {
                if let Some(step) = step {
                    match (exchange, &connection.quiet) {
                        (Some(exchange), Some(_)) => self.host.give_back(exchange),
                        (exchange, _) => connection.exchange = exchange,
                    }
                    return step;
                }
                continue;
            }
            if let Some(exchange) = exchange.take() {
                self.host.give_back(exchange);
            }
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Handles a passed deadline; none if the connection ends.
    fn time_out(&mut self, connection: &mut Connection) -> Option<NextAction> {
        if connection.is_paced {
            return Some(self.resume(connection));
        }
        if let Some(until) = self.host.first_until()
            && connection.deadline < until
            && connection.has_begun()
        {
            connection.deadline = until;
            return Some(NextAction::Wait);
        }
        match connection.stage {
            Stage::ProxyHeader => {
                self.host.counters.proxy_headers_missing.add(1);
                None
            }
            Stage::Handshake | Stage::Idle => {
                if self.host.draining.is_none() {
                    self.host.counters.idle_timeouts.add(1);
                }
                None
            }
            Stage::Reading => {
                if let Some(mut exchange) = connection.exchange.take() {
                    exchange.refuse_slow(&mut self.host, connection);
                    connection.exchange = Some(exchange);
                }
                Some(self.drive(connection))
            }
            Stage::Sending(_) => self.send_or_give_up(connection),
            Stage::Http2 => self.time_out_http2(connection),
            Stage::Lingering(_) => None,
            // These wait for the server, not for the client.
            Stage::Answering | Stage::Storing | Stage::Streaming | Stage::Batched => {
                Some(NextAction::Wait)
            }
        }
    }

    /// Notifies the service of unsent responses, and releases the token. Dropping the connection
    /// closes it.
    fn end(&mut self, connection: &mut Connection) {
        if let Some(mut http2) = connection.http2.take() {
            connection.requests_left = http2.requests_left;
            http2.end(&mut self.host);
        }
        self.settle(connection);
        connection.end_records();
        self.release_records(connection);
        if connection.has_failed() {
            self.host.counters.tls_failures.add(1);
        }
        if connection.has_panicked() {
            self.host.counters.panics.add(1);
        }
        let exchange = connection.exchange.take();
        if let Some(mut exchange) = exchange.or_else(|| connection.waken(&mut self.host)) {
            exchange.output.abandon_streamed();
            exchange.count_unanswered(&mut self.host, connection.stage);
            exchange.notify_done(&mut self.host, &connection.peer);
            self.host.give_back(exchange);
        }
        self.table.release(connection.token);
    }

    /// Handles an event of a connection's socket.
    #[inline]
    pub(crate) fn handle_event(&mut self, token: Token, news: Ready) {
        let Some(connection) = self.table.slab.get_mut(token) else {
            return;
        };
        connection.ready.add(news);
        if connection.stage == Stage::Idle && connection.ready.read && !connection.is_queued {
            return self.read_first(token);
        }
        // When the client answers this side's part of a handshake, the costly work is done.
        if connection.stage == Stage::Handshake && !connection.take_answered() {
            if !std::mem::replace(&mut connection.is_queued, true) {
                let peer = connection.peer.address;
                self.table.queue_handshake(peer, token);
            }
            return;
        }
        // A stream may have nothing to send for long, by which it would be noticed.
        if connection.stage == Stage::Streaming && connection.ready.ends == SocketEnd::Closed {
            self.advance(token, |_, _| None);
            return;
        }
        // The others continue anyway: when their response is ready, and when their turn begins.
        if !waits_for_server(connection.stage) && !connection.is_queued {
            // The connection may take long, and the requests of the batch arrived first.
            self.answer_batch();
            self.advance(token, |all, connection| Some(all.drive(connection)));
        }
    }

    /// Continues connections that need no event, after `asked` connections that had one.
    #[inline]
    pub(crate) fn continue_without_events(&mut self, asked: usize) {
        if !self.table.runnable.is_empty() {
            self.continue_runnable(asked);
        }
        if !self.table.handshakes.is_empty() {
            self.continue_handshakes(asked);
        }
    }

    /// Continues connections that are runnable. Those that become runnable meanwhile continue in
    /// the next turn, and so do the last when the first took long: connections that have news do
    /// not wait for all of them.
    #[cold]
    #[inline(never)]
    fn continue_runnable(&mut self, asked: usize) {
        let share = CONTINUED + CONTINUED_FOR_EACH * u32::try_from(asked).unwrap_or(u32::MAX);
        let mut since = None;
        for _ in 0..self.table.runnable.len() {
            // Responses that are ready do not wait for what may be much.
            self.send_before_more();
            let now = Boottime::now();
            if now.since(*since.get_or_insert(now)) >= share {
                break;
            }
            if let Some(token) = self.table.runnable.pop_front() {
                self.continue_queued(token);
            }
        }
    }

    /// Continues one handshake, and more after many events: each costs as much as fifty requests.
    #[cold]
    #[inline(never)]
    fn continue_handshakes(&mut self, asked: usize) {
        let mut left = 1 + asked / EVENTS_PER_HANDSHAKE;
        while left > 0
            && let Some(token) = self.table.handshakes.pop()
        {
            // It may have timed out in the queue.
            if self.table.slab.get_mut(token).is_some() {
                self.send_before_more();
                self.continue_queued(token);
                left -= 1;
            }
        }
    }

    fn continue_queued(&mut self, token: Token) {
        if let Some(connection) = self.table.slab.get_mut(token) {
            connection.is_queued = false;
        }
        self.advance(token, |all, connection| Some(all.drive(connection)));
    }

    /// Continues what was woken. A connection of HTTP/2 has one turn for all of its streams.
    #[inline]
    pub(crate) fn continue_woken(&mut self, woken: &mut Vec<StreamToken>) {
        for StreamToken { connection, stream } in woken.iter() {
            if let Some(connection) = self.table.slab.get_mut(*connection) {
                connection.wake(*stream);
            }
        }
        for stream in woken.drain(..) {
            self.advance(stream.connection, |all, connection| {
                Some(match connection.may_continue() {
                    true => all.drive(connection),
                    false => NextAction::Wait,
                })
            });
        }
    }

    /// Handles the connections whose deadlines have passed.
    #[inline]
    pub(crate) fn expire_deadlines(&mut self, now: Boottime, due: &mut Vec<u32>) {
        self.table.timers.due(now, due);
        if due.is_empty() {
            return;
        }
        for index in due.drain(..) {
            let Some(connection) = self.table.slab.at(index) else {
                continue;
            };
            connection.timer_at = Boottime::NEVER;
            let (token, is_late) = (connection.token, connection.deadline <= now);
            self.advance(token, |all, connection| {
                if is_late {
                    all.time_out(connection)
                } else {
                    Some(NextAction::Wait)
                }
            });
        }
        self.send_batch();
        self.host.requests.settle(Boottime::now());
    }

    /// Runs `act` on a connection, then the action that it returns. A panic ends only that
    /// connection.
    pub(crate) fn advance(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Self, &mut Connection) -> Option<NextAction>,
    ) {
        let acted = catch_unwind(AssertUnwindSafe(|| {
            let Some(mut connection) = self.table.slab.take(token) else {
                return;
            };
            let step = act(self, &mut connection).unwrap_or(NextAction::Close);
            if step == NextAction::Close {
                return self.end(&mut connection);
            }
            if step != NextAction::Wait {
                connection.deadline = Boottime::NEVER;
            }
            self.table.schedule_deadline(&mut connection);
            if step == NextAction::Yield {
                self.table.queue_runnable(&mut connection);
            }
            self.table.slab.put(token, connection);
            if self.write_batch.is_full() {
                self.send_before_more();
            }
        }));
        if acted.is_err() {
            self.recover(token);
        }
    }

    /// After a panic: its connection is lost, and so are those whose responses were being sent.
    fn recover(&mut self, token: Token) {
        self.host.counters.panics.add(1);
        self.write_batch.clear();
        let posted = self.table.slab.iter_mut();
        let posted = posted.filter(|connection| connection.stage == Stage::Batched);
        let mut lost: Vec<Token> = posted.map(|connection| connection.token).collect();
        lost.push(token);
        for &token in &lost {
            self.table.release(token);
        }
        // The lost connections have not returned their share.
        for token in lost {
            self.host.budgets.release_connection(token);
        }
    }

    /// Closes the connections that are not done in time.
    pub(crate) fn close_all(&mut self) {
        let all = self.table.slab.iter_mut();
        let all: Vec<Token> = all.map(|connection| connection.token).collect();
        for token in all {
            self.advance(token, |_, _| None);
        }
    }
}

/// True if an event of the socket changes nothing at this stage.
fn waits_for_server(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Answering | Stage::Storing | Stage::Streaming | Stage::Batched
    )
}
