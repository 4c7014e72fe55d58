//! What is given from memory although the bound is over, where the owner allows it.

use std::{sync::Arc, time::Duration};

use base_clock::Boottime;
use millpond_store::{Feed, Store, Value};

/// A value that is older than promised, and what its response has to say of that.
pub struct StaleAnswer<V> {
    /// The value.
    pub value: Arc<V>,
    /// The field lines `Age` and `Cache-Status`.
    pub lines: Vec<u8>,
}

/// Returns the value under `key` while only the silence of the feed keeps it from being a hit, for
/// at most `allowed` beyond the bound.
///
/// RFC 9111 section 5.1: `Age` counts from the moment at which it was last known to be right. RFC
/// 9211 section 2.4: a `ttl` below zero is that of a stale response.
pub fn stale<V: Value, F: Feed>(
    store: &Store<V, F>,
    key: &[u8],
    allowed: Duration,
) -> Option<StaleAnswer<V>> {
    if allowed.is_zero() {
        return None;
    }
    let stale = store.get_stale(key, Boottime::now(), allowed);
    let stale = stale.filter(|stale| !stale.overdue.is_zero())?;
    let overdue = stale.overdue.as_nanos().div_ceil(1_000_000_000);
    let lines = format!(
        "Age: {}\r\nCache-Status: millpond; fwd=stale; ttl=-{overdue}; detail=stale-if-error\r\n",
        stale.age.as_secs()
    );
    Some(StaleAnswer {
        value: stale.value,
        lines: lines.into_bytes(),
    })
}
