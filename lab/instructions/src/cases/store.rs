//! A hit in the store, without HTTP around it.

use std::{
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use base_clock::Boottime;
use millpond_store::{Class, Config, Feed, Fill, Joined, Need, Sink, Store, Tag, Value};

const ENTRIES: u64 = 1000;
const NOW: Boottime = Boottime::from_nanos(1_000_000_000);

/// A feed whose changes are numbered.
struct Numbered;

impl Feed for Numbered {
    type Mark = u64;
    type Snapshot = u64;
    type Position = u64;

    fn sees(snapshot: &u64, mark: u64) -> bool {
        mark <= *snapshot
    }

    fn snapshot_at(position: u64) -> u64 {
        position
    }
}

/// Stands for a page of 8 KiB.
struct StoredPage;

impl Value for StoredPage {
    fn weight(&self) -> usize {
        8 << 10
    }
}

/// Each entry depends on one table and on one row of another, as an article does.
fn filled() -> (Arc<Store<StoredPage, Numbered>>, Vec<Vec<u8>>) {
    let store = Store::new(Config::default());
    store.heartbeat(NOW, 0);
    let keys: Vec<_> = (0..ENTRIES)
        .map(|n| format!("/read?id={}", 50_000_000 + n).into_bytes())
        .collect();
    for (key, row) in keys.iter().zip(1..) {
        let Joined::Lead(mut permit) = store.join(key, Need::Any) else {
            unreachable!("nobody else fills this store");
        };
        let begun = pin!(permit.begin()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(begun.is_ready());
        permit.complete(Fill {
            value: Arc::new(StoredPage),
            tags: vec![Tag::broad(0), Tag::narrow(row << 8)],
            snapshot: 0,
            position: 0,
            expires: None,
            class: Class::Normal,
            cost: Duration::from_millis(1),
        });
    }
    (store, keys)
}

pub(super) fn hit() -> Box<dyn FnMut()> {
    let (store, keys) = filled();
    assert!(keys.iter().all(|key| store.get(key, NOW).is_ok()));
    let mut next = 0;
    Box::new(move || {
        next = (next + 1) % keys.len();
        let _ = black_box(store.get(black_box(&keys[next]), NOW));
    })
}
