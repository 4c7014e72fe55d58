//! The report of each day, written in the night after it (`serve --every-night`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base_chart::number;
use base_clock::SECOND;
use millpond_console::HistoryReport;

use crate::failure::{CommandFailure, CommandResult};
use crate::output::{log, replace_file};

const DAY: u64 = 86_400;
/// Seconds after midnight until the history has the last samples of the day, those of routes too.
const WAIT: u64 = 120;
/// Seconds from a failure to the next try.
const RETRY: u64 = 3_600;
/// The time between two looks at the clock.
const INTERVAL: Duration = Duration::from_secs(30);
/// Routes in a report: the history tells no more of them apart.
const ROUTES: usize = 100;

/// The thread that writes the reports, until this is dropped.
pub(crate) struct NightlyReports {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Reports of the days of a history, as files of a folder.
struct Reports {
    history: PathBuf,
    folder: PathBuf,
    /// The last day whose report is there, or of which there is nothing to report.
    done: u64,
    /// The moment before which nothing is tried, in seconds since 1970.
    pause: u64,
}

impl NightlyReports {
    /// Starts the thread for reports of a history into a folder, if they are wanted. A report that
    /// is missing of yesterday is written soon.
    pub(crate) fn start(wanted: Option<(PathBuf, PathBuf)>) -> CommandResult<Option<Self>> {
        let Some((history, folder)) = wanted else {
            return Ok(None);
        };
        let (stop, stopped) = channel::<()>();
        let mut reports = Reports {
            history,
            folder,
            done: 0,
            pause: 0,
        };
        let run = move || {
            loop {
                reports.look(base_clock::unix_nanos() / SECOND);
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("reports".to_owned());
        let thread = thread.spawn(run).map_err(|error| {
            CommandFailure::new(format!(
                "cannot start the thread for --every-night: {error}"
            ))
        })?;
        Ok(Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        }))
    }
}

impl Drop for NightlyReports {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}

impl Reports {
    /// Writes the report of the day before `now`, in seconds since 1970, unless that is done.
    fn look(&mut self, now: u64) {
        let today = now / DAY;
        // What began today has nothing more to add to the day before.
        let is_early = self.done > 0 && now < today * DAY + WAIT;
        let is_paused = now < self.pause && self.pause < now + DAY;
        if self.done + 1 == today || today == 0 || is_early || is_paused {
            return;
        }
        let begin = (today - 1) * DAY;
        let moment = number::moment(begin as f64);
        let date = moment.split(' ').next().unwrap_or_default();
        let file = self.folder.join(format!("{date}.html"));
        match self.write(&file, begin) {
            Ok(is_written) => {
                self.done = today - 1;
                if is_written {
                    log(format_args!(
                        "note: the report of {date} is in {}",
                        file.display()
                    ));
                }
            }
            Err(error) => {
                self.pause = now + RETRY;
                log(format_args!(
                    "error: the report of {date} cannot be written, and is tried again in an hour: {error}"
                ));
            }
        }
    }

    /// Writes the report of the day that begins at `begin`. False if it is there, or if there is
    /// nothing to report.
    fn write(&self, file: &Path, begin: u64) -> Result<bool, String> {
        let period = (begin as i64, (begin + DAY) as i64);
        let read = || HistoryReport::read(&self.history, period, ROUTES);
        let Some(report) = (!file.is_file()).then(read).transpose()?.flatten() else {
            return Ok(false);
        };
        let written = replace_file(file, &report.report().to_html());
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(true)
    }
}
