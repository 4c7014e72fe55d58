//! The same load by another client, as a second opinion about throughput.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cores::{CoreReadings, CoreSets};
use super::outcome::OtherClient;
use super::process::{Launch, Process};
use super::spec::OtherProgram;
use super::spec_values::CommandLine;
use super::work_folder::WorkFolder;
use super::{h2load, wrk};
use base_clock::Nanos;
use millrace_client::Plan;
use millrace_client::request::head_fields;
use millrace_client::scheduler_stats::schedule;

/// Time between two checks whether the client has ended.
const GLANCE: Duration = Duration::from_millis(200);
/// How much longer than its run the client may take.
const GRACE: Duration = Duration::from_secs(30);

/// The length of the other client's run, which takes whole seconds.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs_f64().ceil().max(1.0) as u64
}

/// The load for the other client.
pub(super) struct OtherLoad<'a> {
    pub(super) plan: &'a Plan,
    pub(super) threads: usize,
    /// Length of the run; the other client takes whole seconds only.
    pub(super) seconds: u64,
    pub(super) timeout_s: u64,
    /// The fields of each request as this client sends them, except `Host`, which each client adds
    /// itself.
    pub(super) fields: Vec<String>,
}

/// The fields that the other client has to send: the server must parse the same request,
/// `User-Agent` included.
fn fields(plan: &Plan) -> Result<Vec<String>, String> {
    let text = head_fields(&plan.request, "")?;
    let fields = text.lines().filter(|field| *field != "Host: ");
    Ok(fields.map(str::to_owned).collect())
}

/// The other client's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OtherResult {
    pub(super) requests: u64,
    pub(super) throughput: f64,
    pub(super) errors: u64,
    pub(super) client: Option<OtherClient>,
    /// Share of time for which the server's cores were busy.
    pub(super) server_busy: Option<f64>,
}

/// Use of the cores by all threads of some processes, up to a moment.
#[derive(Clone, Copy)]
struct ThreadUse {
    at: Nanos,
    on_core: Nanos,
    turns: u64,
    threads: usize,
}

impl ThreadUse {
    fn of(pids: &[u32]) -> Option<Self> {
        let mut all = Self {
            at: base_clock::now(),
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

    /// Usage between two readings of the same threads, of which `working` are active.
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
            core_busy: None,
        })
    }
}

/// Runs the other client with the load of `plan`; `None` if it was stopped. `show` is called about
/// five times a second.
pub(super) fn run(
    work_folder: &WorkFolder<'_>,
    checker: OtherProgram,
    plan: &Plan,
    sides: CoreSets<'_>,
    show: &mut dyn FnMut(),
    stop: &AtomicBool,
) -> Result<Option<OtherResult>, String> {
    let workload = work_folder.experiment.workload.get_ref();
    let cores = workload.cores.as_ref().map(|cores| cores.get_ref().clone());
    let cores = cores.unwrap_or_default();
    let asked = OtherLoad {
        plan,
        threads: cores.len().max(1).min(plan.load.connections),
        seconds: whole_seconds(workload.duration()),
        timeout_s: whole_seconds(workload.timeout.0),
        fields: fields(plan)?,
    };
    let words = match checker {
        OtherProgram::Wrk => wrk::command_line(work_folder, &asked)?,
        OtherProgram::H2load => h2load::command_line(work_folder, &asked)?,
    };
    let (name, seconds) = (checker.name(), Duration::from_secs(asked.seconds));
    let mut process = Process::start(&Launch {
        line: CommandLine::Program(words),
        cwd: work_folder.experiment.here.clone(),
        env: Vec::new(),
        cores,
    })?;
    let began = base_clock::now();
    let deadline = base_clock::after(seconds + GRACE);
    let (mut used, mut looks): (Option<(ThreadUse, ThreadUse)>, _) =
        (None, CoreReadings::default());
    while process.wait(GLANCE).is_none() {
        // In its last moments the client may have ended already.
        if base_clock::since(began) + GLANCE / 2 < seconds
            && let Some(now) = ThreadUse::of(&process.pids())
        {
            used = Some((used.map_or(now, |(first, _)| first), now));
            looks.look(sides);
        }
        show();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if base_clock::now() > deadline {
            return Err(format!(
                "{name} does not end; {}",
                process.output().last_lines()
            ));
        }
    }
    let text = process.output().all_output();
    let found = match checker {
        OtherProgram::Wrk => wrk::read(&text),
        OtherProgram::H2load => h2load::read(&text),
    };
    let mut found =
        found.ok_or_else(|| format!("{name} failed; {}", process.output().last_lines()))?;
    let client = used.and_then(|(first, last)| last.since(first, asked.threads, found.throughput));
    let busy = looks.shares();
    found.server_busy = busy.server;
    found.client = client.map(|client| OtherClient {
        core_busy: busy.client,
        ..client
    });
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_client::request::OWN_USER_AGENT;

    #[test]
    fn the_other_client_sends_the_fields_that_this_one_does() {
        let told = |headers: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let headers = headers.iter().map(own).collect();
            let plan = Plan::new("http://h/").with(|plan| plan.request.headers = headers);
            fields(&plan).unwrap()
        };
        let own = format!("User-Agent: {OWN_USER_AGENT}");
        assert_eq!(told(&[]), std::slice::from_ref(&own));
        assert_eq!(told(&[("Accept", "x")]), [own, "Accept: x".to_owned()]);
        assert_eq!(told(&[("user-agent", "x")]), ["user-agent: x"]);
    }
}
