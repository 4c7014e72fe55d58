//! The store's hit ratios on published traces, beside libcachesim's.

use std::{fmt::Write as _, path::PathBuf, sync::Arc};

use base_clock::Boottime;
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    fill::{self, Stone},
    libcachesim::{self, Ratios},
    traces::{self, Trace},
};

/// Cache sizes in thousandths of the distinct keys.
const SIZES: [usize; 3] = [1, 10, 100];
/// How far below the same policy elsewhere, and below LRU, the store may be, in points.
const LIMIT: f64 = 0.5;

/// One trace at one size, hit ratios in per cent.
struct HitRatioRow {
    trace: &'static str,
    thousandths: usize,
    entries: usize,
    ours: f64,
    peer: Option<Ratios>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let python: String = arguments
        .option("--python")?
        .unwrap_or_else(|| "python3".to_owned());
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    let peers = libcachesim::is_installed(&python);
    if !peers {
        eprintln!(
            "no libcachesim to compare with; to install it: {python} -m pip install libcachesim"
        );
    }
    let mut rows = Vec::new();
    for trace in traces::load_all()? {
        for thousandths in SIZES {
            let entries = trace.distinct * thousandths / 1000;
            eprintln!("{} at {entries} entries", trace.name);
            let ours = replay(&trace, entries)?;
            let peer = if peers {
                Some(libcachesim::ratios(&python, &trace.dense_path, entries)?)
            } else {
                None
            };
            rows.push(HitRatioRow {
                trace: trace.name,
                thousandths,
                entries,
                ours,
                peer,
            });
        }
    }
    let holds = holds(&rows);
    publish(
        &table(&rows, holds),
        &as_json(&rows, holds),
        json.as_deref(),
    )?;
    Ok(holds != Some(false))
}

/// Per cent of the trace's requests that a store with room for `entries` finds.
fn replay(trace: &Trace, entries: usize) -> Result<f64> {
    let now = Boottime::now();
    let memory = entries * fill::entry_weight(&0u32.to_le_bytes(), now)?;
    let store = fill::store(memory, now);
    let stone = Arc::new(Stone(0));
    let mut hits = 0u64;
    for key in &trace.keys {
        let key = key.to_le_bytes();
        if store.get(&key, now).is_ok() {
            hits += 1;
        } else {
            fill::fill(&store, &key, stone.clone())?;
        }
    }
    Ok(100.0 * hits as f64 / trace.keys.len() as f64)
}

/// True if the limits hold, when there is something to hold them against.
fn holds(rows: &[HitRatioRow]) -> Option<bool> {
    let peers: Option<Vec<(f64, Ratios)>> =
        rows.iter().map(|row| Some((row.ours, row.peer?))).collect();
    let peers = peers?;
    let each = |(ours, peer): &(f64, Ratios)| {
        (ours - peer.s3_fifo).abs() <= LIMIT && ours - peer.lru >= -LIMIT
    };
    let gain: f64 = peers.iter().map(|(ours, peer)| ours - peer.lru).sum();
    Some(peers.iter().all(each) && gain > 0.0)
}

fn table(rows: &[HitRatioRow], holds: Option<bool>) -> String {
    let mut text = format!(
        "{:10} {:>7} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}\n",
        "trace", "keys %", "entries", "store", "same there", "differ", "LRU", "gain"
    );
    for row in rows {
        let size = row.thousandths as f64 / 10.0;
        let _ = write!(
            text,
            "{:10} {size:>7.1} {:>8} {:>8.2}",
            row.trace, row.entries, row.ours
        );
        if let Some(peer) = row.peer {
            let (differ, gain) = (row.ours - peer.s3_fifo, row.ours - peer.lru);
            let _ = write!(
                text,
                " {:>10.2} {differ:>+8.2} {:>8.2} {gain:>+8.2}",
                peer.s3_fifo, peer.lru
            );
        }
        text.push('\n');
    }
    let gains: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.ours - row.peer?.lru))
        .collect();
    if let Some(holds) = holds {
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        let worst = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = if holds {
            "the limits hold"
        } else {
            "THE LIMITS DO NOT HOLD"
        };
        let _ = writeln!(
            text,
            "above LRU by {mean:+.2} points on average, {worst:+.2} at worst: {verdict}"
        );
    }
    text
}

fn as_json(rows: &[HitRatioRow], holds: Option<bool>) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "trace": row.trace,
                "keys_percent": row.thousandths as f64 / 10.0,
                "entries": row.entries,
                "store_percent": row.ours,
                "libcachesim_s3fifo_percent": row.peer.map(|peer| peer.s3_fifo),
                "libcachesim_lru_percent": row.peer.map(|peer| peer.lru),
            })
        })
        .collect();
    json!({ "rows": rows, "limits_hold": holds, "limit_points": LIMIT })
}

/// Returns the folder of downloads and derived files.
pub(crate) fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

#[cfg(test)]
mod tests {
    use super::{HitRatioRow, holds, replay};
    use crate::{libcachesim::Ratios, traces::Trace};

    /// LRU, as plain as it can be: per cent of hits.
    fn lru(keys: &[u32], entries: usize) -> f64 {
        let mut cache: Vec<u32> = Vec::new();
        let mut hits = 0;
        for key in keys {
            let found = cache.iter().position(|cached| cached == key);
            hits += usize::from(found.is_some());
            match found {
                Some(at) => drop(cache.remove(at)),
                None if cache.len() == entries => drop(cache.remove(0)),
                None => {}
            }
            cache.push(*key);
        }
        100.0 * hits as f64 / keys.len() as f64
    }

    #[test]
    fn a_replayed_store_outlives_the_scans_that_empty_an_lru() {
        // Forty pages in use, and again and again a crawler that reads a thousand.
        let mut keys = Vec::new();
        for round in 0..20u32 {
            keys.extend((0..10).flat_map(|_| 0..40));
            keys.extend((0..1000).map(|page| 40 + (round * 1000 + page) % 5000));
        }
        let trace = Trace {
            name: "scans",
            keys,
            distinct: 5040,
            dense_path: "".into(),
        };
        let (ours, theirs) = (
            replay(&trace, 100).expect("a replay"),
            lru(&trace.keys, 100),
        );
        assert!(ours > theirs, "{ours} {theirs}");
        assert_eq!(
            replay(&trace, 5040).expect("a replay"),
            lru(&trace.keys, 5040)
        );
    }

    #[test]
    fn the_limits_are_held_against_every_row() {
        let row = |ours, s3_fifo, lru| HitRatioRow {
            trace: "t",
            thousandths: 1,
            entries: 1,
            ours,
            peer: Some(Ratios { s3_fifo, lru }),
        };
        assert_eq!(
            holds(&[row(40.0, 40.4, 40.4), row(50.0, 50.0, 49.0)]),
            Some(true)
        );
        assert_eq!(
            holds(&[row(40.0, 40.6, 40.0), row(50.0, 50.0, 49.0)]),
            Some(false)
        );
        assert_eq!(
            holds(&[row(40.0, 40.0, 40.6), row(50.0, 50.0, 49.0)]),
            Some(false)
        );
        assert_eq!(holds(&[row(40.0, 40.0, 40.1)]), Some(false));
        assert_eq!(
            holds(&[HitRatioRow {
                peer: None,
                ..row(40.0, 0.0, 0.0)
            }]),
            None
        );
    }
}
