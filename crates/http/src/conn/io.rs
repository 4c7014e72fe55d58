//! One socket with its deadlines: every wait in a connection is one of the few here, and each has an end.

use std::future::poll_fn;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use millpond_store::clock::Boottime;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::futures::OwnedNotified;

use super::deadline::{Deadline, Progress};
use super::exchange::Exchange;
use super::line::{Line, is_passing};
use super::output::FilePart;
use crate::limits::{DRAIN_GRACE, FILE_CHUNK, LINGER, LINGER_BYTES};
use crate::response::Service;
use crate::worker::Worker;

/// Why a connection ends without a further response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client closed it, or it broke.
    ByClient,
    /// A deadline passed.
    TimedOut,
}

/// What an idle connection was woken by.
pub(super) enum Woken {
    /// The first bytes of a request.
    Bytes(Box<Exchange>),
    /// Responses that the socket did not take at once.
    Returned(Box<Exchange>),
}

/// A socket on a worker.
pub(super) struct Io<S: Service> {
    pub(super) line: Rc<Line>,
    pub(super) worker: Rc<Worker<S>>,
    deadline: Deadline,
    /// Wakes the connection when the worker begins to drain; polled once, since its task never changes.
    drain: Pin<Box<OwnedNotified>>,
    watches_drain: bool,
}

impl<S: Service> Io<S> {
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        worker: Rc<Worker<S>>,
        now: Boottime,
    ) -> Self {
        let drain = Box::pin(Arc::clone(&worker.drain).notified_owned());
        let deadline = Deadline::new(now, now.plus(worker.limits.idle_timeout));
        Self {
            line: Rc::new(Line::new(stream, peer)),
            worker,
            deadline,
            drain,
            watches_drain: false,
        }
    }

    /// Waits for the first bytes of a request, without holding a buffer meanwhile, or for what the socket did not take of what
    /// was posted; until `idle_until`, or shortly if the worker is draining.
    pub(super) async fn first_bytes(&mut self, idle_until: Boottime) -> Result<Woken, Ended> {
        poll_fn(|cx| {
            self.line.watch(cx);
            if let Some(exchange) = self.line.returned() {
                return Poll::Ready(Ok(Woken::Returned(exchange)));
            }
            let mut exchange = self.worker.pool.take();
            match self.poll_read(cx, &mut exchange) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(Woken::Bytes(exchange))),
                Poll::Ready(Err(ended)) => return Poll::Ready(Err(ended)),
                Poll::Pending => self.worker.pool.put(exchange),
            }
            self.watch_drain(cx);
            let until = match self.worker.draining.get() {
                Some(since) => idle_until.min(since.plus(DRAIN_GRACE)),
                None => idle_until,
            };
            self.deadline.poll(cx, until).map(|()| Err(Ended::TimedOut))
        })
        .await
    }

    /// Waits for more bytes of a request.
    pub(super) async fn more_bytes(
        &mut self,
        exchange: &mut Exchange,
        until: Boottime,
    ) -> Result<(), Ended> {
        poll_fn(|cx| match self.poll_read(cx, exchange) {
            Poll::Pending => self.deadline.poll(cx, until).map(|()| Err(Ended::TimedOut)),
            ready => ready,
        })
        .await
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut Exchange,
    ) -> Poll<Result<(), Ended>> {
        let space = exchange.decoder.space(&self.worker.limits);
        match ready!(self.line.poll_read(cx, space)) {
            Ok(len) if len > 0 => {
                self.worker.counters.bytes_in.add(len as u64);
                exchange.decoder.received(len);
                Poll::Ready(Ok(()))
            }
            _ => Poll::Ready(Err(Ended::ByClient)),
        }
    }

    fn watch_drain(&mut self, cx: &mut Context<'_>) {
        if !self.watches_drain {
            // The wake-up is all that is wanted of it; whether the worker drains is asked of the worker.
            self.watches_drain = true;
            let _ = self.drain.as_mut().poll(cx);
        }
    }

    /// Writes all that is queued; true if that took more than one moment.
    pub(super) async fn write_all(&mut self, exchange: &mut Exchange) -> Result<bool, Ended> {
        let mut progress = None;
        let written = self.write_queue(exchange, &mut progress).await;
        if written == Err(Ended::TimedOut) {
            self.worker.counters.write_timeouts.add(1);
        }
        written.map(|sent_file| sent_file || progress.is_some())
    }

    /// True if a file was among it.
    async fn write_queue(
        &mut self,
        exchange: &mut Exchange,
        progress: &mut Option<Progress>,
    ) -> Result<bool, Ended> {
        let mut total = 0;
        let mut sent_file = false;
        while !exchange.output.is_written() {
            let written = match exchange.output.next_file() {
                Some(part) => {
                    sent_file = true;
                    self.worker.send_posts();
                    let written = self.send_file(&part, progress, total).await?;
                    exchange.output.wrote_file(written);
                    if written < part.len {
                        // A large file must not keep other connections from their turn.
                        tokio::task::yield_now().await;
                    }
                    written
                }
                None => {
                    let written = self.write(exchange, progress, total).await?;
                    exchange.output.wrote(written);
                    written as u64
                }
            };
            total += written;
            self.worker.counters.bytes_out.add(written);
        }
        Ok(sent_file)
    }

    /// One vectored write.
    async fn write(
        &mut self,
        exchange: &Exchange,
        progress: &mut Option<Progress>,
        total: u64,
    ) -> Result<usize, Ended> {
        poll_fn(|cx| match self.line.poll_send(cx, &exchange.output) {
            Poll::Ready(sent) => Poll::Ready(sent.map_err(|_| Ended::ByClient)),
            Poll::Pending => self.poll_write_deadline(cx, progress, total),
        })
        .await
    }

    /// One `sendfile` of bounded length. A file that ends early cannot be answered properly any more: the length was
    /// promised, so the connection is cut and the client sees that something is missing.
    async fn send_file(
        &mut self,
        part: &FilePart,
        progress: &mut Option<Progress>,
        total: u64,
    ) -> Result<u64, Ended> {
        poll_fn(|cx| {
            loop {
                match self.line.stream.poll_write_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Ended::ByClient)),
                    Poll::Pending => return self.poll_write_deadline(cx, progress, total),
                }
                let mut offset = part.offset;
                let len = usize::try_from(part.len)
                    .unwrap_or(usize::MAX)
                    .min(FILE_CHUNK);
                let sent = self.line.stream.try_io(Interest::WRITABLE, || {
                    Ok(rustix::fs::sendfile(
                        &self.line.stream,
                        &*part.file,
                        Some(&mut offset),
                        len,
                    )?)
                });
                match sent {
                    Ok(sent) if sent > 0 => return Poll::Ready(Ok(sent as u64)),
                    Err(error) if is_passing(&error) => {}
                    _ => return Poll::Ready(Err(Ended::ByClient)),
                }
            }
        })
        .await
    }

    /// The client does not read: patience runs from the first time that the socket was full.
    fn poll_write_deadline<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: &mut Option<Progress>,
        total: u64,
    ) -> Poll<Result<T, Ended>> {
        let now = Boottime::now();
        let progress = progress.get_or_insert_with(|| Progress::new(now));
        progress.moved_to(total, now);
        self.deadline
            .poll(cx, progress.deadline(self.worker.limits.progress_timeout))
            .map(|()| Err(Ended::TimedOut))
    }

    /// Says that nothing more comes and waits until the client has seen it: closing while unread bytes arrive would
    /// reset the connection and could destroy the response on its way (RFC 9112 section 9.6).
    pub(super) async fn linger(&mut self, scratch: &mut [u8]) {
        if SockRef::from(&self.line.stream)
            .shutdown(Shutdown::Write)
            .is_err()
        {
            return;
        }
        let until = Boottime::now().plus(LINGER);
        let mut left = LINGER_BYTES;
        poll_fn(|cx| {
            while left > 0 {
                match self.line.poll_read(cx, scratch) {
                    Poll::Ready(Ok(len)) if len > 0 => left = left.saturating_sub(len),
                    Poll::Ready(_) => break,
                    Poll::Pending => return self.deadline.poll(cx, until),
                }
            }
            Poll::Ready(())
        })
        .await;
    }
}
