//! What several tests need: a small feed, a value, and a way to run a future.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use base_clock::Boottime;
use millpond_store::{Class, Config, Feed, Fill, Joined, Need, Permit, Sink, Store, Tag, Value};

/// A feed whose changes are numbered, and whose snapshots see every change up to a number.
pub(crate) struct Numbered;

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

/// A value with a number to identify it and a weight.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stone {
    pub(crate) number: u64,
    pub(crate) weight: usize,
}

impl Value for Stone {
    fn weight(&self) -> usize {
        self.weight
    }
}

pub(crate) type TestStore = Arc<Store<Stone, Numbered>>;

pub(crate) const NOW: Boottime = Boottime::from_nanos(1_000_000_000);

/// A store with a fresh feed.
pub(crate) fn store(mut config: Config) -> TestStore {
    config.max_staleness = Duration::from_secs(3600);
    let store = Store::new(config);
    store.heartbeat(NOW, 0);
    store
}

/// Waits on the calling thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// One look at a future, whose state is lost if it is not ready.
pub(crate) fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The permit for `key`, begun.
pub(crate) fn lead(store: &TestStore, key: &[u8], need: Need) -> Permit<Stone, Numbered> {
    let Joined::Lead(mut permit) = store.join(key, need) else {
        panic!("somebody else leads")
    };
    assert!(poll_once(permit.begin()).is_ready());
    permit
}

/// A fill that saw every change up to `snapshot`.
pub(crate) fn fill(number: u64, tags: Vec<Tag>, snapshot: u64) -> Fill<Stone, Numbered> {
    weighing(Stone { number, weight: 0 }, tags, snapshot)
}

pub(crate) fn weighing(stone: Stone, tags: Vec<Tag>, snapshot: u64) -> Fill<Stone, Numbered> {
    Fill {
        value: Arc::new(stone),
        tags,
        snapshot,
        position: snapshot,
        expires: None,
        class: Class::Normal,
        cost: Duration::from_millis(1),
    }
}
