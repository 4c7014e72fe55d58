//! What a site remembers while it is made.

use std::{collections::VecDeque, sync::Arc, time::UNIX_EPOCH};

use bytes::Bytes;
use millpond_http::Response;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::report::Report;
use crate::Problem;

/// Reports that are kept until their responses are written.
const MAX_REPORTS: usize = 32;
/// Browsers that wait for a change at a time. One more, and the oldest of them asks again: the
/// server does not notice that a waiting client has gone.
const MAX_WAITING: u64 = 32;
/// Marks a response with the number of its report. It never leaves the server.
const MARK: &str = "Millpond-Report";

/// The state of a folder under development.
pub(crate) struct DevState {
    /// Tells the states of one process from those of another.
    start: u128,
    progress: watch::Sender<FolderProgress>,
    problems: Mutex<Arc<[Problem]>>,
    reports: Mutex<Reports>,
}

#[derive(Clone, Copy, Default)]
struct FolderProgress {
    /// Readings of the folder.
    changes: u64,
    /// Browsers that have waited.
    waited: u64,
    is_over: bool,
}

#[derive(Default)]
struct Reports {
    last: u64,
    list: VecDeque<(u64, Arc<Report>)>,
}

/// The end of waiting for a change.
pub(super) enum WaitEnd {
    /// The folder was read again, or the browser is to ask again; the state now.
    Now(String),
    /// The server stops.
    Over,
}

impl Default for DevState {
    fn default() -> Self {
        let now = base_clock::wall().duration_since(UNIX_EPOCH);
        Self {
            start: now.unwrap_or_default().as_nanos(),
            progress: watch::Sender::default(),
            problems: Mutex::new([].into()),
            reports: Mutex::default(),
        }
    }
}

impl DevState {
    /// The folder was read, with these faults.
    pub(crate) fn changed(&self, problems: Vec<Problem>) {
        *self.problems.lock() = problems.into();
        self.progress.send_modify(|progress| progress.changes += 1);
    }

    /// The server stops: no browser is to wait for a change any more.
    pub(crate) fn stop(&self) {
        self.progress
            .send_modify(|progress| progress.is_over = true);
    }

    pub(super) fn problems(&self) -> Arc<[Problem]> {
        self.problems.lock().clone()
    }

    /// The state, as a page remembers it.
    pub(super) fn token(&self) -> String {
        self.token_of(self.progress.borrow().changes)
    }

    fn token_of(&self, changes: u64) -> String {
        format!("{:x}-{changes}", self.start)
    }

    /// Waits until the state is not `known`.
    pub(super) async fn wait(self: Arc<Self>, known: String) -> WaitEnd {
        let mut own = 0;
        self.progress.send_modify(|progress| {
            progress.waited += 1;
            own = progress.waited;
        });
        let mut watched = self.progress.subscribe();
        let ends = |progress: &FolderProgress| {
            progress.is_over
                || progress.waited >= own + MAX_WAITING
                || self.token_of(progress.changes) != known
        };
        match watched.wait_for(ends).await.map(|progress| *progress) {
            Ok(progress) if !progress.is_over => WaitEnd::Now(self.token_of(progress.changes)),
            _ => WaitEnd::Over,
        }
    }

    /// The response, with the number of its report for [`DevState::report_of`].
    pub(crate) fn mark(&self, response: Response, report: Arc<Report>) -> Response {
        let mut reports = self.reports.lock();
        reports.last += 1;
        let number = reports.last;
        if reports.list.len() == MAX_REPORTS {
            reports.list.pop_front();
        }
        reports.list.push_back((number, report));
        drop(reports);
        // A report that is made later knows more.
        let response = without_mark(response);
        let line = format!("{MARK}: {number}\r\n");
        let extra = [response.extra(), line.as_bytes()].concat();
        response.with_extra(Bytes::from(extra))
    }

    /// The report of a marked response.
    pub(super) fn report_of(&self, response: &Response) -> Option<Arc<Report>> {
        let number: u64 = response.field(MARK)?.parse().ok()?;
        let reports = self.reports.lock();
        let found = reports.list.iter().find(|(other, _)| *other == number);
        found.map(|(_, report)| report.clone())
    }
}

/// The response as it leaves the server.
pub(super) fn without_mark(response: Response) -> Response {
    if response.field(MARK).is_none() {
        return response;
    }
    let extra = String::from_utf8_lossy(response.extra()).into_owned();
    let lines = extra.split_inclusive("\r\n");
    let lines = lines.filter(|line| !line.starts_with(MARK));
    response.with_extra(Bytes::from(lines.collect::<String>()))
}

impl std::fmt::Debug for DevState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DevState").field(&self.token()).finish()
    }
}
