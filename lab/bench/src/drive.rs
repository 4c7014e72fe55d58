//! Load by `millrace load`, on the client's core.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::Result;

/// The program `millrace` in the folder of the given `millpond`, which drives `url` for `seconds`.
/// Returns the number of requests that were answered.
pub(crate) fn load(millpond: &Path, url: &str, connections: usize, seconds: u32) -> Result<u64> {
    let mut command = Command::new(millpond.with_file_name("millrace"));
    command
        .args(["load", url, "--no-calibration", "--json", "-"])
        .args(["--connections", &connections.to_string()])
        .args(["--duration", &format!("{seconds}s")]);
    let output = command
        .output()
        .map_err(|error| format!("millrace load: {error}"))?;
    let run: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    // The status says that a run is not to be trusted. The server's cost still is, if requests were
    // counted.
    let requests = run["requests"].as_u64().filter(|&requests| requests > 0);
    requests.ok_or_else(|| {
        let [text, errors] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        format!("millrace load {url}: {}\n{text}{errors}", output.status)
    })
}
