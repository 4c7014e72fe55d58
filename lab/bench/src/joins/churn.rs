//! Hits while rows change: one row at a time, 200 times a second.
//!
//! Forty articles are read through a view that joins their authors. Nine of ten changes are of an
//! article, the tenth is of an author. On SQLite the server writes, by a form; on PostgreSQL
//! another program does. Each page is judged: it may not be older than promised, and its two
//! queries must show one state. The same page, written so that whole tables count, is read beside
//! it.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use base_clock::Boottime;
use lab_testkit::{Client, Random, Response};
use serde_json::{Value, json};

use super::{
    judged::Acknowledged,
    shop::{Kind, Pages, Shop, connect},
};
use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::CLIENT_CORE,
};

/// Hits of all pages, at least.
const LIMIT: f64 = 0.9;
const ARTICLES: usize = 40;
const AUTHORS: usize = 10;
/// Threads that read.
const READERS: u64 = 4;
const POOL: u32 = 4;
/// On PostgreSQL another program's commit may show this much later.
const BOUND: Duration = Duration::from_secs(1);

const PAGES: Pages<'static> = &[
    (
        "narrow/[id].sql",
        "-- param: id integer\n\
         -- name: shown :one\nselect id, version, author_id, author_version from shown where id = :id;\n\
         -- name: again :one\nselect version from article where id = :id;\n",
    ),
    // The same rows, and nothing narrows.
    (
        "wide/[id].sql",
        "-- param: id integer\n\
         -- name: shown :one\nselect id, version, author_id, author_version from shown where id + 0 = :id;\n\
         -- name: again :one\nselect version from article where id + 0 = :id;\n",
    ),
    (
        "article.post.sql",
        "-- param: id integer\n-- name: row :one\nupdate article set version = version + 1 where id = :id returning version;\n\
         -- redirect: /narrow/1?version=:version\n",
    ),
    (
        "author.post.sql",
        "-- param: id integer\n-- name: row :one\nupdate author set version = version + 1 where id = :id returning version;\n\
         -- redirect: /narrow/1?version=:version\n",
    ),
];

/// Counts of reads.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    hits: u64,
    late: u64,
    mixed: u64,
}

struct ChurnOptions {
    millpond: PathBuf,
    updates: u64,
    reads: u64,
    time: Duration,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let seconds: u64 = arguments.option("--seconds")?.unwrap_or(20).max(1);
    let options = ChurnOptions {
        millpond: millpond.unwrap_or_else(|| "target/release/millpond".into()),
        updates: arguments.option("--updates")?.unwrap_or(200).max(1),
        reads: arguments.option("--reads")?.unwrap_or(4000).max(READERS),
        time: Duration::from_secs(seconds),
    };
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    cpu::pin(CLIENT_CORE)?;
    let mut table = format!(
        "{ARTICLES} articles, {} updates and {} reads a second asked for, {seconds} s each\n\
         {:>10} {:>7} {:>10} {:>10} {:>7} {:>5} {:>5}\n",
        options.updates, options.reads, "", "page", "updates/s", "reads/s", "hits", "late", "mixed",
    );
    let (mut found, mut holds) = (Vec::new(), true);
    for kind in Kind::BOTH {
        for page in ["wide", "narrow"] {
            let (written, counts) = churn(&options, kind, page)?;
            let hits = counts.hits as f64 / counts.reads.max(1) as f64;
            let [updates, reads] = [written, counts.reads].map(|count| count / seconds);
            let Counts { late, mixed, .. } = counts;
            holds &= (late, mixed) == (0, 0) && (page == "wide" || hits >= LIMIT);
            let _ = writeln!(
                table,
                "{:>10} {page:>7} {updates:>10} {reads:>10} {:>5.1} % {late:>5} {mixed:>5}",
                kind.name(),
                hits * 100.0,
            );
            found.push(json!({
                "database": kind.name(), "page": page, "updates_per_second": updates, "reads": counts.reads,
                "hits": hits, "late": late, "mixed": mixed,
            }));
        }
    }
    let said = if holds { "holds" } else { "MISSED" };
    let _ = writeln!(
        table,
        "narrow: hits at least {LIMIT}; none late, none mixed: {said}"
    );
    publish(
        &table,
        &json!({ "found": found, "holds": holds }),
        json.as_deref(),
    )?;
    Ok(holds)
}

/// The number of updates, and what the readers saw meanwhile.
fn churn(options: &ChurnOptions, kind: Kind, page: &str) -> Result<(u64, Counts)> {
    let shop = Shop::start(&options.millpond, kind, &tables(), PAGES, POOL, Ok)?;
    let (articles, authors) = (
        Acknowledged::new(ARTICLES + 1),
        Acknowledged::new(AUTHORS + 1),
    );
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(options, &shop, &articles, &authors, &over));
        let reader = |number| {
            let reader = ChurnReader {
                page,
                bound: if kind == Kind::Sqlite {
                    Duration::ZERO
                } else {
                    BOUND
                },
                articles: &articles,
                authors: &authors,
                random: Random::new(number),
                counts: Counts::default(),
            };
            let (shop, over, pace) = (&shop, &over, options.reads / READERS);
            scope.spawn(move || reader.read(shop.client()?, pace, over))
        };
        let readers: Vec<_> = (0..READERS).map(reader).collect();
        thread::sleep(options.time);
        over.store(true, Ordering::Relaxed);
        let mut all = Counts::default();
        for reader in readers {
            let seen = reader.join().map_err(|_| "a reader panicked")??;
            all.reads += seen.reads;
            all.hits += seen.hits;
            all.late += seen.late;
            all.mixed += seen.mixed;
        }
        let written = writer.join().map_err(|_| "the writer panicked")??;
        Ok((written, all))
    })
}

fn tables() -> String {
    let mut sql = "create table author (id integer primary key, version bigint not null);
        create table article (id integer primary key, author_id integer not null, version bigint not null);
        create view shown as select a.id, a.version, r.id as author_id, r.version as author_version
        from article a join author r on r.id = a.author_id;\n"
        .to_owned();
    for id in 1..=AUTHORS {
        let _ = writeln!(sql, "insert into author values ({id}, 0);");
    }
    for id in 1..=ARTICLES {
        let author = id % AUTHORS + 1;
        let _ = writeln!(sql, "insert into article values ({id}, {author}, 0);");
    }
    sql
}

/// Changes one row after the other at a steady rate; the number of changes.
fn write(
    options: &ChurnOptions,
    shop: &Shop,
    articles: &Acknowledged,
    authors: &Acknowledged,
    over: &AtomicBool,
) -> Result<u64> {
    let mut random = Random::new(99);
    let mut database = shop.postgres.as_ref().map(connect).transpose()?;
    let mut client = shop.client()?;
    let begun = Instant::now();
    let mut done = 0;
    while !over.load(Ordering::Relaxed) {
        let due = Duration::from_nanos(done * 1_000_000_000 / options.updates);
        thread::sleep(due.saturating_sub(begun.elapsed()));
        let (table, rows, told) = match random.number() % 10 {
            0 => ("author", AUTHORS, authors),
            _ => ("article", ARTICLES, articles),
        };
        let id = usize::try_from(random.number()).unwrap_or(0) % rows + 1;
        let version = match &mut database {
            Some(database) => {
                let update = format!(
                    "update {table} set version = version + 1 where id = {id} returning version"
                );
                let row = database.query_one(&update, &[]);
                row.map_err(|error| error.to_string())?.get(0)
            }
            None => posted(&mut client, table, id)?,
        };
        told.note(id, version);
        done += 1;
    }
    Ok(done)
}

/// The version that a form has made.
fn posted(client: &mut Client, table: &str, id: usize) -> Result<i64> {
    let answer = client.post(&format!("/{table}"), &format!("id={id}"));
    let answer = answer.map_err(|error| error.to_string())?;
    let version = answer.field("location").and_then(|to| to.rsplit_once('='));
    let version = version.and_then(|(_, version)| version.parse().ok());
    version.ok_or_else(|| format!("a form: {} {}", answer.status, answer.text()))
}

struct ChurnReader<'a> {
    page: &'a str,
    bound: Duration,
    articles: &'a Acknowledged,
    authors: &'a Acknowledged,
    random: Random,
    counts: Counts,
}

impl ChurnReader<'_> {
    /// Reads any articles at a steady rate.
    fn read(mut self, mut client: Client, pace: u64, over: &AtomicBool) -> Result<Counts> {
        let begun = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let due = Duration::from_nanos(self.counts.reads * 1_000_000_000 / pace.max(1));
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let id = usize::try_from(self.random.number()).unwrap_or(0) % ARTICLES + 1;
            let sent = Boottime::now();
            let answer = client.get(&format!("/{}/{id}", self.page), &[]);
            let answer = answer.map_err(|error| error.to_string())?;
            self.judge(id, sent, &answer)
                .ok_or_else(|| format!("not such a page: {} {}", answer.status, answer.text()))?;
        }
        Ok(self.counts)
    }

    fn judge(&mut self, id: usize, sent: Boottime, answer: &Response) -> Option<()> {
        let page: Value = serde_json::from_slice(&answer.body).ok()?;
        let (shown, again) = (page.get("shown")?, page.get("again")?);
        let number = |of: &Value, name: &str| of.get(name)?.as_i64();
        let (version, author) = (number(shown, "version")?, number(shown, "author_id")?);
        let before = sent.minus(self.bound);
        let author_due = self.authors.due(usize::try_from(author).ok()?, before);
        let is_late = version < self.articles.due(id, before)
            || number(shown, "author_version")? < author_due;
        let is_mixed = version != number(again, "version")?;
        let is_hit = answer.field("cache-status") == Some("millpond; hit");
        self.counts.reads += 1;
        self.counts.hits += u64::from(is_hit);
        self.counts.late += u64::from(is_late);
        self.counts.mixed += u64::from(is_mixed);
        Some(())
    }
}
