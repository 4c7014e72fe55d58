//! The result of a scenario.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::coherence::figures::{FaultFigures, Pages, StreamFigures};
use crate::coherence::judge::Verdict;
use crate::coherence::log::Fates;

/// Findings that are kept in words.
const KEPT: usize = 10;
/// One in this number of pages of a [quiet period](ScenarioReport::quiet_period) may be late. The
/// promise allows the longer bound, and a machine may stop for a second without a fault of the
/// server. A time-to-live has most pages late.
const LATE_IN_QUIET_PERIODS: u64 = 10;
/// Classes of ages: up to this power of two in milliseconds.
const AGES: usize = 24;

/// Figures, and the first findings in words.
#[derive(Clone, Debug, Default)]
pub struct ScenarioReport {
    /// How to repeat it.
    pub seed: u64,
    /// How the nodes learned of changes, as `cargo xtask soak adversary` has it.
    pub feed: &'static str,
    /// All pages.
    pub all: Pages,
    /// Pages of the nodes with a longer bound than others, requested while nothing failed and
    /// judged by the shortest bound: late if a node with the shortest bound would have been late.
    pub quiet_period: Pages,
    /// Each kind by its name.
    pub pages: BTreeMap<&'static str, Pages>,
    /// Streams of live pages of the nodes with the shortest bound.
    pub streams: StreamFigures,
    /// The first late and mixed pages and late streams, in words.
    pub findings: Vec<String>,
    /// How long a commit that a page did not show had been acknowledged at most.
    pub worst_unseen: Duration,
    /// Pages that did not show the newest commit, by its age: place `n` is below `2^n`
    /// milliseconds.
    pub unseen: [u64; AGES],
    /// Outcomes of the writes.
    pub fates: Fates,
    /// Answers that are no pages, and connections that ended, by what was seen.
    pub errors: BTreeMap<String, u64>,
    /// Faults of the nodes and the server, by name.
    pub faults: BTreeMap<&'static str, FaultFigures>,
    /// Why no packets were lost, if none were.
    pub no_packets: Option<String>,
    /// The first faults that could not be injected, and those after which a node did not recover,
    /// in words.
    pub notes: Vec<String>,
    /// Nodes that gave no hit any more when everything was well again.
    pub lost: Vec<usize>,
    /// Replication slots that were there after the end of all nodes.
    pub slots: u64,
    /// Sessions of nodes that the server still had then.
    pub sessions: u64,
}

impl ScenarioReport {
    pub(crate) fn page(
        &mut self,
        page: &'static str,
        hit: bool,
        verdict: Verdict,
        what: impl Fn() -> String,
    ) {
        let one = Pages {
            reads: 1,
            hits: hit.into(),
            late: verdict.late.is_some().into(),
            mixed: verdict.mixed.is_some().into(),
        };
        self.all.add(one);
        self.pages.entry(page).or_default().add(one);
        if let Some(late) = verdict.late {
            keep(&mut self.findings, format!("late: {late}; {}", what()));
        }
        if let Some(mixed) = verdict.mixed {
            keep(&mut self.findings, format!("mixed: {mixed}; {}", what()));
        }
        if let Some(unseen) = verdict.unseen {
            self.worst_unseen = self.worst_unseen.max(unseen);
            let bits = u64::try_from(unseen.as_millis()).unwrap_or(u64::MAX);
            let place = (u64::BITS - bits.leading_zeros()) as usize;
            self.unseen[place.min(AGES - 1)] += 1;
        }
    }

    /// A page of a node with a long bound, `late` by the shortest.
    pub(crate) fn in_quiet_period(
        &mut self,
        hit: bool,
        late: Option<String>,
        what: impl Fn() -> String,
    ) {
        self.quiet_period.add(Pages {
            reads: 1,
            hits: hit.into(),
            late: late.is_some().into(),
            mixed: 0,
        });
        if let Some(late) = late {
            keep(
                &mut self.findings,
                format!(
                    "late by the shortest bound, in a quiet period: {late}; {}",
                    what()
                ),
            );
        }
    }

    /// A look at a stream, `late` if it has not told of a commit.
    pub(crate) fn looked(&mut self, late: Option<&str>, what: impl Fn() -> String) {
        self.streams.looks += 1;
        if let Some(late) = late {
            self.streams.late += 1;
            keep(&mut self.findings, format!("not told: {late}; {}", what()));
        }
    }

    pub(crate) fn error(&mut self, what: impl Into<String>) {
        *self.errors.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn note(&mut self, note: String) {
        keep(&mut self.notes, note);
    }

    pub(crate) fn fault(&mut self, name: &'static str, figures: FaultFigures) {
        self.faults.entry(name).or_default().add(figures);
    }

    /// Takes what another thread has seen.
    pub(crate) fn add(&mut self, other: Self) {
        self.all.add(other.all);
        self.quiet_period.add(other.quiet_period);
        self.streams.add(other.streams);
        for (page, pages) in other.pages {
            self.pages.entry(page).or_default().add(pages);
        }
        for text in other.findings {
            keep(&mut self.findings, text);
        }
        self.worst_unseen = self.worst_unseen.max(other.worst_unseen);
        for (sum, count) in self.unseen.iter_mut().zip(other.unseen) {
            *sum += count;
        }
        for (what, count) in other.errors {
            *self.errors.entry(what).or_default() += count;
        }
        for (name, figures) in other.faults {
            self.fault(name, figures);
        }
        for note in other.notes {
            self.note(note);
        }
    }

    /// True if nodes with a long bound show commits as soon as the others must, while nothing
    /// fails.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.quiet_period.late * LATE_IN_QUIET_PERIODS <= self.quiet_period.reads
    }

    /// The age that this share of the pages without the newest commit did not exceed; zero if all
    /// pages showed the newest commit.
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

impl fmt::Display for ScenarioReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fates {
            acknowledged,
            undone,
            unknown,
            forms,
        } = self.fates;
        writeln!(out, "{}", self.all)?;
        writeln!(
            out,
            "unseen commits: half below {:?}, 99 % below {:?}, the worst {:?}",
            self.unseen_within(0.5),
            self.unseen_within(0.99),
            self.worst_unseen
        )?;
        writeln!(
            out,
            "in quiet periods, of the longer bound and held against the shortest: {}",
            self.quiet_period
        )?;
        writeln!(out, "streams: {}", self.streams)?;
        writeln!(
            out,
            "writes: {acknowledged} acknowledged, {undone} rolled back, {unknown} unknown; {forms} forms"
        )?;
        writeln!(out, "errors: {}", counts(&self.errors))?;
        for (page, pages) in &self.pages {
            writeln!(out, "page {page}: {pages}")?;
        }
        for (fault, figures) in &self.faults {
            writeln!(out, "{fault}: {figures}")?;
        }
        if let Some(reason) = &self.no_packets {
            writeln!(out, "no packets were lost, relays stood in: {reason}")?;
        }
        for note in self.notes.iter().chain(&self.findings) {
            writeln!(out, "{note}")?;
        }
        if !self.lost.is_empty() {
            writeln!(out, "nodes without a hit at the end: {:?}", self.lost)?;
        }
        if self.slots > 0 {
            writeln!(out, "replication slots left over: {}", self.slots)?;
        }
        if self.sessions > 0 {
            writeln!(out, "sessions left over: {}", self.sessions)?;
        }
        write!(
            out,
            "seed {}: `cargo xtask soak adversary --seed {0} --feed {}` makes the same choices again",
            self.seed, self.feed
        )
    }
}

/// The first are kept.
fn keep(texts: &mut Vec<String>, text: String) {
    if texts.len() < KEPT {
        texts.push(text);
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

    use super::ScenarioReport;
    use crate::coherence::figures::FaultFigures;
    use crate::coherence::judge::Verdict;

    #[test]
    fn one_in_ten_may_be_late_in_a_quiet_period() {
        let mut report = ScenarioReport::default();
        let mut page = |late: Option<&str>| {
            report.in_quiet_period(true, late.map(str::to_owned), || "/".to_owned());
            report.is_prompt()
        };
        assert!((0..9).all(|_| page(None)));
        assert!(page(Some("old")) && !page(Some("old")));
        assert_eq!(
            (
                report.quiet_period.reads,
                report.quiet_period.hits,
                report.quiet_period.late
            ),
            (11, 11, 2)
        );
        assert_eq!(report.all.reads, 0, "counted elsewhere");
        let text = report.to_string();
        let quiet_period = "held against the shortest: 11 reads, 100.0 % hits, 2 late";
        assert!(text.contains(quiet_period), "{text}");
    }

    #[test]
    fn pages_are_counted_by_age() {
        let mut report = ScenarioReport::default();
        for millis in [0, 3, 3, 90] {
            let verdict = Verdict {
                unseen: Some(Duration::from_millis(millis)),
                late: (millis > 50).then(|| "old".to_owned()),
                ..Verdict::default()
            };
            report.page("top", true, verdict, || "/".to_owned());
        }
        report.page("total", false, Verdict::default(), || "/".to_owned());
        let all = report.all;
        assert_eq!((all.reads, all.hits, all.late), (5, 4, 1));
        assert_eq!(report.pages["top"].reads, 4);
        assert_eq!(report.unseen_within(0.5), Duration::from_millis(4));
        assert_eq!(report.unseen_within(1.0), Duration::from_millis(128));
        assert_eq!(report.worst_unseen, Duration::from_millis(90));
        assert_eq!(report.findings, ["late: old; /"]);
        report.fault("wind", FaultFigures::single(Some(Duration::from_secs(2))));
        report.fault("wind", FaultFigures::single(Some(Duration::from_secs(1))));
        report.fault("wind", FaultFigures::single(None));
        let text = report.to_string();
        assert!(text.starts_with("5 reads, 80.0 % hits, 1 late, 0 mixed\n"));
        assert!(text.contains("page total: 1 reads, 0.0 % hits"), "{text}");
        let wind = "wind: 3 times, hits again after 1.5 s, at most 2.0 s\n";
        assert!(text.contains(wind), "{text}");
    }
}
