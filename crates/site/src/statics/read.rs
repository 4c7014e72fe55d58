//! Reading one file into memory, or opening it to be sent from disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use millpond_http::{Parts, Prepared};
use rustix::fs::OFlags;

use super::disk::DiskFile;
use super::media::{Media, media_of};
use super::scan::{Found, has_gone, unreadable};
use super::stamp::Stamp;
use super::{Content, MAX_IN_MEMORY, StaticFile};
use crate::problem::Problem;

/// How often a file that changes while it is read is read again. One that goes on changing is sent from disk, where
/// each response looks at it anew.
const ATTEMPTS: usize = 4;

/// Loads a file, or takes it from `before`. None if it has gone since it was found.
pub(super) fn load(
    found: &Found,
    cache_control: &'static str,
    in_memory: bool,
    before: Option<&StaticFile>,
) -> Result<Option<StaticFile>, Problem> {
    let before = before
        .filter(|before| before.stamp == found.stamp && before.prepared().is_some() == in_memory)
        .filter(|before| before.cache_control == cache_control);
    if let Some(before) = before
        && (before.settled || !in_memory)
    {
        return Ok(Some(before.clone()));
    }
    match open_and_read(found, cache_control, in_memory, before) {
        Ok(file) => Ok(file),
        Err(error) if has_gone(&error) => Ok(None),
        Err(error) => Err(unreadable(&found.shown, &error)),
    }
}

fn open_and_read(
    found: &Found,
    cache_control: &'static str,
    in_memory: bool,
    before: Option<&StaticFile>,
) -> io::Result<Option<StaticFile>> {
    let media = media_of(&found.shown);
    let attempts = if in_memory { ATTEMPTS } else { 0 };
    for _ in 0..attempts {
        let Some((file, stamp)) = open(&found.real)? else {
            return Ok(None);
        };
        if stamp.size > MAX_IN_MEMORY {
            break;
        }
        let now = SystemTime::now();
        if let Some(body) = read_unchanged(&file, &stamp)? {
            return Ok(Some(StaticFile {
                stamp,
                settled: stamp.settled(now),
                cache_control,
                content: Content::Memory(prepare(body, &stamp, &media, cache_control, before)),
            }));
        }
    }
    Ok(open(&found.real)?.map(|(file, stamp)| StaticFile {
        stamp,
        settled: true,
        cache_control,
        content: Content::Disk(Arc::new(DiskFile::new(
            file,
            media.content_type,
            cache_control,
        ))),
    }))
}

/// None if it is not a file (any more). `NOFOLLOW`: the path was resolved when it was found to be inside the folder;
/// a link in its place is a change. `NONBLOCK`: a pipe in its place must not hold up the thread.
fn open(real: &Path) -> io::Result<Option<(File, Stamp)>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(real)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| (file, Stamp::of(&metadata))))
}

/// The content, if it was that of `stamp` from the first byte to the last.
fn read_unchanged(file: &File, stamp: &Stamp) -> io::Result<Option<Vec<u8>>> {
    // One byte more than expected, so that a file that has grown is noticed and the buffer need not grow.
    let expected = usize::try_from(stamp.size).unwrap_or(usize::MAX);
    let mut body = Vec::with_capacity(expected.saturating_add(1));
    file.take(stamp.size + 1).read_to_end(&mut body)?;
    let after = Stamp::of(&file.metadata()?);
    Ok((after == *stamp && body.len() == expected).then_some(body))
}

/// `before` has the same stamp, but was read so soon after it was written that this did not prove the same content.
fn prepare(
    body: Vec<u8>,
    stamp: &Stamp,
    media: &Media,
    cache_control: &str,
    before: Option<&StaticFile>,
) -> Arc<Prepared> {
    let before = before.filter(|before| before.stamp == *stamp);
    if let Some(before) = before.and_then(StaticFile::prepared)
        && before.body()[..] == body[..]
    {
        return Arc::clone(before);
    }
    Arc::new(Prepared::new(Parts {
        status: 200,
        media_type: &media.content_type,
        fields: &[("Cache-Control", cache_control)],
        body: Bytes::from(body.into_boxed_slice()),
        last_modified: Some(stamp.modified_time()),
        compressible: media.compressible,
    }))
}
