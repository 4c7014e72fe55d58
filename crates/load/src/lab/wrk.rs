//! The same load by wrk, run beside: a second opinion about throughput.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::form::Line;
use super::outcome::OtherClient;
use super::process::{Launch, Process};
use super::workshop::Workshop;
use crate::clock::Nanos;
use crate::own::schedule;
use crate::{Plan, clock};

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
    pub(super) client: Option<OtherClient>,
}

/// What all threads of some processes have had up to a moment.
#[derive(Clone, Copy)]
struct Use {
    at: Nanos,
    on_core: Nanos,
    turns: u64,
    threads: usize,
}

impl Use {
    fn of(pids: &[u32]) -> Option<Self> {
        let mut all = Self {
            at: clock::now(),
            on_core: 0,
            turns: 0,
            threads: 0,
        };
        for pid in pids {
            for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
                let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
                let [on_core, _, turns] = schedule(&text);
                all.on_core += on_core?;
                all.turns += turns?;
                all.threads += 1;
            }
        }
        Some(all)
    }

    /// What was used between two looks at the same threads, of which `working` have something to do.
    fn since(self, first: Self, working: usize, throughput: f64) -> Option<OtherClient> {
        let seconds = self.at.checked_sub(first.at)? as f64 / 1e9;
        let requests = throughput * seconds;
        if self.threads != first.threads || requests.is_nan() || requests <= 0.0 {
            return None;
        }
        let on_core = self.on_core.checked_sub(first.on_core)? as f64;
        Some(OtherClient {
            cpu_us: on_core / 1e3 / requests,
            busy: on_core / 1e9 / seconds / working as f64,
            turns: self.turns.checked_sub(first.turns)? as f64 / requests,
        })
    }
}

/// Runs wrk with what `plan` asks for; `None` if it was stopped. `show` is called about five times a second.
pub(super) fn run(
    shop: &Workshop<'_>,
    plan: &Plan,
    show: &mut dyn FnMut(),
    stop: &AtomicBool,
) -> Result<Option<Found>, String> {
    let workload = shop.experiment.workload.get_ref();
    let cores = workload.cores.as_ref().map(|cores| cores.get_ref().clone());
    let cores = cores.unwrap_or_default();
    // It knows whole seconds only.
    let seconds = workload.duration.0.as_secs_f64().ceil().max(1.0) as u64;
    let threads = cores.len().max(1).min(plan.connections);
    let mut words = vec![
        "wrk".to_owned(),
        format!("-t{threads}"),
        format!("-c{}", plan.connections),
        format!("-d{seconds}s"),
        "--timeout".to_owned(),
        format!("{}s", workload.timeout.0.as_secs_f64().ceil().max(1.0)),
    ];
    for field in &workload.headers {
        words.extend(["-H".to_owned(), field.get_ref().clone()]);
    }
    if let Some(script) = script(&plan.urls, plan.depth) {
        let path = shop.write_beside("wrk.lua", &script)?;
        words.extend(["-s".to_owned(), path.to_string_lossy().into_owned()]);
    }
    words.push(plan.url.clone());
    let mut process = Process::start(&Launch {
        line: Line::Program(words),
        cwd: shop.experiment.here.clone(),
        env: Vec::new(),
        cores,
    })?;
    let began = clock::now();
    let deadline = clock::after(Duration::from_secs(seconds) + GRACE);
    let mut used: Option<(Use, Use)> = None;
    while process.wait(GLANCE).is_none() {
        // In its last moments it may be done already.
        if clock::since(began) + GLANCE / 2 < Duration::from_secs(seconds)
            && let Some(now) = Use::of(&process.pids())
        {
            used = Some((used.map_or(now, |(first, _)| first), now));
        }
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
    let mut found =
        read(&text).ok_or_else(|| format!("wrk failed; {}", process.output().last_words()))?;
    found.client = used.and_then(|(first, last)| last.since(first, threads, found.throughput));
    Ok(Some(found))
}

/// What wrk needs to be told in Lua: targets to choose from, and requests that go out together. Its pipelining is in
/// batches, each sent when all answers to the one before have come.
fn script(targets: &[String], depth: usize) -> Option<String> {
    if targets.is_empty() && depth == 1 {
        return None;
    }
    let mut list = String::new();
    for target in targets {
        // Within quotes Lua gives a meaning to these two alone.
        let target = target.replace('\\', r"\\").replace('"', "\\\"");
        list.push_str(&format!("  \"{target}\",\n"));
    }
    Some(format!(
        "local targets = {{\n{list}}}\nlocal requests = {{}}\nfunction init()\n\
         \x20 if #targets == 0 then requests[1] = wrk.format() end\n\
         \x20 for n, target in ipairs(targets) do requests[n] = wrk.format(\"GET\", target) end\nend\n\
         function request()\n\
         \x20 local batch = {{}}\n\
         \x20 for n = 1, {depth} do batch[n] = requests[math.random(#requests)] end\n\
         \x20 return table.concat(batch)\nend\n"
    ))
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
        client: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_targets_and_pipelines_are_scripts() {
        assert_eq!(script(&[], 1), None);
        let batches = script(&[], 16).unwrap();
        assert!(batches.contains("for n = 1, 16 do"), "{batches}");
        let targets = ["/a".to_owned(), r#"/"\"#.to_owned()];
        let text = script(&targets, 1).unwrap();
        assert!(
            text.starts_with("local targets = {\n  \"/a\",\n  \"/\\\"\\\\\",\n}\n"),
            "{text}"
        );
    }

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
                errors: 10,
                client: None,
            })
        );
        assert_eq!(
            read("unable to connect to 127.0.0.1:1 Connection refused\n"),
            None
        );
    }
}
