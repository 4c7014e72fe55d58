//! The levels of a sweep, as they are written on a command line: `50..1500/50`, `1..10`,
//! `1,2,4,8,16`.

mod climb;

use std::fmt;
use std::str::FromStr;

pub(crate) use climb::{Climb, LevelRun};

use millrace_client::Error;

/// Levels that a ladder may have: a sweep takes seconds for each.
const LEVELS: usize = 1000;
/// The highest level: what a schedule takes as its rate.
const HIGHEST: f64 = 1e8;

/// Rising levels above 0, at least one and at most a thousand.
///
/// ```
/// use millrace_runs::Ladder;
///
/// let ladder: Ladder = "1..3,10..30/10".parse()?;
/// assert_eq!(ladder.levels(), [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
/// # Ok::<(), millrace_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    levels: Vec<f64>,
    text: String,
}

impl Ladder {
    /// The levels, lowest first.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// A ladder of some of the levels.
    #[must_use]
    pub(crate) fn keep(&self, choose: impl FnOnce(&[f64]) -> Vec<f64>) -> Self {
        let levels = choose(&self.levels);
        let words: Vec<String> = levels.iter().map(f64::to_string).collect();
        Self {
            levels,
            text: words.join(","),
        }
    }

    /// The levels as numbers of connections.
    ///
    /// # Errors
    /// A level is no whole number.
    pub fn whole(&self) -> Result<Vec<usize>, Error> {
        match self.levels.iter().find(|level| level.fract() != 0.0) {
            None => Ok(self.levels.iter().map(|level| *level as usize).collect()),
            Some(level) => Err(Error::Plan(format!(
                "{level} in {} is no whole number of connections",
                self.text
            ))),
        }
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.text)
    }
}

impl FromStr for Ladder {
    type Err = Error;

    /// Numbers and ranges with commas between: `FROM..TO` in steps of 1, `FROM..TO/STEP` in other
    /// steps. `TO` is a level if a step falls on it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut levels = Vec::new();
        for part in text.split(',') {
            extend(&mut levels, part.trim())
                .map_err(|why| Error::Plan(format!("the levels {text:?}: {why}")))?;
        }
        Ok(Self {
            levels,
            text: text.trim().to_owned(),
        })
    }
}

/// Appends one number or range.
fn extend(levels: &mut Vec<f64>, part: &str) -> Result<(), String> {
    let (first, last, step) = match part.split_once("..") {
        None => {
            let level = number(part)?;
            (level, level, 1.0)
        }
        Some((from, rest)) => {
            let (to, step) = rest.split_once('/').unwrap_or((rest, "1"));
            (number(from)?, number(to)?, number(step)?)
        }
    };
    if last < first {
        return Err(format!(
            "{part} ends before it begins; levels are written from the lowest to the highest"
        ));
    }
    if levels.last().is_some_and(|before| *before >= first) {
        return Err(format!("{first} comes after a level that is as high"));
    }
    // A millionth of a step for 0.1..0.3/0.1, whose last step is not quite 2 in binary.
    let steps = ((last - first) / step + 1e-6).floor();
    if levels.len() as f64 + steps >= LEVELS as f64 {
        return Err(format!(
            "more than {LEVELS} levels; take longer steps, as in {first}..{last}/{}",
            ((last - first) / 100.0).ceil()
        ));
    }
    levels.extend((0..=steps as usize).map(|n| rounded(first + n as f64 * step)));
    Ok(())
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= HIGHEST => Ok(value),
        Ok(_) => Err(format!("{text} is not above 0 and at most {HIGHEST}")),
        Err(_) if text.is_empty() => Err("a number is missing".to_owned()),
        Err(_) => Err(format!(
            "{text:?} is no number; write 50..1500/50, 1..10 or 1,2,4,8"
        )),
    }
}

/// Without the digits that only binary fractions have: 0.3 in place of 0.30000000000000004.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[f64]) {
        let ladder: Ladder = text.parse().unwrap();
        assert_eq!(ladder.levels(), expected, "{text}");
    }

    fn refused(text: &str, word: &str) {
        let message = text.parse::<Ladder>().unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }

    #[test]
    fn numbers_and_ranges_become_levels() {
        check("16", &[16.0]);
        check("1..4", &[1.0, 2.0, 3.0, 4.0]);
        check("50..200/50", &[50.0, 100.0, 150.0, 200.0]);
        check("50..199/50", &[50.0, 100.0, 150.0]);
        check("1, 2, 4, 8..10", &[1.0, 2.0, 4.0, 8.0, 9.0, 10.0]);
        check("0.1..0.4/0.1", &[0.1, 0.2, 0.3, 0.4]);
        assert_eq!("50..1500/50".parse::<Ladder>().unwrap().levels().len(), 30);
        assert_eq!("1..1000".parse::<Ladder>().unwrap().levels().len(), 1000);
    }

    #[test]
    fn what_is_wrong_is_said() {
        refused("", "missing");
        refused("1,,2", "missing");
        refused("..5", "missing");
        refused("a", "no number");
        refused("1..2..3", "no number");
        refused("0..5", "not above 0");
        refused("-3", "not above 0");
        refused("nan", "not above 0");
        refused("1..5/0", "not above 0");
        refused("1e9", "at most");
        refused("10..1", "ends before");
        refused("1,1", "as high");
        refused("1..5,3", "as high");
        refused("1..1001", "more than 1000");
        refused("1..1e8/1e-6", "more than 1000");
    }

    #[test]
    fn connections_are_whole_numbers() {
        let whole = |text: &str| text.parse::<Ladder>().unwrap().whole();
        assert_eq!(whole("1..3").unwrap(), [1, 2, 3]);
        assert!(whole("1,2.5").unwrap_err().to_string().contains("2.5"));
    }
}
