//! Lets a scenario last: each minute old entries are forgotten, the tables are vacuumed, and a line
//! reports the state.
//!
//! A server that restarts several times in a minute has no time for its own vacuum.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::coherence::context::Context;
use crate::coherence::node::{Node, memory_of};
use crate::coherence::writer::connect;
use base_clock::Boottime;

const MINUTE: Duration = Duration::from_secs(60);
/// So long a request may be under way, twice over.
const REQUEST: Duration = Duration::from_secs(120);

/// Thread that does the upkeep.
pub(crate) struct Upkeep<'f> {
    pub(crate) context: &'f Context,
    pub(crate) nodes: &'f [Arc<Node>],
    pub(crate) url: &'f str,
    /// The server's database files, with its own log beside them.
    pub(crate) data: PathBuf,
}

impl Upkeep<'_> {
    /// Works until the span is over.
    pub(crate) fn run(&self) {
        for minute in 1.. {
            if self.context.span.pass(MINUTE) {
                break;
            }
            let bounds = self.context.nodes.iter().map(|node| node.bound());
            let horizon = bounds.max().unwrap_or_default() + REQUEST;
            self.context.log.forget(Boottime::now().minus(horizon));
            // The server may be away just now; a minute later is soon enough.
            let vacuumed = connect(self.url).and_then(|mut client| client.batch_execute("vacuum"));
            let vacuumed = if vacuumed.is_ok() {
                ""
            } else {
                ", not vacuumed"
            };
            println!("minute {minute}: {}{vacuumed}", self.line());
        }
    }

    fn line(&self) -> String {
        let tally = &self.context.tally;
        let [reads, hits, wrong, faults] = [&tally.reads, &tally.hits, &tally.wrong, &tally.faults]
            .map(|count| count.load(Ordering::Relaxed));
        let percent = hits as f64 * 100.0 / reads.max(1) as f64;
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .map(|node| megabytes(node.memory()))
            .collect();
        format!(
            "{reads} reads, {percent:.1} % hits, {wrong} late or mixed, {faults} faults; \
             memory: nodes {} MB, adversary {} MB with {} notes; the server's files {} MB, its log of changes {} MB",
            nodes.join(" "),
            megabytes(memory_of(std::process::id())),
            self.context.log.size(),
            megabytes(self.data.parent().map_or(0, size)),
            megabytes(size(&self.data.join("pg_wal"))),
        )
    }
}

fn megabytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

/// The bytes in a folder; what goes while it is looked at does not count.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_folder_is_as_large_as_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), [0; 100]).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b/c"), [0; 23]).unwrap();
        assert_eq!(size(folder.path()), 123);
        assert_eq!(size(&folder.path().join("none")), 0);
    }
}
