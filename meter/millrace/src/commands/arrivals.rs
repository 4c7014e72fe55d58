//! When requests are due: arrivals, and the flags of `millrace load` about arrivals and phases.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::values;
use clap::{Args, ValueEnum};
use millrace_client::{Auto, Plan, Process, Schedule, Stop};

use super::headings::LOOP;
use crate::failure::{CommandResult, Failure};

/// How the arrivals of a ladder or a search are spread over time.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ArrivalSpread {
    Constant,
    Poisson,
}

impl ArrivalSpread {
    /// The process; `seed` is for a random one.
    pub(crate) fn process(self, seed: u64) -> Process {
        match self {
            Self::Constant => Process::Constant,
            Self::Poisson => Process::Poisson(seed),
        }
    }
}

/// When `millrace load` sends requests, and how long its phases are.
#[derive(Args)]
#[command(next_help_heading = LOOP)]
pub(crate) struct PhaseFlags {
    /// How arrivals are spread: constant, poisson (at random), or file:TIMES.txt (seconds, one a
    /// line; needs no --rate)
    #[arg(long, value_name = "HOW", default_value = "constant")]
    arrivals: Arrivals,
    /// Go through recorded arrivals, or a replay, this many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, hide_short_help = true)]
    speed: f64,
    /// Do not send a request of --rate that is later than this; it counts as an error
    #[arg(long, value_name = "TIME", value_parser = values::duration, hide_short_help = true)]
    deadline: Option<Duration>,
    /// Before the warm-up, let the rate or the number of connections rise for this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::duration, hide_short_help = true)]
    ramp_up: Duration,
    /// After the measured time, go on sending for this long; it is not measured
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::duration, conflicts_with = "requests", hide_short_help = true)]
    ramp_down: Duration,
    /// Let the statistics decide when the run is warm and long enough
    #[arg(long, conflicts_with_all = ["duration", "requests", "warmup"])]
    auto: bool,
    /// Half the 95 % intervals of mean time and rate at which --auto is content
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "2%",
        requires = "auto",
        hide_short_help = true
    )]
    auto_precision: Percent,
    /// The longest that --auto may take, warm-up included
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = values::duration, requires = "auto", hide_short_help = true)]
    auto_max: Duration,
}

/// Other flags about the times of requests.
pub(crate) struct AskedArrivals {
    pub(crate) rate: Option<f64>,
    pub(crate) seed: u64,
    pub(crate) duration: Option<Duration>,
    /// Times of arrivals of the workload, in nanoseconds.
    pub(crate) times: Option<Vec<u64>>,
}

/// How arrivals are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Arrivals {
    Constant,
    Poisson,
    File(PathBuf),
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "constant" => Ok(Self::Constant),
            "poisson" => Ok(Self::Poisson),
            _ => match text.strip_prefix("file:") {
                Some(path) if !path.is_empty() => Ok(Self::File(path.into())),
                _ => Err("write constant, poisson or file:FILE".to_owned()),
            },
        }
    }
}

/// A share, written as a percentage.
#[derive(Clone, Copy)]
struct Percent(f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix('%').map(str::trim);
        number
            .and_then(|number| number.parse::<f64>().ok())
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| "write a percentage, such as 2%".to_owned())
    }
}

impl PhaseFlags {
    /// Sets these flags in `plan`. Recorded arrivals last as long as the recording, unless the user
    /// asks for a shorter duration.
    pub(crate) fn apply(&self, plan: &mut Plan, asked: &AskedArrivals) -> CommandResult {
        let schedule = self.schedule(asked)?;
        if schedule.is_none() && self.deadline.is_some() {
            return Err(Failure::new("--deadline needs --rate or recorded arrivals"));
        }
        let is_recorded = asked.times.is_some() || matches!(self.arrivals, Arrivals::File(_));
        if !is_recorded && (self.speed - 1.0).abs() > f64::EPSILON {
            return Err(Failure::new(
                "--speed needs recorded arrivals: --arrivals file:FILE or --replay",
            ));
        }
        let stop = match plan.length.stop {
            Stop::Duration(_) if is_recorded => {
                Stop::Duration(asked.duration.unwrap_or(Duration::MAX))
            }
            _ if self.auto => Stop::Duration(self.auto_max),
            stop => stop,
        };
        plan.load.schedule = schedule;
        plan.length.stop = stop;
        plan.length.ramp_up = self.ramp_up;
        plan.length.ramp_down = self.ramp_down;
        plan.length.auto = self.auto.then_some(Auto {
            precision: self.auto_precision.0,
            max: self.auto_max,
        });
        Ok(())
    }

    fn schedule(&self, asked: &AskedArrivals) -> CommandResult<Option<Schedule>> {
        let process = match (&self.arrivals, asked.rate) {
            (Arrivals::File(_), _) if asked.times.is_some() => {
                return Err(Failure::new(
                    "--replay has its own times: leave out --arrivals",
                ));
            }
            (Arrivals::File(path), None) => return self.recording(path).map(Some),
            (Arrivals::File(_), Some(_)) => {
                return Err(Failure::new(
                    "recorded arrivals have their own rate: leave out --rate, or change it with --speed",
                ));
            }
            (Arrivals::Poisson, None) => {
                return Err(Failure::new("--arrivals poisson needs --rate"));
            }
            (Arrivals::Constant, None) => {
                let times = asked.times.as_deref();
                return times.map(|times| self.recorded(times)).transpose();
            }
            (Arrivals::Constant, Some(_)) => Process::Constant,
            (Arrivals::Poisson, Some(_)) => Process::Poisson(asked.seed),
        };
        Ok(asked.rate.map(|rate| Schedule {
            rate,
            process,
            deadline: self.deadline,
        }))
    }

    fn recording(&self, path: &Path) -> CommandResult<Schedule> {
        let failed = |what: String| Failure::new(format!("{}: {what}", path.display()));
        let text =
            fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let times = Schedule::times_from(&text).map_err(|error| failed(error.to_string()))?;
        if times.is_empty() {
            return Err(failed("no line has a time".to_owned()));
        }
        self.recorded(&times)
    }

    fn recorded(&self, times: &[u64]) -> CommandResult<Schedule> {
        let schedule = Schedule::recorded(times, self.speed).map_err(Failure::new)?;
        Ok(Schedule {
            deadline: self.deadline,
            ..schedule
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Percent};

    #[test]
    fn arrivals_and_percentages_are_read() {
        assert_eq!("poisson".parse(), Ok(Arrivals::Poisson));
        assert_eq!("file:a b".parse(), Ok(Arrivals::File("a b".into())));
        assert!("file:".parse::<Arrivals>().is_err() && "x".parse::<Arrivals>().is_err());
        let Percent(share) = "2.5 %".parse().ok().unwrap();
        assert!((share - 0.025).abs() < 1e-12);
        assert!("2".parse::<Percent>().is_err());
    }
}
