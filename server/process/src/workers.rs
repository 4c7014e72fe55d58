//! Worker threads with their listeners, and their end.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millpond_http::{Limits, ListenAddress, Listener, Service, WorkerGroup, run_worker};
use rustix::thread::sched_getaffinity;

/// Returns how many workers `asked` means: 0 is one for each core in the affinity mask.
#[must_use]
pub fn worker_count(asked: usize) -> usize {
    match asked {
        0 => sched_getaffinity(None).map_or(1, |cores| cores.count().max(1) as usize),
        asked => asked,
    }
}

/// How a worker ended: with a reason if it was not asked to.
pub type WorkerEnd = Result<(), String>;

/// Workers that serve.
#[derive(Debug)]
pub struct Workers {
    address: ListenAddress,
    group: Arc<WorkerGroup>,
    threads: Vec<JoinHandle<()>>,
    ended: Receiver<WorkerEnd>,
    /// How many have been seen to end.
    gone: usize,
    /// How long to wait for each worker: the drain timeout and the grace.
    patience: Duration,
}

impl Workers {
    /// Starts a worker for each listener; each makes a service of its own. `name` is that of their
    /// threads, and `on_end` is called by each when it ends. `grace` is the time that workers have
    /// beyond the drain.
    ///
    /// # Errors
    /// There is no listener, or no thread for one. Those that were started are stopped.
    pub fn start<S: Service>(
        service: impl Fn() -> S + Clone + Send + 'static,
        name: &str,
        listeners: Vec<Listener>,
        (limits, grace): (&Limits, Duration),
        on_end: impl Fn(&WorkerEnd) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let address = listeners.first().map_or_else(
            || Err(io::Error::other("no listener")),
            |listener| ListenAddress::of(&listener.socket),
        )?;
        let group = WorkerGroup::new();
        let (end, ended) = mpsc::channel();
        let mut workers = Self {
            address,
            group,
            threads: Vec::with_capacity(listeners.len()),
            ended,
            gone: 0,
            patience: limits.drain_timeout + grace,
        };
        for (number, listener) in listeners.into_iter().enumerate() {
            let (service, group) = (service.clone(), Arc::clone(&workers.group));
            let (limits, on_end, end) = (limits.clone(), on_end.clone(), end.clone());
            let work = move || {
                let asked = Arc::clone(&group);
                let serve = || run_worker(listener, service(), limits, group);
                let ended = match catch_unwind(AssertUnwindSafe(serve)) {
                    Ok(Ok(())) if asked.is_shutdown() => Ok(()),
                    Ok(Ok(())) => Err("it stopped by itself".to_owned()),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("it panicked".to_owned()),
                };
                on_end(&ended);
                // The receiver may be gone.
                let _ = end.send(ended);
            };
            let thread = thread::Builder::new().name(format!("{name}-{number}"));
            match thread.spawn(work) {
                Ok(thread) => workers.threads.push(thread),
                Err(error) => {
                    let _ = workers.stop();
                    return Err(error);
                }
            }
        }
        Ok(workers)
    }

    /// Returns where they answer.
    #[must_use]
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Returns what they share: counters, and the shutdown.
    #[must_use]
    pub const fn group(&self) -> &Arc<WorkerGroup> {
        &self.group
    }

    /// Waits until the first ends, and returns how. The others go on.
    pub fn first_end(&mut self) -> WorkerEnd {
        self.gone += 1;
        // Each worker sends before it ends.
        self.ended.recv().unwrap_or(Ok(()))
    }

    /// Lets the requests in flight finish, for at most the drain timeout. Returns how many workers
    /// have not finished by then, and why one ended that was not asked to.
    pub fn stop(&mut self) -> (usize, WorkerEnd) {
        self.group.shutdown();
        let threads = std::mem::take(&mut self.threads);
        let mut left = threads.len().saturating_sub(self.gone);
        let mut first = Ok(());
        while left > 0 {
            match self.ended.recv_timeout(self.patience) {
                Ok(ended) => {
                    left -= 1;
                    first = first.and(ended);
                }
                Err(RecvTimeoutError::Timeout) => return (left, first),
                Err(RecvTimeoutError::Disconnected) => left = 0,
            }
        }
        for thread in threads {
            // It has caught its own panic and sent its last message.
            let _ = thread.join();
        }
        (0, first)
    }

    /// Returns whether they run, or are to be waited for.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.threads.is_empty()
    }
}
