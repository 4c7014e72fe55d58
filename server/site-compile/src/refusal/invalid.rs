//! A form that was refused and is filled in again (`-- invalid:`).
//!
//! Nothing was written. The visitor is redirected to the page that has the form, and a cookie takes
//! what was typed and what is wrong to that page, and to no other. What has no room in a cookie is
//! shown by the answer to the form itself (coherence.md, rule 24).

use millpond_db::Value;
use millpond_http::path::normalize;

use crate::page::redirect_target::{ArgumentSource, RedirectPiece, target};
use millpond_site_format::{
    params::{Given, Param},
    rules::local,
};

/// The page that has a form.
#[derive(Debug)]
pub struct Invalid {
    pub target: Vec<RedirectPiece>,
    /// The line of the target.
    pub line: usize,
    /// For each parameter, whether what was typed comes back to the visitor.
    pub is_kept: Vec<bool>,
}

/// Page to which a visitor is led back, and the values for it.
pub struct Back {
    pub target: String,
    pub path: String,
    pub values: Vec<(String, Vec<String>)>,
}

/// The names in the query of an address.
pub fn query_of(target: &str) -> Vec<String> {
    let target = target.split('#').next().unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.map(|(name, _)| name.into_owned()).collect()
}

/// Returns typed texts as they may stand in HTML: browsers read a character of code zero as this
/// one.
fn shown(texts: Vec<String>) -> Vec<String> {
    let shown = |text: String| match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}"),
        false => text,
    };
    texts.into_iter().map(shown).collect()
}

impl Invalid {
    /// Returns the page to which a form with these fields leads back. None if a value that the
    /// address needs is not there: then there is no page to lead to.
    pub fn back(&self, params: &[Param], given: &Given<'_>) -> Option<Back> {
        let is_needed = |at: usize| {
            let mut pieces = self.target.iter();
            pieces.any(|piece| match piece {
                RedirectPiece::Value(source) | RedirectPiece::Slug(source) => {
                    *source == ArgumentSource::Param(at)
                }
                RedirectPiece::Text(_) => false,
            })
        };
        let values = params.iter().enumerate().map(|(at, param)| {
            let param = std::slice::from_ref(param);
            match is_needed(at) {
                true => given.values(param).ok()?.pop(),
                false => Some(Value::Null),
            }
        });
        let values = values.collect::<Option<Vec<Value>>>()?;
        let target = local(&target(&self.target, &values, &[]));
        let path = normalize(target.split(['?', '#']).next()?)
            .ok()?
            .into_owned();
        let kept = params.iter().zip(&self.is_kept).filter(|(_, kept)| **kept);
        let typed = kept.map(|(param, _)| (param.name.clone(), shown(given.texts(param))));
        Some(Back {
            target,
            path,
            values: typed.filter(|(_, texts)| !texts.is_empty()).collect(),
        })
    }
}

impl Back {
    /// The address of the page, without what stands behind `#`.
    pub fn address(&self) -> &str {
        self.target.split('#').next().unwrap_or_default()
    }

    /// The path of the page in its normal form.
    pub fn path(&self) -> &str {
        &self.path
    }
}
