//! A worker: one thread, one event loop, one listener. A connection stays on the worker that accepted it.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use millpond_store::clock::Boottime;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::conn::{self, AtSleep, Outbox, Pool};
use crate::date::{Persistence, Tails};
use crate::limits::{ACCEPT_PAUSE, LINGER, Limits, REFUSALS_LINGERING};
use crate::response::{Response, Service};
use crate::shared::{Counters, Place, Shared};

/// What all connections of one worker share.
pub(crate) struct Worker<S: Service> {
    pub(crate) service: S,
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tails: Tails,
    pub(crate) pool: Pool,
    pub(crate) outbox: Outbox,
    /// Since when the worker is finishing.
    pub(crate) draining: Cell<Option<Boottime>>,
    /// Wakes idle connections when that begins.
    pub(crate) drain: Arc<Notify>,
    shared: Arc<Shared>,
    open: Cell<usize>,
    last_closed: Notify,
    lingering: Cell<usize>,
}

/// Serves `listener` (see [`listen`](crate::listen)) on this thread until [`Shared::shutdown`], then finishes the
/// requests in flight, for at most [`Limits::drain_timeout`].
///
/// # Errors
/// If the event loop cannot be made: no file descriptors, or a listener that is not a socket.
pub fn run_worker<S: Service>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    shared: Arc<Shared>,
) -> io::Result<()> {
    // Accepted sockets inherit it on Linux.
    SockRef::from(&listener).set_tcp_nodelay(true)?;
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(conn::before_sleep)
        .build_local(LocalOptions::default())?;
    let worker = Rc::new(Worker {
        service,
        limits,
        counters: shared.register(),
        tails: Tails::default(),
        pool: Pool::default(),
        outbox: Outbox::default(),
        draining: Cell::new(None),
        drain: Arc::new(Notify::new()),
        shared,
        open: Cell::new(0),
        last_closed: Notify::new(),
        lingering: Cell::new(0),
    });
    let _at_sleep = AtSleep::call(Rc::<Worker<S>>::clone(&worker));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        worker.accept_until_shutdown(&listener).await;
        let drain_timeout = worker.limits.drain_timeout;
        // Whoever is not done by then is cut off when the runtime is dropped.
        let _ = timeout(drain_timeout, worker.finish(listener)).await;
        Ok(())
    })
}

impl<S: Service> Worker<S> {
    async fn accept_until_shutdown(self: &Rc<Self>, listener: &tokio::net::TcpListener) {
        let stop = self.shared.wake.notified();
        tokio::pin!(stop);
        // Registered before the flag is read, so that a shutdown between the two is not missed.
        stop.as_mut().enable();
        while !self.shared.is_shutdown() {
            tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer),
                    Err(error) => {
                        self.counters.accept_errors.add(1);
                        if !is_about_one_connection(&error) {
                            // EMFILE and its like last until something is closed; trying on at once would only spin.
                            tokio::select! { () = &mut stop => break, () = sleep(ACCEPT_PAUSE) => {} }
                        }
                    }
                },
            }
        }
    }

    /// Takes in what the kernel has already accepted, closes the listener, and waits for the last connection.
    async fn finish(self: &Rc<Self>, listener: tokio::net::TcpListener) {
        self.draining.set(Some(Boottime::now()));
        if let Ok(listener) = listener.into_std() {
            while let Ok((stream, peer)) = listener.accept() {
                let stream = stream
                    .set_nonblocking(true)
                    .and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    self.admit(stream, peer);
                }
            }
        }
        self.drain.notify_waiters();
        while self.open.get() > 0 {
            self.last_closed.notified().await;
        }
    }

    /// Tells the service of something; that it panics over it must not concern anyone else.
    pub(crate) fn tell(&self, what: impl FnOnce(&S)) {
        if catch_unwind(AssertUnwindSafe(|| what(&self.service))).is_err() {
            self.counters.panics.add(1);
        }
    }

    fn admit(self: &Rc<Self>, stream: TcpStream, peer: SocketAddr) {
        self.counters.accepted.add(1);
        // Many may come at once.
        self.send_posts();
        match self.shared.admit(self.limits.connections) {
            Some(place) => {
                let open = Open::new(Rc::clone(self), place);
                spawn_local(async move {
                    conn::serve(stream, peer, Rc::clone(&open.worker)).await;
                    drop(open);
                });
            }
            None => self.refuse(stream, peer),
        }
    }

    /// Answers a connection over the limit, without reading from it first.
    fn refuse(self: &Rc<Self>, stream: TcpStream, peer: SocketAddr) {
        self.counters.over_limit.add(1);
        if self.lingering.get() >= REFUSALS_LINGERING {
            return;
        }
        self.lingering.set(self.lingering.get() + 1);
        let worker = Rc::clone(self);
        spawn_local(async move {
            let _ = timeout(LINGER, worker.send_unavailable(stream)).await;
            worker.lingering.set(worker.lingering.get() - 1);
        });
        self.tell(|service| service.refused(peer, 503));
    }

    async fn send_unavailable(&self, stream: TcpStream) {
        let response = Response::text(503, "too many connections\n")
            .with_extra(Bytes::from_static(b"Retry-After: 1\r\n"));
        let tail = self.tails.get(Boottime::now(), Persistence::Close);
        let crate::Body::Bytes(body) = &response.body else {
            return;
        };
        // A new socket's buffer takes this in one piece.
        let whole = [&response.head[..], &response.extra, &tail, body].concat();
        if stream.writable().await.is_err() || stream.try_write(&whole).is_err() {
            return;
        }
        if SockRef::from(&stream)
            .shutdown(std::net::Shutdown::Write)
            .is_err()
        {
            return;
        }
        let mut scratch = [0; 1024];
        poll_fn(|cx| {
            loop {
                match stream.poll_read_ready(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(())) => match stream.try_read(&mut scratch) {
                        Ok(0) => return Poll::Ready(()),
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                            return Poll::Ready(());
                        }
                        _ => {}
                    },
                }
            }
        })
        .await;
    }
}

/// Whether `accept` failed because of the connection it was about to return; the next may be well.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

/// A connection's entry in the books; however its task ends, dropping this closes it.
struct Open<S: Service> {
    worker: Rc<Worker<S>>,
    _place: Place,
}

impl<S: Service> Open<S> {
    fn new(worker: Rc<Worker<S>>, place: Place) -> Self {
        worker.open.set(worker.open.get() + 1);
        Self {
            worker,
            _place: place,
        }
    }
}

impl<S: Service> Drop for Open<S> {
    fn drop(&mut self) {
        let left = self.worker.open.get() - 1;
        self.worker.open.set(left);
        if left == 0 {
            self.worker.last_closed.notify_one();
        }
    }
}
