//! What the requests and responses of an HTTP/2 connection hold of the worker's budgets, and where
//! long bodies go: the rules of HTTP/1.1 for each stream, and one more holder for what the
//! connection has beside its streams.

use base_clock::Boottime;

use super::exchange::BodyPlace;
use super::http2::Http2;
use super::{Connection, NextAction};
use crate::body_file::BodyFile;
use crate::budget::{ClientNetwork, Holding};
use crate::event::StreamToken;
use crate::h1::Refusal;
use crate::h2::{ErrorCode, StreamHolding, StreamId};
use crate::limits::SMALL_BODY;
use crate::response::Service;
use crate::worker::Worker;

/// What a connection may hold beside its streams without being counted: a request or two.
const UNCOUNTED: usize = 1 << 10;

/// Which budget is full.
#[derive(Clone, Copy)]
enum Full {
    Memory,
    Disk,
}

impl<S: Service> Worker<S> {
    /// Counts what the connection holds at the end of a turn, and moves long bodies to files. True
    /// if something of the connection itself ended for want of memory or disk.
    pub(super) fn charge_http2(&mut self, connection: &Connection, http2: &mut Http2) -> bool {
        let mut has_ended = self.store_bodies(http2);
        let mut at = 0;
        while let Some((stream, held)) = http2.session.next_uncounted(&mut at) {
            self.hold_stream(http2, stream, held);
        }
        let beside = http2.session.memory_beside_requests()
            + http2.unread.capacity()
            + http2.unsent.capacity()
            + connection.memory_of_records();
        let counted = if beside > UNCOUNTED { beside } else { 0 };
        if counted != http2.counted {
            self.hold_beside(http2, counted);
        }
        for (is_over, full) in [
            (self.budgets.memory.is_over(), Full::Memory),
            (self.budgets.disk.is_over(), Full::Disk),
        ] {
            if is_over {
                has_ended |= self.make_room(http2, full);
            }
        }
        has_ended
    }

    fn hold_beside(&mut self, http2: &mut Http2, bytes: usize) {
        if http2.counted == 0 {
            http2.counted_since = http2.now;
        }
        http2.counted = bytes;
        if bytes == 0 {
            return self.budgets.memory.release(http2.holder());
        }
        let holding = holding(http2, bytes, http2.counted_since, true);
        self.budgets.memory.hold(http2.holder(), holding);
    }

    fn hold_stream(&mut self, http2: &mut Http2, stream: StreamId, held: StreamHolding) {
        let holder = http2.stream_token(stream);
        let since = http2.session.set_counted(stream, held);
        let since = since.unwrap_or(http2.now);
        for (bytes, budget) in [
            (held.memory, &mut self.budgets.memory),
            (held.moved, &mut self.budgets.disk),
        ] {
            if bytes == 0 {
                budget.release(holder);
            } else {
                budget.hold(holder, holding(http2, bytes, since, held.may_end));
            }
        }
    }

    /// Counts nothing for a stream that has ended.
    pub(super) fn release_stream(&mut self, http2: &mut Http2, stream: StreamId, is_counted: bool) {
        if is_counted {
            self.budgets.release(http2.stream_token(stream));
        }
        http2.bodies.retain(|(of, _)| *of != stream);
        http2.receivers.retain(|receiver| !receiver.is_of(stream));
    }

    /// Ends requests of all connections until a part of a full budget is free; true if some of
    /// this connection are among them.
    fn make_room(&mut self, http2: &mut Http2, full: Full) -> bool {
        let budget = match full {
            Full::Memory => &mut self.budgets.memory,
            Full::Disk => &mut self.budgets.disk,
        };
        let victims = budget.victims(http2.now);
        let own = self.end_all(victims, Some(http2.token));
        for victim in &own {
            self.end_holder(http2, *victim);
        }
        !own.is_empty()
    }

    /// Ends what another connection holds. The refusal leaves in a later turn.
    pub(super) fn end_http2_holder(
        &mut self,
        connection: &mut Connection,
        victim: StreamToken,
    ) -> Option<NextAction> {
        let mut http2 = connection.http2.take()?;
        self.end_holder(&mut http2, victim);
        let is_stuck = http2.is_stuck();
        connection.http2 = Some(http2);
        Some(match is_stuck {
            true => NextAction::Close,
            false => NextAction::Yield,
        })
    }

    fn end_holder(&mut self, http2: &mut Http2, victim: StreamToken) {
        self.budgets.release(victim);
        let Some(stream) = StreamId::of_client(victim.stream) else {
            self.counters.heads_ended.add(1);
            http2.counted = 0;
            http2.session.close(ErrorCode::EnhanceYourCalm);
            return self.note_ended(http2);
        };
        self.refuse_body(http2, stream);
    }

    /// Refuses a request whose body takes what others need.
    fn refuse_body(&mut self, http2: &mut Http2, stream: StreamId) {
        http2.bodies.retain(|(of, _)| *of != stream);
        if let Some(event) = http2.session.refuse(stream, Refusal::TooManyBodies) {
            self.counters.bodies_ended.add(1);
            self.handle(http2, event);
        }
    }

    /// Moves what has arrived of long bodies to their files; true if one of them has ended.
    fn store_bodies(&mut self, http2: &mut Http2) -> bool {
        let mut has_ended = false;
        let mut at = 0;
        while let Some(stream) = http2.session.next_body_above(SMALL_BODY, &mut at) {
            let in_memory = http2.session.body_in_memory(stream);
            let has_place = http2.bodies.iter().any(|(of, _)| *of == stream);
            if !has_place && self.budgets.wants_file(in_memory) {
                let place = match self.open_stream_file(http2) {
                    Some(file) => BodyPlace::File(file),
                    None => BodyPlace::MemoryOnly,
                };
                http2.bodies.push((stream, place));
            }
        }
        let mut bodies = std::mem::take(&mut http2.bodies);
        for (stream, place) in &mut bodies {
            if let BodyPlace::File(file) = place
                && let Err(refusal) = self.move_to_file(http2, *stream, file)
                && let Some(event) = http2.session.refuse(*stream, refusal)
            {
                *place = BodyPlace::MemoryOnly;
                self.handle(http2, event);
                has_ended = true;
            }
        }
        http2.bodies = bodies;
        has_ended
    }

    /// A file for a body; if too many are open, in the place of others.
    fn open_stream_file(&mut self, http2: &mut Http2) -> Option<BodyFile> {
        if self.budgets.are_files_taken() {
            self.make_room(http2, Full::Disk);
        }
        self.create_body_file()
    }

    fn move_to_file(
        &mut self,
        http2: &mut Http2,
        stream: StreamId,
        file: &mut BodyFile,
    ) -> Result<(), Refusal> {
        if http2.session.body_in_memory(stream) == 0 {
            return Ok(());
        }
        let now = http2.now;
        let append = |bytes: &[u8]| self.append(file, bytes, now);
        http2.session.move_body(stream, append)
    }

    /// Puts the body of a complete request together. A small one is never refused.
    pub(super) fn complete_http2_body(
        &mut self,
        http2: &mut Http2,
        stream: StreamId,
    ) -> Result<(), Refusal> {
        let in_memory = http2.session.body_in_memory(stream);
        let at = http2.bodies.iter().position(|(of, _)| *of == stream);
        let place = at.map(|at| http2.bodies.swap_remove(at).1);
        let mut file = match place {
            Some(BodyPlace::File(file)) => file,
            _ if in_memory <= SMALL_BODY => return Ok(()),
            _ if self.keep_body_in_memory(http2, stream, in_memory) => return Ok(()),
            _ => self.open_stream_file(http2).ok_or(Refusal::TooManyBodies)?,
        };
        self.move_to_file(http2, stream, &mut file)?;
        let complete = StreamHolding {
            memory: 0,
            moved: file.len(),
            may_end: false,
        };
        self.hold_stream(http2, stream, complete);
        if self.budgets.disk.is_over() {
            self.make_room(http2, Full::Disk);
            if self.budgets.disk.is_over() {
                self.hold_stream(http2, stream, StreamHolding::default());
                self.counters.bodies_ended.add(1);
                return Err(Refusal::TooManyBodies);
            }
        }
        let body = file.into_body().map_err(|_| Refusal::TooManyBodies)?;
        http2.session.set_whole_body(stream, body.bytes());
        Ok(())
    }

    /// Counts a complete body in memory; false if there is no room for it.
    fn keep_body_in_memory(&mut self, http2: &mut Http2, stream: StreamId, len: usize) -> bool {
        let complete = StreamHolding {
            memory: len,
            moved: 0,
            may_end: false,
        };
        self.hold_stream(http2, stream, complete);
        if self.budgets.memory.is_over() {
            self.make_room(http2, Full::Memory);
        }
        !self.budgets.memory.is_over()
    }
}

fn holding(http2: &Http2, bytes: usize, since: Boottime, may_end: bool) -> Holding {
    Holding {
        client: ClientNetwork::of(http2.peer.ip()),
        bytes,
        since,
        may_end,
    }
}
