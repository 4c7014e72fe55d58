//! Requests that have not arrived whole: what they hold of the worker's budgets, where their bodies
//! go, and which of them end when a budget is full.

use base_clock::Boottime;
use bytes::Bytes;

use super::connections::Connections;
use super::exchange::{BodyPlace, Exchange};
use super::{Connection, NextAction, Stage};
use crate::body_file::BodyFile;
use crate::budget::{Budget, Holding};
use crate::event::{StreamToken, Token};
use crate::h1::{Phase, Refusal};
use crate::limits::{BODY_IN_MEMORY, BODY_TURN, SMALL_BODY, SPARE_BUFFERS};
use crate::request_budgets::{CompleteBody, Full, RequestBudgets};
use crate::response::Service;
use crate::worker_group::Counters;

impl Exchange {
    /// Puts away what has arrived of a request, and reads more of it; none if bytes arrived.
    pub(super) fn read_rest<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> Result<Option<NextAction>, Refusal> {
        if self.receiver.is_some() {
            return self.stream_rest(all, connection);
        }
        let before = self.decoder.body_len() - self.decoder.body_in_memory();
        self.store_body(all, connection, SMALL_BODY)?;
        let stored = self.decoder.body_len() - self.decoder.body_in_memory();
        if before / BODY_TURN != stored / BODY_TURN {
            // A client that sends fast never lets the connection wait.
            return Ok(Some(NextAction::Yield));
        }
        let step = self.read_on(&mut all.host, connection);
        if matches!(step, Some(NextAction::Wait | NextAction::Yield)) {
            if matches!(self.body_place, BodyPlace::File(_)) {
                self.store_body(all, connection, 0)?;
            }
            if all.host.budgets.memory.holders() >= SPARE_BUFFERS {
                self.decoder.shrink();
            }
            self.hold_memory(all, connection)?;
        }
        Ok(step)
    }

    /// Moves a body of more than `kept` bytes to its file, if it has one or is too large for
    /// memory.
    fn store_body<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
        kept: usize,
    ) -> Result<(), Refusal> {
        let in_memory = self.decoder.body_in_memory();
        if in_memory <= kept {
            return Ok(());
        }
        if matches!(self.body_place, BodyPlace::Memory) && all.host.budgets.wants_file(in_memory) {
            self.body_place = match self.open_body_file(all) {
                Some(file) => BodyPlace::File(file),
                None => BodyPlace::MemoryOnly,
            };
        }
        let mut place = std::mem::replace(&mut self.body_place, BodyPlace::Memory);
        let mut stored = Ok(());
        if let BodyPlace::File(file) = &mut place {
            stored = self
                .decoder
                .move_body(|bytes| all.append(file, bytes, self.now));
            let len = file.len();
            stored = stored.and_then(|()| self.hold_disk(all, connection, len, true));
        } else if in_memory > BODY_IN_MEMORY {
            stored = self.hold_memory(all, connection);
        }
        self.body_place = place;
        stored
    }

    /// The body of a request that is complete, of which the last bytes are in `rest`. It is counted
    /// until it is [released](Self::release).
    pub(super) fn complete_body<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
        rest: Bytes,
    ) -> Result<CompleteBody, Refusal> {
        let place = std::mem::replace(&mut self.body_place, BodyPlace::Memory);
        let mut file = match place {
            BodyPlace::File(file) => file,
            _ if self.keep_in_memory(all, connection, rest.len()) => {
                return Ok(CompleteBody::Memory(rest));
            }
            _ => self.open_body_file(all).ok_or(Refusal::TooManyBodies)?,
        };
        all.append(&mut file, &rest, self.now)?;
        self.hold_disk(all, connection, file.len(), false)?;
        let body = file.into_body().map_err(|_| Refusal::TooManyBodies);
        if body.is_err() {
            self.release(&mut all.host.budgets);
        }
        body.map(CompleteBody::Mapped)
    }

    /// Counts a complete body of `len` bytes in memory; false if it is large and there is no room.
    fn keep_in_memory<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
        len: usize,
    ) -> bool {
        self.hold(&mut all.host.budgets.memory, connection, len, false);
        if len > SMALL_BODY && all.host.budgets.memory.is_over() {
            self.end_some(all, Full::Memory);
            if all.host.budgets.memory.is_over() {
                self.release(&mut all.host.budgets);
                return false;
            }
        }
        true
    }

    /// Counts what a request that is incomplete holds in memory.
    pub(super) fn hold_memory<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
    ) -> Result<(), Refusal> {
        let bytes = self.memory() + connection.memory_of_records();
        self.hold(&mut all.host.budgets.memory, connection, bytes, true);
        if all.host.budgets.memory.is_over() && self.end_some(all, Full::Memory) {
            return Err(self.count_ended(&all.host.counters));
        }
        Ok(())
    }

    /// Counts a body of `len` bytes in a file.
    fn hold_disk<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
        len: usize,
        may_end: bool,
    ) -> Result<(), Refusal> {
        self.hold(&mut all.host.budgets.disk, connection, len, may_end);
        if all.host.budgets.disk.is_over() {
            let is_ended = self.end_some(all, Full::Disk);
            if is_ended || (!may_end && all.host.budgets.disk.is_over()) {
                self.release(&mut all.host.budgets);
                return Err(self.count_ended(&all.host.counters));
            }
        }
        Ok(())
    }

    /// Counts what the exchange holds of a budget.
    fn hold(&mut self, budget: &mut Budget, connection: &Connection, bytes: usize, may_end: bool) {
        let holder = connection.token.stream(0);
        self.holder = Some(holder);
        let holding = Holding::new(connection.peer.address, bytes, self.head_since, may_end);
        budget.hold(holder, holding);
    }

    /// Counts nothing for the exchange any more.
    pub(super) fn release(&mut self, budgets: &mut RequestBudgets) {
        if let Some(holder) = self.holder.take() {
            budgets.release(holder);
        }
    }

    /// A file for a body; if too many are open, in the place of others.
    fn open_body_file<S: Service>(&self, all: &mut Connections<S>) -> Option<BodyFile> {
        if all.host.budgets.are_files_taken() {
            self.end_some(all, Full::Disk);
        }
        all.host.create_body_file()
    }

    /// Ends requests until a part of a full budget is free; true if this one must end too.
    fn end_some<S: Service>(&self, all: &mut Connections<S>, full: Full) -> bool {
        let victims = all.host.budgets.victims(full, self.now);
        let own = self.holder.map(|holder| holder.connection);
        !all.end_all(victims, own).is_empty()
    }

    /// Counts a request that ends because a budget is full.
    fn count_ended(&self, counters: &Counters) -> Refusal {
        if self.decoder.phase() == Phase::Head {
            counters.heads_ended.add(1);
            Refusal::TooManyHeads
        } else {
            counters.bodies_ended.add(1);
            Refusal::TooManyBodies
        }
    }
}

impl<S: Service> Connections<S> {
    /// Appends to a file; if the disk is full, in the place of others.
    pub(super) fn append(
        &mut self,
        file: &mut BodyFile,
        bytes: &[u8],
        now: Boottime,
    ) -> Result<(), Refusal> {
        if file.append(bytes).is_ok() {
            return Ok(());
        }
        let victims = self.host.budgets.victims(Full::Disk, now);
        self.end_all(victims, None);
        file.append(bytes).map_err(|_| {
            self.host.counters.bodies_ended.add(1);
            Refusal::TooManyBodies
        })
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
        self.advance(victim.connection, |all, connection| {
            match connection.stage {
                Stage::Http2 => return all.end_http2_holder(connection, victim),
                Stage::Reading => {}
                Stage::Handshake | Stage::Idle if connection.is_counted() => {
                    all.host.counters.heads_ended.add(1);
                    return Some(NextAction::Close);
                }
                _ => return Some(NextAction::Wait),
            }
            let Some(mut exchange) = connection.exchange.take() else {
                return Some(NextAction::Wait);
            };
            let refusal = exchange.count_ended(&all.host.counters);
            exchange.refuse(&mut all.host, connection, refusal);
            connection.exchange = Some(exchange);
            Some(all.drive(connection))
        });
    }
}
