//! A shorter form of an experiment: what a trial changes.

use std::time::Duration;

use toml::Spanned;

use super::experiment::Experiment;
use super::spec::LadderSpec;
use super::spec_values::Time;
use crate::Ladder;
use millrace_client::Error;

impl Experiment {
    /// Replaces the number of repeats.
    pub fn set_repeats(&mut self, repeats: usize) {
        self.repeats = Spanned::new(self.repeats.span(), repeats);
    }

    /// Replaces the length of the runs, also where it was a number of requests.
    pub fn set_duration(&mut self, duration: Duration) {
        let workload = self.workload.get_mut();
        workload.duration = Some(Time(duration));
        workload.requests = None;
    }

    /// Replaces the warm-up before each run.
    pub fn set_warmup(&mut self, warmup: Duration) {
        self.workload.get_mut().warmup = Time(warmup);
    }

    /// Replaces the numbers of connections.
    ///
    /// # Errors
    /// Its ladder is of another kind, or a level is no whole number.
    pub fn set_connections(&mut self, connections: Ladder) -> Result<(), Error> {
        connections.whole()?;
        if let Some(ladder) = &self.ladder
            && ladder.get_ref().connections.is_none()
        {
            return Err(Error::Plan(format!(
                "the levels of this experiment are {}, not connections",
                ladder.get_ref().kind()
            )));
        }
        let levels = LadderSpec {
            connections: Some(connections),
            ..LadderSpec::default()
        };
        self.ladder = Some(Spanned::new(0..0, levels));
        Ok(())
    }

    /// Replaces the levels by others of the kind that the ladder has. Without a ladder nothing
    /// changes.
    ///
    /// # Errors
    /// A level is no whole number where the ladder has whole numbers.
    pub fn set_levels(&mut self, levels: &Ladder) -> Result<(), Error> {
        let Some(ladder) = &mut self.ladder else {
            return Ok(());
        };
        let ladder = ladder.get_mut();
        if let Some(values) = &mut ladder.values {
            *values.get_mut() = levels.levels().to_vec();
            return Ok(());
        }
        if ladder.rates.is_none() {
            levels.whole()?;
        }
        for own in [
            &mut ladder.rates,
            &mut ladder.connections,
            &mut ladder.counts,
        ]
        .into_iter()
        .flatten()
        {
            *own = levels.clone();
        }
        Ok(())
    }

    /// Replaces the values of the variable.
    ///
    /// # Errors
    /// Its ladder is of another kind.
    pub(super) fn set_values(&mut self, values: &[f64]) -> Result<(), Error> {
        let Some(ladder) = &mut self.ladder else {
            return Ok(());
        };
        let ladder = ladder.get_mut();
        let kind = ladder.kind();
        match &mut ladder.values {
            Some(own) => {
                *own.get_mut() = values.to_vec();
                Ok(())
            }
            None => Err(Error::Plan(format!(
                "the levels of this experiment are {kind}, not values of a variable: write them as a text"
            ))),
        }
    }

    /// Keeps at most `most` levels: the first, the last, and some between.
    pub fn thin(&mut self, most: usize) {
        let Some(ladder) = &mut self.ladder else {
            return;
        };
        let ladder = ladder.get_mut();
        if let Some(values) = &mut ladder.values {
            let thinned = thinned(values.get_ref(), most);
            *values.get_mut() = thinned;
        }
        for own in [
            &mut ladder.rates,
            &mut ladder.connections,
            &mut ladder.counts,
        ]
        .into_iter()
        .flatten()
        {
            *own = own.keep(|levels| thinned(levels, most));
        }
    }

    /// Planned time of all its runs, without starts of servers and preparations.
    pub fn planned_time(&self) -> Duration {
        super::schedule::time(self)
    }
}

/// At most `most` of `levels`, evenly chosen with both ends.
fn thinned(levels: &[f64], most: usize) -> Vec<f64> {
    let (count, last) = (levels.len(), levels.len().saturating_sub(1));
    if count <= most || most < 2 {
        return levels.to_vec();
    }
    (0..most)
        .map(|n| levels[(n * last + (most - 1) / 2) / (most - 1)])
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn experiment(ladder: &str) -> Experiment {
        let text = format!(
            "title = 'x'\n[ladder]\n{ladder}\n[workload]\npath = '/{{n}}'\ncount = 3\n[[server]]\nname = 'a'\nstart = 'a {{size}}'\n\
             [values]\n{}",
            if ladder.contains("variable") {
                ""
            } else {
                "size = '1'"
            }
        );
        Experiment::read(&text, Path::new("/")).unwrap()
    }

    fn levels(experiment: &Experiment) -> Vec<String> {
        experiment
            .levels()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_thinned_ladder_keeps_its_ends() {
        let all: Vec<f64> = (1..=30).map(f64::from).collect();
        assert_eq!(thinned(&all, 5), [1.0, 8.0, 16.0, 23.0, 30.0]);
        assert_eq!(thinned(&all[..3], 5), all[..3]);
        assert_eq!(thinned(&[], 5), [0.0; 0]);
        let mut rates = experiment("rates = '50..1500/50'");
        rates.thin(3);
        let expected = [
            "1 connection, 50/s",
            "1 connection, 800/s",
            "1 connection, 1500/s",
        ];
        assert_eq!(levels(&rates), expected);
        let mut values = experiment("variable = 'size'\nvalues = [0, 1, 2, 3]");
        values.thin(2);
        assert_eq!(
            levels(&values),
            ["1 connection, at 0", "1 connection, at 3"]
        );
    }

    #[test]
    fn other_levels_are_of_the_same_kind() {
        let ladder: Ladder = "1,2.5".parse().unwrap();
        let mut rates = experiment("rates = '50'");
        rates.set_levels(&ladder).unwrap();
        assert_eq!(levels(&rates), ["1 connection, 1/s", "1 connection, 2.5/s"]);
        let mut counts = experiment("counts = '1..9'");
        assert!(counts.set_levels(&ladder).is_err());
        counts.set_levels(&"5".parse().unwrap()).unwrap();
        assert_eq!(levels(&counts), ["1 connection, 5 paths"]);
        let error = counts.set_connections("1".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("numbers of paths"), "{error}");
    }
}
