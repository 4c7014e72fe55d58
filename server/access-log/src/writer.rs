//! The one thread that touches the file.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};

use super::{INTERVAL, LogState, lock};

/// Bytes that a pipe takes at once when poll calls it writable (POSIX asks for 512, Linux gives
/// 4096).
const PIPE_BUF: usize = 4096;
/// Room that an empty buffer keeps.
const KEPT: usize = 1024 * 1024;
/// How often a blocked pipe is left to see whether the log is stopped or reopened.
const POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Opens the log. A named pipe without a reader is an error at once; a plain open would wait for a
/// reader.
pub(super) fn open(path: Option<&Path>) -> io::Result<File> {
    let Some(path) = path else {
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    };
    let how = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::CLOEXEC
        | OFlags::NONBLOCK
        | OFlags::NOCTTY;
    let file = rustix::fs::open(path, how, Mode::from_raw_mode(0o640))?;
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

/// Takes and writes the shards until the log is stopped.
pub(super) fn run(state: &LogState, file: File) {
    let _ended = EndOnDrop(state);
    let mut sink = Sink::new(file);
    let mut taken = Vec::new();
    loop {
        let stopping = state.stop.load(Ordering::Acquire);
        let wanted = lock(&state.progress).wanted;
        // The new file is taken before the lines, so all lines recorded before `reopen` are in this
        // pass at the latest.
        let next = lock(&state.reopened).take();
        for shard in &state.shards {
            let lines = {
                let mut buffer = lock(&shard.0);
                std::mem::swap(&mut buffer.bytes, &mut taken);
                std::mem::take(&mut buffer.lines)
            };
            sink.write(state, &taken, lines, next.is_some());
            taken.clear();
            // What a burst needed is not kept for ever.
            taken.shrink_to(KEPT);
        }
        if let Some(file) = next {
            sink = Sink::new(file);
        }
        lock(&state.progress).done = wanted;
        state.moved.notify_all();
        if stopping {
            return;
        }
        thread::park_timeout(INTERVAL);
    }
}

/// Releases all waiting threads when the writer thread ends, for any reason.
struct EndOnDrop<'a>(&'a LogState);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.0.progress).ended = true;
        self.0.moved.notify_all();
    }
}

struct Sink {
    file: File,
    /// A regular file takes any amount; a pipe, a terminal or a socket may make the writer wait.
    regular: bool,
    /// The last write failed within a line: the next one must not be glued to its half.
    torn: bool,
}

impl Sink {
    fn new(file: File) -> Self {
        let regular = rustix::fs::fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Self {
            file,
            regular,
            torn: false,
        }
    }

    /// Writes whole lines. What the sink does not take is counted as dropped, by lines.
    /// A pipe that is being left (`leaving`) gets what it takes at once.
    fn write(&mut self, state: &LogState, bytes: &[u8], lines: u64, leaving: bool) {
        if bytes.is_empty() {
            return;
        }
        let torn = self.torn && self.put(state, b"\n", leaving) != 1;
        let put = if torn {
            0
        } else {
            self.put(state, bytes, leaving)
        };
        let lost = bytes[put..].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.torn = torn || (put > 0 && bytes[put - 1] != b'\n');
        state
            .written
            .fetch_add(lines.saturating_sub(lost), Ordering::Relaxed);
        state.dropped.fetch_add(lost, Ordering::Relaxed);
    }

    /// The number of bytes that the sink took.
    fn put(&mut self, state: &LogState, bytes: &[u8], leaving: bool) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            if !self.regular && !self.ready(state, leaving) {
                break;
            }
            let most = if self.regular {
                bytes.len()
            } else {
                (done + PIPE_BUF).min(bytes.len())
            };
            match self.file.write(&bytes[done..most]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another process made standard output non-blocking: it has less room than poll
                // promised.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if leaving || state.stop.load(Ordering::Acquire) {
                        break;
                    }
                    thread::park_timeout(Duration::from_millis(10));
                }
                Err(_) => {
                    state.write_errors.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        done
    }

    /// Waits for room in a pipe, unless the log is stopped or has a new file meanwhile.
    fn ready(&self, state: &LogState, leaving: bool) -> bool {
        loop {
            match poll(
                &mut [PollFd::new(&self.file, PollFlags::OUT)],
                Some(&POLL_INTERVAL),
            ) {
                Ok(0) => {}
                Err(rustix::io::Errno::INTR) => continue,
                // Ready, or an error that the write will name.
                _ => return true,
            }
            if leaving || state.stop.load(Ordering::Acquire) || lock(&state.reopened).is_some() {
                return false;
            }
        }
    }
}
