//! A page that leads elsewhere: `-- redirect: 301 /plays/:id`.
//!
//! It is decided once the queries have run. The redirect is answered if each of its values is
//! there: the parameters, and the columns of rows. Otherwise the page is shown. So the answer
//! follows from the key and the results, as the text of a page does, and is kept in its place: it
//! ends with the rows that were read.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use millpond_db::Value;
use millpond_http::{Body, Content, Parts, Prepared};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::redirect_target::{ArgumentSource, RedirectPiece, column, target};
use crate::{object::QueryResult, page::Page};
use millpond_site_format::{access::is_path, rules::local};

/// The status where the line says none: what a query gives may be another address tomorrow.
pub const STATUS: u16 = 302;

/// Characters that no browser sends as they are, in a path that is a value.
const RAW: &AsciiSet = &CONTROLS.add(b' ');

/// A `-- redirect:` line of a page.
#[derive(Debug)]
pub struct PageRedirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// The value that is the whole path.
    pub next: Option<ArgumentSource>,
    /// The path otherwise. Its values are the places among `values`.
    pub pieces: Option<Vec<RedirectPiece>>,
    pub values: Vec<ArgumentSource>,
    pub file: PathBuf,
    pub line: usize,
}

impl PageRedirect {
    /// Returns the address to which the page leads; none if a value is not there, so that the page
    /// is shown.
    pub fn location(&self, params: &[Value], results: &[Arc<QueryResult>]) -> Option<String> {
        let value = |source: &ArgumentSource| {
            let found = match source {
                ArgumentSource::Param(at) => params.get(*at).cloned(),
                ArgumentSource::Column { step, column: name } => {
                    results.get(*step).and_then(|it| column(&it.data, name))
                }
            };
            found.filter(|value| *value != Value::Null)
        };
        if let Some(Value::Text(text)) = self.next.as_ref().and_then(value) {
            let path = utf8_percent_encode(&text, RAW).to_string();
            if is_path(&path) {
                return Some(path);
            }
        }
        let pieces = self.pieces.as_ref()?;
        let values: Option<Vec<Value>> = self.values.iter().map(value).collect();
        Some(local(&target(pieces, &values?, &[])))
    }

    /// True if the address is that of the page itself, whose slug is the right one. `path` is the
    /// page's path without a query.
    pub fn is_right_slug(&self, location: &str, path: &str) -> bool {
        let mut pieces = self.pieces.iter().flatten();
        pieces.any(|piece| matches!(piece, RedirectPiece::Slug(_)))
            && percent_decode_str(location).eq(percent_decode_str(path))
    }

    /// The answer that leads to a path.
    pub fn prepare(&self, page: &Page, location: &str, cache_control: &str) -> Arc<Prepared> {
        let vary = page.vary_field();
        let mut fields = vec![("Location", location), ("Cache-Control", cache_control)];
        if !vary.is_empty() {
            fields.push(("Vary", &vary));
        }
        // The tag is that of no page. *Counterexample*: an empty page at this address later would
        // have the tag of the empty body, and a 304 would confirm the redirect.
        let tagged = format!("{} {location}", self.status);
        let parts = Parts {
            status: self.status,
            media_type: "text/plain; charset=utf-8",
            fields: &fields,
            body: tagged.into(),
            last_modified: None,
            compressible: false,
        };
        let content = Content {
            identity: Body::Bytes(Bytes::new()),
            codings: Vec::new(),
        };
        Arc::new(Prepared::with_content(&parts, content))
    }
}
