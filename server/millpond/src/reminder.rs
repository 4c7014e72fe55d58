//! What is printed at the start and then once a day.

use std::time::Duration;

use base_clock::Boottime;

/// The time from one reminder to the next.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When the operator was reminded last.
#[derive(Debug, Default)]
pub(crate) struct DailyReminder {
    last: Option<Boottime>,
}

impl DailyReminder {
    /// True at the first call, and a day after the last call that was true.
    pub(crate) fn is_due(&mut self, now: Boottime) -> bool {
        let is_due = self.last.is_none_or(|last| now.since(last) >= DAY);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reminder_is_due_at_once_and_each_day() {
        let hour = Duration::from_secs(60 * 60);
        let start = Boottime::from_nanos(1);
        let mut reminder = DailyReminder::default();
        let due = (0..50).filter(|hours| reminder.is_due(start.plus(hour * *hours)));
        assert_eq!(due.collect::<Vec<u32>>(), [0, 24, 48]);
    }
}
