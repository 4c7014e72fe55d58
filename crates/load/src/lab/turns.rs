//! In which order the servers are measured.

use super::experiment::Experiment;
use super::outcome::LabLevel;
use super::spec::{Limited, PASSES, Sequence, Server};

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

/// Repeats in which the other client has a pass of its own, where no limit asks for more: it knows whole seconds only, which blocks
/// have not.
const CHECKED: usize = 4;

/// A server's passes in a block with the other client beside. For a limit on the client they are a block in themselves: with the
/// clients first and last in turn, each one's runs are A B B A.
fn checked(experiment: &Experiment, server: &Server, repeat: usize) -> usize {
    let is_of_it = |limit: &Limited| {
        limit.metric.is_of_client() && limit.server.get_ref() == server.name.get_ref()
    };
    let mut limits = experiment.limits.iter();
    match experiment.cross_check {
        Some(_) if limits.any(|limit| is_of_it(limit.get_ref())) => PASSES,
        Some(_) if repeat <= CHECKED => 1,
        _ => 0,
    }
}

/// One block: at each level forwards, backwards, forwards, backwards. The times of a server's outer runs then sum up to those of
/// its inner ones, and all four to those of every other server. The passes with the other client are none of them.
fn block(experiment: &Experiment, repeat: usize) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for level in experiment.levels() {
        for pass in 1..=2 * PASSES {
            let servers = over(experiment, pass.is_multiple_of(2)).into_iter();
            let has_pass = |server: &&Server| pass <= PASSES + checked(experiment, server, repeat);
            turns.extend(servers.filter(has_pass).map(|server| Turn {
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
        experiment_of(2, more)
    }

    fn experiment_of(repeats: usize, more: &str) -> Experiment {
        let text = format!(
            "title = 'x'\nrepeats = {repeats}\n{more}\n[workload]\n[[server]]\nname = 'a'\nstart = 'a'\n[[server]]\nname = 'b'\n\
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
    fn the_other_client_has_passes_of_its_own() {
        let checked = |more: &str| {
            let head = "order = 'blocks'\ncross_check = 'wrk'\nlimit = [";
            let experiment = experiment_of(6, &format!("{head}{more}]"));
            let turns = turns(&experiment);
            let checked = |repeat, server| {
                let turns = turns.iter();
                let of_it = |turn: &&Turn<'_>| {
                    turn.is_checked && turn.repeat == repeat && turn.server.name.get_ref() == server
                };
                let passes: Vec<usize> = turns.filter(of_it).map(|turn| turn.pass).collect();
                passes
            };
            [checked(1, "a"), checked(6, "a"), checked(1, "b")]
        };
        assert_eq!(checked(""), [vec![5], vec![], vec![5]]);
        let limit = "{ server = 'a', against = 'wrk', metric = 'client-cpu', at_most = 1.1 }";
        let all = vec![5, 6, 7, 8];
        assert_eq!(checked(limit), [all.clone(), all, vec![5]]);
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
