//! What a log says about its visitors: the mix of classes, the popularity of each target, the
//! arrivals of requests.

use std::fmt;
use std::path::Path;

use base_logs::Frequent;

use super::arrivals::{ArrivalKind, ArrivalPattern, Counter};
use super::class::{Classes, pattern};
use super::rank::exponent;
use super::read::{LogLines, read};
use super::{LogError, class};
use crate::url::Url;
use crate::workload::Workload;
use crate::workload::alias::Alias;
use crate::workload::choice::{Choice, Skew, Values};
use crate::workload::template::Value;
use crate::{Error, Plan};

/// Different targets that are kept apart, and their bytes together.
const TARGETS: usize = 1_000_000;
const TARGET_BYTES: usize = 256 << 20;
/// Different patterns and methods that are kept apart.
const PATTERNS: usize = 100_000;
const PATTERN_BYTES: usize = 32 << 20;

/// Workload that was learned from an access log. Targets are learned only from GETs with a status
/// from 200 to 399, because a log has no bodies and a request that failed then probably fails
/// again. Arrivals are learned from all requests.
#[derive(Debug)]
pub struct Learned {
    /// Counts of the log's lines.
    pub lines: LogLines,
    /// How requests arrived.
    pub arrivals: ArrivalPattern,
    /// Requests from which targets were learned.
    pub used: u64,
    /// GETs with another status.
    pub failed: u64,
    /// Requests with another method.
    pub other_methods: u64,
    /// The classes with their shares, the greatest first.
    pub classes: Vec<LearnedClass>,
    /// By how much the count of a target may be too low; 0 if all are exact, otherwise rare targets
    /// are left out.
    pub missing: u64,
}

/// A kind of targets.
#[derive(Debug)]
pub struct LearnedClass {
    /// Its pattern, such as `/static/*.css`.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// The exponent of Zipf's law that fits its targets best; `None` with too few.
    pub zipf: Option<f64>,
    /// Its targets with their counts, the most popular first.
    targets: Vec<(Box<[u8]>, u64)>,
}

impl LearnedClass {
    /// Different targets.
    pub fn targets(&self) -> usize {
        self.targets.len()
    }
}

impl Learned {
    /// Reads a log in the common, combined or a JSON format, plain, gzip or zstd. Memory is bounded
    /// for a log of any length: beyond a million different targets, rare ones are left out.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that is no access log, or that has no GET that succeeded.
    pub fn from_log(path: &Path) -> Result<Self, LogError> {
        let mut counter = Counter::new();
        let mut patterns = Frequent::<()>::new(PATTERNS, PATTERN_BYTES);
        let mut targets = Frequent::<()>::new(TARGETS, TARGET_BYTES);
        let (mut used, mut failed, mut other_methods) = (0, 0, 0);
        let lines = read(path, |line| {
            counter.add(line.time);
            match line.request() {
                Some((b"GET", target)) if (200..400).contains(&line.status) => {
                    used += 1;
                    patterns.add(&pattern(target));
                    targets.add(target);
                }
                Some((b"GET", _)) => failed += 1,
                Some(_) => other_methods += 1,
                None => {}
            }
            Ok(())
        })?;
        let Some(arrivals) = counter.finish().filter(|_| used > 0) else {
            return Err(LogError(format!(
                "{} has no GET with a status from 200 to 399, from which something could be learned",
                path.display()
            )));
        };
        Ok(Self {
            lines,
            arrivals,
            used,
            failed,
            other_methods,
            missing: targets.missing(),
            classes: classes(patterns, targets),
        })
    }

    /// A workload that requests as the log's visitors did: classes by their shares, targets by
    /// their counts. URL, fields, keep-alive and expected statuses are those of `base`.
    ///
    /// # Errors
    ///
    /// A URL or field of `base` that cannot be used.
    pub fn workload(&self, base: &Plan, seed: u64) -> Result<Workload, Error> {
        let url = Url::parse(&base.target.url)?;
        let weights: Vec<f64> = self
            .classes
            .iter()
            .map(|class| class.requests as f64)
            .collect();
        let mut workload = Workload {
            seed,
            url: base.target.url.clone(),
            origin: Workload::origin(&base.target.url, &url.authority),
            host: url.host.clone(),
            names: Vec::new(),
            classes: Vec::new(),
            mix: Alias::new(&weights),
            tables: Vec::new(),
            choices: Vec::new(),
            script: None,
            streams: None,
        };
        for (number, learned) in self.classes.iter().enumerate() {
            workload
                .classes
                .push(class(&base.request, &url, Value::Choice(number))?);
            workload.names.push(learned.name.clone());
            let (targets, counts): (Vec<_>, Vec<f64>) = learned
                .targets
                .iter()
                .map(|(target, count)| (target.clone(), *count as f64))
                .unzip();
            workload.choices.push(Choice {
                values: Values::List(targets),
                spread: Skew::Weighted(Alias::new(&counts)),
            });
        }
        Ok(workload)
    }
}

fn classes(patterns: Frequent, targets: Frequent) -> Vec<LearnedClass> {
    let patterns = patterns.into_sorted();
    let kinds = Classes::new(&patterns);
    let mut all: Vec<LearnedClass> = kinds
        .names
        .iter()
        .map(|name| LearnedClass {
            name: name.clone(),
            requests: 0,
            zipf: None,
            targets: Vec::new(),
        })
        .collect();
    for (pattern, count) in &patterns {
        all[usize::from(kinds.of(pattern))].requests += count;
    }
    for (target, count) in targets.into_sorted() {
        let place = kinds.of(&pattern(&target));
        all[usize::from(place)].targets.push((target, count));
    }
    // A class with only rare targets may have no kept target.
    all.retain(|class| class.requests > 0 && !class.targets.is_empty());
    for class in &mut all {
        let counts: Vec<u64> = class.targets.iter().map(|(_, count)| *count).collect();
        class.zipf = exponent(&counts);
    }
    all.sort_by_key(|class| std::cmp::Reverse(class.requests));
    all
}

/// Several lines for people, without a line end after the last.
impl fmt::Display for Learned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lines, arrivals, ..
        } = self;
        writeln!(
            out,
            "{} lines over {} s: {} requests to learn from; left out are {} of other methods and {} GETs that failed",
            lines.all, arrivals.seconds, self.used, self.other_methods, self.failed
        )?;
        if lines.no_request > 0 {
            writeln!(
                out,
                "{} lines without a request that could be asked again",
                lines.no_request
            )?;
        }
        if let Some(first) = lines.first_damaged {
            writeln!(
                out,
                "{} damaged lines, the first is line {first}",
                lines.damaged
            )?;
        }
        writeln!(
            out,
            "arrivals: {:.2}/s on average, {}/s in the busiest second, {}",
            arrivals.mean_rate,
            arrivals.peak_rate,
            match arrivals.kind {
                ArrivalKind::PoissonLike => "as from independent visitors (Poisson-like)",
                ArrivalKind::Bursty => "bursty, or at a rate that changes",
                ArrivalKind::Even => "more even than by chance",
                ArrivalKind::Unknown => "too few to say how they are spread",
            }
        )?;
        write!(out, "index of dispersion:")?;
        for (seconds, index) in arrivals.dispersion {
            match index {
                Some(index) => write!(out, "  {index:.2} at {seconds} s")?,
                None => write!(out, "  unknown at {seconds} s")?,
            }
        }
        writeln!(out)?;
        if arrivals.out_of_order > 0 {
            writeln!(
                out,
                "{} requests were logged over ten minutes late",
                arrivals.out_of_order
            )?;
        }
        if self.missing > 0 {
            writeln!(
                out,
                "more different targets than are kept: rare ones are left out, no count is too low by more than {}",
                self.missing
            )?;
        }
        write!(
            out,
            "{:>7}  {:>10}  {:>8}  {:>5}  class",
            "share", "requests", "targets", "Zipf"
        )?;
        for class in &self.classes {
            let share = 100.0 * class.requests as f64 / self.used as f64;
            let zipf = class.zipf.map_or("-".to_owned(), |s| format!("{s:.2}"));
            write!(
                out,
                "\n{share:6.2}%  {:>10}  {:>8}  {zipf:>5}  {}",
                class.requests,
                class.targets(),
                class.name
            )?;
        }
        Ok(())
    }
}
