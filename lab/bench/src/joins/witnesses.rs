//! What it costs a miss to narrow its dependencies: the CPU of server and database for an album
//! with its artist and label, and for the newest albums, beside the same pages written so that
//! whole tables count and no witness is asked.
//!
//! Each page is asked for once, so each is a miss. Server and database run on core 0, and the
//! client on the other core. On PostgreSQL the round trips are counted in a run of their own, in
//! which a relay stands between server and database.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use lab_testkit::Client;
use serde_json::json;

use super::{
    round_trips::RoundTrips,
    shop::{Kind, Pages, Shop},
};
use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::CLIENT_CORE,
    spread::{Outcome, SampleSpread},
};

/// The cost with witnesses may be this many times that without.
const LIMIT: f64 = 1.25;
const ARTISTS: u64 = 2_000;
const LABELS: u64 = 100;
/// Pages that are read before anything counts.
const WARMING: u64 = 200;
/// Pages whose round trips are counted.
const COUNTED: u64 = 500;

/// A page, and the same page of which whole tables count.
struct PagePair {
    title: &'static str,
    narrow: &'static str,
    wide: &'static str,
    /// Databases on which it is narrowed.
    databases: &'static [Kind],
}

const PAIRS: [PagePair; 3] = [
    PagePair {
        title: "along keys",
        narrow: "keys",
        wide: "keys-wide",
        databases: &Kind::BOTH,
    },
    PagePair {
        title: "first rows",
        narrow: "first",
        wide: "first-wide",
        databases: &Kind::BOTH,
    },
    PagePair {
        title: "first rows and their keys",
        narrow: "both",
        wide: "both-wide",
        databases: &[Kind::Sqlite],
    },
];

const PAGES: Pages<'static> = &[
    (
        "keys/[id].sql",
        "-- param: id integer\n-- name: album :one\n\
         select a.title, r.name as artist, l.name as label from album a join artist r on r.id = a.artist_id \
         join label l on l.id = r.label_id where a.id = :id;\n",
    ),
    (
        "keys-wide/[id].sql",
        "-- param: id integer\n-- name: album :one\n\
         select a.title, r.name as artist, l.name as label from album a join artist r on r.id = a.artist_id + 0 \
         join label l on l.id = r.label_id + 0 where a.id = :id;\n",
    ),
    (
        "first/[id].sql",
        "-- param: id integer\n-- name: albums :many\n\
         select id, title, :id as page from album order by id desc limit 8;\n",
    ),
    (
        "first-wide/[id].sql",
        "-- param: id integer\n-- name: albums :many\n\
         select id, title, :id as page from album order by id desc limit 8 + 0;\n",
    ),
    (
        "both/[id].sql",
        "-- param: id integer\n-- name: albums :many\n\
         select a.id, a.title, r.name as artist, :id as page from album a join artist r on r.id = a.artist_id \
         order by a.id desc limit 8;\n",
    ),
    (
        "both-wide/[id].sql",
        "-- param: id integer\n-- name: albums :many\n\
         select a.id, a.title, r.name as artist, :id as page from album a join artist r on r.id = a.artist_id \
         order by a.id desc limit 8 + 0;\n",
    ),
];

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let pages: u64 = arguments.option("--pages")?.unwrap_or(400).max(1);
    let blocks: u64 = arguments.option("--blocks")?.unwrap_or(10).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    cpu::pin(CLIENT_CORE)?;
    let albums = (WARMING + pages * blocks * 2).max(COUNTED + WARMING);
    let mut table = format!(
        "CPU of server and database per page, µs, median of {} runs of {pages} pages\n\
         {:>10} {:>26} {:>9} {:>9}   ratio\n",
        2 * blocks,
        "",
        "",
        "whole",
        "narrowed",
    );
    let (mut found, mut holds) = (Vec::new(), true);
    let databases = PAIRS
        .iter()
        .flat_map(|pair| pair.databases.iter().map(move |&kind| (pair, kind)));
    for (pair, kind) in databases {
        let [wide, narrow, ratio] = measure(&millpond, kind, pair, albums, pages, blocks)?;
        let outcome = ratio.at_most(LIMIT);
        holds &= outcome == Outcome::Holds;
        let _ = writeln!(
            table,
            "{:>10} {:>26} {:>9.1} {:>9.1}   {}; at most {LIMIT}: {}",
            kind.name(),
            pair.title,
            wide.median(),
            narrow.median(),
            ratio.shown(3),
            outcome.as_str(),
        );
        found.push(json!({
            "database": kind.name(), "page": pair.title,
            "wide_us": wide.median(), "narrow_us": narrow.median(),
            "ratio": ratio.median(), "ratio_95": ratio.interval(), "outcome": outcome.as_str(),
        }));
    }
    let [wide, narrow] = round_trips(&millpond, albums)?;
    holds &= narrow == wide;
    let _ = writeln!(
        table,
        "round trips to PostgreSQL for {COUNTED} pages: {wide} with whole tables, {narrow} with witnesses"
    );
    let trips = json!({ "pages": COUNTED, "wide": wide, "narrow": narrow });
    let found = json!({ "found": found, "round_trips": trips, "holds": holds });
    publish(&table, &found, json.as_deref())?;
    Ok(holds)
}

/// The costs of the wide page, of the narrow one, and their ratios in blocks.
fn measure(
    millpond: &Path,
    kind: Kind,
    pair: &PagePair,
    albums: u64,
    pages: u64,
    blocks: u64,
) -> Result<[SampleSpread; 3]> {
    let shop = Shop::start(millpond, kind, &tables(albums), PAGES, 1, Ok)?;
    let mut client = shop.client()?;
    let mut next = [1; 2];
    let mut cost = |page: usize, count: u64| -> Result<f64> {
        let before = shop.cpu()?;
        read(
            &mut client,
            [pair.wide, pair.narrow][page],
            &mut next[page],
            count,
        )?;
        let spent = shop.cpu()?.saturating_sub(before);
        Ok(spent.as_secs_f64() * 1e6 / count as f64)
    };
    for page in [0, 1] {
        cost(page, WARMING)?;
    }
    let (mut wide, mut narrow, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for block in 0..blocks {
        eprintln!(
            "{}, {}: block {} of {blocks}",
            kind.name(),
            pair.title,
            block + 1
        );
        let first = cost(0, pages)?;
        let (second, third) = (cost(1, pages)?, cost(1, pages)?);
        let fourth = cost(0, pages)?;
        ratios.push((second * third / (first * fourth)).sqrt());
        wide.extend([first, fourth]);
        narrow.extend([second, third]);
    }
    let spreads = [wide, narrow, ratios].map(|values| SampleSpread::new(values).ok_or("no block"));
    let [wide, narrow, ratio] = spreads;
    Ok([wide?, narrow?, ratio?])
}

/// Round trips of the wide and of the narrow page along keys.
fn round_trips(millpond: &Path, albums: u64) -> Result<[u64; 2]> {
    let trips = RoundTrips::default();
    let through = |port| trips.relay(port);
    let kind = Kind::Postgres;
    let shop = Shop::start(millpond, kind, &tables(albums), PAGES, 1, through)?;
    let mut client = shop.client()?;
    let mut of = |page: &str| -> Result<u64> {
        let mut next = 1;
        // The statement is prepared and looked into.
        read(&mut client, page, &mut next, WARMING)?;
        let before = trips.count();
        read(&mut client, page, &mut next, COUNTED)?;
        Ok(trips.count() - before)
    };
    Ok([of(PAIRS[0].wide)?, of(PAIRS[0].narrow)?])
}

/// Reads this many albums that no request has asked for.
fn read(client: &mut Client, page: &str, next: &mut u64, count: u64) -> Result<()> {
    for _ in 0..count {
        let target = format!("/{page}/{next}");
        *next += 1;
        let answer = client
            .get(&target, &[])
            .map_err(|error| error.to_string())?;
        if answer.status != 200 || answer.field("cache-status") == Some("millpond; hit") {
            return Err(format!("{target}: {} {}", answer.status, answer.text()));
        }
    }
    Ok(())
}

fn tables(albums: u64) -> String {
    let mut sql =
        "create table label (id integer primary key, name text not null);
        create table artist (id integer primary key, label_id integer not null, name text not null);
        create table album (id integer primary key, artist_id integer not null, title text not null);\n"
            .to_owned();
    let mut insert = |table: &str, count: u64, row: &dyn Fn(u64) -> String| {
        let rows: Vec<String> = (1..=count).map(row).collect();
        let _ = writeln!(sql, "insert into {table} values {};", rows.join(","));
    };
    insert("label", LABELS, &|id| format!("({id}, 'label {id}')"));
    insert("artist", ARTISTS, &|id| {
        format!("({id}, {}, 'artist {id}')", id % LABELS + 1)
    });
    insert("album", albums, &|id| {
        format!("({id}, {}, 'album {id}')", id % ARTISTS + 1)
    });
    sql
}
