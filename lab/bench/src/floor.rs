//! Server CPU per request: the bare epoll loop, a hit, and the same page without the cache.
//!
//! All servers run on core 0 and are driven in turn from core 1, so a disturbance of the machine
//! affects all of them: in each block forwards and then backwards (ABBA), which cancels a drift.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    drive::{self, Generator},
    server::{self, BenchServer},
    spread::SampleSpread,
};

/// The server CPU of a hit may be this many times the floor's.
const LIMIT: f64 = 1.25;

struct FloorOptions {
    connections: usize,
    seconds: u32,
    blocks: usize,
}

/// Findings of one generator about one server.
struct FloorFinding {
    generator: &'static str,
    server: &'static str,
    /// Microseconds of server CPU per request, one for each run.
    cost: SampleSpread,
    /// Ratio of each run's cost to the floor's in the same block.
    ratio: SampleSpread,
    ratio_of_medians: f64,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let path: String = arguments
        .option("--path")?
        .unwrap_or_else(|| "/".to_owned());
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let options = FloorOptions {
        connections: arguments.option("--connections")?.unwrap_or(32),
        seconds: arguments.option("--seconds")?.unwrap_or(2).max(1),
        blocks: arguments.option("--blocks")?.unwrap_or(5).max(1),
    };
    let json: Option<String> = arguments.option("--json")?;
    let site: PathBuf = arguments
        .word()
        .ok_or("which site? lab-bench floor SITE")?
        .into();
    arguments.end()?;
    if !path.starts_with('/') {
        return Err(format!("--path {path}: a path begins with /"));
    }

    let hit = server::millpond(&millpond, &site, &path, true)?;
    // The first is the miss.
    server::fetch(&hit)?;
    let response = server::fetch(&hit)?;
    let floor = server::floor(&response, &path)?;
    let uncached = server::millpond(&millpond, &site, &path, false)?;
    let servers = [floor, hit, uncached];

    let mut findings = Vec::new();
    for generator in drive::all(millpond) {
        findings.extend(measure(&generator, &servers, &options)?);
    }
    let holds = findings
        .iter()
        .filter(|finding| finding.server == servers[1].name)
        .all(|finding| finding.ratio_of_medians <= LIMIT);
    let table = table(&findings, response.len(), &options, holds);
    publish(
        &table,
        &as_json(&findings, response.len(), &options, holds),
        json.as_deref(),
    )?;
    Ok(holds)
}

/// All blocks with one generator.
fn measure(
    generator: &Generator,
    servers: &[BenchServer; 3],
    options: &FloorOptions,
) -> Result<Vec<FloorFinding>> {
    for server in servers {
        cost(generator, server, options)?;
    }
    let mut costs = [const { Vec::new() }; 3];
    for block in 0..options.blocks {
        eprintln!(
            "{}: block {} of {}",
            generator.name(),
            block + 1,
            options.blocks
        );
        for which in [0, 1, 2, 2, 1, 0] {
            costs[which].push(cost(generator, &servers[which], options)?);
        }
    }
    let floor = costs[0].clone();
    let mut findings = Vec::new();
    for (server, costs) in servers.iter().zip(costs) {
        // The runs of one block stand at the same places in both lists.
        let ratios = costs
            .iter()
            .zip(&floor)
            .map(|(cost, floor)| cost / floor)
            .collect();
        let spreads = SampleSpread::new(costs)
            .zip(SampleSpread::new(ratios))
            .zip(SampleSpread::new(floor.clone()));
        let ((cost, ratio), floor) = spreads.ok_or("no block was run")?;
        let ratio_of_medians = cost.median() / floor.median();
        findings.push(FloorFinding {
            generator: generator.name(),
            server: server.name,
            cost,
            ratio,
            ratio_of_medians,
        });
    }
    Ok(findings)
}

/// One run: microseconds of the server's CPU for each request.
fn cost(generator: &Generator, server: &BenchServer, options: &FloorOptions) -> Result<f64> {
    let before = cpu::run_time(server.pid())?;
    let requests = generator.run(&server.url, options.connections, options.seconds)?;
    let spent = cpu::run_time(server.pid())?.saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / requests as f64)
}

fn table(findings: &[FloorFinding], bytes: usize, options: &FloorOptions, holds: bool) -> String {
    let mut text = format!(
        "server CPU per request, µs; {bytes} bytes each, {} keep-alive connections, {} blocks of 2 × {} s\n",
        options.connections, options.blocks, options.seconds
    );
    let _ = writeln!(
        text,
        "{:14} {:20} {:>8} {:>17} {:>9} {:>15}",
        "generator", "server", "median", "min–max", "× floor", "min–max"
    );
    for FloorFinding {
        generator,
        server,
        cost,
        ratio,
        ratio_of_medians,
    } in findings
    {
        let costs = format!("{:.2}–{:.2}", cost.min(), cost.max());
        let ratios = format!("{:.2}–{:.2}", ratio.min(), ratio.max());
        let median = cost.median();
        let _ = writeln!(
            text,
            "{generator:14} {server:20} {median:>8.2} {costs:>17} {ratio_of_medians:>9.2} {ratios:>15}"
        );
    }
    let verdict = if holds { "within" } else { "NOT WITHIN" };
    let _ = writeln!(text, "a hit is {verdict} {LIMIT} times the floor");
    text
}

fn as_json(findings: &[FloorFinding], bytes: usize, options: &FloorOptions, holds: bool) -> Value {
    let spread = |spread: &SampleSpread| json!({ "min": spread.min(), "median": spread.median(), "max": spread.max() });
    let findings: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "generator": finding.generator,
                "server": finding.server,
                "cpu_us_per_request": spread(&finding.cost),
                "over_floor": spread(&finding.ratio),
                "over_floor_of_medians": finding.ratio_of_medians,
            })
        })
        .collect();
    json!({
        "response_bytes": bytes,
        "connections": options.connections,
        "run_s": options.seconds,
        "blocks": options.blocks,
        "findings": findings,
        "limit": LIMIT,
        "limit_holds": holds,
    })
}
