//! What a view shows, apart from how it is drawn.

use std::collections::VecDeque;
use std::time::Duration;

use millrace_client::{Phase, Progress as Run};
use millrace_report::number;

/// Rates that are kept: a minute with four a second, as wide as a very wide terminal.
const KEPT: usize = 240;
/// Steps that are kept for the graph and the table; no terminal shows more.
const STEPS: usize = 1000;

/// How far a measurement is.
pub(crate) struct ViewPosition {
    /// Name of the part, such as `step 3 of 10, at 500 /s`; empty where there is one run only.
    pub(crate) part: String,
    /// Share of the whole that is done, from 0 to 1.
    pub(crate) fraction: f64,
    /// Time to the end of the whole, if that is known.
    pub(crate) remaining: Option<Duration>,
}

/// The finished steps of a longer measurement.
#[derive(Default)]
pub(crate) struct Steps {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// Labels of the graph's axes, horizontal and vertical.
    pub(crate) axes: [&'static str; 2],
    /// The rows, the oldest first.
    pub(super) rows: VecDeque<Vec<String>>,
    /// Points of the graph.
    pub(super) points: Vec<(f64, f64)>,
}

impl Steps {
    /// None yet.
    pub(crate) fn new(columns: Vec<String>, axes: [&'static str; 2]) -> Self {
        Self {
            columns,
            axes,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, row: Vec<String>, point: Option<(f64, f64)>) {
        if self.rows.len() == STEPS {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
        if let Some(point) = point
            && self.points.len() < STEPS
        {
            self.points.push(point);
            self.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
}

/// Everything that is shown.
pub(super) struct View {
    pub(super) title: String,
    /// The last report, once there is one.
    pub(super) now: Option<(ViewPosition, Run)>,
    /// Rates of the last reports, the newest last.
    pub(super) rates: VecDeque<u64>,
    pub(super) steps: Steps,
}

impl View {
    pub(super) fn new(title: String) -> Self {
        Self {
            title,
            now: None,
            rates: VecDeque::new(),
            steps: Steps::default(),
        }
    }

    pub(super) fn report(&mut self, place: ViewPosition, run: &Run) {
        if self.rates.len() == KEPT {
            self.rates.pop_front();
        }
        self.rates.push_back(run.rate.max(0.0) as u64);
        self.now = Some((place, *run));
    }
}

/// Names the phase of a run, in words.
pub(crate) fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Connecting => "connecting",
        Phase::WarmUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::RampDown => "ramping down",
    }
}

/// A time in whole seconds, or minutes and seconds.
pub(crate) fn remaining(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        _ => format!("{} min {} s", number::count(seconds / 60), seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_short_to_read() {
        assert_eq!(remaining(Duration::from_millis(1200)), "2 s");
        assert_eq!(remaining(Duration::from_secs(185)), "3 min 5 s");
    }

    #[test]
    fn a_long_measurement_keeps_a_bounded_number_of_steps() {
        let mut steps = Steps::new(vec!["n".to_owned()], ["", ""]);
        for n in 0..5000 {
            steps.push(vec![n.to_string()], Some((f64::from(n), 1.0)));
        }
        assert_eq!(steps.rows.len(), STEPS);
        assert_eq!(steps.rows.back().unwrap()[0], "4999");
        assert_eq!(steps.points.len(), STEPS);
    }
}
