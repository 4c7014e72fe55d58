//! Signals that end a process, have it read its files again, or have another take its place.

use std::io;
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};

/// Request by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT: requests in flight are answered, then the process ends.
    Stop,
    /// SIGHUP.
    Reload,
    /// SIGUSR2: the program as it is on disk now takes over.
    Upgrade,
}

/// Listens for signals on a thread until it is closed.
pub struct SignalListener {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl SignalListener {
    /// Calls `on_signal` for SIGTERM and SIGINT, and if `is_all` for the others. A second signal to
    /// end calls `at_once`, which is to end the process: the drain is not waited for.
    ///
    /// # Errors
    /// The signals cannot be handled, or there is no thread for them.
    pub fn start(
        is_all: bool,
        on_signal: impl Fn(Signal) + Send + 'static,
        at_once: impl Fn(i32) + Send + 'static,
    ) -> io::Result<Self> {
        let all = [SIGTERM, SIGINT, SIGHUP, SIGUSR2];
        let mut signals = Signals::new(if is_all { &all[..] } else { &all[..2] })?;
        let handle = signals.handle();
        let work = move || {
            let mut is_stopping = false;
            for signal in signals.forever() {
                match signal {
                    SIGHUP => on_signal(Signal::Reload),
                    SIGUSR2 => on_signal(Signal::Upgrade),
                    _ if std::mem::replace(&mut is_stopping, true) => at_once(signal),
                    _ => on_signal(Signal::Stop),
                }
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        let no_thread = |error| io::Error::other(format!("no thread for them: {error}"));
        let thread = thread.spawn(work).map_err(no_thread)?;
        Ok(Self { handle, thread })
    }

    /// Ends the listening.
    pub fn close(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}
