//! One file of the folder: copied, kept open, or neither.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Body, Content, Parts, Prepared};

use super::copy;
use super::disk::{describe, state};
use super::media::{Media, media_of};
use super::open::open;
use super::scan::{ScannedFile, has_gone, is_descriptor_limit, unreadable};
use super::stamp::Stamp;
use millpond_site_format::problem::Problem;

/// How often a file that changes while it is read is read again. One that goes on changing is sent
/// from disk, where each response looks at it anew.
const ATTEMPTS: usize = 4;

/// How a file is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// As a copy, which the kernel has (and sends) if so asked.
    Copy { in_kernel: bool },
    /// Open.
    Open,
    /// Not at all: it is opened for each request.
    Closed,
}

/// Options for serving a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServingOptions {
    pub(super) keep: Keep,
    /// The value of Cache-Control.
    pub(super) cache_control: &'static str,
}

/// A file without its codings.
#[derive(Debug)]
pub(super) struct Plain {
    /// The state of the file in which it was looked at.
    pub(super) stamp: Stamp,
    pub(super) media: Media,
    pub(super) source: ContentSource,
}

#[derive(Debug)]
pub(super) enum ContentSource {
    /// From a copy, which does not change.
    Copy(Arc<Prepared>),
    /// From the open file, which other processes may write while it is sent.
    Open(Arc<File>, Arc<Prepared>),
    /// Opened at each request.
    Closed(Box<ScannedFile>),
    /// It cannot be read; the status that says so.
    Refused(u16),
}

impl Plain {
    /// The representation that was prepared of it, if one was.
    pub(super) fn prepared(&self) -> Option<&Arc<Prepared>> {
        match &self.source {
            ContentSource::Copy(prepared) | ContentSource::Open(_, prepared) => Some(prepared),
            ContentSource::Closed(_) | ContentSource::Refused(_) => None,
        }
    }

    /// True if its content is a copy.
    pub(super) fn is_copy(&self) -> bool {
        matches!(self.source, ContentSource::Copy(_))
    }

    /// Bytes of content in memory.
    pub(super) fn memory(&self) -> u64 {
        if self.is_copy() { self.stamp.size } else { 0 }
    }

    /// Descriptors that it holds.
    pub(super) fn descriptors(&self) -> usize {
        let held = |body: &Body| usize::from(matches!(body, Body::File { .. }));
        self.prepared().map_or(0, |prepared| held(prepared.body()))
    }

    /// True if it is kept as `wanted`; how the kernel sends a copy does not change the response.
    fn is_as(&self, wanted: ServingOptions) -> bool {
        let is_kept = matches!(
            (&self.source, wanted.keep),
            (ContentSource::Copy(_), Keep::Copy { .. })
                | (ContentSource::Open(..), Keep::Open)
                | (ContentSource::Closed(_), Keep::Closed)
        );
        is_kept && self.media.cache_control == wanted.cache_control
    }
}

/// A [`Plain`], and whether any later write is sure to give another stamp.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) plain: Arc<Plain>,
    pub(super) settled: bool,
}

impl Loaded {
    /// True if both are one and the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plain, &other.plain)
    }

    /// True if `file` is this one, open, and no longer in the state in which it was looked at.
    /// Costs an `fstat`.
    pub(super) fn has_changed(&self, file: &Arc<File>) -> bool {
        matches!(&self.plain.source, ContentSource::Open(open, _) if Arc::ptr_eq(open, file))
            && self.is_another()
    }

    /// True if it is open, and no longer in the state in which it was looked at. Costs an `fstat`.
    pub(super) fn is_another(&self) -> bool {
        let ContentSource::Open(file, _) = &self.plain.source else {
            return false;
        };
        let stamp = &self.plain.stamp;
        let settled = self.settled || stamp.settled(base_clock::wall());
        !settled || state(file).as_ref() != Some(stamp)
    }
}

/// Loads a file, or takes it from `before`. None if it has gone since it was found. What keeps it
/// from being read is put into `notes`.
pub(super) fn load(
    found: &ScannedFile,
    wanted: ServingOptions,
    before: Option<&Loaded>,
    notes: &mut Vec<Problem>,
) -> Option<Loaded> {
    let before = before.filter(|before| before.plain.stamp == found.stamp);
    if let Some(before) = before.filter(|before| before.plain.is_as(wanted))
        && (before.settled || !matches!(wanted.keep, Keep::Copy { .. }))
    {
        return Some(before.clone());
    }
    let media = media_of(&found.shown, wanted.cache_control);
    match read(found, &media, wanted.keep, before) {
        Ok(loaded) => loaded,
        Err(error) if has_gone(&error) => None,
        Err(error) if is_descriptor_limit(&error) => Some(closed(found, media)),
        Err(error) => {
            notes.push(unreadable(&found.shown, &error));
            let status = match error.kind() {
                io::ErrorKind::PermissionDenied => 403,
                _ => 500,
            };
            Some(unread(found, media, ContentSource::Refused(status)))
        }
    }
}

/// A file of the program itself.
pub(super) fn embedded(path: &Path, text: &'static str, cache_control: &'static str) -> Loaded {
    let media = media_of(path, cache_control);
    let prepared = Prepared::new(Parts {
        status: 200,
        media_type: &media.content_type,
        fields: &[("Cache-Control", cache_control)],
        body: text.into(),
        last_modified: None,
        compressible: media.compressible,
    });
    let plain = Plain {
        stamp: Stamp::embedded(text.len()),
        media,
        source: ContentSource::Copy(Arc::new(prepared)),
    };
    Loaded {
        plain: Arc::new(plain),
        settled: true,
    }
}

fn read(
    found: &ScannedFile,
    media: &Media,
    keep: Keep,
    before: Option<&Loaded>,
) -> io::Result<Option<Loaded>> {
    if let Keep::Copy { in_kernel } = keep {
        for _ in 0..ATTEMPTS {
            let Some((file, stamp)) = open(&found.real)? else {
                return Ok(None);
            };
            // It has grown since it was found to be of a size for copies.
            if stamp.size > found.stamp.size {
                break;
            }
            let now = base_clock::wall();
            if let Some(content) = read_unchanged(&file, &stamp)? {
                let settled = stamp.settled(now);
                let plain = copied(media, stamp, content, in_kernel, before);
                return Ok(Some(Loaded { plain, settled }));
            }
        }
    }
    if keep == Keep::Closed {
        return Ok(Some(closed(found, media.clone())));
    }
    Ok(open(&found.real)?.map(|(file, stamp)| {
        let file = Arc::new(file);
        let prepared = describe(&file, &stamp, media, true);
        let settled = stamp.settled(base_clock::wall());
        let plain = Plain {
            stamp,
            media: media.clone(),
            source: ContentSource::Open(file, Arc::new(prepared)),
        };
        Loaded {
            plain: Arc::new(plain),
            settled,
        }
    }))
}

fn closed(found: &ScannedFile, media: Media) -> Loaded {
    unread(found, media, ContentSource::Closed(Box::new(found.clone())))
}

fn unread(found: &ScannedFile, media: Media, source: ContentSource) -> Loaded {
    let plain = Plain {
        stamp: found.stamp,
        media,
        source,
    };
    Loaded {
        plain: Arc::new(plain),
        settled: false,
    }
}

/// The content, if it was that of `stamp` from the first byte to the last.
fn read_unchanged(file: &File, stamp: &Stamp) -> io::Result<Option<Vec<u8>>> {
    // One byte more than expected, so that a file that has grown is noticed and the buffer need not
    // grow.
    let expected = usize::try_from(stamp.size).unwrap_or(usize::MAX);
    let mut body = Vec::with_capacity(expected.saturating_add(1));
    file.take(stamp.size + 1).read_to_end(&mut body)?;
    let after = Stamp::of(&file.metadata()?);
    Ok((after == *stamp && body.len() == expected).then_some(body))
}

/// `before` has the same stamp, but was read so soon after it was written that this did not prove
/// the same content: the entity tags do, being hashes of it.
fn copied(
    media: &Media,
    stamp: Stamp,
    content: Vec<u8>,
    in_kernel: bool,
    before: Option<&Loaded>,
) -> Arc<Plain> {
    let tag = Bytes::from(content.into_boxed_slice());
    let parts = Parts {
        status: 200,
        media_type: &media.content_type,
        fields: &[("Cache-Control", media.cache_control)],
        body: tag.clone(),
        last_modified: Some(stamp.modified_time()),
        compressible: media.compressible,
    };
    // Where the kernel makes no file in memory (for want of descriptors, say), memory serves as
    // well.
    let identity = in_kernel
        .then(|| copy::in_kernel(&tag).ok())
        .flatten()
        .unwrap_or(Body::Bytes(tag));
    let codings = Vec::new();
    let prepared = Prepared::with_content(&parts, Content { identity, codings });
    if let Some(before) = before.filter(|before| before.plain.stamp == stamp)
        && before.plain.media == *media
        && let ContentSource::Copy(same) = &before.plain.source
        && same.etag() == prepared.etag()
    {
        return Arc::clone(&before.plain);
    }
    Arc::new(Plain {
        stamp,
        media: media.clone(),
        source: ContentSource::Copy(Arc::new(prepared)),
    })
}
