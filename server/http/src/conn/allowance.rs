//! Allowance of a connection before it asks the counts of its client again: requests it takes
//! in batches, bytes that it pays for afterwards, and the pause of a client that moves too many.
//!
//! A hit counts in two numbers of its own connection. Where a proxy names the client in a field,
//! the connection is that of the proxy, and each request asks the counts of its own client.

use std::time::Duration;

use base_clock::Boottime;

use super::connections::Connections;
use super::host::Host;
use super::socket::IoOutcome;
use super::{Connection, NextAction, Stage};
use crate::client::{Client, NamedBy};
use crate::client_counts::{ClientConnection, ClientCounts};
use crate::event::SocketEnd;
use crate::h1::Refusal;
use crate::limits::FILE_CHUNK;
use crate::peer::Peer;
use crate::proxy_header::ProxyHeader;
use crate::request::Request;
use crate::response::Service;

/// Bytes after which a connection of a client with a very low limit pays.
pub(super) const LEAST_BATCH: usize = 64 << 10;
/// The answer to a client over a limit whose connection is closed at once.
pub(crate) const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\ntoo many connections\n";

impl<S: Service> Host<S> {
    /// Returns whether the limits of clients do not concern this one.
    fn is_exempt(&self, client: Client) -> bool {
        let (proxies, exempt) = (&self.proxies, &self.limits.client.exempt);
        let lists = [
            exempt,
            &proxies.protocol,
            &proxies.forwarded,
            &proxies.x_forwarded,
        ];
        lists.iter().any(|networks| client.is_exempt(networks))
    }

    /// Counts a connection of the client at its other end; none if there are too many.
    pub(crate) fn count_connection(&self, peer: &Peer) -> Option<ClientConnection> {
        let client = peer.own_client();
        if self.is_exempt(client) {
            return Some(ClientConnection::default());
        }
        let counts = self.group.clients.counts(client.network(), Boottime::now());
        let counted = counts.open(self.limits.client.connections);
        if counted.is_none() {
            self.counters.over_client_connections.add(1);
        }
        counted
    }

    /// Bytes that a connection may move before it pays for them.
    pub(crate) fn byte_batch(&self, counts: Option<&ClientCounts>) -> i32 {
        match self.limits.client.bytes {
            limit @ 1.. if counts.is_some() => {
                let batch = (limit / 8).clamp(LEAST_BATCH, FILE_CHUNK);
                i32::try_from(batch).unwrap_or(i32::MAX)
            }
            _ => i32::MAX,
        }
    }

    /// Returns whether a connection with `left` requests in its batch may answer one more.
    #[inline]
    pub(super) fn may_answer(&self, left: &mut u16, counts: Option<&ClientCounts>) -> bool {
        *left > 0 || self.take_requests(left, counts)
    }

    #[cold]
    fn take_requests(&self, left: &mut u16, counts: Option<&ClientCounts>) -> bool {
        let limit = self.limits.client.requests;
        *left = counts.map_or(u16::MAX, |counts| {
            counts.take_requests(limit, Boottime::now())
        });
        *left > 0
    }

    /// Counts a request that is given to the service.
    ///
    /// # Errors
    /// Its client has made too many, or too many writes.
    pub(super) fn admit_request(
        &self,
        left: &mut u16,
        counts: Option<&ClientCounts>,
        request: &Request<'_>,
    ) -> Result<(), Refusal> {
        let (limits, now) = (&self.limits.client, request.received);
        let client = request.client();
        let named = (request.is_forwarded() && !self.is_exempt(client))
            .then(|| self.group.clients.counts(client.network(), now));
        let may_answer = match &named {
            Some(counts) => counts.take_request(limits.requests, now),
            None => self.may_answer(left, counts),
        };
        if !may_answer {
            self.counters.over_client_requests.add(1);
            return Err(Refusal::TooManyRequests);
        }
        if named.is_none() {
            *left -= 1;
        }
        let counts = if request.is_forwarded() {
            named.as_ref()
        } else {
            counts
        };
        let is_write = !matches!(request.method, "GET" | "HEAD" | "OPTIONS" | "TRACE");
        if is_write && counts.is_some_and(|counts| !counts.take_write(limits.writes, now)) {
            self.counters.over_client_writes.add(1);
            return Err(Refusal::TooManyRequests);
        }
        Ok(())
    }
}

impl Connection {
    /// The counts of its client; none if the client has no limits.
    pub(super) fn counts(&self) -> Option<&ClientCounts> {
        self.client.0.as_ref()
    }

    /// Counts bytes that were received or sent.
    #[inline]
    pub(super) fn moved(&mut self, bytes: usize) {
        // One call moves a few megabytes at most.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        let bytes = bytes as i32;
        self.bytes_left = self.bytes_left.wrapping_sub(bytes);
    }
}

impl<S: Service> Connections<S> {
    /// Lets a connection pause if its client has moved too many bytes; its next action.
    #[inline]
    pub(super) fn pace(&mut self, connection: &mut Connection, next: NextAction) -> NextAction {
        match connection.bytes_left < 0 {
            true => self.pay(connection, next),
            false => next,
        }
    }

    #[cold]
    fn pay(&mut self, connection: &mut Connection, next: NextAction) -> NextAction {
        let is_over = matches!(next, NextAction::Close | NextAction::Batch);
        // These move no bytes, or few.
        let is_small = matches!(
            connection.stage,
            Stage::ProxyHeader | Stage::Handshake | Stage::Batched | Stage::Lingering(_)
        );
        if is_over || is_small {
            return next;
        }
        let now = Boottime::now();
        let pause = self
            .pay_bytes(connection, now)
            .min(self.host.limits.progress_timeout);
        if pause.is_zero() {
            return next;
        }
        self.host.counters.client_pauses.add(1);
        connection.is_paced = true;
        // So that events of the socket are only noted.
        connection.is_queued = true;
        connection.deadline = now.plus(pause);
        NextAction::Wait
    }

    /// Pays for what the connection has moved; how long it must pause.
    fn pay_bytes(&self, connection: &mut Connection, now: Boottime) -> Duration {
        let batch = self.host.byte_batch(connection.counts());
        let moved = i64::from(batch) - i64::from(connection.bytes_left);
        connection.bytes_left = batch;
        match connection.counts().filter(|_| batch < i32::MAX) {
            Some(counts) => {
                let moved = usize::try_from(moved).unwrap_or(0);
                counts.pay_bytes(moved, self.host.limits.client.bytes, now)
            }
            None => Duration::ZERO,
        }
    }

    /// Ends the pause of a connection.
    pub(super) fn resume(&mut self, connection: &mut Connection) -> NextAction {
        (connection.is_paced, connection.is_queued) = (false, false);
        connection.deadline = match connection.stage {
            Stage::Idle => self.host.idle_until(Boottime::now()),
            _ => Boottime::NEVER,
        };
        self.drive(connection)
    }

    /// Pays for the last bytes of a connection, and gives back the rest of its batch.
    pub(super) fn settle(&self, connection: &mut Connection) {
        let _ = self.pay_bytes(connection, Boottime::now());
        if let Some(counts) = connection.counts() {
            counts.give_back_requests(connection.requests_left, self.host.limits.client.requests);
        }
    }

    /// Reads the header with which a proxy names its client; none if the connection continues.
    pub(super) fn read_proxy_header(&mut self, connection: &mut Connection) -> Option<NextAction> {
        if !connection.ready.read {
            return Some(NextAction::Wait);
        }
        let header = match connection.peek(self.read_batch.free()) {
            IoOutcome::Bytes(len) => ProxyHeader::read(&self.read_batch.free()[..len]),
            IoOutcome::WouldBlock => return Some(NextAction::Wait),
            IoOutcome::Closed => return Some(NextAction::Close),
        };
        let header = match header {
            Ok(Some(header)) => header,
            Ok(None) if connection.ready.ends == SocketEnd::Open => return Some(NextAction::Wait),
            _ => {
                self.host.counters.proxy_headers_missing.add(1);
                return Some(NextAction::Close);
            }
        };
        connection.receive_plain(&mut self.read_batch.free()[..header.len]);
        if let Some(source) = header.source {
            connection.peer = Peer::new(source, NamedBy::Header, &self.host.proxies);
        }
        let is_secure = connection.is_secure();
        let Some(client) = self.host.count_connection(&connection.peer) else {
            self.host.counters.over_limit.add(1);
            let address = connection.peer.address;
            self.host.notify(|service| service.refused(address, 503));
            // A handshake would cost more than the response is worth. Bytes that are unread at the
            // end of the connection reset it.
            if !is_secure {
                connection.receive_plain(self.read_batch.free());
                connection.transmit_bytes(TOO_MANY_CONNECTIONS);
            }
            return Some(NextAction::Close);
        };
        connection.bytes_left = self.host.byte_batch(client.0.as_ref());
        connection.client = client;
        if is_secure {
            connection.stage = Stage::Handshake;
            self.table.queue_runnable(connection);
            return Some(NextAction::Wait);
        }
        self.host.await_first(connection, Boottime::now());
        None
    }
}
