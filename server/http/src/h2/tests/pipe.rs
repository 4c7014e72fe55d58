//! Two queues of bytes that another implementation takes for its socket.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One handle of the queues: that of the client, and that of the test.
#[derive(Clone, Default)]
pub(super) struct MemoryPipe(Rc<RefCell<PipeQueues>>);

#[derive(Default)]
struct PipeQueues {
    to_client: Vec<u8>,
    from_client: Vec<u8>,
}

impl MemoryPipe {
    /// Gives bytes to the client.
    pub(super) fn feed(&self, bytes: &[u8]) {
        self.0.borrow_mut().to_client.extend_from_slice(bytes);
    }

    /// Returns the bytes that the client has written.
    pub(super) fn written(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().from_client)
    }
}

impl AsyncRead for MemoryPipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut queues = self.0.borrow_mut();
        if queues.to_client.is_empty() {
            return Poll::Pending;
        }
        let count = queues.to_client.len().min(buffer.remaining());
        buffer.put_slice(&queues.to_client[..count]);
        queues.to_client.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MemoryPipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().from_client.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
