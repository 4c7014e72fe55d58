//! Statistics of access logs.
//!
//! It knows what is counted of a request, and how the figures are shown as text, JSON and HTML. It
//! must not know the site, the server, or where its log is. It reads files, but no clock; memory is
//! bounded for a log of any length. `count` may be called on any thread.
//!
//! All counts are exact with two exceptions, which say so. Past a million different addresses or
//! 128 MiB of them (100,000 referrers, 8 MiB) the count of one may be too low by a stated number.
//! Past eight million visitors over all days those of a day are estimated (HyperLogLog, within
//! 2 %). Threads share these limits, one for each processor and at most eight: a thread that meets
//! more than its part, an eighth of them, forgets. A thousand methods are exact on each thread, and
//! 10,000 keys of each origin of a spike. Percentiles are within 3 %.

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
