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
//! - `alerts`: rules that are held against the history; `webhooks`: what is posted of them;
//! - `files`: the pages, which are in `site/` and built into the program;
//! - `service`: requests for the console, and what its pages may ask the server to do.

mod alerts;
mod files;
mod history;
mod report;
mod sampler;
mod service;
mod source;
mod webhooks;

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millpond_site::{AlertRule, Problem, Sites};

pub use files::FILES;
pub use history::History;
pub use report::HistoryReport;
pub use sampler::Sampler;
pub use service::ConsoleService;
pub use source::{
    CertificateState, Controls, Counts, Fact, FigureSource, Gauges, RouteCounts, RouteTotals,
    Totals,
};

use alerts::Alerts;
use sampler::SamplerThread;
use webhooks::Webhooks;

/// The time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// The console of a running server.
pub struct Console {
    sites: Sites,
    history: Arc<History>,
    controls: Arc<dyn Controls>,
    last_look: Arc<AtomicU64>,
    thread: Mutex<Option<SamplerThread>>,
}

impl Console {
    /// Opens the history in `file`, takes a sample in each `interval`, and holds it against
    /// `rules`. A file that is damaged is set aside, and a new one is begun. `log` tells the owner.
    ///
    /// # Errors
    /// The file cannot be made or written; there is no thread.
    pub fn start(
        file: &Path,
        source: impl FigureSource,
        controls: impl Controls,
        rules: Vec<AlertRule>,
        interval: Duration,
        log: fn(&str),
    ) -> Result<Self, Vec<Problem>> {
        let (mut console, sampler) = Self::without_thread(file, source, controls, rules, log)?;
        let thread = SamplerThread::start(sampler, interval);
        let thread = thread.map_err(|error| no_thread(file, &error))?;
        console.thread = Mutex::new(Some(thread));
        Ok(console)
    }

    /// A console whose samples the caller takes.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn without_thread<S: FigureSource>(
        file: &Path,
        source: S,
        controls: impl Controls,
        rules: Vec<AlertRule>,
        log: fn(&str),
    ) -> Result<(Self, Sampler<S>), Vec<Problem>> {
        let (site, history) = History::open(file, log)?;
        let (history, last_look) = (Arc::new(history), Arc::<AtomicU64>::default());
        let controls: Arc<dyn Controls> = Arc::new(controls);
        let urls = rules.iter().filter_map(|rule| rule.webhook.as_ref());
        let webhooks = Webhooks::start(urls, &controls, log);
        let webhooks = webhooks.map_err(|error| no_thread(file, &error))?;
        let alerts = Alerts::new(rules, webhooks, log);
        let sampler = Sampler::new(source, Arc::clone(&history), alerts, Arc::clone(&last_look));
        let console = Self {
            sites: site.into(),
            history,
            controls,
            last_look,
            thread: Mutex::default(),
        };
        Ok((console, sampler))
    }

    /// Returns a service for one worker.
    #[must_use]
    pub fn service(&self) -> ConsoleService {
        ConsoleService::new(
            self.sites.service(),
            Arc::clone(&self.history),
            Arc::clone(&self.controls),
            Arc::clone(&self.last_look),
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

fn no_thread(file: &Path, error: &io::Error) -> Vec<Problem> {
    let message = format!("a thread of the console cannot start: {error}");
    vec![Problem::new(file, message)]
}
