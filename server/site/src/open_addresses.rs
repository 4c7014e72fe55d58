//! Rules on who may enter that close some addresses of a page and leave others open.
//!
//! `/en/admin/*` closes one address of `pages/[lang]/admin/accounts.html`; at `/de/admin/accounts`
//! the same page would be given to everybody. All rules count together, and what a rule names in
//! `except` or `open` is meant. Addresses are tried with the words of the rules in the place of the
//! parameters, and with a word that no rule names: it stands for all others.

use crate::{
    Problem,
    config::FILE,
    core::Generation,
    page::{ArgumentSource, Endpoint},
    param_value::{shown as value_shown, typed},
    params::Param,
    route::{Pattern, Segment},
    rules::{FolderPattern, RequireRule, RequireRules, WORD},
};

/// At most this many addresses of a page are tried.
const MOST: usize = 4096;

/// Returns the rules that leave a page partly open, each with an address that is open.
pub(crate) fn partly_closed(generation: &Generation) -> Vec<Problem> {
    let faults = partial_rules(generation).filter_map(|rule| {
        let mut places = 0..generation.pages.endpoints.len();
        let of_page = places.find_map(|at| rule.of_page(at));
        of_page.or_else(|| rule.by_rewrite())
    });
    faults.collect()
}

/// Returns notes on rules for one page that leave open what is below or beside it: `/admin` closes
/// neither `/admin/users` nor `/admin.csv`.
pub(crate) fn beside(generation: &Generation) -> Vec<Problem> {
    partial_rules(generation)
        .filter_map(|rule| rule.beside())
        .collect()
}

fn partial_rules(generation: &Generation) -> impl Iterator<Item = PartialRule<'_>> {
    let rules = generation.rules.as_ref();
    let guards = rules.and_then(|rules| rules.guards.as_ref()).into_iter();
    guards.flat_map(move |guards| {
        let rules = guards.rules.iter();
        rules.map(move |rule| PartialRule {
            generation,
            guards,
            rule,
        })
    })
}

/// Returns addresses at which an endpoint answers, with the words of these patterns.
pub(crate) fn addresses<'f>(
    generation: &Generation,
    at: usize,
    patterns: impl Iterator<Item = &'f FolderPattern> + Clone,
) -> Vec<String> {
    let endpoint = &generation.pages.endpoints[at];
    let Endpoint {
        pattern, choices, ..
    } = endpoint;
    let mut choices = choices.iter().enumerate();
    let mut all = vec![String::new()];
    for (place, segment) in pattern.segments.iter().enumerate() {
        let values = match segment {
            Segment::Literal(text) => vec![text.clone()],
            Segment::Param(_) => match choices.next() {
                Some((_, texts)) if !texts.is_empty() => texts.clone(),
                param => {
                    let at = param.map_or(0, |(at, _)| at);
                    let named = patterns.clone().flat_map(|pattern| pattern.words(place));
                    let mut words = vec![WORD.to_owned()];
                    for word in named.filter(|word| takes(endpoint, at, word)) {
                        if !words.contains(&word) {
                            words.push(word);
                        }
                    }
                    words
                }
            },
        };
        let values = &values[..values.len().min((MOST / all.len()).max(1))];
        let starts = all.iter();
        let longer = starts.flat_map(|start| values.iter().map(move |it| format!("{start}/{it}")));
        all = longer.collect();
    }
    if pattern.segments.is_empty() {
        all = vec!["/".to_owned()];
    }
    let router = &generation.pages.router;
    all.retain(|path| router.find(path).is_some_and(|found| found.page == at));
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
        let own = std::iter::once(&rule.path);
        let closed = addresses(generation, at, own.clone());
        let is_closed = |path: &String| rule.holds_at(path) && !self.is_taken(path);
        let closed = closed.into_iter().find(is_closed)?;
        let excepted = self.guards.rules.iter().flat_map(|rule| &rule.except);
        let all = addresses(generation, at, own.chain(excepted));
        let mut open = unguarded(endpoint).filter_map(|method| {
            let path = all.iter().find(|path| self.is_open(method, path))?;
            Some((
                method,
                shown(endpoint, path, |path| self.is_open(method, path)),
            ))
        });
        let (method, open) = open.next()?;
        let whole = endpoint.pattern.in_lines();
        let covers = |path: &FolderPattern| all.iter().all(|address| path.matches(address));
        let meant = meant(&rule.path, &endpoint.pattern);
        let meant = meant.filter(|meant| FolderPattern::parse(meant).is_ok_and(|it| covers(&it)));
        let meant = meant.unwrap_or_else(|| whole.clone());
        let closed = shown(endpoint, &closed, |path| rule.holds_at(path));
        let remedy = format!("close both: path = \"{meant}\"");
        Some(self.fault((method, &closed, &open), &remedy, &whole))
    }

    /// Finds a rule for the address of a rewrite where none is for the page or file that answers.
    fn by_rewrite(&self) -> Option<Problem> {
        let (generation, rule) = (self.generation, self.rule);
        let rules = generation.rules.as_ref()?;
        let text = rule.path.pattern.to_string();
        let named = (0..text.matches('/').count()).flat_map(|place| rule.path.words(place));
        let words: Vec<String> = [WORD.to_owned()].into_iter().chain(named).collect();
        let asked = rules.rewritten_paths();
        let mut asked = asked.flat_map(|from| words.iter().map(|word| from.sample(word, word)));
        asked.find_map(|asked| {
            let (kind, _) = rules.before(&asked)?;
            let behind = generation.path_behind(&asked);
            let behind = behind.filter(|_| kind == "rewrite" && rule.holds_at(&asked))?;
            let (method, open, whole) = match generation.pages.router.find(&behind) {
                Some(found) => {
                    let endpoint = &generation.pages.endpoints[found.page];
                    let method =
                        unguarded(endpoint).find(|method| self.is_open(method, &behind))?;
                    let open = shown(endpoint, &behind, |path| self.is_open(method, path));
                    (method, open, endpoint.pattern.in_lines())
                }
                None => {
                    let is_open = generation.answers(&behind) && self.is_open("GET", &behind);
                    is_open.then(|| ("GET", behind.clone(), behind.clone()))?
                }
            };
            let remedy = format!("close it too, by an entry with path = \"{whole}\"");
            let closed = asked.replace(WORD, "x");
            Some(self.fault((method, &closed, &open), &remedy, &whole))
        })
    }

    fn beside(&self) -> Option<Problem> {
        let text = self.rule.path.pattern.to_string();
        let text = text.trim_end_matches('/');
        let open = ["/*", ".*"].iter().find_map(|end| {
            let wide = FolderPattern::parse(&format!("{text}{end}")).ok()?;
            let endpoints = self.generation.pages.endpoints.iter().enumerate();
            let mut open = endpoints.filter_map(|(at, endpoint)| {
                let paths = addresses(self.generation, at, std::iter::once(&wide)).into_iter();
                let mut paths = paths.filter(|path| wide.pattern.matches(path));
                let is_open =
                    |path: &String| unguarded(endpoint).any(|method| self.is_open(method, path));
                let path = paths.find(is_open)?;
                Some((shown(endpoint, &path, is_open), endpoint.pattern.in_lines()))
            });
            let (path, whole) = open.next()?;
            let all = if *end == "/*" {
                format!("{text}/*")
            } else {
                whole.clone()
            };
            Some((path, all, whole))
        });
        let (path, all, whole) = open.filter(|_| !text.is_empty() && !text.contains('*'))?;
        let message = format!(
            "the rule for `{}` does not hold at {path}",
            self.rule.path.pattern
        );
        let remedy = format!("close it too, by path = \"{all}\"");
        Some(self.problem(message, &remedy, &whole))
    }

    /// True if a redirect or a rewrite comes before the page at a path.
    fn is_taken(&self, path: &str) -> bool {
        let rules = self.generation.rules.as_ref();
        rules.is_some_and(|rules| rules.before(path).is_some())
    }

    /// True if a page is given to everybody at a path, and the rule does not say so.
    fn is_open(&self, method: &str, path: &str) -> bool {
        let mut said = self.rule.open.iter().chain([&self.rule.path]);
        self.rule.holds_for(method)
            && !self.is_taken(path)
            && !said.any(|pattern| pattern.matches(path))
            && self.guards.at(method, path).next().is_none()
    }

    fn fault(
        &self,
        (method, closed, open): (&str, &str, &str),
        remedy: &str,
        whole: &str,
    ) -> Problem {
        let method = match method {
            "GET" => String::new(),
            method => format!("{method} "),
        };
        let message = format!(
            "the rule for `{}` closes {method}{closed}, and {method}{open} is open",
            self.rule.path.pattern
        );
        self.problem(message, remedy, whole)
    }

    fn problem(&self, message: String, remedy: &str, whole: &str) -> Problem {
        let place = self.rule.place;
        let problem = Problem::new(FILE, message).at(place.line, place.column);
        problem.hint(format!(
            "{remedy}; if it is open on purpose: open = [\"{whole}\"]"
        ))
    }
}

/// Returns the methods of an endpoint whose own files ask for no claim.
fn unguarded(endpoint: &Endpoint) -> impl Iterator<Item = &'static str> + '_ {
    let page = endpoint.page.iter().filter(|page| {
        // The values of claims follow those of the parameters.
        let claims = page.params.len()..;
        let guards = page.guards.iter();
        let mut guards = guards.flat_map(|guard| &page.queries[guard.query].statements);
        let asks = guards.any(|it| it.args.iter().any(|place| claims.contains(place)));
        page.needs.require.is_empty() && !asks
    });
    let forms = endpoint.forms.iter().filter(|form| {
        let claims = form.params.len()..;
        let guards = form.guards.iter();
        let mut values = guards.flat_map(|guard| &form.steps[guard.query].bind);
        let is_claim = |value: &ArgumentSource| matches!(value, ArgumentSource::Param(place) if claims.contains(place));
        form.needs.require.is_empty() && !values.any(is_claim)
    });
    page.map(|_| "GET")
        .chain(forms.map(|form| form.method.name()))
}

/// The parameters of each file of an endpoint.
fn params(endpoint: &Endpoint) -> impl Iterator<Item = &[Param]> {
    let page = endpoint.page.iter().map(|page| &*page.params);
    page.chain(endpoint.forms.iter().map(|form| &*form.params))
}

/// True if a file of an endpoint takes a text for the part of the path with this number.
fn takes(endpoint: &Endpoint, at: usize, text: &str) -> bool {
    let is_taken = |param: &Param| param.in_path != Some(at) || typed(param, text).is_ok();
    params(endpoint).any(|params| params.iter().all(is_taken))
}

/// Returns an address like this one for which a visitor could ask.
fn shown(endpoint: &Endpoint, path: &str, is_like: impl Fn(&String) -> bool) -> String {
    const TEXTS: [&str; 8] = [
        "x",
        "1",
        "2",
        "2026-01-01",
        "2026-01",
        "12:00",
        "a@example.org",
        "00000000-0000-0000-0000-000000000000",
    ];
    let choices = params(endpoint).flatten().flat_map(|param| &param.choices);
    // 01 is 1 to a page, and another path to a rule.
    let choices = choices.map(|value| format!("0{}", value_shown(value)));
    let texts = TEXTS.iter().map(|text| (*text).to_owned()).chain(choices);
    let count = endpoint.pattern.params().count();
    let is_taken = |text: &String| {
        (0..count).all(|at| !endpoint.choices[at].is_empty() || takes(endpoint, at, text))
    };
    let mut paths = texts.filter(is_taken).map(|text| path.replace(WORD, &text));
    paths.find(is_like).unwrap_or_else(|| path.to_owned())
}

/// The rule's pattern with the page's parameters where the rule names one of their values.
fn meant(rule: &FolderPattern, page: &Pattern) -> Option<String> {
    let text = rule.pattern.to_string();
    let parts = text[1..]
        .split('/')
        .enumerate()
        .map(|(at, part)| match page.segments.get(at) {
            Some(Segment::Param(name)) if !part.contains('*') => format!(":{name}"),
            _ => part.to_owned(),
        });
    let parts: Vec<String> = parts.collect();
    Some(format!("/{}", parts.join("/"))).filter(|meant| *meant != text)
}
