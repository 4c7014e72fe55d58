//! One connection, two who use it: the driver, and in its pauses a batch.
//!
//! The driver has one end and knows nothing of it. A batch takes the socket away while the driver
//! waits for no answer, and puts it back; meanwhile the driver finds nothing to read and no room to
//! write. Whether the driver waits is known from the messages that go by ([`Exchanges`]): each Sync
//! or query that it sends is answered until the server is ready.
//!
//! A batch that does not come to its end closes the connection, as the messages still in flight are
//! unknown.
//!
//! The driver is not woken when a batch is done: it would wake at every read only to find nothing.
//! So while no request is pending, the driver does not read, and that the server has gone is found
//! out when the connection is next taken ([`Share::is_over`]).

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Buf as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frame::{Exchanges, head};
use super::stream::{Io, Stream};

/// Both ends of the connection.
pub(crate) struct Share {
    state: RefCell<ShareState>,
}

struct ShareState {
    /// `None` while a batch has it, and at the end.
    io: Option<Io>,
    exchanges: Exchanges,
    /// The driver has looked for the socket while a batch had it.
    driver: Option<Waker>,
    /// A batch waits for the driver to have its answers.
    batch: Option<Waker>,
    closed: bool,
}

impl ShareState {
    fn close(&mut self) {
        self.closed = true;
        self.io = None;
        for waker in [self.driver.take(), self.batch.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }

    /// Lets a batch have the socket, if one waits and it is free now.
    fn pause(&mut self) {
        if self.exchanges.are_over()
            && let Some(waker) = self.batch.take()
        {
            waker.wake();
        }
    }
}

impl Share {
    /// Of a socket before the login; with the driver's end.
    pub(super) fn new(stream: Stream) -> (Rc<Self>, DriversEnd) {
        let share = Rc::new(Self {
            state: RefCell::new(ShareState {
                io: Some(Io::new(stream)),
                exchanges: Exchanges::new(),
                driver: None,
                batch: None,
                closed: false,
            }),
        });
        (Rc::clone(&share), DriversEnd(share))
    }

    /// Takes the socket as soon as the driver waits for nothing; `None` if the connection is
    /// closed.
    pub(super) async fn take(&self) -> Option<(SocketTurn<'_>, Io)> {
        poll_fn(|cx| {
            let mut state = self.state.borrow_mut();
            if state.closed {
                return Poll::Ready(None);
            }
            if state.exchanges.are_over()
                && let Some(io) = state.io.take()
            {
                let turn = SocketTurn {
                    share: self,
                    done: false,
                };
                return Poll::Ready(Some((turn, io)));
            }
            state.batch = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// True if the server has gone, as far as can be seen without waiting. Messages of the server
    /// on an idle connection are read here; if that is an error, it is its last word.
    pub(crate) fn is_over(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return true;
        }
        // Else the driver listens.
        let over = state.exchanges.are_over() && state.io.as_mut().is_some_and(has_ended);
        if over {
            state.close();
        }
        over
    }
}

/// Reads the messages on an idle connection, and skips notices.
fn has_ended(io: &mut Io) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match io.poll_fill(&mut cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0) | Err(_)) => return true,
            Poll::Ready(Ok(_)) => {}
        }
        loop {
            match head(&io.input) {
                Ok(Some((b'N' | b'S' | b'A', length))) if length <= io.input.len() => {
                    io.input.advance(length);
                }
                // The rest of it is on its way.
                Ok(None | Some((b'N' | b'S' | b'A', _))) => break,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

/// The time in which a batch has the socket. Its end without [`give_back`](SocketTurn::give_back)
/// is the connection's.
pub(super) struct SocketTurn<'a> {
    share: &'a Share,
    done: bool,
}

impl SocketTurn<'_> {
    /// Gives the socket back: the whole answer was read.
    pub(super) fn give_back(mut self, mut io: Io) {
        io.shrink();
        let mut state = self.share.state.borrow_mut();
        // The driver may have been ended meanwhile.
        if !state.closed {
            state.io = Some(io);
        }
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
        self.done = true;
    }
}

impl Drop for SocketTurn<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.share.state.borrow_mut().close();
        }
    }
}

/// The socket as the driver has it.
pub(super) struct DriversEnd(Rc<Share>);

impl DriversEnd {
    /// Does something with the socket, unless a batch has it or the connection is closed.
    fn with<T>(
        &self,
        cx: &mut Context<'_>,
        closed: io::Result<T>,
        work: impl FnOnce(&mut Io, &mut Exchanges, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.0.state.borrow_mut();
        if state.closed {
            return Poll::Ready(closed);
        }
        let ShareState { io, exchanges, .. } = &mut *state;
        let Some(io) = io else {
            state.driver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let done = work(io, exchanges, cx);
        state.pause();
        done
    }
}

fn connection_lost<T>() -> io::Result<T> {
    Err(io::ErrorKind::BrokenPipe.into())
}

impl AsyncRead for DriversEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The end of what there is to read is how a driver learns that the connection is closed.
        self.with(cx, Ok(()), |io, exchanges, cx| {
            let before = into.filled().len();
            if io.input.is_empty() {
                ready!(Pin::new(&mut io.stream).poll_read(cx, into))?;
            } else {
                // What came behind the answer to a batch.
                let count = io.input.len().min(into.remaining());
                into.put_slice(&io.input[..count]);
                io.input.advance(count);
            }
            exchanges.receive(&into.filled()[before..]);
            Poll::Ready(Ok(()))
        })
    }
}

impl AsyncWrite for DriversEnd {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(cx, connection_lost(), |io, exchanges, cx| {
            let sent = ready!(Pin::new(&mut io.stream).poll_write(cx, bytes))?;
            exchanges.send(&bytes[..sent]);
            Poll::Ready(Ok(sent))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, connection_lost(), |io, _, cx| {
            Pin::new(&mut io.stream).poll_flush(cx)
        })
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, Ok(()), |io, _, cx| {
            Pin::new(&mut io.stream).poll_shutdown(cx)
        })
    }
}

impl Drop for DriversEnd {
    fn drop(&mut self) {
        self.0.state.borrow_mut().close();
    }
}
