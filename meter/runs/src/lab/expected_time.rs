//! How long an experiment will probably take.

use std::time::Duration;

use super::experiment::Experiment;
use super::schedule::turns;
use super::spec::{Sequence, ServerSpec};

/// The start and the end of a server, and of each server behind it: some take a tenth of a second,
/// those in Java some seconds.
const START: Duration = Duration::from_millis(800);
/// A step of the preparation: most write files, some fill a database.
const STEP: Duration = Duration::from_secs(2);
/// Time that a run takes beside its warm-up and its length: its connections, its last answers.
const RUN: Duration = Duration::from_millis(100);

impl Experiment {
    /// The time that the experiment will probably take: its runs with their warm-ups, the starts of
    /// servers and the preparation. Runs in which many requests wait until their timeout, and runs
    /// that are made once more, take longer.
    pub fn expected_time(&self) -> Duration {
        let turns = turns(self);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let runs: usize = turns.iter().map(|turn| turn.levels.len()).sum();
        let starts: usize = match self.order {
            Sequence::Blocks => self.repeats() * self.measured().map(starts).sum::<usize>(),
            _ => turns.iter().map(|turn| starts(turn.server)).sum(),
        };
        let beside = self.prepare.iter().map(|step| step.with.len());
        let starts = starts + beside.sum::<usize>();
        [(RUN, runs), (START, starts), (STEP, self.prepare.len())]
            .into_iter()
            .map(|(time, number)| time.saturating_mul(count(number)))
            .fold(self.planned_time(), Duration::saturating_add)
    }
}

/// Programs that are started for a server's turn.
fn starts(server: &ServerSpec) -> usize {
    1 + server.with.len()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn starts_and_steps_take_time() {
        let time = |head: &str, more: &str| {
            let text = format!(
                "title = 'x'\nrepeats = 2\n{head}\n[workload]\nwarmup = '1s'\nduration = '2s'\n\
                 [[server]]\nname = 'a'\nstart = 'a'\nwith = ['b']\n\
                 [[server]]\nname = 'b'\nstart = 'b'\nmeasured = false\n{more}"
            );
            Experiment::read(&text, Path::new("/"))
                .unwrap()
                .expected_time()
        };
        // Two runs, and two starts for each.
        assert_eq!(time("", ""), (Duration::from_secs(3) + RUN) * 2 + START * 4);
        let ladder = "ladder = { connections = '1..3' }";
        let runs = (Duration::from_secs(3) + RUN) * 6;
        assert_eq!(time(ladder, ""), runs + START * 4);
        let variable = "ladder = { variable = 'v', values = [0, 1, 2] }";
        let prepare = "[[prepare]]\nrun = 'true'\nwith = ['b']\n";
        assert_eq!(time(variable, prepare), runs + START * 13 + STEP);
    }
}
