//! The two lines by which the owner learns that a database was away.

use base_clock::Boottime;

/// An outage of a database, of which the beginning and the end are said once, however many ask.
#[derive(Debug, Default)]
pub struct Outage {
    /// Since when the database is away, if that was said.
    since: Option<Boottime>,
    unanswered: u64,
}

impl Outage {
    /// Returns whether its beginning was said, and its end was not.
    #[must_use]
    pub const fn is_said(&self) -> bool {
        self.since.is_some()
    }

    /// Counts what the database could not answer.
    pub fn count(&mut self, unanswered: u64) {
        self.unanswered += unanswered;
    }

    /// Returns the line of its beginning, unless that was said; `effect` is what follows from it.
    pub fn begin(&mut self, since: Boottime, reason: &str, effect: &str) -> Option<String> {
        if self.since.is_some() {
            return None;
        }
        self.since = Some(since);
        Some(format!("the database is away: {reason}; {effect}"))
    }

    /// Returns the line of its end, if its beginning was said. `ended` maps the moment of the
    /// beginning to that of the end. The line counts `what` was refused, and ends with `more`.
    pub fn end(
        &mut self,
        ended: impl FnOnce(Boottime) -> Boottime,
        what: &str,
        more: &str,
    ) -> Option<String> {
        let since = self.since.take()?;
        let length = ended(since).since(since).as_secs_f64();
        let unanswered = std::mem::take(&mut self.unanswered);
        Some(format!(
            "the database is back after {length:.1} s; {what} that it could not answer: {unanswered}{more}"
        ))
    }
}
