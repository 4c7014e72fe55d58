//! Paths to pages.

use std::{collections::HashMap, path::Path};

use crate::Problem;

/// One part of a page's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Literal(String),
    /// `[name]` in the file's name.
    Param(String),
    /// `[...name]`: the rest of the path, which is one part or more.
    Rest(String),
}

impl Segment {
    /// The name of a parameter.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Param(name) | Self::Rest(name) => Some(name),
        }
    }
}

/// The pattern of a page, made from its place below `pages/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    pub segments: Vec<Segment>,
}

impl Pattern {
    /// `stem` is the file's path below `pages/` without its ending: `topics/[slug]`, `index`.
    pub fn parse(file: &Path, stem: &str) -> Result<Self, Problem> {
        let mut parts: Vec<&str> = stem.split('/').collect();
        if parts.last() == Some(&"index") {
            parts.pop();
        }
        let segments = parts
            .iter()
            .map(|part| segment(file, part))
            .collect::<Result<Vec<_>, _>>()?;
        let pattern = Self { segments };
        let mut early = pattern.segments.iter().rev().skip(1);
        if early.any(|segment| matches!(segment, Segment::Rest(_))) {
            let message = "`[...name]` takes the rest of a path, and more stands behind it";
            return Err(Problem::new(file, message).hint("put it at the end of the path"));
        }
        let names: Vec<_> = pattern.params().collect();
        if let Some(twice) = names
            .iter()
            .enumerate()
            .find(|(at, name)| names[..*at].contains(name))
        {
            return Err(Problem::new(
                file,
                format!("the path names `{}` twice", twice.1),
            ));
        }
        Ok(pattern)
    }

    /// The names of its parameters, in order.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(Segment::param)
    }

    /// A path that it matches, with something at its parameters that no rule names.
    pub fn sample(&self) -> String {
        self.with(crate::rules::WORD)
    }

    /// Its path with a text in the place of each parameter.
    pub fn with(&self, value: &str) -> String {
        let parts = self.segments.iter().map(|segment| match segment {
            Segment::Literal(text) => text.as_str(),
            Segment::Param(_) | Segment::Rest(_) => value,
        });
        format!("/{}", parts.collect::<Vec<_>>().join("/"))
    }

    /// Returns its path as lines and settings write it: `/:lang/login`.
    pub fn in_lines(&self) -> String {
        let text = self.to_string();
        let rest = text.find("/{...").map_or(text.len(), |at| at + 1);
        let star = if rest < text.len() { "*" } else { "" };
        text[..rest].replace("/{", "/:").replace('}', "") + star
    }

    fn literal(&self) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            let Segment::Literal(text) = segment else {
                return None;
            };
            path.push('/');
            path.push_str(text);
        }
        Some(if path.is_empty() {
            "/".to_owned()
        } else {
            path
        })
    }

    /// Returns the parts of the path, none for a parameter. Patterns that match the same paths have
    /// the same parts.
    fn shape(&self) -> Vec<Option<&str>> {
        self.segments
            .iter()
            .map(|segment| match segment {
                Segment::Literal(text) => Some(text.as_str()),
                Segment::Param(_) => None,
                // No part of a path has a slash in it.
                Segment::Rest(_) => Some("/"),
            })
            .collect()
    }

    /// The values of the parameters in a path, which is also given in its parts.
    fn matches<'p>(&self, path: &'p str, parts: &[&'p str]) -> Option<Vec<&'p str>> {
        let has_rest = matches!(self.segments.last(), Some(Segment::Rest(_)));
        let is_longer = has_rest && parts.len() > self.segments.len();
        if parts.len() != self.segments.len() && !is_longer {
            return None;
        }
        let mut values = Vec::new();
        for (at, (segment, part)) in self.segments.iter().zip(parts).enumerate() {
            match segment {
                Segment::Rest(_) if parts[at..].iter().any(|part| part.is_empty()) => return None,
                Segment::Rest(_) => {
                    let before: usize = parts[..at].iter().map(|part| part.len() + 1).sum();
                    values.push(&path[1 + before..]);
                }
                Segment::Literal(text) if text == part => {}
                Segment::Literal(_) => return None,
                Segment::Param(_) if part.is_empty() => return None,
                Segment::Param(_) => values.push(*part),
            }
        }
        Some(values)
    }
}

/// The address of the page whose file is `stem`, with parameters as the file's name has them.
pub fn address_of(stem: &str) -> String {
    let path = match stem.rsplit_once('/') {
        Some((folder, "index")) => folder,
        None if stem == "index" => "",
        _ => stem,
    };
    format!("/{path}")
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(f, "/{text}")?,
                Segment::Param(name) => write!(f, "/{{{name}}}")?,
                Segment::Rest(name) => write!(f, "/{{...{name}}}")?,
            }
        }
        Ok(())
    }
}

fn segment(file: &Path, part: &str) -> Result<Segment, Problem> {
    let inner = part
        .strip_prefix('[')
        .and_then(|part| part.strip_suffix(']'));
    let is_name = |name: &str| {
        let is_in_it = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_in_it)
    };
    let rest = inner.and_then(|inner| inner.strip_prefix("..."));
    match inner {
        _ if rest.is_some_and(is_name) => Ok(Segment::Rest(rest.unwrap_or_default().to_owned())),
        Some(name) if is_name(name) => Ok(Segment::Param(name.to_owned())),
        None if !part.contains(['[', ']']) => Ok(Segment::Literal(part.to_owned())),
        _ => Err(Problem::new(file, format!("`{part}` is no part of a path"))
            .hint("a parameter fills a whole part, as in topics/[slug].html, or the rest of a path, as in docs/[...path].html")),
    }
}

/// Page that a path leads to: its index, and the values of its path parameters in order.
pub struct Match<'p> {
    pub page: usize,
    pub values: Vec<&'p str>,
}

/// All patterns of a site.
#[derive(Debug, Default)]
pub struct Router {
    literal: HashMap<String, usize, foldhash::fast::RandomState>,
    /// Most specific first: where two match, the one whose earlier part is literal wins.
    dynamic: Vec<(Pattern, usize)>,
    /// For a page, by its index: the texts that each parameter of its path may be; any if there are
    /// none. Pages that take any text are not here.
    choices: HashMap<usize, Box<[Vec<String>]>, foldhash::fast::RandomState>,
}

impl Router {
    /// Adds a pattern for the page `index`. The error is the index of a page that already has an
    /// equal pattern.
    pub fn insert(&mut self, pattern: &Pattern, index: usize) -> Result<(), usize> {
        if let Some(path) = pattern.literal() {
            return match self.literal.insert(path, index) {
                Some(other) => Err(other),
                None => Ok(()),
            };
        }
        if let Some((_, other)) = self
            .dynamic
            .iter()
            .find(|(other, _)| other.shape() == pattern.shape())
        {
            return Err(*other);
        }
        self.dynamic.push((pattern.clone(), index));
        self.dynamic.sort_by(|(a, _), (b, _)| {
            let rank = |pattern: &Pattern| {
                pattern
                    .segments
                    .iter()
                    .map(|segment| match segment {
                        Segment::Literal(_) => 0,
                        Segment::Param(_) => 1,
                        Segment::Rest(_) => 2,
                    })
                    .collect::<Vec<u8>>()
            };
            rank(a).cmp(&rank(b))
        });
        Ok(())
    }

    /// Lets a page answer only where the parameters of its path are among these texts; an empty
    /// list takes any.
    pub fn restrict(&mut self, index: usize, choices: &[Vec<String>]) {
        if choices.iter().any(|texts| !texts.is_empty()) {
            self.choices.insert(index, choices.into());
        }
    }

    /// True if the page takes these values for the parameters of its path.
    fn takes(&self, page: usize, values: &[&str]) -> bool {
        let Some(choices) = self.choices.get(&page) else {
            return true;
        };
        let mut all = choices.iter().zip(values);
        all.all(|(texts, value)| texts.is_empty() || texts.iter().any(|text| text == value))
    }

    /// Finds the page of a normalized path. A literal path costs one look-up and no allocation.
    pub fn find<'p>(&self, path: &'p str) -> Option<Match<'p>> {
        if let Some(&page) = self.literal.get(path) {
            return Some(Match {
                page,
                values: Vec::new(),
            });
        }
        if self.dynamic.is_empty() {
            return None;
        }
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        self.dynamic.iter().find_map(|(pattern, page)| {
            let values = pattern.matches(path, &parts)?;
            let is_taken = self.choices.is_empty() || self.takes(*page, &values);
            is_taken.then_some(Match {
                page: *page,
                values,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(stems: &[&str]) -> Router {
        let mut router = Router::default();
        for (index, stem) in stems.iter().enumerate() {
            router
                .insert(&Pattern::parse(Path::new("x"), stem).unwrap(), index)
                .unwrap();
        }
        router
    }

    #[test]
    fn only_a_whole_name_is_index() {
        let of = |stem| address_of(stem);
        assert_eq!(
            [of("index"), of("topics/index"), of("reindex"), of("a/[id]")],
            ["/", "/topics", "/reindex", "/a/[id]"]
        );
    }

    #[test]
    fn the_most_specific_page_wins() {
        let router = router(&[
            "index",
            "topics/[slug]",
            "topics/new",
            "[any]/new",
            "topics/index",
            "a/[x]/[y]",
            "a/[x]/z",
        ]);
        let find = |path| {
            router
                .find(path)
                .map(|found| (found.page, found.values.join(",")))
        };
        assert_eq!(find("/"), Some((0, String::new())));
        assert_eq!(find("/topics/rust"), Some((1, "rust".into())));
        assert_eq!(find("/topics/new"), Some((2, String::new())));
        assert_eq!(find("/other/new"), Some((3, "other".into())));
        assert_eq!(find("/topics"), Some((4, String::new())));
        assert_eq!(find("/a/1/2"), Some((5, "1,2".into())));
        assert_eq!(find("/a/1/z"), Some((6, "1".into())));
        assert_eq!(find("/topics/"), None);
        assert_eq!(find("/a/b/c/d"), None);
    }

    #[test]
    fn a_parameter_may_take_the_rest_of_a_path() {
        let router = router(&[
            "docs/[...path]",
            "docs/[page]",
            "docs/api/[name]",
            "[lang]/[...rest]",
        ]);
        let find = |path| {
            let found = router.find(path);
            found.map(|found| (found.page, found.values.join(",")))
        };
        assert_eq!(find("/docs/a"), Some((1, "a".into())));
        assert_eq!(find("/docs/a/b"), Some((0, "a/b".into())));
        assert_eq!(find("/docs/api/x"), Some((2, "x".into())));
        assert_eq!(find("/docs/api/x/y"), Some((0, "api/x/y".into())));
        assert_eq!(find("/en/a/b/c"), Some((3, "en,a/b/c".into())));
        for none in ["/docs/", "/docs", "/docs/a/", "/docs/a//b", "/en"] {
            assert_eq!(find(none), None, "{none}");
        }
        let pattern = Pattern::parse(Path::new("x"), "[lang]/docs/[...path]").unwrap();
        assert_eq!(pattern.to_string(), "/{lang}/docs/{...path}");
        assert_eq!(pattern.in_lines(), "/:lang/docs/*");
        for bad in ["[...a]/b", "[...]", "[..a]", "[...a]/[...b]", "x[...a]"] {
            assert!(Pattern::parse(Path::new("x"), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_answers_for_its_own_values_only() {
        let mut router = router(&["[lang]/plays/[slug]", "[any]/[folder]/x.png", "[lang]"]);
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        router.restrict(0, &[texts(&["en", "für"]), texts(&[])]);
        router.restrict(1, &[texts(&[]), texts(&[])]);
        router.restrict(2, &[texts(&["en"])]);
        let find = |path| router.find(path).map(|found| found.page);
        assert_eq!(find("/en/plays/x.png"), Some(0));
        assert_eq!(find("/für/plays/a"), Some(0));
        assert_eq!(find("/uploads/plays/x.png"), Some(1));
        assert_eq!(find("/uploads/plays/y.png"), None);
        assert_eq!(
            (find("/en"), find("/EN"), find("/robots.txt")),
            (Some(2), None, None)
        );
    }

    #[test]
    fn equal_patterns_and_bad_names_are_refused() {
        let mut router = router(&["a/[x]"]);
        assert_eq!(
            router.insert(&Pattern::parse(Path::new("x"), "a/[y]").unwrap(), 1),
            Err(0)
        );
        for bad in ["[", "a[b]", "[]", "[a b]", "[x]/[x]"] {
            assert!(Pattern::parse(Path::new("x"), bad).is_err(), "{bad}");
        }
    }
}
