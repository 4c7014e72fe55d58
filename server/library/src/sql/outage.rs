//! Says on standard error that the database is away, that it is back, and that it is too slow.
//!
//! Each client gets the same sentence; the owner gets one line.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base_clock::Boottime;
use millpond_db::Error;
use millpond_pages::Outage;
use parking_lot::Mutex;

/// An outage is not told sooner after the one before, nor is a statement that took too long.
const PAUSE: Duration = Duration::from_secs(1);

/// Notes what comes of reads and writes. The first that succeeds says that the database is back.
#[derive(Default)]
pub(super) struct OutageLog {
    /// Read without the lock, for reads while all is well.
    is_away: AtomicBool,
    told: Mutex<Told>,
}

/// Message that was written last.
#[derive(Default)]
struct Told {
    outage: Outage,
    last_away: Option<Boottime>,
    last_slow: Option<Boottime>,
}

impl OutageLog {
    /// Notes a read or a write that was done, or why it was not.
    pub(super) fn note(&self, error: Option<&Error>) {
        if error.is_none() && !self.is_away.load(Ordering::Relaxed) {
            return;
        }
        let mut told = self.told.lock();
        let line = told.line(error, Boottime::now());
        self.is_away.store(told.outage.is_said(), Ordering::Relaxed);
        drop(told);
        if let Some(line) = line {
            // A closed standard error is no reason to panic.
            let _ = writeln!(std::io::stderr(), "millpond: {line}");
        }
    }
}

impl Told {
    fn line(&mut self, error: Option<&Error>, now: Boottime) -> Option<String> {
        match error {
            Some(Error::Unavailable { message }) => self.away(message, now),
            Some(error @ (Error::Timeout { .. } | Error::Locked { .. })) => {
                is_due(&mut self.last_slow, now).then(|| format!("a request is a 503: {error}"))
            }
            // It says nothing about the database.
            Some(Error::Overloaded) => None,
            _ => self.back(now),
        }
    }

    fn away(&mut self, message: &str, now: Boottime) -> Option<String> {
        self.outage.count(1);
        if self.outage.is_said() || !is_due(&mut self.last_away, now) {
            return None;
        }
        self.outage.begin(now, message, "what needs it is a 503")
    }

    fn back(&mut self, now: Boottime) -> Option<String> {
        self.outage.end(|_| now, "reads and writes", "")
    }
}

/// True if a line may be written again, which it then is.
fn is_due(last: &mut Option<Boottime>, now: Boottime) -> bool {
    let is_due = last.is_none_or(|last| now.since(last) >= PAUSE);
    if is_due {
        *last = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Boottime {
        Boottime::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_outage_is_two_lines_however_many_ask() {
        let mut told = Told::default();
        let gone = Error::Unavailable {
            message: "gone".to_owned(),
        };
        assert_eq!(told.line(None, at(0)), None);
        let away = told.line(Some(&gone), at(1000)).unwrap();
        assert_eq!(away, "the database is away: gone; what needs it is a 503");
        for ms in 1000..3000 {
            assert_eq!(told.line(Some(&gone), at(ms)), None);
            assert_eq!(told.line(Some(&Error::Overloaded), at(ms)), None);
        }
        let back = told.line(None, at(3500)).unwrap();
        let expected = "is back after 2.5 s; reads and writes that it could not answer: 2001";
        assert!(back.ends_with(expected), "{back}");
        assert_eq!(told.line(None, at(3500)), None);
        // One that comes and goes fills no log.
        let lines = |ms| [told.line(Some(&gone), at(ms)), told.line(None, at(ms))];
        let lines: Vec<_> = (4000..6000).flat_map(lines).flatten().collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn a_statement_that_takes_too_long_is_told_once_a_second() {
        let mut told = Told::default();
        let slow = Error::Timeout {
            sql: Some("select 1".into()),
        };
        let lines = |ms| told.line(Some(&slow), at(ms));
        let lines: Vec<_> = (0..2500).filter_map(lines).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(
            lines[0],
            "a request is a 503: the statement took longer than its timeout: select 1"
        );
    }
}
