//! Files that are sent from disk, while other programs may write them.
//!
//! What is prepared of an open file is right as long as the file stays in the state in which it was
//! examined. The event of a change takes a moment, and some writes make no event (through a memory
//! map, or on another machine of a network file system). So each response with content from the
//! file begins with one `fstat`: a few tenths of a microsecond, little compared with sending
//! megabytes. 304 and HEAD need none.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use millpond_http::{Body, Content, Parts, Prepared, Request, Response};

use super::media::Media;
use super::open::open;
use super::scan::{ScannedFile, has_gone, is_descriptor_limit};
use super::stamp::Stamp;

/// Tells one description of a file that is being written from the next.
static DESCRIPTIONS: AtomicU64 = AtomicU64::new(0);

/// The representation of an open file in the state of `stamp`. Hashing gigabytes would take too
/// long, so the entity tag is a hash of the stamp. A stamp that is not `settled` may outlive a
/// write, so its tag differs from every other.
pub(super) fn describe(file: &Arc<File>, stamp: &Stamp, media: &Media, settled: bool) -> Prepared {
    let mut tag = stamp.bytes();
    if !settled {
        let now = base_clock::wall()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        tag.extend(now.as_nanos().to_be_bytes());
        tag.extend(DESCRIPTIONS.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    }
    let parts = Parts {
        status: 200,
        media_type: &media.content_type,
        fields: &[("Cache-Control", media.cache_control)],
        body: Bytes::from(tag),
        last_modified: Some(stamp.modified_time()),
        // The background would read it while it changes.
        compressible: false,
    };
    let identity = if stamp.size == 0 {
        Body::Empty
    } else {
        Body::File {
            file: Arc::clone(file),
            offset: 0,
            len: stamp.size,
        }
    };
    let codings = Vec::new();
    Prepared::with_content(&parts, Content { identity, codings })
}

/// The state of an open file; none if its file system does not say, which only those over a network
/// do.
pub(super) fn state(file: &File) -> Option<Stamp> {
    file.metadata().ok().map(|metadata| Stamp::of(&metadata))
}

/// The response of an open file in its present state.
pub(super) fn respond(file: &Arc<File>, media: &Media, request: &Request<'_>) -> Response {
    let Some(stamp) = state(file) else {
        return Response::text(500, "the file cannot be read\n");
    };
    let settled = stamp.settled(base_clock::wall());
    describe(file, &stamp, media, settled).respond(request, Bytes::new())
}

/// The response of a file that is opened for it.
pub(super) fn open_and_respond(
    found: &ScannedFile,
    media: &Media,
    request: &Request<'_>,
) -> Response {
    match open(&found.real) {
        Ok(Some((file, _))) => respond(&Arc::new(file), media, request),
        Ok(None) => refused(404),
        Err(error) => refused_for(&error),
    }
}

/// The answer for a file that cannot be opened.
pub(crate) fn refused_for(error: &io::Error) -> Response {
    refused(status_of(error))
}

fn status_of(error: &io::Error) -> u16 {
    match error.kind() {
        _ if has_gone(error) => 404,
        _ if is_descriptor_limit(error) => 503,
        io::ErrorKind::PermissionDenied => 403,
        _ => 500,
    }
}

/// The answer for a file that cannot be read.
pub(super) fn refused(status: u16) -> Response {
    let text = match status {
        403 => "The server may not read this file.\n",
        404 => "This file has just gone.\n",
        503 => "The server has too many open files just now.\n",
        _ => "The file cannot be read.\n",
    };
    let head = Response::builder(status)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff");
    let head = if status == 503 {
        head.field("Retry-After", "1")
    } else {
        head
    };
    head.body(Bytes::from_static(text.as_bytes()))
}
