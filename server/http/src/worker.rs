//! A worker: one thread, one event loop, one listener. A connection stays on the worker that
//! accepted it.

mod accept;

use std::cell::Cell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use base_clock::Boottime;
use rustls::ServerConfig;
use socket2::SockRef;

use crate::conn::{Connections, Host};
use crate::event::{Mailbox, Poller, Token, Wait};
use crate::limits::{BUSY_OUTPUT, FEW_CONNECTIONS, LAST_ACCEPTS, Limits, OUTPUT};
use crate::listen::ListenAddress;
use crate::request_counts::RequestCounter;
use crate::response::Service;
use crate::worker_group::WorkerGroup;
use accept::Refusals;

const LISTENER: Token = Token::reserved(0);
const BELL: Token = Token::reserved(1);

/// One worker. Other threads see only the counters and the mailbox.
struct Worker<S: Service> {
    connections: Connections<S>,
    listener: Option<TcpListener>,
    /// None: the connections speak HTTP without TLS.
    tls: Option<Arc<ServerConfig>>,
    /// When to accept again after that failed.
    accepts_at: Option<Boottime>,
    poller: Poller,
    lingering: Rc<Cell<usize>>,
    refusals: Refusals,
}

/// A listening socket (see [`listen`](crate::listen)), and what its connections speak.
#[derive(Debug)]
pub struct Listener {
    /// Socket on which connections arrive, of TCP or a unix socket.
    pub socket: TcpListener,
    /// None: HTTP without TLS. Else TLS with this configuration, of which connections that are made
    /// later use what its resolver of certificates gives then.
    pub tls: Option<Arc<ServerConfig>>,
    /// Field lines that every response has, each ending with CRLF, such as
    /// `Strict-Transport-Security`.
    pub fields: String,
}

impl From<TcpListener> for Listener {
    /// HTTP without TLS.
    fn from(socket: TcpListener) -> Self {
        Self {
            socket,
            tls: None,
            fields: String::new(),
        }
    }
}

/// Serves `listener` on this thread until
/// [`WorkerGroup::shutdown`], then finishes the requests in flight, for at most
/// [`Limits::drain_timeout`].
///
/// # Errors
/// If the event loop cannot be made, or fails: no file descriptors, or a listener that is not a
/// socket.
pub fn run_worker<S: Service>(
    listener: impl Into<Listener>,
    service: S,
    limits: Limits,
    group: Arc<WorkerGroup>,
) -> io::Result<()> {
    let Listener {
        socket: listener,
        tls,
        fields,
    } = listener.into();
    if ListenAddress::of(&listener)?.ip().is_some() {
        // Accepted sockets inherit it on Linux.
        SockRef::from(&listener).set_tcp_nodelay(true)?;
    }
    listener.set_nonblocking(true)?;
    let (mailbox, poller) = (Mailbox::new()?, Poller::new()?);
    poller.watch_input(mailbox.bell(), BELL, true)?;
    poller.watch_input(&listener, LISTENER, false)?;
    let (counters, series) = group.register(&mailbox);
    let counters = (counters, RequestCounter::new(series));
    let refusals = Refusals::with_reserve(&mailbox);
    let is_secured = tls.is_some();
    let host = Host::new(
        service, limits, group, counters, mailbox, fields, is_secured,
    );
    let worker = Worker {
        connections: Connections::new(host),
        listener: Some(listener),
        tls,
        accepts_at: None,
        poller,
        lingering: Rc::default(),
        refusals,
    };
    worker.run()
}

impl<S: Service> Worker<S> {
    fn run(mut self) -> io::Result<()> {
        let (mut woken, mut due) = (Vec::new(), Vec::new());
        // True if every pending request was answered and at most four connections are active.
        let mut may_spin = false;
        loop {
            self.check_shutdown();
            if self.is_drained() {
                self.connections.close_all();
                self.connections.host.requests.settle(Boottime::now());
                return Ok(());
            }
            let was_awake = self.poller.wait(self.until(), may_spin)?;
            self.host().counters.waits_awake.add(u64::from(was_awake));
            // Requests that arrived after a shutdown get the responses of a shutdown.
            self.check_shutdown();
            let is_busy = self.poller.len() > FEW_CONNECTIONS;
            self.connections.host.most_output = if is_busy { BUSY_OUTPUT } else { OUTPUT };
            let mut asked = 0;
            for at in 0..self.poller.len() {
                match self.poller.event(at) {
                    Some((LISTENER, _)) => self.accept(),
                    Some((BELL, _)) | None => {}
                    Some((token, news)) => {
                        asked += 1;
                        self.connections.handle_event(token, news);
                    }
                }
            }
            self.connections.answer_batch();
            self.host().mailbox.collect(&mut woken);
            let has_woken = !woken.is_empty();
            self.connections.continue_woken(&mut woken);
            self.connections.continue_without_events(asked);
            // The turn is over: responses that are ready wait no longer.
            self.connections.send_batch();
            let now = Boottime::now();
            self.connections.host.requests.settle(now);
            self.connections.expire_deadlines(now, &mut due);
            if self.accepts_at.is_some_and(|at| at <= now) {
                self.accept_again();
            }
            // A thread that makes responses may need this core.
            let is_elsewhere = has_woken || self.host().mailbox.is_expecting();
            may_spin = self.host().limits.spins
                && !is_elsewhere
                && self.connections.write_batch.has_answered(asked);
            self.connections.write_batch.end_turn();
        }
    }

    fn host(&self) -> &Host<S> {
        &self.connections.host
    }

    /// How long to wait for events.
    fn until(&self) -> Wait {
        if self.connections.table.has_runnable() {
            return Wait::Not;
        }
        let host = self.host();
        let drained = host
            .draining
            .map(|since| since.plus(host.limits.drain_timeout));
        let earliest = self.connections.table.timers.earliest();
        let moments = [drained, self.accepts_at, earliest];
        let first = moments.into_iter().flatten().min();
        first.map_or(Wait::Forever, Wait::Until)
    }

    /// Accepts the connections that the kernel has completed, closes the listener, and lets idle
    /// connections time out.
    fn begin_to_drain(&mut self) {
        let now = Boottime::now();
        self.connections.host.draining = Some(now);
        self.accepts_at = None;
        for _ in 0..LAST_ACCEPTS {
            if !self.accept_one().is_ok_and(|accepted| accepted) {
                break;
            }
        }
        self.listener = None;
        let until = self.host().idle_until(now);
        self.connections.table.drain(until);
    }

    #[inline]
    fn check_shutdown(&mut self) {
        if self.host().draining.is_none() && self.host().group.is_shutdown() {
            self.begin_to_drain();
        }
    }

    fn is_drained(&self) -> bool {
        self.host().draining.is_some_and(|since| {
            let until = since.plus(self.host().limits.drain_timeout);
            self.connections.table.open.get() == 0 || until <= Boottime::now()
        })
    }
}
