//! In which order the servers are measured.

use super::experiment::Experiment;
use super::outcome::LabLevel;
use super::spec::{PASSES, Sequence, Server};

/// A server's turn.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) server: &'a Server,
    /// From 1.
    pub(super) repeat: usize,
    /// From 1.
    pub(super) pass: usize,
    /// Where it is measured, one after the other.
    pub(super) levels: Vec<LabLevel>,
    /// Whether the other client stands beside.
    pub(super) is_checked: bool,
}

/// Runs of all turns.
pub(super) fn runs(experiment: &Experiment) -> usize {
    let turns = turns(experiment);
    turns.iter().map(|turn| turn.levels.len()).sum()
}

/// Every turn of an experiment.
pub(super) fn turns(experiment: &Experiment) -> Vec<Turn<'_>> {
    let repeats = 1..=experiment.repeats();
    let whole = |server, repeat| Turn {
        server,
        repeat,
        pass: 1,
        levels: experiment.levels(),
        is_checked: experiment.cross_check.is_some(),
    };
    match experiment.order {
        Sequence::OneByOne => experiment
            .measured()
            .flat_map(|server| repeats.clone().map(move |repeat| whole(server, repeat)))
            .collect(),
        Sequence::Interleaved => repeats
            .flat_map(|repeat| {
                let pass = over(experiment, repeat.is_multiple_of(2));
                pass.into_iter().map(move |server| whole(server, repeat))
            })
            .collect(),
        Sequence::Blocks => repeats
            .flat_map(|repeat| block(experiment, repeat))
            .collect(),
    }
}

/// Repeats in which the other client has a pass of its own: it knows whole seconds only, which blocks have not.
const CHECKED: usize = 4;

/// One block: at each level forwards, backwards, forwards, backwards. The times of a server's outer runs then sum up to those of
/// its inner ones, and all four to those of every other server. The pass with the other client is none of them.
fn block(experiment: &Experiment, repeat: usize) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for level in experiment.levels() {
        let has_check = experiment.cross_check.is_some() && repeat <= CHECKED;
        for pass in 1..=PASSES + usize::from(has_check) {
            let servers = over(experiment, pass.is_multiple_of(2));
            turns.extend(servers.into_iter().map(|server| Turn {
                server,
                repeat,
                pass,
                levels: vec![level],
                is_checked: pass > PASSES,
            }));
        }
    }
    turns
}

/// The servers in the order of the file, or backwards.
fn over(experiment: &Experiment, is_backwards: bool) -> Vec<&Server> {
    let mut servers: Vec<&Server> = experiment.measured().collect();
    if is_backwards {
        servers.reverse();
    }
    servers
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn experiment(more: &str) -> Experiment {
        let text = format!(
            "title = 'x'\nrepeats = 2\n{more}\n[workload]\n[[server]]\nname = 'a'\nstart = 'a'\n[[server]]\nname = 'b'\n\
             start = 'b'\n[[server]]\nname = 'c'\nstart = 'c'\nmeasured = false\n"
        );
        Experiment::read(&text, Path::new("/")).unwrap()
    }

    #[test]
    fn turns_go_forwards_and_then_backwards() {
        let order = |more: &str| {
            let experiment = experiment(more);
            let turns = turns(&experiment);
            let turns = turns
                .iter()
                .map(|turn| format!("{}{}", turn.server.name.get_ref(), turn.repeat));
            turns.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(""), "a1 b1 b2 a2");
        assert_eq!(order("order = 'sequence'"), "a1 a2 b1 b2");
        assert_eq!(
            order("order = 'blocks'"),
            "a1 b1 b1 a1 a1 b1 b1 a1 a2 b2 b2 a2 a2 b2 b2 a2"
        );
    }

    #[test]
    fn a_block_is_done_level_by_level() {
        let experiment = experiment("order = 'blocks'\nladder = { connections = '1,8' }");
        let turns = turns(&experiment);
        assert_eq!((turns.len(), runs(&experiment)), (32, 32));
        let places = turns
            .iter()
            .map(|turn| (turn.levels[0].connections, turn.pass));
        let first: Vec<_> = places.take(9).collect();
        let expected = [
            (1, 1),
            (1, 1),
            (1, 2),
            (1, 2),
            (1, 3),
            (1, 3),
            (1, 4),
            (1, 4),
            (8, 1),
        ];
        assert_eq!(first, expected);
    }
}
