//! Rules that cannot do what they are there for: redirects in a circle, and rules that never apply.

use std::collections::HashMap;

use millpond_http::path;

use super::{PathPattern, RequireRule, RulePosition, RuleSet, Rules};
use crate::{Problem, problem::SETTINGS};

/// More consecutive redirects than any client follows (browsers give up at 20).
const HOPS: usize = 32;
/// A value for placeholders that no rule names.
pub const WORD: &str = "\u{2026}";

/// The redirects from which a client returns to an earlier address, or never reaches the end.
/// `moved_to` gives the path to which the folder itself redirects from a path, such as the path
/// without its final slash. A rewrite ends each chain, because the rewritten request is answered
/// without a redirect: so no cycle begins at a rewrite.
pub fn loops(rules: &Rules, moved_to: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let next = |path: &str| {
        rules.leads(path).or_else(|| {
            // A redirect to another site, or a rewrite.
            let is_taken = rules.before(path).is_some();
            (!is_taken).then(|| moved_to(path)).flatten()
        })
    };
    let circle = |start: &str| {
        let mut way = vec![start.to_owned()];
        while way.len() <= HOPS {
            let to = next(&way[way.len() - 1])?;
            let again = way.contains(&to);
            let back = to == start;
            way.push(to);
            if again {
                return back.then_some(way);
            }
        }
        Some(way)
    };
    let redirects = rules.set.redirects.iter();
    let found = redirects.filter_map(|redirect| {
        let way = circle(&redirect.from.sample(WORD, WORD))?;
        let shown = way.iter().take(6).map(String::as_str);
        let shown: Vec<_> = shown.collect();
        let more = if way.len() > 6 { " → and so on" } else { "" };
        let message = format!(
            "the redirect from `{}` leads in a circle: {}{more}",
            redirect.from,
            shown.join(" → ")
        );
        Some(
            fault(message, redirect.place)
                .hint("let one of them lead to an address that is answered"),
        )
    });
    found.collect()
}

/// The rules that lead a visitor to a path which a rule closes as well. `behind` gives the path
/// that answers at a path by a rewrite.
pub fn closed_targets(rules: &Rules, behind: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let Some(guards) = &rules.guards else {
        return Vec::new();
    };
    let is_closed = |path: &str| guards.at("GET", path).next().is_some();
    let circle = |rule: &RequireRule| {
        let target = rule.require.otherwise.as_deref()?;
        let path = path::normalize(target.split(['?', '#']).next()?).ok()?;
        let is_circle = is_closed(&path) || behind(&path).is_some_and(|path| is_closed(&path));
        let message = format!(
            "the rule for `{}` leads to {path}, which a [[require]] entry closes as well",
            rule.path.pattern
        );
        let hint = format!("leave it open: except = [\"{path}\"]");
        is_circle.then(|| fault(message, rule.place).hint(hint))
    };
    guards.rules.iter().filter_map(circle).collect()
}

/// The rules that never apply, because earlier rules match all their paths.
pub fn shadowed(set: &RuleSet) -> Vec<Problem> {
    let redirects: Vec<_> = set
        .redirects
        .iter()
        .map(|rule| (&rule.from, rule.place))
        .collect();
    let rewrites: Vec<_> = set
        .rewrites
        .iter()
        .map(|rule| (&rule.from, rule.place))
        .collect();
    let mut found = within("redirect", &redirects);
    found.extend(within("rewrite", &rewrites));
    let exact: HashMap<&str, RulePosition> = redirects
        .iter()
        .filter_map(|(from, place)| Some((from.exact()?, *place)))
        .collect();
    let wide: Vec<_> = redirects
        .iter()
        .filter(|(from, _)| from.exact().is_none())
        .collect();
    for (from, place) in rewrites {
        let equal = from.exact().and_then(|path| exact.get(path));
        let wider = || wide.iter().find(|(redirect, _)| covers(redirect, from));
        if let Some(before) = equal.or_else(|| wider().map(|(_, place)| place)) {
            found.push(never("rewrite", from, place, "redirect", *before));
        }
    }
    found
}

/// Checks the rules of one kind. Exact rules are tried first, then the others in their order.
fn within(kind: &str, rules: &[(&PathPattern, RulePosition)]) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut exact: HashMap<&str, RulePosition> = HashMap::new();
    let mut wide: Vec<(&PathPattern, RulePosition)> = Vec::new();
    for &(from, place) in rules {
        let before = match from.exact() {
            Some(path) => exact.get(path).copied(),
            None => wide
                .iter()
                .find(|(wide, _)| covers(wide, from))
                .map(|(_, place)| *place),
        };
        match (before, from.exact()) {
            (Some(before), _) => found.push(never(kind, from, place, kind, before)),
            (None, Some(path)) => drop(exact.insert(path, place)),
            (None, None) => wide.push((from, place)),
        }
    }
    found
}

/// True if `wide` matches every path of `narrow`. The values for the placeholders of `narrow` are
/// values that no rule names, so `wide` matches them only by its own placeholders.
fn covers(wide: &PathPattern, narrow: &PathPattern) -> bool {
    let rests = ["", WORD, "\u{2026}/\u{2026}/\u{2026}"];
    rests
        .iter()
        .all(|rest| wide.matches(&narrow.sample(WORD, rest)))
}

fn never(
    kind: &str,
    from: &PathPattern,
    place: RulePosition,
    by: &str,
    before: RulePosition,
) -> Problem {
    let message = format!(
        "the {kind} from `{from}` never applies: the {by} in line {} comes first",
        before.line
    );
    fault(message, place).hint("take one of them out, or put the narrower one first")
}

fn fault(message: String, place: RulePosition) -> Problem {
    Problem::new(SETTINGS, message).at(place.line, place.column)
}
