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
        for part in query.into_iter().flat_map(|query| query.split('&')) {
            let name = name_in_braces(part)
                .ok_or_else(|| fault("has a query that is not of the form `?{a}&{b}`"))?;
            names.push(name.into());
        }
        check_names(&names, fault)?;
        Ok(Self {
            segments,
            names: names.into(),
            in_path,
        })
    }
}

fn check_names(names: &[Box<str>], fault: impl Fn(&str) -> RouteError) -> Result<(), RouteError> {
    if names.len() > MAX_PARAMS {
        return Err(fault("has more than eight parameters"));
    }
    for (at, name) in names.iter().enumerate() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
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
        assert_eq!(RoutePattern::parse("/").unwrap().segments.len(), 1);
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
            ("/a?b={c}", "query"),
            ("/a?", "query"),
            ("/{a}?{a}", "two parameters"),
            ("/{}", "name"),
            ("/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", "eight"),
        ] {
            let error = RoutePattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(pattern), "{error}");
        }
    }
}
