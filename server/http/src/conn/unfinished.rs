//! Requests that have not arrived whole: what they hold of the worker's budgets, where their bodies
//! go, and which of them end when a budget is full.

use bytes::Bytes;

use super::exchange::{BodyPlace, Exchange};
use super::{Connection, NextAction, Stage};
use crate::body_file::BodyFile;
use crate::budget::{ClientNetwork, Holding};
use crate::event::{StreamToken, Token};
use crate::h1::{Phase, Refusal};
use crate::limits::{BODY_IN_MEMORY, BODY_TURN, SMALL_BODY, SPARE_BUFFERS};
use crate::request_budgets::CompleteBody;
use crate::response::Service;
use crate::worker::Worker;

/// Which budget is full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    Memory,
    Disk,
}

impl<S: Service> Worker<S> {
    /// Puts away what has arrived of a request, and reads more of it; none if bytes arrived.
    pub(super) fn read_rest(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
    ) -> Result<Option<NextAction>, Refusal> {
        if exchange.receiver.is_some() {
            return self.stream_rest(connection, exchange);
        }
        let before = exchange.decoder.body_len() - exchange.decoder.body_in_memory();
        self.store_body(connection, exchange, SMALL_BODY)?;
        let stored = exchange.decoder.body_len() - exchange.decoder.body_in_memory();
        if before / BODY_TURN != stored / BODY_TURN {
            // A client that sends fast never lets the connection wait.
            return Ok(Some(NextAction::Yield));
        }
        let step = self.read_on(connection, exchange);
        if matches!(step, Some(NextAction::Wait | NextAction::Yield)) {
            if matches!(exchange.body_place, BodyPlace::File(_)) {
                self.store_body(connection, exchange, 0)?;
            }
            if self.budgets.memory.holders() >= SPARE_BUFFERS {
                exchange.decoder.shrink();
            }
            self.hold_memory(connection, exchange)?;
        }
        Ok(step)
    }

    /// Moves a body of more than `kept` bytes to its file, if it has one or is too large for
    /// memory.
    fn store_body(
        &mut self,
        connection: &Connection,
        exchange: &mut Exchange,
        kept: usize,
    ) -> Result<(), Refusal> {
        let in_memory = exchange.decoder.body_in_memory();
        if in_memory <= kept {
            return Ok(());
        }
        if matches!(exchange.body_place, BodyPlace::Memory) && self.budgets.wants_file(in_memory) {
            exchange.body_place = match self.open_body_file(exchange) {
                Some(file) => BodyPlace::File(file),
                None => BodyPlace::MemoryOnly,
            };
        }
        let mut place = std::mem::replace(&mut exchange.body_place, BodyPlace::Memory);
        let mut stored = Ok(());
        if let BodyPlace::File(file) = &mut place {
            stored = exchange
                .decoder
                .move_body(|bytes| self.append(file, bytes, exchange.now));
            let len = file.len();
            stored = stored.and_then(|()| self.hold_disk(connection, exchange, len, true));
        } else if in_memory > BODY_IN_MEMORY {
            stored = self.hold_memory(connection, exchange);
        }
        exchange.body_place = place;
        stored
    }

    /// The body of a request that is complete, of which the last bytes are in `rest`. It is counted
    /// until it is [released](Self::release).
    pub(super) fn complete_body(
        &mut self,
        connection: &Connection,
        exchange: &mut Exchange,
        rest: Bytes,
    ) -> Result<CompleteBody, Refusal> {
        let place = std::mem::replace(&mut exchange.body_place, BodyPlace::Memory);
        let mut file = match place {
            BodyPlace::File(file) => file,
            _ if self.keep_in_memory(connection, exchange, rest.len()) => {
                return Ok(CompleteBody::Memory(rest));
            }
            _ => self
                .open_body_file(exchange)
                .ok_or(Refusal::TooManyBodies)?,
        };
        self.append(&mut file, &rest, exchange.now)?;
        self.hold_disk(connection, exchange, file.len(), false)?;
        let body = file.into_body().map_err(|_| Refusal::TooManyBodies);
        if body.is_err() {
            self.release(exchange);
        }
        body.map(CompleteBody::Mapped)
    }

    /// Counts a complete body of `len` bytes in memory; false if it is large and there is no room.
    fn keep_in_memory(
        &mut self,
        connection: &Connection,
        exchange: &mut Exchange,
        len: usize,
    ) -> bool {
        let holding = holding(connection, exchange, len, false);
        let holder = name(connection, exchange);
        self.budgets.memory.hold(holder, holding);
        if len > SMALL_BODY && self.budgets.memory.is_over() {
            self.end_some(Full::Memory, exchange);
            if self.budgets.memory.is_over() {
                self.release(exchange);
                return false;
            }
        }
        true
    }

    /// Counts what a request that is incomplete holds in memory.
    pub(super) fn hold_memory(
        &mut self,
        connection: &Connection,
        exchange: &mut Exchange,
    ) -> Result<(), Refusal> {
        let holding = {
            let bytes = exchange.memory() + connection.memory_of_records();
            holding(connection, exchange, bytes, true)
        };
        let holder = name(connection, exchange);
        self.budgets.memory.hold(holder, holding);
        if self.budgets.memory.is_over() && self.end_some(Full::Memory, exchange) {
            return Err(self.count_ended(exchange));
        }
        Ok(())
    }

    /// Counts a body of `len` bytes in a file.
    fn hold_disk(
        &mut self,
        connection: &Connection,
        exchange: &mut Exchange,
        len: usize,
        may_end: bool,
    ) -> Result<(), Refusal> {
        let holding = holding(connection, exchange, len, may_end);
        let holder = name(connection, exchange);
        self.budgets.disk.hold(holder, holding);
        if self.budgets.disk.is_over() {
            let is_ended = self.end_some(Full::Disk, exchange);
            if is_ended || (!may_end && self.budgets.disk.is_over()) {
                self.release(exchange);
                return Err(self.count_ended(exchange));
            }
        }
        Ok(())
    }

    /// Counts nothing for the exchange any more.
    pub(super) fn release(&mut self, exchange: &mut Exchange) {
        if let Some(holder) = exchange.holder.take() {
            self.budgets.release(holder);
        }
    }

    /// A file for a body; if too many are open, in the place of others.
    fn open_body_file(&mut self, exchange: &Exchange) -> Option<BodyFile> {
        if self.budgets.are_files_taken() {
            self.end_some(Full::Disk, exchange);
        }
        self.create_body_file()
    }

    /// A file for a body, unless too many are open.
    pub(super) fn create_body_file(&mut self) -> Option<BodyFile> {
        if self.budgets.are_files_taken() {
            return None;
        }
        let file = BodyFile::create().ok();
        match &file {
            Some(_) => self.counters.bodies_in_files.add(1),
            None => self.budgets.do_without_files(),
        }
        file
    }

    /// Appends to a file; if the disk is full, in the place of others.
    pub(super) fn append(
        &mut self,
        file: &mut BodyFile,
        bytes: &[u8],
        now: base_clock::Boottime,
    ) -> Result<(), Refusal> {
        if file.append(bytes).is_ok() {
            return Ok(());
        }
        let victims = self.budgets.disk.victims(now);
        self.end_all(victims, None);
        file.append(bytes).map_err(|_| {
            self.counters.bodies_ended.add(1);
            Refusal::TooManyBodies
        })
    }

    /// Ends requests until a part of a full budget is free; true if that of `exchange` must end
    /// too.
    fn end_some(&mut self, full: Full, exchange: &Exchange) -> bool {
        let budget = match full {
            Full::Memory => &mut self.budgets.memory,
            Full::Disk => &mut self.budgets.disk,
        };
        let victims = budget.victims(exchange.now);
        let own = exchange.holder.map(|holder| holder.connection);
        !self.end_all(victims, own).is_empty()
    }

    /// Ends the unfinished requests of `victims`, but for those of the connection `own`: these are
    /// returned, and the caller ends them.
    pub(super) fn end_all(
        &mut self,
        mut victims: Vec<StreamToken>,
        own: Option<Token>,
    ) -> Vec<StreamToken> {
        victims.retain(|victim| {
            let is_own = own == Some(victim.connection);
            if !is_own {
                self.end_unfinished(*victim);
            }
            is_own
        });
        victims
    }

    /// Refuses the request that another connection has begun to send.
    fn end_unfinished(&mut self, victim: StreamToken) {
        self.advance(victim.connection, |worker, connection| {
            match connection.stage {
                Stage::Http2 => return worker.end_http2_holder(connection, victim),
                Stage::Reading => {}
                Stage::Handshake | Stage::Idle if connection.is_counted() => {
                    worker.counters.heads_ended.add(1);
                    return Some(NextAction::Close);
                }
                _ => return Some(NextAction::Wait),
            }
            let Some(mut exchange) = connection.exchange.take() else {
                return Some(NextAction::Wait);
            };
            let refusal = worker.count_ended(&exchange);
            worker.refuse(connection, &mut exchange, refusal);
            connection.exchange = Some(exchange);
            Some(worker.drive(connection))
        });
    }

    /// Counts a request that ends because a budget is full.
    fn count_ended(&self, exchange: &Exchange) -> Refusal {
        if exchange.decoder.phase() == Phase::Head {
            self.counters.heads_ended.add(1);
            Refusal::TooManyHeads
        } else {
            self.counters.bodies_ended.add(1);
            Refusal::TooManyBodies
        }
    }
}

/// The name under which the budgets count the exchange from now on.
fn name(connection: &Connection, exchange: &mut Exchange) -> StreamToken {
    let holder = connection.token.stream(0);
    exchange.holder = Some(holder);
    holder
}

fn holding(connection: &Connection, exchange: &Exchange, bytes: usize, may_end: bool) -> Holding {
    Holding {
        client: ClientNetwork::of(connection.peer.ip()),
        bytes,
        since: exchange.head_since,
        may_end,
    }
}
