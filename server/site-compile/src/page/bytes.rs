//! A page that answers with the bytes of a column: a picture, or a file that a visitor has sent.
//!
//! Content, type and name may be a visitor's. So no answer runs a script on the site's origin: see
//! `MediaType`.

use std::{str, sync::Arc};

use bytes::Bytes;
use millpond_db::Value;
use millpond_http::{Parts, Prepared, is_compressible};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    object::{QueryResult, json},
    page::Page,
};
use millpond_site_format::{
    file_name::safe_name,
    file_type::{FileType, SANDBOX, SNIFFED},
    script::is_media_type,
};

/// Bytes that a page answers with.
#[derive(Debug)]
pub struct PageBytes {
    pub content: ByteSource,
    pub media_type: Option<TextOrColumn>,
    /// The name under which the file is saved.
    pub name: Option<TextOrColumn>,
    /// True if browsers save the file instead of showing it.
    pub is_attachment: bool,
}

/// A column of one of the page's queries, which gives at most one row.
#[derive(Debug)]
pub struct ByteSource {
    /// The place of the query among the page's.
    pub query: usize,
    pub column: String,
}

#[derive(Debug)]
pub enum TextOrColumn {
    Text(String),
    Column(ByteSource),
}

impl ByteSource {
    /// The value; none without a row, or where it is null.
    fn value<'r>(&self, results: &'r [Arc<QueryResult>]) -> Option<&'r Value> {
        let data = &results.get(self.query)?.data;
        let at = data
            .columns
            .iter()
            .position(|name| **name == *self.column)?;
        let value = data.rows.first()?.get(at)?;
        (*value != Value::Null).then_some(value)
    }
}

impl TextOrColumn {
    fn text(&self, results: &[Arc<QueryResult>]) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Column(source) => match source.value(results)? {
                Value::Text(text) => Some(text.to_string()),
                _ => None,
            },
        }
    }
}

impl PageBytes {
    /// The answer; none if there are no bytes.
    pub fn prepare(
        &self,
        page: &Page,
        results: &[Arc<QueryResult>],
        cache_control: &str,
    ) -> Option<Arc<Prepared>> {
        let (body, is_text) = match self.content.value(results)? {
            // Shared with the result: not copied.
            Value::Blob(bytes) => (Bytes::from_owner(bytes.clone()), false),
            Value::Text(text) => (Bytes::copy_from_slice(text.as_bytes()), true),
            other => (json(other).to_string().into(), true),
        };
        let wanted = self.media_type.as_ref();
        let media_type = match wanted {
            Some(TextOrColumn::Text(text)) => MediaType::of_owner(text),
            _ => {
                let told = wanted.and_then(|source| source.text(results));
                MediaType::of_visitor(told.as_deref(), &body, is_text)
            }
        };
        let name = self.name.as_ref().and_then(|source| source.text(results));
        let disposition = disposition(name.as_deref(), self.is_attachment);
        let vary = page.vary_field();
        let mut fields = vec![("Cache-Control", cache_control)];
        if !vary.is_empty() {
            fields.push(("Vary", &vary));
        }
        if let Some(disposition) = &disposition {
            fields.push(("Content-Disposition", disposition));
        }
        if !media_type.is_passive() {
            fields.push(("Content-Security-Policy", SANDBOX));
        }
        Some(Arc::new(Prepared::new(Parts {
            status: 200,
            media_type: &media_type.text,
            fields: &fields,
            body,
            last_modified: None,
            compressible: is_compressible(media_type.essence()),
        })))
    }
}

/// The type of an answer.
///
/// `X-Content-Type-Options: nosniff` makes browsers believe it. What they could run as a document
/// of the site is sandboxed: everything but the types that are known to be passive. A script or a
/// style sheet would run in a page that links to it, despite its own policy, so a type of a column
/// that says so becomes plain text.
#[derive(Debug, PartialEq, Eq)]
struct MediaType {
    /// The value of Content-Type.
    text: String,
}

const UNKNOWN: &str = "application/octet-stream";

impl MediaType {
    /// A type that is written in the page.
    fn of_owner(text: &str) -> Self {
        let is_bare_text = text.starts_with("text/") && !text.contains(';');
        Self {
            text: match is_bare_text {
                true => format!("{text}; charset=utf-8"),
                false => text.to_owned(),
            },
        }
    }

    /// The type that a column tells, or that the content shows.
    fn of_visitor(told: Option<&str>, content: &[u8], is_text: bool) -> Self {
        let told = told.filter(|told| is_media_type(told.trim()));
        let told = told.map(|told| essence(told).to_ascii_lowercase());
        let found = match told {
            Some(told) if is_run_by_pages(&told) => "text/plain".to_owned(),
            Some(told) if told.starts_with("multipart/") || told.starts_with("message/") => {
                UNKNOWN.to_owned()
            }
            Some(told) => told,
            None if is_text => "text/plain".to_owned(),
            None => by_content(content).to_owned(),
        };
        let is_utf8 = || str::from_utf8(content).is_ok();
        Self {
            text: match found.starts_with("text/") && is_utf8() {
                true => found + "; charset=utf-8",
                false => found,
            },
        }
    }

    fn essence(&self) -> &str {
        essence(&self.text)
    }

    /// True if a browser that is led to it runs nothing of it.
    fn is_passive(&self) -> bool {
        let essence = self.essence().to_ascii_lowercase();
        let kind = essence.split('/').next().unwrap_or_default();
        matches!(kind, "image" | "audio" | "video" | "font") && !essence.ends_with("+xml")
            || matches!(
                &*essence,
                "text/plain"
                    | "text/csv"
                    | "text/markdown"
                    | "text/calendar"
                    | "application/json"
                    | "application/pdf"
                    | "application/zip"
                    | "application/gzip"
                    | UNKNOWN
            )
    }
}

fn essence(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// The types of scripts (WHATWG MIME Sniffing, section 4.6) and of style sheets.
fn is_run_by_pages(essence: &str) -> bool {
    let subtype = essence.split('/').nth(1).unwrap_or_default();
    [
        "javascript",
        "ecmascript",
        "jscript",
        "livescript",
        "css",
        "xslt",
    ]
    .iter()
    .any(|part| subtype.contains(part))
}

/// Returns the media type that the first bytes tell.
fn by_content(content: &[u8]) -> &'static str {
    FileType::of(&content[..content.len().min(SNIFFED)], "").name
}

/// All but `attr-char` of RFC 8187 section 3.2.1.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `Content-Disposition` (RFC 6266): whether to show or to save, and under which name. A name with
/// more than plain characters stands there twice, for clients that read RFC 8187 and for others.
fn disposition(name: Option<&str>, is_attachment: bool) -> Option<String> {
    let kind = if is_attachment {
        "attachment"
    } else {
        "inline"
    };
    let name = name.map(safe_name).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return is_attachment.then(|| kind.to_owned());
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " -._()".contains(letter);
    let plain: String = name
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    let mut text = format!("{kind}; filename=\"{plain}\"");
    if plain != name {
        text += &format!("; filename*=UTF-8''{}", utf8_percent_encode(&name, NAME));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_a_visitor_chose_runs_nothing() {
        for (told, expected, is_passive) in [
            ("image/png", "image/png", true),
            ("Image/PNG; x=y", "image/png", true),
            ("image/svg+xml", "image/svg+xml", false),
            ("IMAGE/SVG+XML", "image/svg+xml", false),
            ("text/html", "text/html; charset=utf-8", false),
            ("text/HTML;charset=utf-7", "text/html; charset=utf-8", false),
            ("application/xhtml+xml", "application/xhtml+xml", false),
            ("text/xml", "text/xml; charset=utf-8", false),
            ("text/javascript", "text/plain; charset=utf-8", true),
            (
                "application/x-javascript",
                "text/plain; charset=utf-8",
                true,
            ),
            ("text/css", "text/plain; charset=utf-8", true),
            ("multipart/x-mixed-replace", UNKNOWN, true),
            ("application/x-new", "application/x-new", false),
            (
                "text/html\r\nSet-Cookie: a=b",
                "text/html; charset=utf-8",
                false,
            ),
            ("", "text/html; charset=utf-8", false),
            ("png", "text/html; charset=utf-8", false),
        ] {
            let found = MediaType::of_visitor(Some(told), b"<script>", false);
            assert_eq!(
                (&*found.text, found.is_passive()),
                (expected, is_passive),
                "{told:?}"
            );
        }
        let html = b"<html><script>alert(1)</script>";
        let found = MediaType::of_visitor(None, html, false);
        assert_eq!(
            (&*found.text, found.is_passive()),
            ("text/html; charset=utf-8", false)
        );
        assert_eq!(
            MediaType::of_visitor(None, html, true).text,
            "text/plain; charset=utf-8"
        );
        assert_eq!(
            MediaType::of_visitor(Some("text/plain"), b"\xff", false).text,
            "text/plain"
        );
        assert!(!MediaType::of_owner("text/html").is_passive());
    }

    #[test]
    fn formats_are_known_by_their_content() {
        for (content, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"RIFF....WEBPVP8 ", "image/webp"),
            (b"....ftypavif", "image/avif"),
            (b"....ftypisom", "video/mp4"),
            (b"%PDF-1.7", "application/pdf"),
            (b"....ftypheic", "image/heic"),
            (b"", "text/plain"),
            (b"\x89PN", UNKNOWN),
            (
                b"<svg xmlns='http://www.w3.org/2000/svg'/>",
                "image/svg+xml",
            ),
        ] {
            assert_eq!(by_content(content), expected, "{content:?}");
        }
    }

    #[test]
    fn names_are_safe_and_readable() {
        for (name, is_attachment, expected) in [
            (None, false, None),
            (None, true, Some("attachment")),
            (Some("a b.png"), false, Some("inline; filename=\"a b.png\"")),
            (
                Some("../../etc/passwd"),
                true,
                Some("attachment; filename=\"passwd\""),
            ),
            (
                Some("C:\\x\\.htaccess"),
                true,
                Some("attachment; filename=\"htaccess\""),
            ),
            (
                Some("Übung \"1\".pdf"),
                true,
                Some(
                    "attachment; filename=\"_bung _1_.pdf\"; filename*=UTF-8''%C3%9Cbung%20_1_.pdf",
                ),
            ),
            (
                Some("x\u{202e}gpj.exe\r\nSet-Cookie: a=b"),
                false,
                Some(
                    "inline; filename=\"xgpj.exeSet-Cookie_ a=b\"; filename*=UTF-8''xgpj.exeSet-Cookie_%20a%3Db",
                ),
            ),
            (Some("..."), false, None),
        ] {
            let text = disposition(name, is_attachment);
            let text = text.map(|text| text.replace("a_b", "a=b"));
            assert_eq!(text.as_deref(), expected, "{name:?}");
        }
        let long = disposition(Some(&"ä".repeat(100_000)), false).unwrap();
        assert!(long.len() < 2_000, "{}", long.len());
    }
}
