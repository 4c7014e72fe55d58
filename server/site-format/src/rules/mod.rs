//! What the configuration says about addresses: redirects, rewrites, fields that responses get, and
//! who may enter.
//!
//! They are read with the configuration ([`RuleSet`]) and compiled with the folder ([`Rules`]). A
//! site without any has none of this: a request then costs one branch.

mod check;
mod fields;
mod guards;
mod index;
mod pattern;
mod target;

use std::borrow::Cow;

use bytes::Bytes;
use millpond_http::{Reply, Response, path};

pub use check::{WORD, closed_targets, loops, shadowed};
use fields::ResponseFields;
pub use fields::{FieldRule, check_field};
pub use guards::{FolderPattern, RequireRule, RequireRules};
use index::Index;
pub use pattern::{PathPattern, Scope};
pub use target::{RuleTarget, VALUE, encode_path, local};

/// The position of a rule in the configuration: line and column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulePosition {
    pub line: usize,
    pub column: usize,
}

/// An address that leads the client to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub from: PathPattern,
    pub to: RuleTarget,
    /// 301, 302, 307 or 308.
    pub status: u16,
    pub place: RulePosition,
}

/// An address that is answered as another is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub from: PathPattern,
    /// A path of this site.
    pub to: RuleTarget,
    pub place: RulePosition,
}

/// The rules of a site as its configuration has them, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub redirects: Vec<Redirect>,
    pub rewrites: Vec<Rewrite>,
    pub fields: Vec<FieldRule>,
    pub requires: Vec<RequireRule>,
}

/// The rules in compiled form.
#[derive(Debug)]
pub struct Rules {
    set: RuleSet,
    redirects: Index,
    /// For each redirect without placeholders its response to a request without a query.
    fixed: Vec<Option<Response>>,
    rewrites: Index,
    fields: ResponseFields,
    /// None where every visitor may enter every folder.
    pub guards: Option<RequireRules>,
}

impl Rules {
    /// Compiles the rules; none if there are none. `hit` is the field line that marks a response
    /// from memory.
    pub fn compile(set: &RuleSet, hit: &Bytes) -> Option<Self> {
        if *set == RuleSet::default() {
            return None;
        }
        let fixed = set.redirects.iter().map(|redirect| {
            let alone = redirect.from.exact().is_some();
            alone.then(|| moved(redirect.status, &redirect.to.fill(&[], None)))
        });
        Some(Self {
            redirects: Index::new(set.redirects.iter().map(|rule| &rule.from)),
            fixed: fixed.collect(),
            rewrites: Index::new(set.rewrites.iter().map(|rule| &rule.from)),
            fields: ResponseFields::new(&set.fields, hit),
            guards: RequireRules::compile(&set.requires),
            set: set.clone(),
        })
    }

    /// The response that leads elsewhere, if a redirect is for this path (in its normal form).
    pub fn redirect(&self, path: &str, query: Option<&str>) -> Option<Response> {
        let number = self.redirects.find(path)?;
        if let Some(Some(fixed)) = self.fixed.get(number)
            && query.is_none()
        {
            return Some(fixed.clone());
        }
        let redirect = &self.set.redirects[number];
        let values = redirect.from.capture(path)?;
        Some(moved(redirect.status, &redirect.to.fill(&values, query)))
    }

    /// The target (path and query) that is answered instead, if a rewrite is for this path.
    pub fn rewrite(&self, path: &str, query: Option<&str>) -> Option<String> {
        let rewrite = &self.set.rewrites[self.rewrites.find(path)?];
        let values = rewrite.from.capture(path)?;
        Some(rewrite.to.fill(&values, query))
    }

    /// True if an address is answered as another one is.
    pub fn has_rewrites(&self) -> bool {
        !self.set.rewrites.is_empty()
    }

    /// The paths from which rewrites are.
    pub fn rewritten_paths(&self) -> impl Iterator<Item = &PathPattern> {
        self.set.rewrites.iter().map(|rewrite| &rewrite.from)
    }

    /// The kind and the place of the rule that takes a path, if one does.
    pub fn before(&self, path: &str) -> Option<(&'static str, RulePosition)> {
        if let Some(number) = self.redirects.find(path) {
            return Some(("redirect", self.set.redirects[number].place));
        }
        let number = self.rewrites.find(path)?;
        Some(("rewrite", self.set.rewrites[number].place))
    }

    /// `reply` with the fields that the rules for this path add.
    pub fn with_fields(&self, path: &str, reply: Reply) -> Reply {
        let Some(lines) = self.fields.at(path) else {
            return reply;
        };
        match reply {
            Reply::Ready(response) => lines.add_to(response).into(),
            Reply::Reusable(reply) => {
                let (response, validity) = *reply;
                Reply::Reusable(Box::new((lines.add_to(response), validity)))
            }
            Reply::Later(response) => Reply::later(async move { lines.add_to(response.await) }),
        }
    }

    /// Adds the fields of the rules for this path to a response.
    pub fn with_fields_of(&self, path: &str, response: Response) -> Response {
        match self.fields.at(path) {
            Some(lines) => lines.add_to(response),
            None => response,
        }
    }

    /// The path with a slash at its end, or without the one that it has, if a redirect leads from
    /// there to a path that `answers` or that is rewritten. No other redirect may take that path:
    /// so no client is led in a circle.
    pub fn beside<'p>(
        &self,
        path: &'p str,
        answers: impl Fn(&str) -> bool,
    ) -> Option<Cow<'p, str>> {
        let beside = match path.strip_suffix('/') {
            Some("") => return None,
            Some(without) => Cow::Borrowed(without),
            None => Cow::Owned(format!("{path}/")),
        };
        let to = self.leads(&beside)?;
        let is_end = self.redirects.find(&to).is_none()
            && (self.rewrites.find(&to).is_some() || answers(&to));
        is_end.then_some(beside)
    }

    /// The path of this site to which a redirect leads from a path, both in normal form.
    fn leads(&self, from: &str) -> Option<String> {
        let redirect = &self.set.redirects[self.redirects.find(from)?];
        let values = redirect.from.capture(from)?;
        let to = redirect
            .to
            .is_local()
            .then(|| redirect.to.fill(&values, None))?;
        Some(split(&to).0.into_owned())
    }
}

/// The path of a target in its normal form, and its query. A target that is filled in by
/// [`RuleTarget::fill`] has one.
pub fn split(target: &str) -> (Cow<'_, str>, Option<&str>) {
    let address = target
        .split_once('#')
        .map_or(target, |(address, _)| address);
    let (raw, query) = match address.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (address, None),
    };
    (path::normalize(raw).unwrap_or(raw.into()), query)
}

/// A redirect. Clients may keep it but ask each time, so that one that was a mistake does not last.
pub fn moved(status: u16, location: &str) -> Response {
    Response::builder(status)
        .field("Location", location)
        .field("Cache-Control", "no-cache")
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}
