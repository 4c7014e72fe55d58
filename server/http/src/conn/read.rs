//! Incoming bytes: first bytes, further bytes, and bytes that are dropped.

use base_clock::Boottime;

use super::cached_response::RepeatedResponse;
use super::connections::Connections;
use super::exchange::Exchange;
use super::host::Host;
use super::read_batch::FirstRead;
use super::response_cache::RequestHash;
use super::secure_socket::{Handshake, Negotiated};
use super::socket::IoOutcome;
use super::write_batch::BatchedWrite;
use super::{Connection, NextAction, Stage};
use crate::date::Persistence;
use crate::h1::Phase;
use crate::limits::Limits;
use crate::progress::TransferProgress;
use crate::response::Service;

/// The beginning of the preface of HTTP/2 (RFC 9113 section 3.4), which is no method. A client that
/// knows that a server speaks HTTP/2 begins with it; one that has negotiated `h2` must.
const BEGINS_HTTP2: &[u8] = b"PRI ";

impl<S: Service> Connections<S> {
    /// Reads the first bytes of a request, if they have arrived, and begins with them.
    pub(super) fn first_bytes(
        &mut self,
        connection: &mut Connection,
        borrowed_buffers: &mut Option<Box<Exchange>>,
    ) -> Option<NextAction> {
        if !connection.ready.read {
            connection.flush_records();
            return Some(NextAction::Wait);
        }
        let received = connection.receive(self.read_batch.free());
        if connection.has_news() {
            let step = self.first_secure_bytes(connection, received);
            // The caller puts the buffers back.
            *borrowed_buffers = connection.exchange.take();
            return Some(step.unwrap_or(NextAction::Close));
        }
        let len = match received {
            IoOutcome::Bytes(len) => len,
            IoOutcome::WouldBlock => return Some(self.wait_for_record(connection)),
            IoOutcome::Closed => return Some(NextAction::Close),
        };
        let now = Boottime::now();
        let first = self.first(len);
        self.begin(connection, borrowed_buffers, first, now)
    }

    /// Begins with the first bytes of a request. A single request that came before is answered from
    /// the read batch: the connection borrows no buffers, and all such requests use the same
    /// memory.
    pub(super) fn begin(
        &mut self,
        connection: &mut Connection,
        borrowed_buffers: &mut Option<Box<Exchange>>,
        first: FirstRead,
        now: Boottime,
    ) -> Option<NextAction> {
        let alone = self.look_up_alone(connection, first, now);
        if let Some(Ok(response)) = alone {
            self.write_batch
                .push(BatchedWrite::Repeated(connection.token, response, now));
            connection.stage = Stage::Batched;
            return Some(NextAction::Batch);
        }
        connection.deadline = Boottime::NEVER;
        connection.moved(self.read_batch.bytes(first).len());
        if connection.may_be_http2() && self.read_batch.bytes(first).starts_with(BEGINS_HTTP2) {
            let bytes = self.read_batch.bytes(first).to_vec();
            self.begin_http2(connection, &bytes, now);
            return None;
        }
        let exchange = borrowed_buffers.get_or_insert_with(|| self.host.pool.take());
        let bytes = self.read_batch.bytes(first);
        exchange.decoder.space(&self.host.limits)[..bytes.len()].copy_from_slice(bytes);
        exchange.decoder.received(bytes.len());
        exchange.begin(now);
        exchange.first_miss = alone.and_then(Result::err);
        connection.stage = Stage::Reading;
        None
    }

    /// Begins with the protocol on which both sides agreed in a handshake that has just been
    /// completed, and with the bytes that came behind it, which lie in the free slot of the read
    /// batch. None: the connection ends.
    pub(super) fn begin_opened(
        &mut self,
        connection: &mut Connection,
        received: IoOutcome,
    ) -> Option<NextAction> {
        match connection.take_opened()? {
            Handshake::Full => self.host.counters.full_handshakes.add(1),
            Handshake::Resumed => self.host.counters.resumed_handshakes.add(1),
        }
        let now = Boottime::now();
        self.host.await_first(connection, now);
        let len = match received {
            IoOutcome::Bytes(len) => len,
            IoOutcome::WouldBlock => 0,
            IoOutcome::Closed => return None,
        };
        match connection.negotiated() {
            Negotiated::Http2 => {
                let bytes = self.read_batch.free()[..len].to_vec();
                self.host.counters.bytes_in.add(len as u64);
                self.begin_http2(connection, &bytes, now);
                Some(self.drive(connection))
            }
            Negotiated::Nothing => None,
            Negotiated::Http1 if len == 0 => Some(self.wait_for_record(connection)),
            Negotiated::Http1 => {
                let mut borrowed_buffers = None;
                let first = self.first(len);
                let step = self.begin(connection, &mut borrowed_buffers, first, now);
                connection.exchange = borrowed_buffers;
                Some(step.unwrap_or_else(|| self.drive(connection)))
            }
        }
    }

    /// Looks up the cached response if the first bytes are exactly one complete head, else none.
    /// A response shows that they are: the request of an entry is exactly one head.
    fn look_up_alone(
        &mut self,
        connection: &mut Connection,
        first: FirstRead,
        now: Boottime,
    ) -> Option<Result<RepeatedResponse, RequestHash>> {
        let hash = first.hash?;
        let (left, client) = (&mut connection.requests_left, &connection.client);
        if self.host.draining.is_some() || !self.host.may_answer(left, client.0.as_ref()) {
            return None;
        }
        let request = self.read_batch.bytes(first);
        let tail = self.host.tails.get(now, Persistence::Default);
        if let Some(response) = self.host.response_cache.get(hash, request, now, tail) {
            *left -= 1;
            self.host.counters.requests.add(1);
            return Some(Ok(response.repeat(self.host.service.wants_done())));
        }
        let head = self.host.response_cache.head(request)?;
        (head.len() == request.len()).then_some(Err(hash))
    }

    /// Reads until the client has seen the end: closing while unread bytes arrive would reset the
    /// connection and could destroy the response on its way (RFC 9112 section 9.6).
    pub(super) fn linger(
        &mut self,
        connection: &mut Connection,
        mut left: u32,
    ) -> Option<NextAction> {
        while left > 0 {
            // Records are dropped as they are: the side of TLS has ended.
            match connection.receive_raw(self.read_batch.free()) {
                IoOutcome::Bytes(len) => {
                    left = left.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
                }
                IoOutcome::WouldBlock => {
                    connection.stage = Stage::Lingering(left);
                    return Some(NextAction::Wait);
                }
                IoOutcome::Closed => break,
            }
        }
        Some(NextAction::Close)
    }
}

impl Exchange {
    /// Reads more of the request that has begun; none if bytes arrived.
    pub(super) fn read_on<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        match connection.receive(self.decoder.space(&host.limits)) {
            IoOutcome::Bytes(len) => {
                host.counters.bytes_in.add(len as u64);
                connection.moved(len);
                self.decoder.received(len);
                self.now = Boottime::now();
                None
            }
            IoOutcome::WouldBlock => {
                connection.deadline = self.read_until(&host.limits);
                Some(connection.wait())
            }
            IoOutcome::Closed => Some(NextAction::Close),
        }
    }

    /// Deadline of the present head or body.
    fn read_until(&mut self, limits: &Limits) -> Boottime {
        if self.decoder.phase() != Phase::Body {
            return self.head_since.plus(limits.head_timeout);
        }
        let now = self.now;
        let progress = self.body.get_or_insert_with(|| TransferProgress::new(now));
        progress.moved_to(self.decoder.body_len() as u64, now);
        progress.deadline(limits.progress_timeout)
    }
}
