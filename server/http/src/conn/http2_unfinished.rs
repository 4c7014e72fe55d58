//! What the requests and responses of an HTTP/2 connection hold of the worker's budgets, and where
//! long bodies go: the rules of HTTP/1.1 for each stream, and one more holder for what the
//! connection has beside its streams.

use super::connections::Connections;
use super::exchange::BodyPlace;
use super::http2::Http2;
use super::{Connection, NextAction};
use crate::body_file::BodyFile;
use crate::budget::Holding;
use crate::event::StreamToken;
use crate::h1::Refusal;
use crate::h2::{ErrorCode, StreamHolding, StreamId};
use crate::limits::SMALL_BODY;
use crate::request_budgets::{Full, RequestBudgets};
use crate::response::Service;

/// Bytes that a connection may hold beside its streams without being counted: a request or two.
const UNCOUNTED: usize = 1 << 10;

impl Http2 {
    /// Counts what the connection holds at the end of a turn, and moves long bodies to files. True
    /// if something of the connection itself ended for want of memory or disk.
    pub(super) fn charge<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &Connection,
    ) -> bool {
        let mut has_ended = self.store_bodies(all);
        let mut at = 0;
        while let Some((stream, held)) = self.session.next_uncounted(&mut at) {
            self.hold_stream(&mut all.host.budgets, stream, held);
        }
        let beside = self.session.memory_beside_requests()
            + self.unread.capacity()
            + self.unsent.capacity()
            + connection.memory_of_records();
        let counted = if beside > UNCOUNTED { beside } else { 0 };
        if counted != self.counted {
            self.hold_beside(&mut all.host.budgets, counted);
        }
        for (is_over, full) in [
            (all.host.budgets.memory.is_over(), Full::Memory),
            (all.host.budgets.disk.is_over(), Full::Disk),
        ] {
            if is_over {
                has_ended |= self.make_room(all, full);
            }
        }
        has_ended
    }

    fn hold_beside(&mut self, budgets: &mut RequestBudgets, bytes: usize) {
        if self.counted == 0 {
            self.counted_since = self.now;
        }
        self.counted = bytes;
        if bytes == 0 {
            return budgets.memory.release(self.holder());
        }
        let holding = Holding::new(self.peer.address, bytes, self.counted_since, true);
        budgets.memory.hold(self.holder(), holding);
    }

    fn hold_stream(&mut self, budgets: &mut RequestBudgets, stream: StreamId, held: StreamHolding) {
        let holder = self.stream_token(stream);
        let since = self.session.set_counted(stream, held);
        let since = since.unwrap_or(self.now);
        for (bytes, budget) in [
            (held.memory, &mut budgets.memory),
            (held.moved, &mut budgets.disk),
        ] {
            if bytes == 0 {
                budget.release(holder);
            } else {
                budget.hold(
                    holder,
                    Holding::new(self.peer.address, bytes, since, held.may_end),
                );
            }
        }
    }

    /// Counts nothing for a stream that has ended.
    pub(super) fn release_stream(
        &mut self,
        budgets: &mut RequestBudgets,
        stream: StreamId,
        is_counted: bool,
    ) {
        if is_counted {
            budgets.release(self.stream_token(stream));
        }
        self.bodies.retain(|(of, _)| *of != stream);
        self.receivers.retain(|receiver| !receiver.is_of(stream));
    }

    /// Ends requests of all connections until a part of a full budget is free; true if some of
    /// this connection are among them.
    fn make_room<S: Service>(&mut self, all: &mut Connections<S>, full: Full) -> bool {
        let victims = all.host.budgets.victims(full, self.now);
        let own = all.end_all(victims, Some(self.token));
        for victim in &own {
            self.end_holder(all, *victim);
        }
        !own.is_empty()
    }

    fn end_holder<S: Service>(&mut self, all: &mut Connections<S>, victim: StreamToken) {
        all.host.budgets.release(victim);
        let Some(stream) = StreamId::of_client(victim.stream) else {
            all.host.counters.heads_ended.add(1);
            self.counted = 0;
            self.session.close(ErrorCode::EnhanceYourCalm);
            return self.note_ended(&mut all.host);
        };
        self.refuse_body(all, stream);
    }

    /// Refuses a request whose body takes what others need.
    fn refuse_body<S: Service>(&mut self, all: &mut Connections<S>, stream: StreamId) {
        self.bodies.retain(|(of, _)| *of != stream);
        if let Some(event) = self.session.refuse(stream, Refusal::TooManyBodies) {
            all.host.counters.bodies_ended.add(1);
            self.handle(all, event);
        }
    }

    /// Moves what has arrived of long bodies to their files; true if one of them has ended.
    fn store_bodies<S: Service>(&mut self, all: &mut Connections<S>) -> bool {
        let mut has_ended = false;
        let mut at = 0;
        while let Some(stream) = self.session.next_body_above(SMALL_BODY, &mut at) {
            let in_memory = self.session.body_in_memory(stream);
            let has_place = self.bodies.iter().any(|(of, _)| *of == stream);
            if !has_place && all.host.budgets.wants_file(in_memory) {
                let place = match self.open_stream_file(all) {
                    Some(file) => BodyPlace::File(file),
                    None => BodyPlace::MemoryOnly,
                };
                self.bodies.push((stream, place));
            }
        }
        let mut bodies = std::mem::take(&mut self.bodies);
        for (stream, place) in &mut bodies {
            if let BodyPlace::File(file) = place
                && let Err(refusal) = self.move_to_file(all, *stream, file)
                && let Some(event) = self.session.refuse(*stream, refusal)
            {
                *place = BodyPlace::MemoryOnly;
                self.handle(all, event);
                has_ended = true;
            }
        }
        self.bodies = bodies;
        has_ended
    }

    /// A file for a body; if too many are open, in the place of others.
    fn open_stream_file<S: Service>(&mut self, all: &mut Connections<S>) -> Option<BodyFile> {
        if all.host.budgets.are_files_taken() {
            self.make_room(all, Full::Disk);
        }
        all.host.create_body_file()
    }

    fn move_to_file<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        stream: StreamId,
        file: &mut BodyFile,
    ) -> Result<(), Refusal> {
        if self.session.body_in_memory(stream) == 0 {
            return Ok(());
        }
        let now = self.now;
        let append = |bytes: &[u8]| all.append(file, bytes, now);
        self.session.move_body(stream, append)
    }

    /// Puts the body of a complete request together. A small one is never refused.
    pub(super) fn complete_body<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        stream: StreamId,
    ) -> Result<(), Refusal> {
        let in_memory = self.session.body_in_memory(stream);
        let at = self.bodies.iter().position(|(of, _)| *of == stream);
        let place = at.map(|at| self.bodies.swap_remove(at).1);
        let mut file = match place {
            Some(BodyPlace::File(file)) => file,
            _ if in_memory <= SMALL_BODY => return Ok(()),
            _ if self.keep_body_in_memory(all, stream, in_memory) => return Ok(()),
            _ => self.open_stream_file(all).ok_or(Refusal::TooManyBodies)?,
        };
        self.move_to_file(all, stream, &mut file)?;
        let complete = StreamHolding {
            memory: 0,
            moved: file.len(),
            may_end: false,
        };
        self.hold_stream(&mut all.host.budgets, stream, complete);
        if all.host.budgets.disk.is_over() {
            self.make_room(all, Full::Disk);
            if all.host.budgets.disk.is_over() {
                self.hold_stream(&mut all.host.budgets, stream, StreamHolding::default());
                all.host.counters.bodies_ended.add(1);
                return Err(Refusal::TooManyBodies);
            }
        }
        let body = file.into_body().map_err(|_| Refusal::TooManyBodies)?;
        self.session.set_whole_body(stream, body.bytes());
        Ok(())
    }

    /// Counts a complete body in memory; false if there is no room for it.
    fn keep_body_in_memory<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        stream: StreamId,
        len: usize,
    ) -> bool {
        let complete = StreamHolding {
            memory: len,
            moved: 0,
            may_end: false,
        };
        self.hold_stream(&mut all.host.budgets, stream, complete);
        if all.host.budgets.memory.is_over() {
            self.make_room(all, Full::Memory);
        }
        !all.host.budgets.memory.is_over()
    }
}

impl<S: Service> Connections<S> {
    /// Ends what another connection holds. The refusal leaves in a later turn.
    pub(super) fn end_http2_holder(
        &mut self,
        connection: &mut Connection,
        victim: StreamToken,
    ) -> Option<NextAction> {
        let mut http2 = connection.http2.take()?;
        http2.end_holder(self, victim);
        let is_stuck = http2.is_stuck();
        connection.http2 = Some(http2);
        Some(match is_stuck {
            true => NextAction::Close,
            false => NextAction::Yield,
        })
    }
}
