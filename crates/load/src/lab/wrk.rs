//! The same load by wrk, run beside: a second opinion about throughput.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::form::Line;
use super::outcome::LabLevel;
use super::process::{Launch, Process};
use super::workshop::Workshop;
use crate::clock;

/// Between two looks at whether it is done.
const GLANCE: Duration = Duration::from_millis(200);
/// What it may take beyond its time.
const GRACE: Duration = Duration::from_secs(30);

/// What wrk found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) requests: u64,
    pub(super) throughput: f64,
    pub(super) errors: u64,
}

/// Runs wrk; `None` if it was stopped. `show` is called about five times a second.
pub(super) fn run(
    shop: &Workshop<'_>,
    url: &str,
    level: LabLevel,
    show: &mut dyn FnMut(),
    stop: &AtomicBool,
) -> Result<Option<Found>, String> {
    let workload = shop.experiment.workload.get_ref();
    let cores = workload.cores.as_ref().map(|cores| cores.get_ref().clone());
    let cores = cores.unwrap_or_default();
    // It knows whole seconds only.
    let seconds = workload.duration.0.as_secs_f64().ceil().max(1.0) as u64;
    let threads = cores.len().max(1).min(level.connections);
    let mut words = vec![
        "wrk".to_owned(),
        format!("-t{threads}"),
        format!("-c{}", level.connections),
        format!("-d{seconds}s"),
        "--timeout".to_owned(),
        format!("{}s", workload.timeout.0.as_secs_f64().ceil().max(1.0)),
    ];
    for field in &workload.headers {
        words.extend(["-H".to_owned(), field.get_ref().clone()]);
    }
    words.push(url.to_owned());
    let mut process = Process::start(&Launch {
        line: Line::Program(words),
        cwd: shop.experiment.here.clone(),
        env: Vec::new(),
        cores,
    })?;
    let deadline = clock::after(Duration::from_secs(seconds) + GRACE);
    while process.wait(GLANCE).is_none() {
        show();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if clock::now() > deadline {
            return Err(format!(
                "wrk does not end; {}",
                process.output().last_words()
            ));
        }
    }
    let text = process.output().all_output();
    read(&text)
        .map(Some)
        .ok_or_else(|| format!("wrk failed; {}", process.output().last_words()))
}

/// Reads what wrk 4 prints.
fn read(text: &str) -> Option<Found> {
    let mut errors = 0;
    let (mut requests, mut throughput) = (None, None);
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("Requests/sec:") {
            throughput = rest.trim().parse().ok();
        } else if let Some((count, _)) = line.split_once(" requests in ") {
            requests = count.parse().ok();
        } else if let Some(rest) = line.strip_prefix("Socket errors:") {
            let counts = rest.split(',').filter_map(|part| {
                let count = part.split_whitespace().last()?;
                count.parse::<u64>().ok()
            });
            errors += counts.sum::<u64>();
        } else if let Some(rest) = line.strip_prefix("Non-2xx or 3xx responses:") {
            errors += rest.trim().parse::<u64>().ok()?;
        }
    }
    Some(Found {
        requests: requests?,
        throughput: throughput?,
        errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_prints_is_understood() {
        let text = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 32 connections\n  Thread Stats   Avg\n    \
                    Latency     1.33ms\n  58563 requests in 2.00s, 3.00MB read\n  Socket errors: connect 1, read 2, \
                    write 0, timeout 3\n  Non-2xx or 3xx responses: 4\nRequests/sec:  29281.10\nTransfer/sec:      1.5MB\n";
        assert_eq!(
            read(text),
            Some(Found {
                requests: 58563,
                throughput: 29281.10,
                errors: 10
            })
        );
        assert_eq!(
            read("unable to connect to 127.0.0.1:1 Connection refused\n"),
            None
        );
    }
}
