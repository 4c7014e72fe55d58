//! The memory that an entry takes beside its key and its value: the store's account, compared with
//! the allocator's count.

use millpond_store::{Config, FillOutcome, Need, Tag};

use crate::{
    counting::allocated,
    support::{Stone, fill, lead, store, weighing},
};

const KEPT: usize = 50_000;
const KEY: usize = size_of::<u64>();

/// Bytes for one entry, by the account and by the allocator, in a store that is full and has
/// replaced all its entries `turns` times.
fn measure(kept: usize, turns: usize, tags: impl Fn(u64) -> Vec<Tag>) -> (f64, f64) {
    let one = store(Config::default());
    lead(&one, &[0; KEY], Need::Any).complete(weighing(
        Stone {
            number: 0,
            weight: 0,
        },
        tags(0),
        0,
    ));
    let memory = one.stats().bytes * kept;
    let before = allocated();
    let store = store(Config {
        memory,
        negative_percent: 0,
        ..Config::default()
    });
    let value = fill(0, Vec::new(), 0).value;
    for n in 0..((1 + turns) * kept) as u64 {
        let fill = millpond_store::Fill {
            value: value.clone(),
            ..fill(0, tags(n), 0)
        };
        assert_eq!(
            lead(&store, &n.to_le_bytes(), Need::Any).complete(fill),
            FillOutcome::Stored
        );
    }
    let stats = store.stats();
    assert_eq!(stats.entries, kept);
    let kept = kept as f64;
    (
        stats.bytes as f64 / kept - KEY as f64,
        (allocated() - before) as f64 / kept - KEY as f64,
    )
}

/// The account may be a tenth above the count, never below it. The least of three stores counts:
/// depending on the hash seed, a table may have doubled because of deleted slots.
fn check(stated: f64, tags: impl Fn(u64) -> Vec<Tag>) {
    let mut stores: Vec<(f64, f64)> = (0..3).map(|_| measure(KEPT, 3, &tags)).collect();
    stores.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (accounted, counted) = stores[0];
    println!("accounted {accounted}, counted {counted:.1}");
    assert_eq!(accounted, stated);
    assert!(
        counted <= accounted,
        "{counted} bytes are counted, {accounted} accounted"
    );
    assert!(
        accounted <= 1.12 * counted,
        "{counted} bytes are counted, {accounted} accounted"
    );
}

#[test]
fn an_entry_without_tags_takes_256_bytes() {
    check(256.0, |_| Vec::new());
}

#[test]
fn a_broad_tag_that_all_share_takes_32_bytes() {
    check(288.0, |_| vec![Tag::broad(1)]);
}

#[test]
fn three_narrow_tags_of_its_own_take_384_bytes() {
    check(640.0, |n| {
        (0..3).map(|tag| Tag::narrow((3 * n + tag) << 1)).collect()
    });
}

/// A hash table doubles when no slot is free and more than half are used, even where most of the
/// others held entries that were removed.
#[test]
fn tags_that_come_and_go_take_no_further_memory() {
    let own = |n| {
        (0..20)
            .map(|tag| Tag::narrow((20 * n + tag) << 1))
            .collect()
    };
    let (_, few) = measure(7_000, 1, own);
    let (_, many) = measure(7_000, 60, own);
    assert!(
        many < 1.1 * few,
        "{few} bytes are counted at first, {many} later"
    );
}
