//! A run whose warm-up and length the statistics decide.
//!
//! The threads count responses and add up their times in bins of equal length. During the run, the
//! watching thread reads the bins. When the series is steady, the measured part begins. When the
//! intervals of the rate and of the mean time are as narrow as requested, the measured part ends.
//! Both times are set a little ahead, so that all threads know them in advance.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::tickets::Agreed;
use base_clock::{MS, Nanos, nanos};
use millrace_stats::analysis::steady::{half_width, is_steady};

/// How far ahead times are set: longer than any thread sleeps.
const AHEAD: Nanos = 150 * MS;
/// Bins of the longest run, and the least and greatest length of a bin.
const BINS: u64 = 2_400;
const BIN: (Nanos, Nanos) = (10 * MS, 250 * MS);
/// Measured bins before the first look at their interval, and growth before the next look. Looking
/// at every bin would end a run at a moment when the interval is narrow by chance (Law and Carson,
/// Operations Research 27:5, 1979).
const FIRST_LOOK: usize = 100;
const NEXT_LOOK: f64 = 1.25;

/// When the statistics end a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auto {
    /// Half the 95 % intervals of the mean time and of the rate, as shares of these.
    pub precision: f64,
    /// The longest time for warm-up and measured part together; the warm-up may take half of it.
    pub max: Duration,
}

impl Default for Auto {
    /// ±2 %, within two minutes.
    fn default() -> Self {
        Self {
            precision: 0.02,
            max: Duration::from_secs(120),
        }
    }
}

impl Auto {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if !(self.precision >= 0.001 && self.precision <= 0.5) {
            return refuse("the precision of --auto must be from 0.1% to 50%");
        }
        if !(Duration::from_secs(2)..=Duration::from_secs(86_400)).contains(&self.max) {
            return refuse("the longest time of --auto must be from 2 s to a day");
        }
        Ok(())
    }
}

/// Decisions of the statistics about a run's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AutoFigures {
    /// Length of the warm-up.
    pub warmup_s: f64,
    /// Length of the measured part.
    pub measured_s: f64,
    /// True if the warm-up ended because the run was steady, and not because its time was over.
    pub steady: bool,
    /// The requested precision: half of each interval as a share.
    pub precision: f64,
    /// Half the 95 % interval of the mean response time (in a closed loop: service time), as a
    /// share of the mean; `None` if the values drift.
    pub half_width_response: Option<f64>,
    /// Half the 95 % interval of the rate.
    pub half_width_rate: Option<f64>,
    /// True if the run was steady and both are within the precision.
    pub converged: bool,
}

/// Counts of all threads, in bins of equal length from the beginning of the run.
pub(crate) struct Pulse {
    origin: AtomicU64,
    width: Nanos,
    bins: Box<[Bin]>,
}

#[derive(Default)]
struct Bin {
    answers: AtomicU64,
    time: AtomicU64,
}

impl Pulse {
    pub(crate) fn new(auto: &Auto) -> Self {
        let max = nanos(auto.max);
        let width = (max / BINS).clamp(BIN.0, BIN.1);
        // The end is set a little ahead.
        let count = (max + 2 * AHEAD).div_ceil(width) + 1;
        Self {
            origin: AtomicU64::new(Nanos::MAX),
            width,
            bins: (0..count).map(|_| Bin::default()).collect(),
        }
    }

    /// Begins the run; every thread gives the same time.
    pub(crate) fn begin(&self, at: Nanos) {
        self.origin.store(at, Ordering::Relaxed);
    }

    /// Counts a good response that arrived at `now` and took `time`.
    pub(crate) fn record(&self, now: Nanos, time: Nanos) {
        let after = now.saturating_sub(self.origin.load(Ordering::Relaxed));
        if let Some(bin) = self.bins.get((after / self.width) as usize) {
            bin.answers.fetch_add(1, Ordering::Relaxed);
            bin.time.fetch_add(time, Ordering::Relaxed);
        }
    }

    /// Responses and the sum of their times in each bin between two times after the beginning.
    fn between(&self, from: Nanos, to: Nanos) -> Vec<(f64, f64)> {
        let [from, to] = [from, to].map(|time| ((time / self.width) as usize).min(self.bins.len()));
        self.bins[from.min(to)..to]
            .iter()
            .map(|bin| {
                let load = |value: &AtomicU64| value.load(Ordering::Relaxed) as f64;
                (load(&bin.answers), load(&bin.time))
            })
            .collect()
    }
}

/// Decides.
pub(crate) struct Director<'a> {
    auto: Auto,
    pulse: &'a Pulse,
    agreed: &'a Agreed,
    /// When the measured part begins and may end, after the beginning.
    start: Option<Nanos>,
    end: Option<Nanos>,
    /// Bins that must be there for the next look.
    next_look: usize,
    warm: bool,
    widths: [Option<f64>; 2],
}

impl<'a> Director<'a> {
    pub(crate) fn new(auto: Auto, pulse: &'a Pulse, agreed: &'a Agreed) -> Self {
        Self {
            auto,
            pulse,
            agreed,
            start: None,
            end: None,
            next_look: FIRST_LOOK,
            warm: false,
            widths: [None; 2],
        }
    }

    /// Looks at a run that began at `origin`.
    pub(crate) fn look(&mut self, origin: Nanos, now: Nanos) {
        let (after, width) = (now.saturating_sub(origin), self.pulse.width);
        match (self.start, self.end) {
            (None, _) => {
                self.warm = is_warm(&self.pulse.between(0, after));
                if self.warm || after >= nanos(self.auto.max) / 2 {
                    // At the edge of a bin.
                    let start = (after + AHEAD).next_multiple_of(width);
                    self.start = Some(start);
                    self.agreed.begin(origin + start);
                }
            }
            (Some(start), None) => {
                let bins = self.pulse.between(start, after);
                let is_last = after >= nanos(self.auto.max);
                if bins.len() < self.next_look && !is_last {
                    return;
                }
                self.next_look = (bins.len() as f64 * NEXT_LOOK).ceil() as usize;
                self.widths = half_widths(&bins);
                // The interval of a drifting series may be narrow for a moment.
                if is_last || self.warm && self.is_content() {
                    self.end = Some(after + AHEAD);
                    self.agreed.end(origin + after + AHEAD);
                }
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// True if the end was decided, and the run not stopped before that.
    pub(crate) fn is_decided(&self) -> bool {
        self.end.is_some()
    }

    fn is_content(&self) -> bool {
        self.widths
            .iter()
            .all(|width| width.is_some_and(|width| width <= self.auto.precision))
    }

    /// The decisions for a run that began at `origin` and was measured for `measured_s`.
    pub(crate) fn figures(&self, origin: Nanos, measured_s: f64) -> AutoFigures {
        let warmup = self
            .start
            .unwrap_or_else(|| base_clock::now().saturating_sub(origin));
        AutoFigures {
            warmup_s: warmup as f64 / 1e9,
            measured_s,
            steady: self.warm,
            precision: self.auto.precision,
            half_width_response: self.widths[0],
            half_width_rate: self.widths[1],
            converged: self.warm && self.is_content(),
        }
    }
}

/// Both the rate and the mean time are steady.
fn is_warm(bins: &[(f64, f64)]) -> bool {
    let rates: Vec<f64> = bins.iter().map(|bin| bin.0).collect();
    // A bin without responses has no mean time.
    let times: Vec<f64> = bins
        .iter()
        .filter(|bin| bin.0 > 0.0)
        .map(|bin| bin.1 / bin.0)
        .collect();
    is_steady(&rates) == Some(true) && is_steady(&times) == Some(true)
}

/// Half the intervals of the mean time and of the rate, as shares of these. The mean time is a
/// ratio of sums. Its interval is the interval of the deviations `time − mean × responses` (the
/// classical ratio estimator; Law, "Simulation Modeling and Analysis", 4th ed., section 9.5.3).
fn half_widths(bins: &[(f64, f64)]) -> [Option<f64>; 2] {
    let count = bins.len() as f64;
    let answers: f64 = bins.iter().map(|bin| bin.0).sum();
    let time: f64 = bins.iter().map(|bin| bin.1).sum();
    if answers <= 0.0 || time <= 0.0 {
        return [None; 2];
    }
    let (rate, mean) = (answers / count, time / answers);
    let of_time: Vec<f64> = bins.iter().map(|bin| bin.1 - mean * bin.0).collect();
    let of_rate: Vec<f64> = bins.iter().map(|bin| bin.0 - rate).collect();
    [
        half_width(&of_time).map(|half| half * count / time),
        half_width(&of_rate).map(|half| half / rate),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base_clock::SECOND;
    use millrace_stats::random::Random;

    /// Simulates a run in virtual time: a response takes `time(second)`, a thousand responses end
    /// in a second, and the director looks five times in a second. Returns its figures, the start
    /// and the end.
    fn direct(max: u64, time: impl Fn(f64) -> f64) -> (AutoFigures, Nanos, Nanos) {
        let auto = Auto {
            max: Duration::from_secs(max),
            ..Auto::default()
        };
        let (pulse, agreed) = (Pulse::new(&auto), Agreed::new(0));
        let mut director = Director::new(auto, &pulse, &agreed);
        let origin = 7 * SECOND;
        pulse.begin(origin);
        let mut random = Random::new(3);
        for ms in 0..max * 1000 + 500 {
            let seconds = ms as f64 / 1000.0;
            let spread = 0.5 + random.uniform();
            let now = origin + ms * MS;
            pulse.record(now, (time(seconds) * spread * 1e6) as Nanos);
            if ms % 200 == 199 {
                director.look(origin, now + MS);
            }
        }
        let times = agreed.times();
        (
            director.figures(origin, 0.0),
            times.start - origin,
            times.end - origin,
        )
    }

    #[test]
    fn a_steady_server_is_measured_until_it_is_known() {
        let (figures, start, end) = direct(120, |_| 5.0);
        assert!(figures.converged && figures.steady, "{figures:?}");
        assert!(figures.half_width_response.unwrap() <= 0.02);
        assert!(start < 20 * SECOND && end < 60 * SECOND, "{start} {end}");
    }

    #[test]
    fn a_cold_start_is_left_out() {
        let (figures, start, _) = direct(120, |at| 5.0 + 45.0 * (-at / 4.0).exp());
        assert!(figures.converged, "{figures:?}");
        // The start is after three time constants, and the look needs the same time again.
        assert!((24..60).contains(&(start / SECOND)), "{start}");
    }

    #[test]
    fn a_drift_never_converges_and_ends_at_the_maximum() {
        let (figures, start, end) = direct(20, |at| 1.0 + at);
        assert!(!figures.steady && !figures.converged, "{figures:?}");
        assert!(start >= 10 * SECOND && (20 * SECOND..21 * SECOND).contains(&end));
    }

    #[test]
    fn a_run_without_responses_does_not_converge() {
        assert_eq!(half_widths(&[(0.0, 0.0); 50]), [None, None]);
        assert!(!is_warm(&[(0.0, 0.0); 50]));
    }

    #[test]
    fn settings_have_limits() {
        let auto = Auto::default();
        assert!(auto.check().is_ok());
        for bad in [
            Auto {
                precision: 0.0,
                ..auto
            },
            Auto {
                precision: f64::NAN,
                ..auto
            },
            Auto {
                max: Duration::from_secs(1),
                ..auto
            },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
