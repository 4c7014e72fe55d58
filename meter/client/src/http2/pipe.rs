//! Two queues of bytes in memory, used by `h2` as its socket. The engine fills one from the real
//! socket and writes the other to it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Wire;

/// Unsent bytes from which on `h2` has to wait: a large request body is not copied before the
/// socket has room.
const FULL: usize = 256 * 1024;

/// One handle of the queues; there are two, `h2`'s and the engine's, both on the engine's thread.
#[derive(Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Queues>>);

#[derive(Default)]
struct Queues {
    /// Received bytes; those from `read` on are not taken yet.
    inbox: Vec<u8>,
    read: usize,
    /// Bytes to be sent; those from `sent` on are not taken by the socket yet.
    outbox: Vec<u8>,
    sent: usize,
    /// `h2` waits for room in the outbox.
    stalled: bool,
    /// The socket takes no more.
    broken: bool,
}

impl Pipe {
    /// Bytes of the socket.
    pub(super) fn feed(&self, bytes: &[u8]) {
        self.0.borrow_mut().inbox.extend_from_slice(bytes);
    }

    /// Writes the outbox to the socket; true if all was written.
    pub(super) fn drain(&self, wire: &mut Wire) -> Result<bool, Errno> {
        let mut queues = self.0.borrow_mut();
        let queues = &mut *queues;
        while queues.sent < queues.outbox.len() {
            match wire.send(&queues.outbox[queues.sent..]) {
                Ok(count) => queues.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        queues.outbox.clear();
        queues.sent = 0;
        wire.drain()
    }

    /// True if `h2` had to wait for room since this was asked last.
    pub(super) fn was_stalled(&self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().stalled)
    }

    /// The socket takes no more bytes: drops all unsent bytes.
    pub(super) fn stop_writing(&self) {
        let mut queues = self.0.borrow_mut();
        queues.broken = true;
        queues.outbox.clear();
        queues.sent = 0;
    }
}

impl Queues {
    fn write(&mut self, bytes: &[u8]) -> Poll<usize> {
        if self.broken {
            return Poll::Ready(bytes.len());
        }
        let room = FULL.saturating_sub(self.outbox.len() - self.sent);
        if room == 0 {
            self.stalled = true;
            return Poll::Pending;
        }
        let count = room.min(bytes.len());
        self.outbox.extend_from_slice(&bytes[..count]);
        Poll::Ready(count)
    }
}

impl AsyncRead for Pipe {
    /// Never the end: the engine sees the end of the socket, and which requests it ends.
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut queues = self.0.borrow_mut();
        let rest = &queues.inbox[queues.read..];
        if rest.is_empty() {
            return Poll::Pending;
        }
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        queues.read += count;
        if queues.read == queues.inbox.len() {
            queues.inbox.clear();
            queues.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().write(bytes).map(Ok)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut queues = self.0.borrow_mut();
        let mut taken = 0;
        for buffer in buffers.iter().filter(|buffer| !buffer.is_empty()) {
            match queues.write(buffer) {
                Poll::Ready(count) => taken += count,
                Poll::Pending if taken == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
