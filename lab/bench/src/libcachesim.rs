//! libcachesim, the reference implementations of the field, in a Python process.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::Result;

/// Hit ratios in per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratios {
    /// S3-FIFO with the store's parameters.
    pub(crate) s3_fifo: f64,
    pub(crate) lru: f64,
}

pub(crate) fn is_installed(python: &str) -> bool {
    let mut import = Command::new(python);
    import
        .args(["-c", "import libcachesim, numpy"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}

/// Returns the hit ratios of caches of `entries` entries on the trace in `dense`.
pub(crate) fn ratios(python: &str, dense: &Path, entries: usize) -> Result<Ratios> {
    let mut script = Command::new(python);
    script
        .args(["-c", include_str!("libcachesim.py")])
        .arg(dense)
        .arg(entries.to_string());
    let output = script
        .output()
        .map_err(|error| format!("{python}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        format!(
            "libcachesim: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// libcachesim logs to stdout as it likes; ours is the line with the mark.
fn parse(text: &str) -> Option<Ratios> {
    let line = text
        .lines()
        .find_map(|line| Some(line.split_once("RATIOS ")?.1))?;
    let (s3_fifo, lru) = line.split_once(' ')?;
    Some(Ratios {
        s3_fifo: s3_fifo.parse().ok()?,
        lru: lru.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Ratios, parse};

    #[test]
    fn the_marked_line_is_found_among_logs() {
        let text = "[INFO] reading\n\u{1b}[0mRATIOS 43.75 39.1\n";
        assert_eq!(
            parse(text),
            Some(Ratios {
                s3_fifo: 43.75,
                lru: 39.1
            })
        );
        assert_eq!(parse("[ERROR] no trace"), None);
    }
}
