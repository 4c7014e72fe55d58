//! A socket to the server, over TCP or to a file, with TLS or without.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

/// Room for what is read at once; what is long makes more room.
const CHUNK: usize = 16 * 1024;
/// A buffer that has grown beyond this is not kept.
const KEPT: usize = 256 * 1024;

/// The socket.
pub(crate) enum Stream {
    Tcp(TcpStream),
    File(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, into),
            Self::File(socket) => Pin::new(socket).poll_read(cx, into),
            Self::Tls(socket) => Pin::new(socket).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::File(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(cx),
            Self::File(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::File(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}

/// A socket with what was read from it and not yet looked at.
pub(super) struct Io {
    pub(super) stream: Stream,
    pub(super) input: BytesMut,
}

impl Io {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
        }
    }

    /// Reads once; the bytes that came, 0 at the end. Without anything to read it costs no system
    /// call.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.input.reserve(CHUNK);
        pin!(self.stream.read_buf(&mut self.input)).poll(cx)
    }

    /// Sends as much of `output` as there is room for, and reads once: a server that answers while
    /// it is asked must not wait for us.
    pub(super) fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        while !output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, output)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(sent) => output.advance(sent),
                Poll::Pending => return self.poll_fill(cx),
            }
        }
        // With TLS, sealed bytes may still wait.
        let _ = Pin::new(&mut self.stream).poll_flush(cx)?;
        self.poll_fill(cx)
    }

    /// Gives back what a large answer took.
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.input);
    }
}

/// Does not keep a buffer that was needed once.
pub(super) fn shrink(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > KEPT {
        *buffer = BytesMut::new();
    }
}
