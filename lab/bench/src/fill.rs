//! A store to measure: its values are as heavy as they say, and its feed is always fresh.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use base_clock::Boottime;
use millpond_store::{Class, Config, Feed, Fill, FillOutcome, Joined, Need, Sink, Store, Value};

use crate::Result;

/// A source in which nothing ever changes.
pub(crate) struct Still;

impl Feed for Still {
    type Mark = ();
    type Snapshot = ();
    type Position = u64;

    fn sees((): &(), (): ()) -> bool {
        true
    }

    fn snapshot_at(_: u64) {}
}

/// A value of a stated weight.
pub(crate) struct Stone(pub(crate) usize);

impl Value for Stone {
    fn weight(&self) -> usize {
        self.0
    }
}

pub(crate) type TestStore = Arc<Store<Stone, Still>>;

const A_DAY: Duration = Duration::from_secs(86_400);

/// A store of `memory` bytes, with a feed that is fresh for a day from `now`.
pub(crate) fn store(memory: usize, now: Boottime) -> TestStore {
    let config = Config {
        memory,
        negative_percent: 0,
        max_staleness: A_DAY,
        ..Config::default()
    };
    let store = Store::new(config);
    store.heartbeat(now, 0);
    store
}

/// Does what a miss does. All fills cost the same.
pub(crate) fn fill(store: &TestStore, key: &[u8], stone: Arc<Stone>) -> Result<()> {
    let Joined::Lead(mut permit) = store.join(key, Need::Any) else {
        return Err("a single thread found somebody else's flight".to_owned());
    };
    let begun = pin!(permit.begin()).poll(&mut Context::from_waker(Waker::noop()));
    if begun == Poll::Pending {
        return Err("a first flight had to wait".to_owned());
    }
    let cost = Duration::from_millis(1);
    let class = Class::Normal;
    match permit.complete(Fill {
        value: stone,
        tags: Vec::new(),
        snapshot: (),
        position: 0,
        expires: None,
        class,
        cost,
    }) {
        FillOutcome::Stored => Ok(()),
        other => Err(format!("a fill was not stored: {other:?}")),
    }
}

/// The store's memory for an entry with a key of `key` bytes, a weightless value and no tags.
pub(crate) fn entry_weight(key: &[u8], now: Boottime) -> Result<usize> {
    let store = store(1 << 20, now);
    fill(&store, key, Arc::new(Stone(0)))?;
    Ok(store.stats().bytes)
}
