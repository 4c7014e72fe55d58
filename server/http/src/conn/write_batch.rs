//! The write batch of a worker: responses that are ready are sent together at the end of the event
//! loop's turn.
//!
//! A send wakes the client if it sleeps. The kernel does that in the server's time: on another
//! core, an interrupt of half a microsecond. While requests are answered one by one, a quick client
//! sleeps again between any two responses. When all responses of a turn are sent one after the
//! other, the client is woken once. The turn ends when no connection has work left, just before the
//! thread would wait for events, or when [`FULL`] responses are in the batch. The batch is also
//! sent before any operation that may take long. So a single response in its turn waits for
//! nothing.

use base_clock::Boottime;

use super::cached_response::RepeatedResponse;
use super::connections::Connections;
use super::socket::IoOutcome;
use super::{After, Connection, Exchange, NextAction, Stage};
use crate::event::{RecentClients, Token};
use crate::response::Service;

/// Responses in the batch at most. The first response waits for the rest.
const FULL: usize = 16;

/// Write of the batch on one connection.
pub(super) enum BatchedWrite {
    /// The responses of its exchange.
    Exchange(Token),
    /// One cached response, to a request that was received at this moment.
    Repeated(Token, RepeatedResponse, Boottime),
}

/// The responses to send, in order.
#[derive(Default)]
pub(crate) struct WriteBatch {
    writes: Vec<BatchedWrite>,
    /// Responses that were added in this turn.
    batched: usize,
    recent_clients: RecentClients,
}

impl WriteBatch {
    #[inline]
    pub(super) fn push(&mut self, write: BatchedWrite) {
        let (BatchedWrite::Exchange(token) | BatchedWrite::Repeated(token, ..)) = write;
        self.recent_clients.add(token);
        self.batched += 1;
        self.writes.push(write);
    }

    /// True if the batch must be sent before another response is added.
    pub(crate) fn is_full(&self) -> bool {
        self.writes.len() >= FULL
    }

    /// At the end of a turn: true if all `asked` connections that had news were answered in the
    /// turn, and at most four connections are active.
    pub(crate) fn has_answered(&self, asked: usize) -> bool {
        self.batched > 0 && self.batched == asked && self.recent_clients.are_few()
    }

    /// Ends the count of this turn.
    pub(crate) fn end_turn(&mut self) {
        self.batched = 0;
    }

    pub(crate) fn clear(&mut self) {
        self.writes.clear();
    }
}

impl<S: Service> Connections<S> {
    /// Sends the batch before work that may take long, in which its answers' times have no part.
    pub(crate) fn send_before_more(&mut self) {
        if !self.write_batch.writes.is_empty() {
            self.send_batch();
            self.host.requests.settle(Boottime::now());
        }
    }

    /// Sends the batch in order. Bytes that a socket does not take stay with the connection.
    pub(crate) fn send_batch(&mut self) {
        if self.write_batch.writes.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.write_batch.writes);
        // The first leaves first. Most batches have one.
        batch.reverse();
        while let Some(write) = batch.pop() {
            let (BatchedWrite::Exchange(token) | BatchedWrite::Repeated(token, ..)) = write;
            let Some(mut connection) = self.table.slab.take(token) else {
                continue;
            };
            match write {
                BatchedWrite::Exchange(_) => {
                    if let Some(exchange) = connection.exchange.take() {
                        self.send_exchange(&mut connection, exchange);
                    }
                }
                BatchedWrite::Repeated(_, response, received) => {
                    self.send_repeated(&mut connection, response, received);
                }
            }
            self.pace(&mut connection, NextAction::Wait);
            // For bytes that arrived meanwhile, and for the end, which has no further event.
            let is_idle = connection.stage == Stage::Idle;
            if connection.ready.read || (connection.ready.write && !is_idle) {
                self.table.queue_runnable(&mut connection);
            }
            self.table.schedule_deadline(&mut connection);
            self.table.slab.put(token, connection);
        }
        // Keeps the memory for the next turn.
        self.write_batch.writes = batch;
    }

    fn send_exchange(&mut self, connection: &mut Connection, mut exchange: Box<Exchange>) {
        if let IoOutcome::Bytes(sent) = connection.transmit(&exchange.output) {
            exchange.output.wrote(sent);
            exchange.sent = sent as u64;
            self.host.counters.bytes_out.add(sent as u64);
            connection.moved(sent);
        }
        if exchange.output.is_written() {
            exchange.notify_done(&mut self.host, &connection.peer);
            self.host.become_idle(connection, exchange.now);
            self.host.give_back(exchange);
        } else {
            self.send_on(connection, exchange);
        }
    }

    /// Sends a cached response. An exchange begins only if the socket does not take all of it.
    #[inline]
    fn send_repeated(
        &mut self,
        connection: &mut Connection,
        response: RepeatedResponse,
        received: Boottime,
    ) {
        let (text, body) = (response.text(), response.body());
        let len = text.len() + body.len();
        let sent = match connection.transmit_pair(text, body) {
            IoOutcome::Bytes(sent) => sent,
            IoOutcome::WouldBlock | IoOutcome::Closed => 0,
        };
        self.host.counters.bytes_out.add(sent as u64);
        connection.moved(sent + response.request_len());
        if sent == len {
            let body_bytes = (sent - response.head_len as usize) as u64;
            let counted = response.counted(received);
            self.host.requests.note(counted, body_bytes);
            if let Some(exchange) = response.exchange.filter(|_| response.is_reported) {
                let request = exchange.request(&connection.peer, received);
                let (status, label) = (response.status, self.host.requests.label(counted.series));
                self.host
                    .notify(|service| service.done(&request, status, body_bytes, label));
            }
            return self.host.become_idle(connection, received);
        }
        let mut exchange = self.host.pool.take();
        exchange.begin(received);
        exchange.answered = 1;
        exchange.output.push_repeated(response, received);
        exchange.output.wrote(sent);
        exchange.sent = sent as u64;
        self.send_on(connection, exchange);
    }

    /// The socket is full, or broken: the rest is sent at the next event of the socket.
    fn send_on(&self, connection: &mut Connection, mut exchange: Box<Exchange>) {
        connection.deadline = exchange.send_until(&self.host.limits);
        connection.stage = Stage::Sending(After::Read);
        connection.exchange = Some(exchange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_answered_when_each_who_asked_was() {
        let mut batch = WriteBatch::default();
        assert!(!batch.has_answered(0), "no connection had news");
        let mut answer = |numbers: std::ops::Range<u32>, asked| {
            numbers.for_each(|number| batch.push(BatchedWrite::Exchange(Token::reserved(number))));
            batch.clear();
            let has_answered = batch.has_answered(asked);
            batch.end_turn();
            has_answered
        };
        assert!(answer(0..2, 2));
        assert!(!answer(0..2, 3), "one connection waits for its response");
        assert!(answer(0..1, 1));
        assert!(!answer(0..8, 8), "more than four connections");
    }
}
