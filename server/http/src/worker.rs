//! A worker: one thread, one event loop, one listener. A connection stays on the worker that accepted it.

mod accept;

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use base_clock::Boottime;
use socket2::SockRef;

use crate::conn::{Connection, Intake, Outbox, Pool, ResponseCache, Stage, Step};
use crate::date::Tails;
use crate::event::{Mailbox, Poller, Ready, Slab, Timers, Token, Wait};
use crate::limits::{LAST_ACCEPTS, Limits};
use crate::response::Service;
use crate::shared::{Counters, Place, Shared};

const LISTENER: Token = Token::reserved(0);
const BELL: Token = Token::reserved(1);

/// All that one worker has. Nothing of it is seen by another thread but the counters and the mailbox.
pub(crate) struct Worker<S: Service> {
    pub(crate) service: S,
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tails: Tails,
    pub(crate) pool: Pool,
    pub(crate) connections: Slab<Connection>,
    pub(crate) timers: Timers,
    pub(crate) intake: Intake,
    pub(crate) outbox: Outbox,
    /// Connections that can go on without news, after others have had their turn.
    pub(crate) runnable: VecDeque<Token>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) response_cache: ResponseCache,
    /// Bytes of the request bodies that are being received, or wait for their answers.
    pub(crate) bodies: usize,
    /// Since when the worker is finishing.
    pub(crate) draining: Option<Boottime>,
    listener: Option<TcpListener>,
    /// When to accept again after that failed.
    accepts_at: Option<Boottime>,
    poller: Poller,
    shared: Arc<Shared>,
    open: Rc<Cell<usize>>,
    lingering: Rc<Cell<usize>>,
}

/// A connection's entry in the books; however it ends, dropping this closes it.
#[derive(Debug)]
pub(crate) struct Seat {
    /// None if there was no place, and it is only told so.
    _place: Option<Place>,
    count: Rc<Cell<usize>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

/// Serves `listener` (see [`listen`](crate::listen)) on this thread until [`Shared::shutdown`], then finishes the
/// requests in flight, for at most [`Limits::drain_timeout`].
///
/// # Errors
/// If the event loop cannot be made, or fails: no file descriptors, or a listener that is not a socket.
pub fn run_worker<S: Service>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    shared: Arc<Shared>,
) -> io::Result<()> {
    // Accepted sockets inherit it on Linux.
    SockRef::from(&listener).set_tcp_nodelay(true)?;
    listener.set_nonblocking(true)?;
    let (mailbox, poller) = (Mailbox::new()?, Poller::new()?);
    poller.watch_input(mailbox.bell(), BELL, true)?;
    poller.watch_input(&listener, LISTENER, false)?;
    let counters = shared.register(&mailbox);
    let worker = Worker {
        service,
        limits,
        counters,
        tails: Tails::default(),
        pool: Pool::default(),
        connections: Slab::default(),
        timers: Timers::new(Boottime::now()),
        intake: Intake::default(),
        outbox: Outbox::default(),
        runnable: VecDeque::new(),
        mailbox,
        response_cache: ResponseCache::new(RandomState::new().hash_one(())),
        bodies: 0,
        draining: None,
        listener: Some(listener),
        accepts_at: None,
        poller,
        shared,
        open: Rc::default(),
        lingering: Rc::default(),
    };
    worker.run()
}

impl<S: Service> Worker<S> {
    fn run(mut self) -> io::Result<()> {
        let (mut mail, mut due) = (Vec::new(), Vec::new());
        // Whether each who has asked has his answer, and they are few.
        let mut is_soon = false;
        loop {
            // The turn is over: nothing that is ready waits longer.
            self.send_posts();
            self.heed_shutdown();
            if self.is_drained() {
                self.end_all();
                return Ok(());
            }
            let was_awake = self.poller.wait(self.until(), is_soon)?;
            self.counters.waits_awake.add(u64::from(was_awake));
            // What came after a shutdown is answered as such.
            self.heed_shutdown();
            let mut asked = 0;
            for at in 0..self.poller.len() {
                match self.poller.event(at) {
                    Some((LISTENER, _)) => self.accept(),
                    Some((BELL, _)) | None => {}
                    Some((token, news)) => {
                        asked += 1;
                        self.hear(token, news);
                    }
                }
            }
            self.answer_intake();
            self.mailbox.collect(&mut mail);
            let has_mail = !mail.is_empty();
            for token in mail.drain(..) {
                self.advance(token, Self::go_on_if_answering);
            }
            // Those who become runnable in this turn have theirs in the next.
            for _ in 0..self.runnable.len() {
                if let Some(token) = self.runnable.pop_front() {
                    if let Some(connection) = self.connections.get_mut(token) {
                        connection.is_queued = false;
                    }
                    self.advance(token, |worker, connection| Some(worker.go_on(connection)));
                }
            }
            self.look_around(Boottime::now(), &mut due);
            // Whoever makes answers elsewhere may want this core.
            let is_elsewhere = has_mail || self.mailbox.is_expecting();
            is_soon = self.limits.spins && !is_elsewhere && self.outbox.has_answered(asked);
            self.outbox.end_turn();
        }
    }

    /// How long to wait for news.
    fn until(&self) -> Wait {
        if !self.runnable.is_empty() {
            return Wait::Not;
        }
        let drained = self
            .draining
            .map(|since| since.plus(self.limits.drain_timeout));
        let moments = [drained, self.accepts_at, self.timers.earliest()];
        let first = moments.into_iter().flatten().min();
        first.map_or(Wait::Forever, Wait::Until)
    }

    /// There is news of a connection's socket.
    fn hear(&mut self, token: Token, news: Ready) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.ready.add(news);
        if connection.stage == Stage::Idle && connection.ready.read && !connection.is_queued {
            return self.take_in(token);
        }
        // These are looked at anyway: when the server has done its part, and when it is their turn.
        if !matches!(connection.stage, Stage::Answering | Stage::Posted) && !connection.is_queued {
            // What it does may take long, and those who were read were first.
            self.answer_intake();
            self.advance(token, |worker, connection| Some(worker.go_on(connection)));
        }
    }

    fn go_on_if_answering(&mut self, connection: &mut Connection) -> Option<Step> {
        // A future may wake more often than it is waited for.
        Some(match connection.stage {
            Stage::Answering => self.go_on(connection),
            _ => Step::Wait,
        })
    }

    /// Looks at the connections whose deadlines may have passed.
    fn look_around(&mut self, now: Boottime, due: &mut Vec<u32>) {
        self.timers.due(now, due);
        for index in due.drain(..) {
            let Some(connection) = self.connections.at(index) else {
                continue;
            };
            connection.looked_at = Boottime::NEVER;
            let (token, is_late) = (connection.token, connection.deadline <= now);
            self.advance(token, |worker, connection| {
                if is_late {
                    worker.time_out(connection)
                } else {
                    Some(Step::Wait)
                }
            });
        }
        if self.accepts_at.is_some_and(|at| at <= now) {
            self.accept_again();
        }
    }

    /// Lets a connection do something, and then what that asks for; if it panics, only that connection ends.
    pub(crate) fn advance(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Self, &mut Connection) -> Option<Step>,
    ) {
        let acted = catch_unwind(AssertUnwindSafe(|| {
            let Some(mut connection) = self.connections.take(token) else {
                return;
            };
            let step = act(self, &mut connection).unwrap_or(Step::End);
            if step == Step::End {
                return self.end(&mut connection);
            }
            if step != Step::Wait {
                connection.deadline = Boottime::NEVER;
            }
            self.look_later(&mut connection);
            if step == Step::Yield {
                self.queue_up(&mut connection);
            }
            self.connections.put(token, connection);
            if self.outbox.is_full() {
                self.send_posts();
            }
        }));
        if acted.is_err() {
            self.recover(token);
        }
    }

    /// Lets a connection go on after others have had their turn.
    pub(crate) fn queue_up(&mut self, connection: &mut Connection) {
        if !connection.is_queued {
            connection.is_queued = true;
            self.runnable.push_back(connection.token);
        }
    }

    /// Has the deadline looked at in time.
    pub(crate) fn look_later(&mut self, connection: &mut Connection) {
        if connection.deadline < connection.looked_at {
            connection.looked_at = connection.deadline;
            self.timers
                .look_at(connection.token.index(), connection.deadline);
        }
    }

    /// After a panic: the connection it was about is gone, and so are those whose responses were being sent.
    fn recover(&mut self, token: Token) {
        self.counters.panics.add(1);
        self.outbox.clear();
        let posted = self.connections.iter_mut();
        let posted = posted.filter(|connection| connection.stage == Stage::Posted);
        let mut lost: Vec<Token> = posted.map(|connection| connection.token).collect();
        lost.push(token);
        for token in lost {
            self.timers.forget(token.index());
            self.connections.release(token);
        }
        // Nobody has given back what theirs were counted as.
        let bodies = self.connections.iter_mut().map(|it| it.counted());
        self.bodies = bodies.sum();
    }

    /// Takes in what the kernel has already accepted, closes the listener, and lets idle connections go.
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
        for connection in self.connections.iter_mut() {
            if connection.stage == Stage::Idle {
                connection.deadline = connection.deadline.min(until);
                connection.looked_at = connection.looked_at.min(until);
                self.timers.look_at(connection.token.index(), until);
            }
        }
    }

    /// Cuts off whoever is not done in time.
    fn end_all(&mut self) {
        let all = self.connections.iter_mut();
        let all: Vec<Token> = all.map(|connection| connection.token).collect();
        for token in all {
            self.advance(token, |_, _| None);
        }
    }

    fn heed_shutdown(&mut self) {
        if self.draining.is_none() && self.shared.is_shutdown() {
            self.begin_to_drain();
        }
    }

    fn is_drained(&self) -> bool {
        self.draining.is_some_and(|since| {
            self.open.get() == 0 || since.plus(self.limits.drain_timeout) <= Boottime::now()
        })
    }

    /// Tells the service of something; that it panics over it must not concern anyone else.
    pub(crate) fn tell(&self, what: impl FnOnce(&S)) {
        if catch_unwind(AssertUnwindSafe(|| what(&self.service))).is_err() {
            self.counters.panics.add(1);
        }
    }
}
