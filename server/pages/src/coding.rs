//! Codings of kept responses, made in the background.

use std::sync::Arc;

use millpond_http::{Coding, Compressor, Prepared};
use millpond_store::{Feed, Store, Value};

/// Requests a coding of the prepared response that is in `value`, for later requests; what it adds
/// to the memory of the value under `key` is counted.
///
/// The job does not hold the value: one that the store has evicted by then is not compressed.
pub fn request_coding<V: Value, F: Feed>(
    compressor: &Compressor,
    store: &Arc<Store<V, F>>,
    (key, value): (&[u8], &Arc<V>),
    (prepared, coding): (&Arc<Prepared>, Coding),
) {
    let (store, value) = (Arc::downgrade(store), Arc::downgrade(value));
    let key = Box::<[u8]>::from(key);
    compressor.request_coding(prepared, coding, move |added| {
        if let (Some(store), Some(value)) = (store.upgrade(), value.upgrade()) {
            store.grow(&key, &value, added);
        }
    });
}
