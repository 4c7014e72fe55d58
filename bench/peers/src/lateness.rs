//! How late the client sends, by its own account and by the null server's.
//!
//! Constant arrivals from one thread on the client's core to a null server on the server's. The client stamps each request before
//! it is written; the server stamps it when it has read it, and never sleeps, since otherwise its stamps tell how fast its own core wakes up.
//! Both count from when the request was due.

use std::{fmt::Write as _, sync::atomic::AtomicBool, time::Duration};

use millpond_load::{NullAnswer, NullPlan, NullServer, Plan, Process, Run, Schedule, Stop};
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    server::{CLIENT_CORE, SERVER_CORE},
    spread::Spread,
};

/// The 99th percentile of the client's lateness may be this.
const LIMIT_US: f64 = 200.0;
/// The rate may be this far from the one that was asked for.
const OFF: f64 = 0.001;
/// Before each run, as the first requests meet cold caches.
const WARMUP: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 32;

/// One run.
struct Found {
    inside: f64,
    outside: f64,
    rate: f64,
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
    let median = |of: fn(&Found) -> f64| {
        let spread = Spread::new(all.iter().map(of).collect());
        spread.map_or(f64::NAN, |spread| spread.median())
    };
    let (inside, outside, achieved) = (
        median(|found| found.inside),
        median(|found| found.outside),
        median(|found| found.rate),
    );
    let holds = inside <= LIMIT_US && (achieved / rate - 1.0).abs() <= OFF;
    let mut table = format!(
        "{rate}/s at equal distances, one client thread, {CONNECTIONS} connections, {runs} runs of {seconds} s\n\
         99th percentile, µs    by the client    by the server    rate\n"
    );
    for found in &all {
        let Found {
            inside,
            outside,
            rate,
        } = found;
        let _ = writeln!(
            table,
            "{:18} {inside:>17.1} {outside:>16.1} {rate:>10.1}",
            ""
        );
    }
    let _ = writeln!(
        table,
        "{:18} {inside:>17.1} {outside:>16.1} {achieved:>10.1}\nthe client's lateness is {} {LIMIT_US} µs and its rate {} of {rate}/s",
        "median",
        if inside <= LIMIT_US {
            "within"
        } else {
            "NOT WITHIN"
        },
        if (achieved / rate - 1.0).abs() <= OFF {
            "within 0.1 %"
        } else {
            "NOT WITHIN 0.1 %"
        },
    );
    let runs: Vec<_> = all
        .iter()
        .map(|found| json!({ "client_p99_us": found.inside, "server_p99_us": found.outside, "rate": found.rate }))
        .collect();
    let value = json!({
        "offered_rate": rate, "run_s": seconds, "connections": CONNECTIONS, "runs": runs,
        "client_p99_us": inside, "server_p99_us": outside, "achieved_rate": achieved,
        "limit_us": LIMIT_US, "limit_holds": holds,
    });
    publish(&table, &value, json.as_deref())?;
    Ok(holds)
}

fn measure(rate: f64, seconds: u64) -> Result<Found> {
    let room = rate * (seconds as f64 + WARMUP.as_secs_f64()) * 1.1 + 1_000.0;
    let server = NullServer::start(&NullPlan {
        cores: vec![SERVER_CORE],
        spin: true,
        log: room as usize,
        ..NullPlan::default()
    })
    .map_err(|error| error.to_string())?;
    let plan = Plan {
        connections: CONNECTIONS,
        cores: Some(vec![CLIENT_CORE]),
        threads: 1,
        warmup: WARMUP,
        stop: Stop::Duration(Duration::from_secs(seconds)),
        schedule: Some(Schedule {
            rate,
            process: Process::Constant,
            deadline: None,
        }),
        ..Plan::new(server.url())
    };
    let run = millpond_load::run(&plan, None, &AtomicBool::new(false))
        .map_err(|error| error.to_string())?;
    let log = server.stop().map_err(|error| error.to_string())?;
    if run.errors.total() > 0 || log.lost > 0 {
        return Err(format!(
            "{} requests failed: {:?}",
            run.errors.total(),
            run.reasons
        ));
    }
    let origin = run.client.started_ns as f64 - WARMUP.as_nanos() as f64;
    let warm = (WARMUP.as_secs_f64() * rate).ceil() as usize;
    let outside = percentile(late(&log.answers, origin, rate, warm), 0.99);
    Ok(Found {
        inside: inside(&run).ok_or("too few requests for a 99th percentile")?,
        outside: outside.ok_or("no request arrived")?,
        rate: run.achieved_rate,
    })
}

fn inside(run: &Run) -> Option<f64> {
    run.latency_us.lateness?.p99
}

/// How late each request arrived, in microseconds, without the first `warm`. One thread sends in the order in which requests are
/// due, so the nth to arrive is taken for the nth that was due; where the server read two in another order, within one of its
/// rounds, the larger difference is smaller for it by their distance.
fn late(answers: &[NullAnswer], origin: f64, rate: f64, warm: usize) -> Vec<f64> {
    let late = |(n, answer): (usize, &NullAnswer)| {
        (answer.arrived_ns as f64 - origin - n as f64 * 1e9 / rate) / 1_000.0
    };
    answers.iter().enumerate().skip(warm).map(late).collect()
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
        let answer = |arrived_ns| NullAnswer {
            arrived_ns,
            answered_ns: arrived_ns,
        };
        let answers = [1_000_000, 2_005_000, 3_010_000].map(answer);
        assert_eq!(late(&answers, 1e6, 1_000.0, 1), [5.0, 10.0]);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(hundred.clone(), 0.99), Some(99.0));
        assert_eq!(percentile(hundred, 0.5), Some(50.0));
        assert_eq!(percentile(Vec::new(), 0.5), None);
    }
}
