//! A worker: one thread, one event loop, one listener. A connection stays on the worker that
//! accepted it.

mod accept;
mod handshakes;

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use base_clock::Boottime;
use rustls::ServerConfig;
use socket2::SockRef;

use crate::budget::ClientNetwork;
use crate::conn::{Connection, NextAction, Pool, ReadBatch, ResponseCache, Stage, WriteBatch};
use crate::date::Tails;
use crate::event::{Mailbox, Poller, Ready, Slab, StreamToken, Timers, Token, Wait};
use crate::h2::{SharedBuffers, encode_fields};
use crate::limits::{
    BUSY_OUTPUT, CONTINUED, CONTINUED_FOR_EACH, EVENTS_PER_HANDSHAKE, FEW_CONNECTIONS,
    LAST_ACCEPTS, Limits, OUTPUT, READ_BUFFER,
};
use crate::request_budgets::RequestBudgets;
use crate::response::Service;
use crate::worker_group::{Counters, OpenConnection, WorkerGroup};
use accept::Refusals;
use handshakes::Handshakes;

const LISTENER: Token = Token::reserved(0);
const BELL: Token = Token::reserved(1);

/// The state of one worker. Other threads see only the counters and the mailbox.
pub(crate) struct Worker<S: Service> {
    pub(crate) service: S,
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tails: Tails,
    pub(crate) pool: Pool,
    pub(crate) connections: Slab<Connection>,
    pub(crate) timers: Timers,
    pub(crate) read_batch: ReadBatch,
    pub(crate) write_batch: WriteBatch,
    /// Connections that continue without an event, after the others had their turn.
    pub(crate) runnable: VecDeque<Token>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) response_cache: ResponseCache,
    pub(crate) http2_buffers: SharedBuffers,
    /// Connections whose handshakes continue after all others had their turn, one in each.
    handshakes: Handshakes,
    /// Bytes of HTTP/2 as they are received and sent, of one connection at a time.
    pub(crate) http2_input: Vec<u8>,
    pub(crate) http2_output: Vec<u8>,
    pub(crate) budgets: RequestBudgets,
    /// Output of a connection beyond which others have their turn.
    pub(crate) most_output: usize,
    /// When the shutdown of the worker began.
    pub(crate) draining: Option<Boottime>,
    listener: Option<TcpListener>,
    /// None: the connections speak HTTP without TLS.
    tls: Option<Arc<ServerConfig>>,
    /// When to accept again after that failed.
    accepts_at: Option<Boottime>,
    poller: Poller,
    group: Arc<WorkerGroup>,
    open: Rc<Cell<usize>>,
    lingering: Rc<Cell<usize>>,
    refusals: Refusals,
}

/// A listening socket (see [`listen`](crate::listen)), and what its connections speak.
#[derive(Debug)]
pub struct Listener {
    /// Where connections arrive.
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

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    /// None if the connection is over the limit, and is only answered with 503.
    _open: Option<OpenConnection>,
    count: Rc<Cell<usize>>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
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
    // Accepted sockets inherit it on Linux.
    SockRef::from(&listener).set_tcp_nodelay(true)?;
    listener.set_nonblocking(true)?;
    let (mailbox, poller) = (Mailbox::new()?, Poller::new()?);
    poller.watch_input(mailbox.bell(), BELL, true)?;
    poller.watch_input(&listener, LISTENER, false)?;
    let counters = group.register(&mailbox);
    let refusals = Refusals::with_reserve(&mailbox);
    let budgets = RequestBudgets::new(&limits);
    let worker = Worker {
        service,
        limits,
        counters,
        tails: Tails::new(fields, encode_fields),
        pool: Pool::new(tls.is_some()),
        connections: Slab::default(),
        timers: Timers::new(Boottime::now()),
        read_batch: ReadBatch::default(),
        write_batch: WriteBatch::default(),
        runnable: VecDeque::new(),
        handshakes: Handshakes::default(),
        mailbox,
        response_cache: ResponseCache::default(),
        http2_buffers: SharedBuffers::default(),
        http2_input: vec![0; READ_BUFFER],
        http2_output: Vec::new(),
        budgets,
        most_output: OUTPUT,
        draining: None,
        listener: Some(listener),
        tls,
        accepts_at: None,
        poller,
        group,
        open: Rc::default(),
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
            // The turn is over: responses that are ready wait no longer.
            self.send_batch();
            self.check_shutdown();
            if self.is_drained() {
                self.close_all();
                return Ok(());
            }
            let was_awake = self.poller.wait(self.until(), may_spin)?;
            self.counters.waits_awake.add(u64::from(was_awake));
            // Requests that arrived after a shutdown get the responses of a shutdown.
            self.check_shutdown();
            let is_busy = self.poller.len() > FEW_CONNECTIONS;
            self.most_output = if is_busy { BUSY_OUTPUT } else { OUTPUT };
            let mut asked = 0;
            for at in 0..self.poller.len() {
                match self.poller.event(at) {
                    Some((LISTENER, _)) => self.accept(),
                    Some((BELL, _)) | None => {}
                    Some((token, news)) => {
                        asked += 1;
                        self.handle_event(token, news);
                    }
                }
            }
            self.answer_batch();
            self.mailbox.collect(&mut woken);
            let has_woken = !woken.is_empty();
            self.continue_woken(&mut woken);
            if !self.runnable.is_empty() {
                self.continue_runnable(asked);
            }
            if !self.handshakes.is_empty() {
                self.continue_handshakes(asked);
            }
            self.expire_deadlines(Boottime::now(), &mut due);
            // A thread that makes responses may need this core.
            let is_elsewhere = has_woken || self.mailbox.is_expecting();
            may_spin = self.limits.spins && !is_elsewhere && self.write_batch.has_answered(asked);
            self.write_batch.end_turn();
        }
    }

    /// How long to wait for events.
    fn until(&self) -> Wait {
        if !self.runnable.is_empty() || !self.handshakes.is_empty() {
            return Wait::Not;
        }
        let drained = self
            .draining
            .map(|since| since.plus(self.limits.drain_timeout));
        let moments = [drained, self.accepts_at, self.timers.earliest()];
        let first = moments.into_iter().flatten().min();
        first.map_or(Wait::Forever, Wait::Until)
    }

    /// Handles an event of a connection's socket.
    fn handle_event(&mut self, token: Token, news: Ready) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.ready.add(news);
        if connection.stage == Stage::Idle && connection.ready.read && !connection.is_queued {
            return self.read_first(token);
        }
        // When the client answers this side's part of a handshake, the costly work is done.
        if connection.stage == Stage::Handshake && !connection.take_answered() {
            if !std::mem::replace(&mut connection.is_queued, true) {
                let peer = connection.peer;
                self.queue_handshake(peer, token);
            }
            return;
        }
        // The others continue anyway: when their response is ready, and when their turn begins.
        if !waits_for_server(connection.stage) && !connection.is_queued {
            // The connection may take long, and the requests of the batch arrived first.
            self.answer_batch();
            self.advance(token, |worker, connection| Some(worker.drive(connection)));
        }
    }

    /// Continues connections that need no event. Those that become runnable meanwhile continue in
    /// the next turn, and so do the last when the first took long: connections that have news do
    /// not wait for all of them.
    #[cold]
    #[inline(never)]
    fn continue_runnable(&mut self, asked: usize) {
        let share = CONTINUED + CONTINUED_FOR_EACH * u32::try_from(asked).unwrap_or(u32::MAX);
        let mut since = None;
        for _ in 0..self.runnable.len() {
            // Responses that are ready do not wait for what may be much.
            self.send_batch();
            let now = Boottime::now();
            if now.since(*since.get_or_insert(now)) >= share {
                break;
            }
            if let Some(token) = self.runnable.pop_front() {
                self.continue_queued(token);
            }
        }
    }

    /// Continues one handshake, and more after many events: each costs as much as fifty requests.
    #[cold]
    #[inline(never)]
    fn continue_handshakes(&mut self, asked: usize) {
        let mut left = 1 + asked / EVENTS_PER_HANDSHAKE;
        while left > 0
            && let Some(token) = self.handshakes.pop()
        {
            // It may have timed out in the queue.
            if self.connections.get_mut(token).is_some() {
                self.send_batch();
                self.continue_queued(token);
                left -= 1;
            }
        }
    }

    fn continue_queued(&mut self, token: Token) {
        if let Some(connection) = self.connections.get_mut(token) {
            connection.is_queued = false;
        }
        self.advance(token, |worker, connection| Some(worker.drive(connection)));
    }

    /// Continues what was woken. A connection of HTTP/2 has one turn for all of its streams.
    fn continue_woken(&mut self, woken: &mut Vec<StreamToken>) {
        for StreamToken { connection, stream } in woken.iter() {
            if let Some(connection) = self.connections.get_mut(*connection) {
                connection.wake(*stream);
            }
        }
        for stream in woken.drain(..) {
            self.advance(stream.connection, |worker, connection| {
                Some(match connection.may_continue() {
                    true => worker.drive(connection),
                    false => NextAction::Wait,
                })
            });
        }
    }

    /// Handles the connections whose deadlines have passed.
    fn expire_deadlines(&mut self, now: Boottime, due: &mut Vec<u32>) {
        self.timers.due(now, due);
        for index in due.drain(..) {
            let Some(connection) = self.connections.at(index) else {
                continue;
            };
            connection.timer_at = Boottime::NEVER;
            let (token, is_late) = (connection.token, connection.deadline <= now);
            self.advance(token, |worker, connection| {
                if is_late {
                    worker.time_out(connection)
                } else {
                    Some(NextAction::Wait)
                }
            });
        }
        if self.accepts_at.is_some_and(|at| at <= now) {
            self.accept_again();
        }
    }

    /// Runs `act` on a connection, then the action that it returns. A panic ends only that
    /// connection.
    pub(crate) fn advance(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Self, &mut Connection) -> Option<NextAction>,
    ) {
        let acted = catch_unwind(AssertUnwindSafe(|| {
            let Some(mut connection) = self.connections.take(token) else {
                return;
            };
            let step = act(self, &mut connection).unwrap_or(NextAction::Close);
            if step == NextAction::Close {
                return self.end(&mut connection);
            }
            if step != NextAction::Wait {
                connection.deadline = Boottime::NEVER;
            }
            self.schedule_deadline(&mut connection);
            if step == NextAction::Yield {
                self.queue_runnable(&mut connection);
            }
            self.connections.put(token, connection);
            if self.write_batch.is_full() {
                self.send_batch();
            }
        }));
        if acted.is_err() {
            self.recover(token);
        }
    }

    /// Lets a connection continue after the others had their turn.
    pub(crate) fn queue_runnable(&mut self, connection: &mut Connection) {
        if std::mem::replace(&mut connection.is_queued, true) {
            return;
        }
        match connection.stage {
            Stage::Handshake => self.queue_handshake(connection.peer, connection.token),
            _ => self.runnable.push_back(connection.token),
        }
    }

    #[inline(never)]
    fn queue_handshake(&mut self, peer: SocketAddr, token: Token) {
        let connections = &mut self.connections;
        self.handshakes.forget_ended(self.open.get(), |token| {
            connections.get_mut(token).is_some()
        });
        self.handshakes.push(ClientNetwork::of(peer.ip()), token);
    }

    /// Schedules the timer for the deadline.
    pub(crate) fn schedule_deadline(&mut self, connection: &mut Connection) {
        if connection.deadline < connection.timer_at {
            connection.timer_at = connection.deadline;
            self.timers
                .schedule(connection.token.index(), connection.deadline);
        }
    }

    /// After a panic: its connection is lost, and so are those whose responses were being sent.
    fn recover(&mut self, token: Token) {
        self.counters.panics.add(1);
        self.write_batch.clear();
        let posted = self.connections.iter_mut();
        let posted = posted.filter(|connection| connection.stage == Stage::Batched);
        let mut lost: Vec<Token> = posted.map(|connection| connection.token).collect();
        lost.push(token);
        for &token in &lost {
            self.timers.forget(token.index());
            self.connections.release(token);
        }
        // The lost connections have not returned their share.
        for token in lost {
            self.budgets.release_connection(token);
        }
    }

    /// Accepts the connections that the kernel has completed, closes the listener, and lets idle
    /// connections time out.
    fn begin_to_drain(&mut self) {
        let now = Boottime::now();
        self.draining = Some(now);
        self.accepts_at = None;
        for _ in 0..LAST_ACCEPTS {
            if !self.accept_one().is_ok_and(|accepted| accepted) {
                break;
            }
        }
        self.listener = None;
        let until = self.idle_until(now);
        let sessions = self.connections.iter_mut();
        let sessions = sessions.filter(|connection| connection.stage == Stage::Http2);
        for connection in sessions {
            if !connection.is_queued {
                connection.is_queued = true;
                self.runnable.push_back(connection.token);
            }
        }
        for connection in self.connections.iter_mut() {
            if matches!(connection.stage, Stage::Handshake | Stage::Idle) {
                connection.deadline = connection.deadline.min(until);
                connection.timer_at = connection.timer_at.min(until);
                self.timers.schedule(connection.token.index(), until);
            }
        }
    }

    /// Closes the connections that are not done in time.
    fn close_all(&mut self) {
        let all = self.connections.iter_mut();
        let all: Vec<Token> = all.map(|connection| connection.token).collect();
        for token in all {
            self.advance(token, |_, _| None);
        }
    }

    fn check_shutdown(&mut self) {
        if self.draining.is_none() && self.group.is_shutdown() {
            self.begin_to_drain();
        }
    }

    fn is_drained(&self) -> bool {
        self.draining.is_some_and(|since| {
            self.open.get() == 0 || since.plus(self.limits.drain_timeout) <= Boottime::now()
        })
    }

    /// Calls a notification of the service; a panic there must not affect other connections.
    pub(crate) fn notify(&self, notification: impl FnOnce(&S)) {
        if catch_unwind(AssertUnwindSafe(|| notification(&self.service))).is_err() {
            self.counters.panics.add(1);
        }
    }
}

/// Whether an event of the socket changes nothing at this stage.
fn waits_for_server(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Answering | Stage::Storing | Stage::Streaming | Stage::Batched
    )
}
