//! Mistakes in the addresses at which clients find a server.

use std::ops::Range;

use super::experiment::Experiment;
use super::requests::request_to;

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for server in &experiment.servers {
        let server = server.get_ref();
        let Some(first) = server.addresses.first() else {
            continue;
        };
        let values = experiment.placeholders(Some(server), &server.with);
        for address in &server.addresses {
            let wrong = values.fill(address.get_ref(), false).and_then(is_address);
            found.extend(wrong.err().map(|sentence| (address.span(), sentence)));
        }
        if experiment.cross_check.is_some() || experiment.idle(server).is_some() {
            let sentence = "cross_check and idle connections know one address of a server: leave out `addresses`";
            found.push((first.span(), sentence.to_owned()));
        }
        if !server.measured {
            let sentence =
                "nothing connects to a server that is not measured: leave out `addresses`";
            found.push((first.span(), sentence.to_owned()));
        }
    }
    found
}

/// Checks that connections can go there. Ports of servers are not known yet, so they are empty.
fn is_address(filled: String) -> Result<(), String> {
    let port = if filled.ends_with(':') { "1" } else { "" };
    let plan = request_to("http://127.0.0.1/".to_owned())
        .with(|plan| plan.target.connect_to = vec![filled + port]);
    plan.check().map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port_and_belong_to_a_measured_server() {
        let read = |head: &str, server: &str| {
            let text = format!(
                "title = 'x'\n{head}\n[workload]\n[[server]]\nname = 'other'\nstart = 'x'\n\
                 [[server]]\nname = 'a'\nstart = 'x'\nwith = ['other']\n{server}\n"
            );
            let faults = Experiment::read(&text, Path::new("/")).err();
            faults.map_or_else(String::new, |faults| faults[0].message.clone())
        };
        let good = "addresses = ['127.0.0.1:{port}', '[::1]:81', 'h:{port.other}']";
        assert_eq!(read("", good), "");
        for (head, server, expected) in [
            ("", "addresses = ['127.0.0.2']", "is no place to connect to"),
            (
                "",
                "addresses = ['h:{port.gone}']",
                "{port.gone} is not known",
            ),
            ("cross_check = 'wrk'", good, "know one address"),
            ("", "addresses = ['h:1']\nidle = 5", "know one address"),
            (
                "",
                "addresses = ['h:1']\nmeasured = false",
                "is not measured",
            ),
        ] {
            let said = read(head, server);
            assert!(said.contains(expected), "{server}: {said}");
        }
    }
}
