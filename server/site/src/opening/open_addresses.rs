//! Rules on who may enter that close some addresses of a page and leave others open.
//!
//! `/en/admin/*` closes one address of `pages/[lang]/admin/accounts.html`; at `/de/admin/accounts`
//! the same page would be given to everybody. All rules count together, and what a rule names in
//! `except` or `open` is meant. Addresses are tried with the words of the rules in the place of the
//! parameters, and with a word that no rule names: it stands for all others.

use crate::core::Generation;
use millpond_site_compile::page::{Endpoint, guard::Guard};
use millpond_site_format::{
    Problem,
    access::{Require, SessionRequirements},
    param_value::{shown, typed},
    params::Param,
    problem::SETTINGS,
    route::{Pattern, Segment},
    rules::{FolderPattern, RequireRule, RequireRules, WORD},
};

/// At most this many addresses of a page are tried.
const MOST: usize = 4096;

/// The parts that are tried at least in the place of a parameter that takes the rest of a path.
const DEPTH: usize = 4;

/// Returns the rules that leave a page partly open, each with an address that is open.
pub(crate) fn partly_closed(generation: &Generation) -> Vec<Problem> {
    let rules = generation.rules.as_ref();
    let Some(guards) = rules.and_then(|rules| rules.guards.as_ref()) else {
        return Vec::new();
    };
    let faults = guards.rules.iter().filter_map(|rule| {
        let partial = PartialRule {
            generation,
            guards,
            rule,
        };
        let mut places = 0..generation.pages.endpoints.len();
        let of_page = places.find_map(|at| partial.of_page(at));
        of_page.or_else(|| partial.by_rewrite())
    });
    faults.collect()
}

/// Returns addresses at which an endpoint answers, with the words of these patterns.
pub(crate) fn addresses(
    generation: &Generation,
    at: usize,
    patterns: &[&FolderPattern],
) -> Vec<String> {
    let endpoint = &generation.pages.endpoints[at];
    let mut choices = endpoint.choices.iter().enumerate();
    let mut all = vec![String::new()];
    for (place, segment) in endpoint.pattern.segments.iter().enumerate() {
        let param = match segment {
            Segment::Literal(_) => None,
            Segment::Param(_) | Segment::Rest(_) => choices.next(),
        };
        let values = match (segment, param) {
            (_, Some((_, texts))) if !texts.is_empty() => texts.clone(),
            (_, Some((number, _))) => {
                let words = match segment {
                    Segment::Rest(_) => rests(patterns, place),
                    _ => words(patterns, place),
                };
                let taken = |word: &String| word == WORD || takes(endpoint, number, word);
                words.into_iter().filter(taken).collect()
            }
            (Segment::Literal(text) | Segment::Param(text) | Segment::Rest(text), None) => {
                vec![text.clone()]
            }
        };
        let values = &values[..values.len().min((MOST / all.len()).max(1))];
        let starts = all.iter();
        let longer = starts.flat_map(|start| values.iter().map(move |it| format!("{start}/{it}")));
        all = longer.collect();
    }
    if endpoint.pattern.segments.is_empty() {
        all = vec!["/".to_owned()];
    }
    let router = &generation.pages.router;
    all.retain(|path| router.find(path).is_some_and(|found| found.page == at));
    all
}

/// The words of patterns at a place, and one that no pattern has.
fn words(patterns: &[&FolderPattern], place: usize) -> Vec<String> {
    let words = patterns.iter().flat_map(|pattern| pattern.words(place));
    [WORD.to_owned()].into_iter().chain(words).collect()
}

/// Ends of paths from a place on, of one part up to one more than a pattern has.
fn rests(patterns: &[&FolderPattern], place: usize) -> Vec<String> {
    let longest = patterns.iter().map(|pattern| pattern.parts() + 1).max();
    let depth = longest.unwrap_or(0).saturating_sub(place).max(DEPTH);
    let mut all = words(patterns, place);
    let mut last = all.clone();
    for place in place + 1..place + depth {
        let words = words(patterns, place);
        let starts = last.iter();
        let longer = starts.flat_map(|start| words.iter().map(move |it| format!("{start}/{it}")));
        last = longer.take(MOST / depth).collect();
        all.extend_from_slice(&last);
    }
    all
}

struct PartialRule<'g> {
    generation: &'g Generation,
    guards: &'g RequireRules,
    rule: &'g RequireRule,
}

impl PartialRule<'_> {
    fn of_page(&self, at: usize) -> Option<Problem> {
        let (generation, rule) = (self.generation, self.rule);
        let endpoint = &generation.pages.endpoints[at];
        let closed = addresses(generation, at, &[&rule.path]);
        let is_closed = |path: &String| rule.holds_at(path) && !self.is_taken(path);
        let closed = closed.into_iter().find(is_closed)?;
        let excepted = self.guards.rules.iter().flat_map(|rule| &rule.except);
        let patterns: Vec<_> = excepted.chain([&rule.path]).collect();
        let all = addresses(generation, at, &patterns);
        let (method, open) = self.unguarded(endpoint).find_map(|method| {
            let is_open = |path: &String| self.is_open(method, path, &closed);
            let path = all.iter().find(|path| is_open(path))?;
            Some((method, asked_for(endpoint, path, is_open)))
        })?;
        let closed = asked_for(endpoint, &closed, |path| rule.holds_at(path));
        let covers = |meant: &String| {
            let meant = FolderPattern::parse(meant);
            meant.is_ok_and(|meant| all.iter().all(|path| meant.matches(path)))
        };
        let whole = endpoint.pattern.in_lines();
        let meant = Some(meant(&rule.path, &endpoint.pattern)).filter(covers);
        let remedy = format!(
            "close both: path = \"{}\"",
            meant.as_ref().unwrap_or(&whole)
        );
        Some(self.fault(method, (&closed, &open), &remedy, &whole))
    }

    /// Finds a rule for the address of a rewrite where none is for the page or file that answers.
    fn by_rewrite(&self) -> Option<Problem> {
        let (generation, rule) = (self.generation, self.rule);
        let rules = generation.rules.as_ref()?;
        let words = (0..8).flat_map(|place| rule.path.words(place));
        let words: Vec<String> = [WORD.to_owned()].into_iter().chain(words).collect();
        let asked = rules.rewritten_paths();
        let mut asked = asked.flat_map(|from| words.iter().map(|word| from.sample(word, word)));
        let method = rule.methods.first().map_or("GET", String::as_str);
        asked.find_map(|asked| {
            let (kind, _) = rules.before(&asked)?;
            let behind = generation.path_behind(&asked);
            let behind = behind.filter(|_| kind == "rewrite" && rule.holds_at(&asked))?;
            let found = generation.pages.router.find(&behind);
            let endpoint = found.map(|found| &generation.pages.endpoints[found.page]);
            let is_there = match endpoint {
                Some(endpoint) => self.unguarded(endpoint).any(|own| own == method),
                None => generation.answers(&behind),
            };
            let whole = endpoint.map_or_else(|| behind.clone(), |it| it.pattern.in_lines());
            let remedy = format!("close it too, by an entry with path = \"{whole}\"");
            let shown = [&asked, &behind].map(|path| path.replace(WORD, "x"));
            let fault = || self.fault(method, (&shown[0], &shown[1]), &remedy, &whole);
            (is_there && self.is_open(method, &behind, &asked)).then(fault)
        })
    }

    /// True if a redirect or a rewrite comes before the page at a path.
    fn is_taken(&self, path: &str) -> bool {
        let rules = self.generation.rules.as_ref();
        rules.is_some_and(|rules| rules.before(path).is_some())
    }

    /// True if a page is given at a path to visitors whom the rule keeps out at the `closed` one,
    /// and the rule does not say so. Counterexample: *a weaker rule for all paths, such as a
    /// sign-in.*
    fn is_open(&self, method: &str, path: &str, closed: &str) -> bool {
        let mut said = self.rule.open.iter().chain([&self.rule.path]);
        self.rule.holds_for(method)
            && !self.is_taken(path)
            && !said.any(|pattern| pattern.matches(path))
            && !self
                .guards
                .at(method, path)
                .any(|other| !other.holds_at(closed) || self.is_kept_by(&other.require))
    }

    /// True if a requirement keeps out whom the rule keeps out.
    fn is_kept_by(&self, other: &Require) -> bool {
        other
            .condition
            .is_as_strict_as(&self.rule.require.condition)
    }

    /// Returns the methods of an endpoint whose own files do not keep out whom the rule keeps out.
    fn unguarded(&self, endpoint: &Endpoint) -> impl Iterator<Item = &'static str> {
        let asks = |needs: &SessionRequirements, guards: &[Guard]| {
            needs.require.iter().any(|own| self.is_kept_by(own))
                || !guards.is_empty() && !needs.claims.is_empty()
        };
        let page = endpoint.page.iter();
        let page = page.filter(move |page| !asks(&page.needs, &page.guards));
        let forms = endpoint.forms.iter();
        let forms = forms.filter(move |form| !asks(&form.needs, &form.guards));
        page.map(|_| "GET")
            .chain(forms.map(|form| form.method.name()))
    }

    fn fault(
        &self,
        method: &str,
        (closed, open): (&str, &str),
        remedy: &str,
        whole: &str,
    ) -> Problem {
        let RequireRule { path, place, .. } = self.rule;
        let verb = if method == "GET" {
            ""
        } else {
            &format!("{method} ")
        };
        let rule = &path.pattern;
        let message =
            format!("the rule for `{rule}` closes {verb}{closed}, and {verb}{open} is open");
        let hint = format!("{remedy}; if it is open on purpose: open = [\"{whole}\"]");
        Problem::new(SETTINGS, message)
            .at(place.line, place.column)
            .hint(hint)
    }
}

/// The parameters of each file of an endpoint.
fn params(endpoint: &Endpoint) -> impl Iterator<Item = &[Param]> {
    let page = endpoint.page.iter().map(|page| &*page.params);
    page.chain(endpoint.forms.iter().map(|form| &*form.params))
}

/// True if a file of an endpoint takes a text for the part of the path with this number.
fn takes(endpoint: &Endpoint, number: usize, text: &str) -> bool {
    let is_taken = |param: &Param| param.in_path != Some(number) || typed(param, text).is_ok();
    params(endpoint).any(|params| params.iter().all(is_taken))
}

/// Returns an address like this one for which a visitor could ask.
fn asked_for(endpoint: &Endpoint, path: &str, is_like: impl Fn(&String) -> bool) -> String {
    let texts = ["x", "1", "2", "2026-01-01", "2026-01", "12:00"].map(str::to_owned);
    // 01 is 1 to a page, and another path to a rule.
    let choices = params(endpoint).flatten().flat_map(|param| &param.choices);
    let choices = choices.map(|value| format!("0{}", shown(value)));
    let is_taken = |text: &String| {
        let mut open = endpoint.choices.iter().enumerate();
        open.all(|(number, texts)| !texts.is_empty() || takes(endpoint, number, text))
    };
    let texts = texts.into_iter().chain(choices).filter(is_taken);
    let mut paths = texts.map(|text| path.replace(WORD, &text));
    paths.find(is_like).unwrap_or_else(|| path.to_owned())
}

/// Returns the rule's pattern with the page's parameters where it names one of their values.
fn meant(rule: &FolderPattern, page: &Pattern) -> String {
    let text = rule.pattern.to_string();
    let parts = text[1..].split('/').enumerate();
    let parts = parts.map(|(at, part)| match page.segments.get(at) {
        Some(Segment::Param(name)) if !part.contains('*') => format!("/:{name}"),
        _ => format!("/{part}"),
    });
    parts.collect()
}
