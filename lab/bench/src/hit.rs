//! Does a page from memory cost what a file of its size costs?
//!
//! `millrace compare` compares the page of an article of the example magazine, on PostgreSQL or
//! SQLite, with the same bytes as a file of the same server. One process serves both, so its feed
//! and its timers are in both figures. Each comparison has a new process, so the random layout of
//! memory differs between comparisons.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use lab_pgtest::Options as PostgresOptions;
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    compared::{self, CpuComparison},
    cpu, magazine,
    server::{self, BenchServer, CLIENT_CORE},
};

/// The page may cost this many times what the file does.
const LIMIT: f64 = 1.05;
const CONNECTIONS: [usize; 2] = [32, 256];
/// The file with the bytes of the page.
const FILE: &str = "saved.html";

struct HitOptions {
    millpond: PathBuf,
    sqlite: bool,
    runs: usize,
    blocks: usize,
}

/// The command.
pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let database: Option<String> = arguments.option("--database")?;
    let options = HitOptions {
        millpond: millpond.unwrap_or_else(|| "target/release/millpond".into()),
        sqlite: match database.as_deref() {
            None | Some("postgres") => false,
            Some("sqlite") => true,
            Some(other) => return Err(format!("--database is postgres or sqlite, not {other:?}")),
        },
        runs: arguments.option("--runs")?.unwrap_or(3).max(1),
        blocks: arguments.option("--blocks")?.unwrap_or(60).max(10),
    };
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    cpu::pin(CLIENT_CORE)?;
    let mut findings = Vec::new();
    for number in 1..=options.runs {
        for (connections, bytes, finding) in measure(&options)? {
            eprintln!(
                "{number} of {}, {connections} connections: {}",
                options.runs,
                finding.line()
            );
            findings.push((connections, bytes, finding));
        }
    }
    let holds = findings
        .iter()
        .all(|(_, _, finding)| finding.within_limit == Some(true));
    let each = findings.iter().map(|(connections, bytes, finding)| {
        json!({ "connections": connections, "bytes": bytes, "comparison": finding.as_json() })
    });
    let found = json!({
        "database": if options.sqlite { "sqlite" } else { "postgres" },
        "limit": LIMIT, "holds": holds, "comparisons": each.collect::<Vec<_>>(),
    });
    publish(&table(&findings, holds, &options), &found, json.as_deref())?;
    Ok(holds)
}

/// A new server, and both numbers of connections: the bytes of the page, and what was found.
fn measure(options: &HitOptions) -> Result<Vec<(usize, usize, CpuComparison)>> {
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let postgres = if options.sqlite {
        None
    } else {
        let started = PostgresOptions::new().logical().start();
        Some(started.map_err(|error| error.to_string())?)
    };
    let millpond = &options.millpond;
    let server = match &postgres {
        Some(postgres) => {
            magazine::on_postgres(millpond, folder.path(), &postgres.url(), "", 1_000, true)?
        }
        None => magazine::on_sqlite(millpond, folder.path())?,
    };
    let bytes = save(&server, folder.path())?;
    let mut found = Vec::new();
    for connections in CONNECTIONS {
        found.push((connections, bytes, compare(options, &server, connections)?));
    }
    Ok(found)
}

/// Saves the page as a file of the site; its length.
fn save(server: &BenchServer, folder: &Path) -> Result<usize> {
    let response = server::fetch(server)?;
    let head = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body = &response[head.map_or(0, |at| at + 4)..];
    let file = magazine::files(folder).join(FILE);
    fs::write(&file, body).map_err(|error| format!("{}: {error}", file.display()))?;
    // The server hears of it from the system, a moment later.
    for _ in 0..100 {
        if server::get(&file_url(server)).is_ok_and(|answer| answer.ends_with(body)) {
            return Ok(body.len());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(format!("{} is not served", file.display()))
}

/// Where the file is, on the server of the page.
fn file_url(server: &BenchServer) -> String {
    server
        .url
        .replace(&magazine::page(magazine::FIRST), &format!("/{FILE}"))
}

fn compare(
    options: &HitOptions,
    server: &BenchServer,
    connections: usize,
) -> Result<CpuComparison> {
    let pid = server.pid().to_string();
    let mut command = Command::new(crate::drive::millrace(&options.millpond));
    command
        .arg("compare")
        .arg(format!("file={}", file_url(server)))
        .arg(format!("page={}", server.url))
        .args(["--pid-a", &pid, "--pid-b", &pid])
        .args(["--connections", &connections.to_string()])
        .args(["--limit", &LIMIT.to_string(), "--detect", "2%"])
        .args(["--warmup", "50ms", "--duration", "100ms"])
        .args(["--blocks", &options.blocks.to_string()]);
    compared::compare(&mut command)
}

fn table(findings: &[(usize, usize, CpuComparison)], holds: bool, options: &HitOptions) -> String {
    let bytes = findings.first().map_or(0, |(_, bytes, _)| *bytes);
    let mut text = format!(
        "server CPU of a page of {bytes} bytes from memory beside a file with the same bytes, {}\n",
        if options.sqlite {
            "SQLite"
        } else {
            "PostgreSQL"
        }
    );
    for (connections, _, finding) in findings {
        let _ = writeln!(text, "{connections:3} connections  {}", finding.line());
    }
    let outcome = if holds { "holds" } else { "not shown to hold" };
    let _ = writeln!(text, "at most {LIMIT} times, 95 %, in each: {outcome}");
    text
}
