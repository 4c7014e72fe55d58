//! What a hit costs while another table is written.
//!
//! The server runs alone on core 0; PostgreSQL, the writer and the client share core 1. Runs with
//! and without writes alternate (ABBA). The server's CPU is that of all its threads, so the feed's
//! work counts as part of the hits.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
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
    cpu,
    drive::load,
    server::CLIENT_CORE,
    spread::{Outcome, SampleSpread},
};

/// The CPU of a hit with the writes may be this many times that without.
const LIMIT: f64 = 1.10;
/// Pages of the table that is written which are in memory.
const CACHED: i32 = 1_000;

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let rate: u64 = arguments.option("--rate")?.unwrap_or(1_000).max(1);
    let connections: usize = arguments.option("--connections")?.unwrap_or(32);
    let seconds: u32 = arguments.option("--seconds")?.unwrap_or(2).max(1);
    let blocks: usize = arguments.option("--blocks")?.unwrap_or(10).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    cpu::pin(CLIENT_CORE)?;
    let site = Site::start(&millpond, CACHED, "default")?;
    let page = format!("{}/elsewhere", site.server.url());
    let mut reader = PageClient::connect(site.server.address())?;
    for id in 0..CACHED {
        reader.get(&format!("/note/{id}"))?;
    }
    let mut writer = Writer::new(&site, rate)?;
    let run = |writer: Option<&mut Writer>| -> Result<(f64, u64)> {
        let over = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        thread::scope(|scope| {
            let writing = writer.map(|writer| scope.spawn(|| writer.write(&over, &done)));
            let before = cpu::run_time(site.server.pid())?;
            let requests = load(&millpond, &page, connections, seconds);
            let spent = cpu::run_time(site.server.pid())?.saturating_sub(before);
            over.store(true, Ordering::Relaxed);
            if let Some(writing) = writing {
                writing.join().map_err(|_| "the writer panicked")??;
            }
            let micros = spent.as_secs_f64() * 1e6 / requests? as f64;
            Ok((micros, done.load(Ordering::Relaxed)))
        })
    };
    run(None)?;
    let (mut without, mut with, mut ratios, mut written) = (vec![], vec![], vec![], 0);
    for block in 0..blocks {
        eprintln!("block {} of {blocks}", block + 1);
        let first = run(None)?.0;
        let (second, some) = run(Some(&mut writer))?;
        let (third, more) = run(Some(&mut writer))?;
        let fourth = run(None)?.0;
        written += some + more;
        without.extend([first, fourth]);
        with.extend([second, third]);
        ratios.push(((second.ln() + third.ln() - first.ln() - fourth.ln()) / 2.0).exp());
    }
    let reached = written as f64 / (blocks as f64 * 2.0 * f64::from(seconds));
    let spreads = SampleSpread::new(without)
        .zip(SampleSpread::new(with))
        .zip(SampleSpread::new(ratios));
    let ((without, with), ratio) = spreads.ok_or("no block was run")?;
    let outcome = match ratio.at_most(LIMIT) {
        Outcome::Holds if reached < rate as f64 * 0.99 => Outcome::NotDecided,
        outcome => outcome,
    };
    let mut table = String::new();
    let _ = writeln!(
        table,
        "server CPU per hit, µs, median of {} runs of {seconds} s, {connections} connections\n\
         without writes {:.2}, with {reached:.0} updates a second elsewhere {:.2}: {} times in {blocks} blocks\n\
         at most {LIMIT} times: {}",
        blocks * 2,
        without.median(),
        with.median(),
        ratio.shown(3),
        outcome.as_str(),
    );
    let found = json!({
        "without_us": without.median(), "with_us": with.median(), "updates_per_second": reached,
        "ratio": { "min": ratio.min(), "median": ratio.median(), "max": ratio.max() },
        "ratio_95": ratio.interval(), "outcome": outcome.as_str(),
    });
    publish(&table, &found, json.as_deref())?;
    Ok(outcome == Outcome::Holds)
}

/// Updates one row after the other at a steady rate.
struct Writer {
    client: postgres::Client,
    update: postgres::Statement,
    rate: u64,
}

impl Writer {
    fn new(site: &Site, rate: u64) -> Result<Self> {
        let mut client = site.client()?;
        let update = client
            .prepare("update note set version = version + 1 where id = $1")
            .map_err(|error| to_message(&error))?;
        Ok(Self {
            client,
            update,
            rate,
        })
    }

    fn write(&mut self, over: &AtomicBool, done: &AtomicU64) -> Result<()> {
        let begun = Instant::now();
        for number in 0_u64.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let due = Duration::from_nanos(number * 1_000_000_000 / self.rate);
            // Behind its schedule it does not wait.
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let id = i32::try_from(number % CACHED as u64).unwrap_or(0);
            self.client
                .execute(&self.update, &[&id])
                .map_err(|error| to_message(&error))?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
