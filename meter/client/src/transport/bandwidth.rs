//! Bandwidths as text: `50K` bytes, `400kbit`.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The least bandwidth: with less, one segment would take more than a second.
const LEAST: f64 = 1_000.0;
/// The greatest bandwidth: with more, pacing has no effect.
const MOST: f64 = 1e11;

/// Bytes a second, in one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// A bandwidth of `bytes_per_second`.
    ///
    /// # Errors
    /// It is under 1,000 or over 100 thousand million.
    pub fn new(bytes_per_second: f64) -> Result<Self, Error> {
        if (LEAST..=MOST).contains(&bytes_per_second) {
            Ok(Self(bytes_per_second))
        } else {
            Err(Error::Plan(format!(
                "a bandwidth must be from 1K to 100G bytes a second, not {bytes_per_second}"
            )))
        }
    }

    /// Bytes a second.
    pub fn bytes_per_second(self) -> f64 {
        self.0
    }
}

/// Bytes per second with `K`, `M` or `G`, or bits per second with `kbit`, `Mbit` or `Gbit`; each is
/// a thousand of the one before, as in networks. Case does not matter.
impl FromStr for Bandwidth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" => Some(1.0),
            "k" => Some(1e3),
            "m" => Some(1e6),
            "g" => Some(1e9),
            "bit" => Some(1.0 / 8.0),
            "kbit" => Some(1e3 / 8.0),
            "mbit" => Some(1e6 / 8.0),
            "gbit" => Some(1e9 / 8.0),
            _ => None,
        };
        match (number.parse::<f64>(), factor) {
            (Ok(number), Some(factor)) => Self::new(number * factor),
            _ => Err(Error::Plan(format!(
                "{text:?} is no bandwidth: write bytes a second as 50K or 2M, or bits as 400kbit or 16Mbit"
            ))),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} kbit/s", self.0 * 8.0 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_bits_are_told_apart() {
        let parse = |text: &str| text.parse::<Bandwidth>().map(|rate| rate.0).ok();
        assert_eq!(parse("50K"), Some(50_000.0));
        assert_eq!(parse("400kbit"), Some(50_000.0));
        assert_eq!(parse("1.5m"), Some(1_500_000.0));
        assert_eq!(parse("1Gbit"), Some(125_000_000.0));
        assert_eq!(parse("1000"), Some(1_000.0));
        for bad in [
            "", "K", "50X", "50 K", "-5K", "1e9", "999", "7kbit", "1.2.3K", "101G", "50KK",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
