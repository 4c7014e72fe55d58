//! Bodies that are made while they are sent.

mod quick;
mod row;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use millpond_http::{BodyCut, BodySource, StreamedBody};
use parking_lot::{Condvar, Mutex};

use row::{After, Pieces, ROW};
pub use row::{Piece, Shown};

use crate::limits::WRITER_AHEAD;
use crate::pool::{BlockingPool, PoolFull};
use crate::slot::{SlotReceiver, slot};

/// So long a thread makes pieces before they are sent.
const ROW_TIME: Duration = Duration::from_millis(5);

/// A body that is made while it is sent: as much as the client takes, and a little more. HTTP/1.1
/// sends it in chunks, HTTP/2 in frames. One of [`Stream::quick`] that ends within 16 KiB is an
/// ordinary body with its length.
///
/// If the client goes away, or the server ends, the iterator is dropped, and a writer gets
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe) at its next write.
///
/// ```
/// use millpond::{Request, Response, Routes, Stream, quick};
///
/// let mut routes = Routes::new();
/// routes.get("/numbers/{n}", quick(|_: &Request, n: u32| {
///     let lines = (0..n).map(|n| format!("{n}\n"));
///     Response::stream("text/plain", Stream::quick(lines))
/// }));
/// ```
pub struct Stream(StreamKind);

/// State of a stream when its response was begun.
pub(crate) enum BegunStream {
    /// It is short, and over.
    Whole(Bytes),
    Streamed(StreamedBody),
    /// It failed before anything was sent.
    Failed,
    /// There is no thread for it.
    Busy,
}

type WriteJob = Box<dyn FnOnce(&mut StreamWriter) -> io::Result<()> + Send>;

enum StreamKind {
    Quick(Box<dyn Pieces>),
    Blocking(Box<dyn Pieces>),
    Writer(WriteJob),
}

impl Stream {
    /// The pieces of an iterator that is **quick**: it is asked on the worker and must not block. A
    /// slow client holds no thread. Small pieces are sent together. An error within the first 16
    /// KiB is answered with 500.
    #[must_use]
    pub fn quick<P: Piece>(pieces: impl IntoIterator<Item = P, IntoIter: Send + 'static>) -> Self {
        Self(StreamKind::Quick(Box::new(pieces.into_iter())))
    }

    /// The pieces of an iterator that **may block**: it is asked on a thread of the pool, for as
    /// much as the client takes. A slow client holds no thread.
    #[must_use]
    pub fn blocking<P: Piece>(
        pieces: impl IntoIterator<Item = P, IntoIter: Send + 'static>,
    ) -> Self {
        Self(StreamKind::Blocking(Box::new(pieces.into_iter())))
    }

    /// Makes a body of the bytes that a function writes, on a thread of the pool. A write waits
    /// while the client is 64 KiB behind, so **a slow client holds a thread**: use an iterator
    /// where one can be had. At most half of the threads do this or [read bodies](crate::reading)
    /// at a time; beyond that 503.
    ///
    /// An error that it returns, or a panic, ends the response so that the client sees that it is
    /// not complete. The end needs no flush.
    #[must_use]
    pub fn writer(
        write: impl FnOnce(&mut StreamWriter) -> io::Result<()> + Send + 'static,
    ) -> Self {
        Self(StreamKind::Writer(Box::new(write)))
    }

    /// The body for the connection. A writer begins.
    pub(crate) fn begin(self, pool: &Arc<BlockingPool>) -> BegunStream {
        match self.0 {
            StreamKind::Quick(pieces) => quick::begin(pieces),
            StreamKind::Blocking(pieces) => {
                BegunStream::Streamed(StreamedBody::new(BlockingPieces {
                    pool: Arc::clone(pool),
                    state: BlockingState::Ready(pieces),
                }))
            }
            StreamKind::Writer(write) => match begin_writer(write, pool) {
                Ok(written) => BegunStream::Streamed(StreamedBody::new(written)),
                Err(PoolFull) => BegunStream::Busy,
            },
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// A row that a thread has made, and the iterator.
type MadeRow = (Bytes, After, Box<dyn Pieces>);

enum BlockingState {
    Ready(Box<dyn Pieces>),
    Asked(SlotReceiver<MadeRow>),
    Cut,
    Ended,
}

struct BlockingPieces {
    pool: Arc<BlockingPool>,
    state: BlockingState,
}

impl BlockingPieces {
    /// `None` if there is no thread for it.
    fn ask(&self, mut pieces: Box<dyn Pieces>) -> Option<BlockingState> {
        let (sender, receiver) = slot();
        let job = Box::new(move || {
            if !sender.is_unwanted() {
                let (row, after) = pieces.next_row(Some(ROW_TIME));
                sender.send((row, after, pieces));
            }
        });
        self.pool.submit_next(job).ok()?;
        Some(BlockingState::Asked(receiver))
    }
}

impl BodySource for BlockingPieces {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        loop {
            match std::mem::replace(&mut self.state, BlockingState::Ended) {
                BlockingState::Ended => return Poll::Ready(None),
                BlockingState::Cut => return Poll::Ready(Some(Err(BodyCut))),
                BlockingState::Ready(pieces) => match self.ask(pieces) {
                    Some(asked) => self.state = asked,
                    None => return Poll::Ready(Some(Err(BodyCut))),
                },
                BlockingState::Asked(receiver) => match receiver.poll_value(context) {
                    Poll::Pending => {
                        self.state = BlockingState::Asked(receiver);
                        return Poll::Pending;
                    }
                    // The iterator panicked, or the server ends.
                    Poll::Ready(None) => return Poll::Ready(Some(Err(BodyCut))),
                    Poll::Ready(Some((row, after, pieces))) => {
                        self.state = match after {
                            After::More => BlockingState::Ready(pieces),
                            After::End => BlockingState::Ended,
                            After::Cut => BlockingState::Cut,
                        };
                        if !row.is_empty() {
                            return Poll::Ready(Some(Ok(row)));
                        }
                    }
                },
            }
        }
    }
}

/// Bytes that a writer has written and the connection has not taken.
#[derive(Default)]
struct WriterPipe {
    state: Mutex<WriterState>,
    room: Condvar,
}

#[derive(Default)]
struct WriterState {
    pieces: VecDeque<Bytes>,
    len: usize,
    /// True if it was complete.
    end: Option<bool>,
    is_reader_gone: bool,
    waker: Option<Waker>,
}

/// Writer for the function of [`Stream::writer`]. It collects some kilobytes before it sends them;
/// a flush sends what there is.
pub struct StreamWriter {
    pipe: Arc<WriterPipe>,
    buffer: Vec<u8>,
}

impl StreamWriter {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let mut state = self.pipe.state.lock();
        while state.len >= WRITER_AHEAD && !state.is_reader_gone {
            self.pipe.room.wait(&mut state);
        }
        if state.is_reader_gone {
            let gone = "the client went away, or the server ends";
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, gone));
        }
        state.len += piece.len();
        state.pieces.push_back(piece);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl io::Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= ROW {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl std::fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWriter").finish_non_exhaustive()
    }
}

/// Tells the reader of the end, however it comes.
struct WriterEnd {
    pipe: Arc<WriterPipe>,
    is_complete: bool,
}

impl WriterEnd {
    fn tell(mut self, is_complete: bool) {
        self.is_complete = is_complete;
    }
}

impl Drop for WriterEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.end = Some(self.is_complete);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct WrittenPieces(Arc<WriterPipe>);

fn begin_writer(write: WriteJob, pool: &Arc<BlockingPool>) -> Result<WrittenPieces, PoolFull> {
    let pipe = Arc::<WriterPipe>::default();
    let reader = WrittenPieces(Arc::clone(&pipe));
    let end = WriterEnd {
        pipe: Arc::clone(&pipe),
        is_complete: false,
    };
    let permit = pool.hold_for_client().ok_or(PoolFull)?;
    pool.submit(Box::new(move || {
        let _permit = permit;
        let mut writer = StreamWriter {
            pipe,
            buffer: Vec::new(),
        };
        let written = write(&mut writer).and_then(|()| writer.send());
        end.tell(written.is_ok());
    }))?;
    Ok(reader)
}

impl BodySource for WrittenPieces {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        let mut state = self.0.state.lock();
        if let Some(piece) = state.pieces.pop_front() {
            state.len -= piece.len();
            self.0.room.notify_one();
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end {
            Some(true) => Poll::Ready(None),
            Some(false) => Poll::Ready(Some(Err(BodyCut))),
            None => {
                let before = state.waker.replace(context.waker().clone());
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl Drop for WrittenPieces {
    fn drop(&mut self) {
        self.0.state.lock().is_reader_gone = true;
        self.0.room.notify_one();
    }
}
