//! What a running command waits for: signals, and the end of a worker.

use std::sync::mpsc::{self, Receiver, Sender};

use millpond_process::{Signal, SignalListener};

use crate::failure::{CommandFailure, CommandResult};

/// Something that happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
    /// SIGUSR2.
    Upgrade,
    /// The process that was to take the place of this one: its number once it serves, or why it
    /// does not.
    Successor(Result<u32, String>),
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
    /// Handles SIGTERM, SIGINT, SIGHUP and SIGUSR2 for the rest of the process. A second SIGTERM or
    /// SIGINT ends the process at once.
    pub(crate) fn listen() -> CommandResult<Self> {
        let (sender, receiver) = mpsc::channel();
        let to = sender.clone();
        let on_signal = move |signal| {
            let event = match signal {
                Signal::Reload => Event::Reload,
                Signal::Stop => Event::Stop,
                Signal::Upgrade => Event::Upgrade,
            };
            // The receiver is gone once the command is ending; the second signal must still be
            // seen.
            let _ = to.send(event);
        };
        // The second signal skips the drain.
        SignalListener::start(true, on_signal, |_| std::process::exit(1))
            .map_err(|error| CommandFailure::new(format!("cannot listen for signals: {error}")))?;
        Ok(Self { receiver, sender })
    }
}
