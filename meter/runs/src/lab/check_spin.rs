//! A client that spins needs cores without a server; in an experiment all cores are known in
//! advance.

use std::ops::Range;

use toml::Spanned;

use super::experiment::Experiment;
use super::spec::ServerSpec;

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let workload = experiment.workload.get_ref();
    let Some(spin) = workload.spin.as_ref().filter(|_| workload.spins()) else {
        return Vec::new();
    };
    let Some(client) = &workload.cores else {
        let sentence =
            "a client that spins takes its cores whole: `spin` goes with `cores` in [workload]";
        return vec![(spin.span(), sentence.to_owned())];
    };
    let servers = experiment.servers.iter().map(Spanned::get_ref);
    servers
        .filter_map(|server| mistake(server, client.get_ref()))
        .collect()
}

fn mistake(server: &ServerSpec, client: &[usize]) -> Option<(Range<usize>, String)> {
    let name = server.name.get_ref();
    match &server.cores {
        Some(cores) => {
            let shared = cores.get_ref().iter().find(|core| client.contains(core))?;
            let sentence = format!(
                "core {shared} is the client’s, which spins and takes it whole: give {name} another"
            );
            Some((cores.span(), sentence))
        }
        None => server.measured.then(|| {
            let sentence =
                format!("the client spins: give {name} `cores` that are not the client’s");
            (server.name.span(), sentence)
        }),
    }
}
