//! The dashboard for Grafana, held against the metrics that a server has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::metrics::{labels_of, metrics, read, site};
use crate::support::{Connection, serve, write};

/// Words of a query that are no names of metrics or labels.
const WORDS: [&str; 9] = [
    "sum",
    "max",
    "by",
    "le",
    "rate",
    "topk",
    "histogram_quantile",
    "label_values",
    "instance",
];

/// Names in a query of Prometheus: metrics, each with the labels in its braces, and the labels by
/// which sums are made.
fn names_in(query: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let (mut metrics, mut groups) = (Vec::<(String, Vec<String>)>::new(), Vec::new());
    let (mut in_braces, mut in_groups, mut rest) = (false, false, query);
    while let Some(letter) = rest.chars().next() {
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if letter == '_' || letter.is_ascii_alphabetic() {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let name = rest[..end].to_owned();
            rest = &rest[end..];
            if in_braces {
                metrics.last_mut().unwrap().1.push(name);
            } else if in_groups {
                groups.push(name);
            } else if name == "by" {
                in_groups = true;
            } else if !WORDS.contains(&&*name) {
                metrics.push((name, Vec::new()));
            }
            continue;
        }
        rest = match letter {
            '"' => rest[1..].split_once('"').unwrap().1,
            // A span of time, or a number.
            '[' => rest.split_once(']').unwrap().1,
            '0'..='9' => rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()),
            _ => &rest[letter.len_utf8()..],
        };
        in_braces = if letter == '{' {
            true
        } else {
            in_braces && letter != '}'
        };
        in_groups = in_groups && letter != ')';
    }
    (metrics, groups)
}

#[test]
fn the_dashboard_for_grafana_asks_for_what_there_is() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/grafana/millpond.json"
    );
    let dashboard: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let site = site();
    write(
        site.path(),
        "pages/broken.sql",
        "-- name: broken :one\nselect abs(-9223372036854775807 - 1) as a;\n",
    );
    let server = serve(site.path());
    // A connection is read again after its last answer was counted.
    let mut connection = Connection::open(server.address());
    for (target, status) in [("/broken", 500), ("/read/1", 200), ("/read/1", 200)] {
        assert_eq!(connection.get(target).status, status, "{target}");
    }
    let (_, text) = metrics(&server, "*/*");
    let mut known = BTreeMap::<String, BTreeSet<String>>::new();
    for series in read(&text, false).keys() {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels_of(labels.trim_end_matches('}')).into_iter();
        let labels = labels.map(|(label, _)| label);
        known.entry(name.to_owned()).or_default().extend(labels);
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables = variables
        .iter()
        .filter(|variable| variable["type"] == "query");
    let variables = variables.map(|variable| variable["query"].as_str().unwrap());
    let mut asked = 0;
    for query in queries.chain(variables) {
        let (metrics, groups) = names_in(query);
        assert!(!metrics.is_empty(), "{query}");
        for (metric, labels) in &metrics {
            let has = known
                .get(metric)
                .unwrap_or_else(|| panic!("no {metric}: {query}"));
            asked += 1;
            for label in labels.iter().filter(|label| *label != "instance") {
                assert!(has.contains(label), "no {label} of {metric}: {query}");
            }
            for label in groups.iter().filter(|label| *label != "instance") {
                assert!(has.contains(label), "no {label} of {metric}: {query}");
            }
        }
    }
    assert!(asked > 25, "{asked}");
}
