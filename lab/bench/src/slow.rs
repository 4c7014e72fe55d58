//! `slowhttptest` in its four modes against the real program, with a well-behaved client beside it
//! that must be served normally.

use std::{
    fmt::Write as _,
    io::{ErrorKind, Read as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lab_torture::http::Visits;
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    hostile::{baseline_alone, start_baseline, verdict, visits_json, visits_table},
    victim::Victim,
};

/// The well-behaved client's pause between two requests: it observes the server and must not load
/// it.
const PAUSE: Duration = Duration::from_millis(1);
/// How much longer than it was told `slowhttptest` may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of the tool's modes.
struct Mode {
    name: &'static str,
    /// Arguments of the client.
    arguments: &'static [&'static str],
    path: &'static str,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "slow headers (-H)",
        arguments: &["-H", "-i", "2"],
        path: "/",
    },
    Mode {
        name: "slow body (-B)",
        arguments: &["-B", "-i", "2", "-s", "8192"],
        path: "/mills",
    },
    Mode {
        name: "range attack (-R)",
        arguments: &["-R", "-a", "1", "-b", "3000"],
        path: "/text.txt",
    },
    Mode {
        name: "slow read (-X)",
        arguments: &[
            "-X", "-k", "3", "-w", "512", "-y", "1024", "-n", "5", "-z", "32",
        ],
        path: "/big.bin",
    },
];

/// Result of one mode.
struct SlowFinding {
    mode: &'static str,
    /// Connections that the tool had open at once, at most.
    connected: u64,
    /// True if its own probe was served each time.
    available: bool,
    visits: Visits,
}

struct SlowOptions {
    connections: u32,
    rate: u32,
    seconds: u32,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let options = SlowOptions {
        connections: arguments.option("--connections")?.unwrap_or(1000).max(1),
        rate: arguments.option("--rate")?.unwrap_or(200).max(1),
        seconds: arguments.option("--seconds")?.unwrap_or(30).max(10),
    };
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let victim = Victim::start(&millpond)?;
    let alone = baseline_alone(&victim, PAUSE)?;
    let mut findings = Vec::new();
    for mode in MODES {
        eprintln!("{}, {} s", mode.name, options.seconds);
        findings.push(measure_beside_baseline(&victim, &mode, &options)?);
    }
    let memory = victim.resident_when_quiet()?;
    let mut faults = victim.stop()?;
    faults.extend(findings.iter().filter_map(SlowFinding::fault));
    publish(
        &table(&alone, &findings, &options, memory, &faults),
        &as_json(&alone, &findings, &options, memory, &faults),
        json.as_deref(),
    )?;
    Ok(faults.is_empty())
}

/// One mode from beginning to end, with the client beside it.
fn measure_beside_baseline(
    victim: &Victim,
    mode: &Mode,
    options: &SlowOptions,
) -> Result<SlowFinding> {
    let baseline = start_baseline(victim, PAUSE)?;
    let mut command = Command::new("slowhttptest");
    command
        .args(mode.arguments)
        .args(["-c", &options.connections.to_string()])
        .args(["-r", &options.rate.to_string()])
        .args(["-l", &options.seconds.to_string()])
        .args(["-p", "5", "-u"])
        .arg(format!("http://{}{}", victim.address(), mode.path))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "slowhttptest is not installed:\n  sudo apt-get install slowhttptest".to_owned()
        }
        _ => format!("slowhttptest: {error}"),
    })?;
    let limit = Duration::from_secs(options.seconds.into()) + PATIENCE;
    let report = until_it_ends(child, limit)?;
    let (connected, available) = read_report(&report).ok_or_else(|| {
        format!(
            "slowhttptest {}: nothing to be read in\n{report}",
            mode.name
        )
    })?;
    Ok(SlowFinding {
        mode: mode.name,
        connected,
        available,
        visits: baseline.stop(),
    })
}

/// Returns the output of the child until it ends; the child is killed when it takes longer than
/// `limit`.
fn until_it_ends(mut child: Child, limit: Duration) -> Result<String> {
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is judged as it is.
        let _ = stdout.map(|mut stdout| stdout.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + limit;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(_)) => break true,
            // The standard library has no wait for a child's end with a time limit.
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(50)),
            _ => break false,
        }
    };
    if !ended {
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = reader.join().unwrap_or_default();
    if ended {
        Ok(text)
    } else {
        Err(format!(
            "slowhttptest does not end within {} s",
            limit.as_secs()
        ))
    }
}

/// From the tool's status reports: its most connections, and whether its probe was always served.
fn read_report(report: &str) -> Option<(u64, bool)> {
    let plain = without_colours(report);
    let values = |label: &'static str| {
        plain
            .lines()
            .filter_map(move |line| Some(line.split_once(label)?.1.trim()))
    };
    let connected = values("connected:").filter_map(|value| value.parse().ok());
    let mut answers = values("service available:").peekable();
    answers.peek()?;
    Some((connected.max()?, answers.all(|answer| answer == "YES")))
}

/// Without the escape sequences that colour a terminal: ESC, `[`, up to a letter.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, sequence)) = rest.split_once('\x1b') {
        plain += before;
        let end = sequence.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &sequence[end + 1..]);
    }
    plain + rest
}

impl SlowFinding {
    fn fault(&self) -> Option<String> {
        let Self { mode, visits, .. } = self;
        if visits.errors > 0 || visits.good == 0 {
            let first = visits.first_errors.join("; ");
            return Some(format!(
                "{mode}: the well-behaved client had {} errors ({first})",
                visits.errors
            ));
        }
        (!self.available).then(|| format!("{mode}: slowhttptest found the server closed"))
    }
}

fn table(
    alone: &Visits,
    findings: &[SlowFinding],
    options: &SlowOptions,
    memory: u64,
    faults: &[String],
) -> String {
    let mut text = format!(
        "slowhttptest, {} connections at {}/s, {} s for each mode\n",
        options.connections, options.rate, options.seconds
    );
    let mut rows = vec![("alone", alone)];
    rows.extend(
        findings
            .iter()
            .map(|finding| (finding.mode, &finding.visits)),
    );
    text += &visits_table(&rows);
    for finding in findings {
        let probe = if finding.available {
            "each time"
        } else {
            "NOT each time"
        };
        let _ = writeln!(
            text,
            "{}: at most {} slow connections at once; the tool's own probe was served {probe}",
            finding.mode, finding.connected
        );
    }
    let _ = writeln!(
        text,
        "memory of the server afterwards: {:.1} MiB",
        memory as f64 / f64::from(1 << 20)
    );
    text + &verdict(faults)
}

fn as_json(
    alone: &Visits,
    findings: &[SlowFinding],
    options: &SlowOptions,
    memory: u64,
    faults: &[String],
) -> Value {
    let modes: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "mode": finding.mode,
                "connected_at_most": finding.connected,
                "available": finding.available,
                "beside": visits_json(&finding.visits),
            })
        })
        .collect();
    json!({
        "connections": options.connections,
        "rate": options.rate,
        "seconds": options.seconds,
        "alone": visits_json(alone),
        "modes": modes,
        "resident_anonymous_bytes": memory,
        "faults": faults,
    })
}

#[cfg(test)]
mod tests {
    use super::{read_report, without_colours};

    #[test]
    fn the_tools_report_is_read() {
        let report = "\x1b[1mslow HTTP test status on \x1b[32m5\x1b[0mth second:\n\ninitializing:        0\npending: 1\n\
                      connected:           137\nerror: 0\nclosed: 3\nservice available:   \x1b[32mYES\x1b[0m\n\
                      connected:           12\nservice available:   NO\n";
        assert_eq!(read_report(report), Some((137, false)));
        assert_eq!(read_report(&report.replace("NO", "YES")), Some((137, true)));
        assert_eq!(read_report("usage"), None);
        assert_eq!(without_colours("a\x1b[1;32mb\x1b"), "ab");
    }
}
