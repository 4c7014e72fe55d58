//! Names what limits a server, from the figures of one level of load.
//!
//! Each rule looks for signs of saturation: a resource is always in use, or threads wait for it.
//! The rule gives its evidence in sentences and the bound that follows. A rule needs a sign that
//! exists only at the limit, so a server under light load gets no name. Limits that show only over
//! several levels (a lock, waiting for others) are in `levels`.

mod levels;
mod signs;

pub use levels::{LevelSigns, across, are_far_apart};

use base_probe::Summary;
use serde::{Deserialize, Serialize};

use super::demand::ClientSide;

/// Resource that can limit a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A few of its threads are always busy while cores are idle.
    Threads,
    /// Every core that it may run on is busy, mostly for it.
    Cores,
    /// A control group's CPU quota is used up.
    Quota,
    /// Other programs take the cores that it needs.
    Neighbours,
    /// It waits for a disk.
    Disk,
    /// An interface is full, or packets get lost.
    Network,
    /// Connections are turned away before it accepts them.
    Backlog,
    /// The client that measures.
    Client,
    /// One request at a time passes something that takes no CPU: a lock, a pool.
    Serialised,
    /// It waits for something that is not on this machine, or sleeps.
    WaitsElsewhere,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::Threads => "the CPU of single threads",
            Self::Cores => "the CPU of all cores",
            Self::Quota => "the CPU quota of a control group",
            Self::Neighbours => "other programs on its cores",
            Self::Disk => "a disk",
            Self::Network => "the network",
            Self::Backlog => "the queue of connections to be accepted",
            Self::Client => "the client itself",
            Self::Serialised => "serialisation without CPU: a lock or a pool",
            Self::WaitsElsewhere => "waits outside this machine",
        })
    }
}

/// One limit, with what speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the limit.
    pub name: Limit,
    /// How much of what happened it explains, from 0 to about 1: findings are ranked by it.
    pub weight: f64,
    /// Evidence, in sentences without a full stop.
    pub evidence: Vec<String>,
    /// The highest number of requests a second while this limit stays; `None` if the limit implies
    /// none.
    pub bound_per_s: Option<f64>,
}

/// Returns the findings of one level of load, the likeliest limit first.
pub fn findings(summary: &Summary, client: ClientSide) -> Vec<Finding> {
    // Without figures of the cores nothing can be called busy or idle.
    if summary.cores.is_empty() || summary.span_s <= 0.0 {
        return Vec::new();
    }
    let signs = signs::Signs::new(summary, client);
    let mut found: Vec<Finding> = [
        signs.threads(),
        signs.cores(),
        signs.quota(),
        signs.neighbours(),
        signs.disk(),
        signs.network(),
        signs.backlog(),
        signs.client(),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found
}

#[cfg(test)]
mod tests;
