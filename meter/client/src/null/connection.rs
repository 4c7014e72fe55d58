//! One connection of the null server: requests that wait for their time, and unsent bytes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::NullAnswer;
use super::scan::{Request, Scanner};
use base_clock::Nanos;

/// Requests that wait on one connection, past which no more are read from it.
const MOST: usize = 4096;
/// Bytes that are offered to the system at once, if a response is not longer.
const BATCH: usize = 64 * 1024;

/// The response, repeated so that a batch of responses is one slice. The bytes owed to a connection
/// are a stretch of this slice, with a period of one response.
pub(super) struct RepeatedResponse {
    repeated: Box<[u8]>,
    length: usize,
    head: usize,
    /// How long the thread works on each response.
    work: Nanos,
}

impl RepeatedResponse {
    pub(super) fn new(body: usize, work: Nanos) -> Self {
        let mut one = head(body).into_bytes();
        let head = one.len();
        one.resize(head + body, b'x');
        Self {
            length: one.len(),
            repeated: one.repeat((BATCH / one.len()).max(1)).into_boxed_slice(),
            head,
            work,
        }
    }
}

/// The head of a response with a body of `body` bytes.
pub(super) fn head(body: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\nContent-Type: text/plain\r\n\r\n")
}

pub(super) struct NullConnection {
    pub socket: OwnedFd,
    pub(super) scanner: Scanner,
    /// Requests without a response, in the order of their arrival, each with the due time of its
    /// response.
    waiting: VecDeque<QueuedRequest>,
    /// Bytes of responses that the system has not taken.
    owed: usize,
    /// Position of the next owed byte in the response.
    position: usize,
    /// True if the owed responses are heads only.
    heads: bool,
    /// No more is read, and the connection is closed when all is written.
    pub ending: bool,
    /// Events that epoll reports.
    pub(super) watched: (bool, bool),
}

struct QueuedRequest {
    received: Option<Nanos>,
    arrived: Nanos,
    due: Nanos,
    request: Request,
}

impl NullConnection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            scanner: Scanner::default(),
            waiting: VecDeque::new(),
            owed: 0,
            position: 0,
            heads: false,
            ending: false,
            watched: (true, false),
        }
    }

    /// Adds a request, with the time at which the kernel `received` it if known; true if it is the
    /// first that waits.
    pub(super) fn push(
        &mut self,
        request: Request,
        received: Option<Nanos>,
        arrived: Nanos,
        due: Nanos,
    ) -> bool {
        self.waiting.push_back(QueuedRequest {
            received,
            arrived,
            due,
            request,
        });
        self.ending |= request.close;
        self.waiting.len() == 1
    }

    /// When the first response that waits is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// Events that epoll should report: something to read, room to write.
    pub(super) fn wanted_events(&self) -> (bool, bool) {
        (!self.ending && self.waiting.len() < MOST, self.owed > 0)
    }

    /// True if there is nothing left to do.
    pub(super) fn is_done(&self) -> bool {
        self.ending && self.waiting.is_empty() && self.owed == 0
    }

    /// Does the work for the responses due at `now` and sends them, as far as the system takes
    /// them. Responses with work are sent one by one, so none waits for the work of the next. Once
    /// `stop` is set, no work is done.
    pub(super) fn advance(
        &mut self,
        answer: &RepeatedResponse,
        mut now: Nanos,
        stop: &AtomicBool,
        mut log: impl FnMut(NullAnswer),
    ) -> Result<(), Errno> {
        loop {
            while let Some(first) = self.waiting.front().filter(|first| first.due <= now)
                && (self.owed == 0 || answer.work == 0 && self.heads == first.request.is_head)
            {
                if self.owed == 0 {
                    (self.heads, self.position) = (first.request.is_head, 0);
                }
                self.owed += if self.heads {
                    answer.head
                } else {
                    answer.length
                };
                if answer.work > 0 {
                    now = base_clock::busy(answer.work, stop);
                }
                log(NullAnswer {
                    arrived_ns: first.arrived,
                    answered_ns: now,
                    received_ns: first.received,
                });
                self.waiting.pop_front();
            }
            if self.owed == 0 || !self.flush(answer)? {
                return Ok(());
            }
        }
    }

    /// Sends the owed bytes; true if the socket took all.
    fn flush(&mut self, answer: &RepeatedResponse) -> Result<bool, Errno> {
        let (bytes, period) = if self.heads {
            (&answer.repeated[..answer.head], answer.head)
        } else {
            (&*answer.repeated, answer.length)
        };
        while self.owed > 0 {
            let most = (bytes.len() - self.position).min(self.owed);
            let offered = &bytes[self.position..self.position + most];
            match rustix::net::send(&self.socket, offered, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.owed -= count;
                    self.position = (self.position + count) % period;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
