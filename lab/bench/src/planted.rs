//! Does `millrace compare` find a planted cost?
//!
//! Two servers do the same except for the rounds of hashing of each request: B's CPU for a request
//! is a known share above A's, of the whole and not of the hashing alone. Each comparison has new
//! processes, so the random layout of memory differs, and goes on until it could detect two thirds
//! of the planted share.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::Result;
use crate::arguments::{Arguments, publish};
use crate::compared::{self, CpuComparison};
use crate::cpu;
use crate::drive::Generator;
use crate::hit_ratio;
use crate::server::{BenchServer, CLIENT_CORE, compile_floor, working};
use crate::spread::SampleSpread;

/// At least this number of ten comparisons must find it.
const FOUND_OF_TEN: usize = 9;
/// The effect that a comparison must find four times out of five, as a part of the planted share:
/// the planted share itself is then found more than nineteen times out of twenty.
const DETECT: f64 = 2.0 / 3.0;
/// The effect that a comparison must find where nothing is planted.
const DETECT_NOTHING: f64 = 0.02;
/// More `millrace compare` does not make.
const MOST_BLOCKS: usize = 10_000;
/// Rounds with which the cost of one is measured: some hundred microseconds.
const PROBE_ROUNDS: u64 = 50_000;
/// Measurements of each server while calibrating; the median counts.
const PROBES: usize = 5;

struct PlantedOptions {
    extra: f64,
    runs: usize,
    work_us: f64,
    rate: f64,
    duration: String,
    /// Blocks at least and at most.
    blocks: [usize; 2],
    detect: f64,
    millpond: PathBuf,
}

/// The rounds of both servers, and what they were found to cost.
struct Calibration {
    rounds: [u64; 2],
    /// Microseconds of a request without any work.
    bare_us: f64,
    round_us: f64,
}

/// The command.
pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let json: Option<String> = arguments.option("--json")?;
    let extra = arguments.option("--extra")?.unwrap_or(3.0) / 100.0;
    let fewest = arguments.option("--blocks")?.unwrap_or(60);
    let options = PlantedOptions {
        extra,
        runs: arguments.option("--runs")?.unwrap_or(10),
        work_us: arguments.option("--work")?.unwrap_or(100.0),
        rate: arguments.option("--rate")?.unwrap_or(2000.0),
        duration: arguments
            .option("--duration")?
            .unwrap_or("100ms".to_owned()),
        blocks: [
            fewest,
            arguments
                .option("--most-blocks")?
                .unwrap_or_else(|| fewest.saturating_mul(10).min(MOST_BLOCKS).max(fewest)),
        ],
        detect: if extra > 0.0 {
            (extra * DETECT).clamp(0.001, 0.5)
        } else {
            DETECT_NOTHING
        },
        millpond: arguments
            .option("--millpond")?
            .unwrap_or_else(|| hit_ratio::target().join("release/millpond")),
    };
    arguments.end()?;
    options.check()?;
    let floor = compile_floor()?;
    cpu::pin(CLIENT_CORE)?;
    let calibration = calibrate(&floor, &options)?;
    let mut findings = Vec::new();
    for number in 1..=options.runs {
        let finding = compare(&floor, &calibration, &options)?;
        eprintln!("{number} of {}: {}", options.runs, finding.line());
        findings.push(finding);
    }
    let found = findings
        .iter()
        .filter(|finding| has_found(finding, &options));
    let found = found.count();
    let holds = options.extra == 0.0 || found * 10 >= FOUND_OF_TEN * options.runs;
    publish(
        &table(&findings, found, &calibration, &options),
        &as_json(&findings, found, &calibration, &options),
        json.as_deref(),
    )?;
    Ok(holds)
}

impl PlantedOptions {
    fn check(&self) -> Result<()> {
        let busy = self.work_us * 1e-6 * self.rate;
        if !(0.0..=1.0).contains(&self.extra) {
            return Err("--extra is from 0 to 100 %".to_owned());
        }
        if self.runs == 0 || !(self.work_us >= 1.0 && self.rate >= 1.0) {
            return Err("--runs, --work and --rate are at least 1".to_owned());
        }
        let [fewest, most] = self.blocks;
        if !(10..=most.min(MOST_BLOCKS)).contains(&fewest) {
            return Err(format!(
                "--blocks is from 10 to --most-blocks, and that at most {MOST_BLOCKS}"
            ));
        }
        if busy > 0.7 {
            return Err(format!(
                "{} µs at {} a second would take {:.0} % of the server's core; at most 70 % leaves the rate equal",
                self.work_us,
                self.rate,
                busy * 100.0
            ));
        }
        Ok(())
    }
}

/// Finds the rounds for a request of the wanted cost, and those for one that costs more by the
/// planted share.
fn calibrate(floor: &Path, options: &PlantedOptions) -> Result<Calibration> {
    let servers = [working(floor, 0)?, working(floor, PROBE_ROUNDS)?];
    let generator = Generator::Millpond(options.millpond.clone());
    let mut costs = [const { Vec::new() }; 2];
    for _ in 0..PROBES {
        for (server, costs) in servers.iter().zip(&mut costs) {
            costs.push(cost(&generator, server)?);
        }
    }
    let [bare, loaded] =
        costs.map(|costs| SampleSpread::new(costs).map_or(0.0, |costs| costs.median()));
    let round_us = (loaded - bare) / PROBE_ROUNDS as f64;
    if !(round_us > 0.0 && options.work_us > bare) {
        return Err(format!(
            "a request costs {bare:.1} µs without work and {loaded:.1} with: --work {} cannot be reached",
            options.work_us
        ));
    }
    let rounds = |cost: f64| ((cost - bare) / round_us).round() as u64;
    Ok(Calibration {
        rounds: [
            rounds(options.work_us),
            rounds(options.work_us * (1.0 + options.extra)),
        ],
        bare_us: bare,
        round_us,
    })
}

/// Microseconds of the server's CPU for a request, over a second of a closed loop.
fn cost(generator: &Generator, server: &BenchServer) -> Result<f64> {
    let before = cpu::run_time(server.pid())?;
    let requests = generator.run(&server.url, 8, 1)?;
    let spent = cpu::run_time(server.pid())?.saturating_sub(before);
    Ok(spent.as_secs_f64() * 1e6 / requests as f64)
}

/// One comparison of two new processes.
fn compare(
    floor: &Path,
    calibration: &Calibration,
    options: &PlantedOptions,
) -> Result<CpuComparison> {
    let [a, b] = calibration.rounds;
    let (a, b) = (working(floor, a)?, working(floor, b)?);
    let mut command = Command::new(crate::drive::millrace(&options.millpond));
    command
        .arg("compare")
        .args([format!("A={}", a.url), format!("B={}", b.url)])
        .args(["--connections", "8"])
        .args(["--warmup", "50ms", "--duration", &options.duration])
        .args(["--rate", &options.rate.to_string()])
        .args(["--blocks", &options.blocks[0].to_string()])
        .args(["--most-blocks", &options.blocks[1].to_string()])
        .args(["--detect", &format!("{:.2}%", options.detect * 100.0)])
        .args(["--pid-a", &a.pid().to_string()])
        .args(["--pid-b", &b.pid().to_string()]);
    compared::compare(&mut command)
}

/// True if B is found to cost more; without a planted cost, either direction is a false find.
fn has_found(finding: &CpuComparison, options: &PlantedOptions) -> bool {
    match finding.decision.as_str() {
        "worse" => true,
        "better" => options.extra == 0.0,
        _ => false,
    }
}

fn table(
    findings: &[CpuComparison],
    found: usize,
    calibration: &Calibration,
    options: &PlantedOptions,
) -> String {
    let [a, b] = calibration.rounds;
    let mut text = format!(
        "{:.0} µs of CPU for a request ({:.1} without work; {a} and {b} rounds of {:.2} ns), {:.1} % more planted; \
         {} requests a second, {} to {} blocks of four runs of {}, until {:.1} % would be found four times out of five\n",
        options.work_us,
        calibration.bare_us,
        calibration.round_us * 1e3,
        options.extra * 100.0,
        options.rate,
        options.blocks[0],
        options.blocks[1],
        options.duration,
        options.detect * 100.0
    );
    for finding in findings {
        let _ = writeln!(text, "{}", finding.line());
    }
    let flagged = findings.iter().filter(|finding| finding.flags_itself());
    let _ = writeln!(
        text,
        "found in {found} of {}; A differed from itself in {}",
        findings.len(),
        flagged.count()
    );
    text
}

fn as_json(
    findings: &[CpuComparison],
    found: usize,
    calibration: &Calibration,
    options: &PlantedOptions,
) -> Value {
    let each = findings.iter().map(CpuComparison::as_json);
    json!({
        "extra": options.extra,
        "work_us": options.work_us,
        "bare_us": calibration.bare_us,
        "rounds": calibration.rounds,
        "rate": options.rate,
        "blocks": options.blocks,
        "detect": options.detect,
        "duration": options.duration,
        "runs": findings.len(),
        "found": found,
        "comparisons": each.collect::<Vec<_>>(),
    })
}
