//! Graphs of an experiment over the time of a run.

use std::collections::BTreeSet;

use millrace_runs::{Lab, LabFigure, LabRun};

use crate::{Axis, Line, LineChart, Unit, lab_graphs};

/// A graph for each figure that the experiment shows over time; none without values.
pub(crate) fn lines(lab: &Lab) -> Vec<LineChart> {
    let runs: Vec<&LabRun> = lab
        .servers
        .iter()
        .filter(|server| server.measured)
        .filter_map(|server| lab.runs.iter().rfind(|run| run.server == server.name))
        .collect();
    let graphs = lab.over_time.iter().map(|figure| graph(&runs, *figure));
    graphs.filter(|graph| !graph.lines.is_empty()).collect()
}

fn graph(runs: &[&LabRun], figure: LabFigure) -> LineChart {
    let (title, unit) = lab_graphs::words(figure);
    let mut lines = Vec::new();
    for run in runs {
        let points = run
            .over_time
            .iter()
            .map(|moment| (moment.at_s, moment.figures.get(&figure).copied()));
        lines.push(Line {
            name: run.server.clone(),
            points: points.collect(),
        });
        let behind = run
            .over_time
            .iter()
            .flat_map(|moment| moment.cores_of.keys());
        let behind: BTreeSet<&String> = behind.filter(|name| **name != run.server).collect();
        for name in behind.into_iter().filter(|_| figure == LabFigure::Cores) {
            let points = run
                .over_time
                .iter()
                .map(|moment| (moment.at_s, moment.cores_of.get(name).copied()));
            lines.push(Line {
                name: format!("{name} behind {}", run.server),
                points: points.collect(),
            });
        }
    }
    lines.retain(|line| line.points.iter().any(|(_, y)| y.is_some()));
    LineChart {
        title: format!("{title}, over the run"),
        note: "The last run of each server.".to_owned(),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::linear("", unit),
        lines,
    }
}
