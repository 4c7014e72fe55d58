//! A large CSV file as a table of a site on SQLite, beside `.import` of the `sqlite3` shell.
//!
//! Both make a new database with the same columns. Millpond's time is that of its start, which
//! waits for the file. Memory is the most that the process had, beside that of the same server with
//! a file of no rows.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use lab_testkit::Server;
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    files::{output, write},
    hit_ratio,
    spread::{Outcome, SampleSpread},
};

/// Speed of Millpond over that of the shell, at least.
const SPEED: f64 = 0.5;
/// Memory beyond that of the idle server in MiB, at most.
const MEMORY: f64 = 100.0;

const NAMES: &str = "id,name,email,amount,day,active,note\n";
const COLUMNS: &str = "id integer primary key, name text, email text, amount real, day text, \
    active integer, note text";

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let mib: u64 = arguments.option("--mib")?.unwrap_or(1_024).max(1);
    let runs: usize = arguments.option("--runs")?.unwrap_or(6).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let folder = tempfile::tempdir_in(hit_ratio::target());
    let folder = folder.map_err(|error| format!("a temporary folder: {error}"))?;
    let csv = folder.path().join("big.csv");
    let rows = make(&csv, mib << 20).map_err(|error| format!("{}: {error}", csv.display()))?;
    let empty = folder.path().join("empty.csv");
    write(&empty, NAMES)?;
    let (_, idle) = serve(&millpond, folder.path(), &empty)?;
    let (mut ratios, mut shells, mut serves, mut memory) = (vec![], vec![], vec![], 0.0_f64);
    for run in 0..runs {
        eprintln!("run {} of {runs}", run + 1);
        let shell = shell(folder.path(), &csv)?;
        let (seconds, peak) = serve(&millpond, folder.path(), &csv)?;
        memory = memory.max(peak - idle);
        ratios.push(shell / seconds);
        shells.push(shell);
        serves.push(seconds);
    }
    let spread = |values| SampleSpread::new(values).ok_or("no runs");
    let (ratio, shell, serve) = (spread(ratios)?, spread(shells)?, spread(serves)?);
    let outcome = match ratio.at_least(SPEED) {
        Outcome::Holds if memory > MEMORY => Outcome::Missed,
        outcome => outcome,
    };
    let table = format!(
        "{mib} MiB of CSV, {rows} rows\nsqlite3 .import   {} s\nmillpond serve    {} s\n\
         speed             {} of .import's; at least {SPEED}\n\
         memory            {memory:.1} MiB beyond {idle:.1} of the idle server; at most {MEMORY}\n{}\n",
        shell.shown(1),
        serve.shown(1),
        ratio.shown(2),
        outcome.as_str(),
    );
    let found = json!({
        "mib": mib, "rows": rows, "runs": runs,
        "sqlite3_s": shell.median(), "millpond_s": serve.median(), "speed_ratio": ratio.median(),
        "idle_mib": idle, "memory_mib": memory, "outcome": outcome.as_str(),
    });
    publish(&table, &found, json.as_deref())?;
    Ok(outcome == Outcome::Holds)
}

/// Writes a file of about this size; gives the number of its rows.
fn make(path: &Path, bytes: u64) -> std::io::Result<u64> {
    const WORDS: [&str; 8] = [
        "alpha", "beta", "gamma", "delta", "tea", "coffee", "water", "stone",
    ];
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(NAMES.as_bytes())?;
    let (mut written, mut id) = (0, 0);
    while written < bytes {
        id += 1;
        let word = |number: u64| WORDS[usize::try_from(number % 8).unwrap_or(0)];
        let (first, second) = (word(id), word(id / 8));
        let (amount, cents, month, day) = (id % 10_000, id % 100, id % 12 + 1, id % 28 + 1);
        let active = id % 2;
        let line = format!(
            "{id},{first} {second} {id},user{id}@example.org,{amount}.{cents:02},\
             2026-{month:02}-{day:02},{active},\"{first}, {second} and {first}\"\n"
        );
        written += line.len() as u64;
        file.write_all(line.as_bytes())?;
    }
    file.into_inner()?.sync_all()?;
    Ok(id)
}

/// The seconds of the shell.
fn shell(folder: &Path, csv: &Path) -> Result<f64> {
    let database = folder.join("shell.db");
    // There is none before the first run.
    let _ = fs::remove_file(&database);
    let begun = Instant::now();
    output(
        Command::new("sqlite3")
            .arg(&database)
            .arg(format!("create table big ({COLUMNS});"))
            .arg(format!(".import --csv --skip 1 {} big", csv.display())),
    )?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The seconds until Millpond serves a new site with this file, and the most memory in MiB.
fn serve(millpond: &Path, folder: &Path, csv: &Path) -> Result<(f64, f64)> {
    let site = folder.join("site");
    // There is none before the first run.
    let _ = fs::remove_dir_all(&site);
    for part in ["data", "migrations", "pages"] {
        fs::create_dir_all(site.join(part)).map_err(|error| format!("{part}: {error}"))?;
    }
    write(
        &site.join("millpond.toml"),
        "[database]\nurl = \"sqlite:site.db\"\n",
    )?;
    let table = format!("create table big ({COLUMNS}, _file text not null);\n");
    write(&site.join("migrations/0001_big.sql"), &table)?;
    write(&site.join("pages/index.html"), "served\n")?;
    fs::hard_link(csv, site.join("data/big.csv")).map_err(|error| format!("big.csv: {error}"))?;
    let mut command = Command::new(millpond);
    command.arg("serve").arg(&site);
    command.args(["--listen", "127.0.0.1:0"]);
    let begun = Instant::now();
    let server = Server::spawn(command);
    let seconds = begun.elapsed().as_secs_f64();
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid()));
    let status = status.map_err(|error| format!("the server has ended: {error}"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    let peak: f64 = peak
        .and_then(|peak| peak.trim().parse().ok())
        .ok_or("the kernel does not say how much memory the server had")?;
    Ok((seconds, peak / 1_024.0))
}
