//! Responses that are sent to one socket, in order, and the count of written bytes.
//!
//! Heads and small bodies are copied one behind the other, so that they are one slice: one more
//! slice costs the sending call about as much as copying a kilobyte.

use std::fs::File;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use base_clock::Boottime;
use bytes::Bytes;

use super::cached_response::{CachedExchange, RepeatedResponse};
use super::streamed_response::OutgoingBody;
use super::{After, Stage};
use crate::body_source::StreamedBody;
use crate::h1::Head;
use crate::request::Version;
use crate::request_counts::{CountedRequest, RequestCounter};
use crate::response::{Body, Response};
use crate::status::is_bodiless;

/// A body up to this length is copied behind its head.
pub(super) const COPIED: usize = 2 << 10;

#[derive(Debug)]
struct QueuedResponse {
    answers: AnsweredRequest,
    counted: CountedRequest,
    status: u16,
    /// Index at which the head and a small body end in the text. They begin where the previous
    /// response ends.
    text_end: usize,
    /// Bytes of the body that are part of the text.
    copied: usize,
    /// The body behind the text.
    body: LargeBody,
    /// Bytes of text, and of a body in memory, that are written.
    written: usize,
    /// Bytes of the file that are written, or of a body that was made while it was sent.
    file_written: u64,
}

// A longer one is moved by a call of `memcpy`.
const _: () = assert!(size_of::<QueuedResponse>() <= 128);

/// The request that a response answers.
#[derive(Debug)]
enum AnsweredRequest {
    /// None: an interim response, a refusal, or the service is not notified.
    Nothing,
    /// The head at this place of [`Output::heads`].
    Decoded(u32),
    Cached(Rc<CachedExchange>),
}

/// A request whose response is sent, or never will be.
#[derive(Clone, Copy, Debug)]
pub(super) enum SentRequest<'a> {
    Decoded(&'a Head),
    Cached(&'a CachedExchange),
}

/// A body that is not copied behind its head.
#[derive(Debug)]
enum LargeBody {
    None,
    Bytes(Bytes),
    /// The body of a cached response. The reference is the worker's own, so the count of the bytes
    /// that all workers share is not written.
    Cached(Rc<CachedExchange>),
    File(FilePart),
    /// The body is made while it is sent: its pieces are queued once the head is sent.
    Streamed,
}

impl LargeBody {
    /// A body in memory, else empty.
    fn bytes(&self) -> &[u8] {
        match self {
            Self::None | Self::File(_) | Self::Streamed => &[],
            Self::Bytes(bytes) => bytes,
            Self::Cached(exchange) => &exchange.body,
        }
    }

    const fn file(&self) -> Option<&FilePart> {
        match self {
            Self::File(part) => Some(part),
            _ => None,
        }
    }
}

/// Part of a file that is still to be sent.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) file: Arc<File>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// An interim response, a part of a body, or the answer to bytes that were not read.
pub(super) const NOT_COUNTED: CountedRequest = CountedRequest::NONE;

/// The queue. Everything before `first` is written. The queue is emptied when all of it is written.
#[derive(Default)]
pub(super) struct Output {
    /// The response whose body is being made.
    pub(super) streamed: Option<Box<OutgoingBody>>,
    text: Vec<u8>,
    /// The heads of the requests that were decoded. Apart, because they are long.
    heads: Vec<Head>,
    queue: Vec<QueuedResponse>,
    first: usize,
    /// Bytes in memory that wait to be written.
    waiting: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// True if the queue is empty and its buffers have the usual size.
    pub(super) fn is_small(&self) -> bool {
        let are_small = self.queue.capacity().max(self.heads.capacity()) <= 64;
        self.queue.is_empty() && are_small && self.text.capacity() <= 64 << 10
    }

    /// Gives the memory of the empty queue back.
    pub(super) fn shrink(&mut self) {
        debug_assert!(self.is_empty(), "what is queued would be lost");
        (self.text, self.heads, self.queue) = <_>::default();
    }

    /// Bytes in memory that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many slices the rest takes at most.
    pub(super) fn slice_count(&self) -> usize {
        (self.queue.len() - self.first) * 2
    }

    /// Queues `response`, whose head ends with `tail`. To HEAD, and with a status that has none, no
    /// body is sent.
    pub(super) fn push(
        &mut self,
        mut request: Option<Head>,
        response: Response,
        tail: &[u8],
        mut counted: CountedRequest,
    ) {
        let without_body = is_bodiless(response.status) || request.is_some_and(|head| head.is_head);
        let before = self.text.len();
        for part in [&response.head[..], &response.extra, tail] {
            self.text.extend_from_slice(part);
        }
        let mut copied = 0;
        let body = match response.body {
            _ if without_body => LargeBody::None,
            Body::Bytes(bytes) if bytes.len() <= COPIED => {
                self.text.extend_from_slice(&bytes);
                copied = bytes.len();
                LargeBody::None
            }
            Body::Bytes(bytes) => LargeBody::Bytes(bytes),
            Body::File { file, offset, len } if len > 0 => {
                LargeBody::File(FilePart { file, offset, len })
            }
            Body::Empty | Body::File { .. } => LargeBody::None,
            Body::Streamed(body) => {
                let counted = std::mem::take(&mut counted);
                self.begin_streamed(request.take(), counted, response.status, &body, tail.len())
            }
        };
        self.waiting += self.text.len() - before + body.bytes().len();
        let answers = request.map_or(AnsweredRequest::Nothing, |head| self.add_head(head));
        self.queue(answers, counted, response.status, copied, body, 0);
    }

    /// The head of a response whose body is made while it is sent is in the text, before a tail of
    /// `tail` bytes. The access log gets the request with the last piece.
    #[cold]
    fn begin_streamed(
        &mut self,
        request: Option<Head>,
        counted: CountedRequest,
        status: u16,
        body: &StreamedBody,
        tail: usize,
    ) -> LargeBody {
        let is_chunked = request.is_some_and(|head| head.version == Version::Http11);
        if is_chunked {
            let at = self.text.len() - tail;
            let line = b"Transfer-Encoding: chunked\r\n";
            self.text.splice(at..at, line.iter().copied());
        }
        let body = OutgoingBody::new(request, counted, status, body.take(), is_chunked);
        self.streamed = Some(Box::new(body));
        LargeBody::Streamed
    }

    /// Queues a piece of a body behind the line of its chunk.
    pub(super) fn push_piece(&mut self, head: &[u8], piece: Bytes) {
        self.text.extend_from_slice(head);
        self.waiting += head.len() + piece.len();
        let mut body = LargeBody::None;
        if piece.len() <= COPIED {
            self.text.extend_from_slice(&piece);
        } else {
            body = LargeBody::Bytes(piece);
        }
        self.queue(AnsweredRequest::Nothing, NOT_COUNTED, 200, 0, body, 0);
    }

    /// Queues the last bytes of a body that was made while it was sent.
    pub(super) fn push_end(&mut self, streamed: &OutgoingBody, end: &[u8]) {
        self.text.extend_from_slice(end);
        self.waiting += end.len();
        let request = streamed.head();
        let answers = request.map_or(AnsweredRequest::Nothing, |head| self.add_head(head));
        self.queue(
            answers,
            streamed.counted,
            streamed.status,
            0,
            LargeBody::None,
            streamed.sent(),
        );
        // Without a last chunk the end has no bytes, and is written as soon as it is the first.
        self.wrote(0);
    }

    /// Queues the text that is not queued yet, with the body behind it, of which `file_written`
    /// bytes are written.
    #[inline]
    fn queue(
        &mut self,
        answers: AnsweredRequest,
        counted: CountedRequest,
        status: u16,
        copied: usize,
        body: LargeBody,
        file_written: u64,
    ) {
        self.queue.push(QueuedResponse {
            answers,
            counted,
            status,
            text_end: self.text.len(),
            copied,
            body,
            written: 0,
            file_written,
        });
    }

    /// The connection ends before the body that is being made: the access log gets what was sent.
    pub(super) fn abandon_streamed(&mut self) {
        if let Some(streamed) = self.streamed.take() {
            self.push_end(&streamed, b"");
        }
    }

    /// The stage in which what is queued is sent, with the pieces that a body has which is being
    /// made; what follows.
    pub(super) fn sending(&mut self, after: After) -> Stage {
        match &mut self.streamed {
            Some(streamed) => {
                streamed.after = after;
                Stage::Streaming
            }
            None => Stage::Sending(after),
        }
    }

    fn add_head(&mut self, head: Head) -> AnsweredRequest {
        let Ok(at) = u32::try_from(self.heads.len()) else {
            return AnsweredRequest::Nothing;
        };
        self.heads.push(head);
        AnsweredRequest::Decoded(at)
    }

    /// Queues a cached response to a request that was received at this moment.
    pub(super) fn push_repeated(&mut self, response: RepeatedResponse, received: Boottime) {
        let text = response.text();
        self.text.extend_from_slice(text);
        let copied = text.len() - response.head_len as usize;
        self.waiting += text.len() + response.body().len();
        let status = response.status;
        let counted = response.counted(received);
        let body = match &response.exchange {
            Some(exchange) if !exchange.body.is_empty() => LargeBody::Cached(Rc::clone(exchange)),
            _ => LargeBody::None,
        };
        let answers = match response.exchange {
            Some(exchange) if response.is_reported => AnsweredRequest::Cached(exchange),
            _ => AnsweredRequest::Nothing,
        };
        self.queue(answers, counted, status, copied, body, 0);
    }

    /// `100 Continue` (RFC 9110 section 15.2.1).
    pub(super) fn push_continue(&mut self) {
        let head = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
        let response = Response::prepared(100, head, Bytes::new(), Body::Empty);
        self.push(None, response, b"", NOT_COUNTED);
    }

    /// True if the last response in the queue is a file, after which nothing may be queued until it
    /// is sent.
    pub(super) fn ends_with_file(&self) -> bool {
        self.queue
            .last()
            .is_some_and(|queued| queued.body.file().is_some())
    }

    /// True if the last response in the queue is a file, or the body of the last response is being
    /// made.
    pub(super) fn ends_with_more(&self) -> bool {
        let last = self.queue.last();
        last.is_some_and(|queued| matches!(queued.body, LargeBody::File(_) | LargeBody::Streamed))
    }

    /// Returns the index at which the text of the response at `at` begins.
    fn text_start(&self, at: usize) -> usize {
        at.checked_sub(1)
            .map_or(0, |before| self.queue[before].text_end)
    }

    /// The length of text and body of the response at `at`.
    fn len(&self, at: usize) -> usize {
        self.queue[at].text_end - self.text_start(at) + self.queue[at].body.bytes().len()
    }

    /// The slices that are to be written next, up to the next file; returns how many of `slices`
    /// were filled.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut add = |part: &'a [u8]| {
            if part.is_empty() {
                return true;
            }
            let Some(slot) = slices.get_mut(count) else {
                return false;
            };
            *slot = IoSlice::new(part);
            count += 1;
            true
        };
        // Where text begins that is in no slice yet.
        let mut from = self.text_start(self.first);
        for (queued, start) in self.queue[self.first..].iter().zip(self.first..) {
            let text = queued.text_end - self.text_start(start);
            let of_text = queued.written.min(text);
            if of_text > 0 {
                from = self.text_start(start) + of_text;
            }
            if matches!(queued.body, LargeBody::None) {
                continue;
            }
            let body = &queued.body.bytes()[queued.written - of_text..];
            if !(add(&self.text[from..queued.text_end]) && add(body)) {
                return count;
            }
            from = queued.text_end;
            if queued.body.file().is_some() {
                return count;
            }
        }
        add(&self.text[from..]);
        count
    }

    /// `len` bytes of the slices were written.
    pub(super) fn wrote(&mut self, mut len: usize) {
        self.waiting = self.waiting.saturating_sub(len);
        while self.first < self.queue.len() {
            let whole = self.len(self.first);
            let queued = &mut self.queue[self.first];
            let taken = len.min(whole - queued.written);
            queued.written += taken;
            len -= taken;
            if queued.written < whole || queued.body.file().is_some() {
                break;
            }
            self.first += 1;
        }
    }

    /// The file that is next, once everything before it is written.
    pub(super) fn next_file(&self) -> Option<FilePart> {
        let queued = self.queue.get(self.first)?;
        let is_next = |_: &&FilePart| queued.written == self.len(self.first);
        let part = queued.body.file().filter(is_next)?;
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

    /// True if nothing of the next file is written yet.
    pub(super) fn begins_file(&self) -> bool {
        let next = self.queue.get(self.first);
        next.is_some_and(|queued| queued.file_written == 0)
    }

    /// `len` bytes of the next file were written.
    pub(super) fn wrote_file(&mut self, len: u64) {
        if let Some(queued) = self.queue.get_mut(self.first) {
            queued.file_written += len;
            let part = queued.body.file();
            if part.is_none_or(|part| queued.file_written >= part.len) {
                queued.body = LargeBody::None;
                self.first += 1;
            }
        }
    }

    /// True if everything is written.
    pub(super) fn is_written(&self) -> bool {
        self.first == self.queue.len()
    }

    /// Calls `each` with every request, its series and time, its status, and the number of body
    /// bytes that were written.
    pub(super) fn each_request(
        &self,
        mut each: impl FnMut(SentRequest<'_>, CountedRequest, u16, u64),
    ) {
        for (at, queued) in self.queue.iter().enumerate() {
            let of_head = queued.text_end - self.text_start(at) - queued.copied;
            let request = match &queued.answers {
                AnsweredRequest::Nothing => continue,
                AnsweredRequest::Decoded(at) => match self.heads.get(*at as usize) {
                    Some(head) => SentRequest::Decoded(head),
                    None => continue,
                },
                AnsweredRequest::Cached(exchange) => SentRequest::Cached(exchange),
            };
            let of_body = queued.written.saturating_sub(of_head) as u64;
            each(
                request,
                queued.counted,
                queued.status,
                of_body + queued.file_written,
            );
        }
    }

    /// Notes the requests whose responses are in the queue, with the body bytes that were written.
    pub(super) fn count_in(&self, requests: &mut RequestCounter) {
        let mut start = 0;
        for queued in &self.queue {
            if !queued.counted.series.is_none() {
                let of_head = queued.text_end - start - queued.copied;
                let of_body = queued.written.saturating_sub(of_head) as u64;
                requests.note(queued.counted, of_body + queued.file_written);
            }
            start = queued.text_end;
        }
    }

    /// Empties the queue.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.heads.clear();
        self.queue.clear();
        self.first = 0;
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: Vec<u8>) -> Response {
        Response::prepared(
            200,
            "head\r\n".into(),
            Bytes::new(),
            Body::Bytes(body.into()),
        )
    }

    fn bytes(output: &Output) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 16];
        let count = output.slices(&mut slices);
        assert!(count <= output.slice_count());
        slices[..count]
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect()
    }

    #[test]
    fn any_cut_of_the_writes_gives_the_same_bytes() {
        for step in (1..50).chain([2_000, 2_055, 5_000]) {
            let mut output = Output::default();
            let bodies = [
                &b"one, "[..],
                b"",
                &[b'x'; COPIED + 7],
                b"three",
                &[b'y'; COPIED + 1],
            ];
            for body in bodies {
                output.push(None, response(body.to_vec()), b"end\r\n", NOT_COUNTED);
            }
            let whole = bytes(&output);
            let expected: Vec<u8> = bodies
                .iter()
                .flat_map(|body| [&b"head\r\nend\r\n"[..], body].concat())
                .collect();
            assert_eq!(whole, expected);
            let mut written = Vec::new();
            while !output.is_written() {
                let next = bytes(&output);
                let step = step.min(next.len());
                written.extend_from_slice(&next[..step]);
                output.wrote(step);
            }
            assert_eq!(written, whole);
            assert_eq!(output.waiting(), 0);
        }
    }

    #[test]
    fn few_small_responses_are_one_slice_and_a_large_body_is_its_own() {
        let mut output = Output::default();
        for _ in 0..3 {
            output.push(None, response(vec![b'x'; 100]), b"end\r\n", NOT_COUNTED);
        }
        let mut slices = [IoSlice::new(&[]); 16];
        assert_eq!(output.slices(&mut slices), 1);
        output.push(
            None,
            response(vec![b'x'; COPIED + 1]),
            b"end\r\n",
            NOT_COUNTED,
        );
        assert_eq!(output.slices(&mut [IoSlice::new(&[]); 16]), 2);
    }
}
