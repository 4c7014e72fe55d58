//! Bodies of HTTP/2 that the service takes as they arrive.
//!
//! The window of the connection is opened for all that arrives, that of a stream only while its
//! receiver has room. So a receiver without room holds up its own stream and no other, and a stream
//! holds at most a window of its body here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use base_clock::Boottime;

use super::answer::response_to;
use super::connections::Connections;
use super::host::Host;
use super::http2::Http2;
use crate::h2::StreamId;
use crate::response::{Reply, Response, Service};
use crate::streamed::{BodyHandling, BodyReceiver, give, poll_room};

/// Receiver of the body of a stream.
pub(super) struct StreamReceiver {
    stream: StreamId,
    receiver: Box<dyn BodyReceiver>,
    /// It has no room, and its waker was not woken.
    is_waiting: bool,
}

impl StreamReceiver {
    pub(super) fn is_of(&self, stream: StreamId) -> bool {
        self.stream == stream
    }

    /// Notes that its waker was woken.
    pub(super) fn wake(&mut self) {
        self.is_waiting = false;
    }
}

impl Http2 {
    /// The receiver of a stream, which is no longer given anything.
    pub(super) fn take_receiver(&mut self, stream: StreamId) -> Option<StreamReceiver> {
        let mut receivers = self.receivers.iter();
        let at = receivers.position(|receiver| receiver.is_of(stream))?;
        Some(self.receivers.swap_remove(at))
    }

    /// Asks the service what becomes of a body.
    pub(super) fn begin_body<S: Service>(&mut self, all: &mut Connections<S>, stream: StreamId) {
        let handling = {
            let Some(request) = self.session.request(stream, &self.peer, self.now) else {
                return;
            };
            let (left, counts) = (&mut self.requests_left, self.counts.as_ref());
            if let Err(refusal) = all.host.admit_request(left, counts, &request) {
                return self.end_body(&mut all.host, stream, Some(response_to(refusal)));
            }
            catch_unwind(AssertUnwindSafe(|| all.host.service.body_begins(&request)))
        };
        let limit = match handling {
            Ok(BodyHandling::Whole) => all.host.limits.body,
            Ok(BodyHandling::Refused(response)) => {
                return self.end_body(&mut all.host, stream, Some(response));
            }
            Ok(BodyHandling::Streamed(receiver)) => {
                let limit = usize::try_from(receiver.limit()).unwrap_or(usize::MAX);
                self.session.set_streamed(stream);
                self.receivers.push(StreamReceiver {
                    stream,
                    receiver,
                    is_waiting: false,
                });
                limit
            }
            Err(_) => return self.end_body(&mut all.host, stream, None),
        };
        if let Some(event) = self.session.accept_body(stream, limit) {
            self.handle(all, event);
        }
    }

    /// Answers a request whose body is not wanted any more; without a response, the service
    /// panicked.
    fn end_body<S: Service>(
        &mut self,
        host: &mut Host<S>,
        stream: StreamId,
        response: Option<Response>,
    ) {
        host.counters.requests.add(1);
        self.session.reject_body(stream);
        match response {
            Some(response) => self.respond(host, stream, &response),
            None => self.respond_to_panic(host, stream),
        }
    }

    /// Gives all receivers what has arrived for them, and lets the clients of those that have room
    /// send more.
    pub(super) fn feed_receivers<S: Service>(&mut self, host: &mut Host<S>) {
        if self.receivers.is_empty() {
            return;
        }
        for mut receiver in std::mem::take(&mut self.receivers) {
            let stream = receiver.stream;
            let given = self
                .session
                .give_body(stream, |piece| give(&mut *receiver.receiver, piece));
            if let Err(response) = given {
                self.end_body(host, stream, response);
                continue;
            }
            if !receiver.is_waiting {
                let token = self.stream_token(stream);
                match poll_room(&mut *receiver.receiver, || host.mailbox.waker(token)) {
                    Poll::Ready(()) => self.session.resume_body(stream, self.now),
                    Poll::Pending => {
                        self.now = Boottime::now();
                        receiver.is_waiting = true;
                        self.session.pause_body(stream, self.now);
                    }
                }
            }
            self.receivers.push(receiver);
        }
    }

    /// Gives a receiver the last bytes, and answers.
    pub(super) fn finish_body<S: Service>(
        &mut self,
        host: &mut Host<S>,
        stream: StreamId,
        mut receiver: StreamReceiver,
    ) {
        let given = self
            .session
            .give_body(stream, |piece| give(&mut *receiver.receiver, piece));
        let reply = {
            let Some(request) = self.session.request(stream, &self.peer, self.now) else {
                return;
            };
            match given {
                Ok(()) => {
                    let finish = AssertUnwindSafe(|| receiver.receiver.finish(&request));
                    catch_unwind(finish).ok()
                }
                Err(response) => response.map(Reply::Ready),
            }
        };
        match reply {
            Some(Reply::Ready(response)) => self.respond(host, stream, &response),
            Some(Reply::Reusable(reply)) => self.respond(host, stream, &reply.0),
            Some(Reply::Later(response)) => self.begin_answering(stream, response),
            None => self.respond_to_panic(host, stream),
        }
    }
}
