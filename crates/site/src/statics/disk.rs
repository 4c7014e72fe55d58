//! A file that is sent from disk.

use std::fs::File;
use std::sync::Arc;
use std::time::SystemTime;

use millpond_http::{Request, Response};

use super::conditions::{Outcome, evaluate};
use super::stamp::Stamp;

/// An open file. Each response describes the file as it is at that moment, so one that is written in place (a growing
/// download, say) is not sent with the length of yesterday.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: Arc<File>,
    content_type: String,
    cache_control: &'static str,
}

impl DiskFile {
    pub(super) fn new(file: File, content_type: String, cache_control: &'static str) -> Self {
        Self {
            file: Arc::new(file),
            content_type,
            cache_control,
        }
    }

    /// Costs an `fstat` and the head's allocation; the content is sent by the kernel.
    pub(super) fn respond(&self, request: &Request<'_>) -> Response {
        // `fstat` of an open file fails only when its file system does, over a network.
        let Ok(metadata) = self.file.metadata() else {
            return Response::text(500, "the file cannot be read\n");
        };
        let stamp = Stamp::of(&metadata);
        // A modification in the future is one of now (RFC 9110 section 8.8.2.1).
        let modified = stamp.modified_time().min(SystemTime::now());
        let etag = etag(&stamp);
        let outcome = evaluate(request, &etag, modified, stamp.size);
        let (status, range) = match outcome {
            Outcome::Failed => return Response::text(412, "precondition failed\n"),
            Outcome::Unsatisfiable => {
                return Response::builder(416)
                    .field("Content-Range", &format!("bytes */{}", stamp.size))
                    .field("X-Content-Type-Options", "nosniff")
                    .empty();
            }
            Outcome::NotModified => (304, None),
            Outcome::Full => (200, None),
            Outcome::Part { first, last } => (206, Some((first, last))),
        };
        let mut head = Response::builder(status);
        if status != 304 {
            head = head
                .field("Content-Type", &self.content_type)
                .field("Accept-Ranges", "bytes");
        }
        head = head
            .field("Cache-Control", self.cache_control)
            .field("X-Content-Type-Options", "nosniff")
            .field("Last-Modified", &httpdate::fmt_http_date(modified))
            .field("ETag", &etag);
        match range {
            Some((first, last)) => head
                .field(
                    "Content-Range",
                    &format!("bytes {first}-{last}/{}", stamp.size),
                )
                .file(Arc::clone(&self.file), first, last - first + 1),
            None if status == 304 || stamp.size == 0 => head.empty(),
            None => head.file(Arc::clone(&self.file), 0, stamp.size),
        }
    }
}

/// From inode, size and time: hashing gigabytes at each start would tell no more in practice.
fn etag(stamp: &Stamp) -> String {
    let (seconds, nanos) = stamp.modified;
    let modified = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    format!("\"{:x}-{:x}-{modified:x}\"", stamp.inode, stamp.size)
}
