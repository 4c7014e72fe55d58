//! The generators: Millpond's own, and wrk where it is installed. Each runs on the client's core.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Result;

/// Program that drives the load.
pub(crate) enum Generator {
    /// `millrace load`, of the `millrace` beside this `millpond`.
    Millpond(PathBuf),
    /// `wrk`, a check on the first: the server's cost must not depend on who asks.
    Wrk,
}

/// The program `millrace` in the folder of the given `millpond`.
pub(crate) fn millrace(millpond: &Path) -> PathBuf {
    millpond.with_file_name("millrace")
}

/// Lists the generators that are there.
pub(crate) fn all(millpond: PathBuf) -> Vec<Generator> {
    let wrk = Command::new("wrk").arg("--version").output().is_ok();
    if !wrk {
        eprintln!("wrk is not installed: only millrace load drives");
    }
    let mut all = vec![Generator::Millpond(millpond)];
    all.extend(wrk.then_some(Generator::Wrk));
    all
}

impl Generator {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Millpond(_) => "millrace load",
            Self::Wrk => "wrk",
        }
    }

    /// Drives `url` for `seconds` and gives the number of requests that were answered.
    pub(crate) fn run(&self, url: &str, connections: usize, seconds: u32) -> Result<u64> {
        let mut command = match self {
            Self::Millpond(binary) => {
                let mut command = Command::new(millrace(binary));
                command
                    .args([
                        "load",
                        url,
                        "--no-calibration",
                        "--json",
                        "-",
                        "--connections",
                    ])
                    .arg(connections.to_string());
                command.arg("--duration").arg(format!("{seconds}s"));
                command
            }
            Self::Wrk => {
                let mut command = Command::new("wrk");
                command
                    .args(["-t", "1", "-c"])
                    .arg(connections.to_string())
                    .arg("-d")
                    .arg(format!("{seconds}s"))
                    .arg(url);
                command
            }
        };
        let output = command
            .output()
            .map_err(|error| format!("{}: {error}", self.name()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let requests = match self {
            Self::Millpond(_) => millpond_requests(&text),
            Self::Wrk => wrk_requests(&text),
        };
        // The status of `millrace load` says that a run is not to be trusted. The server's cost
        // still is, if requests were counted.
        requests.filter(|&requests| requests > 0).ok_or_else(|| {
            format!(
                "{} {url}: {}\n{text}{}",
                self.name(),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

fn millpond_requests(json: &str) -> Option<u64> {
    serde_json::from_str::<Value>(json)
        .ok()?
        .get("requests")?
        .as_u64()
}

/// The line `  123456 requests in 2.00s, 1.59GB read`; any error, which wrk counts separately,
/// makes the run invalid.
fn wrk_requests(text: &str) -> Option<u64> {
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return None;
    }
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{millpond_requests, wrk_requests};

    #[test]
    fn requests_are_read_from_what_the_generators_print() {
        assert_eq!(
            millpond_requests(r#"{"verdict":"VALID","requests":42}"#),
            Some(42)
        );
        assert_eq!(millpond_requests("{}"), None);
        let report = "Running 1s test @ http://127.0.0.1:1/\n  84115 requests in 1.00s, 1.59GB read\nRequests/sec:  83886.66\n";
        assert_eq!(wrk_requests(report), Some(84_115));
        assert_eq!(
            wrk_requests(&format!("{report}  Non-2xx or 3xx responses: 3\n")),
            None
        );
    }
}
