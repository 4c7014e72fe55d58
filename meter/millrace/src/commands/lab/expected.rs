//! About how long studies take here.

use std::fmt;
use std::time::Duration;

use millrace_runs::{Experiment, Study};

use super::experiment::leave_out_missing;

/// The times of the experiments of studies, as far as their programs are installed.
#[derive(Clone, Copy, Default)]
pub(super) struct StudyTimes {
    whole: Duration,
    quick: Duration,
}

impl StudyTimes {
    /// Of some of the experiments of a study. One with mistakes counts as nothing.
    pub(super) fn of(study: &Study, files: &[String]) -> Self {
        let mut times = Self::default();
        for file in files {
            let Ok(mut experiment) = study.experiment(file) else {
                continue;
            };
            leave_out_missing(&mut experiment);
            if !experiment.missing().is_empty() {
                continue;
            }
            times.whole = times.whole.saturating_add(experiment.expected_time());
            let quick = study.quick.shorten(file, &mut experiment);
            let quick = quick.map_or(Duration::ZERO, |()| Experiment::expected_time(&experiment));
            times.quick = times.quick.saturating_add(quick);
        }
        times
    }

    /// Adds those of others.
    pub(super) fn add(&mut self, other: &Self) {
        self.whole = self.whole.saturating_add(other.whole);
        self.quick = self.quick.saturating_add(other.quick);
    }

    /// True if anything is to be run.
    pub(super) fn is_some(&self) -> bool {
        !self.whole.is_zero()
    }

    /// The time of whole or of quick runs.
    pub(super) fn in_words(&self, is_quick: bool) -> String {
        about(if is_quick { self.quick } else { self.whole })
    }
}

impl fmt::Display for StudyTimes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_some() {
            true => write!(
                out,
                "about {}, with --quick {}",
                about(self.whole),
                about(self.quick)
            ),
            false => out.write_str("nothing of it is installed"),
        }
    }
}

/// Whole minutes, or seconds if there are few.
fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds < 90.0 {
        true => format!("{} s", seconds.ceil()),
        false => format!("{} min", (seconds / 60.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_minutes_or_seconds() {
        let seconds = Duration::from_secs;
        assert_eq!(about(seconds(3)), "3 s");
        assert_eq!(about(Duration::from_millis(300)), "1 s");
        assert_eq!(about(seconds(100)), "2 min");
        assert_eq!(about(seconds(1859)), "31 min");
    }
}
