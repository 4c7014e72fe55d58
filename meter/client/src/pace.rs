//! How long a client waits between the response to one request and the next.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use base_clock::{Nanos, nanos};
use millrace_stats::span;

/// The longest mean of a pause: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The time between the requests of one connection or one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// No time: the next request is sent when the response to the last is complete.
    #[default]
    AtOnce,
    /// A pause after each response.
    Think(Think),
    /// Requests are sent at this distance. If the response before is late, the next request is sent
    /// when that response arrives, and counts as a missed cycle.
    Cycle(Duration),
}

/// The distribution of a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    /// Always the same.
    Constant(Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
    /// Every length between two as likely as the others.
    Uniform(Duration, Duration),
}

impl Think {
    /// The mean.
    pub fn mean(self) -> Duration {
        match self {
            Self::Constant(mean) | Self::Exponential(mean) => mean,
            Self::Uniform(from, to) => (from + to) / 2,
        }
    }

    /// The pause that belongs to 64 random bits.
    pub(crate) fn draw(self, random: u64) -> Nanos {
        let uniform = unit(random);
        match self {
            Self::Constant(pause) => nanos(pause),
            // The inverse of the distribution function; `unit` is never 0.
            Self::Exponential(mean) => (nanos(mean) as f64 * -uniform.ln()) as Nanos,
            Self::Uniform(from, to) => {
                nanos(from) + (nanos(to.saturating_sub(from)) as f64 * uniform) as Nanos
            }
        }
    }
}

/// A number above 0 and below 1 from 64 random bits, of which the upper 53 count.
pub(crate) fn unit(random: u64) -> f64 {
    ((random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

impl Pace {
    /// Refuses what cannot be kept.
    pub(crate) fn check(self) -> Result<(), Error> {
        let longest = match self {
            Self::AtOnce => return Ok(()),
            Self::Think(Think::Uniform(from, to)) if from > to => {
                return Err(Error::Plan(
                    "the longest think time must not be shorter than the shortest".to_owned(),
                ));
            }
            Self::Think(Think::Uniform(_, to)) => to,
            Self::Think(think) => think.mean(),
            Self::Cycle(Duration::ZERO) => {
                return Err(Error::Plan(
                    "a cycle must be longer than nothing".to_owned(),
                ));
            }
            Self::Cycle(cycle) => cycle,
        };
        if longest > LONGEST {
            return Err(Error::Plan(
                "a pause between requests may be a day at most".to_owned(),
            ));
        }
        Ok(())
    }
}

impl FromStr for Think {
    type Err = Error;

    /// `TIME`, `exp:TIME` or `uniform:TIME-TIME`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let time = |text: &str| span::duration(text).filter(|time| !time.is_zero());
        let found = match text.split_once(':') {
            None => time(text).map(Self::Constant),
            Some(("exp", mean)) => time(mean).map(Self::Exponential),
            Some(("uniform", bounds)) => bounds
                .split_once('-')
                .and_then(|(from, to)| Some(Self::Uniform(time(from)?, time(to)?))),
            Some(_) => None,
        };
        let think = found.ok_or_else(|| {
            Error::Plan(format!(
                "the think time {text:?} is not understood; write a time such as 500ms, exp:500ms (exponential, with \
                 this mean) or uniform:100ms-1s"
            ))
        })?;
        Pace::Think(think).check().map(|()| think)
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtOnce => out.write_str("no pause"),
            Self::Think(Think::Constant(time)) => write!(out, "think time {time:?}"),
            Self::Think(Think::Exponential(mean)) => {
                write!(out, "exponential think time, mean {mean:?}")
            }
            Self::Think(Think::Uniform(from, to)) => {
                write!(out, "uniform think time, {from:?} to {to:?}")
            }
            Self::Cycle(time) => write!(out, "one request every {time:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_stats::random::mix;

    #[test]
    fn think_times_are_read_and_have_their_means() {
        for (text, shown) in [
            ("500ms", "think time 500ms"),
            ("exp:2s", "exponential think time, mean 2s"),
            ("uniform:100ms-1s", "uniform think time, 100ms to 1s"),
        ] {
            let think: Think = text.parse().unwrap();
            assert_eq!(Pace::Think(think).to_string(), shown);
            let sum: f64 = (0..20_000).map(|n| think.draw(mix(3, n)) as f64).sum();
            let mean = nanos(think.mean()) as f64;
            assert!((sum / 20_000.0 / mean - 1.0).abs() < 0.03, "{text}");
        }
    }

    #[test]
    fn an_invalid_think_time_is_refused_with_the_right_form() {
        for text in [
            "",
            "5",
            "exp:",
            "gauss:1s",
            "uniform:1s",
            "uniform:2s-1s",
            "0s",
            "exp:3000h",
        ] {
            assert!(text.parse::<Think>().is_err(), "{text}");
        }
        let error = "soon".parse::<Think>().unwrap_err().to_string();
        assert!(
            error.contains("\"soon\"") && error.contains("exp:500ms"),
            "{error}"
        );
        assert!(Pace::Cycle(Duration::ZERO).check().is_err());
    }
}
