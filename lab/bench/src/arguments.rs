//! The command line, and where results go.

use std::{collections::VecDeque, fs, str::FromStr};

use serde_json::Value;

use crate::Result;

/// Rest of the command line.
pub(crate) struct Arguments(VecDeque<String>);

impl Arguments {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        Self(words.collect())
    }

    /// The next word of any kind.
    pub(crate) fn word(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    /// Takes `--name VALUE` from any place.
    pub(crate) fn option<T: FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.0.iter().position(|word| word == name) else {
            return Ok(None);
        };
        self.0.remove(at);
        let value = self
            .0
            .remove(at)
            .ok_or_else(|| format!("{name} wants a value"))?;
        value
            .parse()
            .map(Some)
            .map_err(|_| format!("{name} does not take {value:?}"))
    }

    /// Takes `--name` from any place; whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let at = self.0.iter().position(|word| word == name);
        at.and_then(|at| self.0.remove(at)).is_some()
    }

    /// To be called when everything known has been taken.
    pub(crate) fn end(mut self) -> Result<()> {
        match self.word() {
            Some(word) => Err(format!("{word:?} is not understood; see lab-bench --help")),
            None => Ok(()),
        }
    }
}

/// A result for people and for programs: the table goes to stdout unless the JSON does.
pub(crate) fn publish(table: &str, json: &Value, to: Option<&str>) -> Result<()> {
    match to {
        Some("-") => {
            eprint!("{table}");
            println!("{json:#}");
            Ok(())
        }
        Some(file) => {
            print!("{table}");
            fs::write(file, format!("{json:#}\n")).map_err(|error| format!("{file}: {error}"))
        }
        None => {
            print!("{table}");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    #[test]
    fn options_stand_anywhere_and_leftovers_are_refused() {
        let words = ["site", "--connections", "8", "--json"].map(str::to_owned);
        let mut arguments = Arguments::new(words.into_iter());
        assert_eq!(arguments.option::<u32>("--connections"), Ok(Some(8)));
        assert_eq!(arguments.option::<u32>("--blocks"), Ok(None));
        assert!(arguments.option::<String>("--json").is_err());
        assert_eq!(arguments.word().as_deref(), Some("site"));
        assert_eq!(arguments.end(), Ok(()));
    }
}
