//! The outbox of a worker: responses that are ready are sent together at the end of the event loop's turn.
//!
//! A send wakes the client if it sleeps, which the kernel does in the server's time: on another core, an interrupt of half a
//! microsecond. While requests are answered one by one, a quick client sleeps again between any two; when all answers of a
//! turn follow each other it is woken once. The turn ends when no connection has anything to do, just before the thread
//! would wait for events, or when [`FULL`] responses wait, and nothing that may take long begins before what waits is
//! sent. So a response that is alone in its turn waits for nothing.

use base_clock::Boottime;

use super::cached_response::RepeatedResponse;
use super::socket::Moved;
use super::{After, Connection, Exchange, Stage};
use crate::event::{Talkers, Token};
use crate::response::Service;
use crate::worker::Worker;

/// Responses that wait at most: the first of them waits for the others.
const FULL: usize = 16;

/// What is to be sent on one connection.
pub(super) enum Post {
    /// The responses of its exchange.
    Exchange(Token),
    /// One cached response, to a request that was received at this moment.
    Repeated(Token, RepeatedResponse, Boottime),
}

/// What is to be sent, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    posts: Vec<Post>,
    /// How many there were in this turn.
    posted: usize,
    talkers: Talkers,
}

impl Outbox {
    pub(super) fn push(&mut self, post: Post) {
        let (Post::Exchange(token) | Post::Repeated(token, ..)) = post;
        self.talkers.note(token);
        self.posted += 1;
        self.posts.push(post);
    }

    /// Whether nothing more may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.posts.len() >= FULL
    }

    /// At the end of a turn: whether each of so many who asked in it was answered in it, and they are few.
    pub(crate) fn has_answered(&self, asked: usize) -> bool {
        self.posted > 0 && self.posted == asked && self.talkers.are_few()
    }

    /// The next turn begins to count.
    pub(crate) fn end_turn(&mut self) {
        self.posted = 0;
    }

    pub(crate) fn clear(&mut self) {
        self.posts.clear();
    }
}

impl<S: Service> Worker<S> {
    /// Sends what waits, in the order in which it was posted. What a socket does not take stays with its connection.
    pub(crate) fn send_posts(&mut self) {
        if self.outbox.posts.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox.posts);
        for post in outbox.drain(..) {
            let (Post::Exchange(token) | Post::Repeated(token, ..)) = post;
            let Some(mut connection) = self.connections.take(token) else {
                continue;
            };
            match post {
                Post::Exchange(_) => {
                    if let Some(exchange) = connection.exchange.take() {
                        self.send_exchange(&mut connection, exchange);
                    }
                }
                Post::Repeated(_, response, received) => {
                    self.send_repeated(&mut connection, response, received);
                }
            }
            // Whatever has come meanwhile, or the end, of which there will be no further event.
            let is_idle = connection.stage == Stage::Idle;
            if connection.ready.read || (connection.ready.write && !is_idle) {
                self.queue_up(&mut connection);
            }
            self.look_later(&mut connection);
            self.connections.put(token, connection);
        }
        // Its memory is kept for the next turn.
        self.outbox.posts = outbox;
    }

    fn send_exchange(&mut self, connection: &mut Connection, mut exchange: Box<Exchange>) {
        if let Moved::Bytes(sent) = connection.transmit(&exchange.output) {
            exchange.output.wrote(sent);
            exchange.sent = sent as u64;
            self.counters.bytes_out.add(sent as u64);
        }
        if exchange.output.is_written() {
            self.tell_done(&mut exchange, connection.peer);
            self.rest(connection, exchange.now);
            self.give_back(exchange);
        } else {
            self.send_on(connection, exchange);
        }
    }

    /// Sends a cached response. An exchange begins only if the socket does not take all of it.
    fn send_repeated(
        &mut self,
        connection: &mut Connection,
        response: RepeatedResponse,
        received: Boottime,
    ) {
        let (text, body) = (response.text(), response.body());
        let len = text.len() + body.len();
        let sent = match connection.transmit_pair(text, body) {
            Moved::Bytes(sent) => sent,
            Moved::Nothing | Moved::End => 0,
        };
        self.counters.bytes_out.add(sent as u64);
        if sent == len {
            if let Some(exchange) = response.exchange.filter(|_| response.is_reported) {
                let body_bytes = (sent - response.head_len as usize) as u64;
                let request = exchange.request(connection.peer, received);
                self.tell(|service| service.done(&request, response.status, body_bytes));
            }
            return self.rest(connection, received);
        }
        let mut exchange = self.pool.take();
        exchange.begin(received);
        exchange.answered = 1;
        exchange.output.push_repeated(response);
        exchange.output.wrote(sent);
        exchange.sent = sent as u64;
        self.send_on(connection, exchange);
    }

    /// The socket is full, or broken: the rest is sent when there is news of it.
    fn send_on(&self, connection: &mut Connection, mut exchange: Box<Exchange>) {
        connection.deadline = self.send_until(&mut exchange);
        connection.stage = Stage::Sending(After::Read);
        connection.exchange = Some(exchange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_answered_when_each_who_asked_was() {
        let mut outbox = Outbox::default();
        assert!(!outbox.has_answered(0), "nobody has asked");
        let mut answer = |numbers: std::ops::Range<u32>, asked| {
            numbers.for_each(|number| outbox.push(Post::Exchange(Token::reserved(number))));
            outbox.clear();
            let has_answered = outbox.has_answered(asked);
            outbox.end_turn();
            has_answered
        };
        assert!(answer(0..2, 2));
        assert!(!answer(0..2, 3), "somebody waits for his answer");
        assert!(answer(0..1, 1));
        assert!(!answer(0..8, 8), "they are many");
    }
}
