//! The console of a server: a site of its own over the history of the server's figures.
//!
//! It knows how figures are sampled, summed and kept, and has the pages that show them. It must not
//! know where figures come from: a [`FigureSource`] gives them. It writes nothing but its
//! history.
//!
//! - `source`: the figures that a server has; `host`: those of its process and machine;
//! - `sampler`: what has been added since the sample before, and the thread that takes samples;
//! - `history`: the file, and what is written to it;
//! - `report`: the history as a report, for `millpond stats` and each night;
//! - `files`: the pages, which are in `site/` and built into the program;
//! - `service`: requests for the console, and what its pages may ask the server to do.

mod files;
mod history;
mod report;
mod sampler;
mod service;
mod source;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millpond_site::{Problem, Site, Sites};

pub use files::FILES;
pub use history::History;
pub use report::HistoryReport;
pub use sampler::Sampler;
pub use service::ConsoleService;
pub use source::{
    CertificateState, Controls, Counts, Fact, FigureSource, Gauges, RouteCounts, RouteTotals,
    Totals,
};

use sampler::SamplerThread;

/// The time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// The console of a running server.
pub struct Console {
    sites: Sites,
    history: Arc<History>,
    controls: Arc<dyn Controls>,
    thread: Mutex<Option<SamplerThread>>,
}

impl Console {
    /// Opens the history in `file`, and takes a sample in each `interval`. A file that is damaged
    /// is set aside, and a new one is begun. `log` tells the owner.
    ///
    /// # Errors
    /// The file cannot be made or written; there is no thread.
    pub fn start(
        file: &Path,
        source: impl FigureSource,
        controls: impl Controls,
        interval: Duration,
        log: fn(&str),
    ) -> Result<Self, Vec<Problem>> {
        let (site, history) = History::open(file, log)?;
        let history = Arc::new(history);
        let sampler = Sampler::new(source, Arc::clone(&history));
        let thread = SamplerThread::start(sampler, interval).map_err(|error: io::Error| {
            let message = format!("the thread that takes samples cannot start: {error}");
            vec![Problem::new(file, message)]
        })?;
        Ok(Self::of(site, history, controls, Some(thread)))
    }

    /// A console whose samples the caller takes.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn without_thread<S: FigureSource>(
        file: &Path,
        source: S,
        controls: impl Controls,
        log: fn(&str),
    ) -> Result<(Self, Sampler<S>), Vec<Problem>> {
        let (site, history) = History::open(file, log)?;
        let history = Arc::new(history);
        let sampler = Sampler::new(source, Arc::clone(&history));
        Ok((Self::of(site, history, controls, None), sampler))
    }

    fn of(
        site: Arc<Site>,
        history: Arc<History>,
        controls: impl Controls,
        thread: Option<SamplerThread>,
    ) -> Self {
        Self {
            sites: site.into(),
            history,
            controls: Arc::new(controls),
            thread: Mutex::new(thread),
        }
    }

    /// Returns a service for one worker.
    #[must_use]
    pub fn service(&self) -> ConsoleService {
        ConsoleService::new(
            self.sites.service(),
            Arc::clone(&self.history),
            Arc::clone(&self.controls),
        )
    }

    /// Ends the streams of live pages, so that a server that stops need not wait for them.
    pub fn stop_waits(&self) {
        self.sites.stop_waits();
    }

    /// Takes a last sample, and stops; blocks until all is written.
    pub fn stop(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(thread);
        self.sites.stop();
    }
}
