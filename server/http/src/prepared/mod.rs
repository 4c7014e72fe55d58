//! A representation prepared once and sent many times (RFC 9110 sections 8, 12.5.3, 13 and 14).
//!
//! The heads of its 200 and 304 are rendered when it is made. Each content coding is made once,
//! when the first client that can read it asks. So a hit copies a few pointers. What a response
//! is, is decided by the conditions of the request in the order of RFC 9110 section 13.2.2.

mod coding;
mod compressible;
mod conditions;
mod content;
mod etag;
mod partial;
mod range;
mod select;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::request::Request;
use crate::response::{Body, Response, field_line, length_line, status_line};
pub use coding::{Coding, smallest_brotli};
pub use compressible::is_compressible;
use conditions::{ConditionResult, Conditions, IfRange};
use etag::ContentHash;
pub use etag::entity_tag;
use partial::WholeBody;
use select::Preferences;

/// Bodies shorter than this are not compressed: head and packet cost more than what could be saved.
const COMPRESSIBLE_FROM: u64 = 512;
/// Nor are longer ones, of which the compressor would need as much memory again.
const COMPRESSIBLE_TO: u64 = 8 << 20;

/// Parts of which a [`Prepared`] is made.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// The status; conditions and ranges apply to 200 only.
    pub status: u16,
    /// Content-Type.
    pub media_type: &'a str,
    /// Further fields, such as Cache-Control. Not Content-Type, Content-Length, ETag,
    /// Last-Modified, Accept-Ranges.
    pub fields: &'a [(&'a str, &'a str)],
    /// The content.
    pub body: Bytes,
    /// When it last changed, if known; a time in the future counts as now (RFC 9110 section
    /// 8.8.2.1).
    pub last_modified: Option<SystemTime>,
    /// True if compressing it is worth while: see [`is_compressible`].
    pub compressible: bool,
}

/// The content of a [`Prepared`] that is not made from bytes in memory alone, for
/// [`Prepared::with_content`].
#[derive(Clone, Debug)]
pub struct Content {
    /// Body that is sent to clients that read no coding. Of a file, the part must stay as it is
    /// while this is used: a caller that cannot promise that checks the file before each response
    /// (its body says whether it is one).
    pub identity: Body,
    /// Bodies of the content in codings that were made beforehand.
    pub codings: Vec<(Coding, Body)>,
}

/// A representation with its heads rendered. Shared between threads in an `Arc`.
///
/// Its entity tag is the 128-bit xxh3 hash of its content, so it is the same after a restart; it is
/// not proof against someone who makes collisions on purpose (who could only delay the sight of
/// their own contribution).
#[derive(Debug)]
pub struct Prepared {
    status: u16,
    /// Field lines that every response of it has.
    common: Bytes,
    /// Common fields that a 304 repeats (RFC 9110 section 15.4.5).
    common_304: Bytes,
    hash: ContentHash,
    etag: String,
    last_modified: Option<SystemTime>,
    compressible: bool,
    identity: Variant,
    /// By [`Coding`]; none inside if the coding saved nothing.
    codings: [OnceLock<Option<Variant>>; Coding::ALL.len()],
}

/// The content in one coding, with its heads.
#[derive(Debug)]
struct Variant {
    coding: Option<Coding>,
    body: Body,
    full: Bytes,
    not_modified: Bytes,
}

impl Prepared {
    /// Renders the heads. Costs a hash of the body and about a microsecond.
    #[must_use]
    pub fn new(mut parts: Parts<'_>) -> Self {
        let hash = ContentHash::of(&parts.body);
        let content = Content {
            identity: Body::Bytes(std::mem::take(&mut parts.body)),
            codings: Vec::new(),
        };
        Self::build(hash, &parts, content)
    }

    /// Renders the heads of `content`, which `parts.body` only tells from every other: its hash is
    /// the entity tag. It must differ wherever the content or one of the codings given does.
    #[must_use]
    pub fn with_content(parts: &Parts<'_>, content: Content) -> Self {
        Self::build(ContentHash::of(&parts.body), parts, content)
    }

    fn build(hash: ContentHash, parts: &Parts<'_>, content: Content) -> Self {
        let len = content.identity.len();
        let compressible =
            parts.compressible && (COMPRESSIBLE_FROM..=COMPRESSIBLE_TO).contains(&len);
        let last_modified = parts.last_modified.map(whole_seconds);
        let mut common = Vec::with_capacity(256);
        let mut common_304 = Vec::with_capacity(128);
        field_line(&mut common, "Content-Type", parts.media_type);
        for (name, value) in parts.fields {
            field_line(&mut common, name, value);
            if ["cache-control", "content-location", "expires", "vary"]
                .iter()
                .any(|n| name.eq_ignore_ascii_case(n))
            {
                field_line(&mut common_304, name, value);
            }
        }
        let mut both = |name: &str, value: &str| {
            field_line(&mut common, name, value);
            field_line(&mut common_304, name, value);
        };
        both("X-Content-Type-Options", "nosniff");
        // RFC 9110 section 12.5.5: wherever the field may decide, now or once a coding is made.
        if compressible || !content.codings.is_empty() {
            both("Vary", "Accept-Encoding");
        }
        if let Some(time) = last_modified {
            both("Last-Modified", &httpdate::fmt_http_date(time));
        }
        if parts.status == 200 {
            field_line(&mut common, "Accept-Ranges", "bytes");
        }
        let mut prepared = Self {
            status: parts.status,
            common: common.into(),
            common_304: common_304.into(),
            etag: hash.tag(None),
            hash,
            last_modified,
            compressible,
            identity: Variant {
                coding: None,
                body: Body::Empty,
                full: Bytes::new(),
                not_modified: Bytes::new(),
            },
            codings: std::array::from_fn(|_| OnceLock::new()),
        };
        prepared.identity = prepared.variant(None, content.identity);
        for (coding, body) in content.codings {
            prepared.codings[coding as usize] =
                OnceLock::from(Some(prepared.variant(Some(coding), body)));
        }
        prepared
    }

    /// The response to `request`; `extra` is more field lines (each ending with CRLF), or empty. A
    /// plain 200 and a 304 cost no allocation.
    #[must_use]
    pub fn respond(&self, request: &Request<'_>, extra: Bytes) -> Response {
        let conditions = Conditions::of(request);
        let response = self.decide(request, &conditions);
        response.with_extra(extra)
    }

    fn decide(&self, request: &Request<'_>, conditions: &Conditions) -> Response {
        let selected = if conditions.accept_encoding {
            self.select(&Preferences::of(request))
        } else {
            &self.identity
        };
        if self.status != 200 || !conditions.any() || !matches!(request.method, "GET" | "HEAD") {
            return self.full(selected);
        }
        match conditions.evaluate(request, &self.hash, self.last_modified) {
            ConditionResult::Failed => Response::text(412, "precondition failed\n"),
            ConditionResult::NotModified(None) => Self::not_modified(selected),
            ConditionResult::NotModified(Some(coding)) => match self.made(coding) {
                Some(variant) => Self::not_modified(variant),
                // The client has a coding that this process has not made (again), or will not.
                None => Response::prepared(304, self.head_304(coding), Bytes::new(), Body::Empty),
            },
            ConditionResult::Proceed => match conditions.range(request) {
                Some(range) => self.partial(request, conditions, range, selected),
                None => self.full(selected),
            },
        }
    }

    /// The best coding that the client reads and that has not been made yet; none if there is
    /// nothing to gain. For the caller to have it made in the background, by [`Prepared::make`].
    #[must_use]
    pub fn wanted(&self, request: &Request<'_>) -> Option<Coding> {
        if !self.compressible || self.codings.iter().all(|made| made.get().is_some()) {
            return None;
        }
        // Without the field no coding is used; finding that out costs less than reading no list.
        request.fields.get("accept-encoding")?;
        let best = Preferences::of(request).best_coding()?;
        self.codings[best as usize].get().is_none().then_some(best)
    }

    /// Returns the codings that there are, a bit for each: the parts of a response change only with
    /// this.
    #[must_use]
    pub fn codings(&self) -> u8 {
        let made = self.codings.iter().enumerate();
        made.filter(|(_, made)| made.get().is_some())
            .fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// Compresses the content, once: about 100 microseconds for 10 KB. Returns the bytes it added
    /// to [`Prepared::weight`]; 0 if another call did it, or if it would not be smaller, which is
    /// remembered.
    pub fn make(&self, coding: Coding) -> usize {
        if !self.compressible {
            return 0;
        }
        let mut added = 0;
        self.codings[coding as usize].get_or_init(|| {
            let content = content::read(&self.identity.body).ok()?;
            let body = coding
                .compress(&content)
                .filter(|body| body.len() < content.len())?;
            let variant = self.variant(Some(coding), Body::Bytes(body.into()));
            added = variant.weight();
            Some(variant)
        });
        added
    }

    /// Bytes it takes, heads and codings included.
    #[must_use]
    pub fn weight(&self) -> usize {
        let codings = self.codings.iter().filter_map(|made| made.get()?.as_ref());
        size_of::<Self>()
            + self.common.len()
            + self.common_304.len()
            + self.etag.len()
            + self.identity.weight()
            + codings.map(Variant::weight).sum::<usize>()
    }

    /// The entity tag of the content without a coding, with its quotes.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The content without a coding.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.identity.body
    }

    /// The status of its full response.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Among what is made, the coding the client likes best, and of several such the smallest.
    fn select(&self, preferences: &Preferences) -> &Variant {
        if !preferences.any() {
            return &self.identity;
        }
        let made = Coding::ALL
            .into_iter()
            .filter_map(|coding| self.made(Some(coding)).zip(preferences.accepted(coding)));
        let best =
            made.max_by_key(|(variant, quality)| (*quality, std::cmp::Reverse(variant.body.len())));
        best.map_or(&self.identity, |(variant, _)| variant)
    }

    fn made(&self, coding: Option<Coding>) -> Option<&Variant> {
        match coding {
            None => Some(&self.identity),
            Some(coding) => self.codings[coding as usize].get()?.as_ref(),
        }
    }

    fn full(&self, variant: &Variant) -> Response {
        Response::prepared(
            self.status,
            variant.full.clone(),
            Bytes::new(),
            variant.body.clone(),
        )
    }

    fn not_modified(variant: &Variant) -> Response {
        Response::prepared(304, variant.not_modified.clone(), Bytes::new(), Body::Empty)
    }

    /// RFC 9110 section 14.2. Without If-Range the range is of the content without a coding, since
    /// a coding may be made between two requests; If-Range names the one it is of. Who refuses that
    /// content and reads a coding gets this whole.
    fn partial(
        &self,
        request: &Request<'_>,
        conditions: &Conditions,
        range: &[u8],
        selected: &Variant,
    ) -> Response {
        let named = match conditions.if_range(request, &self.hash, self.last_modified) {
            IfRange::Absent if selected.coding.is_some() => {
                let is_refused = Preferences::of(request).refuses_identity();
                (!is_refused).then_some(&self.identity)
            }
            IfRange::Absent => Some(&self.identity),
            IfRange::Holds(coding) => self.made(coding),
            IfRange::Fails => None,
        };
        named
            .and_then(|variant| self.part_of(variant, range))
            .unwrap_or_else(|| self.full(selected))
    }

    /// The parts of `variant` that `range` asks for; none if it is answered in full.
    fn part_of(&self, variant: &Variant, range: &[u8]) -> Option<Response> {
        // Content-Type is the first line of all; parts of a multipart response have it each for
        // itself.
        let (content_type, common) = self
            .common
            .split_at(memchr::memchr(b'\n', &self.common)? + 1);
        let mut fields = Vec::with_capacity(common.len() + 96);
        fields.extend_from_slice(common);
        self.render_variant(&mut fields, variant.coding);
        let whole = WholeBody {
            content_type,
            fields: &fields,
            body: &variant.body,
            may_be_several: variant.coding.is_none(),
        };
        partial::respond(&whole, range)
    }

    fn variant(&self, coding: Option<Coding>, body: Body) -> Variant {
        let mut full = Vec::with_capacity(self.common.len() + 160);
        self.render(&mut full, self.status, coding);
        if !crate::status::is_bodiless(self.status) {
            length_line(&mut full, body.len());
        }
        Variant {
            coding,
            body,
            full: full.into_boxed_slice().into(),
            not_modified: self.head_304(coding),
        }
    }

    fn render(&self, head: &mut Vec<u8>, status: u16, coding: Option<Coding>) {
        status_line(head, status);
        head.extend_from_slice(&self.common);
        self.render_variant(head, coding);
    }

    /// The field lines that one coding has for itself.
    fn render_variant(&self, head: &mut Vec<u8>, coding: Option<Coding>) {
        if let Some(coding) = coding {
            field_line(head, "Content-Encoding", coding.name());
        }
        field_line(head, "ETag", &self.hash.tag(coding));
    }

    fn head_304(&self, coding: Option<Coding>) -> Bytes {
        let mut head = Vec::with_capacity(self.common_304.len() + 96);
        status_line(&mut head, 304);
        head.extend_from_slice(&self.common_304);
        field_line(&mut head, "ETag", &self.hash.tag(coding));
        head.into_boxed_slice().into()
    }
}

impl Variant {
    fn weight(&self) -> usize {
        content::weight(&self.body) + self.full.len() + self.not_modified.len()
    }
}

/// HTTP dates have whole seconds, and a modification in the future is one that has just happened.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let time = time.min(base_clock::wall());
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since_epoch.as_secs())
}
