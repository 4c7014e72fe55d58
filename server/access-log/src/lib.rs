//! The access log: combined format or JSON, buffered, never blocks a worker.
//!
//! A worker formats its line into a buffer in memory (its *shard*). One writer thread takes all
//! buffers every `INTERVAL`, or sooner when a buffer reaches `WAKE`, and writes them. A worker only
//! tries a lock: if the writer is swapping a shard's buffer, the line goes to the next shard. If
//! the sink is slower than the lines arrive, a shard fills to its share of `LIMIT`. From then on
//! lines are dropped and counted, and requests go on.

mod line;
mod writer;

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::Duration;

use line::Timestamp;
pub use line::{LogFormat, LogLine};

/// A line is on its way to the file after at most this time.
const INTERVAL: Duration = Duration::from_millis(150);
/// Bytes in one shard that wake the writer before its time.
const WAKE: usize = 64 * 1024;
/// Bytes in all shards past which lines are dropped: at 100,000 lines of 200 bytes a second, a disk
/// may stall for one and a half seconds. Memory use is at most twice as much, while the writer
/// holds one shard's bytes.
const LIMIT: usize = 32 * 1024 * 1024;
/// How long stopping waits for a sink that does not take its bytes.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A log of requests to which any number of threads write. Clones share one file; when the last
/// clone is dropped, the recorded lines are written.
#[derive(Clone)]
pub struct AccessLog {
    state: Arc<LogState>,
    _stop: Arc<StopOnDrop>,
}

/// How many lines went where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines in the file.
    pub written: u64,
    /// Lines lost: the sink was too slow, or refused them.
    pub dropped: u64,
    /// Writes that the operating system refused (disk full, closed pipe).
    pub write_errors: u64,
}

struct LogState {
    /// Path at which the log was opened; `None` is standard output.
    path: Option<PathBuf>,
    format: LogFormat,
    shards: Box<[Shard]>,
    dropped: AtomicU64,
    written: AtomicU64,
    write_errors: AtomicU64,
    stop: AtomicBool,
    /// A newly opened file that the writer has not taken yet.
    reopened: Mutex<Option<File>>,
    progress: Mutex<Progress>,
    moved: Condvar,
    writer: OnceLock<Thread>,
}

/// How far the writer is, and which threads wait for it. Passes are numbered by the flushes that
/// asked for them.
#[derive(Default)]
struct Progress {
    wanted: u64,
    done: u64,
    ended: bool,
}

/// One buffer, on cache lines of its own so that workers do not slow each other down.
#[repr(align(128))]
#[derive(Default)]
struct Shard(Mutex<Buffer>);

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    lines: u64,
    stamp: Timestamp,
}

impl AccessLog {
    /// Opens the log at `path` for appending, or standard output for `-`, and starts its writer
    /// thread.
    ///
    /// # Errors
    /// The error of the operating system, also for a named pipe without a reader.
    pub fn open(path: impl AsRef<Path>, format: LogFormat) -> io::Result<Self> {
        let path = (path.as_ref() != Path::new("-")).then(|| path.as_ref().to_owned());
        let file = writer::open(path.as_deref())?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let state = Arc::new(LogState {
            path,
            format,
            shards: (0..threads.clamp(2, 64))
                .map(|_| Shard::default())
                .collect(),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_errors: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            reopened: Mutex::new(None),
            progress: Mutex::default(),
            moved: Condvar::new(),
            writer: OnceLock::new(),
        });
        let for_writer = Arc::clone(&state);
        let writer = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer::run(&for_writer, file))?;
        let _ = state.writer.set(writer.thread().clone());
        Ok(Self {
            _stop: Arc::new(StopOnDrop(Arc::clone(&state))),
            state,
        })
    }

    /// Records one request. Takes a few hundred nanoseconds, allocates nothing once warm, and never
    /// waits. If the sink does not keep up, the line is dropped and counted.
    pub fn record(&self, line: &LogLine<'_>) {
        let shards = &self.state.shards;
        let first = shard_of_this_thread();
        let tries = if self.state.stop.load(Ordering::Relaxed) {
            0
        } else {
            shards.len()
        };
        for n in 0..tries {
            let mut buffer = match shards[(first + n) % shards.len()].0.try_lock() {
                Ok(buffer) => buffer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            let before = buffer.bytes.len();
            if before >= LIMIT / shards.len() {
                break;
            }
            let Buffer {
                bytes,
                lines,
                stamp,
            } = &mut *buffer;
            let stamp = stamp.at(base_clock::wall(), self.state.format);
            match self.state.format {
                LogFormat::Combined => line::combined(bytes, stamp, line),
                LogFormat::Json => line::json(bytes, stamp, line),
            }
            *lines += 1;
            let filled = before < WAKE && bytes.len() >= WAKE;
            drop(buffer);
            if filled {
                self.state.wake();
            }
            return;
        }
        self.state.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Lines lost since the log was opened.
    pub fn dropped(&self) -> u64 {
        self.state.dropped.load(Ordering::Relaxed)
    }

    /// Returns the counts of lines so far.
    pub fn counts(&self) -> Counts {
        Counts {
            written: self.state.written.load(Ordering::Relaxed),
            dropped: self.dropped(),
            write_errors: self.state.write_errors.load(Ordering::Relaxed),
        }
    }

    /// Reopens the path after the file was renamed (SIGHUP, logrotate). Lines recorded before this
    /// call go to the old file. Does nothing for standard output.
    ///
    /// # Errors
    /// The path cannot be opened; the old file stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        if self.state.path.is_some() {
            let file = writer::open(self.state.path.as_deref())?;
            *lock(&self.state.reopened) = Some(file);
            self.state.wake();
        }
        Ok(())
    }

    /// Waits until the lines recorded so far are in the file; `false` if the sink did not take them
    /// within `timeout`. For shutdown and tests; a worker does not call this.
    pub fn flush(&self, timeout: Duration) -> bool {
        let mut progress = lock(&self.state.progress);
        progress.wanted += 1;
        let mine = progress.wanted;
        drop(progress);
        self.state.wake();
        self.state
            .wait(timeout, |progress| progress.done >= mine || progress.ended)
    }

    /// Writes the recorded lines and ends the writer thread, waiting at most two seconds for the
    /// sink. Lines recorded later are lost. Dropping the last clone does the same.
    pub fn stop(&self) {
        self.state.stop();
    }
}

impl LogState {
    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    fn wait(&self, timeout: Duration, until: impl Fn(&Progress) -> bool) -> bool {
        let progress = lock(&self.progress);
        let waited = self
            .moved
            .wait_timeout_while(progress, timeout, |progress| !until(progress));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
        self.wait(STOP_TIMEOUT, |progress| progress.ended);
    }
}

/// Only this end of the log stops the writer: the writer itself holds a `LogState` too.
struct StopOnDrop(Arc<LogState>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Threads are dealt to shards in the order in which they first write.
fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<Option<usize>> = const { Cell::new(None) });
    MINE.with(|mine| {
        mine.get().unwrap_or_else(|| {
            let dealt = NEXT.fetch_add(1, Ordering::Relaxed);
            mine.set(Some(dealt));
            dealt
        })
    })
}

/// A panic elsewhere leaves whole lines or none in a buffer, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
