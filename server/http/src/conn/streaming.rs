//! Bodies of HTTP/1 that the service takes as they arrive.
//!
//! Each piece goes from the decoder to the [receiver](crate::streamed::BodyReceiver) before more
//! is read. While the receiver has no room, the connection is at [`Stage::Storing`], reads
//! nothing, and has no deadline: it waits for the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use base_clock::Boottime;
use bytes::Bytes;

use super::answer::{begin_answering, response_to};
use super::connections::Connections;
use super::exchange::{Exchange, OpenRequest};
use super::host::Host;
use super::{Connection, NextAction, Stage};
use crate::event::Mailbox;
use crate::h1::{Head, Refusal};
use crate::limits::{BODY_TURN, SPARE_BUFFERS};
use crate::peer::Peer;
use crate::response::{Reply, Response, Service};
use crate::streamed::{BodyHandling, give, poll_room};

impl Exchange {
    /// Asks the service what becomes of a body; the next stage, unless more of it is to be read.
    pub(super) fn begin_body<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
        head: Head,
    ) -> Option<Stage> {
        let handling = {
            let decoder = &self.decoder;
            let request = decoder.request(&head, Bytes::new(), &connection.peer, self.now);
            self.open = Some(OpenRequest::of(&request));
            let (left, client) = (&mut connection.requests_left, &connection.client);
            if let Err(refusal) = host.admit_request(left, client.0.as_ref(), &request) {
                return self.end_body(host, head, Some(response_to(refusal)));
            }
            catch_unwind(AssertUnwindSafe(|| host.service.body_begins(&request)))
        };
        let limit = match handling {
            Ok(BodyHandling::Whole) => host.limits.body,
            Ok(BodyHandling::Refused(response)) => {
                return self.end_body(host, head, Some(response));
            }
            Ok(BodyHandling::Streamed(receiver)) => {
                let limit = usize::try_from(receiver.limit()).unwrap_or(usize::MAX);
                self.receiver = Some(receiver);
                limit
            }
            Err(_) => return self.end_body(host, head, None),
        };
        match self.decoder.accept_body(limit) {
            Ok(()) => None,
            Err(refusal) => {
                self.refuse(host, connection, refusal);
                Some(connection.stage)
            }
        }
    }

    /// Answers a request whose body is not wanted any more, and drops what comes of it.
    fn end_body<S: Service>(
        &mut self,
        host: &mut Host<S>,
        head: Head,
        response: Option<Response>,
    ) -> Option<Stage> {
        self.body = None;
        self.receiver = None;
        self.answered += 1;
        host.counters.requests.add(1);
        self.release(&mut host.budgets);
        self.queue(host, head, response.map(Response::closing))
    }

    /// Gives the receiver what has arrived, and reads more if it has room; none if bytes arrived or
    /// the stage is another.
    pub(super) fn stream_rest<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> Result<Option<NextAction>, Refusal> {
        let before = self.decoder.body_len() - self.decoder.body_in_memory();
        if self.decoder.body_in_memory() > 0 {
            let given = match &mut self.receiver {
                Some(receiver) => self.decoder.move_body(|piece| give(&mut **receiver, piece)),
                None => Ok(()),
            };
            if let Err(response) = given {
                if let Some(head) = self.decoder.head_of_body()
                    && let Some(stage) = self.end_body(&mut all.host, head, response)
                {
                    connection.stage = stage;
                }
                return Ok(None);
            }
            if before / BODY_TURN != self.decoder.body_len() / BODY_TURN {
                // A client that sends fast never lets the connection wait.
                return Ok(Some(NextAction::Yield));
            }
        }
        if self.poll_room(&all.host.mailbox, connection).is_pending() {
            self.now = Boottime::now();
            connection.stage = Stage::Storing;
            connection.deadline = Boottime::NEVER;
            return Ok(Some(NextAction::Wait));
        }
        let step = self.read_on(&mut all.host, connection);
        if matches!(step, Some(NextAction::Wait | NextAction::Yield)) {
            if all.host.budgets.memory.holders() >= SPARE_BUFFERS {
                self.decoder.shrink();
            }
            self.hold_memory(all, connection)?;
        }
        Ok(step)
    }

    /// Goes on reading if the receiver has room again.
    pub(super) fn await_room(
        &mut self,
        mailbox: &Arc<Mailbox>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        if self.poll_room(mailbox, connection).is_pending() {
            connection.deadline = Boottime::NEVER;
            return Some(NextAction::Wait);
        }
        let now = Boottime::now();
        if let Some(progress) = &mut self.body {
            progress.paused(now.since(self.now));
        }
        self.now = now;
        connection.stage = Stage::Reading;
        None
    }

    /// Returns whether the receiver has room. One that panics has, and panics again when it gets a
    /// piece.
    fn poll_room(&mut self, mailbox: &Arc<Mailbox>, connection: &Connection) -> Poll<()> {
        let Some(receiver) = &mut self.receiver else {
            return Poll::Ready(());
        };
        poll_room(&mut **receiver, || {
            mailbox.waker(connection.token.stream(0))
        })
    }

    /// Gives the receiver the last bytes, and answers.
    pub(super) fn finish_body<S: Service>(
        &mut self,
        host: &mut Host<S>,
        head: Head,
        rest: &[u8],
        peer: &Peer,
    ) -> Option<Stage> {
        let mut receiver = self.receiver.take()?;
        let reply = {
            let decoder = &self.decoder;
            let request = decoder.request(&head, Bytes::new(), peer, self.now);
            self.open = Some(OpenRequest::of(&request));
            let finish = AssertUnwindSafe(|| match receiver.receive(rest) {
                Ok(()) => receiver.finish(&request),
                Err(response) => response.into(),
            });
            catch_unwind(finish)
        };
        match reply {
            Ok(Reply::Ready(response)) => self.queue(host, head, Some(response)),
            Ok(Reply::Reusable(reply)) => self.queue(host, head, Some(reply.0)),
            Ok(Reply::Later(response)) => Some(begin_answering(self, head, response)),
            Err(_) => self.queue(host, head, None),
        }
    }
}
