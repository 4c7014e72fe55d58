//! What came of a fight.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::judge::Verdict;
use crate::log::Fates;

/// Findings that are kept in words.
const KEPT: usize = 10;
/// Ages that are told apart: up to so many milliseconds, doubling.
const AGES: usize = 24;

/// Figures, and the first findings in words.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How to repeat it.
    pub seed: u64,
    /// Pages that were held against the log.
    pub reads: u64,
    /// Those of them that came from memory.
    pub hits: u64,
    /// Pages that were older than promised.
    pub late: u64,
    /// Pages that never were one state of the database, or showed what was rolled back.
    pub mixed: u64,
    /// The first of both, in words.
    pub findings: Vec<String>,
    /// How long a commit that a page did not show had been acknowledged at most.
    pub worst_unseen: Duration,
    /// Pages that did not show the newest commit, by how old it was: place `n` is below `2^n` milliseconds.
    pub unseen: [u64; AGES],
    /// What became of the writes.
    pub fates: Fates,
    /// Answers that are no pages, and connections that ended, by what was seen.
    pub errors: BTreeMap<String, u64>,
    /// What was done to the nodes and the server, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Faults that could not be done, in words.
    pub notes: Vec<String>,
    /// Nodes that gave no hit any more when everything was well again.
    pub lost: Vec<usize>,
    /// Replication slots that were there after the end of all nodes.
    pub slots: u64,
}

impl Report {
    pub(crate) fn page(&mut self, hit: bool, verdict: Verdict, what: impl Fn() -> String) {
        self.reads += 1;
        self.hits += u64::from(hit);
        if let Some(late) = verdict.late {
            self.late += 1;
            self.find(format!("late: {late}; {}", what()));
        }
        if let Some(mixed) = verdict.mixed {
            self.mixed += 1;
            self.find(format!("mixed: {mixed}; {}", what()));
        }
        if let Some(unseen) = verdict.unseen {
            self.worst_unseen = self.worst_unseen.max(unseen);
            let bits = u64::try_from(unseen.as_millis()).unwrap_or(u64::MAX);
            let place = (u64::BITS - bits.leading_zeros()) as usize;
            self.unseen[place.min(AGES - 1)] += 1;
        }
    }

    fn find(&mut self, finding: String) {
        if self.findings.len() < KEPT {
            self.findings.push(finding);
        }
    }

    pub(crate) fn error(&mut self, what: impl Into<String>) {
        *self.errors.entry(what.into()).or_default() += 1;
    }

    /// Takes what another thread has seen.
    pub(crate) fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.hits += other.hits;
        self.late += other.late;
        self.mixed += other.mixed;
        other.findings.into_iter().for_each(|text| self.find(text));
        self.worst_unseen = self.worst_unseen.max(other.worst_unseen);
        for (sum, count) in self.unseen.iter_mut().zip(other.unseen) {
            *sum += count;
        }
        for (what, count) in other.errors {
            *self.errors.entry(what).or_default() += count;
        }
        for (what, count) in other.faults {
            *self.faults.entry(what).or_default() += count;
        }
        self.notes.extend(other.notes);
    }

    /// The time within which this share of those pages that did not show the newest commit had it; zero if all showed it.
    #[must_use]
    pub fn unseen_within(&self, share: f64) -> Duration {
        let all: u64 = self.unseen.iter().sum();
        let mut sum = 0;
        for (place, count) in self.unseen.iter().enumerate() {
            sum += count;
            if all > 0 && sum as f64 >= share * all as f64 {
                return Duration::from_millis(1 << place);
            }
        }
        Duration::ZERO
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.hits as f64 * 100.0 / self.reads.max(1) as f64;
        let Fates {
            acknowledged,
            undone,
            unknown,
            forms,
        } = self.fates;
        writeln!(
            out,
            "{} reads checked, {percent:.1} % hits, {} late, {} mixed",
            self.reads, self.late, self.mixed
        )?;
        writeln!(
            out,
            "unseen commits: half below {:?}, 99 % below {:?}, the worst {:?}",
            self.unseen_within(0.5),
            self.unseen_within(0.99),
            self.worst_unseen
        )?;
        writeln!(
            out,
            "writes: {acknowledged} acknowledged, {undone} rolled back, {unknown} unknown; {forms} forms"
        )?;
        writeln!(out, "faults: {}", counts(&self.faults))?;
        writeln!(out, "errors: {}", counts(&self.errors))?;
        for note in self.notes.iter().chain(&self.findings) {
            writeln!(out, "{note}")?;
        }
        if !self.lost.is_empty() {
            writeln!(out, "nodes without a hit at the end: {:?}", self.lost)?;
        }
        if self.slots > 0 {
            writeln!(out, "replication slots left over: {}", self.slots)?;
        }
        write!(
            out,
            "seed {}; MILLPOND_ADVERSARY_SEED={0} makes the same choices again",
            self.seed
        )
    }
}

fn counts<K: fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    let counts: Vec<String> = counts
        .iter()
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Report;
    use crate::judge::Verdict;

    #[test]
    fn pages_are_counted_and_ages_are_told_apart() {
        let mut report = Report::default();
        for millis in [0, 3, 3, 90] {
            let verdict = Verdict {
                unseen: Some(Duration::from_millis(millis)),
                late: (millis > 50).then(|| "old".to_owned()),
                ..Verdict::default()
            };
            report.page(true, verdict, || "/".to_owned());
        }
        report.page(false, Verdict::default(), || "/".to_owned());
        assert_eq!((report.reads, report.hits, report.late), (5, 4, 1));
        assert_eq!(report.unseen_within(0.5), Duration::from_millis(4));
        assert_eq!(report.unseen_within(1.0), Duration::from_millis(128));
        assert_eq!(report.worst_unseen, Duration::from_millis(90));
        assert_eq!(report.findings, ["late: old; /"]);
        assert!(
            report
                .to_string()
                .starts_with("5 reads checked, 80.0 % hits, 1 late")
        );
    }
}
