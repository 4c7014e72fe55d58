//! Rules of the settings on who may enter a folder: `[[require]]`.

use std::collections::{BTreeSet, HashMap};

use super::{RulePosition, WORD, pattern::PathPattern, target::RuleTarget};
use crate::access::Require;

/// Requirement on a session at some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequireRule {
    pub path: FolderPattern,
    pub require: Require,
    /// Address to which a visitor is led, to be filled in with the values of the path's names.
    pub target: Option<RuleTarget>,
    /// Paths at which it does not hold.
    pub except: Vec<FolderPattern>,
    /// Paths that are open on purpose though it closes others of the same page.
    pub open: Vec<FolderPattern>,
    /// The methods for which it holds; all if there is none.
    pub methods: Vec<String>,
    pub place: RulePosition,
}

/// A pattern to which a slash at the end makes no difference: `/editor/*` is `/editor` too, and
/// `/editor` is `/editor/`. One of the two addresses leads to the other, or a folder is listed
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderPattern {
    pub pattern: PathPattern,
    other: Option<PathPattern>,
}

impl FolderPattern {
    /// Reads a pattern; what is wrong with it is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
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

    pub fn matches(&self, path: &str) -> bool {
        let is_other = || self.other.as_ref().is_some_and(|it| it.matches(path));
        self.pattern.matches(path) || is_other()
    }

    /// The number of parts of the pattern.
    pub fn parts(&self) -> usize {
        self.pattern.to_string().matches('/').count()
    }

    /// Returns the texts at a place of its paths, from 0: the parts of this place that are no
    /// names, and behind a `*` all.
    pub fn words(&self, place: usize) -> Vec<String> {
        let text = self.pattern.to_string();
        let star = text[1..].split('/').position(|part| part.contains('*'));
        let parts = text[1..].split('/').enumerate();
        let here = parts.filter(|(at, part)| {
            let is_here = match star {
                Some(star) if *at >= star => place >= star,
                _ => *at == place,
            };
            is_here && !part.is_empty() && !part.starts_with(':')
        });
        here.map(|(_, part)| part.replace('*', WORD)).collect()
    }

    /// The texts at each of the pattern's names, if it matches `path`.
    fn capture<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let other = || self.other.as_ref()?.capture(path);
        self.pattern.capture(path).or_else(other)
    }

    /// The first part of every path that matches, if they have the same one.
    fn first_part(&self) -> Option<&str> {
        let exact = self.pattern.exact();
        exact.map(first_part).or_else(|| self.pattern.first_part())
    }
}

impl RequireRule {
    /// True if it holds at a path in its normal form, for one method at least.
    pub fn holds_at(&self, path: &str) -> bool {
        self.path.matches(path) && !self.except.iter().any(|except| except.matches(path))
    }

    /// True if it holds for a method. What holds for GET holds for HEAD.
    pub fn holds_for(&self, method: &str) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        self.methods.is_empty() || self.methods.iter().any(|own| own == method)
    }
}

type Map = HashMap<String, Vec<usize>, foldhash::fast::RandomState>;

/// The rules, so that those for a path are found without a look at the others.
#[derive(Debug)]
pub struct RequireRules {
    pub rules: Vec<RequireRule>,
    /// By the first part of the path, in their order.
    by_first_part: Map,
    /// Rules for any first part.
    others: Vec<usize>,
    /// Addresses of files that a rule reaches by another address of the file, with that.
    by_other_address: HashMap<String, Vec<(usize, String)>, foldhash::fast::RandomState>,
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
            by_other_address: HashMap::default(),
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

    /// Iterates over the requirements for a method at a path in its normal form.
    pub fn at<'g, 'p>(
        &'g self,
        method: &'p str,
        path: &'p str,
    ) -> impl Iterator<Item = &'g RequireRule> + use<'g, 'p> {
        let here = self.listed(path);
        let here = here.filter(move |number| self.rules[*number].holds_at(path));
        let by_file = match self.by_other_address.is_empty() {
            true => None,
            false => self.by_other_address.get(path),
        };
        let by_file = by_file.into_iter().flatten().map(|(number, _)| *number);
        let rules = here.chain(by_file).map(|number| &self.rules[number]);
        rules.filter(move |rule| rule.holds_for(method))
    }

    /// Returns the path to which a rule of this `else` leads that holds at a path, with the parts
    /// of the path, or of the address by which it holds for the file there.
    pub fn led_to(&self, otherwise: &str, path: &str) -> Option<String> {
        let by_file = self.by_other_address.get(path).into_iter().flatten();
        let by_file = by_file.map(|(number, address)| (*number, address.as_str()));
        let mut all = self
            .listed(path)
            .map(|number| (number, path))
            .chain(by_file);
        all.find_map(|(number, path)| {
            let rule = &self.rules[number];
            let own = rule.require.otherwise.as_deref()?;
            // Another rule may have the same text, and other parts of the path by these names.
            let values = rule
                .path
                .capture(path)
                .filter(|_| std::ptr::eq(own, otherwise))?;
            Some(rule.target.as_ref()?.fill(&values, None))
        })
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

    /// Lets a rule for one address of a file hold at all its addresses: `files` are those of each.
    /// *Counterexample*: the rule names `/plan.html`, and the file is given at `/plan`, at the
    /// address of its folder, or as `/plan.html.gz`.
    pub fn reach_files(&mut self, files: impl Iterator<Item = Vec<String>>) {
        for addresses in files {
            let lists = addresses.iter().map(|path| self.listed(path));
            let numbers: BTreeSet<usize> = lists.flatten().collect();
            for number in numbers {
                let rule = &self.rules[number];
                let is_excepted = |path: &String| rule.except.iter().any(|it| it.matches(path));
                let reached = addresses.iter().find(|path| rule.path.matches(path));
                let Some(reached) = reached.filter(|_| !addresses.iter().any(is_excepted)) else {
                    continue;
                };
                let others = addresses.iter().filter(|path| !rule.path.matches(path));
                for other in others {
                    let list = self.by_other_address.entry(other.clone()).or_default();
                    if !list.iter().any(|(known, _)| *known == number) {
                        list.push((number, reached.clone()));
                    }
                }
            }
        }
    }
}

fn first_part(path: &str) -> &str {
    let rest = path.strip_prefix('/').unwrap_or(path);
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Condition;

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
            target: None,
            open: Vec::new(),
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
            let found = found.map(|rule| rule.require.condition.claim.clone());
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
}
