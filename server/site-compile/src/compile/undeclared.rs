//! Values that a write would take from the visitor though nothing says that the visitor sends them:
//! a misspelt column or claim would let visitors write into rows of others.

use std::collections::BTreeSet;

use millpond_db::{self as db, ValueKind, sql::Lexer};

use super::{parameters::SqlFile, signing};
use millpond_site_format::{
    Problem,
    access::RESERVED,
    folder::Folder,
    script::{Declaration, FileLine, NamedQuery, Rows, Script},
    today::TODAY,
};

/// The claims that the forms of a folder give. A file that cannot be read is reported elsewhere.
pub(super) fn claims(folder: &Folder) -> BTreeSet<String> {
    let scripts = folder
        .pages
        .iter()
        .filter(|(path, _)| path.ends_with(".sql"));
    let scripts = scripts.filter_map(|(_, text)| Script::parse(&text.page(), &text.text).ok());
    let claims = scripts.flat_map(|script| script.session.claims);
    claims.map(|claim| claim.name).collect()
}

/// Steps whose rows are lost, and parameters of steps that neither a line, the path nor a step
/// before gives. A file of one query needs no `-- param:` lines as long as it has none, and as no
/// claim of the site has nearly the same name. The parameters in `given` come from elsewhere.
pub(super) fn undeclared(
    source: SqlFile<'_>,
    prepared: &[(&NamedQuery, db::Query)],
    given: &BTreeSet<(usize, String)>,
    claims: &BTreeSet<String>,
) -> Vec<Problem> {
    let lost: Vec<Problem> = prepared
        .iter()
        .filter_map(|step| lost_rows(source, step))
        .collect();
    if !lost.is_empty() {
        return lost;
    }
    let files = source.script.files.iter().flat_map(FileLine::declarations);
    let files: Vec<String> = files.map(|declared| declared.name).collect();
    let mut lines = source.script.params.iter();
    let is_own = |line: &Declaration| line.line > 0 && !files.contains(&line.name);
    let needs_lines = lines.any(is_own) || prepared.len() > 1;
    let mut reported = BTreeSet::new();
    let mut problems = Vec::new();
    for (step, (named, query)) in prepared.iter().enumerate() {
        for param in query.params().iter() {
            let name = &*param.name;
            let is_known = given.contains(&(step, name.to_owned()))
                || name.starts_with(RESERVED)
                || source.declared(name).is_some()
                || source.in_path(name).is_some()
                || name == TODAY
                || signing::passwords(&source.script.session).any(|password| password == name);
            if is_known || !reported.insert(name.to_owned()) {
                continue;
            }
            // A sign-in is sent by who has no claims yet.
            let signs_in = !source.script.session.claims.is_empty();
            let mut claims = claims.iter().filter(|_| !signs_in);
            let claim = claims.find(|claim| is_like(name, claim));
            let is_claim = claim.is_some_and(|claim| claim == name);
            let claim = claim.map(|claim| format!("did you mean `:claims.{claim}`?"));
            let meant = meant_column(prepared, step, name).or(claim);
            if needs_lines || meant.is_some() {
                let message = match is_claim && !needs_lines {
                    true => format!("`:{name}` could be a field of the form or the claim `{name}`"),
                    false => format!(
                        "nothing gives `:{name}`, so any visitor could: no line declares it, and no `:one` query before has such a column"
                    ),
                };
                let declaration = format!(
                    "if the visitor sends it, declare it: -- param: {name} {}",
                    type_name(param.kind)
                );
                let hint = match meant {
                    Some(meant) => format!("{meant} {declaration}"),
                    None => declaration,
                };
                problems.push(source.at_query(named, name, message).hint(hint));
            }
        }
    }
    problems
}

/// Claims that a page takes from its address.
pub(super) struct OpenClaims {
    /// True if the page's own file lets in only visitors with a session.
    pub(super) is_closed: bool,
    pub(super) problems: Vec<Problem>,
}

/// Parameters of a page that no line declares and that have the name of a claim: each visitor would
/// choose whose rows the page shows.
pub(super) fn claims_from_visitors(
    source: SqlFile<'_>,
    queries: &[(&NamedQuery, db::Query)],
    claims: &BTreeSet<String>,
) -> OpenClaims {
    let required = source.script.session.require.iter();
    let required = required.map(|require| require.condition.claim.as_str());
    let required: BTreeSet<&str> = required.collect();
    let is_used = queries.iter().any(|(_, query)| {
        let params = query.params();
        params.iter().any(|param| param.name.starts_with(RESERVED))
    });
    let claims = claims.iter().map(String::as_str);
    let claims: BTreeSet<&str> = claims.chain(required.iter().copied()).collect();
    let mut reported = BTreeSet::new();
    let mut problems = Vec::new();
    for (named, query) in queries {
        for param in query.params().iter() {
            let name = &*param.name;
            let is_given = name.starts_with(RESERVED)
                || source.declared(name).is_some()
                || source.in_path(name).is_some();
            let Some(claim) = claims
                .iter()
                .find(|claim| !is_given && is_like(name, claim))
            else {
                continue;
            };
            if reported.insert(name.to_owned()) {
                let message = format!(
                    "nothing gives `:{name}`, so each visitor could choose it in the address of a page that requires a session"
                );
                let kind = type_name(param.kind);
                problems.push(source.at_query(named, name, message).hint(format!(
                    "did you mean `:claims.{claim}`? If visitors may choose it, declare it: -- param: {name} {kind}"
                )));
            }
        }
    }
    OpenClaims {
        is_closed: is_used || !required.is_empty(),
        problems,
    }
}

/// A step that returns rows and is said to give none.
fn lost_rows(source: SqlFile<'_>, (named, query): &(&NamedQuery, db::Query)) -> Option<Problem> {
    let returns = !query.columns().is_empty() && {
        let mut tokens = Lexer::new(&named.sql, source.dialect);
        tokens.any(|token| token.is_word("returning"))
    };
    let name = &named.name;
    (named.rows == Rows::Exec && returns).then(|| {
        let message = format!("query `{name}` is `:exec`, so what it returns is lost");
        Problem::new(source.file, message)
            .at(named.line, 1)
            .hint(format!(
                "`-- name: {name} :one` gives its columns to the queries after it and to the redirect; else leave out `returning`"
            ))
    })
}

/// The column that was probably meant: of a query that does not give its columns to this step, or
/// one without the name of its query.
fn meant_column(prepared: &[(&NamedQuery, db::Query)], step: usize, name: &str) -> Option<String> {
    prepared
        .iter()
        .enumerate()
        .find_map(|(at, (named, query))| {
            let columns = query.columns();
            let query = &named.name;
            if at >= step {
                return None;
            }
            if columns.iter().any(|column| **column == *name) {
                return Some(format!(
                    "query `{query}` has this column, but gives several rows: make it `:one`."
                ));
            }
            let rest = name.strip_prefix(&**query)?.strip_prefix('_')?;
            if columns.iter().any(|column| **column == *rest) {
                return Some(format!(
                    "query `{query}` gives it as `{rest}`: write `{rest} as {name}` there."
                ));
            }
            let all: Vec<String> = columns
                .iter()
                .map(|column| format!("`:{column}`"))
                .collect();
            (!all.is_empty()).then(|| format!("query `{query}` gives {}.", all.join(", ")))
        })
}

/// True if a parameter has the name of a claim, with or without what is often put around it:
/// `user_id` and `current_user` for the claim `user`.
fn is_like(name: &str, claim: &str) -> bool {
    let plain = |name: &str| {
        let before = ["claims_", "claim_", "current_", "session_", "my_", "own_"];
        let mut name = name.to_ascii_lowercase();
        for prefix in before {
            if let Some(rest) = name.strip_prefix(prefix) {
                name = rest.to_owned();
            }
        }
        let name = name.replace('_', "");
        name.strip_suffix("id").unwrap_or(&name).to_owned()
    };
    plain(name) == plain(claim)
}

fn type_name(kind: Option<ValueKind>) -> &'static str {
    match kind {
        Some(ValueKind::Integer) => "integer",
        Some(ValueKind::Real) => "real",
        Some(ValueKind::Boolean) => "boolean",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_like_claims() {
        for (name, claim) in [
            ("user_id", "user"),
            ("user", "user_id"),
            ("current_user", "user"),
            ("userid", "user_id"),
            ("user", "user"),
        ] {
            assert!(is_like(name, claim), "{name} {claim}");
        }
        for (name, claim) in [("username", "user"), ("id", "user"), ("users", "user")] {
            assert!(!is_like(name, claim), "{name} {claim}");
        }
    }
}
