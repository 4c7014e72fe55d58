//! The options of `millpond load` that say when requests are sent: arrivals, pauses, sessions, phases.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use millpond_load::{Auto, Pace, Plan, Process, Schedule, Stop, Think};
use millpond_site::Config;

use crate::failure::{Failure, Outcome};

/// When requests are sent.
#[derive(Args)]
pub(crate) struct LoopOptions {
    /// How what is due is spread over time: constant (at equal distances), poisson (at random, as from independent
    /// visitors), or file:FILE (recorded: a time in seconds on each line, in order; needs no --rate)
    #[arg(long, value_name = "HOW", default_value = "constant")]
    arrivals: Arrivals,
    /// Go through recorded arrivals this many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    speed: f64,
    /// Do not send a request of --rate that is later than this; it counts as an error
    #[arg(long, value_name = "TIME", value_parser = Config::duration)]
    deadline: Option<Duration>,
    /// Pause after each answer: 500ms, exp:500ms (exponential with this mean) or uniform:100ms-1s
    #[arg(long, value_name = "TIME", conflicts_with = "cycle")]
    think: Option<Think>,
    /// Send the next request of a connection this long after the last one; at once if the answer came later
    #[arg(long, value_name = "TIME", value_parser = Config::duration)]
    cycle: Option<Duration>,
    /// What arrives at --rate are sessions of N requests each, with --think between them
    #[arg(long, value_name = "N")]
    session: Option<u64>,
    /// Before the warm-up, let the rate or the number of connections rise for this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Config::duration)]
    ramp_up: Duration,
    /// Let the statistics decide when the run is warm and long enough
    #[arg(long, conflicts_with_all = ["duration", "requests", "warmup"])]
    auto: bool,
    /// Half the 95 % intervals of mean time and rate at which --auto is content
    #[arg(long, value_name = "PERCENT", default_value = "2%", requires = "auto")]
    auto_precision: Percent,
    /// The longest that --auto may take, warm-up included
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = Config::duration, requires = "auto")]
    auto_max: Duration,
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

impl LoopOptions {
    /// `plan` with these options, at `rate` if there is one; `duration` is what was asked for. Recorded arrivals last as
    /// long as they do, unless it is shorter. `recording` has times in nanoseconds that go before --arrivals.
    pub(crate) fn apply(
        &self,
        plan: Plan,
        rate: Option<f64>,
        seed: u64,
        duration: Option<Duration>,
        recording: Option<&[u64]>,
    ) -> Outcome<Plan> {
        let schedule = match recording {
            Some(times) => Some(self.repeat(times).map_err(Failure::new)?),
            None => self.schedule(rate, seed)?,
        };
        if schedule.is_none() && self.deadline.is_some() {
            return Err(Failure::new("--deadline needs --rate or recorded arrivals"));
        }
        let is_recorded = recording.is_some() || matches!(self.arrivals, Arrivals::File(_));
        let stop = match plan.stop {
            Stop::Duration(_) if is_recorded => Stop::Duration(duration.unwrap_or(Duration::MAX)),
            _ if self.auto => Stop::Duration(self.auto_max),
            stop => stop,
        };
        let pace = match (self.think, self.cycle) {
            (Some(think), _) => Pace::Think(think),
            (None, Some(cycle)) => Pace::Cycle(cycle),
            (None, None) => Pace::AtOnce,
        };
        Ok(Plan {
            schedule,
            stop,
            pace,
            session: self.session,
            ramp_up: self.ramp_up,
            auto: self.auto.then_some(Auto {
                precision: self.auto_precision.0,
                max: self.auto_max,
            }),
            ..plan
        })
    }

    fn schedule(&self, rate: Option<f64>, seed: u64) -> Outcome<Option<Schedule>> {
        let process = match (&self.arrivals, rate) {
            (Arrivals::File(path), None) => return self.recorded(path).map(Some),
            (Arrivals::File(_), Some(_)) => {
                return Err(Failure::new(
                    "recorded arrivals have their own rate: leave out --rate, or change it with --speed",
                ));
            }
            (Arrivals::Poisson, None) => {
                return Err(Failure::new("--arrivals poisson needs --rate"));
            }
            (Arrivals::Constant, None) => return Ok(None),
            (Arrivals::Constant, Some(_)) => Process::Constant,
            (Arrivals::Poisson, Some(_)) => Process::Poisson(seed),
        };
        Ok(rate.map(|rate| Schedule {
            rate,
            process,
            deadline: self.deadline,
        }))
    }

    fn recorded(&self, path: &PathBuf) -> Outcome<Schedule> {
        let failed = |what: String| Failure::new(format!("{}: {what}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let times = Schedule::times_from(&text).map_err(|error| failed(error.to_string()))?;
        self.repeat(&times)
            .map_err(|error| failed(error.to_string()))
    }

    fn repeat(&self, times: &[u64]) -> Result<Schedule, millpond_load::Error> {
        Ok(Schedule {
            deadline: self.deadline,
            ..Schedule::recorded(times, self.speed)?
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
