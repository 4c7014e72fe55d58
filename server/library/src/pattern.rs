//! The patterns of routes, such as `/albums/{id}?{page}`.

use crate::error::RouteError;
use crate::param::MAX_PARAMS;

/// A part of a pattern's path between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternSegment {
    /// Exactly this text.
    Text(Box<str>),
    /// One segment that is not empty: `{name}`.
    Param,
    /// One segment, the last, that is a value and this ending: `{name}.json`.
    ParamWithEnding(Box<str>),
    /// All that is left, which may be empty: `{name...}`.
    Rest,
}

/// A pattern that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoutePattern {
    pub(crate) segments: Vec<PatternSegment>,
    /// Names of the parameters: those of the path first.
    pub(crate) names: Box<[Box<str>]>,
    /// How many of them are in the path.
    pub(crate) in_path: usize,
}

impl RoutePattern {
    pub(crate) fn parse(pattern: &str) -> Result<Self, RouteError> {
        let fault = |what: &str| RouteError::new(pattern, what);
        let (path, query) = match pattern.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (pattern, None),
        };
        let path = path
            .strip_prefix('/')
            .ok_or_else(|| fault("does not begin with a slash"))?;
        let mut names = Vec::<Box<str>>::new();
        let mut segments = Vec::new();
        let parts: Vec<&str> = path.split('/').collect();
        for (at, part) in parts.iter().enumerate() {
            check_notation(part).map_err(|what| fault(&what))?;
            let segment = match name_in_braces(part) {
                Some(name) => match name.strip_suffix("...") {
                    Some(_) if at + 1 < parts.len() => {
                        return Err(fault("has something behind a parameter with `...`"));
                    }
                    Some(name) => {
                        names.push(name.into());
                        PatternSegment::Rest
                    }
                    None => {
                        names.push(name.into());
                        PatternSegment::Param
                    }
                },
                None if part.contains(['{', '}']) => {
                    let (name, ending) = name_and_ending(part)
                        .filter(|_| at + 1 == parts.len())
                        .ok_or_else(|| fault(BRACE))?;
                    names.push(name.into());
                    PatternSegment::ParamWithEnding(ending.into())
                }
                None if ["", ".", ".."].contains(part) && at + 1 < parts.len() => {
                    return Err(fault("has an empty segment, or one of dots"));
                }
                None if [".", ".."].contains(part) => {
                    return Err(fault("has a segment of dots"));
                }
                None => PatternSegment::Text((*part).into()),
            };
            segments.push(segment);
        }
        let in_path = names.len();
        if let Some(query) = query {
            names.extend(query_names(query).map_err(|what| fault(&what))?);
        }
        check_names(&names, fault)?;
        Ok(Self {
            segments,
            names: names.into(),
            in_path,
        })
    }
}

/// Refuses the parameters of other routers: `:id`, `<id>`, `*path`. As texts they would match no
/// request that is meant.
fn check_notation(part: &str) -> Result<(), String> {
    let angled = part
        .strip_prefix('<')
        .and_then(|part| part.strip_suffix('>'));
    let (name, rest) = match part.strip_prefix('*') {
        Some(name) => (Some(name), "..."),
        None => (part.strip_prefix(':').or(angled), ""),
    };
    match name.filter(|name| is_name(name)) {
        Some(name) => Err(format!(
            "has the segment `{part}`: write a parameter as `{{{name}{rest}}}`"
        )),
        None => Ok(()),
    }
}

/// The names in a query such as `{a}&{b}`.
fn query_names(query: &str) -> Result<Vec<Box<str>>, String> {
    let name = |part| name_in_braces(part).filter(|name| !name.contains(['{', '}']));
    let names: Option<Vec<_>> = query.split('&').map(name).collect();
    if let Some(names) = names {
        return Ok(names.into_iter().map(Box::from).collect());
    }
    let named = query.split(|c: char| !is_name_character(c));
    let named: Vec<_> = named.filter(|name| !name.is_empty()).collect();
    let braced = named.iter().map(|name| format!("{{{name}}}"));
    let advice = match query.matches('{').count() == named.len() && !named.is_empty() {
        true => braced.collect::<Vec<_>>().join("&"),
        false => "{a}&{b}".to_owned(),
    };
    Err(format!(
        "has the query `?{query}`: write each parameter in braces, and join them by `&`, as in \
         `?{advice}`"
    ))
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_character)
}

fn check_names(names: &[Box<str>], fault: impl Fn(&str) -> RouteError) -> Result<(), RouteError> {
    if names.len() > MAX_PARAMS {
        return Err(fault("has more than eight parameters"));
    }
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Err(fault(
                "has a parameter whose name is not of letters, digits, `_`, `-`, `.`",
            ));
        }
        if names[..at].contains(name) {
            return Err(fault("has two parameters of one name"));
        }
    }
    Ok(())
}

const BRACE: &str = "has a brace within a segment: a parameter is a whole one, \
    and only in the last segment it may have an ending, as in `/{name}.json`";

/// The parts of `{name}.json`.
fn name_and_ending(part: &str) -> Option<(&str, &str)> {
    let (name, ending) = part.strip_prefix('{')?.split_once('}')?;
    (!name.ends_with("...") && !ending.contains(['{', '}'])).then_some((name, ending))
}

fn name_in_braces(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_segments_and_names() {
        let pattern = RoutePattern::parse("/a/{id}/b/{rest...}?{page}&{sort-by}").unwrap();
        let names: Vec<&str> = pattern.names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["id", "rest", "page", "sort-by"]);
        assert_eq!(pattern.in_path, 2);
        assert_eq!(pattern.segments.len(), 4);
        for pattern in ["/", "/:", "/*", "/a:b", "/<", "/<>", "/:a:b"] {
            assert!(RoutePattern::parse(pattern).unwrap().names.is_empty());
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_reason() {
        for (pattern, reason) in [
            ("a", "slash"),
            ("/a{b}", "brace"),
            ("/{a}.json/b", "brace"),
            ("/{a}.{b}.c", "brace"),
            ("/{a...}.json", "brace"),
            ("/{}.json", "name"),
            ("/{a}{b}", "name is not"),
            ("/{a...}/b", "behind"),
            ("/a//b", "empty"),
            ("/../b", "dots"),
            ("/b/.", "dots"),
            ("/a?b={c}", "as in `?{a}&{b}`"),
            ("/a?", "as in `?{a}&{b}`"),
            ("/a?x&y", "as in `?{a}&{b}`"),
            ("/{z}?{x}?{y}", "join them by `&`, as in `?{x}&{y}`"),
            ("/a?{x},{y}", "`?{x},{y}`: write"),
            ("/a?{x},{y}", "as in `?{x}&{y}`"),
            ("/a?{x}&{y};{z}", "as in `?{x}&{y}&{z}`"),
            ("/a?{x}{y}", "as in `?{x}&{y}`"),
            ("/a?{}", "name is not"),
            ("/a/:x", "segment `:x`: write a parameter as `{x}`"),
            ("/:x/b", "write a parameter as `{x}`"),
            ("/a/<x>", "write a parameter as `{x}`"),
            ("/a/*path", "write a parameter as `{path...}`"),
            ("/{a}?{a}", "two parameters"),
            ("/{}", "name"),
            ("/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", "eight"),
        ] {
            let error = RoutePattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(pattern), "{error}");
        }
    }
}
