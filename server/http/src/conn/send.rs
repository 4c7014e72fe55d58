//! What goes out of one connection, and how long its client may take to read it.

use base_clock::Boottime;
use rustix::net::{Shutdown, shutdown};

use super::exchange::Exchange;
use super::progress::Progress;
use super::socket::Moved;
use super::{After, Connection, Stage, Step};
use crate::date::Persistence;
use crate::limits::{CORKED, LINGER, LINGER_BYTES, TURN};
use crate::response::{Response, Service};
use crate::worker::Worker;

impl<S: Service> Worker<S> {
    /// Sends all that is queued; none once that is done and the stage after it has begun.
    pub(super) fn send(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
        after: After,
    ) -> Option<Step> {
        let mut sent_file = false;
        while !exchange.output.is_written() {
            let file = exchange.output.next_file();
            let moved = match &file {
                Some(part) => {
                    sent_file = true;
                    self.send_posts();
                    if exchange.output.begins_file() && CORKED.contains(&part.len) {
                        connection.cork();
                    }
                    connection.transmit_file(part)
                }
                None => connection.transmit(&exchange.output),
            };
            match moved {
                Moved::Bytes(len) => self.sent(exchange, len, file.is_some()),
                Moved::Nothing => {
                    connection.deadline = self.send_until(exchange);
                    return Some(Step::Wait);
                }
                Moved::End => return Some(Step::End),
            }
            let is_file_left = exchange.output.next_file().is_some();
            if !is_file_left {
                connection.uncork();
            }
            if is_file_left && file.is_some() {
                // A large file must not keep other connections from their turn.
                return Some(Step::Yield);
            }
        }
        if exchange.sending.take().is_some() || sent_file {
            // The time a client took to read is not time it was silent, nor time its next head took.
            exchange.now = Boottime::now();
            exchange.head_since = exchange.now;
        }
        exchange.sent = 0;
        self.tell_done(exchange, connection.peer);
        let next = self.after(connection, after);
        if after == After::Read && exchange.answered > TURN {
            // A pipeline never has to wait for bytes, so others would never have their turn.
            exchange.answered = 0;
            return Some(Step::Yield);
        }
        next
    }

    /// The deadline has passed; none if the client has really read nothing.
    pub(super) fn send_or_give_up(&mut self, connection: &mut Connection) -> Option<Step> {
        // The kernel tells of room only when a third of its buffer is free (tcp(7)), which takes a slow reader longer than it has: so
        // the socket itself is asked.
        connection.ready.write = true;
        let step = self.go_on(connection);
        let is_stuck = step == Step::Wait
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

    /// The client does not read: patience runs from the first time that the socket was full.
    pub(super) fn send_until(&self, exchange: &mut Exchange) -> Boottime {
        let now = Boottime::now();
        let progress = exchange.sending.get_or_insert_with(|| Progress::new(now));
        progress.moved_to(exchange.sent, now);
        progress.deadline(self.limits.progress_timeout)
    }

    /// Sends something that nobody asked for, and ends.
    pub(crate) fn say_and_linger(
        &mut self,
        connection: &mut Connection,
        response: Response,
    ) -> Step {
        let mut exchange = self.pool.take();
        let now = Boottime::now();
        exchange.begin(now);
        let tail = self.tails.get(now, Persistence::Close);
        exchange.output.push(None, response, tail);
        connection.exchange = Some(exchange);
        connection.stage = Stage::Sending(After::Linger);
        self.go_on(connection)
    }

    fn after(&self, connection: &mut Connection, after: After) -> Option<Step> {
        connection.stage = match after {
            After::Read => Stage::Reading,
            After::Answer => Stage::Answering,
            After::Close => return Some(Step::End),
            After::Linger => return begin_to_linger(connection),
        };
        None
    }
}

/// Says that nothing more comes, and waits until the client has seen it.
fn begin_to_linger(connection: &mut Connection) -> Option<Step> {
    if shutdown(&connection.socket, Shutdown::Write).is_err() {
        return Some(Step::End);
    }
    connection.stage = Stage::Lingering(LINGER_BYTES);
    connection.deadline = Boottime::now().plus(LINGER);
    None
}
