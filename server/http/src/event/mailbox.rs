//! How other threads, and futures, wake a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use rustix::event::{EventfdFlags, eventfd};

use super::Token;

/// References that always exist: of the worker, and of the worker group.
const HOLDERS: usize = 2;

/// Tokens of connections that can go on, and a bell that ends the worker's sleep.
#[derive(Debug)]
pub(crate) struct Mailbox {
    tokens: Mutex<Vec<Token>>,
    /// Set after something was put in, cleared before it is taken out: so a thread that finds the
    /// flag set need not ring again.
    has_tokens: AtomicBool,
    /// An eventfd, watched edge-triggered: it is written to and never read.
    bell: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self {
            tokens: Mutex::default(),
            has_tokens: AtomicBool::new(false),
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

    /// Whether a waker exists, which may add a token.
    pub(crate) fn is_expecting(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > HOLDERS
    }

    fn post(&self, token: Token) {
        self.tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(token);
        if !self.has_tokens.swap(true, Ordering::SeqCst) {
            self.ring();
        }
    }

    /// Moves what is there to `tokens`.
    pub(crate) fn collect(&self, tokens: &mut Vec<Token>) {
        if self.has_tokens.load(Ordering::Relaxed) && self.has_tokens.swap(false, Ordering::SeqCst)
        {
            tokens.append(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A waker that puts `token` into this box.
    pub(crate) fn waker(self: &Arc<Self>, token: Token) -> Waker {
        Arc::new(MailboxWaker {
            mailbox: Arc::clone(self),
            token,
        })
        .into()
    }
}

struct MailboxWaker {
    mailbox: Arc<Mailbox>,
    token: Token,
}

impl Wake for MailboxWaker {
    fn wake(self: Arc<Self>) {
        self.mailbox.post(self.token);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.post(self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_posted_is_lost() {
        let mailbox = Mailbox::new().unwrap();
        let posted = 4 * 10_000;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let waker = mailbox.waker(Token::reserved(0));
                std::thread::spawn(move || (0..10_000).for_each(|_| waker.wake_by_ref()))
            })
            .collect();
        let mut tokens = Vec::new();
        while tokens.len() < posted {
            // The bell is the only thing that is waited for: a ring that is missing makes this
            // stand still.
            let mut count = [0; 8];
            if rustix::io::read(mailbox.bell(), &mut count).is_ok() {
                mailbox.collect(&mut tokens);
            }
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(tokens.len(), posted);
    }
}
