//! Wakes a feed that sleeps between two looks at the database.
//!
//! Who has just committed knows that there is something to find, and waits for it; who is about to
//! commit will.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

/// The side of those who wake. Without a feed it does nothing.
#[derive(Default)]
pub(crate) struct Wake(Mutex<Option<UnixStream>>);

/// The feed's side: readable after a call.
pub(crate) struct Sleeper(UnixStream);

impl Wake {
    /// A feed that can be woken from now on, in the place of the one before.
    pub(crate) fn sleeper(&self) -> io::Result<Sleeper> {
        let (calls, hears) = UnixStream::pair()?;
        calls.set_nonblocking(true)?;
        hears.set_nonblocking(true)?;
        *self.0.lock() = Some(calls);
        Ok(Sleeper(hears))
    }

    /// Wakes the feed.
    pub(crate) fn call(&self) {
        if let Some(calls) = self.0.lock().as_mut() {
            // Full: enough calls are queued to wake the feed. Closed: the feed has ended, and no
            // caller waits.
            let _ = calls.write(&[0]);
        }
    }
}

impl Sleeper {
    /// True if there was a call since the last check.
    pub(crate) fn was_called(&mut self) -> bool {
        let mut calls = [0; 256];
        let mut called = false;
        while let Ok(1..) = self.0.read(&mut calls) {
            called = true;
        }
        called
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::Wake;

    #[test]
    fn a_call_is_heard_once_and_none_is_waited_for() {
        let wake = Wake::default();
        wake.call();
        let mut sleeper = wake.sleeper().unwrap();
        assert!(!sleeper.was_called());
        for _ in 0..100_000 {
            wake.call();
        }
        assert!(sleeper.was_called());
        assert!(!sleeper.was_called());
        drop(sleeper);
        wake.call();
        assert!(!wake.sleeper().unwrap().was_called());
    }
}
