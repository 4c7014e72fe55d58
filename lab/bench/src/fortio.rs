//! The client's shares and times against a server of another project that makes known delays:
//! `fortio server`.

use std::{
    env,
    fmt::Write as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use millrace_client::{Plan, Process, Schedule, Stop};
use millrace_runs::Run;
use serde_json::json;

use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    server::{CLIENT_CORE, SERVER_CORE, free_port, until_it_listens},
};

/// How to get it. Later versions need a module that not every proxy has.
const INSTALL: &str = "go install fortio.org/fortio@v1.66.0";
/// The requested delays: half of the requests take 5 ms, three tenths 10 ms, a fifth 20 ms.
const DELAYS: &str = "5ms:50,10ms:30,20ms:20";
/// Each delay with the share of requests that take it or longer, and a quantile in its middle.
const STEPS: [(f64, f64, f64); 3] = [(5.0, 1.0, 0.25), (10.0, 0.5, 0.65), (20.0, 0.2, 0.9)];
/// A time may be this much above its delay.
const LIMIT_MS: f64 = 1.0;
const CONNECTIONS: usize = 64;

struct Fortio(Child);

impl Drop for Fortio {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it is left.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let rate: f64 = arguments.option("--rate")?.unwrap_or(500.0);
    let seconds: u64 = arguments.option("--seconds")?.unwrap_or(20).max(1);
    let binary: Option<PathBuf> = arguments.option("--fortio")?;
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let binary = binary
        .or_else(find)
        .ok_or_else(|| format!("fortio is not installed: {INSTALL}"))?;
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let _server = start(&binary, port)?;
    let plan = Plan::new(format!("http://127.0.0.1:{port}/?delay={DELAYS}")).with(|plan| {
        plan.load.connections = CONNECTIONS;
        plan.load.cores = Some(vec![CLIENT_CORE]);
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(Duration::from_secs(seconds));
        plan.load.schedule = Some(Schedule::new(rate, Process::Poisson(1)));
    });
    let run = millrace_runs::run(&plan, None, &AtomicBool::new(false))
        .map_err(|error| error.to_string())?;
    if run.accounting.good == 0 {
        return Err(format!("no good answer: {:?}", run.reasons));
    }
    let mut table = format!(
        "{} requests to fortio server, delay={DELAYS}\n delay   share that takes it   expected      ±   time in its middle\n",
        run.accounting.good
    );
    let (mut holds, mut rows) = (true, Vec::new());
    for (delay_ms, expected, q) in STEPS {
        let (share, time_ms) = (share_from(&run, delay_ms), time_at(&run, q));
        let error = counting_error(expected, run.accounting.good);
        let late = time_ms - delay_ms;
        let within = (share - expected).abs() <= error && (0.0..=LIMIT_MS).contains(&late);
        holds &= within;
        let mark = if within { "" } else { "  NOT WITHIN" };
        let _ = writeln!(
            table,
            "{delay_ms:>3} ms {share:>21.4} {expected:>10.2} {error:>6.4} {time_ms:>17.3} ms{mark}"
        );
        rows.push(json!({ "delay_ms": delay_ms, "share": share, "expected": expected, "error": error, "time_ms": time_ms }));
    }
    let verdict = if holds { "within" } else { "NOT WITHIN" };
    let _ = writeln!(
        table,
        "shares are {verdict} the counting error and times {LIMIT_MS} ms"
    );
    let value = json!({ "requests": run.accounting.good, "steps": rows, "limit_ms": LIMIT_MS, "limit_holds": holds });
    publish(&table, &value, json.as_deref())?;
    Ok(holds)
}

/// Three standard errors of a share of `count`; nothing for a share of all.
fn counting_error(share: f64, count: u64) -> f64 {
    3.0 * (share * (1.0 - share) / count as f64).sqrt()
}

/// Finds the program in the folder of `go install`, or on the path.
fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let go = env::var_os("GOPATH").map(|folder| PathBuf::from(folder).join("bin"));
    let folders = env::var_os("GOBIN").map(PathBuf::from).into_iter();
    folders
        .chain(go)
        .chain(home)
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("fortio"))
        .find(|file| file.is_file())
}

fn start(binary: &PathBuf, port: u16) -> Result<Fortio> {
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command.args(["server", "-http-port", &address]);
    for other in ["-grpc-port", "-tcp-port", "-udp-port", "-redirect-port"] {
        command.args([other, "disabled"]);
    }
    cpu::pin(SERVER_CORE)?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    cpu::pin(CLIENT_CORE)?;
    let mut server = Fortio(child.map_err(|error| format!("{}: {error}", binary.display()))?);
    let what = format!("{} server", binary.display());
    until_it_listens(&mut server.0, &address, &what)?;
    Ok(server)
}

/// The share of good answers that took three quarters of `delay_ms` or more. No answer lies between
/// these two, so wide bars of the histogram do no harm.
fn share_from(run: &Run, delay_ms: f64) -> f64 {
    let from = delay_ms * 750.0;
    let over = run.histogram.iter().filter(|bar| bar.to_us > from);
    over.map(|bar| bar.count).sum::<u64>() as f64 / run.accounting.good as f64
}

/// The time in milliseconds of the first point of the percentile curve at or beyond `q`.
fn time_at(run: &Run, q: f64) -> f64 {
    let point = run.percentiles.iter().find(|point| point.q >= q);
    point.map_or(f64::NAN, |point| point.us / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::counting_error;

    #[test]
    fn the_counting_error_is_that_of_a_binomial_share() {
        assert!((counting_error(0.5, 10_000) - 0.015).abs() < 1e-12);
        assert_eq!(counting_error(1.0, 10_000), 0.0);
    }
}
