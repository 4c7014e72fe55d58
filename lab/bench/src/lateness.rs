//! How late the client sends, by its own account and by the null server's.
//!
//! Constant arrivals from one thread on the client's core to a null server on the server's core.
//! The client stamps each request before writing it. The kernel stamps it on arrival, for any load
//! of the server's core; the server stamps it after reading it, and never sleeps. All stamps count
//! from when the request was due.

use std::{fmt::Write as _, sync::atomic::AtomicBool, time::Duration};

use millrace_client::{NullAnswer, NullPlan, NullServer, Plan, Schedule, Stop};
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::{CLIENT_CORE, SERVER_CORE},
    spread::SampleSpread,
};

/// The 99th percentile of the client's lateness may be this.
const LIMIT_US: f64 = 200.0;
/// The rate may differ by this much from the requested one.
const OFF: f64 = 0.001;
/// Before each run, as the first requests meet cold caches.
const WARMUP: Duration = Duration::from_secs(1);
/// How long the client's core is watched before each run.
const WATCH: Duration = Duration::from_secs(2);
/// Enough connections that no request waits for one while the server's core is withheld for some
/// milliseconds: such a request would arrive late without a fault of the client.
const CONNECTIONS: usize = 512;

/// One run.
struct LatenessFigures {
    sent: f64,
    arrived: f64,
    read: f64,
    rate: f64,
    /// The part of the client's core that was withheld from a thread that only reads the clock, in
    /// percent of the seconds before the run.
    withheld: f64,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let rate: f64 = arguments.option("--rate")?.unwrap_or(20_000.0);
    let runs: usize = arguments.option("--runs")?.unwrap_or(5).max(1);
    let seconds: u64 = arguments.option("--seconds")?.unwrap_or(10).max(1);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let mut all = Vec::new();
    for number in 1..=runs {
        eprintln!("run {number} of {runs}");
        all.push(measure(rate, seconds)?);
    }
    let median = |of: fn(&LatenessFigures) -> f64| {
        let spread = SampleSpread::new(all.iter().map(of).collect());
        spread.map_or(f64::NAN, |spread| spread.median())
    };
    let found = LatenessFigures {
        sent: median(|found| found.sent),
        arrived: median(|found| found.arrived),
        read: median(|found| found.read),
        rate: median(|found| found.rate),
        withheld: median(|found| found.withheld),
    };
    let (is_soon, is_seen) = (found.sent <= LIMIT_US, found.arrived <= LIMIT_US);
    let is_even = (found.rate / rate - 1.0).abs() <= OFF;
    let mut table = format!(
        "{rate}/s at equal distances, one client thread, {CONNECTIONS} connections, {runs} runs of {seconds} s\n\
         99th percentile, µs       sent    arrived       read       rate   withheld\n"
    );
    all.iter().for_each(|run| row(&mut table, "", run));
    row(&mut table, "median", &found);
    let _ = writeln!(
        table,
        "99 % are sent {} {LIMIT_US} µs of when they were due and arrive {} it; the rate is {} 0.1 % of {rate}/s",
        within(is_soon),
        within(is_seen),
        within(is_even),
    );
    let runs: Vec<_> = all.iter().map(LatenessFigures::json).collect();
    let holds = is_soon && is_seen && is_even;
    let value = json!({
        "offered_rate": rate, "run_s": seconds, "connections": CONNECTIONS, "runs": runs, "median": found.json(),
        "limit_us": LIMIT_US, "limit_holds": holds,
    });
    publish(&table, &value, json.as_deref())?;
    Ok(holds)
}

impl LatenessFigures {
    fn json(&self) -> Value {
        json!({
            "sent_p99_us": self.sent, "arrived_p99_us": self.arrived, "read_p99_us": self.read, "rate": self.rate,
            "withheld_percent": self.withheld,
        })
    }
}

fn row(table: &mut String, name: &str, found: &LatenessFigures) {
    let LatenessFigures {
        sent,
        arrived,
        read,
        rate,
        withheld,
    } = found;
    let _ = writeln!(
        table,
        "{name:18} {sent:>11.1} {arrived:>10.1} {read:>10.1} {rate:>10.1} {withheld:>8.2} %"
    );
}

fn within(is: bool) -> &'static str {
    if is { "within" } else { "NOT WITHIN" }
}

fn measure(rate: f64, seconds: u64) -> Result<LatenessFigures> {
    let withheld = cpu::withheld(CLIENT_CORE, WATCH)? * 100.0;
    let room = rate * (seconds as f64 + WARMUP.as_secs_f64()) * 1.1 + 1_000.0;
    let server = NullServer::start(&NullPlan {
        cores: vec![SERVER_CORE],
        spin: true,
        log: room as usize,
        ..NullPlan::default()
    })
    .map_err(|error| error.to_string())?;
    let plan = Plan::new(server.url()).with(|plan| {
        plan.load.connections = CONNECTIONS;
        plan.load.cores = Some(vec![CLIENT_CORE]);
        plan.load.threads = 1;
        plan.length.warmup = WARMUP;
        plan.length.stop = Stop::Duration(Duration::from_secs(seconds));
        plan.load.schedule = Some(Schedule::constant(rate));
    });
    let run = millrace_runs::run(&plan, None, &AtomicBool::new(false))
        .map_err(|error| error.to_string())?;
    let log = server.stop().map_err(|error| error.to_string())?;
    let origin = run.client.started_ns as f64 - WARMUP.as_nanos() as f64;
    let warm = (WARMUP.as_secs_f64() * rate).ceil() as usize;
    let (asked, arrived) = (warm + run.accounting.issued as usize, log.answers.len());
    if run.errors.total() > 0 || asked != arrived {
        let failed = run.errors.total();
        return Err(format!(
            "of {asked} requests {failed} failed, and the server has {arrived} in its log: {:?}",
            run.reasons
        ));
    }
    let p99 = |stamp: fn(&NullAnswer) -> u64| {
        let stamps = log.answers.iter().map(stamp).collect();
        percentile(late(stamps, origin, rate, warm), 0.99).ok_or("no request arrived")
    };
    let mut unstamped = log.answers.iter().skip(warm);
    if unstamped.any(|answer| answer.received_ns.is_none()) {
        return Err("the kernel did not say of each request when it came".to_owned());
    }
    let sent = run.latency_us.send_lag.and_then(|lag| lag.p99);
    Ok(LatenessFigures {
        sent: sent.ok_or("too few requests for a 99th percentile")?,
        arrived: p99(|answer| answer.received_ns.unwrap_or(answer.arrived_ns))?,
        read: p99(|answer| answer.arrived_ns)?,
        rate: run.achieved_rate,
        withheld,
    })
}

/// The lateness of each request, in microseconds, without the first `warm`, from the stamps. One
/// thread sends requests in the order in which they are due, so the nth stamp belongs to the nth
/// due request.
fn late(mut stamps: Vec<u64>, origin: f64, rate: f64, warm: usize) -> Vec<f64> {
    stamps.sort_unstable();
    let late =
        |(n, stamp): (usize, &u64)| (*stamp as f64 - origin - n as f64 * 1e9 / rate) / 1_000.0;
    stamps.iter().enumerate().skip(warm).map(late).collect()
}

/// The value at least as large as a share `q` of all.
pub(crate) fn percentile(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_from_when_each_was_due() {
        let stamps = vec![1_000_000, 3_010_000, 2_005_000];
        assert_eq!(late(stamps, 1e6, 1_000.0, 1), [5.0, 10.0]);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(hundred.clone(), 0.99), Some(99.0));
        assert_eq!(percentile(hundred, 0.5), Some(50.0));
        assert_eq!(percentile(Vec::new(), 0.5), None);
    }
}
