//! Pauses between requests: what a visitor does while reading.

use std::str::FromStr;
use std::time::Duration;

use crate::random::Random;

/// The longest pause that may be asked for; a random one may be longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a pause is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pause {
    /// Always as long.
    Fixed(Duration),
    /// Exponentially distributed with this mean: it ends at any moment with the same probability.
    Exponential(Duration),
    /// Uniformly distributed between two lengths.
    Uniform(Duration, Duration),
}

impl Pause {
    /// The length of one pause.
    pub(crate) fn pick(self, random: &mut Random) -> Duration {
        match self {
            Self::Fixed(length) => length,
            // Of 1 − u, which is never 0.
            Self::Exponential(mean) => mean.mul_f64(-(1.0 - random.uniform()).ln()),
            Self::Uniform(least, most) => least + (most - least).mul_f64(random.uniform()),
        }
    }
}

impl FromStr for Pause {
    type Err = String;

    /// Reads `500ms`, `exp:2s` or `uniform:1s-3s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no pause: write 500ms, \"exp:2s\" or \"uniform:1s-3s\"");
        let length = |text: &str| length(text).ok_or_else(wrong);
        let pause = match text.split_once(':') {
            None => Self::Fixed(length(text)?),
            Some(("exp", mean)) => Self::Exponential(length(mean)?),
            Some(("uniform", range)) => {
                let (least, most) = range.split_once('-').ok_or_else(wrong)?;
                Self::Uniform(length(least)?, length(most)?)
            }
            Some(_) => return Err(wrong()),
        };
        match pause {
            Self::Uniform(least, most) if least > most => {
                Err(format!("{text:?} ends before it begins"))
            }
            Self::Fixed(most) | Self::Exponential(most) | Self::Uniform(_, most)
                if most > LONGEST =>
            {
                Err(format!("{text:?} is more than a day"))
            }
            pause => Ok(pause),
        }
    }
}

/// A number with `us`, `ms`, `s`, `min` or `h`.
fn length(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..at].parse().ok()?;
    let unit = match text[at..].trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read() {
        let ms = Duration::from_millis;
        for (text, pause) in [
            ("500ms", Pause::Fixed(ms(500))),
            ("1.5s", Pause::Fixed(ms(1500))),
            ("exp:2min", Pause::Exponential(ms(120_000))),
            ("uniform:100ms-1s", Pause::Uniform(ms(100), ms(1000))),
        ] {
            assert_eq!(text.parse(), Ok(pause));
        }
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "exp:",
            "uniform:1s",
            "uniform:2s-1s",
            "gamma:1s",
            "25h",
            "1e99s",
            "..s",
        ] {
            assert!(text.parse::<Pause>().is_err(), "{text}");
        }
    }

    #[test]
    fn pauses_have_their_mean() {
        let mut random = Random::new(5);
        for text in ["exp:1s", "uniform:0s-2s", "1s"] {
            let pause: Pause = text.parse().unwrap();
            let sum: f64 = (0..10_000)
                .map(|_| pause.pick(&mut random).as_secs_f64())
                .sum();
            assert!((sum / 10_000.0 - 1.0).abs() < 0.05, "{text}: {sum}");
        }
    }
}
