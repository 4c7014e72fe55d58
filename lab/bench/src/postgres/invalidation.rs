//! What a change costs the server with few and with many results in memory.
//!
//! The pages of one table's groups are loaded into memory. Then rows of different groups are
//! updated, one transaction each, and the server's CPU for all of them is counted, including the
//! feed's thread. Under `REPLICA IDENTITY DEFAULT` the feed does not give a row's old group, so
//! each update invalidates all pages of groups; under `FULL` it invalidates one. With `--joined`
//! the pages join five tables along keys, so each has five witnesses, and a row behind the last key
//! is updated, which invalidates one page.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    client::PageClient,
    site::{IN_GROUP, PARTS, Site, to_message},
};
use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::CLIENT_CORE,
    spread::{Outcome, SampleSpread},
};

/// The cost with many results may be this many times that with few.
const LIMIT: f64 = 1.5;
const FEW: i32 = 1_000;
/// Connections that bring pages into memory.
const WARMERS: i32 = 8;

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let many: i32 = arguments.option("--objects")?.unwrap_or(100_000).max(FEW);
    let updates: i32 = arguments.option("--updates")?.unwrap_or(500).clamp(1, FEW);
    let blocks: usize = arguments.option("--blocks")?.unwrap_or(10).max(1);
    let joined = arguments.flag("--joined");
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    cpu::pin(CLIENT_CORE)?;
    let mut table = format!(
        "server CPU per update, µs, median of {} rounds of {updates}, in turn; and the median of the ratios in {blocks} blocks\n\
         {:>10} {:>14} {:>16}   ratio\n",
        2 * blocks,
        "identity",
        format!("{FEW} results"),
        format!("{many} results"),
    );
    let mut found: Vec<Value> = Vec::new();
    let mut holds = true;
    let identities: &[&str] = if joined {
        &["joined"]
    } else {
        &["default", "full"]
    };
    for identity in identities {
        // Both databases have as many rows, so that PostgreSQL's part is the same.
        let mut few = LoadedSite::new(&millpond, many, FEW, identity)?;
        let mut all = LoadedSite::new(&millpond, many, many, identity)?;
        let (mut fews, mut alls, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for block in 0..blocks {
            eprintln!("{identity}: block {} of {blocks}", block + 1);
            let first = few.cost(updates)?;
            let (second, third) = (all.cost(updates)?, all.cost(updates)?);
            let fourth = few.cost(updates)?;
            ratios.push((second * third / (first * fourth)).sqrt());
            fews.extend([first, fourth]);
            alls.extend([second, third]);
        }
        let spreads = SampleSpread::new(fews)
            .zip(SampleSpread::new(alls))
            .zip(SampleSpread::new(ratios));
        let ((few, all), ratio) = spreads.ok_or("no block was run")?;
        let outcome = ratio.at_most(LIMIT);
        holds &= outcome == Outcome::Holds;
        let _ = writeln!(
            table,
            "{identity:>10} {:>14.1} {:>16.1}   {}; at most {LIMIT}: {}",
            few.median(),
            all.median(),
            ratio.shown(3),
            outcome.as_str(),
        );
        found.push(json!({
            "identity": identity, "few_us": few.median(), "many_us": all.median(), "ratio": ratio.median(),
            "ratio_95": ratio.interval(), "outcome": outcome.as_str(),
        }));
    }
    let found =
        json!({ "few": FEW, "many": many, "updates": updates, "found": found, "holds": holds });
    publish(&table, &found, json.as_deref())?;
    Ok(holds)
}

/// A site with pages of these groups in memory, and a connection that updates their rows.
struct LoadedSite {
    // Dropped before the site, whose database cannot be dropped while a client is connected.
    writer: postgres::Client,
    update: postgres::Statement,
    site: Site,
    cached: i32,
    joined: bool,
}

impl LoadedSite {
    fn new(millpond: &Path, groups: i32, cached: i32, identity: &str) -> Result<Self> {
        let joined = identity == "joined";
        let (site, table) = if joined {
            let site = Site::start_joined(millpond, groups)?;
            (site, format!("part_{PARTS}"))
        } else {
            let site = Site::start(millpond, groups, identity)?;
            (site, "note".to_owned())
        };
        let mut writer = site.client()?;
        let update = format!("update {table} set version = version + 1 where id = $1");
        let update = writer
            .prepare(&update)
            .map_err(|error| to_message(&error))?;
        Ok(Self {
            writer,
            update,
            site,
            cached,
            joined,
        })
    }

    /// Microseconds of the server's CPU for one update with all pages in memory.
    fn cost(&mut self, updates: i32) -> Result<f64> {
        let page = |group: i32| match self.joined {
            true => format!("/joined/{}", group * IN_GROUP),
            false => format!("/group/{group}"),
        };
        warm(&self.site, self.cached, &page)?;
        let before = cpu::run_time(self.site.server.pid())?;
        let in_group = if self.joined { 1 } else { IN_GROUP };
        for number in 0..updates {
            // Groups that are far from each other.
            let group = number * (self.cached / updates);
            self.writer
                .execute(&self.update, &[&(group * in_group)])
                .map_err(|error| to_message(&error))?;
        }
        shown(&self.site, &mut self.writer)?;
        let spent = cpu::run_time(self.site.server.pid())?.saturating_sub(before);
        Ok(spent.as_secs_f64() * 1e6 / f64::from(updates))
    }
}

/// Asks for the pages of the first groups until all are in memory.
fn warm(site: &Site, groups: i32, page: &(dyn Fn(i32) -> String + Sync)) -> Result<()> {
    thread::scope(|scope| {
        let warmers: Vec<_> = (0..WARMERS)
            .map(|first| {
                scope.spawn(move || {
                    let mut client = PageClient::connect(site.server.address())?;
                    for group in (first..groups).step_by(WARMERS as usize) {
                        client.get(&page(group))?;
                    }
                    Ok(())
                })
            })
            .collect();
        warmers.into_iter().try_for_each(|warmer| {
            warmer
                .join()
                .unwrap_or_else(|_| Err("a client panicked".to_owned()))
        })
    })
}

/// Waits until the feed has passed the last update: then a later one shows.
fn shown(site: &Site, writer: &mut postgres::Client) -> Result<()> {
    let row = writer
        .query_one(
            "update note set version = version + 1 where id = 1 returning version",
            &[],
        )
        .map_err(|error| to_message(&error))?;
    let version: i64 = row.get(0);
    let mut client = PageClient::connect(site.server.address())?;
    for _ in 0..10_000 {
        let body = client.get("/note/1")?;
        if body
            .replace(' ', "")
            .contains(&format!("\"version\":{version}"))
        {
            return Ok(());
        }
        // Asked too often it would be what is measured.
        thread::sleep(Duration::from_millis(2));
    }
    Err("the last update does not show".to_owned())
}
