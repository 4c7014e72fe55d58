//! Bodies that a handler reads while they arrive.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use millpond_http::{BodyReceiver, OwnedRequest, Reply};
use parking_lot::{Condvar, Mutex};

use crate::failure::Failure;
use crate::handler::ReadingJob;
use crate::limits::{BODY_AHEAD, BODY_BEGIN};
use crate::request::Request;
use crate::response::Response;
use crate::service::{Shared, too_large};
use crate::slot::{SlotReceiver, SlotSender, slot};

/// Bytes that have arrived and were not read.
#[derive(Default)]
struct BodyPipe {
    state: Mutex<BodyPipeState>,
    news: Condvar,
}

#[derive(Default)]
struct BodyPipeState {
    pieces: VecDeque<Bytes>,
    len: usize,
    /// True if the body is complete, or the client is gone.
    end: Option<bool>,
    is_reader_gone: bool,
    waker: Option<Waker>,
}

/// Reads the body of a request while it arrives. Dropping it drops the rest of the body.
///
/// An error means that the client went away, was too slow, or sent what is no body: what the
/// handler returns then is not sent.
pub struct BodyReader {
    pipe: Arc<BodyPipe>,
    present: Bytes,
}

impl BodyReader {
    pub(crate) fn whole(body: Bytes) -> Self {
        let pipe = Arc::<BodyPipe>::default();
        pipe.state.lock().end = Some(true);
        Self {
            pipe,
            present: body,
        }
    }
}

impl BufRead for BodyReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.present.is_empty() {
            let mut state = self.pipe.state.lock();
            let waker = loop {
                if let Some(piece) = state.pieces.pop_front() {
                    state.len -= piece.len();
                    self.present = piece;
                    break state.waker.take();
                }
                match state.end {
                    Some(true) => return Ok(&[]),
                    Some(false) => {
                        let kind = io::ErrorKind::ConnectionAborted;
                        return Err(io::Error::new(kind, "the body did not arrive"));
                    }
                    None => self.pipe.news.wait(&mut state),
                }
            };
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Ok(&self.present)
    }

    fn consume(&mut self, len: usize) {
        self.present = self.present.slice(len..);
    }
}

impl Read for BodyReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.is_reader_gone = true;
        state.pieces.clear();
        state.len = 0;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl std::fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyReader").finish_non_exhaustive()
    }
}

/// A handler that has not begun.
struct WaitingReader {
    job: ReadingJob,
    body: BodyReader,
    answer: SlotSender<Response>,
}

/// The connection's end of a body.
pub(crate) struct ArrivingBody {
    shared: Arc<Shared>,
    request: Arc<OwnedRequest>,
    pipe: Arc<BodyPipe>,
    limit: u64,
    arrived: u64,
    waiting: Option<WaitingReader>,
    answer: Option<SlotReceiver<Response>>,
}

impl ArrivingBody {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        request: OwnedRequest,
        job: ReadingJob,
        limit: u64,
    ) -> Self {
        let pipe = Arc::<BodyPipe>::default();
        let (answer, receiver) = slot();
        let body = BodyReader {
            pipe: Arc::clone(&pipe),
            present: Bytes::new(),
        };
        Self {
            shared: Arc::clone(shared),
            request: Arc::new(request),
            pipe,
            limit,
            arrived: 0,
            waiting: Some(WaitingReader { job, body, answer }),
            answer: Some(receiver),
        }
    }

    /// Begins the handler. While the body is not complete, the handler waits for the client, and
    /// few may.
    fn begin(&mut self, is_complete: bool) -> Result<(), Failure> {
        let Some(waiting) = self.waiting.take() else {
            return Ok(());
        };
        let permit = match is_complete {
            true => None,
            false => Some(
                self.shared
                    .pool
                    .hold_for_client()
                    .ok_or_else(Failure::busy)?,
            ),
        };
        let request = Arc::clone(&self.request);
        let job = move || {
            let _permit = permit;
            let (http, accept_read) = (request.as_request(), AtomicBool::new(false));
            let answer = (waiting.job)(&Request::new(&http, &accept_read), waiting.body);
            waiting.answer.send(answer);
        };
        let submitted = self.shared.pool.submit(Box::new(job));
        submitted.map_err(|_| Failure::busy())
    }

    fn render(&self, response: Response) -> millpond_http::Response {
        self.shared.render(response, &self.request.as_request())
    }
}

impl BodyReceiver for ArrivingBody {
    /// The limit of the route is checked here, so that its answer is as the program wants it.
    fn limit(&self) -> u64 {
        u64::MAX
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.pipe.state.lock();
        if state.len < BODY_AHEAD || state.is_reader_gone {
            return Poll::Ready(());
        }
        let before = state.waker.replace(context.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), millpond_http::Response> {
        self.arrived += piece.len() as u64;
        if self.arrived > self.limit {
            return Err(self.render(Response::failed(too_large(self.limit))));
        }
        let mut state = self.pipe.state.lock();
        if state.is_reader_gone {
            drop(state);
            return self.answer_early();
        }
        state.pieces.push_back(Bytes::copy_from_slice(piece));
        state.len += piece.len();
        let is_enough = state.len >= BODY_BEGIN;
        drop(state);
        self.pipe.news.notify_one();
        if is_enough && let Err(failure) = self.begin(false) {
            return Err(self.render(Response::failed(failure)));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &millpond_http::Request<'_>) -> Reply {
        self.pipe.state.lock().end = Some(true);
        self.pipe.news.notify_one();
        if let Err(failure) = self.begin(true) {
            return self.render(Response::failed(failure)).into();
        }
        let Some(answer) = self.answer.take() else {
            return self.shared.render_panic(&self.request.as_request()).into();
        };
        let (shared, request) = (Arc::clone(&self.shared), Arc::clone(&self.request));
        Reply::later(async move {
            let request = request.as_request();
            match answer.await {
                Some(response) => shared.render(response, &request),
                None => shared.render_panic(&request),
            }
        })
    }
}

impl ArrivingBody {
    /// The handler reads no more: its answer, if it is there; until then the body is dropped.
    fn answer_early(&mut self) -> Result<(), millpond_http::Response> {
        let Some(answer) = &self.answer else {
            return Ok(());
        };
        match answer.poll_value(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(()),
            Poll::Ready(Some(response)) => Err(self.render(response)),
            Poll::Ready(None) => Err(self.shared.render_panic(&self.request.as_request())),
        }
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        // After `finish` the body is complete.
        state.end.get_or_insert(false);
        drop(state);
        self.pipe.news.notify_one();
    }
}
