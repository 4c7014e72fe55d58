//! Sites that cannot be opened yet: each change of a file tries it again.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::DevState;
use crate::{Problem, watch::Watch};

/// What is done for sites that could not be opened.
pub(crate) struct Waiting {
    /// What the browser is shown.
    pub(crate) state: Arc<DevState>,
    /// The folder from which the faults name their files.
    pub(crate) dir: PathBuf,
    watches: Mutex<Vec<Watch>>,
    attempts: Arc<Mutex<Attempts>>,
}

/// Held while the sites are opened.
struct Attempts {
    open: Box<dyn FnMut() -> Result<(), Vec<Problem>> + Send>,
    is_over: bool,
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
        let waiting = Self {
            state: Arc::default(),
            dir: dir.to_owned(),
            watches: Mutex::default(),
            attempts: Arc::new(Mutex::new(Attempts {
                open: Box::new(open),
                is_over: false,
            })),
        };
        waiting.state.changed(problems);
        for folder in folders {
            let (state, attempts) = (waiting.state.clone(), waiting.attempts.clone());
            let watch = Watch::start(folder, false, move |_| attempts.lock().attempt(&state))?;
            waiting.watches.lock().push(watch);
        }
        // What has changed while the watch was set up would otherwise be missed.
        waiting.attempts.lock().attempt(&waiting.state);
        Ok(waiting)
    }

    /// Ends the attempts; blocks while one is made.
    pub(crate) fn stop(&self) {
        self.attempts.lock().is_over = true;
        self.watches.lock().clear();
        self.state.stop();
    }
}

impl Attempts {
    fn attempt(&mut self, state: &DevState) {
        if self.is_over {
            return;
        }
        match (self.open)() {
            Ok(()) => {
                self.is_over = true;
                state.changed(Vec::new());
            }
            Err(problems) => state.changed(problems),
        }
    }
}
