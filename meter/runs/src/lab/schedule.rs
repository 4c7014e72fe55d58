//! In which order the servers are measured.

use std::time::Duration;

use toml::Spanned;

use super::experiment::Experiment;
use super::limit::is_at;
use super::other_client::whole_seconds;
use super::outcome::LabLevel;
use super::spec::{BEST, LimitSpec, PASSES, Sequence, ServerSpec};

/// A server's turn.
#[derive(Debug)]
pub(super) struct ServerTurn<'a> {
    pub(super) server: &'a ServerSpec,
    /// From 1.
    pub(super) repeat: usize,
    /// Passes without the other client from 1; in blocks, passes with it from [`PASSES`] + 1.
    pub(super) pass: usize,
    /// The levels at which it is measured, one after the other.
    pub(super) levels: Vec<LabLevel>,
    /// True if the other client runs too.
    pub(super) is_checked: bool,
    /// True if an uncounted run goes first: in a turn of several levels, the first run would warm
    /// the server for the others.
    pub(super) is_cold: bool,
}

impl ServerTurn<'_> {
    /// Length of this client's runs. In a separate pass with the other client they are as long as
    /// that client's runs, so that both average over the same disturbances.
    pub(super) fn duration(&self, experiment: &Experiment) -> Duration {
        let asked = experiment.workload.get_ref().duration();
        match self.pass > PASSES {
            true => Duration::from_secs(whole_seconds(asked)),
            false => asked,
        }
    }

    /// Planned time of each of its runs.
    pub(super) fn run_time(&self, experiment: &Experiment) -> Duration {
        let workload = experiment.workload.get_ref();
        let own = self.duration(experiment) * (1 + u32::from(self.is_cold));
        let other = Duration::from_secs(whole_seconds(workload.duration()));
        workload.warmup.0 + own + other * u32::from(self.is_checked)
    }
}

/// Planned time of the runs of all turns.
pub(super) fn time(experiment: &Experiment) -> Duration {
    let time = |turn: &ServerTurn| {
        let runs = u32::try_from(turn.levels.len()).unwrap_or(u32::MAX);
        turn.run_time(experiment).saturating_mul(runs)
    };
    turns(experiment)
        .iter()
        .map(time)
        .fold(Duration::ZERO, Duration::saturating_add)
}

/// Runs of all turns.
pub(super) fn runs(experiment: &Experiment) -> usize {
    let turns = turns(experiment);
    turns.iter().map(|turn| turn.levels.len()).sum()
}

/// Every turn of an experiment.
pub(super) fn turns(experiment: &Experiment) -> Vec<ServerTurn<'_>> {
    let repeats = 1..=experiment.repeats();
    let whole = |server, repeat| ServerTurn {
        server,
        repeat,
        pass: 1,
        levels: experiment.levels(),
        is_checked: experiment.cross_check.is_some(),
        is_cold: false,
    };
    let turns: Vec<ServerTurn<'_>> = match experiment.order {
        Sequence::OneByOne => experiment
            .measured()
            .flat_map(|server| repeats.clone().map(move |repeat| whole(server, repeat)))
            .collect(),
        Sequence::Interleaved => repeats
            .flat_map(|repeat| {
                let pass = ordered_servers(experiment, repeat.is_multiple_of(2));
                pass.into_iter().map(move |server| whole(server, repeat))
            })
            .collect(),
        Sequence::Blocks => repeats
            .flat_map(|repeat| block(experiment, repeat))
            .collect(),
    };
    match experiment.variable() {
        Some(_) => level_by_level(turns),
        None => turns,
    }
}

/// A turn for each level, since each starts the server with another value.
fn level_by_level(turns: Vec<ServerTurn<'_>>) -> Vec<ServerTurn<'_>> {
    let mut single = Vec::new();
    for turn in turns {
        single.extend(turn.levels.iter().map(|&level| ServerTurn {
            levels: vec![level],
            ..turn
        }));
    }
    single
}

/// Repeats in which the other client has a separate pass, if no limit needs more. The other client
/// takes whole seconds only, which are longer than runs of blocks.
const CHECKED: usize = 4;

/// True if a limit is on this client's figures at a server and level.
fn is_of_client_at(limit: &LimitSpec, server: &ServerSpec, level: &LabLevel) -> bool {
    let is_at_server = limit.server.get_ref() == server.name.get_ref();
    is_at_server && limit.metric.is_of_client() && is_at(limit, level)
}

/// A server's passes with the other client in a block. For a limit on the client they are a block
/// of their own: the clients go first and last in turn, so the runs of each are A B B A.
fn passes_with_other(
    experiment: &Experiment,
    server: &ServerSpec,
    level: &LabLevel,
    repeat: usize,
) -> usize {
    let mut limits = experiment.limits.iter().map(Spanned::get_ref);
    match experiment.cross_check {
        Some(_) if limits.any(|limit| is_of_client_at(limit, server, level)) => PASSES,
        Some(_) if repeat <= CHECKED => 1,
        _ => 0,
    }
}

/// A server's passes without the other client; none if only the two clients are compared at the
/// server.
fn passes_alone(experiment: &Experiment, server: &ServerSpec, level: &LabLevel) -> usize {
    let name = server.name.get_ref();
    let is_about = |limit: &&LimitSpec| {
        let against = limit.against.get_ref();
        limit.server.get_ref() == name || against == name || against == BEST
    };
    let limits = experiment.limits.iter().map(Spanned::get_ref);
    let mut about = limits.filter(is_about).filter(|limit| is_at(limit, level));
    let is_for_clients = experiment.baseline.is_none()
        && passes_with_other(experiment, server, level, 1) == PASSES
        && about.all(|limit| is_of_client_at(limit, server, level));
    if is_for_clients { 0 } else { PASSES }
}

/// One block: at each level forwards, backwards, forwards, backwards. Then the times of a server's
/// outer runs sum up to the same as those of its inner runs, and all four to the same as those of
/// every other server. Passes with the other client are not part of the pattern; a server's passes
/// follow each other directly, because they are compared with no other server.
fn block(experiment: &Experiment, repeat: usize) -> Vec<ServerTurn<'_>> {
    let mut turns = Vec::new();
    for level in experiment.levels() {
        let checked = |server| passes_with_other(experiment, server, &level, repeat);
        let turn = |server, pass| ServerTurn {
            server,
            repeat,
            pass,
            levels: vec![level],
            is_checked: pass > PASSES,
            is_cold: pass == PASSES + 1 && checked(server) > 1,
        };
        for pass in 1..=PASSES {
            let servers = ordered_servers(experiment, pass.is_multiple_of(2)).into_iter();
            let has_pass = |server: &&ServerSpec| pass <= passes_alone(experiment, server, &level);
            turns.extend(servers.filter(has_pass).map(|server| turn(server, pass)));
        }
        for server in ordered_servers(experiment, repeat.is_multiple_of(2)) {
            let passes = (1..=checked(server)).map(|pass| PASSES + pass);
            turns.extend(passes.map(|pass| turn(server, pass)));
        }
    }
    turns
}

/// The servers in the order of the file, or backwards.
fn ordered_servers(experiment: &Experiment, is_backwards: bool) -> Vec<&ServerSpec> {
    let mut servers: Vec<&ServerSpec> = experiment.measured().collect();
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
        experiment_with(repeats, more, "[workload]")
    }

    fn experiment_with(repeats: usize, more: &str, workload: &str) -> Experiment {
        let text = format!(
            "title = 'x'\nrepeats = {repeats}\n{more}\n{workload}\n[[server]]\nname = 'a'\nstart = 'a'\n[[server]]\nname = 'b'\n\
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
                let of_it = |turn: &&ServerTurn<'_>| {
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
    fn a_server_with_only_client_limits_has_no_other_passes() {
        let order = |more: &str| {
            let head = "order = 'blocks'\ncross_check = 'wrk'\n";
            let experiment = experiment(&format!("{head}{more}"));
            let turns = turns(&experiment).into_iter();
            let turns = turns.filter(|turn| turn.repeat == 2).map(|turn| {
                let cold = if turn.is_cold { "+" } else { "" };
                format!("{cold}{}{}", turn.server.name.get_ref(), turn.pass)
            });
            turns.collect::<Vec<_>>().join(" ")
        };
        let limits = |more: &str| {
            let of_client = |server| {
                format!(
                    "{{ server = '{server}', against = 'wrk', metric = 'client-cpu', at_most = 1.1 }}, "
                )
            };
            format!("limit = [{}{}{more}]", of_client("a"), of_client("b"))
        };
        assert_eq!(order(&limits("")), "+b5 b6 b7 b8 +a5 a6 a7 a8");
        let all = "a1 b1 b2 a2 a3 b3 b4 a4 +b5 b6 b7 b8 +a5 a6 a7 a8";
        let of_servers = |against| {
            format!("{{ server = 'a', against = '{against}', metric = 'cpu', at_most = 1.1 }}")
        };
        assert_eq!(order(&limits(&of_servers("b"))), all);
        assert_eq!(order(&limits(&of_servers("best"))), all);
        assert_eq!(order(&format!("baseline = 'a'\n{}", limits(""))), all);
        assert_eq!(order(""), "a1 b1 b2 a2 a3 b3 b4 a4 b5 a5");
    }

    #[test]
    fn a_limit_on_the_client_affects_only_its_own_levels() {
        let text = "order = 'blocks'\ncross_check = 'wrk'\nladder = { connections = '1,8' }\nlimit = [{ server = 'a', \
                    against = 'wrk', metric = 'client-cpu', at_most = 1.1, at = [8] }]\n\
                    workload = { duration = '250ms', warmup = '50ms' }";
        let experiment = experiment_with(2, text, "");
        let passes = |repeat, connections| {
            let turns = turns(&experiment).into_iter();
            let turns = turns.filter(|turn| {
                let is_there = turn.levels[0].connections == connections;
                is_there && turn.repeat == repeat && turn.server.name.get_ref() == "a"
            });
            turns.map(|turn| turn.pass).collect::<Vec<_>>()
        };
        assert_eq!(passes(1, 1), [1, 2, 3, 4, 5]);
        assert_eq!(passes(1, 8), [5, 6, 7, 8]);
        // Each of two repeats has twelve short runs, seven with the other client as long as its
        // own, and one uncounted run.
        let [warmup, short, long] = [50, 250, 1000].map(Duration::from_millis);
        let planned = warmup * 19 + short * 12 + long * (7 + 1 + 7);
        assert_eq!(time(&experiment), planned * 2);
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
