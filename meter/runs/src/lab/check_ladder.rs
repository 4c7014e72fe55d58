//! Mistakes of a ladder, and of the graphs.

use std::ops::Range;

use toml::Spanned;

use super::check::{MOST, RESERVED};
use super::experiment::Experiment;
use super::spec::{LadderSpec, Sequence};

/// All mistakes, with their places.
pub(super) fn mistakes(experiment: &Experiment) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    if let Some(ladder) = &experiment.ladder {
        kinds(ladder, &mut found);
        whole(ladder, &mut found);
        variable(experiment, ladder.get_ref(), &mut found);
    }
    for figure in &experiment.over_time {
        if !figure.get_ref().is_over_time() {
            let sentence = "over the time of a run throughput, failed, cores, ipc, cache-misses and branch-misses can be drawn";
            found.push((figure.span(), sentence.to_owned()));
        }
    }
    for figure in experiment.graph.iter().chain(&experiment.over_time) {
        if figure.get_ref().is_sampled() && !experiment.probe {
            let sentence = "this figure is sampled on the machine: it needs `probe = true`";
            found.push((figure.span(), sentence.to_owned()));
        }
    }
    found
}

type Mistakes = Vec<(Range<usize>, String)>;

fn kinds(ladder: &Spanned<LadderSpec>, found: &mut Mistakes) {
    let levels = ladder.get_ref();
    let kinds = [
        levels.connections.is_some(),
        levels.rates.is_some(),
        levels.counts.is_some(),
        levels.values.is_some(),
    ];
    if kinds.iter().filter(|kind| **kind).count() != 1 {
        let sentence = "a ladder has one of connections, rates, counts, and values of a variable";
        found.push((ladder.span(), sentence.to_owned()));
    }
}

fn whole(ladder: &Spanned<LadderSpec>, found: &mut Mistakes) {
    let levels = ladder.get_ref();
    for levels in [&levels.connections, &levels.counts].into_iter().flatten() {
        if let Err(error) = levels.whole() {
            found.push((ladder.span(), error.to_string()));
        }
    }
}

fn variable(experiment: &Experiment, ladder: &LadderSpec, found: &mut Mistakes) {
    match (&ladder.variable, &ladder.values) {
        (Some(name), None) => found.push((
            name.span(),
            "the variable of a ladder needs `values`, an array of numbers".to_owned(),
        )),
        (None, Some(values)) => found.push((
            values.span(),
            "`values` of a ladder need `variable`, the name of a placeholder".to_owned(),
        )),
        _ => {}
    }
    if let Some(values) = &ladder.values {
        let fine = values.get_ref().iter().all(|value| value.is_finite());
        if !fine || !(1..=MOST).contains(&values.get_ref().len()) {
            let sentence = format!("a variable has from 1 to {MOST} values, which are numbers");
            found.push((values.span(), sentence));
        }
    }
    let Some(name) = &ladder.variable else {
        return;
    };
    let text = name.get_ref();
    let letter = |c: char| c.is_ascii_lowercase();
    let fine = text.starts_with(letter) && text.chars().all(|c| letter(c) || c == '_' || c == '-');
    if !fine || RESERVED.contains(&text.as_str()) || experiment.values.contains_key(text) {
        found.push((
            name.span(),
            format!(
                "{text:?} is no name for a variable: small letters, - and _ are, but no name in [values], and not {}",
                RESERVED.join(", ")
            ),
        ));
    }
    if experiment.order == Sequence::Blocks {
        found.push((
            name.span(),
            "servers start anew at each value of a variable: not with order = \"blocks\""
                .to_owned(),
        ));
    }
    for server in &experiment.servers {
        let server = server.get_ref();
        if server.keep && server.mentions(text) {
            found.push((
                server.name.span(),
                format!("a server with keep = true starts once, so it has no {{{text}}}"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::experiment::Experiment;

    fn read(head: &str, server: &str) -> Result<Experiment, Vec<super::super::fault::Fault>> {
        let text = format!(
            "title = 'x'\n{head}\n[workload]\n[[server]]\nname = 'a'\nstart = 'a {{size}}'\n{server}\n"
        );
        Experiment::read(&text, Path::new("/"))
    }

    #[test]
    fn a_ladder_of_a_variable_is_checked() {
        let good = "ladder = { variable = 'size', values = [0, 1.5] }";
        assert!(read(good, "").is_ok());
        for (head, server, expected) in [
            ("ladder = { variable = 'size' }", "", "needs `values`"),
            ("ladder = { values = [1] }", "", "need `variable`"),
            (
                "ladder = { variable = 'size', values = [] }",
                "",
                "from 1 to 1000 values",
            ),
            (
                "ladder = { variable = 'port', values = [1] }",
                "",
                "no name for a variable",
            ),
            (
                "ladder = { variable = 'Size', values = [1] }",
                "",
                "no name for a variable",
            ),
            (
                "ladder = { variable = 'size', values = [1], rates = '1' }",
                "",
                "one of",
            ),
            (good, "keep = true", "has no {size}"),
            (
                "order = 'blocks'\nladder = { variable = 'size', values = [1] }",
                "",
                "start anew",
            ),
            (
                "values = { size = '1' }\ngraph = ['idle']",
                "",
                "needs `probe = true`",
            ),
            (
                "values = { size = '1' }\nover_time = ['p50']",
                "",
                "over the time of a run",
            ),
            (
                "values = { size = '1' }\ngraph = ['p9']",
                "",
                "unknown variant `p9`",
            ),
        ] {
            let faults = read(head, server).unwrap_err();
            let is_named = faults.iter().any(|fault| fault.message.contains(expected));
            assert!(is_named, "{head}: {faults:?}");
        }
    }
}
