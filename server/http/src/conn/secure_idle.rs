//! Records of TLS that have not arrived whole while no request has begun: handshakes, and
//! beginnings of records. They are counted as heads of requests are.

use base_clock::Boottime;

use super::connections::Connections;
use super::socket::IoOutcome;
use super::{Connection, NextAction};
use crate::budget::Holding;
use crate::request_budgets::Full;
use crate::response::Service;

impl<S: Service> Connections<S> {
    /// Begins with bytes behind which there is [news](Connection::has_news): they complete a
    /// handshake, or a record whose beginning was counted. None: the connection ends.
    pub(super) fn first_secure_bytes(
        &mut self,
        connection: &mut Connection,
        received: IoOutcome,
    ) -> Option<NextAction> {
        if connection.has_opened() || received != IoOutcome::WouldBlock {
            self.release_records(connection);
        }
        if connection.has_opened() {
            return self.begin_opened(connection, received);
        }
        match received {
            IoOutcome::Bytes(len) => {
                let first = self.first(len);
                Some(self.answer_first(connection, first, Boottime::now()))
            }
            IoOutcome::WouldBlock => Some(self.wait_for_record(connection)),
            IoOutcome::Closed => None,
        }
    }

    /// Waits for the rest of a record, which is counted.
    pub(super) fn wait_for_record(&mut self, connection: &mut Connection) -> NextAction {
        let bytes = connection.memory_of_records();
        let holder = connection.token.stream(0);
        let Some(tls) = connection.secure_socket() else {
            return NextAction::Wait;
        };
        if bytes > 0 {
            let now = Boottime::now();
            let since = *tls.counted_since.get_or_insert(now);
            let holding = Holding::new(connection.peer.address, bytes, since, true);
            self.host.budgets.memory.hold(holder, holding);
            if self.host.budgets.memory.is_over() {
                let victims = self.host.budgets.victims(Full::Memory, now);
                if !self.end_all(victims, Some(connection.token)).is_empty() {
                    self.host.counters.heads_ended.add(1);
                    return NextAction::Close;
                }
            }
        }
        if connection.wait() == NextAction::Yield {
            // So that its deadline stays.
            self.table.queue_runnable(connection);
        }
        NextAction::Wait
    }

    /// Counts nothing for records any more.
    pub(super) fn release_records(&mut self, connection: &mut Connection) {
        let holder = connection.token.stream(0);
        if let Some(tls) = connection.secure_socket()
            && tls.counted_since.take().is_some()
        {
            self.host.budgets.release(holder);
        }
    }
}
