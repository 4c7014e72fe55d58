//! Responses become frames: those of all streams in one buffer, by priority (RFC 9113 sections
//! 5.2, 6.2 and 8.1; RFC 9218 section 10).

use std::fs::File;
use std::io;

use base_clock::Boottime;

use super::flow::StallClock;
use super::frame::{
    DEFAULT_FRAME, END_HEADERS, END_STREAM, ErrorCode, FRAME_HEAD, FrameHead, FrameKind,
    push_frame, push_reset,
};
use super::hpack::encoder::{NO_DYNAMIC_TABLE, push_status};
use super::session::Session;
use super::stream::{Http2Stream, RequestPart};
use super::streams::ClosedBy;
use crate::response::Body;

/// Reads bodies that are files, so that the session needs no IO of its own.
pub(crate) trait FileReader {
    /// Appends up to `len` bytes of the file from `offset` on to `out`, and says how many. With
    /// an error, or without a byte, the stream is given up.
    fn read(
        &mut self,
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<usize>;
}

/// Bounds that `write` has to obey.
struct WriteTarget<'a> {
    out: &'a mut Vec<u8>,
    /// Index at which the output began: the first frame is written in any case.
    start: usize,
    /// Index at which the output should end.
    end: usize,
    files: &'a mut dyn FileReader,
}

impl WriteTarget<'_> {
    fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    /// True if a frame that cannot be shorter than `len` may be written.
    fn takes(&self, len: usize) -> bool {
        len <= self.room() || self.out.len() == self.start
    }
}

/// A DATA frame is not made shorter than this for want of room.
const LEAST_DATA: usize = 1 << 10;

impl Session {
    /// Appends what is ready to be sent at `now` to `out`: about `room` bytes at most, but for
    /// frames that concern no response. True if more would have been written with more room.
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        room: usize,
        files: &mut dyn FileReader,
        now: Boottime,
    ) -> bool {
        out.append(&mut self.control);
        if self.has_failed() {
            return false;
        }
        let mut target = WriteTarget {
            start: out.len(),
            end: out.len() + room,
            out,
            files,
        };
        self.write_continues(target.out);
        let mut has_more = false;
        while !has_more && let Some(at) = self.next_ready() {
            has_more = !self.write_stream(at, &mut target);
        }
        // A file that could not be read was reset.
        out.append(&mut self.control);
        self.note_stalls(now);
        has_more
    }

    /// 100 (Continue), to clients that wait for it.
    fn write_continues(&mut self, out: &mut Vec<u8>) {
        let owed = &mut self.owes_table_update;
        for stream in self.streams.iter_mut() {
            if std::mem::take(&mut stream.owes_continue) {
                let mut block = Vec::with_capacity(8);
                if std::mem::take(owed) {
                    block.push(NO_DYNAMIC_TABLE);
                }
                push_status(&mut block, 100);
                push_frame(out, FrameKind::Headers, END_HEADERS, stream.id, &block);
            }
        }
    }

    pub(super) fn is_ready(&self, stream: &Http2Stream) -> bool {
        let reply = &stream.response;
        let may_send = || {
            let is_window_open =
                stream.send_window.available() > 0 && self.send_window.available() > 0;
            // The end of a body that was made while it was sent needs no window.
            (is_window_open && reply.left() > 0) || reply.has_all()
        };
        reply.is_waiting() && !stream.is_reset && (!reply.block.is_empty() || may_send())
    }

    /// The stream that is served next. The most urgent go first; among those, streams that are not
    /// incremental are served in the order of their requests, incremental ones by turns, and the
    /// two kinds by turns.
    fn next_ready(&self) -> Option<usize> {
        let mut most_urgent = u8::MAX;
        let (mut in_order, mut first, mut next) = (None, None, None);
        for (at, stream) in self.streams.iter().enumerate() {
            let priority = stream.priority;
            if priority.urgency > most_urgent || !self.is_ready(stream) {
                continue;
            }
            if priority.urgency < most_urgent {
                most_urgent = priority.urgency;
                (in_order, first, next) = (None, None, None);
            }
            if !priority.is_incremental {
                in_order.get_or_insert(at);
            } else {
                first.get_or_insert(at);
                if stream.id > self.served_last {
                    next.get_or_insert(at);
                }
            }
        }
        // After the last of the incremental ones it is the other kind's turn.
        next.or(in_order).or(first)
    }

    /// Writes the head of a response, if it is not written, and one DATA frame. False if there is
    /// no room.
    fn write_stream(&mut self, at: usize, target: &mut WriteTarget<'_>) -> bool {
        let stream = self.streams.at(at);
        let is_incremental = stream.priority.is_incremental;
        let id = stream.id;
        let begins = !stream.response.block.is_empty();
        if begins {
            if !target.takes(stream.response.block.len() + FRAME_HEAD) {
                return false;
            }
            self.write_head(at, target.out);
        }
        let stream = self.streams.at(at);
        if stream.response.left() > 0 {
            match self.write_data(at, target) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => {
                    // Its handler is gone, so there is no event.
                    let _ = self.reset_at(at, ErrorCode::InternalError);
                    return true;
                }
            }
        } else if !begins && stream.response.has_all() {
            if !target.takes(FRAME_HEAD) {
                return false;
            }
            push_frame(target.out, FrameKind::Data, END_STREAM, id, &[]);
        }
        self.served_last = if is_incremental { id } else { 0 };
        if self.streams.at(at).response.has_all() {
            self.complete(at, target.out);
        }
        true
    }

    /// HEADERS, and CONTINUATION if the block is longer than a frame.
    fn write_head(&mut self, at: usize, out: &mut Vec<u8>) {
        let owed = std::mem::take(&mut self.owes_table_update);
        let max_frame = self.client.max_frame as usize;
        let stream = self.streams.at(at);
        let reply = &mut stream.response;
        if owed {
            reply.block.insert(0, NO_DYNAMIC_TABLE);
        }
        let mut flags = if reply.has_all() { END_STREAM } else { 0 };
        let mut kind = FrameKind::Headers;
        let mut rest = &reply.block[..];
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(max_frame));
            rest = behind;
            if rest.is_empty() {
                flags |= END_HEADERS;
            }
            push_frame(out, kind, flags, stream.id, part);
            (kind, flags) = (FrameKind::Continuation, 0);
        }
        reply.block.clear();
    }

    /// One DATA frame, unless a window is shut. False if there is no room.
    fn write_data(&mut self, at: usize, target: &mut WriteTarget<'_>) -> io::Result<bool> {
        let connection_window = self.send_window.available();
        let stream = self.streams.at(at);
        let reply = &mut stream.response;
        let left = usize::try_from(reply.left()).unwrap_or(usize::MAX);
        let window = stream.send_window.available().min(connection_window);
        let wanted = left.min(window).min(DEFAULT_FRAME as usize);
        if wanted == 0 {
            return Ok(true);
        }
        if !target.takes(FRAME_HEAD + wanted.min(LEAST_DATA)) {
            return Ok(false);
        }
        let room = target.room().saturating_sub(FRAME_HEAD);
        let len = wanted.min(room.max(LEAST_DATA));
        let head_at = target.out.len();
        target.out.extend_from_slice(&[0; FRAME_HEAD]);
        let written = match &reply.body {
            // The session is given its pieces.
            Body::Empty | Body::Streamed(_) => 0,
            Body::Bytes(bytes) => {
                // What was sent lies within the body.
                let from = usize::try_from(reply.sent - reply.before).unwrap_or(usize::MAX);
                let part = bytes.get(from..from + len).unwrap_or_default();
                target.out.extend_from_slice(part);
                part.len()
            }
            Body::File { file, offset, .. } => {
                let from = offset + reply.sent;
                let read = target.files.read(file, from, len, target.out);
                let read = read.map(|read| read.min(len));
                target
                    .out
                    .truncate(head_at + FRAME_HEAD + *read.as_ref().unwrap_or(&0));
                read.inspect_err(|_| target.out.truncate(head_at))?
            }
        };
        if written == 0 {
            target.out.truncate(head_at);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        reply.sent += written as u64;
        let head = FrameHead {
            // At most the default length of a frame.
            len: u32::try_from(written).unwrap_or_default(),
            kind: FrameKind::Data,
            flags: if reply.has_all() { END_STREAM } else { 0 },
            stream: stream.id,
        };
        target.out[head_at..head_at + FRAME_HEAD].copy_from_slice(&head.to_bytes());
        stream.send_window.sent(written);
        self.send_window.sent(written);
        self.sent += written as u64;
        Ok(true)
    }

    /// The last frame of a response is written.
    fn complete(&mut self, at: usize, out: &mut Vec<u8>) {
        self.waste.completed();
        let stream = self.streams.at(at);
        stream.response.is_complete = true;
        let (id, part) = (stream.id, stream.part);
        if part == RequestPart::Complete {
            self.streams.remember(id, ClosedBy::End);
        } else {
            // Section 8.1: the client need not send the rest.
            push_reset(out, id, ErrorCode::NoError);
            self.streams.remember(id, ClosedBy::Us);
        }
        self.retire(at);
    }

    /// Starts the clocks of windows that are shut, and stops those of the others.
    /// [`Session::write`] does so too.
    pub(crate) fn note_stalls(&mut self, now: Boottime) {
        if self.streams.is_empty() {
            (self.stall, self.sent) = (StallClock::default(), 0);
            return;
        }
        let is_shut = self.send_window.available() == 0;
        let mut waits_for_connection = false;
        for stream in self.streams.iter_mut() {
            let reply = &stream.response;
            if stream.is_reset || !reply.is_waiting() || !reply.block.is_empty() {
                continue;
            }
            if reply.left() == 0 {
                // It waits for its next piece.
                stream.stall.open(now);
            } else if stream.send_window.available() == 0 {
                stream.stall.shut(reply.sent, now);
            } else {
                stream.stall.open(now);
                waits_for_connection |= is_shut;
            }
        }
        if waits_for_connection {
            self.stall.shut(self.sent, now);
        } else {
            self.stall.open(now);
        }
    }
}
