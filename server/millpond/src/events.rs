//! What a running command waits for: signals, and the end of a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{CommandFailure, CommandResult};

/// Something that happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
    /// A worker ended; with a reason if it was not asked to end.
    WorkerEnded(Option<String>),
}

/// The events of a command.
pub(crate) struct Events {
    /// Gives every event once.
    pub(crate) receiver: Receiver<Event>,
    /// For threads that report.
    pub(crate) sender: Sender<Event>,
}

impl Events {
    /// Handles SIGTERM, SIGINT and SIGHUP for the rest of the process. A second SIGTERM or SIGINT
    /// ends the process at once.
    pub(crate) fn listen() -> CommandResult<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
            .map_err(|error| CommandFailure::new(format!("cannot listen for signals: {error}")))?;
        let (sender, receiver) = mpsc::channel();
        let (to, is_stopping) = (sender.clone(), AtomicBool::default());
        let work = move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGHUP => Event::Reload,
                    // The second signal skips the drain.
                    _ if is_stopping.swap(true, Ordering::SeqCst) => std::process::exit(1),
                    _ => Event::Stop,
                };
                // The receiver is gone once the command is ending; the second signal must still be
                // seen.
                let _ = to.send(event);
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(work)
            .map_err(|error| CommandFailure::new(format!("no thread for signals: {error}")))?;
        Ok(Self { receiver, sender })
    }
}
