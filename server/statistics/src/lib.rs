//! Statistics of access logs.
//!
//! It knows what is counted of a request, and how the figures are shown as text, JSON and HTML. It
//! must not know the site, the server, or where its log is. It reads files, but no clock; memory is
//! bounded for a log of any length. `count` may be called on any thread.
//!
//! Exact are all figures but these, which say so: past a million different addresses the count of
//! one may be too low by a stated number; past eight million visitors (over all days) those of a
//! day are estimated (HyperLogLog, within 2 %); percentiles are within 3 %.

mod agent;
mod counter;
mod day;
mod distinct;
mod filter;
mod histogram;
mod json;
mod report;
mod run;
mod spikes;

pub use filter::{Filters, Period};
pub use run::{Options, Statistics, count};
