//! The graphs of an experiment with one level: bars.

use millrace_runs::{Lab, LabFinding, MedianRange};

use crate::{BarChart, Bars, Scale, Unit};

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

fn median(spread: Option<MedianRange>) -> Option<f64> {
    spread.map(|spread| spread.median)
}
