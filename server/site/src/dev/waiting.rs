//! Sites that cannot be opened yet: each change of a file tries it again.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;

use super::DevState;
use crate::watch::Watch;
use millpond_site_format::Problem;

/// How often a database server that is away is tried: no file says that it is back.
const DATABASE_RETRY: Duration = Duration::from_secs(2);
/// The file of a problem with a database server.
const DATABASE: &str = "database.url";

/// State of sites that could not be opened.
pub(crate) struct Waiting {
    /// State that the browser is shown.
    pub(crate) state: Arc<DevState>,
    /// The folder from which the faults name their files.
    pub(crate) dir: PathBuf,
    /// Their changes wake the thread, which ends without them.
    watches: Mutex<Vec<Watch>>,
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Waiting {
    /// Calls `open` after each change in `folders`, until it succeeds. `problems` are those of the
    /// first attempt, which was before this.
    ///
    /// # Errors
    /// A folder cannot be watched.
    pub(crate) fn start(
        dir: &Path,
        folders: &[PathBuf],
        problems: Vec<Problem>,
        open: impl FnMut() -> Result<(), Vec<Problem>> + Send + 'static,
    ) -> Result<Self, Problem> {
        let (changed, changes) = mpsc::channel();
        let watches = folders.iter().map(|folder| {
            let changed = changed.clone();
            Watch::start(folder, false, Arc::default(), move |_| {
                // Nothing receives it once the sites are open.
                let _ = changed.send(());
            })
        });
        let watches = watches.collect::<Result<_, _>>()?;
        let state = Arc::<DevState>::default();
        state.changed(problems);
        let is_over = Arc::<AtomicBool>::default();
        let attempts = Attempts {
            open,
            state: state.clone(),
            changes,
            is_over: is_over.clone(),
        };
        let thread = thread::Builder::new().name("opening".to_owned());
        let thread = thread.spawn(move || attempts.run()).map_err(|error| {
            Problem::new(dir, format!("the thread to open it cannot start: {error}"))
        })?;
        Ok(Self {
            state,
            dir: dir.to_owned(),
            watches: Mutex::new(watches),
            is_over,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends the attempts; blocks while one is made.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.state.stop();
        self.watches.lock().clear();
        if let Some(thread) = self.thread.lock().take() {
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}

/// The thread that opens the sites.
struct Attempts<F> {
    open: F,
    state: Arc<DevState>,
    changes: Receiver<()>,
    is_over: Arc<AtomicBool>,
}

impl<F: FnMut() -> Result<(), Vec<Problem>>> Attempts<F> {
    fn run(mut self) {
        // What has changed while the watch was set up would otherwise be missed.
        while !self.is_over.load(Ordering::Relaxed) {
            match (self.open)() {
                Ok(()) => return self.state.changed(Vec::new()),
                Err(problems) if *problems == *self.state.problems() => {}
                Err(problems) => self.state.changed(problems),
            }
            let problems = self.state.problems();
            let is_away = problems
                .iter()
                .any(|problem| problem.file.ends_with(DATABASE));
            let woken = match is_away {
                true => self.changes.recv_timeout(DATABASE_RETRY),
                false => self.changes.recv().map_err(RecvTimeoutError::from),
            };
            if woken == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}
