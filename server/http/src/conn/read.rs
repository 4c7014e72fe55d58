//! What comes in: first bytes, further bytes, and bytes that nobody wants.

use base_clock::Boottime;

use super::cached_response::RepeatedResponse;
use super::exchange::Exchange;
use super::intake::First;
use super::outbox::Post;
use super::progress::Progress;
use super::response_cache::RequestHash;
use super::socket::Moved;
use super::{Connection, Stage, Step};
use crate::date::Persistence;
use crate::h1::Phase;
use crate::limits::DRAIN_GRACE;
use crate::response::Service;
use crate::worker::Worker;

impl<S: Service> Worker<S> {
    /// Reads the first bytes of a request, if they are there, and begins with them.
    pub(super) fn first_bytes(
        &mut self,
        connection: &mut Connection,
        lent: &mut Option<Box<Exchange>>,
    ) -> Option<Step> {
        if !connection.ready.read {
            return Some(Step::Wait);
        }
        let len = match connection.receive(self.intake.free()) {
            Moved::Bytes(len) => len,
            Moved::Nothing => return Some(Step::Wait),
            Moved::End => return Some(Step::End),
        };
        let now = Boottime::now();
        let first = self.first(len);
        self.begin(connection, lent, first, now)
    }

    /// Begins with the first bytes of a request. One that comes again, alone, is answered from where they lie: the connection borrows
    /// nothing for it, and all such requests go through the same few places of memory.
    pub(super) fn begin(
        &mut self,
        connection: &mut Connection,
        lent: &mut Option<Box<Exchange>>,
        first: First,
        now: Boottime,
    ) -> Option<Step> {
        let alone = self.find_alone(first, now);
        if let Some(Ok(response)) = alone {
            self.outbox
                .push(Post::Repeated(connection.token, response, now));
            connection.stage = Stage::Posted;
            return Some(Step::Post);
        }
        connection.deadline = Boottime::NEVER;
        let exchange = lent.get_or_insert_with(|| self.pool.take());
        let bytes = self.intake.bytes(first);
        exchange.decoder.space(&self.limits)[..bytes.len()].copy_from_slice(bytes);
        exchange.decoder.received(bytes.len());
        exchange.begin(now);
        exchange.looked_for = alone.and_then(Result::err);
        connection.stage = Stage::Reading;
        None
    }

    /// Looks for the answer to the request that is all of the first bytes; none if they are anything else.
    fn find_alone(
        &mut self,
        first: First,
        now: Boottime,
    ) -> Option<Result<RepeatedResponse, RequestHash>> {
        let hash = first.hash?;
        if self.draining.is_some() {
            return None;
        }
        let request = self.intake.bytes(first);
        let tail = self.tails.get(now, Persistence::Default);
        let found = self.response_cache.get(hash, request, now, tail);
        Some(found.ok_or(hash).map(|response| {
            self.counters.requests.add(1);
            response.repeat(self.service.wants_done())
        }))
    }

    /// From now on the connection is idle.
    pub(super) fn rest(&self, connection: &mut Connection, now: Boottime) {
        connection.stage = Stage::Idle;
        connection.deadline = self.idle_until(now);
    }

    /// Until when a connection may be idle that is so since `now`.
    pub(crate) fn idle_until(&self, now: Boottime) -> Boottime {
        let until = now.plus(self.limits.idle_timeout);
        match self.draining {
            Some(since) => until.min(since.plus(DRAIN_GRACE)),
            None => until,
        }
    }

    /// Reads more of the request that has begun; none if something came.
    pub(super) fn read_on(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
    ) -> Option<Step> {
        match connection.receive(exchange.decoder.space(&self.limits)) {
            Moved::Bytes(len) => {
                self.counters.bytes_in.add(len as u64);
                exchange.decoder.received(len);
                exchange.now = Boottime::now();
                None
            }
            Moved::Nothing => {
                connection.deadline = self.read_until(exchange);
                Some(Step::Wait)
            }
            Moved::End => Some(Step::End),
        }
    }

    /// When patience with the present head or body ends.
    fn read_until(&self, exchange: &mut Exchange) -> Boottime {
        if exchange.decoder.phase() != Phase::Body {
            return exchange.head_since.plus(self.limits.head_timeout);
        }
        let now = exchange.now;
        let progress = exchange.body.get_or_insert_with(|| Progress::new(now));
        progress.moved_to(exchange.decoder.body_len() as u64, now);
        progress.deadline(self.limits.progress_timeout)
    }

    /// Reads on until the client has seen the end: closing while unread bytes arrive would reset the connection and could
    /// destroy the response on its way (RFC 9112 section 9.6).
    pub(super) fn linger(&mut self, connection: &mut Connection, mut left: usize) -> Option<Step> {
        while left > 0 {
            match connection.receive(self.intake.free()) {
                Moved::Bytes(len) => left = left.saturating_sub(len),
                Moved::Nothing => {
                    connection.stage = Stage::Lingering(left);
                    return Some(Step::Wait);
                }
                Moved::End => break,
            }
        }
        Some(Step::End)
    }
}
