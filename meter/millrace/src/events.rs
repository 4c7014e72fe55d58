//! Signals that end a measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{CommandResult, Failure};

/// Signals within this time of the first belong to it: `timeout` and supervisors signal a process
/// and then its group. What was measured is still written.
const SAME: Duration = Duration::from_secs(1);

/// Requests to stop the command.
pub(crate) struct Events {
    /// Disconnected by the first SIGTERM or SIGINT.
    running: Receiver<()>,
    /// Set by the first SIGTERM or SIGINT.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Events {
    /// Takes over SIGTERM and SIGINT for the rest of the process. Another one a second or more
    /// after the first ends it at once.
    pub(crate) fn listen() -> CommandResult<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT])
            .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        let (sender, running) = mpsc::channel();
        let stop = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&stop);
        let work = move || {
            let mut sender = Some(sender);
            let mut asked = None;
            for _ in signals.forever() {
                match asked {
                    None => {
                        asked = Some(base_clock::now());
                        flag.store(true, Ordering::SeqCst);
                        drop(sender.take());
                    }
                    Some(first) if base_clock::since(first) < SAME => {}
                    Some(_) => {
                        crate::live::restore();
                        std::process::exit(1)
                    }
                }
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(work)
            .map_err(|error| Failure::new(format!("no thread for signals: {error}")))?;
        Ok(Self { running, stop })
    }

    /// Waits for SIGTERM or SIGINT, at most for `patience`.
    pub(crate) fn stopped_within(&self, patience: Duration) {
        let _ = self.running.recv_timeout(patience);
    }

    /// Waits for SIGTERM or SIGINT.
    pub(crate) fn stopped(&self) {
        let _ = self.running.recv();
    }
}
