//! What was read and written, and when.

use std::collections::HashMap;
use std::time::Duration;

use base_clock::Boottime;

/// A page, as one request got it.
#[derive(Debug)]
pub(super) struct Read {
    /// Before the first byte of the request went out.
    sent: Boottime,
    article: u64,
    version: u64,
    mirror: u64,
    mark: u64,
    /// How many commits of the other program the page knows of.
    pub(super) commits: u64,
    /// The article of the last of them.
    last_article: u64,
    pub(super) hit: bool,
}

/// A write, as its writer knows it.
#[derive(Debug)]
pub(super) struct Commit {
    /// When it was acknowledged, or a moment later.
    pub(super) at: Boottime,
    pub(super) article: u64,
    pub(super) version: u64,
}

/// All of a run.
#[derive(Default)]
pub(super) struct Record {
    pub(super) reads: Vec<Read>,
    /// Through the server.
    pub(super) posted: Vec<Commit>,
    /// The other program's, in order.
    pub(super) commits: Vec<Commit>,
}

impl Read {
    pub(super) fn parse(sent: Boottime, article: u64, page: &str, cache: Option<&str>) -> Self {
        let numbers: Vec<u64> = page
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        let [version, mirror, mark, commits, last_article] = numbers[..] else {
            panic!("{page:?}");
        };
        Self {
            sent,
            article,
            version,
            mirror,
            mark,
            commits,
            last_article,
            hit: cache == Some("millpond; hit"),
        }
    }
}

impl Record {
    pub(super) fn hits(&self) -> usize {
        self.reads.iter().filter(|read| read.hit).count()
    }

    pub(super) fn assert_never_mixed(&self) {
        for read in &self.reads {
            assert_eq!(read.version, read.mirror, "mixed: {read:?}");
            assert!(read.mark <= read.commits, "mixed: {read:?}");
            let is_last = read.commits > 0 && read.last_article == read.article;
            assert_eq!(
                is_last,
                read.mark > 0 && read.mark == read.commits,
                "mixed: {read:?}"
            );
        }
    }

    pub(super) fn assert_own_writes_are_seen(&self) {
        let newest = Newest::of(&self.posted);
        for read in &self.reads {
            let due = newest.before(read.article, read.sent);
            assert!(read.version >= due, "late: {due} was answered: {read:?}");
        }
    }

    /// Every commit of the other program is on every page that was requested more than `bound`
    /// later.
    pub(super) fn assert_commits_are_seen_after(&self, bound: Duration) {
        let newest = Newest::of(&self.commits);
        for read in &self.reads {
            let limit = read.sent.minus(bound);
            let commits = self.commits.partition_point(|commit| commit.at < limit);
            assert!(
                read.commits >= commits as u64,
                "late: {commits} commits: {read:?}"
            );
            let due = newest.before(read.article, limit);
            assert!(read.version >= due, "late: {due} was committed: {read:?}");
        }
    }

    /// For each commit of the other program: the latest request, counted from the commit, whose
    /// page did not show it; sorted.
    pub(super) fn delays(&self) -> Vec<Duration> {
        let mut delays = vec![Duration::ZERO; self.commits.len()];
        for read in &self.reads {
            let unseen = self.commits.iter().enumerate().skip(read.commits as usize);
            for (place, commit) in unseen.take_while(|(_, commit)| commit.at < read.sent) {
                delays[place] = delays[place].max(read.sent.since(commit.at));
            }
        }
        assert!(!delays.is_empty());
        delays.sort_unstable();
        delays
    }
}

/// The newest version of each article over time.
struct Newest(HashMap<u64, Vec<(Boottime, u64)>>);

impl Newest {
    fn of(commits: &[Commit]) -> Self {
        let mut articles = HashMap::<u64, Vec<_>>::new();
        for commit in commits {
            let versions = articles.entry(commit.article).or_default();
            versions.push((commit.at, commit.version));
        }
        for versions in articles.values_mut() {
            versions.sort_unstable();
            let mut newest = 0;
            for (_, version) in versions {
                newest = newest.max(*version);
                *version = newest;
            }
        }
        Self(articles)
    }

    /// The newest that was acknowledged before `moment`; 0 if none was.
    fn before(&self, article: u64, moment: Boottime) -> u64 {
        let versions = self.0.get(&article).map_or(&[][..], Vec::as_slice);
        let count = versions.partition_point(|(at, _)| *at < moment);
        count.checked_sub(1).map_or(0, |last| versions[last].1)
    }
}
