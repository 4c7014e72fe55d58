//! `urlencode` and `query`: values in addresses.

use minijinja::{
    Error,
    value::{Kwargs, Value, ValueKind},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::fault::{given, unfit, unfit_argument};
use crate::page_params::PageParams;
use millpond_site_format::suggest::closest;

/// All but the unreserved characters of RFC 3986, so that the text is one part of a path or one
/// value of a query.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A value for an address; of a map its pairs, joined by `&`.
pub(super) fn urlencode(value: &Value) -> Result<String, Error> {
    const TAKES: &str = "a text, a number, true or false, or a map of these";
    let Some(value) = present("urlencode", value)? else {
        return Ok(String::new());
    };
    let encode = |text: &str| utf8_percent_encode(text, &RESERVED).to_string();
    if value.kind() != ValueKind::Map {
        return match one(value) {
            Some(text) => Ok(encode(&text)),
            None => Err(unfit("urlencode", value, TAKES)),
        };
    }
    let mut pairs = Vec::new();
    for (name, value) in entries(value)? {
        let texts = many(&value).ok_or_else(|| unfit("urlencode", &value, TAKES))?;
        let pair = |text: &String| format!("{}={}", encode(&name), encode(text));
        pairs.extend(texts.iter().map(pair));
    }
    Ok(pairs.join("&"))
}

/// The query of an address, from `?` on: that of `params`, with some of its parameters changed. A
/// parameter that is none or has its default is left out.
pub(super) fn query(params: &Value, changes: &Kwargs) -> Result<String, Error> {
    const TAKES: &str = "`params`, or a map of names and values";
    let Some(params) = present("query", params)? else {
        return Ok(String::new());
    };
    if params.kind() != ValueKind::Map {
        return Err(unfit("query", params, TAKES));
    }
    let page = params.downcast_object_ref::<PageParams>();
    let mut pairs = match page {
        Some(page) => page.in_query(),
        None => entries(params)?,
    };
    for name in changes.args() {
        let value: Value = changes.get(name)?;
        if let Some(page) = page {
            check_name(page, name)?;
        }
        match pairs.iter_mut().find(|(known, _)| known == name) {
            Some(pair) => pair.1 = value,
            None => pairs.push((name.to_owned(), value)),
        }
    }
    changes.assert_all_used()?;
    let mut out = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1);
    for (name, value) in &pairs {
        let texts = many(value)
            .ok_or_else(|| unfit("query", value, "values of one text each, or lists of them"))?;
        let default = page.and_then(|page| page.default_of(name)).and_then(many);
        if default.as_ref() != Some(&texts) {
            out.extend_pairs(texts.iter().map(|text| (name, text)));
        }
    }
    Ok(out.finish())
}

/// A change names a parameter that the page has, and that is not a part of its path.
fn check_name(page: &PageParams, name: &str) -> Result<(), Error> {
    match page.is_in_path(name) {
        Some(false) => Ok(()),
        Some(true) => Err(unfit_argument(
            "query",
            &format!("`{name}` is a part of the path of this page"),
            "parameters that stand behind the `?`",
        )),
        None => {
            let known: Vec<&str> = page.names().collect();
            let takes = match closest(name, known.iter().copied()) {
                Some(near) => format!("the parameters of the page; did you mean `{near}`?"),
                None => format!("the parameters of the page: {}", known.join(", ")),
            };
            Err(unfit_argument(
                "query",
                &format!("the page has no parameter `{name}`"),
                &takes,
            ))
        }
    }
}

/// A value that is there. An empty text is a value here.
fn present<'v>(filter: &str, value: &'v Value) -> Result<Option<&'v Value>, Error> {
    match value.as_str() {
        Some("") => Ok(Some(value)),
        _ => given(filter, value),
    }
}

fn entries(map: &Value) -> Result<Vec<(String, Value)>, Error> {
    map.try_iter()?
        .map(|name| Ok((name.to_string(), map.get_item(&name)?)))
        .collect()
}

/// The texts that a value stands for in a query: none of none, each of a list.
fn many(value: &Value) -> Option<Vec<String>> {
    match value.kind() {
        ValueKind::None => Some(Vec::new()),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().ok()?.map(|item| one(&item)).collect()
        }
        _ => one(value).map(|text| vec![text]),
    }
}

/// A single value, as a parameter is read.
fn one(value: &Value) -> Option<String> {
    match value.kind() {
        ValueKind::String | ValueKind::Number => Some(value.to_string()),
        ValueKind::Bool => Some(value.is_true().to_string()),
        _ => None,
    }
}
