//! Reports on runs: figures, tables and graphs, as `base-chart` writes them.
//!
//! It knows how results are shown, and of `millrace-runs` only its stored format. It must not know
//! how results were measured or served, and it does no IO: a report is a `String`.
//!
//! ```
//! use millrace_report::{Figure, Report, Section};
//!
//! let mut report = Report::new("A quiet afternoon", "One page, asked for a thousand times");
//! report.push(Section::Figures(vec![Figure::new("requests", "1\u{202f}000")]));
//! assert!(report.to_html().starts_with("<!doctype html>"));
//! ```

mod calibrated;
mod capacity;
mod collection;
mod compare;
mod conditions;
mod csv;
mod day;
mod diagnosis;
mod kinds;
mod lab;
mod lab_charts;
mod lab_graphs;
mod lab_levels;
mod lab_limited;
mod lab_limits;
mod lab_time;
mod limits;
mod measured;
mod postgres;
mod probed;
mod study;
mod study_original;
mod study_saturation;
mod sweep;
mod sweep_charts;
mod sweep_csv;
mod sweep_curve;
mod sweep_optimum;
mod visits;

pub use base_chart::{
    Align, Axis, Banner, BarChart, Bars, Column, Figure, Line, LineChart, PageLink, Report, Scale,
    Section, SvgFile, Table, Tone, Unit, number, text_table,
};
pub use capacity::{capacity_report, capacity_table};
pub use collection::{StoredResult, collection_report, collection_table, summary_csv};
pub use compare::{compare_report, compare_table};
pub use csv::{capacity_csv, compare_csv, diagnosis_csv, lab_csv, run_csv};
pub use diagnosis::{diagnosis_report, diagnosis_text};
pub use lab::{lab_report, lab_tables};
pub use limits::{capacity_limits_text, limits_text, probe_report, probe_table, sweep_limits_text};
pub use measured::{run_report, run_sections, run_table};
pub use postgres::postgres_tables;
pub use study::{StudyPages, study_index, study_report};
pub use sweep::{sweep_columns, sweep_findings, sweep_report, sweep_row, sweep_table};
pub use sweep_csv::sweep_csv;
pub use sweep_curve::sweep_curve;
pub use visits::class_table;
