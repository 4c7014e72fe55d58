//! Uploaded files as responses.
//!
//! A name never means another content, so a response may be kept for ever. What a browser could run
//! is sent as an attachment, in a sandbox without an origin.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Body, Content, Parts, Prepared, Request, Response};

use super::methods::{not_allowed, options};
use crate::{
    core::Generation,
    labels::AnswerKind,
    statics::{open, refused},
    uploads::{Uploads, stored},
};
use millpond_site_format::{
    config::KEEP,
    file_type::{FileType, SANDBOX},
    write_method::FILE_METHODS,
};

/// The response to a request for an uploaded file; none if there is no such file.
pub(super) fn respond(
    uploads: &Uploads,
    generation: &Generation,
    request: &Request<'_>,
    address: &str,
) -> Option<Response> {
    let (path, kind) = stored(address)?;
    let file = match open(&uploads.root()?.join(path)) {
        Ok(Some((file, stamp))) => (Arc::new(file), stamp),
        Ok(None) => return None,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return None;
        }
        Err(error) => return Some(refused(&error)),
    };
    match request.method {
        "GET" | "HEAD" => {}
        "OPTIONS" => return Some(options(FILE_METHODS)),
        _ => return Some(not_allowed(generation, request, false, FILE_METHODS)),
    }
    let (file, stamp) = file;
    let body = match stamp.size {
        0 => Body::Empty,
        len => Body::File {
            file,
            offset: 0,
            len,
        },
    };
    // The size differs where a file is not the one that was stored.
    let tag = format!("{path} {}", stamp.size);
    let parts = Parts {
        status: 200,
        media_type: &media_type(kind),
        fields: fields(kind),
        body: Bytes::from(tag),
        last_modified: Some(stamp.modified_time()),
        compressible: false,
    };
    let content = Content {
        identity: body,
        codings: Vec::new(),
    };
    let prepared = Prepared::with_content(&parts, content);
    Some(AnswerKind::Static.of(prepared.respond(request, Bytes::new())))
}

fn media_type(kind: &FileType) -> String {
    match kind.name.starts_with("text/") {
        true => format!("{}; charset=utf-8", kind.name),
        false => kind.name.to_owned(),
    }
}

fn fields(kind: &FileType) -> &'static [(&'static str, &'static str)] {
    const CACHE: (&str, &str) = ("Cache-Control", KEEP);
    const ATTACHMENT: (&str, &str) = ("Content-Disposition", "attachment");
    const POLICY: (&str, &str) = ("Content-Security-Policy", SANDBOX);
    match kind {
        kind if kind.is_active => &[CACHE, ATTACHMENT, POLICY],
        kind if kind.is_shown => &[CACHE],
        _ => &[CACHE, ATTACHMENT],
    }
}
