//! How long after its acknowledgement a commit of another program shows on the page.
//!
//! SQL changes a row. From the acknowledgement of the commit on, the page of the row is requested
//! again and again on one connection, until it shows the change. The time ends with the end of that
//! response, so it includes at least one round trip.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    client::PageClient,
    site::{Site, to_message},
};
use crate::{
    Result,
    arguments::{Arguments, publish},
    spread::SampleSpread,
};

/// The most milliseconds for half of the commits, and for 99 of 100.
const LIMITS: (f64, f64) = (2.0, 10.0);
/// Between two commits, so that each finds the machine idle.
const PAUSE: Duration = Duration::from_millis(3);

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let commits: u32 = arguments.option("--commits")?.unwrap_or(2_000).max(100);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let site = Site::start(&millpond, 500, "default")?;
    let mut writer = site.client()?;
    let mut reader = PageClient::connect(site.server.address())?;
    let update = writer
        .prepare("update note set version = version + 1 where id = $1 returning version")
        .map_err(|error| to_message(&error))?;
    let mut millis = Vec::new();
    let mut requests = 0_u64;
    for commit in 0..commits {
        let id = i32::try_from(commit % 1_000).unwrap_or(0);
        let path = format!("/note/{id}");
        // It is in memory when it is changed.
        reader.get(&path)?;
        reader.get(&path)?;
        // An idle machine is what is asked about.
        thread::sleep(PAUSE);
        let row = writer
            .query_one(&update, &[&id])
            .map_err(|error| to_message(&error))?;
        let acknowledged = Instant::now();
        let version: i64 = row.get(0);
        let shown = format!("\"version\":{version}");
        loop {
            requests += 1;
            let body = reader.get(&path)?;
            if body.replace(' ', "").contains(&shown) {
                break;
            }
            if acknowledged.elapsed() > Duration::from_secs(20) {
                return Err(format!(
                    "{path} still shows {body} and not version {version}"
                ));
            }
        }
        millis.push(acknowledged.elapsed().as_secs_f64() * 1e3);
    }
    let spread = SampleSpread::new(millis).ok_or("no commit was made")?;
    let (p50, p99) = (spread.median(), spread.quantile(0.99));
    let holds = p50 <= LIMITS.0 && p99 <= LIMITS.1;
    let table = format!(
        "{commits} commits, acknowledged to shown: p50 {p50:.3} ms, p99 {p99:.3} ms, longest {:.3} ms; {:.1} requests for each\n\
         at most {} and {} ms: {}\n",
        spread.max(),
        requests as f64 / f64::from(commits),
        LIMITS.0,
        LIMITS.1,
        if holds { "holds" } else { "MISSED" },
    );
    let found = json!({
        "commits": commits, "p50_ms": p50, "p99_ms": p99, "max_ms": spread.max(),
        "requests": requests, "holds": holds,
    });
    publish(&table, &found, json.as_deref())?;
    Ok(holds)
}
