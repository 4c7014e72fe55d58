//! Workloads: which requests are sent, in which order and with which pauses, and which responses
//! are good.
//!
//! A workload has classes with weights; a class is a sequence of steps. A *session* goes through
//! one class: it gets a number, renders one request after the other and judges the responses. All
//! random choices come from the workload's seed and the session's number, so a run can be repeated
//! with any number of threads. This module has no socket and no clock.
//!
//! A workload is made from a plan in TOML ([`Workload::parse`]) or learned from an access log
//! ([`Learned`](crate::Learned)).

mod alias;
mod choice;
mod cookies;
mod fileset;
mod log;
mod plan;
mod session;
mod step;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod zipf;

pub use fileset::{DIRECTORY_BYTES, FileSet, FileSetError, MOST_DIRECTORIES};
pub use log::{ArrivalKind, ArrivalPattern, Learned, LearnedClass, LogError, LogLines, Replay};
pub use plan::PlanError;
pub(crate) use session::VisitorSession;
pub(crate) use step::{RenderedRequest, ResponseVerdict};

use alias::Alias;
use choice::Choice;
use step::Class;
use table::Table;

use crate::streams::StreamsPlan;

/// Classes of sessions, and the data for their requests. A workload is read once and shared by all
/// threads.
#[derive(Debug)]
pub struct Workload {
    seed: u64,
    url: String,
    /// The server's name without a port, for the domains of cookies.
    host: String,
    /// Scheme, name and port of the server, with which an absolute link begins.
    origin: String,
    /// The names of the classes, in their order.
    names: Vec<String>,
    classes: Vec<Class>,
    /// How often each class is chosen.
    mix: Alias,
    tables: Vec<Table>,
    choices: Vec<Choice>,
    /// The sessions in their order, where they are recorded and not chosen.
    script: Option<Script>,
    /// Streams that are held beside the sessions.
    streams: Option<Box<StreamsPlan>>,
}

/// Recorded requests, one for each session, over again after the last.
#[derive(Debug, Default)]
struct Script {
    targets: Vec<Box<[u8]>>,
    methods: Vec<Box<[u8]>>,
    entries: Vec<Entry>,
}

/// One recorded request.
#[derive(Clone, Copy, Debug)]
struct Entry {
    target: u32,
    status: u16,
    class: u16,
    method: u8,
}

/// A recorded request, looked up.
struct Recorded<'w> {
    method: &'w [u8],
    target: &'w [u8],
    /// The recorded status, which is a good one.
    status: u16,
    class: u16,
}

impl Workload {
    /// The server that the workload is for, as a URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Replaces the seed of the plan.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The names of the classes, in their order.
    pub fn classes(&self) -> &[String] {
        &self.names
    }

    /// The streams that are held beside the sessions.
    pub fn streams(&self) -> Option<&StreamsPlan> {
        self.streams.as_deref()
    }

    /// The session with this number, the same one every time.
    pub(crate) fn session(&self, number: u64) -> VisitorSession {
        VisitorSession::new(self, number)
    }

    /// How a link to the server of `url` begins.
    fn origin(url: &str, authority: &str) -> String {
        let scheme = url.split("://").next().unwrap_or_default();
        format!("{scheme}://{authority}")
    }

    fn recorded(&self, number: u64) -> Option<Recorded<'_>> {
        let script = self.script.as_ref()?;
        let entry = script.entries[(number % script.entries.len() as u64) as usize];
        Some(Recorded {
            method: &script.methods[usize::from(entry.method)],
            target: &script.targets[entry.target as usize],
            status: entry.status,
            class: entry.class,
        })
    }
}
