//! Which of a page's languages a visitor's browser asks for: `-- language: lang in (en, de)`.
//!
//! `Accept-Language` has thousands of values, so it is in no key. The choice among the page's
//! languages is: it takes the place of a parameter that the address does not give.

use std::borrow::Cow;

use millpond_db::Value;
use millpond_http::Request;

use crate::page::Page;
use millpond_site_format::params::BadParam;

/// Ranges behind these are not looked at.
const MOST_RANGES: usize = 32;

/// The request field, in small letters.
pub const FIELD: &str = "accept-language";

impl Page {
    /// The query string with the visitor's language, where a request lacks it: `bad` is what the
    /// key was refused for.
    #[cold]
    pub fn with_missing_language(&self, request: &Request<'_>, bad: &BadParam) -> Option<String> {
        if self.params[self.language?].name != bad.name {
            return None;
        }
        self.with_visitors_language(request)
    }

    /// Returns the query string with the visitor's language for a page that is asked for again.
    pub fn with_visitors_language(&self, request: &Request<'_>) -> Option<String> {
        self.language?;
        let lines = request.fields.get_all(FIELD).map(String::from_utf8_lossy);
        let field = lines.collect::<Vec<_>>().join(",");
        self.with_language(request.query, &field)
    }

    /// The query string with the language for a visitor with this `Accept-Language`; none if the
    /// page has no languages, or the query string gives one.
    pub fn with_language(&self, query: Option<&str>, field: &str) -> Option<String> {
        let param = &self.params[self.language?];
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        // A field that is left empty is not given.
        let (own, others): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| *name == param.name);
        if own.iter().any(|(_, text)| !text.is_empty()) {
            return None;
        }
        let texts = param.choices.iter().filter_map(|value| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        });
        let chosen = choose(field, &texts.collect::<Vec<_>>())?;
        let mut out = form_urlencoded::Serializer::new(String::new());
        out.append_pair(&param.name, chosen).extend_pairs(others);
        Some(out.finish())
    }

    /// The value of `Vary`: the fields that decide what the answer is. Empty if none does.
    pub fn vary_field(&self) -> Cow<'_, str> {
        let is_in_key = self.vary.iter().any(|field| field == FIELD);
        let fields = self.vary.iter().map(String::as_str);
        let chosen = self.language.filter(|_| !is_in_key).map(|_| FIELD);
        match (chosen, &*self.vary) {
            (None, []) => Cow::Borrowed(""),
            (None, [only]) => Cow::Borrowed(only.as_str()),
            _ => fields.chain(chosen).collect::<Vec<_>>().join(", ").into(),
        }
    }
}

/// The language for a visitor with this `Accept-Language` (RFC 9110 section 12.5.4): the first
/// where the field names none of them.
fn choose<'c>(field: &str, languages: &[&'c str]) -> Option<&'c str> {
    let ranges = field.split(',').take(MOST_RANGES).filter_map(range);
    let mut ranges: Vec<(&str, u16)> = ranges.collect();
    let refused = |language: &&&str| {
        let mut ranges = ranges.iter();
        ranges.any(|(range, weight)| *weight == 0 && range.eq_ignore_ascii_case(language))
    };
    let open: Vec<&'c str> = languages
        .iter()
        .filter(|it| !refused(it))
        .copied()
        .collect();
    // Among equal weights the order of the field decides, as browsers mean it.
    ranges.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let wanted = ranges.iter().filter(|(_, weight)| *weight > 0);
    let mut found = wanted.filter_map(|(range, _)| lookup(range, &open));
    found
        .next()
        .or_else(|| open.first().copied())
        .or_else(|| languages.first().copied())
}

/// A range and its weight in thousandths.
fn range(text: &str) -> Option<(&str, u16)> {
    let (range, parameters) = text.split_once(';').unwrap_or((text, ""));
    let q = parameters.trim().strip_prefix(['q', 'Q']);
    let q = q.and_then(|rest| rest.trim_start().strip_prefix('='));
    let weight = match q {
        None => 1.0,
        Some(q) => q.trim().parse::<f32>().ok().filter(|q| q.is_finite())?,
    };
    let range = range.trim();
    let weight = (weight.clamp(0.0, 1.0) * 1000.0) as u16;
    (!range.is_empty()).then_some((range, weight))
}

/// The language of a range (RFC 4647 section 3.4): itself, else what is left when its last parts
/// are taken away, else one that is more exact (`de` takes `de-CH`).
fn lookup<'c>(range: &str, languages: &[&'c str]) -> Option<&'c str> {
    if range == "*" {
        return languages.first().copied();
    }
    let is_of = |more: &str, less: &str| {
        let start = more.get(..less.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(less))
            && matches!(more.as_bytes().get(less.len()), None | Some(b'-'))
    };
    let less = languages.iter().filter(|language| is_of(range, language));
    let less = less.max_by_key(|language| language.len());
    let more = || languages.iter().find(|language| is_of(language, range));
    less.or_else(more).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_that_is_wanted_most_is_chosen() {
        for (field, languages, expected) in [
            ("", "en de", "en"),
            ("de", "en de", "de"),
            ("DE-at", "en de", "de"),
            ("de-AT,en;q=0.9", "en de", "de"),
            ("en;q=0.8, de;q=0.9", "en de", "de"),
            ("en;q=0.9, de;q=0.9", "de en", "en"),
            ("fr", "en de", "en"),
            ("fr, de;q=0.1", "en de", "de"),
            ("fr, *;q=0.1", "en de", "en"),
            ("en;q=0, *", "en de", "de"),
            ("en;q=0", "en de", "de"),
            ("en;q=0,de;q=0", "en de", "en"),
            ("de", "en de-CH de-AT", "de-CH"),
            ("de-AT", "en de-CH de-AT de", "de-AT"),
            ("de-DE", "en de-CH de", "de"),
            ("den", "en de", "en"),
            ("zh-Hant-TW", "en zh zh-Hant", "zh-Hant"),
            ("de;q=x, en", "de en", "en"),
            ("de;q=NaN", "en de", "en"),
            (";;,,=;q=1,de", "en de", "de"),
            ("ü, de", "en de", "de"),
        ] {
            let languages: Vec<&str> = languages.split(' ').collect();
            assert_eq!(choose(field, &languages), Some(expected), "{field}");
        }
        let long = "fr,".repeat(MOST_RANGES) + "de";
        assert_eq!(choose(&long, &["en", "de"]), Some("en"));
        assert_eq!(choose("de", &[]), None);
    }
}
