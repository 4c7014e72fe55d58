//! The graphs of an experiment with several levels: lines over connections, rates, numbers of paths
//! or the values of a variable.

use std::collections::BTreeSet;

use millrace_runs::{Lab, LabFigure, LabFinding, LabLevel};

use crate::{Axis, Line, LineChart, Unit};

/// A graph for each figure that the experiment shows, in its order. A figure without any value has
/// none.
pub(crate) fn lines(lab: &Lab) -> Vec<LineChart> {
    let graphs = figures(lab).iter().map(|figure| graph(lab, *figure));
    graphs.filter(|graph| !graph.lines.is_empty()).collect()
}

/// True if every value of a graph is zero.
pub(crate) fn is_zero(graph: &LineChart) -> bool {
    let mut points = graph.lines.iter().flat_map(|line| &line.points);
    points.all(|(_, y)| y.is_none_or(|y| y == 0.0))
}

/// The figures that are drawn.
pub(crate) fn figures(lab: &Lab) -> &[LabFigure] {
    match lab.graph.as_slice() {
        [] => &LabFigure::USUAL,
        own => own,
    }
}

fn graph(lab: &Lab, figure: LabFigure) -> LineChart {
    let (title, unit) = words(figure);
    let servers = lab.servers.iter().filter(|server| server.measured);
    let mut lines: Vec<Line> = servers
        .map(|server| {
            line(lab, &server.name, server.name.clone(), |finding| {
                Some(figure.of(finding)?.median)
            })
        })
        .collect();
    if figure == LabFigure::Cores {
        lines.extend(cores_behind(lab));
    }
    lines.retain(|line| line.points.iter().any(|(_, y)| y.is_some()));
    LineChart {
        title: title.to_owned(),
        note: note(figure).to_owned(),
        x: axis(lab),
        y: Axis::linear("", unit),
        lines,
    }
}

fn line(lab: &Lab, server: &str, name: String, value: impl Fn(&LabFinding) -> Option<f64>) -> Line {
    let own = lab.findings.iter().filter(|found| found.server == server);
    Line {
        name,
        points: own
            .map(|found| (position(lab, found.level), value(found)))
            .collect(),
    }
}

/// Lines of the servers behind others, such as databases.
fn cores_behind(lab: &Lab) -> Vec<Line> {
    let mut lines = Vec::new();
    for server in lab.servers.iter().filter(|server| server.measured) {
        let own = lab
            .findings
            .iter()
            .filter(|found| found.server == server.name);
        let behind: BTreeSet<&String> = own
            .flat_map(|found| found.cores_of.keys())
            .filter(|name| **name != server.name)
            .collect();
        for name in behind {
            let title = format!("{name} behind {}", server.name);
            lines.push(line(lab, &server.name, title, |finding| {
                Some(finding.cores_of.get(name)?.median)
            }));
        }
    }
    lines
}

/// Returns the name and the unit of a figure.
pub(crate) fn words(figure: LabFigure) -> (&'static str, Unit) {
    match figure {
        LabFigure::Throughput => ("Good answers a second", Unit::Rate),
        LabFigure::Bytes => ("Bytes of answers a second", Unit::Bytes),
        LabFigure::Mean => ("Mean response time", Unit::Micros),
        LabFigure::P50 => ("Median of the response time", Unit::Micros),
        LabFigure::P90 => ("90th percentile of the response time", Unit::Micros),
        LabFigure::P99 => ("99th percentile of the response time", Unit::Micros),
        LabFigure::Max => ("Longest response time", Unit::Micros),
        LabFigure::Cpu => ("Server CPU for a request", Unit::Micros),
        LabFigure::Cores => ("Cores that the server uses", Unit::Plain),
        LabFigure::Memory => ("Memory of the server", Unit::Bytes),
        LabFigure::Failed => ("Requests without a good answer", Unit::Percent),
        LabFigure::Timeouts => ("Requests without an answer in time", Unit::Percent),
        LabFigure::Idle => ("CPU idle, all cores of the machine", Unit::Percent),
        LabFigure::Network => ("Bytes a second over the network", Unit::Bytes),
        LabFigure::Ipc => ("Instructions in a cycle", Unit::Plain),
        LabFigure::CacheMisses => ("Cache misses for a request", Unit::Plain),
        LabFigure::BranchMisses => ("Mispredicted branches for a request", Unit::Plain),
    }
}

fn note(figure: LabFigure) -> &'static str {
    match figure {
        LabFigure::Cores => {
            "CPU time in a second of all processes of a server and of what stands behind it."
        }
        LabFigure::Memory => {
            "Resident memory of all processes, the most that was seen during a run."
        }
        LabFigure::Network => "All interfaces, loopback included, in both directions.",
        _ => "",
    }
}

/// The horizontal axis.
fn axis(lab: &Lab) -> Axis {
    let is = |of: fn(&LabLevel) -> bool| lab.levels.iter().any(of);
    // A ladder of a variable or of paths may have one rate throughout.
    if let Some(name) = &lab.variable {
        Axis::linear(name.as_str(), Unit::Plain)
    } else if is(|level| level.count.is_some()) {
        Axis::linear("paths", Unit::Count)
    } else if is(|level| level.rate.is_some()) {
        let what = match lab.plan {
            Some(_) => "sessions demanded a second",
            None => "requests demanded a second",
        };
        Axis::linear(what, Unit::Rate)
    } else {
        Axis::linear("connections", Unit::Count)
    }
}

/// Returns the position of a level on the axis.
fn position(lab: &Lab, level: LabLevel) -> f64 {
    let count = level.count.map(|count| count as f64);
    match lab.variable {
        Some(_) => level.value.unwrap_or_default(),
        None => count.or(level.rate).unwrap_or(level.connections as f64),
    }
}

/// A level as the head of a column.
pub(crate) fn head(lab: &Lab, level: LabLevel) -> String {
    match (level.rate, level.count, level.value) {
        (.., Some(value)) => {
            let name = lab.variable.as_deref().unwrap_or_default();
            format!("{name} {}", Unit::Plain.format(value))
        }
        (_, Some(count), None) => Unit::Count.format(count as f64),
        (Some(rate), None, None) => Unit::Rate.format(rate),
        (None, None, None) => level.connections.to_string(),
    }
}
