//! The graphs of an experiment: bars for one level, lines over several.

use millrace_runs::{Lab, LabFinding, LabLevel, MedianRange};

use crate::{Axis, BarChart, Bars, Line, LineChart, Scale, Unit};

/// Bars of one level: what a request costs, and how many there are in a second.
pub(crate) fn bars(lab: &Lab, found: &[&LabFinding]) -> Vec<BarChart> {
    let groups: Vec<String> = found.iter().map(|finding| finding.server.clone()).collect();
    let chart = |title: String, note: &str, unit, values: Vec<Option<f64>>| BarChart {
        title: title.clone(),
        note: note.to_owned(),
        unit,
        scale: Scale::Linear,
        groups: groups.clone(),
        series: vec![Bars {
            name: title,
            values,
        }],
    };
    let own = |finding: &&LabFinding| match finding.cpu_ratio {
        Some(ratio) => Some(ratio.ratio),
        None => (lab.baseline.as_ref() == Some(&finding.server)).then_some(1.0),
    };
    let mut charts = Vec::new();
    if found.iter().any(|finding| finding.cpu_ratio.is_some()) {
        charts.push(chart(
            format!(
                "Server CPU for a request, as a multiple of {}",
                lab.baseline.as_deref().unwrap_or_default()
            ),
            "Run times of all threads of all processes of a server, and of what stands behind it, in pairs of runs of the \
             same repeat.",
            Unit::Times,
            found.iter().map(own).collect(),
        ));
    } else if found.iter().any(|finding| finding.cpu_us.is_some()) {
        charts.push(chart(
            "Server CPU for a request".to_owned(),
            "Run times of all threads of all processes of a server, and of what stands behind it.",
            Unit::Micros,
            found.iter().map(|finding| median(finding.cpu_us)).collect(),
        ));
    }
    charts.push(chart(
        "Good answers a second".to_owned(),
        "The median over the repeats.",
        Unit::Rate,
        found
            .iter()
            .map(|finding| median(finding.throughput))
            .collect(),
    ));
    charts
}

/// Throughput, response time and cost over the levels.
pub(crate) fn lines(lab: &Lab) -> Vec<LineChart> {
    let has_rates = lab.levels.iter().any(|level| level.rate.is_some());
    let x = if has_rates {
        let what = match lab.plan {
            Some(_) => "sessions demanded a second",
            None => "requests demanded a second",
        };
        Axis::linear(what, Unit::Rate)
    } else {
        Axis::linear("connections", Unit::Count)
    };
    let place = |level: LabLevel| level.rate.unwrap_or(level.connections as f64);
    let chart = |title: &str, unit, value: fn(&LabFinding) -> Option<f64>| LineChart {
        title: title.to_owned(),
        note: String::new(),
        x: x.clone(),
        y: Axis::linear("", unit),
        lines: lab
            .servers
            .iter()
            .filter(|server| server.measured)
            .map(|server| Line {
                name: server.name.clone(),
                points: lab
                    .findings
                    .iter()
                    .filter(|finding| finding.server == server.name)
                    .map(|finding| (place(finding.level), value(finding)))
                    .collect(),
            })
            .collect(),
    };
    vec![
        chart("Server CPU for a request", Unit::Micros, |finding| {
            median(finding.cpu_us)
        }),
        chart("Good answers a second", Unit::Rate, |finding| {
            median(finding.throughput)
        }),
        chart(
            "99th percentile of the response time",
            Unit::Micros,
            |finding| median(finding.p99_us),
        ),
    ]
}

fn median(spread: Option<MedianRange>) -> Option<f64> {
    spread.map(|spread| spread.median)
}
