//! Recorded arrivals: a file of times, and the schedule that repeats it.

use std::sync::Arc;

use crate::Error;
use crate::plan::{Process, Schedule};
use base_clock::{Nanos, SECOND};

/// The latest time in a recording, in seconds: a hundred days.
const LATEST: f64 = 8_640_000.0;

impl Schedule {
    /// A schedule of recorded arrivals. `times` are nanoseconds from the beginning, in order; they
    /// are replayed `speed` times as fast. The rate is the mean rate of the recording.
    ///
    /// # Errors
    /// There is no time, the times are not in order, or the speed is not above 0.
    pub fn recorded(times: &[u64], speed: f64) -> Result<Self, Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if !(speed > 0.0 && speed.is_finite()) {
            return refuse("the speed of recorded arrivals must be above 0");
        }
        if times.is_empty() {
            return refuse("there is no recorded arrival");
        }
        if !times.is_sorted() {
            return refuse("the recorded arrivals are not in order");
        }
        let times: Arc<[u64]> = times
            .iter()
            .map(|&time| (time as f64 / speed) as u64)
            .collect();
        let length = length(&times);
        Ok(Self {
            rate: times.len() as f64 * SECOND as f64 / length as f64,
            process: Process::Recorded(times),
            deadline: None,
        })
    }

    /// Parses one time in seconds per line, in order. Empty lines and text after a `#` are ignored.
    /// The result is in nanoseconds.
    ///
    /// # Errors
    /// Names the line that is not a time, or that is earlier than the line above.
    pub fn times_from(text: &str) -> Result<Vec<u64>, Error> {
        let mut times = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            if word.is_empty() {
                continue;
            }
            let refuse = |what: &str| Error::Plan(format!("line {}: {word:?} {what}", number + 1));
            let seconds: f64 = word
                .parse()
                .ok()
                .filter(|seconds| (0.0..=LATEST).contains(seconds))
                .ok_or_else(|| refuse("is no time in seconds from 0 to 8640000, such as 12.345"))?;
            let time = (seconds * SECOND as f64).round() as u64;
            if times.last().is_some_and(|&last| time < last) {
                return Err(refuse("is earlier than the time before it; sort the file"));
            }
            times.push(time);
        }
        Ok(times)
    }
}

/// Length of a recording: up to its last time plus a mean distance, so that the recording has as
/// many arrivals as its rate says.
pub(crate) fn length(times: &[u64]) -> Nanos {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return 0;
    };
    let distance = (last - first) / (times.len() as u64 - 1).max(1);
    last + distance.max(base_clock::MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_times_may_have_comments() {
        let times = Schedule::times_from("# seconds\n0\n\n0.5 # the first\n0.5\n 2e0 \r\n");
        assert_eq!(times.unwrap(), [0, SECOND / 2, SECOND / 2, 2 * SECOND]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, line, word) in [
            ("0\n1\nsoon\n", "line 3", "soon"),
            ("0\n\n-1\n", "line 3", "-1"),
            ("1\nNaN", "line 2", "NaN"),
            ("1\ninf", "line 2", "inf"),
            ("2\n1\n", "line 2", "earlier"),
            ("9e9\n", "line 1", "9e9"),
        ] {
            let error = Schedule::times_from(text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_rate_is_the_mean_and_the_speed_multiplies_it() {
        let times: Vec<u64> = (0..100).map(|n| n * SECOND / 50).collect();
        let schedule = Schedule::recorded(&times, 1.0).unwrap();
        assert!((schedule.rate - 50.0).abs() < 1e-6);
        let fast = Schedule::recorded(&times, 10.0).unwrap();
        assert!((fast.rate - 500.0).abs() < 0.01, "{}", fast.rate);
        assert!(Schedule::recorded(&times, 0.0).is_err());
        assert!(Schedule::recorded(&[], 1.0).is_err());
        assert!(Schedule::recorded(&[2, 1], 1.0).is_err());
        assert!(Schedule::recorded(&[5], 1.0).unwrap().rate > 0.0);
    }
}
