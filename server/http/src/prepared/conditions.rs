//! Conditional requests (RFC 9110 section 13): which conditions a request has, and what follows
//! from them.

use std::time::{Duration, SystemTime};

use super::Coding;
use super::etag::{ContentHash, only_tag, tags};
use super::select::Preferences;
use crate::request::Request;

/// A date is a strong validator only if the content cannot have changed twice in its second without
/// being noticed (section 8.8.2.2).
const STRONG_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionResult {
    /// They hold: answer as if there were none, but for a range.
    Proceed,
    /// 304; for the named coding of the content if a tag named one, else for the selected one.
    NotModified(Option<Option<Coding>>),
    /// 412.
    Failed,
}

/// Result of If-Range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfRange {
    /// There is none.
    Absent,
    /// The client has a part of the present content, in this coding.
    Holds(Option<Coding>),
    /// It has a part of another content, or the client cannot tell.
    Fails,
}

/// Fields of a request that matter here: found in one walk, because most requests have none of
/// them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    if_match: bool,
    if_none_match: bool,
    if_modified_since: bool,
    if_unmodified_since: bool,
    if_range: bool,
    range: bool,
    pub(super) accept_encoding: bool,
}

impl Conditions {
    #[inline]
    pub(super) fn of(request: &Request<'_>) -> Self {
        let mut found = Self::default();
        for (name, _) in request.fields.raw() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                5 => found.range |= is("range"),
                8 => {
                    found.if_match |= is("if-match");
                    found.if_range |= is("if-range");
                }
                13 => found.if_none_match |= is("if-none-match"),
                15 => found.accept_encoding |= is("accept-encoding"),
                17 => found.if_modified_since |= is("if-modified-since"),
                19 => found.if_unmodified_since |= is("if-unmodified-since"),
                _ => {}
            }
        }
        found
    }

    /// True if anything but the coding is to be decided.
    pub(super) const fn any(&self) -> bool {
        self.if_match
            || self.if_none_match
            || self.if_modified_since
            || self.if_unmodified_since
            || self.range
    }

    pub(super) fn preferences(&self, request: &Request<'_>) -> Preferences {
        if self.accept_encoding {
            Preferences::of(request)
        } else {
            Preferences::default()
        }
    }

    /// Section 13.2.2, steps 1 to 4.
    #[inline]
    pub(super) fn evaluate(
        &self,
        request: &Request<'_>,
        hash: &ContentHash,
        modified: Option<SystemTime>,
    ) -> ConditionResult {
        if self.if_match {
            // Strong comparison (section 13.1.1); any coding of the present content will do.
            let holds = request.fields.get_all("if-match").any(|list| {
                list == b"*" || tags(list).any(|tag| !tag.weak && hash.names(tag.opaque).is_some())
            });
            if !holds {
                return ConditionResult::Failed;
            }
        } else if self.if_unmodified_since
            && let (Some(modified), Some(date)) = (modified, date(request, "if-unmodified-since"))
            && modified > date
        {
            return ConditionResult::Failed;
        }
        if self.if_none_match {
            // Weak comparison (section 13.1.2). With it If-Modified-Since is ignored, even if no
            // tag matches.
            for list in request.fields.get_all("if-none-match") {
                if list == b"*" {
                    return ConditionResult::NotModified(None);
                }
                let mut named = tags(list).filter_map(|tag| hash.names(tag.opaque));
                if let Some(coding) = named.find(|coding| self.can_read(request, *coding)) {
                    return ConditionResult::NotModified(Some(coding));
                }
            }
        } else if self.if_modified_since
            && let (Some(modified), Some(date)) = (modified, date(request, "if-modified-since"))
            && modified <= date
        {
            return ConditionResult::NotModified(None);
        }
        ConditionResult::Proceed
    }

    /// True if the client can read the content in this coding. A cache asks with the tags of all
    /// responses that it holds, and sends the response that the 304 names to its own client.
    #[inline]
    fn can_read(&self, request: &Request<'_>, coding: Option<Coding>) -> bool {
        coding.is_none_or(|coding| self.preferences(request).reads(coding))
    }

    /// The Range field, if it applies: one of them, to GET, for which alone ranges are defined
    /// (section 14.2).
    pub(super) fn range<'a>(&self, request: &Request<'a>) -> Option<&'a [u8]> {
        if !self.range || request.method != "GET" {
            return None;
        }
        only(request, "range")
    }

    /// Section 13.1.5: one tag, which is compared strongly, or one date that is a strong validator.
    pub(super) fn if_range(
        &self,
        request: &Request<'_>,
        hash: &ContentHash,
        modified: Option<SystemTime>,
    ) -> IfRange {
        if !self.if_range {
            return IfRange::Absent;
        }
        if let Some(tag) = only(request, "if-range").and_then(only_tag) {
            return match hash.names(tag.opaque) {
                Some(coding) if !tag.weak => IfRange::Holds(coding),
                _ => IfRange::Fails,
            };
        }
        let is_same = modified.is_some() && modified == date(request, "if-range");
        let is_strong = modified
            .and_then(|m| base_clock::wall().duration_since(m).ok())
            .is_some_and(|age| age >= STRONG_AFTER);
        if is_same && is_strong {
            // A date names no coding; what clients resume by date is without one.
            IfRange::Holds(None)
        } else {
            IfRange::Fails
        }
    }
}

/// The value of a field that is no list; none if it is repeated, which makes one of it that is
/// malformed.
fn only<'a>(request: &Request<'a>, name: &str) -> Option<&'a [u8]> {
    let mut all = request.fields.get_all(name);
    let first = all.next();
    if all.next().is_some() { None } else { first }
}

/// A date field in any of the three formats (section 5.6.7); a malformed or repeated one is as if
/// it were not there (sections 13.1.3, 13.1.4).
fn date(request: &Request<'_>, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(only(request, name)?).ok()?).ok()
}
