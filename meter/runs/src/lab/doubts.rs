//! Doubts about a whole experiment that do not come from its runs.

use super::experiment::Experiment;
use super::spec::ServerSpec;
use millrace_stats::BLOCKS;

/// The doubts, as sentences. `complete` says that every run was made.
pub(super) fn doubts(experiment: &Experiment, complete: bool) -> Vec<String> {
    let mut doubts = shared_cores(experiment);
    if !complete {
        doubts.push("the experiment was ended before all its runs were made".to_owned());
    }
    let repeats = experiment.repeats();
    if !experiment.limits.is_empty() && repeats < BLOCKS {
        doubts.push(format!(
            "a limit is decided by {BLOCKS} blocks or more, and these are {repeats}"
        ));
    }
    doubts
}

/// Servers that may run on the client's cores.
fn shared_cores(experiment: &Experiment) -> Vec<String> {
    let client = experiment.workload.get_ref().cores.as_ref();
    let shares = |server: &&ServerSpec| match (&server.cores, client) {
        (Some(own), Some(client)) => own
            .get_ref()
            .iter()
            .any(|core| client.get_ref().contains(core)),
        _ => true,
    };
    let names: Vec<&str> = experiment
        .measured()
        .filter(shares)
        .map(|server| server.name.get_ref().as_str())
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "the client and {} may have run on the same core: give both `cores`",
        names.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn unpinned_servers_and_few_blocks_are_doubts() {
        let text = "title = 'x'\nrepeats = 2\norder = 'blocks'\n[workload]\n[[server]]\nname = 'a'\nstart = 'a'\n\
                    [[server]]\nname = 'b'\nstart = 'b'\n[[limit]]\nserver = 'a'\nagainst = 'b'\nmetric = 'cpu'\n\
                    at_most = 1.1\n";
        let experiment = Experiment::read(text, Path::new("/")).unwrap();
        let [cores, few, ended] = doubts(&experiment, false).try_into().unwrap_or_default();
        assert!(cores.contains("client and a, b may"), "{cores}");
        assert!(few.contains("before all its runs"), "{few}");
        assert!(
            ended.contains("10 blocks or more, and these are 2"),
            "{ended}"
        );
    }
}
