//! Several results on one page: what they have in common first, then each by itself.

mod charts;
mod summary;

use millrace_runs::{Capacity, Comparison, Diagnosis, Lab, Run, Sweep};
use millrace_stats::Verdict;

use crate::number::{micros, rate};
use crate::{
    Column, Report, Section, Table, capacity_report, compare_report, diagnosis_report, lab_report,
    run_report, sweep_report,
};

pub use summary::summary_csv;

/// Result of a measuring command.
#[derive(Clone, Debug)]
pub enum StoredResult {
    /// One run.
    Run(Box<Run>),
    /// A sweep.
    Sweep(Box<Sweep>),
    /// A search for the capacity.
    Capacity(Box<Capacity>),
    /// A comparison.
    Comparison(Box<Comparison>),
    /// Limits of a server.
    Diagnosis(Box<Diagnosis>),
    /// An experiment.
    Lab(Box<Lab>),
}

impl StoredResult {
    /// Names the kind of result, in a word or two.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Sweep(_) => "sweep",
            Self::Capacity(_) => "capacity",
            Self::Comparison(_) => "comparison",
            Self::Diagnosis(_) => "diagnosis",
            Self::Lab(_) => "experiment",
        }
    }

    /// Returns the verdict on the result.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Run(run) => run.verdict,
            Self::Sweep(sweep) => sweep.verdict,
            Self::Capacity(capacity) => capacity.verdict,
            Self::Comparison(comparison) => comparison.verdict,
            Self::Diagnosis(diagnosis) => diagnosis.verdict,
            Self::Lab(lab) => lab.verdict,
        }
    }

    /// A report of it alone.
    pub fn report(&self) -> Report {
        match self {
            Self::Run(run) => run_report(run),
            Self::Sweep(sweep) => sweep_report(sweep),
            Self::Capacity(capacity) => capacity_report(capacity),
            Self::Comparison(comparison) => compare_report(comparison),
            Self::Diagnosis(diagnosis) => diagnosis_report(diagnosis),
            Self::Lab(lab) => lab_report(lab),
        }
    }
}

/// A report of several results, each with a name; of one alone it is the report of that one.
pub fn collection_report(found: &[(String, StoredResult)]) -> Report {
    if let [(_, one)] = found {
        return one.report();
    }
    let mut report = Report::new(
        "Measured results",
        format!("{} results beside each other", found.len()),
    );
    report.push(Section::Table(collection_table(found)));
    let runs: Vec<(&str, &Run)> = found
        .iter()
        .filter_map(|(name, found)| match found {
            StoredResult::Run(run) => Some((name.as_str(), run.as_ref())),
            _ => None,
        })
        .collect();
    report.sections.extend(charts::of_runs(&runs));
    for (name, one) in found {
        let Report {
            title,
            subtitle,
            sections,
        } = one.report();
        report.push(Section::Heading(name.clone()));
        report.push(Section::Text(format!("{title}. {subtitle}.")));
        report.sections.extend(sections);
    }
    report
}

/// A line for each result. For a terminal too.
pub fn collection_table(found: &[(String, StoredResult)]) -> Table {
    let row = |(name, one): &(String, StoredResult)| {
        let [achieved, median, tail] = key_figures(one);
        vec![
            name.clone(),
            one.verdict().to_string(),
            achieved,
            median,
            tail,
            one.kind().to_owned(),
        ]
    };
    Table {
        caption: "What was measured".to_owned(),
        columns: Column::all("result|verdict|#rate|#50 %|#99 %|of"),
        rows: found.iter().map(row).collect(),
        note: "Rate: of a run what was achieved, of a sweep or a diagnosis the highest, of a search the capacity, of a comparison \
               the ratio of its deciding metric; an experiment has one for each server. Times of an open loop are from the scheduled send."
            .to_owned(),
    }
}

fn key_figures(found: &StoredResult) -> [String; 3] {
    let none = || "–".to_owned();
    let known = |value: Option<f64>, of: fn(f64) -> String| value.map_or_else(none, of);
    match found {
        StoredResult::Run(run) => {
            let latency = run.latency_us.response.or(run.latency_us.service);
            [
                rate(run.achieved_rate),
                known(latency.and_then(|latency| latency.p50), micros),
                known(latency.and_then(|latency| latency.p99), micros),
            ]
        }
        StoredResult::Sweep(sweep) => [known(sweep.top.map(|top| top.rate), rate), none(), none()],
        StoredResult::Capacity(capacity) => {
            [known(capacity.rate.or(capacity.low), rate), none(), none()]
        }
        StoredResult::Diagnosis(diagnosis) => {
            let rates = diagnosis.levels.iter();
            let highest = rates.map(|level| level.run.achieved_rate).reduce(f64::max);
            [known(highest, rate), none(), none()]
        }
        StoredResult::Lab(_) => [none(), none(), none()],
        StoredResult::Comparison(comparison) => {
            let effect = comparison.decisive();
            let ratio = effect.and_then(|effect| effect.ratio.map(|ratio| ratio.ratio));
            [
                known(ratio, |ratio| format!("{ratio:.3}\u{a0}×")),
                none(),
                none(),
            ]
        }
    }
}
