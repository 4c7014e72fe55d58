//! Rules of the settings on who may enter a folder: `[[require]]`.

use std::collections::{BTreeSet, HashMap};

use super::{RulePosition, pattern::PathPattern};
use crate::{config::FileSettings, route::Segment, session::Require, statics::Statics};

/// What is required of a session at some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequireRule {
    pub(crate) path: FolderPattern,
    pub(crate) require: Require,
    /// Paths at which it does not hold.
    pub(crate) except: Vec<FolderPattern>,
    /// The methods for which it holds; all if there is none.
    pub(crate) methods: Vec<String>,
    pub(crate) place: RulePosition,
}

/// A pattern to which a slash at the end makes no difference: `/editor/*` is `/editor` too, and
/// `/editor` is `/editor/`. One of the two addresses leads to the other, or a folder is listed
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderPattern {
    pub(crate) pattern: PathPattern,
    other: Option<PathPattern>,
}

impl FolderPattern {
    /// Reads a pattern; what is wrong with it is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let pattern = PathPattern::parse(text)?;
        let bare = text.strip_suffix("/*").or_else(|| text.strip_suffix('/'));
        let other = match bare {
            Some("") => None,
            Some(bare) => Some(PathPattern::parse(bare)?),
            None if text.ends_with('*') => None,
            None => Some(PathPattern::parse(&format!("{text}/"))?),
        };
        Ok(Self { pattern, other })
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        let is_other = || self.other.as_ref().is_some_and(|it| it.matches(path));
        self.pattern.matches(path) || is_other()
    }

    /// Whether a path of a page with values in its path may match.
    pub(crate) fn may_match(&self, segments: &[Segment]) -> bool {
        let text = self.pattern.to_string();
        let parts: Vec<&str> = text[1..].split('/').collect();
        for (at, part) in parts.iter().enumerate() {
            if let Some((beginning, _)) = part.split_once('*') {
                return match segments.get(at) {
                    None => *part == "*",
                    Some(Segment::Literal(text)) => text.starts_with(beginning),
                    Some(Segment::Param(_)) => true,
                };
            }
            let fits = match segments.get(at) {
                None => false,
                Some(Segment::Literal(text)) => text == part || part.starts_with(':'),
                Some(Segment::Param(_)) => !part.is_empty(),
            };
            if !fits {
                return false;
            }
        }
        parts.len() == segments.len()
    }

    /// The first part of every path that matches, if they have the same one.
    fn first_part(&self) -> Option<&str> {
        let exact = self.pattern.exact();
        exact.map(first_part).or_else(|| self.pattern.first_part())
    }
}

impl RequireRule {
    /// Whether it holds at a path in its normal form, for one method at least.
    pub(crate) fn holds_at(&self, path: &str) -> bool {
        self.path.matches(path) && !self.except.iter().any(|except| except.matches(path))
    }

    /// Whether it holds for a method. What holds for GET holds for HEAD.
    pub(crate) fn holds_for(&self, method: &str) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        self.methods.is_empty() || self.methods.iter().any(|own| own == method)
    }
}

type Map = HashMap<String, Vec<usize>, foldhash::fast::RandomState>;

/// The rules, so that those for a path are found without a look at the others.
#[derive(Debug)]
pub(crate) struct RequireRules {
    pub(crate) rules: Vec<RequireRule>,
    /// By the first part of the path, in their order.
    by_first_part: Map,
    /// Those for any first part.
    others: Vec<usize>,
    /// Addresses of files that a rule reaches by another address of the file.
    by_other_address: Map,
}

impl RequireRules {
    /// None where there is no rule.
    pub(super) fn compile(rules: &[RequireRule]) -> Option<Self> {
        if rules.is_empty() {
            return None;
        }
        let mut guards = Self {
            rules: rules.to_vec(),
            by_first_part: Map::default(),
            others: Vec::new(),
            by_other_address: Map::default(),
        };
        for (number, rule) in rules.iter().enumerate() {
            let list = match rule.path.first_part() {
                Some(part) => guards.by_first_part.entry(part.to_owned()).or_default(),
                None => &mut guards.others,
            };
            list.push(number);
        }
        Some(guards)
    }

    /// What is required for a method at a path in its normal form.
    pub(crate) fn at<'g, 'p>(
        &'g self,
        method: &'p str,
        path: &'p str,
    ) -> impl Iterator<Item = &'g Require> + use<'g, 'p> {
        let here = self.listed(path);
        let here = here.filter(move |number| self.rules[*number].holds_at(path));
        let by_file = match self.by_other_address.is_empty() {
            true => None,
            false => self.by_other_address.get(path),
        };
        let all = here.chain(by_file.into_iter().flatten().copied());
        let rules = all.map(|number| &self.rules[number]);
        let rules = rules.filter(move |rule| rule.holds_for(method));
        rules.map(|rule| &rule.require)
    }

    /// The rules that may hold at a path, by its first part, in the order of the file.
    fn listed<'g>(&'g self, path: &str) -> impl Iterator<Item = usize> + use<'g> {
        let own = self.by_first_part.get(first_part(path));
        let mut own = own
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .copied()
            .peekable();
        let mut others = self.others.iter().copied().peekable();
        std::iter::from_fn(move || match (own.peek(), others.peek()) {
            (Some(one), Some(other)) if other < one => others.next(),
            (Some(_), _) => own.next(),
            (None, _) => others.next(),
        })
    }

    /// Lets a rule for one address of a file hold at all its addresses. *Counterexample*: the rule
    /// names `/plan.html`, and the file is given at `/plan`, at the address of its folder, or as
    /// `/plan.html.gz`.
    pub(crate) fn reach_files(&mut self, statics: &Statics, settings: &FileSettings) {
        for (path, _) in statics.files() {
            let addresses = addresses(path, statics, settings);
            let lists = addresses.iter().map(|path| self.listed(path));
            let numbers: BTreeSet<usize> = lists.flatten().collect();
            for number in numbers {
                let rule = &self.rules[number];
                let is_excepted = |path: &String| rule.except.iter().any(|it| it.matches(path));
                let is_reached = addresses.iter().any(|path| rule.path.matches(path));
                if !is_reached || addresses.iter().any(is_excepted) {
                    continue;
                }
                let others = addresses.iter().filter(|path| !rule.path.matches(path));
                for other in others {
                    let list = self.by_other_address.entry(other.clone()).or_default();
                    if !list.contains(&number) {
                        list.push(number);
                    }
                }
            }
        }
    }
}

/// Every path at which the content of the file at `path` is given.
fn addresses(path: &str, statics: &Statics, settings: &FileSettings) -> Vec<String> {
    // A compressed file has the content of the file of which it is made.
    let plain = [".gz", ".br", ".zst"].into_iter();
    let plain = plain.filter_map(|ending| path.strip_suffix(ending));
    let plain = plain.filter(|plain| statics.find(plain).is_some());
    let mut all = vec![path.to_owned()];
    for path in plain.chain([path]) {
        let (folder, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        if settings.index_rank(name).is_some() {
            let bare = folder.trim_end_matches('/');
            all.extend([folder, bare].map(str::to_owned));
        }
        if settings.clean_urls
            && let Some(short) = path.strip_suffix(".html")
        {
            all.extend([short.to_owned(), format!("{short}/")]);
        }
        all.push(path.to_owned());
    }
    all.retain(|path| !path.is_empty());
    all.sort_unstable();
    all.dedup();
    all
}

/// The first part of a path.
fn first_part(path: &str) -> &str {
    let rest = path.strip_prefix('/').unwrap_or(path);
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Condition;

    fn rule(path: &str, claim: &str, except: &[&str], methods: &[&str]) -> RequireRule {
        let except = except
            .iter()
            .map(|path| FolderPattern::parse(path).unwrap());
        RequireRule {
            path: FolderPattern::parse(path).unwrap(),
            require: Require {
                condition: Condition::parse(claim).unwrap(),
                otherwise: None,
            },
            except: except.collect(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            place: RulePosition::default(),
        }
    }

    #[test]
    fn all_rules_for_a_path_hold() {
        let guards = RequireRules::compile(&[
            rule("/*", "a", &["/login", "/public/*"], &[]),
            rule("/editor/*", "b", &[], &[]),
            rule("/editor/posts/:id", "c", &[], &[]),
            rule("/:any/posts/*", "d", &[], &["POST", "GET"]),
            rule("/about", "e", &[], &[]),
            rule("/old*", "f", &[], &[]),
        ]);
        let guards = guards.unwrap();
        let at = |method: &str, path: &str| {
            let found = guards.at(method, path);
            let found = found.map(|require| require.condition.claim.clone());
            found.collect::<String>()
        };
        for (method, path, expected) in [
            ("GET", "/", "a"),
            ("GET", "/login", ""),
            ("POST", "/login", ""),
            ("GET", "/login/", ""),
            ("GET", "/login/x", "a"),
            ("GET", "/public", ""),
            ("GET", "/public/x", ""),
            ("GET", "/publicx", "a"),
            ("GET", "/editor", "ab"),
            ("GET", "/editor/", "ab"),
            ("GET", "/editors", "a"),
            ("GET", "/editor/posts", "abd"),
            ("PUT", "/editor/posts", "ab"),
            ("HEAD", "/editor/posts/7", "abcd"),
            ("OPTIONS", "/editor/posts/7", "abc"),
            ("POST", "/x/posts/7", "ad"),
            ("GET", "//editor", "a"),
            ("GET", "/about", "ae"),
            ("GET", "/about/", "ae"),
            ("GET", "/about/x", "a"),
            ("GET", "/editor/posts/7/", "abcd"),
            ("GET", "/old", "af"),
            ("GET", "/older/x", "af"),
        ] {
            assert_eq!(at(method, path), expected, "{method} {path}");
        }
        assert!(RequireRules::compile(&[]).is_none());
    }

    #[test]
    fn a_rule_may_reach_a_page_for_some_values() {
        let may = |rule: &str, page: &str| {
            let page = crate::route::Pattern::parse(std::path::Path::new("x"), page);
            let rule = FolderPattern::parse(rule).unwrap();
            rule.may_match(&page.unwrap().segments)
        };
        for (rule, page, expected) in [
            ("/shop/admin/*", "[section]/admin/[id]", true),
            ("/shop/admin/*", "[section]/admin", true),
            ("/shop/admin/*", "[section]/[page]", true),
            ("/shop/admin/*", "[section]", false),
            ("/shop/admin", "[section]/[page]/[id]", false),
            ("/:any/admin", "shop/[page]", true),
            ("/ed*", "[any]", true),
            ("/ed*", "shop/[any]", false),
            ("/*", "[any]", true),
        ] {
            assert_eq!(may(rule, page), expected, "{rule} {page}");
        }
    }
}
