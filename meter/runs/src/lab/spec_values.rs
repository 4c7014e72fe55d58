//! The small values of an experiment's file: times, command lines, signals.

use std::fmt;
use std::time::Duration;

use rustix::process::Signal;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use millrace_stats::span;

/// The longest time: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A time such as `500ms`, `5s` or `2min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl Time {
    /// Reads it.
    ///
    /// # Errors
    /// The text is no time, or one longer than a day.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let time = span::duration(text).filter(|time| *time <= LONGEST);
        time.map(Self).ok_or_else(|| {
            format!("{text:?} is no time; write it as 500ms, 5s or 2min, a day at most")
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// Command to start: a line for `/bin/sh -c`, or a program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandLine {
    Shell(String),
    Program(Vec<String>),
}

impl CommandLine {
    /// Every text in it.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Self::Shell(line) => std::slice::from_ref(line),
            Self::Program(words) => words,
        }
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct CommandLineVisitor;
        impl<'de> Visitor<'de> for CommandLineVisitor {
            type Value = CommandLine;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a command line, or an array of a program and its arguments")
            }

            fn visit_str<E: de::Error>(self, line: &str) -> Result<CommandLine, E> {
                if line.trim().is_empty() {
                    return Err(E::custom("the command is empty"));
                }
                Ok(CommandLine::Shell(line.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<CommandLine, A::Error> {
                let mut words: Vec<String> = Vec::new();
                while let Some(word) = seq.next_element()? {
                    words.push(word);
                }
                if words.first().is_none_or(String::is_empty) {
                    return Err(de::Error::custom("the command is empty"));
                }
                Ok(CommandLine::Program(words))
            }
        }
        from.deserialize_any(CommandLineVisitor)
    }
}

/// How a server is asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Signal(Signal),
    Command(CommandLine),
}

impl<'de> Deserialize<'de> for Ending {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let line = CommandLine::deserialize(from)?;
        let CommandLine::Shell(name) = &line else {
            return Ok(Self::Command(line));
        };
        let signal = match name.as_str() {
            "SIGTERM" => Signal::TERM,
            "SIGINT" => Signal::INT,
            "SIGQUIT" => Signal::QUIT,
            "SIGHUP" => Signal::HUP,
            "SIGUSR1" => Signal::USR1,
            "SIGUSR2" => Signal::USR2,
            "SIGWINCH" => Signal::WINCH,
            "SIGKILL" => Signal::KILL,
            other if other.starts_with("SIG") => {
                return Err(de::Error::custom(format!(
                    "{other} is no signal that ends a server; SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, \
                     SIGWINCH and SIGKILL are"
                )));
            }
            _ => return Ok(Self::Command(line)),
        };
        Ok(Self::Signal(signal))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer as _;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    fn time(text: &str) -> Result<Time, Error> {
        let from: StrDeserializer<'_, Error> = text.into_deserializer();
        Time::deserialize(from)
    }

    #[test]
    fn times_have_a_unit_and_are_a_day_at_most() {
        assert_eq!(time("1.5s"), Ok(Time(Duration::from_millis(1500))));
        assert_eq!(time("0s"), Ok(Time(Duration::ZERO)));
        assert_eq!(time("24h"), Ok(Time(LONGEST)));
        for bad in ["", "5", "s", "-1s", "1441min"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
