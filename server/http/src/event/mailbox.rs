//! How other threads, and futures, wake a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use rustix::event::{EventfdFlags, eventfd};

use super::StreamToken;

/// References that always exist: of the worker, and of the worker group.
const HOLDERS: usize = 2;

/// Streams that can go on, and a bell that ends the worker's sleep.
#[derive(Debug)]
pub(crate) struct Mailbox {
    streams: Mutex<Vec<StreamToken>>,
    /// Set after something was put in, cleared before it is taken out: so a thread that finds the
    /// flag set need not ring again.
    has_streams: AtomicBool,
    /// An eventfd, watched edge-triggered: it is written to and never read.
    bell: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self {
            streams: Mutex::default(),
            has_streams: AtomicBool::new(false),
            bell,
        }))
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Ends the worker's sleep, or keeps it from beginning.
    pub(crate) fn ring(&self) {
        // It fails only when the count is full, and then the bell has been rung often enough.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// True if a waker exists, which may add a stream.
    pub(crate) fn is_expecting(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > HOLDERS
    }

    fn post(&self, stream: StreamToken) {
        self.streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(stream);
        if !self.has_streams.swap(true, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Moves what is there to `woken`.
    pub(crate) fn collect(&self, woken: &mut Vec<StreamToken>) {
        if self.has_streams.load(Ordering::Relaxed)
            && self.has_streams.swap(false, Ordering::SeqCst)
        {
            woken.append(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Returns a waker that puts `stream` into this box.
    pub(crate) fn waker(self: &Arc<Self>, stream: StreamToken) -> Waker {
        Arc::new(MailboxWaker {
            mailbox: Arc::clone(self),
            stream,
        })
        .into()
    }
}

struct MailboxWaker {
    mailbox: Arc<Mailbox>,
    stream: StreamToken,
}

impl Wake for MailboxWaker {
    fn wake(self: Arc<Self>) {
        self.mailbox.post(self.stream);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.post(self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Token;
    use super::*;

    #[test]
    fn nothing_that_is_posted_is_lost() {
        let mailbox = Mailbox::new().unwrap();
        let posted = 4 * 10_000;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let waker = mailbox.waker(Token::reserved(0).stream(0));
                std::thread::spawn(move || (0..10_000).for_each(|_| waker.wake_by_ref()))
            })
            .collect();
        let mut woken = Vec::new();
        while woken.len() < posted {
            // The bell is the only thing that is waited for: a ring that is missing makes this
            // stand still.
            let mut count = [0; 8];
            if rustix::io::read(mailbox.bell(), &mut count).is_ok() {
                mailbox.collect(&mut woken);
            }
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(woken.len(), posted);
    }
}
