//! A connection: one task that reads, asks the service and writes, in order (RFC 9112 section 9).
//!
//! It alternates between two states. *Idle* it holds no buffer: task, timer and tokio's part of the socket take about
//! 2 KiB of the process's memory. In an *exchange* it has borrowed buffers from the worker: all requests that have arrived are decoded and
//! answered, their responses written at once, and only then are more bytes read. So back-pressure needs no rule of its
//! own: a client that does not read its responses is not read from.

mod deadline;
mod exchange;
mod io;
mod line;
mod outbox;
mod output;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use millpond_store::clock::Boottime;
use tokio::net::TcpStream;

use crate::date::Persistence;
use crate::h1::{Event, Head, Phase, Refusal};
use crate::limits::{OUTPUT, TURN};
use crate::request::Version;
use crate::response::{Reply, Response, Service};
use crate::worker::Worker;
use deadline::Progress;
use exchange::Exchange;
pub(crate) use exchange::Pool;
use io::{Ended, Io, Woken};
pub(crate) use outbox::{AtSleep, Outbox, before_sleep};

/// Serves one connection until it ends.
pub(crate) async fn serve<S: Service>(stream: TcpStream, peer: SocketAddr, worker: Rc<Worker<S>>) {
    let now = Boottime::now();
    let mut connection = Connection {
        io: Io::new(stream, peer, worker, now),
        now,
        head_since: now,
        body: None,
        answered: 0,
    };
    loop {
        let idle_until = connection.now.plus(connection.worker().limits.idle_timeout);
        let mut exchange = match connection.io.first_bytes(idle_until).await {
            Ok(Woken::Bytes(exchange)) => exchange,
            Ok(Woken::Returned(exchange)) => {
                if connection.complete(exchange).await.is_err() {
                    return;
                }
                continue;
            }
            Err(ended) => {
                if ended == Ended::TimedOut && connection.worker().draining.get().is_none() {
                    connection.worker().counters.idle_timeouts.add(1);
                }
                // A client that has said its last word may still be reading; one that is gone makes this fail at once.
                let _ = connection.clear_the_way().await;
                return;
            }
        };
        if connection.clear_the_way().await.is_err() {
            return;
        }
        connection.bytes_came();
        let next = connection.converse(&mut exchange).await;
        if matches!(next, Ok(Next::Post)) {
            connection.post(exchange);
            continue;
        }
        // Whatever happened, each request that was answered is told of.
        connection.finish(&mut exchange);
        match next {
            Ok(Next::Idle | Next::Post) => connection.worker().pool.put(exchange),
            Ok(Next::Linger) => return connection.io.linger(exchange.decoder.scratch()).await,
            Ok(Next::Close) | Err(_) => return,
        }
    }
}

/// What follows an exchange.
#[derive(Debug)]
enum Next {
    Idle,
    /// As idle, once the responses that are ready have been sent.
    Post,
    /// The client may still be sending.
    Linger,
    Close,
}

struct Connection<S: Service> {
    io: Io<S>,
    /// The newest moment known: of the last read, or after the last wait. Saves readings of the clock.
    now: Boottime,
    head_since: Boottime,
    body: Option<Progress>,
    /// Requests answered in this turn.
    answered: usize,
}

impl<S: Service> Connection<S> {
    fn worker(&self) -> &Worker<S> {
        &self.io.worker
    }

    fn bytes_came(&mut self) {
        self.now = Boottime::now();
        self.head_since = self.now;
    }

    /// Answers what has arrived and what comes to complete it, until nothing of a further request is there.
    async fn converse(&mut self, exchange: &mut Exchange) -> Result<Next, Ended> {
        loop {
            match exchange.decoder.next(&self.io.worker.limits) {
                Event::Request(head, body) => {
                    self.body = None;
                    if self.answer(exchange, head, body).await? {
                        self.io.write_all(exchange).await?;
                        // A client that asked for the end is not sending; any other may be.
                        let expected = !head.keep_alive && exchange.decoder.phase() == Phase::Idle;
                        return Ok(if expected { Next::Close } else { Next::Linger });
                    }
                    if exchange.output.waiting() > OUTPUT || exchange.output.ends_with_file() {
                        self.flush(exchange).await?;
                    }
                }
                Event::More if self.may_post(exchange) => return Ok(Next::Post),
                event @ (Event::More | Event::Continue) => {
                    if matches!(event, Event::Continue) {
                        exchange.output.push_continue();
                    }
                    self.flush(exchange).await?;
                    exchange.decoder.reclaim();
                    self.take_turns().await;
                    if exchange.decoder.phase() == Phase::Idle {
                        return Ok(Next::Idle);
                    }
                    if self.read_on(exchange).await? {
                        continue;
                    }
                    return self.refuse(exchange, Refusal::TooSlow).await;
                }
                Event::Refused(refusal) => return self.refuse(exchange, refusal).await,
            }
        }
    }

    /// Whether what is ready may wait for the responses of other connections: the client waits for it and for nothing else.
    fn may_post(&self, exchange: &Exchange) -> bool {
        exchange.decoder.phase() == Phase::Idle
            && !exchange.output.is_empty()
            && !exchange.output.ends_with_file()
            && self.answered <= TURN
    }

    fn post(&mut self, exchange: Box<Exchange>) {
        self.answered = 0;
        self.io.line.post(exchange, self.now);
        if self.worker().outbox.add(Rc::clone(&self.io.line)) {
            self.worker().send_posts();
        }
    }

    /// Sends what was posted before.
    async fn clear_the_way(&mut self) -> Result<(), Ended> {
        if self.io.line.is_posted() {
            self.worker().send_posts();
        }
        match self.io.line.returned() {
            Some(exchange) => self.complete(exchange).await,
            None => Ok(()),
        }
    }

    /// Sends what the socket did not take at once of what was posted.
    async fn complete(&mut self, mut exchange: Box<Exchange>) -> Result<(), Ended> {
        let written = self.flush(&mut exchange).await;
        self.finish(&mut exchange);
        exchange.decoder.reclaim();
        self.worker().pool.put(exchange);
        written
    }

    /// Lets other connections have their turn if this one had much: a pipeline never has to wait for bytes.
    async fn take_turns(&mut self) {
        if std::mem::take(&mut self.answered) > TURN {
            self.worker().send_posts();
            tokio::task::yield_now().await;
        }
    }

    /// Reads more of the request that has begun; false if it took too long.
    async fn read_on(&mut self, exchange: &mut Exchange) -> Result<bool, Ended> {
        self.worker().send_posts();
        let limits = &self.io.worker.limits;
        let is_body = exchange.decoder.phase() == Phase::Body;
        let until = if is_body {
            let progress = self.body.get_or_insert_with(|| Progress::new(self.now));
            progress.moved_to(exchange.decoder.body_len() as u64, self.now);
            progress.deadline(limits.progress_timeout)
        } else {
            self.head_since.plus(limits.head_timeout)
        };
        match self.io.more_bytes(exchange, until).await {
            Ok(()) => {
                self.now = Boottime::now();
                Ok(true)
            }
            Err(Ended::TimedOut) => {
                let counters = &self.io.worker.counters;
                if is_body {
                    counters.body_timeouts.add(1);
                } else {
                    counters.head_timeouts.add(1);
                }
                Ok(false)
            }
            Err(ended) => Err(ended),
        }
    }

    /// Asks the service and queues its response; true if the connection is to be closed after it.
    async fn answer(
        &mut self,
        exchange: &mut Exchange,
        head: Head,
        body: Bytes,
    ) -> Result<bool, Ended> {
        self.worker().counters.requests.add(1);
        self.answered += 1;
        let reply = {
            let request = exchange
                .decoder
                .request(&head, body, self.io.line.peer, self.now);
            let service = &self.io.worker.service;
            catch_unwind(AssertUnwindSafe(|| service.call(&request)))
        };
        let response = match reply {
            Ok(Reply::Ready(response)) => Some(response),
            Ok(Reply::Later(future)) => {
                // What is ready does not wait for what is not.
                self.flush(exchange).await?;
                let response = self.worker().unless_it_panics(future).await;
                self.now = Boottime::now();
                response
            }
            Err(_) => None,
        };
        let response = response.unwrap_or_else(|| {
            self.worker().counters.panics.add(1);
            Response::text(500, "internal server error\n").closing()
        });
        let close = response.close || !head.keep_alive || self.worker().draining.get().is_some();
        let persistence = match head.version {
            _ if close => Persistence::Close,
            Version::Http10 => Persistence::KeepAlive,
            Version::Http11 => Persistence::Default,
        };
        let tail = self.worker().tails.get(self.now, persistence);
        exchange.output.push(Some(head), response, tail);
        // The next head of a pipeline begins to count when its turn comes.
        self.head_since = self.now;
        Ok(close)
    }

    /// Writes all responses and tells the service of them.
    async fn flush(&mut self, exchange: &mut Exchange) -> Result<(), Ended> {
        if !exchange.output.is_empty() {
            if self.io.write_all(exchange).await? {
                // The time a client took to read is not time it was silent, nor time its next head took.
                self.now = Boottime::now();
                self.head_since = self.now;
            }
            self.finish(exchange);
        }
        Ok(())
    }

    /// Tells the service of the responses that are written, or never will be.
    fn finish(&self, exchange: &mut Exchange) {
        self.worker()
            .tell_done(exchange, self.io.line.peer, self.now);
    }

    /// Answers what is not a request and ends.
    async fn refuse(&mut self, exchange: &mut Exchange, refusal: Refusal) -> Result<Next, Ended> {
        let status = refusal.status();
        self.worker().counters.refused(status);
        let mut text = String::with_capacity(80);
        text.push_str(refusal.reason());
        text.push('\n');
        let tail = self.worker().tails.get(Boottime::now(), Persistence::Close);
        exchange
            .output
            .push(None, Response::text(status, &text).closing(), tail);
        let written = self.io.write_all(exchange).await;
        self.worker()
            .tell(|service| service.refused(self.io.line.peer, status));
        written.map(|_| Next::Linger)
    }
}

impl<S: Service> Worker<S> {
    /// Tells the service of the responses in `exchange` to `peer`, whose requests were read at `now`.
    fn tell_done(&self, exchange: &mut Exchange, peer: SocketAddr, now: Boottime) {
        let Exchange { decoder, output } = exchange;
        if self.service.wants_done() {
            output.each_request(|head, status, body_bytes| {
                let request = decoder.request(head, Bytes::new(), peer, now);
                self.tell(|service| service.done(&request, status, body_bytes));
            });
        }
        output.clear();
    }

    /// The output of `future`; none if it panics, which must not end the connection's task before the client has a 500.
    async fn unless_it_panics(
        &self,
        mut future: Pin<Box<dyn Future<Output = Response>>>,
    ) -> Option<Response> {
        poll_fn(|cx| {
            // It may take long, and what is ready does not wait for it.
            self.send_posts();
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(response)) => Poll::Ready(Some(response)),
                Err(_) => Poll::Ready(None),
            }
        })
        .await
    }
}
