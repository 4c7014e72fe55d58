//! Responses on their way to one socket, in order, and what was written of them.

use std::fs::File;
use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;

use crate::h1::Head;
use crate::response::{Body, Response};
use crate::status::is_bodiless;

/// One response in the queue.
#[derive(Debug)]
struct Queued {
    /// The request it answers; none for an interim response and for a refusal.
    request: Option<Head>,
    status: u16,
    /// Head, extra field lines, tail (Date, Connection, empty line), body in memory.
    parts: [Bytes; 4],
    file: Option<FilePart>,
    /// Bytes of `parts` that are written.
    written: usize,
    /// Bytes of the file that are written.
    file_written: u64,
}

/// Part of a file that is still to be sent.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) file: Arc<File>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Queued {
    fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    fn body_written(&self) -> u64 {
        let before = self.len() - self.parts[3].len();
        self.written.saturating_sub(before) as u64 + self.file_written
    }
}

/// The queue. Everything before `first` is written; it is emptied when the last response is.
#[derive(Debug, Default)]
pub(super) struct Output {
    queue: Vec<Queued>,
    first: usize,
    /// Bytes in memory that wait to be written.
    waiting: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether it is empty and has not grown beyond the usual.
    pub(super) fn is_small(&self) -> bool {
        self.queue.is_empty() && self.queue.capacity() <= 64
    }

    /// Bytes in memory that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many slices the rest takes.
    pub(super) fn slice_count(&self) -> usize {
        (self.queue.len() - self.first) * 4
    }

    /// Queues `response`, whose head ends with `tail`. To HEAD, and with a status that has none, no body is sent.
    pub(super) fn push(&mut self, request: Option<Head>, response: Response, tail: Bytes) {
        let without_body = is_bodiless(response.status) || request.is_some_and(|head| head.is_head);
        let (body, file) = match response.body {
            Body::Bytes(bytes) if !without_body => (bytes, None),
            Body::File { file, offset, len } if !without_body && len > 0 => {
                (Bytes::new(), Some(FilePart { file, offset, len }))
            }
            _ => (Bytes::new(), None),
        };
        let queued = Queued {
            request,
            status: response.status,
            parts: [response.head, response.extra, tail, body],
            file,
            written: 0,
            file_written: 0,
        };
        self.waiting += queued.len();
        self.queue.push(queued);
    }

    /// `100 Continue` (RFC 9110 section 15.2.1).
    pub(super) fn push_continue(&mut self) {
        let head = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
        self.push(
            None,
            Response {
                status: 100,
                head,
                extra: Bytes::new(),
                body: Body::Empty,
                close: false,
            },
            Bytes::new(),
        );
    }

    /// Whether the last response in the queue is a file, after which nothing may be queued until it is sent.
    pub(super) fn ends_with_file(&self) -> bool {
        self.queue
            .last()
            .is_some_and(|queued| queued.file.is_some())
    }

    /// The slices that are to be written next, up to the next file; returns how many of `slices` were filled.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for queued in &self.queue[self.first..] {
            let mut skip = queued.written;
            for part in &queued.parts {
                let rest = &part[skip.min(part.len())..];
                skip = skip.saturating_sub(part.len());
                if rest.is_empty() {
                    continue;
                }
                let Some(slot) = slices.get_mut(count) else {
                    return count;
                };
                *slot = IoSlice::new(rest);
                count += 1;
            }
            if queued.file.is_some() {
                break;
            }
        }
        count
    }

    /// `len` bytes of the slices were written.
    pub(super) fn wrote(&mut self, mut len: usize) {
        self.waiting = self.waiting.saturating_sub(len);
        while let Some(queued) = self.queue.get_mut(self.first) {
            let taken = len.min(queued.len() - queued.written);
            queued.written += taken;
            len -= taken;
            if queued.written < queued.len() || queued.file.is_some() {
                break;
            }
            self.first += 1;
        }
    }

    /// The file that is next, once everything before it is written.
    pub(super) fn next_file(&self) -> Option<FilePart> {
        let queued = self.queue.get(self.first)?;
        let part = queued
            .file
            .as_ref()
            .filter(|_| queued.written == queued.len())?;
        let (offset, len) = (
            part.offset + queued.file_written,
            part.len - queued.file_written,
        );
        Some(FilePart {
            file: Arc::clone(&part.file),
            offset,
            len,
        })
    }

    /// `len` bytes of the next file were written.
    pub(super) fn wrote_file(&mut self, len: u64) {
        if let Some(queued) = self.queue.get_mut(self.first) {
            queued.file_written += len;
            if queued
                .file
                .as_ref()
                .is_none_or(|part| queued.file_written >= part.len)
            {
                queued.file = None;
                self.first += 1;
            }
        }
    }

    /// Whether everything is written.
    pub(super) fn is_written(&self) -> bool {
        self.first == self.queue.len()
    }

    /// Tells of each request its status and how much of the body was written.
    pub(super) fn each_request(&self, mut each: impl FnMut(&Head, u16, u64)) {
        for queued in &self.queue {
            if let Some(head) = &queued.request {
                each(head, queued.status, queued.body_written());
            }
        }
    }

    /// Empties the queue.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.first = 0;
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &'static str) -> Response {
        Response::prepared(
            200,
            "head\r\n".into(),
            Bytes::new(),
            Body::Bytes(body.into()),
        )
    }

    fn text(output: &Output) -> String {
        let mut slices = [IoSlice::new(&[]); 16];
        let count = output.slices(&mut slices);
        slices[..count]
            .iter()
            .map(|slice| std::str::from_utf8(slice).unwrap())
            .collect()
    }

    #[test]
    fn any_cut_of_the_writes_gives_the_same_bytes() {
        for step in 1..50 {
            let mut output = Output::default();
            for body in ["one, ", ", ", "three"] {
                output.push(None, response(body), "end\r\n".into());
            }
            let whole = text(&output);
            let mut written = String::new();
            while !output.is_written() {
                let next = text(&output);
                let step = step.min(next.len());
                written += &next[..step];
                output.wrote(step);
            }
            assert_eq!(written, whole);
            assert_eq!(output.waiting(), 0);
        }
    }
}
