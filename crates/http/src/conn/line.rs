//! A socket without waiting: what can be read or sent at once, and the response that waits for the end of the turn.
//!
//! A short read or write tells tokio that the socket is empty or full, so that nothing is tried before it has something to read
//! or room again: waiting for the next request costs no `read` that could only say EAGAIN, and a response that fits the
//! socket's buffer costs exactly one `sendmsg`.

use std::cell::{Cell, OnceCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker, ready};

use millpond_store::clock::Boottime;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::exchange::Exchange;
use super::output::Output;

/// Slices on the stack: four responses. A longer pipeline pays for one allocation per write.
const FEW: usize = 16;

/// The client closed the connection, or it broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// A connection's socket, which its task shares with the worker's [outbox](super::outbox).
pub(crate) struct Line {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    post: Cell<Post>,
    /// Wakes the connection's task, which never changes.
    waker: OnceCell<Waker>,
}

/// Where the responses are that the task has handed over.
#[derive(Default)]
enum Post {
    #[default]
    None,
    /// In the outbox, with the moment at which their requests were read.
    Posted(Box<Exchange>, Boottime),
    /// The socket did not take all of them: back for the task.
    Returned(Box<Exchange>),
}

impl Line {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        Self {
            stream,
            peer,
            post: Cell::default(),
            waker: OnceCell::new(),
        }
    }

    /// Reads what is there into `space`; no bytes is the end.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        space: &mut [u8],
    ) -> Poll<Result<usize, Broken>> {
        loop {
            if ready!(self.stream.poll_read_ready(cx)).is_err() {
                return Poll::Ready(Err(Broken));
            }
            let mut part = 0;
            let len = space.len();
            let read = self.stream.try_io(Interest::READABLE, || {
                let (_, read) = recv(&self.stream, &mut *space, RecvFlags::empty())?;
                if read > 0 && read < len {
                    part = read;
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(read)
            });
            match read {
                Err(_) if part > 0 => return Poll::Ready(Ok(part)),
                Ok(read) => return Poll::Ready(Ok(read)),
                Err(error) if is_passing(&error) => {}
                Err(_) => return Poll::Ready(Err(Broken)),
            }
        }
    }

    /// Sends what is next in `output` once the socket takes bytes; how many it took, at least one.
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        output: &Output,
    ) -> Poll<Result<usize, Broken>> {
        loop {
            if ready!(self.stream.poll_write_ready(cx)).is_err() {
                return Poll::Ready(Err(Broken));
            }
            match self.send(output) {
                Ok(sent) if sent > 0 => return Poll::Ready(Ok(sent)),
                Err(error) if is_passing(&error) => {}
                _ => return Poll::Ready(Err(Broken)),
            }
        }
    }

    /// Sends what is next in `output` if the socket is known to take bytes.
    pub(super) fn send(&self, output: &Output) -> io::Result<usize> {
        if output.slice_count() <= FEW {
            let mut slices = [IoSlice::new(&[]); FEW];
            let count = output.slices(&mut slices);
            self.send_slices(&slices[..count])
        } else {
            // IOV_MAX is 1024.
            let mut slices = vec![IoSlice::new(&[]); output.slice_count().min(1024)];
            let count = output.slices(&mut slices);
            self.send_slices(&slices[..count])
        }
    }

    /// One `sendmsg`; a file's `writev` would cost the kernel a tenth of a microsecond more.
    fn send_slices(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut part = 0;
        let sent = self.stream.try_io(Interest::WRITABLE, || {
            let mut none = SendAncillaryBuffer::default();
            let sent = sendmsg(&self.stream, slices, &mut none, SendFlags::NOSIGNAL)?;
            if sent < len {
                part = sent;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(sent)
        });
        if part > 0 { Ok(part) } else { sent }
    }

    /// Notes whom to wake; what is posted later is returned to this task.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        if self.waker.get().is_none() {
            // It was empty.
            let _ = self.waker.set(cx.waker().clone());
        }
    }

    /// Hands responses over; those to requests that were read at `now`.
    pub(super) fn post(&self, exchange: Box<Exchange>, now: Boottime) {
        let before = self.post.replace(Post::Posted(exchange, now));
        debug_assert!(matches!(before, Post::None), "one post at a time");
    }

    /// Whether the outbox still has what was posted.
    pub(super) fn is_posted(&self) -> bool {
        let post = self.post.take();
        let is_posted = matches!(post, Post::Posted(..));
        self.post.set(post);
        is_posted
    }

    /// Takes out of the outbox what was posted.
    pub(super) fn posted(&self) -> Option<(Box<Exchange>, Boottime)> {
        match self.post.take() {
            Post::Posted(exchange, now) => Some((exchange, now)),
            other => {
                self.post.set(other);
                None
            }
        }
    }

    /// Gives the rest of a post back to the task.
    pub(super) fn hand_back(&self, exchange: Box<Exchange>) {
        self.post.set(Post::Returned(exchange));
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Takes back the rest of a post.
    pub(super) fn returned(&self) -> Option<Box<Exchange>> {
        match self.post.take() {
            Post::Returned(exchange) => Some(exchange),
            other => {
                self.post.set(other);
                None
            }
        }
    }
}

/// Whether the same call may do better later.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
