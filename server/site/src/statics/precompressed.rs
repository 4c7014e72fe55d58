//! Codings that the owner made beforehand: `app.js.br`, `app.js.zst` and `app.js.gz` beside
//! `app.js`.
//!
//! A coding is used if it is not older than the file (an equal time will do, as copying and
//! unpacking leave it), has content, and is shorter than the file. An older coding belongs to
//! another version of the file, and would be served for ever.
//!
//! Times are not enough: a tool that is still writing has made the coding newer than the file, and
//! a file that was put back to an older version is older than a coding of the newer version. If
//! both are copies in memory, the coding is therefore decoded once and compared with the file. Of
//! files that stay open nothing is read, so only the times count; but a coding that was written
//! within the last two seconds is not sent (see [`Loaded::has_changed`]).

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Coding, Content, Parts, Prepared};

use super::StaticFile;
use super::copy;
use super::plain::{Loaded, Plain};
use millpond_site_format::problem::Problem;

/// The codings of one file, by [`Coding`].
pub(super) type Precompressed = [Option<Loaded>; Coding::ALL.len()];

/// Returns the ending of a name for each coding.
const fn ending(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
        Coding::Gzip => ".gz",
    }
}

/// The codings of the file at `url`. A coding that was verified for `before` is not decoded again.
/// The addresses of files that only look like a coding are added to `wrong`.
pub(super) fn find<S: std::hash::BuildHasher>(
    url: &str,
    loaded: &Loaded,
    all: &HashMap<String, Loaded, S>,
    before: Option<&StaticFile>,
    wrong: &mut Vec<String>,
) -> Precompressed {
    let plain = &*loaded.plain;
    if plain.prepared().is_none() {
        return Precompressed::default();
    }
    let mut name = String::with_capacity(url.len() + 4);
    Coding::ALL.map(|coding| {
        name.clear();
        name.push_str(url);
        name.push_str(ending(coding));
        let coding_file = all
            .get(&name)
            .filter(|coding_file| may_be_coding_of(&coding_file.plain, plain))?;
        let is_known = before.is_some_and(|before| before.has(loaded, coding, coding_file));
        if is_known || is_coding_of(coding, &coding_file.plain, plain) {
            return Some(coding_file.clone());
        }
        wrong.push(name.clone());
        None
    })
}

/// Makes the remarks about those in the folder `dir` that are `wrong`.
pub(super) fn notes(dir: &Path, mut wrong: Vec<String>) -> impl Iterator<Item = Problem> {
    wrong.sort_unstable();
    let folder = dir.file_name().map(Path::new).unwrap_or(dir).to_owned();
    wrong.into_iter().map(move |url| {
        let shown = folder.join(url.trim_start_matches('/'));
        let file = shown.file_stem().unwrap_or_default().display();
        let message =
            format!("does not decode to `{file}` beside it, and is not sent in its place");
        Problem::new(&shown, message).hint("make it again from that file, or take it away")
    })
}

fn may_be_coding_of(coding_file: &Plain, plain: &Plain) -> bool {
    coding_file.prepared().is_some()
        && coding_file.stamp.modified >= plain.stamp.modified
        && (1..plain.stamp.size).contains(&coding_file.stamp.size)
}

/// True if `coding_file` decodes to `plain`, as far as copies show it.
fn is_coding_of(coding: Coding, coding_file: &Plain, plain: &Plain) -> bool {
    if !(coding_file.is_copy() && plain.is_copy()) {
        return true;
    }
    let content = |plain: &Plain| copy::content(plain.prepared()?.body(), plain.stamp.size);
    match (content(coding_file), content(plain)) {
        (Some(coded), Some(content)) => coding.yields(&coded, &content),
        _ => false,
    }
}

/// The representation of `plain` with its codings; none if there are none. Its entity tag
/// distinguishes every state of all these files from every other.
pub(super) fn prepare(plain: &Plain, coding_files: &Precompressed) -> Option<Arc<Prepared>> {
    let own = plain.prepared()?;
    let mut tag = Vec::from(own.etag());
    let mut codings = Vec::new();
    for (coding, coding_file) in Coding::ALL.into_iter().zip(coding_files) {
        if let Some(coding_file) = coding_file
            .as_ref()
            .and_then(|coding_file| coding_file.plain.prepared())
        {
            tag.extend_from_slice(ending(coding).as_bytes());
            tag.extend_from_slice(coding_file.etag().as_bytes());
            codings.push((coding, coding_file.body().clone()));
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
