//! What is allowed, and probably not meant.

mod fields;
mod secrets;
mod unverified;

use std::collections::BTreeSet;

use crate::{compile::Pages, template};
use millpond_site_format::{Problem, folder::Folder, suggest::closest};

/// Returns the notes on the pages of a folder that compiles.
pub fn notes(folder: &Folder, pages: &Pages) -> Vec<Problem> {
    let mut notes = unknown_claims(folder, pages);
    notes.extend(columns_of_one_name(pages));
    notes.extend(fields::misspelt(folder, pages));
    notes.extend(secrets::unnamed(pages));
    notes.extend(unverified::claims(pages));
    notes
}

/// Queries of which two columns have one name: one of them cannot be read.
fn columns_of_one_name(pages: &Pages) -> Vec<Problem> {
    let endpoints = pages.endpoints.iter();
    let queries = endpoints
        .filter_map(|endpoint| endpoint.page.as_ref())
        .flat_map(|page| &page.queries);
    let mut seen = BTreeSet::new();
    let mut notes = Vec::new();
    for query in queries.filter(|query| seen.insert((&query.file, query.line))) {
        let columns = query.statements[0].query.columns();
        let mut names = BTreeSet::new();
        let Some(twice) = columns.iter().find(|name| !names.insert(*name)) else {
            continue;
        };
        let message = format!("two columns of `{}` are called `{twice}`", query.name);
        notes.push(
            Problem::new(&query.file, message)
                .at(query.line, 1)
                .hint("only one of them can be read; give the other a name: select … as …"),
        );
    }
    notes
}

/// Claims that are asked for and that no form of the site gives, if one gives any.
fn unknown_claims(folder: &Folder, pages: &Pages) -> Vec<Problem> {
    let given = pages.claims_of_forms();
    if given.is_empty() {
        return Vec::new();
    }
    let pages = folder.pages.iter();
    let pages = pages.map(|(_, text)| (text.page(), text.text.as_str()));
    let partials = folder.partials.values();
    let partials = partials.map(|text| (text.partial(), text.text.as_str()));
    let templates = folder.templates.iter();
    let templates = templates.map(|(name, text)| (template::file_of(name).into(), text.as_str()));
    let mut notes = Vec::new();
    for (file, text) in pages.chain(partials).chain(templates) {
        for (at, name) in claims_in(text) {
            if given.contains(name) {
                continue;
            }
            let message = format!("no form gives the claim `{name}`");
            let known: Vec<&str> = given.iter().copied().collect();
            let hint = match closest(name, given.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the `-- claims:` lines give: {}", known.join(", ")),
            };
            notes.push(Problem::new(&file, message).at_offset(text, at).hint(hint));
        }
    }
    notes
}

/// The claims that a text names, with their places: `:claims.user`, `request.claims.user`, and in
/// lines such as `-- require: claims.user`.
fn claims_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const WORD: &str = "claims.";
    text.match_indices(WORD).filter_map(|(at, _)| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let is_directive = ["require:", "vary:"].iter().any(|word| {
            let rest = line.trim_start().strip_prefix("--").unwrap_or_default();
            rest.trim_start().starts_with(word)
        });
        let before = &text[..at];
        let is_claim = before.ends_with(':') || before.ends_with("request.");
        let name = &text[at + WORD.len()..];
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &name[..end.unwrap_or(name.len())];
        let is_named = !name.is_empty() && (is_claim || is_directive && before.ends_with(' '));
        is_named.then_some((at + WORD.len(), name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_where_they_are_asked_for() {
        let found = |text| -> Vec<&str> { claims_in(text).map(|(_, name)| name).collect() };
        assert_eq!(
            found(
                "-- require: claims.role = 'x' else /login\n-- vary: claims.name\nselect :claims.user, claims.id from claims"
            ),
            ["role", "name", "user"]
        );
        assert_eq!(
            found("{{ request.claims.user_1 }} claims.x {{ request.claims }}"),
            ["user_1"]
        );
    }
}
