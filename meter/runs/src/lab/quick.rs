//! Short and few runs of a study: what `[quick]` in `study.toml` changes in its experiments.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::experiment::Experiment;
use super::spec_values::Time;
use super::study::must_be_one_of;
use crate::Ladder;
use millrace_client::Error;

/// Most repeats, and the usual ones.
const REPEATS: [usize; 2] = [1000, 1];
/// Levels that are left of a ladder without levels of its own.
const LEVELS: usize = 5;
/// The usual length of a run, and of its warm-up.
const LENGTHS: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(100)];

/// A mistake and its place.
type Mistake = (Range<usize>, String);

/// The table as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickSpec {
    duration: Option<Spanned<EachOrAll<String>>>,
    warmup: Option<Spanned<EachOrAll<String>>>,
    repeats: Option<Spanned<usize>>,
    levels: Option<Spanned<EachOrAll<LevelsSpec>>>,
}

/// A value for every experiment, or values for some by the names of their files.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum EachOrAll<T> {
    Each(BTreeMap<String, T>),
    All(T),
}

/// Levels: a text for a ladder, or the values of a variable.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LevelsSpec {
    Text(String),
    Values(Vec<f64>),
}

/// Changes that a quick run makes in every experiment of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickRuns {
    duration: PerExperiment<Duration>,
    warmup: PerExperiment<Duration>,
    repeats: usize,
    levels: PerExperiment<QuickLevels>,
}

/// The levels of a quick run.
#[derive(Clone, Debug, PartialEq)]
enum QuickLevels {
    Ladder(Ladder),
    /// Of a variable.
    Values(Vec<f64>),
}

/// A value for every experiment, or for some.
#[derive(Clone, Debug, PartialEq)]
struct PerExperiment<T> {
    all: Option<T>,
    each: BTreeMap<String, T>,
}

impl<T> PerExperiment<T> {
    fn none() -> Self {
        Self {
            all: None,
            each: BTreeMap::new(),
        }
    }

    fn of(&self, file: &str) -> Option<&T> {
        self.each.get(file).or(self.all.as_ref())
    }

    /// The values of one key, of a study with these experiments.
    fn read<S>(
        key: Option<&Spanned<EachOrAll<S>>>,
        files: &[&str],
        value: impl Fn(&S) -> Result<T, String>,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        let mut choice = Self::none();
        let Some(key) = key else {
            return choice;
        };
        let mut keep = |read: Result<T, String>| match read {
            Ok(value) => Some(value),
            Err(sentence) => {
                mistakes.push((key.span(), sentence));
                None
            }
        };
        match key.get_ref() {
            EachOrAll::All(all) => choice.all = keep(value(all)),
            EachOrAll::Each(each) => {
                for (file, own) in each {
                    let own = must_be_one_of(file, files).and_then(|()| value(own));
                    let own = keep(own).map(|own| (file.clone(), own));
                    choice.each.extend(own);
                }
            }
        }
        choice
    }
}

impl QuickRuns {
    /// Reads the table of a study with these experiments.
    ///
    /// # Errors
    /// All mistakes in it, with their places.
    pub(super) fn read(spec: &QuickSpec, files: &[&str]) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let time = |text: &String| Time::parse(text).map(|time| time.0);
        let mut quick = Self {
            duration: PerExperiment::read(spec.duration.as_ref(), files, time, &mut mistakes),
            warmup: PerExperiment::read(spec.warmup.as_ref(), files, time, &mut mistakes),
            levels: PerExperiment::read(spec.levels.as_ref(), files, levels, &mut mistakes),
            ..Self::default()
        };
        if let Some(repeats) = &spec.repeats {
            quick.repeats = *repeats.get_ref();
            if !(1..=REPEATS[0]).contains(&quick.repeats) {
                let sentence = format!("repeats must be from 1 to {}", REPEATS[0]);
                mistakes.push((repeats.span(), sentence));
            }
        }
        match mistakes.is_empty() {
            true => Ok(quick),
            false => Err(mistakes),
        }
    }

    /// Makes the runs of `experiment`, which is in `file`, short and few.
    ///
    /// # Errors
    /// The levels for it do not fit its ladder.
    pub fn shorten(&self, file: &str, experiment: &mut Experiment) -> Result<(), Error> {
        let [duration, warmup] = LENGTHS;
        experiment.set_duration(self.duration.of(file).copied().unwrap_or(duration));
        experiment.set_warmup(self.warmup.of(file).copied().unwrap_or(warmup));
        experiment.set_repeats(self.repeats);
        match self.levels.of(file) {
            Some(QuickLevels::Ladder(levels)) => experiment.set_levels(levels),
            Some(QuickLevels::Values(values)) => experiment.set_values(values),
            None => {
                experiment.thin(LEVELS);
                Ok(())
            }
        }
    }
}

impl Default for QuickRuns {
    fn default() -> Self {
        Self {
            duration: PerExperiment::none(),
            warmup: PerExperiment::none(),
            repeats: REPEATS[1],
            levels: PerExperiment::none(),
        }
    }
}

fn levels(spec: &LevelsSpec) -> Result<QuickLevels, String> {
    match spec {
        LevelsSpec::Text(text) => {
            let ladder: Result<Ladder, Error> = text.parse();
            ladder.map(QuickLevels::Ladder).map_err(|error| {
                format!("{error}; values of a variable are an array of numbers, such as [0, 100]")
            })
        }
        LevelsSpec::Values(values) => {
            let fine = !values.is_empty() && values.iter().all(|value| value.is_finite());
            fine.then(|| QuickLevels::Values(values.clone()))
                .ok_or_else(|| "the values of a variable are at least one number".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const FILES: [&str; 2] = ["a.toml", "b.toml"];

    fn read(text: &str) -> Result<QuickRuns, Vec<Mistake>> {
        let spec: QuickSpec = toml::from_str(text).unwrap();
        QuickRuns::read(&spec, &FILES)
    }

    fn experiment(ladder: &str) -> Experiment {
        let text = format!(
            "title = 'x'\n[ladder]\n{ladder}\n[workload]\n[[server]]\nname = 'a'\nstart = 'a'\n"
        );
        Experiment::read(&text, Path::new("/")).unwrap()
    }

    fn values(experiment: &Experiment) -> Vec<f64> {
        let levels = experiment.levels().into_iter();
        levels.filter_map(|level| level.value).collect()
    }

    #[test]
    fn a_variable_may_be_zero_in_a_quick_run() {
        let quick = read("levels = { 'a.toml' = [0, 100, 10000] }").unwrap();
        let ladder = "variable = 'changes'\nvalues = [0, 1, 10, 100, 1000, 10000]";
        let mut own = experiment(ladder);
        quick.shorten("a.toml", &mut own).unwrap();
        assert_eq!(values(&own), [0.0, 100.0, 10_000.0]);
        let mut other = experiment(ladder);
        quick.shorten("b.toml", &mut other).unwrap();
        assert_eq!(values(&other), [0.0, 1.0, 100.0, 1000.0, 10_000.0]);
        let mut connections = experiment("connections = '1..9'");
        let error = quick.shorten("a.toml", &mut connections).unwrap_err();
        assert!(error.to_string().contains("not values"), "{error}");
    }

    #[test]
    fn each_experiment_may_have_its_own_lengths() {
        let quick = read("duration = { 'a.toml' = '5s' }\nwarmup = '2s'").unwrap();
        for (file, seconds) in [("a.toml", 7.0), ("b.toml", 2.3)] {
            let mut own = experiment("connections = '1'");
            quick.shorten(file, &mut own).unwrap();
            assert_eq!(own.planned_time().as_secs_f64(), seconds, "{file}");
        }
    }

    #[test]
    fn mistakes_are_all_named() {
        for (text, expected) in [
            ("duration = '5'", "\"5\" is no time"),
            (
                "warmup = { 'c.toml' = '1s' }",
                "none of the experiments: a.toml, b.toml",
            ),
            ("levels = '0,5'", "an array of numbers, such as [0, 100]"),
            ("levels = []", "at least one number"),
            ("repeats = 1001", "from 1 to 1000"),
        ] {
            let mistakes = read(text).unwrap_err();
            assert!(mistakes[0].1.contains(expected), "{text}: {mistakes:?}");
        }
        assert_eq!(read("duration = 'x'\nlevels = 'x'").unwrap_err().len(), 2);
    }
}
