//! What a change costs the server with few and with many results in memory.
//!
//! The pages of one table's groups are brought into memory; then rows of different groups are updated, one transaction each, and the
//! server's CPU for all of them is counted, the feed's thread included. Under `REPLICA IDENTITY DEFAULT` the
//! feed does not tell a row's old group, so each update ends all pages of groups; under `FULL` it ends one.

use std::{fmt::Write as _, path::PathBuf, thread, time::Duration};

use serde_json::{Value, json};

use super::{
    client::Client,
    site::{IN_GROUP, Site, said},
};
use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::CLIENT_CORE,
    spread::Spread,
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
    let rounds: usize = arguments.option("--rounds")?.unwrap_or(5).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    cpu::pin(CLIENT_CORE)?;
    let mut table = format!(
        "server CPU per update, µs, median (min–max) of {rounds} rounds of {updates}\n{:>10} {:>26} {:>26} {:>8}\n",
        "identity",
        format!("{FEW} results"),
        format!("{many} results"),
        "ratio"
    );
    let mut found: Vec<Value> = Vec::new();
    let mut holds = true;
    for identity in ["default", "full"] {
        // Both databases have as many rows, so that PostgreSQL's part is the same.
        let few = cost(&millpond, many, FEW, identity, updates, rounds)?;
        let all = cost(&millpond, many, many, identity, updates, rounds)?;
        let ratio = all.median() / few.median();
        holds &= ratio <= LIMIT;
        let cell = |spread: &Spread| {
            format!(
                "{:.1} ({:.1}–{:.1})",
                spread.median(),
                spread.min(),
                spread.max()
            )
        };
        let _ = writeln!(
            table,
            "{identity:>10} {:>26} {:>26} {ratio:>8.2}",
            cell(&few),
            cell(&all)
        );
        found.push(json!({
            "identity": identity, "few_us": few.median(), "many_us": all.median(), "ratio": ratio,
        }));
    }
    let _ = writeln!(
        table,
        "at most {LIMIT} times: {}",
        if holds { "holds" } else { "MISSED" }
    );
    let found =
        json!({ "few": FEW, "many": many, "updates": updates, "found": found, "holds": holds });
    publish(&table, &found, json.as_deref())?;
    Ok(holds)
}

/// Microseconds of the server's CPU for one update with the pages of so many groups in memory.
fn cost(
    millpond: &std::path::Path,
    groups: i32,
    cached: i32,
    identity: &str,
    updates: i32,
    rounds: usize,
) -> Result<Spread> {
    eprintln!("{cached} results, replica identity {identity}");
    let site = Site::start(millpond, groups, identity)?;
    let mut writer = site.client()?;
    let update = writer
        .prepare("update note set version = version + 1 where id = $1")
        .map_err(|error| said(&error))?;
    let mut costs = Vec::new();
    for _ in 0..rounds {
        warm(&site, cached)?;
        let before = cpu::run_time(site.server.pid())?;
        for number in 0..updates {
            // Groups that are far from each other.
            let group = number * (cached / updates);
            writer
                .execute(&update, &[&(group * IN_GROUP)])
                .map_err(|error| said(&error))?;
        }
        shown(&site, &mut writer)?;
        let spent = cpu::run_time(site.server.pid())?.saturating_sub(before);
        costs.push(spent.as_secs_f64() * 1e6 / f64::from(updates));
    }
    Spread::new(costs).ok_or_else(|| "no round was run".to_owned())
}

/// Asks for the pages of the first groups until all are in memory.
fn warm(site: &Site, groups: i32) -> Result<()> {
    thread::scope(|scope| {
        let warmers: Vec<_> = (0..WARMERS)
            .map(|first| {
                scope.spawn(move || {
                    let mut client = Client::connect(&site.server.url)?;
                    for group in (first..groups).step_by(WARMERS as usize) {
                        client.get(&format!("/group/{group}"))?;
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

/// Waits until the feed has come to the last update: then a later one shows.
fn shown(site: &Site, writer: &mut postgres::Client) -> Result<()> {
    let row = writer
        .query_one(
            "update note set version = version + 1 where id = 1 returning version",
            &[],
        )
        .map_err(|error| said(&error))?;
    let version: i64 = row.get(0);
    let mut client = Client::connect(&site.server.url)?;
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
