//! The figures of an open loop when the server stands still for two of ten seconds.
//!
//! A client that waits for each answer would count one slow request on each connection. Two
//! thousand visitors arrive meanwhile and wait too, and the figures must show that: a fifth of all
//! requests wait from two seconds down to none, so the 99th percentile of the response time is at
//! 1.9 s. The time from the actual send is short for all but sixteen of them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use millrace_client::{Plan, Schedule, Stop};
use millrace_runs::Run;
use millrace_stats::Verdict;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    server::{self, BenchServer, CLIENT_CORE},
};

const RATE: f64 = 1_000.0;
const CONNECTIONS: usize = 16;
const LENGTH: Duration = Duration::from_secs(10);
/// When it is stopped, and for how long.
const BEFORE: Duration = Duration::from_secs(4);
const FROZEN: Duration = Duration::from_secs(2);
/// The 99th percentile of the response time, and how far from it may be.
const RESPONSE_S: f64 = 1.9;
const OFF_S: f64 = 0.1;
/// The 99th percentile of the service time is below this.
const SERVICE_MS: f64 = 10.0;

/// The figures of a run that have limits.
struct FrozenFigures {
    response_s: f64,
    service_ms: f64,
    verdict: Verdict,
    reasons: Vec<String>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let floor = server::compile_floor()?;
    let server = server::working(&floor, 0)?;
    let run = measure(&server)?;
    let found = FrozenFigures::of(&run)?;
    let limits = found.limits();
    let holds = limits.iter().all(|(_, holds)| *holds);
    let mut table = format!(
        "{RATE}/s at equal distances for {} s, {CONNECTIONS} connections; the server stood still for {} s\n",
        LENGTH.as_secs(),
        FROZEN.as_secs()
    );
    for (line, holds) in &limits {
        let mark = if *holds { "" } else { "  NOT WITHIN" };
        table.push_str(&format!("  {line}{mark}\n"));
    }
    let reasons = found.reasons.iter();
    reasons.for_each(|reason| table.push_str(&format!("    {reason}\n")));
    let value = json!({
        "rate": RATE, "connections": CONNECTIONS, "frozen_s": FROZEN.as_secs(), "requests": run.accounting.issued,
        "response_p99_s": found.response_s, "service_p99_ms": found.service_ms, "verdict": found.verdict,
        "reasons": found.reasons, "limit_holds": holds,
    });
    publish(&table, &value, json.as_deref())?;
    Ok(holds)
}

/// One run, in whose middle the server is stopped.
fn measure(server: &BenchServer) -> Result<Run> {
    let plan = Plan::new(&server.url).with(|plan| {
        plan.load.connections = CONNECTIONS;
        plan.load.cores = Some(vec![CLIENT_CORE]);
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(LENGTH);
        plan.load.schedule = Some(Schedule::constant(RATE));
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let measured = scope.spawn(|| millrace_runs::run(&plan, None, &stop));
        let froze = freeze(server);
        // Without the standstill the rest of the run would tell nothing.
        stop.store(froze.is_err(), Ordering::Relaxed);
        let run = measured.join().map_err(|_| "the client panicked")?;
        froze?;
        run.map_err(|error| error.to_string())
    })
}

/// These times are the experiment.
fn freeze(server: &BenchServer) -> Result<()> {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("the server has no process id")?;
    let send = |signal| kill_process(pid, signal).map_err(|error| format!("{signal:?}: {error}"));
    thread::sleep(BEFORE);
    send(Signal::STOP)?;
    thread::sleep(FROZEN);
    send(Signal::CONT)
}

impl FrozenFigures {
    fn of(run: &Run) -> Result<Self> {
        let p99 = |times: Option<millrace_stats::Latency>| {
            let known = times.and_then(|times| times.p99);
            known.ok_or("too few requests for a 99th percentile")
        };
        Ok(Self {
            response_s: p99(run.latency_us.response)? / 1e6,
            service_ms: p99(run.latency_us.service)? / 1e3,
            verdict: run.verdict,
            reasons: run.reasons.clone(),
        })
    }

    /// Each limit with what was found, and whether it holds.
    fn limits(&self) -> Vec<(String, bool)> {
        let is_unsteady = |reason: &String| reason.starts_with("not stationary");
        vec![
            (
                format!(
                    "99th percentile of the response time {:.3} s, must be {RESPONSE_S} ± {OFF_S} s",
                    self.response_s
                ),
                (self.response_s - RESPONSE_S).abs() <= OFF_S,
            ),
            (
                format!(
                    "99th percentile of the service time {:.3} ms, must be under {SERVICE_MS} ms",
                    self.service_ms
                ),
                self.service_ms < SERVICE_MS,
            ),
            (
                format!("verdict {}, must be SUSPECT, not stationary", self.verdict),
                self.verdict == Verdict::Suspect && self.reasons.iter().any(is_unsteady),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_held_by_itself() {
        let holds = |response_s, service_ms, verdict, reason: &str| {
            let found = FrozenFigures {
                response_s,
                service_ms,
                verdict,
                reasons: vec![reason.to_owned()],
            };
            found
                .limits()
                .iter()
                .map(|(_, holds)| *holds)
                .collect::<Vec<_>>()
        };
        let reason = "not stationary: between 4.0 and 5.0 s 0 requests";
        let suspect = Verdict::Suspect;
        assert_eq!(holds(1.9, 0.5, suspect, reason), [true; 3]);
        assert_eq!(holds(1.79, 0.5, suspect, reason), [false, true, true]);
        assert_eq!(holds(2.01, 10.0, suspect, reason), [false, false, true]);
        assert_eq!(holds(1.9, 0.5, Verdict::Valid, reason), [true, true, false]);
        assert_eq!(holds(1.9, 0.5, suspect, "errors"), [true, true, false]);
    }
}
