//! The outbox of a worker: responses that are ready are sent together at the end of the event loop's turn.
//!
//! A send wakes the client if it sleeps, which the kernel does in the server's time: on another core, an interrupt of half a
//! microsecond. While requests are answered one by one, a quick client sleeps again between any two; when all answers of a
//! turn follow each other it is woken once. The turn ends when no connection has anything to do, just before the thread
//! would wait for events, or when [`FULL`] responses wait, and nothing that may take long begins before what waits is
//! sent. So a response that is alone in its turn waits for nothing.

use super::socket::Moved;
use super::{After, Connection, Stage};
use crate::event::Token;
use crate::response::Service;
use crate::worker::Worker;

/// Responses that wait at most: the first of them waits for the others.
const FULL: usize = 16;

/// Who has responses to send.
pub(crate) type Outbox = Vec<Token>;

impl<S: Service> Worker<S> {
    /// Adds a connection whose responses are ready.
    pub(crate) fn post(&mut self, token: Token) {
        self.outbox.push(token);
        if self.outbox.len() >= FULL {
            self.send_posts();
        }
    }

    /// Sends what waits, in the order in which it was posted. What a socket does not take stays with its connection.
    pub(crate) fn send_posts(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        for token in outbox.drain(..) {
            if let Some(mut connection) = self.connections.take(token) {
                self.send_post(&mut connection);
                self.look_later(&mut connection);
                self.connections.put(token, connection);
            }
        }
        // Its memory is kept for the next turn.
        self.outbox = outbox;
    }

    fn send_post(&mut self, connection: &mut Connection) {
        let Some(mut exchange) = connection.exchange.take() else {
            return;
        };
        if let Moved::Bytes(sent) = connection.transmit(&exchange.output) {
            exchange.output.wrote(sent);
            exchange.sent = sent as u64;
            self.counters.bytes_out.add(sent as u64);
        }
        if exchange.output.is_written() {
            self.tell_done(&mut exchange, connection.peer);
            exchange.decoder.reclaim();
            self.rest(connection, exchange.now);
            self.pool.put(exchange);
        } else {
            connection.deadline = self.send_until(&mut exchange);
            connection.stage = Stage::Sending(After::Read);
            connection.exchange = Some(exchange);
        }
        // Whatever has come meanwhile, or the end, of which there will be no further event.
        if connection.ready.read || (connection.ready.write && connection.stage != Stage::Idle) {
            self.queue_up(connection);
        }
    }
}
