//! Codings that the owner made beforehand: `app.js.br`, `app.js.zst` and `app.js.gz` beside `app.js`.
//!
//! One is used if it is not older than the file (a time that is equal will do, as copying and unpacking leave it), has
//! content, and is shorter than the file. An older one is left from another version, and would be served for ever.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Coding, Content, Parts, Prepared};

use super::plain::{Loaded, Plain};

/// The files beside one, by [`Coding`].
pub(super) type Beside = [Option<Loaded>; Coding::ALL.len()];

/// What is put after a name for each coding.
const fn ending(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
        Coding::Gzip => ".gz",
    }
}

/// The files beside the one at `url` that hold its codings.
pub(super) fn find<S: std::hash::BuildHasher>(
    url: &str,
    plain: &Plain,
    all: &HashMap<String, Loaded, S>,
) -> Beside {
    if plain.prepared().is_none() {
        return Beside::default();
    }
    let mut name = String::with_capacity(url.len() + 4);
    Coding::ALL.map(|coding| {
        name.clear();
        name.push_str(url);
        name.push_str(ending(coding));
        all.get(&name)
            .filter(|beside| is_coding_of(&beside.plain, plain))
            .cloned()
    })
}

fn is_coding_of(beside: &Plain, plain: &Plain) -> bool {
    beside.prepared().is_some()
        && beside.stamp.modified >= plain.stamp.modified
        && (1..plain.stamp.size).contains(&beside.stamp.size)
}

/// The representation of `plain` with the codings beside it; none if there are none. Its entity tag tells every state
/// of all these files from every other.
pub(super) fn prepare(plain: &Plain, beside: &Beside) -> Option<Arc<Prepared>> {
    let own = plain.prepared()?;
    let mut tag = Vec::from(own.etag());
    let mut codings = Vec::new();
    for (coding, beside) in Coding::ALL.into_iter().zip(beside) {
        if let Some(beside) = beside.as_ref().and_then(|beside| beside.plain.prepared()) {
            tag.extend_from_slice(ending(coding).as_bytes());
            tag.extend_from_slice(beside.etag().as_bytes());
            codings.push((coding, beside.body().clone()));
        }
    }
    if codings.is_empty() {
        return None;
    }
    let parts = Parts {
        status: 200,
        media_type: &plain.media.content_type,
        fields: &[("Cache-Control", plain.media.cache_control)],
        body: Bytes::from(tag),
        last_modified: Some(plain.stamp.modified_time()),
        compressible: plain.is_copy() && plain.media.compressible,
    };
    let identity = own.body().clone();
    Some(Arc::new(Prepared::with_content(
        &parts,
        Content { identity, codings },
    )))
}
