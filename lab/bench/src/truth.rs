//! The client's percentiles against the delays that a null server logged as it really made them.

use std::{fmt::Write as _, sync::atomic::AtomicBool, time::Duration};

use millrace_client::{Delay, NullPlan, NullServer, Plan, Process, Schedule, Stop};
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    lateness::percentile,
    server::{CLIENT_CORE, SERVER_CORE},
};

/// Poisson arrivals at this rate, and exponential delays of this mean: four requests in flight on
/// average.
const RATE: f64 = 2_000.0;
const MEAN: Duration = Duration::from_millis(2);
/// More than are ever in flight, so no request waits for a connection.
const CONNECTIONS: usize = 64;
/// The histogram's resolution: three digits.
const RESOLUTION: f64 = 0.001;
/// The kernel's time to carry a request and its answer and to wake both sides.
const KERNEL_US: f64 = 300.0;

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let seconds: u64 = arguments.option("--seconds")?.unwrap_or(10).max(1);
    let bound: f64 = arguments.option("--bound-us")?.unwrap_or(KERNEL_US);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let server = NullServer::start(&NullPlan {
        cores: vec![SERVER_CORE],
        delay: Delay::Exponential {
            mean: MEAN,
            seed: 1,
        },
        log: (RATE * seconds as f64 * 1.5) as usize + 1_000,
        ..NullPlan::default()
    })
    .map_err(|error| error.to_string())?;
    let plan = Plan::new(server.url()).with(|plan| {
        plan.load.connections = CONNECTIONS;
        plan.load.cores = Some(vec![CLIENT_CORE]);
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(Duration::from_secs(seconds));
        plan.load.schedule = Some(Schedule::new(RATE, Process::Poisson(1)));
    });
    let run = millrace_runs::run(&plan, None, &AtomicBool::new(false))
        .map_err(|error| error.to_string())?;
    let log = server.stop().map_err(|error| error.to_string())?;
    if log.answers.len() as u64 != run.accounting.good || log.lost > 0 {
        return Err(format!(
            "{} answers logged, {} counted",
            log.answers.len(),
            run.accounting.good
        ));
    }
    let made: Vec<f64> = log
        .answers
        .iter()
        .map(|answer| (answer.answered_ns - answer.arrived_ns) as f64 / 1_000.0)
        .collect();
    let times = run.latency_us.service.ok_or("no request was answered")?;
    let mut table = format!(
        "{} requests, exponential delays of 2 ms, µs\n         delays made   service time   difference\n",
        made.len()
    );
    let (mut holds, mut rows) = (true, Vec::new());
    for (q, reported) in [
        (0.5, times.p50),
        (0.9, times.p90),
        (0.95, times.p95),
        (0.99, times.p99),
        (0.999, times.p999),
    ] {
        let (Some(made), Some(reported)) = (percentile(made.clone(), q), reported) else {
            continue;
        };
        let within = is_within(made, reported, bound);
        holds &= within;
        let mark = if within { "" } else { "  NOT WITHIN" };
        let _ = writeln!(
            table,
            "{:>6.1} % {made:>11.1} {reported:>14.1} {:>12.1}{mark}",
            q * 100.0,
            reported - made
        );
        rows.push(json!({ "q": q, "made_us": made, "reported_us": reported }));
    }
    let verdict = if holds { "within" } else { "NOT WITHIN" };
    let _ = writeln!(
        table,
        "the percentiles are {verdict} 0.1 % and {bound} µs above the delays"
    );
    let value = json!({
        "requests": made.len(), "percentiles": rows, "bound_us": bound, "limit_holds": holds,
    });
    publish(&table, &value, json.as_deref())?;
    Ok(holds)
}

/// A service time is a delay plus the way there and back: never less, up to the resolution.
fn is_within(made: f64, reported: f64, bound: f64) -> bool {
    (made * (1.0 - RESOLUTION)..=made * (1.0 + RESOLUTION) + bound).contains(&reported)
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn less_than_the_made_delay_is_wrong() {
        assert!(is_within(1_000.0, 1_100.0, 300.0) && is_within(1_000.0, 999.5, 300.0));
        assert!(!is_within(1_000.0, 998.0, 300.0) && !is_within(1_000.0, 1_302.0, 300.0));
    }
}
