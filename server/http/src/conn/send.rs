//! What goes out of one connection, and how long its client may take to read it.

use base_clock::Boottime;
use rustix::net::{Shutdown, shutdown};

use super::connections::Connections;
use super::exchange::Exchange;
use super::host::Host;
use super::output::NOT_COUNTED;
use super::socket::IoOutcome;
use super::{After, Connection, NextAction, Stage};
use crate::date::Persistence;
use crate::h1::Phase;
use crate::limits::{CORKED, LINGER, LINGER_BYTES, Limits, TURN};
use crate::progress::TransferProgress;
use crate::response::{Response, Service};
use crate::worker_group::Counters;

impl Exchange {
    /// Sends the queue; none when it is sent and the next stage has begun.
    pub(super) fn send<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
        after: After,
    ) -> Option<NextAction> {
        let mut sent_file = false;
        while !self.output.is_written() {
            let file = self.output.next_file();
            let outcome = match &file {
                Some(part) => {
                    sent_file = true;
                    if self.output.begins_file() && CORKED.contains(&part.len) {
                        connection.cork();
                    }
                    connection.transmit_file(part)
                }
                None => connection.transmit(&self.output),
            };
            match outcome {
                IoOutcome::Bytes(len) => {
                    connection.moved(len);
                    self.sent(&host.counters, len, file.is_some());
                }
                IoOutcome::WouldBlock => {
                    connection.deadline = self.send_until(&host.limits);
                    return Some(NextAction::Wait);
                }
                IoOutcome::Closed => return Some(NextAction::Close),
            }
            let is_file_left = self.output.next_file().is_some();
            if !is_file_left {
                connection.uncork();
            }
            if is_file_left && file.is_some() {
                // A large file must not delay other connections.
                return Some(NextAction::Yield);
            }
        }
        if self.sending.take().is_some() || sent_file {
            // The time that the client read counts neither as silence nor as time of its next head.
            self.now = Boottime::now();
            self.head_since = self.now;
        }
        let sent = std::mem::take(&mut self.sent);
        self.notify_done(host, &connection.peer);
        let next = next_stage(connection, after);
        let asks_on = || self.decoder.phase() != Phase::Idle || connection.ready.read;
        let is_much = self.answered > TURN || (sent > host.most_output as u64 && asks_on());
        if after == After::Read && is_much {
            // A pipeline never waits for bytes, so other connections would never have their turn.
            self.answered = 0;
            return Some(NextAction::Yield);
        }
        next
    }

    fn sent(&mut self, counters: &Counters, len: usize, is_file: bool) {
        if is_file {
            self.output.wrote_file(len as u64);
        } else {
            self.output.wrote(len);
        }
        self.sent += len as u64;
        counters.bytes_out.add(len as u64);
    }

    /// Deadline of a client that does not read, from the first time that the socket was full.
    pub(super) fn send_until(&mut self, limits: &Limits) -> Boottime {
        let now = Boottime::now();
        let progress = self
            .sending
            .get_or_insert_with(|| TransferProgress::new(now));
        progress.moved_to(self.sent, now);
        progress.deadline(limits.progress_timeout)
    }
}

impl<S: Service> Connections<S> {
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
            self.host.counters.write_timeouts.add(1);
        }
        (!is_stuck).then_some(step)
    }

    /// Sends a response without a request, which counts as a connection only, and ends.
    pub(crate) fn respond_and_linger(
        &mut self,
        connection: &mut Connection,
        response: Response,
    ) -> NextAction {
        let mut exchange = self.host.pool.take();
        let now = Boottime::now();
        exchange.begin(now);
        let tail = self.host.tails.get(now, Persistence::Close);
        exchange.output.push(None, response, tail, NOT_COUNTED);
        connection.exchange = Some(exchange);
        connection.stage = Stage::Sending(After::Linger);
        self.drive(connection)
    }
}

/// Begins the stage that follows a response; none if the connection goes on.
fn next_stage(connection: &mut Connection, after: After) -> Option<NextAction> {
    connection.stage = match after {
        After::Read => Stage::Reading,
        After::Answer => Stage::Answering,
        After::Stream => Stage::Streaming,
        After::Close => return Some(NextAction::Close),
        After::Linger => return begin_to_linger(connection),
    };
    None
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
