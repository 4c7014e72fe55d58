//! What goes out of one connection, and how long its client may take to read it.

use base_clock::Boottime;
use rustix::net::{Shutdown, shutdown};

use super::exchange::Exchange;
use super::socket::IoOutcome;
use super::{After, Connection, NextAction, Stage};
use crate::date::Persistence;
use crate::h1::Phase;
use crate::limits::{CORKED, LINGER, LINGER_BYTES, TURN};
use crate::progress::TransferProgress;
use crate::response::{Response, Service};
use crate::worker::Worker;

impl<S: Service> Worker<S> {
    /// Sends the queue; none when it is sent and the next stage has begun.
    pub(super) fn send(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
        after: After,
    ) -> Option<NextAction> {
        let mut sent_file = false;
        while !exchange.output.is_written() {
            let file = exchange.output.next_file();
            let outcome = match &file {
                Some(part) => {
                    sent_file = true;
                    self.send_batch();
                    if exchange.output.begins_file() && CORKED.contains(&part.len) {
                        connection.cork();
                    }
                    connection.transmit_file(part)
                }
                None => connection.transmit(&exchange.output),
            };
            match outcome {
                IoOutcome::Bytes(len) => self.sent(exchange, len, file.is_some()),
                IoOutcome::WouldBlock => {
                    connection.deadline = self.send_until(exchange);
                    return Some(NextAction::Wait);
                }
                IoOutcome::Closed => return Some(NextAction::Close),
            }
            let is_file_left = exchange.output.next_file().is_some();
            if !is_file_left {
                connection.uncork();
            }
            if is_file_left && file.is_some() {
                // A large file must not delay other connections.
                return Some(NextAction::Yield);
            }
        }
        if exchange.sending.take().is_some() || sent_file {
            // The time that the client read counts neither as silence nor as time of its next head.
            exchange.now = Boottime::now();
            exchange.head_since = exchange.now;
        }
        let sent = std::mem::take(&mut exchange.sent);
        self.notify_done(exchange, connection.peer);
        let next = self.after(connection, after);
        let asks_on = || exchange.decoder.phase() != Phase::Idle || connection.ready.read;
        let is_much = exchange.answered > TURN || (sent > self.most_output as u64 && asks_on());
        if after == After::Read && is_much {
            // A pipeline never waits for bytes, so other connections would never have their turn.
            exchange.answered = 0;
            return Some(NextAction::Yield);
        }
        next
    }

    /// Handles a passed deadline; none if the client has read nothing.
    pub(super) fn send_or_give_up(&mut self, connection: &mut Connection) -> Option<NextAction> {
        // The kernel reports free space only when a third of its buffer is free (tcp(7)), which
        // takes a slow reader longer than the deadline: so the socket itself is tried.
        connection.ready.write = true;
        let step = self.drive(connection);
        let is_stuck = step == NextAction::Wait
            && matches!(connection.stage, Stage::Sending(_))
            && connection.deadline <= Boottime::now();
        if is_stuck {
            self.counters.write_timeouts.add(1);
        }
        (!is_stuck).then_some(step)
    }

    fn sent(&self, exchange: &mut Exchange, len: usize, is_file: bool) {
        if is_file {
            exchange.output.wrote_file(len as u64);
        } else {
            exchange.output.wrote(len);
        }
        exchange.sent += len as u64;
        self.counters.bytes_out.add(len as u64);
    }

    /// Deadline of a client that does not read, from the first time that the socket was full.
    pub(super) fn send_until(&self, exchange: &mut Exchange) -> Boottime {
        let now = Boottime::now();
        let progress = exchange
            .sending
            .get_or_insert_with(|| TransferProgress::new(now));
        progress.moved_to(exchange.sent, now);
        progress.deadline(self.limits.progress_timeout)
    }

    /// Sends a response without a request, and ends.
    pub(crate) fn respond_and_linger(
        &mut self,
        connection: &mut Connection,
        response: Response,
    ) -> NextAction {
        let mut exchange = self.pool.take();
        let now = Boottime::now();
        exchange.begin(now);
        let tail = self.tails.get(now, Persistence::Close);
        exchange.output.push(None, response, tail);
        connection.exchange = Some(exchange);
        connection.stage = Stage::Sending(After::Linger);
        self.drive(connection)
    }

    fn after(&self, connection: &mut Connection, after: After) -> Option<NextAction> {
        connection.stage = match after {
            After::Read => Stage::Reading,
            After::Answer => Stage::Answering,
            After::Stream => Stage::Streaming,
            After::Close => return Some(NextAction::Close),
            After::Linger => return begin_to_linger(connection),
        };
        None
    }
}

/// Closes the sending side, and waits until the client has seen that.
pub(super) fn begin_to_linger(connection: &mut Connection) -> Option<NextAction> {
    connection.end_records();
    if shutdown(&connection.socket, Shutdown::Write).is_err() {
        return Some(NextAction::Close);
    }
    connection.stage = Stage::Lingering(LINGER_BYTES);
    connection.deadline = Boottime::now().plus(LINGER);
    None
}
