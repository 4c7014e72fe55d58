//! The promise, tested by its definition: a response reflects every commit that was acknowledged
//! more than `max_staleness` before its request was sent, each earlier write through the server,
//! and one state of the database.
//!
//! Everything is recorded while it happens and judged afterwards. Two tables have each article's
//! version, and a ledger counts the other program's commits, so a page made of two states
//! contradicts itself. Every page shows the ledger: a late commit of the other program is late on
//! all pages.

mod record;
mod writer;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::{Random, fast_dir};
use tempfile::TempDir;

use self::record::{Commit, Read, Record};
use self::writer::OtherProgram;
use crate::support::{Connection, PATIENCE, Response, Server, serve, write};

/// Articles, numbered from 1. Every one is read and written.
const ARTICLES: u64 = 50;
const READERS: u64 = 4;
const POSTERS: u64 = 2;
/// Pages that a run checks at least: a slow machine takes longer for them.
const LEAST_READS: usize = 10_000;
/// Time from one write of a poster to its next: up to 100 writes a second in all.
const POST_PACE: Duration = Duration::from_millis(20);
/// Time from one commit of the other program to its next. Each of its commits empties the cache.
const COMMIT_PACE: Duration = Duration::from_millis(100);
/// Pages that are read between two commits of the other program at least: on a slow machine too
/// there are hits.
const READS_PER_COMMIT: usize = 4 * ARTICLES as usize;
/// Pages that are read between two writes of a poster: so at most one page in ten is made anew for
/// a write.
const READS_PER_POST: usize = 20;
/// How long a run waits for its least number of pages and writes before the test fails.
const LONGEST: Duration = Duration::from_secs(600);

/// Only one run at a time: two would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_bound_of_one_second() {
    let delays = hold("1s", Duration::from_secs(1));
    assert!(delays.max <= Duration::from_secs(1), "{delays:?}");
}

/// With such a bound no time-to-live makes a page fresh within the run: only the feed does.
#[test]
fn a_bound_of_ten_minutes() {
    hold("10min", Duration::from_secs(600));
}

/// The other program: this test in a process of its own. In an ordinary run it does nothing.
#[test]
fn writer_process() {
    writer::serve_if_asked();
}

/// How long another program's commits stayed unseen.
#[derive(Debug)]
struct Delays {
    max: Duration,
}

/// A span in which readers and writers work.
struct Run {
    over: Mutex<bool>,
    wake: Condvar,
    reads: AtomicUsize,
    posts: AtomicUsize,
    refusals: AtomicUsize,
}

/// Reads and writes for a while, and judges the record.
fn hold(max_staleness: &str, bound: Duration) -> Delays {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let site = site(max_staleness);
    let server = serve(site.path());
    let mut other = OtherProgram::start(&site.path().join("site.db"));
    warm(&server);

    let run = &Run::new();
    let mut record = Record::default();
    thread::scope(|scope| {
        let server = &server;
        let readers: Vec<_> = (0..READERS)
            .map(|seed| scope.spawn(move || read(server, run, Random::new(seed + 1))))
            .collect();
        let posters: Vec<_> = (0..POSTERS)
            .map(|seed| scope.spawn(move || post(server, run, Random::new(seed + 101))))
            .collect();
        let commits = scope.spawn(|| {
            let (mut random, mut commits) = (Random::new(1001), Vec::new());
            while !run.pause(COMMIT_PACE) {
                commits.push(other.commit(article(&mut random)));
                run.wait_for_reads(READS_PER_COMMIT);
            }
            commits
        });
        run.last(seconds());
        for reader in readers {
            record.reads.extend(reader.join().unwrap());
        }
        for poster in posters {
            let (reads, posted) = poster.join().unwrap();
            record.reads.extend(reads);
            record.posted.extend(posted);
        }
        record.commits = commits.join().unwrap();
    });
    wait_for_commits(&server, record.commits.len());
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    let refusals = run.refusals.load(Ordering::Relaxed);
    judge(&record, refusals, max_staleness, bound)
}

fn judge(record: &Record, refusals: usize, max_staleness: &str, bound: Duration) -> Delays {
    record.assert_never_mixed();
    record.assert_own_writes_are_seen();
    record.assert_commits_are_seen_after(bound);

    let (reads, hits) = (record.reads.len(), record.hits());
    let delays = record.delays();
    let quantile = |part: usize| delays[(delays.len() - 1) * part / 100];
    println!(
        "max_staleness {max_staleness}: {reads} reads, {:.1} % hits, {} writes, {} commits of another program, \
         unseen for {:?} (median), {:?} (p99), {:?} (max); {refusals} refusals",
        hits as f64 * 100.0 / reads as f64,
        record.posted.len(),
        record.commits.len(),
        quantile(50),
        quantile(99),
        quantile(100)
    );
    assert!(reads >= LEAST_READS);
    assert!(hits * 2 >= reads, "{hits} hits of {reads} reads");
    // Under any bound the feed shows a commit long before it must.
    assert!(quantile(100) <= PATIENCE, "{delays:?}");
    assert!(record.posted.len() > ARTICLES as usize);
    Delays { max: quantile(100) }
}

impl Run {
    fn new() -> Self {
        Self {
            over: Mutex::new(false),
            wake: Condvar::new(),
            reads: AtomicUsize::new(0),
            posts: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
        }
    }

    /// Lets `pace` pass; true once the run is over.
    fn pause(&self, pace: Duration) -> bool {
        let over = self.over.lock().unwrap();
        let (over, _) = self
            .wake
            .wait_timeout_while(over, pace, |over| !*over)
            .unwrap();
        *over
    }

    fn is_over(&self) -> bool {
        *self.over.lock().unwrap()
    }

    /// Counts a refusal, and lets some time pass before the next request.
    fn refuse(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        self.pause(POST_PACE);
    }

    /// Waits until `count` more pages are read, or for the end of the run.
    fn wait_for_reads(&self, count: usize) {
        let enough = self.reads.load(Ordering::Relaxed) + count;
        while self.reads.load(Ordering::Relaxed) < enough {
            if self.pause(Duration::from_millis(1)) {
                return;
            }
        }
    }

    /// Ends the run after `length`, and not before enough was read.
    fn last(&self, length: Duration) {
        let started = Boottime::now();
        self.pause(length);
        let is_enough = || {
            self.reads.load(Ordering::Relaxed) >= LEAST_READS
                && self.posts.load(Ordering::Relaxed) > ARTICLES as usize
        };
        while !is_enough() && Boottime::now().since(started) < length + LONGEST {
            self.pause(Duration::from_millis(100));
        }
        *self.over.lock().unwrap() = true;
        self.wake.notify_all();
    }
}

/// Asks for any article, again and again, on one connection.
fn read(server: &Server, run: &Run, mut random: Random) -> Vec<Read> {
    let mut connection = Connection::open(server.address());
    let mut reads = Vec::new();
    while !run.is_over() {
        match read_one(&mut connection, article(&mut random)) {
            Some(read) => {
                reads.push(read);
                run.reads.fetch_add(1, Ordering::Relaxed);
            }
            None => run.refuse(),
        }
    }
    reads
}

/// An article from 1 to `ARTICLES`.
fn article(random: &mut Random) -> u64 {
    random.below(ARTICLES) + 1
}

/// The page, or none if the server refuses.
fn read_one(connection: &mut Connection, article: u64) -> Option<Read> {
    let sent = Boottime::now();
    let response = connection.get(&format!("/read?id={article}"));
    if is_refusal(&response) {
        return None;
    }
    assert_eq!(response.status, 200, "{response:?}");
    Some(Read::parse(
        sent,
        article,
        &response.text(),
        response.field("cache-status"),
    ))
}

/// A server refuses while its database cannot answer, for example during a slow fsync. The promise
/// allows this: no page is given that could break the promise.
fn is_refusal(response: &Response) -> bool {
    response.status == 503 && response.field("retry-after").is_some()
}

/// Writes through the server, and each time looks at once, as the writer would.
fn post(server: &Server, run: &Run, mut random: Random) -> (Vec<Read>, Vec<Commit>) {
    let mut connection = Connection::open(server.address());
    let (mut reads, mut posted) = (Vec::new(), Vec::new());
    while !run.pause(POST_PACE) {
        run.wait_for_reads(READS_PER_POST);
        let article = article(&mut random);
        let response = connection.post("/edit", &format!("id={article}"));
        let at = Boottime::now();
        if is_refusal(&response) {
            run.refuse();
            continue;
        }
        assert_eq!(response.status, 303, "{response:?}");
        let place = response.field("location").unwrap();
        let (_, version) = place.rsplit_once("version=").unwrap();
        posted.push(Commit {
            at,
            article,
            version: version.parse().unwrap(),
        });
        run.posts.fetch_add(1, Ordering::Relaxed);
        match read_one(&mut connection, article) {
            Some(read) => reads.push(read),
            None => run.refuse(),
        }
    }
    (reads, posted)
}

/// Waits until every page shows all commits of the other program. With the long bound only the feed
/// brings the last ones in time.
fn wait_for_commits(server: &Server, commits: usize) {
    let (mut connection, started) = (Connection::open(server.address()), Boottime::now());
    for article in 1..=ARTICLES {
        while read_one(&mut connection, article).is_none_or(|read| read.commits != commits as u64) {
            let waited = Boottime::now().since(started);
            assert!(waited < PATIENCE, "article {article} is still old");
        }
    }
}

/// Reads until there is a hit: then the feed is heard of.
fn warm(server: &Server) {
    let (mut connection, started) = (Connection::open(server.address()), Boottime::now());
    while !read_one(&mut connection, 1).is_some_and(|read| read.hit) {
        assert!(Boottime::now().since(started) < PATIENCE, "never a hit");
    }
}

/// Ten seconds, unless the environment has another number.
fn seconds() -> Duration {
    let given = std::env::var("MILLPOND_PROMISE_SECONDS").ok();
    Duration::from_secs(given.map_or(10, |seconds| seconds.parse().unwrap()))
}

fn site(max_staleness: &str) -> TempDir {
    let dir = fast_dir();
    let put = |name, contents: &str| write(dir.path(), name, contents);
    put(
        "millpond.toml",
        &format!(
            "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmax_staleness = \"{max_staleness}\"\n"
        ),
    );
    put("migrations/0001_start.sql", &migration());
    put("pages/read.sql", READ_SQL);
    put("pages/read.html", READ_HTML);
    put("pages/edit.post.sql", EDIT_SQL);
    fs::create_dir(dir.path().join("static")).unwrap();
    dir
}

/// `article.mark` is what `ledger.commits` was at the other program's last commit on the article.
fn migration() -> String {
    format!(
        "create table article (id integer primary key, version integer not null, mark integer not null) strict;\n\
         create table mirror (article_id integer primary key, version integer not null) strict;\n\
         create table ledger (id integer primary key, commits integer not null, article_id integer not null) strict;\n\
         insert into article with n (i) as (select 1 union all select i + 1 from n where i < {ARTICLES}) select i, 0, 0 from n;\n\
         insert into mirror select id, version from article;\n\
         insert into ledger values (1, 0, 0);\n"
    )
}

const READ_SQL: &str = "-- param: id integer

-- name: article :one
select version, mark from article where id = :id;

-- name: mirror :one
select version from mirror where article_id = :id;

-- name: ledger :one
select commits, article_id from ledger where id = 1;
";

/// In the order in which `Read::parse` takes them.
const READ_HTML: &str = "{{ article.version }} {{ mirror.version }} {{ article.mark }} {{ ledger.commits }} {{ ledger.article_id }}";

const EDIT_SQL: &str = "-- param: id integer

-- name: article :one
update article set version = version + 1 where id = :id returning version;

-- name: mirror :exec
update mirror set version = version + 1 where article_id = :id;

-- redirect: /read?id=:id&version=:version
";
