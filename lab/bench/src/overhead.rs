//! Memory of an entry beside its key and its value: the allocator's count beside the store's own.

use std::{fmt::Write as _, sync::Arc};

use base_clock::Boottime;
use millpond_store::Tag;
use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    counting,
    fill::{self, Stone, TestStore},
};

/// Bytes for one entry.
struct OverheadRow {
    what: &'static str,
    /// By the allocator, without key and value.
    allocated: f64,
    /// By the store, without key and value.
    accounted: f64,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let entries: usize = arguments.option("--entries")?.unwrap_or(100_000);
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;
    if entries == 0 {
        return Err("--entries 0 leaves nothing to measure".to_owned());
    }
    let rows = [
        measure("no tag", entries, usize::MAX, |_| Vec::new())?,
        measure("one tag, shared by all", entries, usize::MAX, |_| {
            vec![Tag::broad(1)]
        })?,
        measure("three tags of its own", entries, usize::MAX, |n| {
            (0..3).map(|tag| Tag::narrow((3 * n + tag) << 1)).collect()
        })?,
        measure("one and five of its own", entries, usize::MAX, |n| {
            (0..6).map(|tag| Tag::narrow((6 * n + tag) << 1)).collect()
        })?,
        measure(
            "no tag, after nine have left",
            entries,
            entries / 10,
            |_| Vec::new(),
        )?,
    ];
    publish(
        &table(&rows, entries),
        &as_json(&rows, entries),
        json.as_deref(),
    )?;
    Ok(true)
}

/// Stores `entries` in a store with room for `room` of them.
fn measure(
    what: &'static str,
    entries: usize,
    room: usize,
    tags: impl Fn(u64) -> Vec<Tag>,
) -> Result<OverheadRow> {
    let now = Boottime::now();
    let weight = fill::entry_weight(&0u64.to_le_bytes(), now)?;
    let memory = room.max(1).saturating_mul(weight).min(1 << 40);
    let before = counting::allocated();
    let store = fill::store(memory, now);
    let empty = counting::allocated() - before;
    let stone = Arc::new(Stone(0));
    for n in 0..entries as u64 {
        fill::fill(&store, &n.to_le_bytes(), stone.clone(), tags(n))?;
    }
    let allocated = counting::allocated() - before - empty;
    let kept = store.stats().entries.max(1) as f64;
    Ok(OverheadRow {
        what,
        allocated: allocated as f64 / kept - KEY,
        accounted: accounted(&store, kept),
    })
}

const KEY: f64 = size_of::<u64>() as f64;

fn accounted(store: &TestStore, kept: f64) -> f64 {
    store.stats().bytes as f64 / kept - KEY
}

fn table(rows: &[OverheadRow], entries: usize) -> String {
    let mut text = format!(
        "bytes for an entry beside key and value, {entries} stored\n{:30} {:>10} {:>10}\n",
        "", "allocator", "store says"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:30} {:>10.1} {:>10.1}",
            row.what, row.allocated, row.accounted
        );
    }
    text
}

fn as_json(rows: &[OverheadRow], entries: usize) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "entries": row.what, "allocated_bytes": row.allocated, "accounted_bytes": row.accounted }))
        .collect();
    json!({ "stored": entries, "per_entry": rows })
}

#[cfg(test)]
mod tests {
    use super::measure;

    /// The allocator counts all threads, so beside other tests only the store's own figure is
    /// certain.
    #[test]
    fn a_small_measurement_works() {
        let few = measure("all stay", 500, usize::MAX, |_| Vec::new()).expect("measured");
        let full = measure("most leave", 500, 50, |_| Vec::new()).expect("measured");
        assert!(few.accounted > 0.0);
        assert_eq!(few.accounted, full.accounted);
    }
}
